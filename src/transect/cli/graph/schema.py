"""`transect graph schema`: the JSON Schema of descriptions, for editors."""

from __future__ import annotations

from importlib.resources import files

import click


@click.command()
def command() -> None:
    """Print the JSON Schema of descriptions, for editors.

    With it an editor completes and checks them.

    In the first line of a description: # yaml-language-server: $schema=compound.schema.json
    """
    click.echo(schema_text(), nl=False)


def schema_text() -> str:
    """Return the JSON Schema of descriptions."""
    return files("transect.engine").joinpath("compound.schema.json").read_text(encoding="utf-8")
