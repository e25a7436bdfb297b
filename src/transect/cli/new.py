"""`transect new recording|urdf|node|compound`: a first version of something of your own, to be edited."""

from __future__ import annotations

from pathlib import Path

import click

from ._new_node import compound, node
from ._options import out_option


@click.group()
def command() -> None:
    """Write a first version of something for you to edit."""


command.add_command(node)
command.add_command(compound)


@command.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace a recording.yaml that is there.")
def recording(folder: Path, force: bool) -> None:
    """Write FOLDER/recording.yaml by guessing what its files are, and say what was guessed."""
    from transect.base import files
    from transect.formats.described import FILE
    from transect.formats.described.guess import guess
    from transect.recording import source_of

    target = folder / FILE
    if not force:
        files.refuse_existing(target, hint="edit it, or replace it with --force")
    text, guesses = guess(source_of(folder))
    files.write_text(target, text)
    click.echo(f"wrote {target}; this is what was guessed, please check it:")
    for guessed in guesses:
        click.echo(f"  - {guessed}")
    click.echo(f"next: transect info {folder}")


@command.command()
@click.argument("robot")
@out_option
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def urdf(robot: str, out: Path, force: bool) -> None:
    """Write ROBOT, a name such as interact or a robot's .yaml file, as URDF."""
    from transect import robots
    from transect.base import files
    from transect.robots.urdf import text_of, urdf_from_robot

    if not force:
        files.refuse_existing(out, hint="write elsewhere, or replace it with --force")
    described = urdf_from_robot(robots.load(robot))
    files.write_text(out, text_of(described))
    click.echo(
        f"wrote {out}: {len(described.links)} links, {len(described.joints)} joints, of which "
        f"{len(described.driven)} move"
    )
