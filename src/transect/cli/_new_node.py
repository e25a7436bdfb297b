"""`transect new node|compound FILE`: typed stubs and a test from a description."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from transect.engine.scaffold import Scaffold

folder_option = click.option(
    "-o", "--out", "folder", type=click.Path(path_type=Path, file_okay=False), help="Default: beside FILE."
)


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@folder_option
def node(file: Path, folder: Path | None) -> None:
    """Write the interface that FILE describes, a stub of each implementation, and a test.

    The interface is regenerated each time; implementations and the test are yours and never overwritten.
    """
    from transect.engine.scaffold import new_node

    made = new_node(file, folder)
    _report(made)
    click.echo(f"next: python -m pytest {made.test}")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@folder_option
def compound(file: Path, folder: Path | None) -> None:
    """Write the compound that FILE describes, in any form, in ours, with a test that checks it.

    Stubs of the controllers that it names come along; nothing that is there is overwritten.
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
