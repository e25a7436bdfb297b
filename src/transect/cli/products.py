"""`transect products ...`: stored products, their positions and lineage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from transect.base.tables import size_text

from .shared.options import add_options, json_option, out_option
from .shared.output import all_option, show_json, show_table

if TYPE_CHECKING:
    from transect.products import Area, Lineage, Product, ProductQuery, ProductStore, StoreEvent
    from transect.products.reproduction import Reproduction
    from transect.types.provenance import SourceFile

MAX_INDENTED_GENERATIONS = 20
store_argument = click.argument("store", metavar="STORE")
id_argument = click.argument("identifier", metavar="ID")
wanted_options = add_options(
    click.option("--kind", help="DEM, Trajectory, PointCloud, Run, ..."),
    click.option("--name", help="Name of the output, or given by the user."),
    click.option("--robot", help="Robot that it belongs to."),
    click.option("--mission", help="Campaign that it belongs to."),
    click.option("--frame", help="Frame of its coordinates."),
    click.option(
        "--from", "start", metavar="TIME", help="Ending at this time or later: ISO, or clock seconds."
    ),
    click.option("--to", "end", metavar="TIME", help="Starting before this time."),
    click.option("--clock", default="utc", show_default=True, help="Clock of these times."),
    click.option("--area", metavar="X0,Y0,X1,Y1", help="A box that it intersects: east, north."),
    click.option(
        "--crs",
        default="EPSG:4326",
        show_default=True,
        help="Coordinate system of the area; site:NAME for metres.",
    ),
    click.option("--min-quality", type=click.FloatRange(0, 1), help="Smallest quality score."),
    click.option("--latest", type=click.IntRange(1), metavar="N", help="Only the N newest."),
)


@click.group()
def command() -> None:
    """Find, show, export and delete stored products.

    STORE is a GeoPackage such as mission.gpkg, or postgresql://user@host/database. `transect run ... --store
    STORE` stores the outputs of a run. ID is the id of a product, or at least its first six digits.
    """


def _open(store: str, create: bool = False) -> ProductStore:
    from transect.products import open_store

    return open_store(store, create=create)


@command.command()
@store_argument
@wanted_options
@all_option
@json_option
def find(store: str, as_json: bool, **asked: Any) -> None:
    """List products by kind, time, place, robot and quality, the newest first."""
    with _open(store) as opened:
        products = opened.find(_read_wanted(**asked))
        kinds = sorted({product.kind for product in opened.find()}) if not products else []
    if as_json:
        show_json({"products": [_describe(product) for product in products]})
        return
    show_products(products)
    if kinds:
        click.echo(f"kinds in the store: {', '.join(kinds)}")


def _read_wanted(
    start: str | None, end: str | None, area: str | None, crs: str, **asked: Any
) -> ProductQuery:
    from transect.products import ProductQuery

    return ProductQuery(time=_time(start, end, asked["clock"]), area=parse_area(area, crs), **asked)


def _time(start: str | None, end: str | None, clock: str) -> tuple[int, int] | None:
    from transect.base.clocks import resolve

    if start is None and end is None:
        return None
    first = -(1 << 63) if start is None else resolve(start, 0, clock)
    return first, (1 << 63) - 1 if end is None else resolve(end, 0, clock)


def parse_area(text: str | None, crs: str) -> Area | None:
    """Parse a box from four numbers."""
    from transect.errors import UsageError
    from transect.products import Area

    if text is None:
        return None
    try:
        x0, y0, x1, y1 = (float(part) for part in text.split(","))
    except ValueError:
        hint = "--area 149.89,-34.61,149.91,-34.59"
        raise UsageError(f"--area {text!r} is not four numbers", hint=hint) from None
    return Area(x0, y0, x1, y1, crs)


def show_products(products: Sequence[Product]) -> None:
    """Print one line for each product."""
    from transect.products.product import HEADINGS, row_of

    if not products:
        click.echo("no matching product")
        return
    rows = [row_of(product) for product in products]
    show_table(HEADINGS, rows, right=frozenset({6, 7}), order=(0, 1, 2, 4, 6, 5, 3, 8, 7))


def _short(identifier: str) -> str:
    """Return the digits of a hash that are shown."""
    from transect.products.product import SHORT_ID_DIGITS

    return identifier[:SHORT_ID_DIGITS]


def _describe(product: Product) -> dict[str, Any]:
    import json

    return {"id": product.id, **json.loads(product.document)}


@command.command()
@store_argument
@id_argument
@json_option
def show(store: str, identifier: str, as_json: bool) -> None:
    """Show the details of a product."""
    from transect.products.product import when_text, where_text

    with _open(store) as opened:
        product = opened.get(identifier)
        children = opened.children(product.id)
    if as_json:
        show_json({**_describe(product), "children": children})
        return
    made = product.provenance
    rows = [
        ("id", product.id), ("kind", product.kind), ("name", product.name), ("robot", product.robot),
        ("mission", product.mission), ("frame", product.frame), ("time", when_text(product)),
        ("place", where_text(product)),
        ("quality", ", ".join(f"{k} {v:g}" for k, v in product.quality.items())),
        ("payload", f"{product.payload.format}, {product.payload.size} bytes, {product.payload.sha256}"),
        ("computed by", made.tool), ("command", made.command),
        ("inputs", ", ".join(_short(each) for each in made.parents)),
        ("conclusion", "; ".join(each["text"] for each in made.parameters.get("conclusions", ()))),
        ("files", ", ".join(map(_file_text, made.sources))),
        ("used in", ", ".join(_short(each) for each in children)),
    ]  # fmt: skip
    for name, value in rows:
        if value:
            click.echo(f"{name:12} {value}")


@command.command()
@store_argument
@id_argument
@out_option
def get(store: str, identifier: str, out: Path) -> None:
    """Write the bytes of a product to a file; a map of keyframes is an input of `run --map`."""
    from transect.base.files import atomic_write, refuse_existing

    refuse_existing(out)
    with _open(store) as opened:
        product = opened.get(identifier)
        with atomic_write(out) as stream:
            for piece in opened.read(product.id):
                stream.write(piece)
    click.echo(f"wrote {out}", err=True)


@command.command()
@store_argument
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--kind", required=True, help="DEM, Trajectory, PointCloud, Report, ...")
@click.option("--name", default="", help="Name of the product.")
@click.option("--robot", default="", help="Robot that it belongs to.")
@click.option("--mission", default="", help="Campaign that it belongs to.")
@click.option("--area", metavar="X0,Y0,X1,Y1", help="Its bounding box: east, north.")
@click.option(
    "--crs",
    default="EPSG:4326",
    show_default=True,
    help="Coordinate system of the area; site:NAME for metres.",
)
@click.option(
    "--from-product", "parents", multiple=True, metavar="ID", help="A product that it was computed from."
)
def put(
    store: str, file: Path, kind: str, name: str, robot: str, mission: str, area: str | None, crs: str,
    parents: tuple[str, ...],
) -> None:  # fmt: skip
    """Store a file from another program."""
    from transect._version import __version__
    from transect.products import Payload, Place, Product
    from transect.types.provenance import Provenance

    box = parse_area(area, crs)
    with _open(store, create=True) as opened:
        made_from = tuple(opened.get(parent).id for parent in parents)
        product = Product(
            kind, Payload.of(file, file.suffix.removeprefix(".").lower() or "bin"), name or file.stem, robot,
            mission, place=Place.of_box(box) if box else None,
            provenance=Provenance(tool=f"transect {__version__}", parents=made_from),
        )  # fmt: skip
        click.echo(opened.put(product, file))


@command.command()
@store_argument
@click.argument("identifier", metavar="[ID]", required=False)
@json_option
def history(store: str, identifier: str | None, as_json: bool) -> None:
    """Show the history of a product, or of all: put, merged, deleted, pruned, and why."""
    with _open(store) as opened:
        events = opened.history(identifier) if identifier else opened.changes()
    if as_json:
        show_json({"events": [vars(event) for event in events]})
        return
    show_table(("time", "event", "id", "reason"), [_event_row(event) for event in events], prose=(3,))


def _event_row(event: StoreEvent) -> tuple[str, ...]:
    from transect.base.clocks import iso_from_ns

    return iso_from_ns(event.t_ns, 0), event.what, _short(event.id), event.reason


@command.command()
@store_argument
@id_argument
@json_option
def lineage(store: str, identifier: str, as_json: bool) -> None:
    """Show the inputs of a product, down to the files."""
    with _open(store) as opened:
        found = opened.lineage(identifier)
    if as_json:
        show_json({"id": found.id, "products": [_facts(each) for each in found.ancestors]})
        return
    for depth, each, is_first in found.walk():
        _show_ancestor(each, min(depth, MAX_INDENTED_GENERATIONS), is_first)


def _facts(found: Lineage) -> dict[str, Any]:
    product = found.product
    said = {"id": found.id, "kind": product.kind if product else None, "note": found.note}
    files = [file.to_dict() for file in product.provenance.sources] if product else []
    return {**said, "files": files, "parents": [parent.id for parent in found.parents]}


def _show_ancestor(found: Lineage, depth: int, is_first: bool) -> None:
    product, indent = found.product, "  " * depth
    what = " ".join(filter(None, (product.kind, product.name))) if product else ""
    note = found.note or ("" if is_first else "above")
    click.echo(indent + " ".join(filter(None, (_short(found.id), what, note and f"({note})"))))
    for file in product.provenance.sources if product and is_first else ():
        click.echo(f"{indent}  {_file_text(file)}")


def _file_text(file: SourceFile) -> str:
    files = f"{file.count} files, " if file.count > 1 else ""
    return f"{file.label} ({files}{_short(file.sha256)})"


@command.command()
@store_argument
@id_argument
@click.option("--reason", required=True, help="Reason, which is recorded.")
def delete(store: str, identifier: str, reason: str) -> None:
    """Delete a product; its id and the reason stay in the history."""
    with _open(store) as opened:
        click.echo(f"deleted {_short(opened.delete(identifier, reason))}")


@command.command()
@store_argument
@click.option(
    "--kind", "kinds", multiple=True, help="Only this kind; by default all except runs; may be repeated."
)
@click.option("--before", metavar="TIME", help="Products that end before this time.")
@click.option(
    "--keep-latest", type=click.IntRange(0), metavar="N", help="Keep the N newest of each kind and name."
)
@click.option(
    "--below",
    type=click.FloatRange(0, 1),
    metavar="SCORE",
    help="Products with a smaller quality score, or none.",
)
@click.option("--reason", default="pruned", show_default=True, help="Reason, which is recorded.")
@click.option("--dry-run", is_flag=True, help="Only list the products.")
def prune(
    store: str, kinds: tuple[str, ...], before: str | None, keep_latest: int | None, below: float | None,
    reason: str, dry_run: bool,
) -> None:  # fmt: skip
    """Delete products by age, number or quality; inputs of other products are kept."""
    from transect.base.clocks import resolve
    from transect.products import RetentionPolicy

    if before is None and keep_latest is None and below is None:
        raise click.UsageError("choose products: --before, --keep-latest or --below")
    policy = RetentionPolicy(kinds, None if before is None else resolve(before, 0), keep_latest, below)
    with _open(store) as opened:
        gone = opened.prune(policy, reason, dry_run)
    if gone:
        show_products(gone)
    size = size_text(sum(product.payload.size for product in gone))
    click.echo(f"{'would remove' if dry_run else 'removed'} {len(gone)} products, {size}")


@command.command()
@store_argument
@click.argument("other", metavar="OTHER")
def merge(store: str, other: str) -> int:
    """Copy the products of another store; those deleted here stay deleted."""
    from . import ExitCode

    with _open(store, create=True) as mine, _open(other) as theirs:
        merged = mine.merge(theirs)
    click.echo(
        f"{len(merged.added)} added, {len(merged.known)} known, {len(merged.deleted)} deleted here, "
        f"{len(merged.damaged)} corrupt there"
    )
    for identifier in merged.damaged:
        click.echo(f"corrupt: {_short(identifier)}", err=True)
    return ExitCode.DATA_LOST if merged.damaged else 0


@command.command()
@store_argument
@click.option("--sweep", is_flag=True, help="Delete orphaned payloads, which no product has.")
@json_option
def verify(store: str, sweep: bool, as_json: bool) -> int:
    """Verify the checksum of every product. Exits with 4 if there are problems."""
    from . import ExitCode

    with _open(store) as opened:
        found = opened.verify(sweep)
    if as_json:
        show_json(vars(found))
    else:
        for identifier, what in found.problems:
            click.echo(f"{_short(identifier)}: {what}")
        orphans = (
            f", {len(found.orphans)} orphaned payloads{' deleted' if sweep else ''}" if found.orphans else ""
        )
        click.echo(f"{found.products} products, {len(found.problems)} problems{orphans}")
    return ExitCode.BAD_VERDICT if found.problems else 0


@command.command()
@store_argument
def roles(store: str) -> None:
    """Create the roles for reading, writing and pruning in a PostGIS database."""
    from transect.errors import UsageError
    from transect.products.postgis import ROLES, PostgisStore

    with _open(store) as opened:
        if not isinstance(opened, PostgisStore):
            hint = "access to a GeoPackage is set by file permissions"
            raise UsageError(f"{store} has no roles", hint=hint)
        opened.create_roles()
    for role, rights in ROLES.items():
        click.echo(f"{role}: {rights}")


@command.command()
@store_argument
@click.argument("run", metavar="RUN", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--mission", default="", help="Campaign that it belongs to.")
def keep(store: str, run: Path, mission: str) -> None:
    """Store a run from its folder, with all outputs."""
    from transect.products.run_products import keep_run

    with _open(store, create=True) as opened:
        show_products([opened.get(identifier) for identifier in keep_run(opened, run, mission)])


@command.command()
@store_argument
@id_argument
@click.option(
    "--look-in", multiple=True, type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
    help="Folder to search, by content, for a recording or a map that was moved; may be repeated.",
)  # fmt: skip
@click.option("--strict", is_flag=True, help="Hash every file again, without the cache of hashes.")
@json_option
def reproduce(store: str, identifier: str, look_in: tuple[Path, ...], strict: bool, as_json: bool) -> int:
    """Repeat the run that computed a product, and compare every byte.

    Exits with 4 if an output differs, or if an input is missing or was changed.
    """
    from transect.products.reproduction import reproduce as run_again
    from transect.recording.file_hashes import rehashing

    from . import ExitCode

    with rehashing(strict), _open(store) as opened:
        found = run_again(opened, identifier, look_in)
    if as_json:
        first = found.difference.first
        show_json(
            {
                "id": found.product.id, "run": found.run.id, "identical": found.identical,
                "first_port": first.port if first else None, "first_ns": first.first_ns if first else None,
                "moved": dict(found.moved),
            }
        )  # fmt: skip
    else:
        for before, now in found.moved.items():
            click.echo(f"{before} was found at {now}")
        click.echo(f"{found.run.name}: {_comparison_text(found)}")
    return 0 if found.identical else ExitCode.BAD_VERDICT


def _comparison_text(found: Reproduction) -> str:
    if found.identical:
        return f"identical, digest {found.digest}"
    first = found.difference.first
    where = f"{found.difference.place(first)} differs first\n" if first else ""
    return f"not identical: {where}{found.difference}"


@command.command("map")
@store_argument
@out_option
@wanted_options
def draw_map(store: str, out: Path, **asked: Any) -> None:
    """Draw products on a map: tracks and outlines over the newest height map (PNG, SVG or PDF)."""
    from transect.base.files import refuse_existing
    from transect.draw.figures import save_figure
    from transect.products.export import map_figure

    refuse_existing(out)
    given = asked["crs"] if asked["area"] is not None else ""
    with _open(store) as opened:
        figure = map_figure(opened, opened.find(_read_wanted(**asked)), given)
    save_figure(figure, out)
    click.echo(f"wrote {out}", err=True)


@command.command()
@store_argument
@click.option(
    "--format", "form", type=click.Choice(["geojson", "stac"]), required=True,
    help="One file of features, or a folder with a catalogue and the payloads.",
)  # fmt: skip
@out_option
@wanted_options
def export(store: str, form: str, out: Path, **asked: Any) -> None:
    """Write products for other programs, as GeoJSON or as a STAC catalogue."""
    from transect.products.export import write_geojson, write_stac

    with _open(store) as opened:
        products = opened.find(_read_wanted(**asked))
        if form == "geojson":
            write_geojson(products, out)
            left: Sequence[Product] = ()
        else:
            left = write_stac(opened, products, out)
    click.echo(f"wrote {len(products) - len(left)} products to {out}", err=True)
    if left:
        click.echo(f"left out {len(left)} without a time in UTC, which STAC requires", err=True)
