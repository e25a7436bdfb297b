"""`transect archive init PATH -o archive.yaml`: the file that a person completes."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("path", type=click.Path(path_type=Path, exists=True))
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), default=Path("archive.yaml"), show_default=True,
    help="Where to write: a new file.",
)  # fmt: skip
def command(path: Path, out: Path) -> int:
    """Write a commented YAML file that describes the archive of PATH.

    PATH is a recording of any format, the folder of a run, a folder of verdicts, or a store of products.
    Complete the file, then: transect archive build FILE -o BUNDLE.
    """
    import os

    from transect.archive.making.opening import describe
    from transect.base import files

    files.refuse_existing(out)
    named = os.path.relpath(path.resolve(), out.absolute().parent)
    files.write_text(out, describe(path, named))
    click.echo(f"wrote {out}: complete it, then transect archive build {out} -o BUNDLE")
    return 0
