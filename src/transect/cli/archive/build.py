"""`transect archive build CONFIG|RECORDING -o BUNDLE`: a PDS4 bundle of recordings and results."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..shared.options import json_option
from ..shared.output import show_json

if TYPE_CHECKING:
    from transect.archive.building import Built

_WORDS = {"new": "new", "major": "with other data", "minor": "with another label", "none": "as before"}


@click.command()
@click.argument("path", type=click.Path(path_type=Path, exists=True))
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="The bundle: a folder.")
@click.option(
    "--context", type=click.Path(path_type=Path, dir_okay=False),
    help="registered_context_products.json; default: beside the schemas.",
)  # fmt: skip
@click.option("--as-printed", is_flag=True, help="InSight's arm: labels as printed, with their mistakes.")
@click.option(
    "--products", default="", metavar="STORE",
    help="Archive this store's products instead of those of the store that PATH names.",
)  # fmt: skip
@json_option
def command(
    path: Path, out: Path, context: Path | None, as_printed: bool, products: str, as_json: bool
) -> int:
    """Build a PDS4 bundle.

    PATH is a file that transect archive init wrote and you completed; or a recording, the folder of a run or
    a store of products, of which a bundle is built as init would describe it; or a bundle, to build it again.

    A recording of InSight's arm becomes the archive of document 002. --as-printed gives its tables the label
    of appendix E as it stands there.

    A store on a server is opened only if --products gives its address: a PATH that names one is refused.

    A bundle that is there already is followed by its next version; products that did not change stay as they
    are, byte by byte.
    """
    from transect.archive.making.opening import build

    built = build(path, out, context, as_printed=as_printed, products=products)
    if as_json:
        show_json(_document(built))
    else:
        show_built(built)
    return 3 if built.losses else 0


def _document(built: Built) -> dict[str, object]:
    return {
        "bundle": str(built.lidvid), "folder": str(built.folder), "checksums": str(built.checksums),
        "size": built.size, "products": {str(lidvid): change for lidvid, change in built.changes.items()},
        "removed": [str(lid) for lid in built.removed], "losses": list(built.losses),
        "notes": list(built.notes),
    }  # fmt: skip


def show_built(built: Built) -> None:
    """Print what became of each collection, and where the bundle is."""
    from transect.base.tables import size_text, table_lines

    rows = [("collection", "version", "products", "")]
    for lidvid, members in built.collections.items():
        counts = Counter(built.changes[each] for each in members)
        said = ", ".join(f"{counts[word]} {text}" for word, text in _WORDS.items() if counts[word])
        rows.append((lidvid.lid.name, str(lidvid.vid), str(len(members)), said))
    click.echo("\n".join(table_lines(rows, right=(2,))))
    for lid in built.removed:
        click.echo(f"removed: {lid}")
    for note in (*built.losses, *built.notes):
        click.echo(f"note: {note}")
    click.echo(
        f"wrote {built.folder}: {built.lidvid}, {size_text(built.size)}; checksums in {built.checksums}"
    )
