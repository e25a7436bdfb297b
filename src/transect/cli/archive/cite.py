"""`transect archive cite BUNDLE [-o FILE]`: how a bundle is cited, and its metadata for DataCite."""

from __future__ import annotations

from pathlib import Path

import click

from ..shared.options import json_option


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path, exists=True))
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Write DataCite's metadata here, as JSON.")
@click.option("--author", "authors", multiple=True, metavar="NAME", help="Instead of the label's: Doe, Jane.")
@click.option("--publisher", default="", metavar="NAME", help="Instead of the agency's archive.")
@json_option
def command(bundle: Path, out: Path | None, authors: tuple[str, ...], publisher: str, as_json: bool) -> int:
    """Print how a bundle is cited, by what its label says.

    With -o, or --json, also the metadata with which DataCite registers a DOI (schema 4).
    """
    import json

    from transect.archive.citing import bundle_citation
    from transect.base.files import refuse_existing, write_text
    from transect.recording.citation import citation_text, datacite

    from ..shared.output import show_json

    citation = bundle_citation(bundle, authors, publisher)
    metadata = datacite(citation)
    if as_json:
        show_json({"citation": citation_text(citation), "datacite": metadata})
    else:
        click.echo(citation_text(citation))
    if out is not None:
        refuse_existing(out)
        write_text(out, json.dumps(metadata, indent=2, ensure_ascii=False) + "\n")
        click.echo(f"wrote {out}", err=True)
    if not citation.doi:
        click.echo("note: it has no DOI yet, which DataCite gives when it is registered", err=True)
    return 0
