"""`transect archive schemas fetch|list`: the XSD and Schematron files that labels are checked against."""

from __future__ import annotations

from pathlib import Path

import click

FOLDER = click.Path(path_type=Path, file_okay=False)


@click.group("schemas")
def command() -> None:
    """Fetch and list the schemas that labels are checked against."""


@command.command()
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("-o", "--out", type=FOLDER, help="Folder for them; default: the user's data folder.")
@click.option("--all", "everything", is_flag=True, help="All that are known, about 180 files.")
def fetch(names: tuple[str, ...], out: Path | None, everything: bool) -> int:
    """Fetch schemas from the official site, and check that they are the known ones.

    NAME is a schema without .xsd or .sch (PDS4_PDS_1B10); default: what InSight's arm used, and a recent set.
    TRANSECT_PDS4_SITE names another site of the same layout.
    """
    from transect.archive import schemas

    known = {pin.name.rpartition(".")[0] for pin in schemas.pins()}
    _refuse_unknown(names, known)
    target = out or schemas.data_folder()
    new = old = 0
    for _, fetched in schemas.fetch(sorted(known) if everything else names or schemas.DEFAULT, target):
        new, old = new + fetched, old + (not fetched)
    click.echo(f"{new} files fetched, {old} were there: {target}")
    return 0


@command.command("list")
@click.option("--schemas", "folders", multiple=True, type=FOLDER, help="Folder to look in; may be repeated.")
def list_(folders: tuple[Path, ...]) -> int:
    """List the schemas that are found here."""
    from transect.archive.schemas import find_schemas

    found = find_schemas(folders)
    for name in found.names:
        click.echo(name)
    click.echo(f"{len(found.names)} files in {', '.join(map(str, found.folders))}", err=True)
    return 0


def _refuse_unknown(names: tuple[str, ...], known: set[str]) -> None:
    from transect.errors import UsageError, did_you_mean

    for name in names:
        if name not in known:
            raise UsageError(f"no schema {name!r} is pinned", hint=did_you_mean(name, known))
