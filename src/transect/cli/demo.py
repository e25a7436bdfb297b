"""`transect demo`: a tour on data that it makes itself."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), default=Path("transect-demo"), help="Where to write."
)
def command(out: Path) -> None:
    """Write a small AMEDS folder, open it, and print what it holds."""
    import shutil

    from transect import formats
    from transect.formats.ameds.sample import sample_recording

    folder = out / "etna"
    if folder.exists():
        shutil.rmtree(folder)
    _step(f"write a made-up AMEDS recording to {folder}")
    formats.write(sample_recording(), folder, "ameds")
    _step(f"transect info {folder}")
    recording = formats.open(folder)
    click.echo(repr(recording))
    _step("where is the lidar on the rover?  rec.frames.lookup('Origin', 'Lidar')")
    click.echo(str(recording.frames.lookup("Origin", "Lidar").round(3)))
    click.echo(f"\nnext: transect info {folder} --frames, or transect draw streams {folder}")


def _step(text: str) -> None:
    click.echo(click.style(f"\n> {text}", bold=True))
