"""`transect request KIND --recording PATH`: request a product; the computation is planned."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from .shared.options import from_option, json_option, to_option
from .shared.output import show_json, show_text

if TYPE_CHECKING:
    from transect.orchestrator import Answer, ProductRequest
    from transect.products import ProductStore
    from transect.recording import Recording

MAX_REFUSALS = 3
"""Number of rejected compounds that are listed unless all are asked for."""


@click.command()
@click.argument("kind", metavar="KIND")
@click.option(
    "--recording",
    "paths",
    multiple=True,
    required=True,
    metavar="PATH",
    help="The recording to compute it from.",
)
@click.option("--store", default="products.gpkg", show_default=True, help="The store of products.")
@from_option
@to_option
@click.option("--area", metavar="X0,Y0,X1,Y1", help="A box that it must intersect: east, north.")
@click.option(
    "--crs",
    default="EPSG:4326",
    show_default=True,
    help="Coordinate system of the area; site:NAME for metres.",
)
@click.option("--frame", help="Required frame.")
@click.option(
    "--max-age", type=click.FloatRange(0), metavar="S", help="Largest age relative to the recording's end."
)
@click.option("--min-quality", type=click.FloatRange(0, 1), help="Smallest quality score.")
@click.option("--check", is_flag=True, help="Check the sensors, and replace BAD ones by others.")
@click.option("--policy", type=click.Path(path_type=Path), help="Substitutes of sensors (YAML).")
@click.option(
    "--preferences", type=click.Path(path_type=Path), help="Order in which compounds are tried (YAML)."
)
@click.option("--mission", default="", help="Campaign of the new products.")
@click.option("--dry-run", is_flag=True, help="Only search and plan, compute nothing.")
@click.option("--strict", is_flag=True, help="Hash every file again, without the cache of hashes.")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Also write the product to this file.")
@click.option(
    "--format", "form", default="", help="Format of that file: tum, csv, kitti; ply, pcd, csv; tif, csv."
)
@click.option("--in-frame", default="", metavar="FRAME", help="Frame of the positions in that file.")
@click.option("--unit", default="m", show_default=True, help="Unit of lengths in a csv file.")
@click.option(
    "--resolution",
    type=click.FloatRange(0, min_open=True),
    metavar="M",
    help="Resolution of a map or cloud in that file.",
)
@click.option("--all", "everything", is_flag=True, help="List all rejected compounds, not only three.")
@json_option
def command(
    kind: str, paths: tuple[str, ...], store: str, check: bool, policy: Path | None, preferences: Path | None,
    mission: str, dry_run: bool, strict: bool, out: Path | None, form: str, in_frame: str, unit: str,
    resolution: float | None, everything: bool, as_json: bool, **asked: Any,
) -> int:  # fmt: skip
    """Request a product; how to compute it is planned.

    KIND is any output of any compound, or its type: DEM, Pose, Trajectory, PointCloud, ... The plan goes
    backwards from the product to the recorded streams. A stored product of the same plan and inputs is
    returned. Otherwise the plan is shown, with the rejected alternatives, run, and the result is stored.
    Exits with 4 if the result is not trustworthy, or does not meet the requested quality or age.
    """
    from transect.base.files import refuse_existing, write_bytes
    from transect.errors import UsageError
    from transect.formats import open as open_recording
    from transect.orchestrator import NoPlanError, answer, load_policy, load_preferences
    from transect.orchestrator.forms import ProductForm
    from transect.recording.file_hashes import rehashing

    from . import ExitCode

    wanted_form = ProductForm(form, in_frame, unit, resolution)
    if out is not None:
        refuse_existing(out)
    elif wanted_form != ProductForm():
        raise UsageError("these options are for a file, and none is written", hint="-o FILE")
    most = None if everything else MAX_REFUSALS
    with rehashing(strict), _open(store, dry_run) as opened:
        recording = open_recording(*paths)
        try:
            found = answer(
                _request(kind, recording, asked), recording, opened, mission=mission, dry_run=dry_run,
                preferences=load_preferences(preferences) if preferences else None,
                check=check, policy=load_policy(policy) if policy else None,
            )  # fmt: skip
        except NoPlanError as error:
            error.why = error.plan.refusals(most)
            raise
        if out is not None and found.product is not None:
            from transect.orchestrator.conversion import convert

            content = opened.content(found.product.id)
            write_bytes(out, convert(found.product, content, wanted_form, recording.frames))
    if as_json:
        _show_json(found)
    else:
        _show(found, store, most)
    if found.not_met:
        click.echo(f"BAD: {found.not_met}; computing it again would give the same result", err=True)
        return ExitCode.BAD_VERDICT
    if found.product is None or found.product.score != 0:
        return 0
    run = next(iter(found.product.provenance.parents), found.product.id)
    hint = f"transect products show {store} {run[:12]}  explains why"
    click.echo(f"BAD: the run that computed it reports that it is not trustworthy; {hint}", err=True)
    return ExitCode.BAD_VERDICT


@contextmanager
def _open(store: str, dry_run: bool) -> Generator[ProductStore]:
    """Open a store; a dry run does not create it."""
    from transect.products import open_store

    with TemporaryDirectory() as folder:
        is_new = "://" not in store and not Path(store).exists()
        with open_store(Path(folder) / "empty.gpkg" if dry_run and is_new else store) as opened:
            yield opened


def _request(kind: str, recording: Recording, asked: dict[str, Any]) -> ProductRequest:
    from transect.base.clocks import resolve
    from transect.errors import UsageError
    from transect.orchestrator import ProductRequest

    from .products import parse_area
    from .shared.recordings import cut_times

    start, end = asked["start"], asked["end"]
    time = None
    if start is not None or end is not None:
        if recording.span is None or recording.clock == "index":
            raise UsageError(
                f"{recording.name} has no times, so no part of it can be requested",
                why="none of its streams has timestamps",
                hint="leave --from and --to out",
            )
        cut_times(recording, start, end)
        first, last = recording.span
        begin = first if start is None else resolve(start, first, recording.clock)
        time = begin, last + 1 if end is None else resolve(end, first, recording.clock)
    area = parse_area(asked["area"], asked["crs"])
    return ProductRequest(kind, time, area, asked["frame"], asked["max_age"], asked["min_quality"])


def _show(found: Answer, store: str, most: int | None) -> None:
    from .products import show_products

    for refusal in found.refused:
        show_text(f"not used from the store: {refusal.what}: {refusal.why}")
    if found.plan is None:
        click.echo(f"in {store}:")
    else:
        click.echo(found.plan.text(most))
    if found.product is not None:
        show_products([found.product])


def _show_json(found: Answer) -> None:
    plan = found.plan
    results = plan.fallbacks.results if plan and plan.fallbacks else None
    refused = [*found.refused, *(plan.refused if plan else ())]
    show_json(
        {
            "product": found.product.id if found.product else None,
            "not_met": found.not_met,
            "stored": plan is None,
            "steps": plan.steps() if plan else [],
            "switches": [each.to_dict() for each in results.switches] if results else [],
            "suspect": [vars(each) for each in results.suspect] if results else [],
            "agreement": list(results.agreement) if results else [],
            "refused": [vars(each) for each in refused],
        }
    )
