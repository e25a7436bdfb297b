"""`transect archive deep BUNDLE -o DIR --url URL --site SITE`: packages for the deep archive."""

from __future__ import annotations

from pathlib import Path

import click

from ..shared.options import json_option, out_option


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path, exists=True))
@out_option
@click.option("--url", required=True, metavar="URL", help="Where the bundle's folder is served.")
@click.option("--site", required=True, metavar="SITE", help="Who delivers it, such as PDS_GEO.")
@click.option("--created", default="", metavar="TIME", help="When, in UTC; default when its newest file was.")
@json_option
def command(bundle: Path, out: Path, url: str, site: str, created: str, as_json: bool) -> int:
    """Pack a bundle for the deep archive (AIP and SIP).

    DIR gets two labels and three manifests: checksums, what is transferred, and what is submitted.
    Files are read where they are; nothing is fetched from URL.
    """
    from transect.archive.deep import write_packages

    from ..shared.output import show_json

    made = write_packages(bundle, out, url, site, created)
    if as_json:
        show_json({"bundle": str(made.lidvid), "files": made.files, "written": list(made.names)})
        return 0
    click.echo(f"{made.lidvid}: {made.files} files")
    for name in made.names:
        click.echo(f"wrote {out / name}")
    return 0
