"""`transect archive init PATH [RESULTS] -o archive.yaml`: the file that a person completes."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("path", type=click.Path(path_type=Path, exists=True))
@click.argument("results", nargs=-1, type=click.Path(path_type=Path, exists=True))
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), default=Path("archive.yaml"), show_default=True,
    help="Where to write: a new file.",
)  # fmt: skip
def command(path: Path, results: tuple[Path, ...], out: Path) -> int:
    """Write a commented YAML file that describes the archive of PATH.

    PATH is a recording of any format, the folder of a run, a folder of verdicts, or a store of products;
    RESULTS are folders of runs and of verdicts, trajectories, maps and clouds of the same archive.
    Complete the file, then: transect archive build FILE -o BUNDLE.
    """
    import os

    from transect.archive.making.config import parse_config
    from transect.archive.making.opening import describe, is_undated
    from transect.archive.making.template import UNDATED
    from transect.base import files

    files.refuse_existing(out)
    named = [os.path.relpath(each.resolve(), out.absolute().parent) for each in (path, *results)]
    text = describe(path, named[0], named[1:])
    files.write_text(out, text)
    if is_undated(parse_config(text, out.absolute())):
        click.echo(f"warning: {UNDATED}", err=True)
    click.echo(f"wrote {out}: complete it, then transect archive build {out} -o BUNDLE")
    return 0
