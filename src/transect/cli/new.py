"""`transect new recording DIR`: a first description of your own files."""

from __future__ import annotations

from pathlib import Path

import click


@click.group()
def command() -> None:
    """Write a first version of something for you to edit."""


@command.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace a recording.yaml that is there.")
def recording(folder: Path, force: bool) -> None:
    """Write FOLDER/recording.yaml by guessing what its files are, and say what was guessed."""
    from transect.errors import UsageError
    from transect.formats import described
    from transect.recording import files, source_of

    target = folder / described.FILE
    if target.exists() and not force:
        raise UsageError(f"{target} exists already", hint="edit it, or replace it with --force")
    text, guesses = described.guess(source_of(folder))
    files.write_text(target, text)
    click.echo(f"wrote {target}; this is what was guessed, please check it:")
    for guess in guesses:
        click.echo(f"  - {guess}")
    click.echo(f"next: transect info {folder}")
