"""`transect maps`: height maps aligned or located in others; maps of SLAM merged, shown and exported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .shared.groups import SuggestingGroup
from .shared.options import add_options, json_option
from .shared.output import all_option

if TYPE_CHECKING:
    from transect.algorithms.coregistration.localisation import Localisation
    from transect.evaluation.map_reports import MapInput


@click.group(cls=SuggestingGroup)
def command() -> None:
    """Bring maps together, show and export them."""


@dataclass(frozen=True)
class Asked:
    """What was typed for any command on two height maps, by the names of the options."""

    reference: str
    moved: str
    out: Path | None
    at: str | None
    cell: float | None
    turn: float
    no_tilt: bool
    overlap: float
    as_json: bool


def ground_options(turn: float, overlap: float) -> Callable[[Any], Any]:
    """Return the options of `Asked`; `turn` (deg) and `overlap` are those that hold if none is typed."""
    return add_options(
        click.argument("reference", metavar="REF"),
        click.argument("moved", metavar="MAP"),
        click.option(
            "-o", "--out", type=click.Path(path_type=Path), metavar="DIR", help="A new folder for results."
        ),
        click.option("--at", metavar="X,Y", help="Where the middle of MAP may be, in coordinates of REF."),
        click.option(
            "--cell", type=click.FloatRange(0, min_open=True), metavar="M",
            help="Cells of the maps that are made of clouds; by default by their points.",
        ),
        click.option(
            "--turn", type=click.FloatRange(0, 180), default=turn, show_default=True, metavar="DEG",
            help="How far MAP may be turned about the vertical.",
        ),
        click.option("--no-tilt", is_flag=True, help="MAP does not lean."),
        click.option(
            "--overlap", type=click.FloatRange(0, 1, min_open=True), default=overlap, show_default=True,
            metavar="X", help="Share of MAP that must lie on known ground of REF.",
        ),
        all_option,
        json_option,
    )  # fmt: skip


def bring_together(
    asked: Asked,
    find: Callable[..., Any],
    save: Callable[[Path, MapInput, MapInput, Any], list[Path]],
    tell: Callable[[Any], dict[str, Any]],
    show: Callable[[dict[str, Any]], None],
) -> int:
    """Open two maps, find how one lies in the other, write and show it; return the exit code.

    Parameters
    ----------
    find : callable
        Takes both maps, and `at`, `turn`, `tilt` and `overlap`.
    save : callable
        Writes what was found into a new folder, and returns the files.
    tell : callable
        Returns it as plain values, of which `show` prints a table.
    """
    from math import radians

    from . import LOSSY
    from .shared.options import new_folder
    from .shared.output import show_json

    folder = None if asked.out is None else new_folder(asked.out)
    reference, moved, lost = open_both(asked.reference, asked.moved, asked.cell)
    found = find(
        reference.grid, moved.grid, at=parse_place(asked.at), turn=radians(asked.turn),
        tilt=not asked.no_tilt, overlap=asked.overlap,
    )  # fmt: skip
    if folder is not None:
        for path in save(folder, reference, moved, found):
            click.echo(f"wrote {path}", err=True)
    (show_json if asked.as_json else show)(tell(found))
    return LOSSY if lost else 0


def open_both(reference: str, moved: str, cell: float | None) -> tuple[MapInput, MapInput, bool]:
    """Open two maps or clouds; say what could not be read, and return whether there was anything."""
    from transect.evaluation.map_alignment import open_ground

    from .shared.recordings import warn_of_run

    opened = [open_ground(path, cell) for path in (reference, moved)]
    warn_of_run(reference, moved)
    for path, (_, losses) in zip((reference, moved), opened, strict=True):
        if losses:
            click.echo(f"warning: a part of {path} could not be read: {losses[0].where}", err=True)
    return opened[0][0], opened[1][0], any(losses for _, losses in opened)


def parse_place(text: str | None) -> tuple[float, ...] | None:
    """Return x and y of X,Y; None of None."""
    from transect.errors import UsageError

    if text is None:
        return None
    try:
        parts = tuple(float(part) for part in text.split(","))
    except ValueError:
        parts = ()
    if len(parts) != 2:
        raise UsageError(f"--at {text} is not two coordinates", hint="--at 500012.5,4178800")
    return parts


@command.command("align")
@ground_options(turn=15.0, overlap=0.3)
@click.option(
    "--reach", type=click.FloatRange(0, min_open=True), metavar="M",
    help="How far MAP may be off; by default a quarter of its size.",
)  # fmt: skip
@click.option("--scale", is_flag=True, help="Its lengths may be wrong by a factor, which is found too.")
def align_command(reach: float | None, scale: bool, **words: Any) -> int:
    """Lay MAP on REF, another map of the same ground.

    Each is a height map (.tif, PATH:STREAM, RUN, RUN:PORT) or a cloud with z up (.ply, .pcd). Found are
    shift, turn and tilt, with standard deviations. DIR gets alignment.json with the whole covariance,
    aligned.tif (MAP on the cells of REF) and difference.png. Exits with 1 if the maps do not overlap, are not
    alike, or if the ground is too flat to tell.
    """
    from transect.algorithms.coregistration.alignment import align_maps
    from transect.evaluation.map_alignment import save_alignment, tell_alignment

    find = partial(align_maps, search_radius=reach, scale=scale)
    return bring_together(Asked(**words), find, save_alignment, tell_alignment, _show_alignment)


def _show_alignment(told: dict[str, Any]) -> None:
    from .shared.output import show_table

    show_table(("", ""), _alignment_rows(told))


def _alignment_rows(told: dict[str, Any]) -> list[tuple[str, str]]:
    (x, y, z), (sx, sy, sz) = told["shift_m"], told["deviation_shift_m"]
    (roll, pitch), (sr, sp, sh) = told["tilt_deg"], told["deviation_turn_deg"]
    before = told["before_m"]
    found = [
        ("shift x [m]", x, sx),
        ("shift y [m]", y, sy),
        ("shift z [m]", z, sz),
        ("turn [deg]", told["heading_deg"], sh),
        ("tilt about x [deg]", roll, sr),
        ("tilt about y [deg]", pitch, sp),
    ]
    rows = [(name, f"{value:.4f} +- {sigma:.2g}") for name, value, sigma in found if sigma]
    if told["deviation_scale"] is not None:
        rows.append(("scale", f"{told['scale']:.5f} +- {told['deviation_scale']:.2g}"))
    return [
        *rows,
        ("heights differ by [m]", f"{told['residual_m']:.3g}" + (f", before {before:.3g}" if before else "")),
        ("overlap", f"{told['overlap']:.0%}"),
        ("cells [m]", f"{told['cell_m']:.3g}"),
    ]


PLACE_HEADINGS = ("probability", "x", "y", "turn [deg]", "+- x [m]", "+- y [m]", "+- turn", "differ by [m]")


@command.command("locate")
@ground_options(turn=180.0, overlap=0.6)
@click.option(
    "--within", type=click.FloatRange(0, min_open=True), metavar="M",
    help="How far --at may be wrong; by default MAP may be anywhere on REF.",
)  # fmt: skip
def locate_command(within: float | None, **words: Any) -> int:
    """Find where MAP, a rover's own, fits into REF, that of an orbiter or a drone.

    Each is a height map (.tif, PATH:STREAM, RUN, RUN:PORT) or a cloud with z up (.ply, .pcd). Every shift and
    turn is tried; x and y are coordinates of REF at which the middle of MAP may be. DIR gets places.json and
    places.png. Exits with 1 if MAP fits nowhere, or if the ground is too flat to tell.
    """
    from math import inf

    from transect.algorithms.coregistration.localisation import locate_map
    from transect.evaluation.map_alignment import save_localisation, tell_localisation

    find = partial(locate_map, within=inf if within is None else within)

    def save(folder: Path, _: MapInput, moved: MapInput, found: Localisation) -> list[Path]:
        return save_localisation(folder, moved, found)

    return bring_together(Asked(**words), find, save, tell_localisation, _show_places)


def _show_places(told: dict[str, Any]) -> None:
    from .shared.output import show_table

    show_table(PLACE_HEADINGS, [_place_row(each) for each in told["hypotheses"]])


def _place_row(each: dict[str, Any]) -> tuple[str, ...]:
    (x, y), (sx, sy, _) = each["place"], each["deviation_shift_m"]
    return (
        f"{each['probability']:.3f}", f"{x:.8g}", f"{y:.8g}", f"{each['heading_deg']:.2f}", f"{sx:.2g}",
        f"{sy:.2g}", f"{each['deviation_turn_deg'][2]:.2g}", f"{each['residual_m']:.3g}",
    )  # fmt: skip


@command.command("merge")
@click.argument("first", type=click.Path(path_type=Path), metavar="MAP")
@click.argument("second", type=click.Path(path_type=Path), metavar="MAP")
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="A new folder for the map.")
def merge_command(first: Path, second: Path, out: Path) -> int:
    """Bring two maps together by the places that both have: of two days, or of two robots.

    Each is a map of places, or its run; both of LaserSlam, of LidarSlam, or of VisualSlamStereo. The new map
    is in the frame of the first one. Exits with 1 if no place was known again.
    """
    import json

    from transect.algorithms.slam.place_maps import count_shared, merge_maps
    from transect.base.files import refuse_existing, write_text
    from transect.recording.place_maps import FOLDER, MERGED, read_map, write_map

    from .shared.recordings import warn_of_run

    refuse_existing(out)
    one, other = read_map(first), read_map(second)
    failures = warn_of_run(first, second)
    merged = merge_maps(one, other)
    write_map(merged, out / FOLDER)
    if failures:  # those who use the merged map are told, too
        write_text(out / MERGED, json.dumps({"failures": failures}, indent=1) + "\n")
    shared = count_shared(merged, len(one))
    click.echo(f"{len(one)} and {len(other)} places became {len(merged)}; {shared} loops join the two")
    click.echo(f"wrote {out}")
    return 0


CELL_SIZE_M = 0.05
"""Metres: edge of a cell of the grid."""
BEFORE, AFTER = "odometry off [m]", "corrected off [m]"
"""What errors before and after closing are called."""


@command.command("show")
@click.argument("path", type=click.Path(path_type=Path), metavar="MAP")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="PNG, SVG or PDF; without, none is drawn.")
@click.option(
    "--cell", type=click.FloatRange(0.005), default=CELL_SIZE_M, show_default=True, metavar="M",
    help="Edge of a cell of the occupancy grid that is drawn of planar lasers.",
)  # fmt: skip
@json_option
def show_command(path: Path, out: Path | None, cell: float, as_json: bool) -> int:
    """Say what a map of places is made of, and draw it.

    MAP is the folder of a run of a SLAM, or its map. Drawn are what was seen, the way that was driven, each
    session in its colour, loops in green, and those that were doubted in red. Where the run kept its odometry
    the way before closing is drawn too, and the true one if the run was judged by a truth. If the run said
    that its result is bad, the first line says so again.
    """
    show_map(path, out, cell, as_json=as_json)
    return 0


def show_map(
    path: Path, out: Path | None, cell: float = CELL_SIZE_M, *, as_json: bool = False
) -> dict[str, Any]:
    """Print what a map is made of, and draw it if a file is named; return what was printed, by name."""
    import json

    from transect.algorithms.slam.place_maps import describe_map
    from transect.draw.place_maps import draw_map
    from transect.engine.folder import check_run
    from transect.evaluation.runs.loop_closures import find_ways
    from transect.recording.place_maps import digest_of_map, read_map

    from .shared.output import show_table

    places = read_map(path)
    ways = find_ways(path, places)
    checked = check_run(path)
    failures = checked.failures
    facts = {**describe_map(places), "digest": digest_of_map(path)}
    if as_json and failures:
        facts["bad"] = list(failures)
    if as_json and checked.changes:
        facts["changed inputs"] = list(checked.changes)
    for text in () if as_json else failures:
        click.echo(f"BAD: {text}")
    if checked.changes and not as_json:
        click.echo(f"warning: {checked.outdated}", err=True)
    if ways is not None and ways.rmse_m is not None:
        facts[BEFORE], facts[AFTER] = (round(off, 3) for off in ways.rmse_m)
    if as_json:
        click.echo(json.dumps(facts, indent=2))
    else:
        show_table(("map", str(path)), [(name, str(value)) for name, value in facts.items()])
    if out is not None:
        from transect.draw.figures import save_figure

        save_figure(draw_map(places, cell, ways, failed=bool(failures)), out)
        click.echo(f"wrote {out}", err=as_json)
    return facts


@command.command("export")
@click.argument("path", type=click.Path(path_type=Path), metavar="MAP")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), required=True,
    help="NAME.yaml or NAME.png (both are written, as ROS's map_server reads them), or NAME.tif (GeoTIFF).",
)  # fmt: skip
@click.option(
    "--cell",
    type=click.FloatRange(0.005),
    default=0.05,
    show_default=True,
    metavar="M",
    help="Edge of a cell.",
)
def export_command(path: Path, out: Path, cell: float) -> int:
    """Write the occupancy grid of a map that LaserSlam made.

    A GeoTIFF of a map that satellite fixes anchored is in its coordinate system.
    """
    from transect.algorithms.slam.occupancy_grid import build_occupancy_grid
    from transect.algorithms.slam.place_maps import flip_z_up
    from transect.base.files import refuse_existing, write_bytes
    from transect.errors import UsageError
    from transect.products.export import write_map_server
    from transect.recording.place_maps import read_map

    from .shared.recordings import warn_of_run

    suffix = out.suffix.lower()
    if suffix not in (".png", ".yaml", ".tif", ".tiff"):
        raise UsageError(f"{out.name}: a map is exported as .yaml with .png, or as .tif", where=str(out))
    places = flip_z_up(read_map(path, "LaserSlam"))
    warn_of_run(path)
    if suffix in (".png", ".yaml"):
        written = write_map_server(places, out, cell)
    else:
        from transect.formats.geotiff import encode_geotiff

        refuse_existing(out)
        write_bytes(out, encode_geotiff(build_occupancy_grid(places, cell)))
        written = [out]
    click.echo("wrote " + ", ".join(map(str, written)))
    return 0
