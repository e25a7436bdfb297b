"""`transect new recording|urdf|node|compound`: templates of your own files, to be edited."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .shared.options import out_option

if TYPE_CHECKING:
    from transect.engine.scaffold import Scaffold

folder_option = click.option(
    "-o", "--out", "folder", type=click.Path(path_type=Path, file_okay=False), help="Default: beside FILE."
)


@click.group()
def command() -> None:
    """Write a template of a file for you to edit."""


@command.command()
@click.argument("path", type=click.Path(path_type=Path, exists=True))
@click.option("--force", is_flag=True, help="Replace a recording.yaml that is there.")
def recording(path: Path, force: bool) -> None:
    """Write a recording.yaml that describes files by guessing.

    The guesses are printed. PATH is a folder, or one table (CSV or text), for which recording.yaml is written
    beside it.
    """
    from transect.base import files
    from transect.formats.described import FILE
    from transect.formats.described.guess import guess
    from transect.recording import source_of

    folder = path.parent if path.is_file() else path
    target = folder / FILE
    if not force:
        files.refuse_existing(target, hint="edit it, or replace it with --force")
    text, guesses = guess(source_of(path))
    files.write_text(target, text)
    click.echo(f"wrote {target}; please check these guesses:")
    for guessed in guesses:
        click.echo(f"  - {guessed}")
    _show_first_rows(folder)
    click.echo(f"next: transect info {folder}; docs/recording-yaml.md explains every key")


def _show_first_rows(folder: Path) -> None:
    """Print the first row of each stream as described, which reveals wrong units."""
    import shutil
    import textwrap

    import transect
    from transect.recording.summary import first_row

    streams = transect.open(folder).streams
    if streams:
        click.echo("first row of each stream:")
    for stream in streams:
        width = shutil.get_terminal_size().columns
        text = f"{stream.name} ({stream.type.__name__}): {first_row(stream)}"
        click.echo(textwrap.fill(text, width, initial_indent="  ", subsequent_indent="      "))


@command.command()
@click.argument("robot")
@out_option
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def urdf(robot: str, out: Path, force: bool) -> None:
    """Write a robot as URDF.

    ROBOT is a name such as interact, or a robot's .yaml file.
    """
    from transect import robots
    from transect.base import files
    from transect.robots.urdf import text_of, urdf_from_robot

    if not force:
        files.refuse_existing(out, hint="write elsewhere, or replace it with --force")
    described = urdf_from_robot(robots.load(robot))
    files.write_text(out, text_of(described))
    click.echo(
        f"wrote {out}: {len(described.links)} links, {len(described.joints)} joints "
        f"({len(described.driven)} movable)"
    )


@command.command()
@click.argument("file", type=click.Path(path_type=Path))
@folder_option
def node(file: Path, folder: Path | None) -> None:
    """Write Python stubs of the node that FILE describes.

    The stubs are its interface, each implementation, and a test. The interface is regenerated each time;
    implementations and the test are never overwritten.
    """
    from transect.engine.scaffold import new_node

    made = new_node(file, folder)
    _report(made)
    click.echo(f"next: python -m pytest {made.test}")


@command.command()
@click.argument("file", type=click.Path(path_type=Path))
@folder_option
def compound(file: Path, folder: Path | None) -> None:
    """Convert the compound that FILE describes to transect's format.

    A test and stubs of its controllers are written, too; existing files are not overwritten.
    """
    from transect.engine.scaffold import new_compound

    made = new_compound(file, folder)
    _report(made)
    click.echo(f"next: transect graph check {made.description}")


def _report(made: Scaffold) -> None:
    for word, paths in (("wrote", made.written), ("regenerated", made.regenerated), ("kept", made.kept)):
        for path in paths:
            click.echo(f"{word} {path}")
    for note in made.notes:
        click.echo(f"note: {note}")
