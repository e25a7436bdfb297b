"""`transect maps`: align and locate height maps; merge, show and export maps of SLAM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .shared.options import SuggestingGroup, add_options, json_option
from .shared.output import all_option

if TYPE_CHECKING:
    from transect.algorithms.coregistration.localisation import Localisation
    from transect.evaluation.map_reports import MapInput


@click.group(cls=SuggestingGroup)
def command() -> None:
    """Align, locate, merge, show and export maps."""


@dataclass(frozen=True)
class HeightMapArguments:
    """The common arguments of commands on two height maps."""

    reference: str
    moved: str
    out: Path | None
    at: str | None
    cell: float | None
    turn: float
    no_tilt: bool
    overlap: float
    as_json: bool


def height_map_options(turn: float, overlap: float) -> Callable[[Any], Any]:
    """Return the options of `HeightMapArguments` with defaults for `turn` (deg) and `overlap`."""
    return add_options(
        click.argument("reference", metavar="REF"),
        click.argument("moved", metavar="MAP"),
        click.option(
            "-o", "--out", type=click.Path(path_type=Path), metavar="DIR", help="A new folder for results."
        ),
        click.option("--at", metavar="X,Y", help="Approximate centre of MAP in coordinates of REF."),
        click.option(
            "--cell", type=click.FloatRange(0, min_open=True), metavar="M",
            help="Cell size of height maps made from clouds; by default from the point density.",
        ),
        click.option(
            "--turn", type=click.FloatRange(0, 180), default=turn, show_default=True, metavar="DEG",
            help="Largest rotation of MAP about the vertical.",
        ),
        click.option("--no-tilt", is_flag=True, help="Assume that MAP is level."),
        click.option(
            "--overlap", type=click.FloatRange(0, 1, min_open=True), default=overlap, show_default=True,
            metavar="X", help="Smallest fraction of MAP that must overlap with known cells of REF.",
        ),
        all_option,
        json_option,
    )  # fmt: skip


def register_maps(
    arguments: HeightMapArguments,
    find: Callable[..., Any],
    save: Callable[[Path, MapInput, MapInput, Any], list[Path]],
    describe: Callable[[Any], dict[str, Any]],
    show: Callable[[dict[str, Any]], None],
) -> int:
    """Open two maps, register one in the other, write and show the result; return the exit code.

    Parameters
    ----------
    find : callable
        Takes both maps, and `at`, `turn`, `tilt` and `overlap`; returns the result.
    save : callable
        Writes the result into a new folder, and returns the files.
    describe : callable
        Returns the result as plain values, which `show` prints as a table.
    """
    from math import radians

    from . import ExitCode
    from .shared.options import new_folder
    from .shared.output import show_json

    folder = None if arguments.out is None else new_folder(arguments.out)
    reference, moved, lost = open_both(arguments.reference, arguments.moved, arguments.cell)
    found = find(
        reference.grid, moved.grid, at=parse_place(arguments.at), turn=radians(arguments.turn),
        tilt=not arguments.no_tilt, overlap=arguments.overlap,
    )  # fmt: skip
    if folder is not None:
        for path in save(folder, reference, moved, found):
            click.echo(f"wrote {path}", err=True)
    (show_json if arguments.as_json else show)(describe(found))
    return ExitCode.DATA_LOST if lost else 0


def open_both(reference: str, moved: str, cell: float | None) -> tuple[MapInput, MapInput, bool]:
    """Open two maps or clouds; warn of data that could not be read, and return whether there were any."""
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
@height_map_options(turn=15.0, overlap=0.3)
@click.option(
    "--reach", type=click.FloatRange(0, min_open=True), metavar="M",
    help="Search radius; by default a quarter of MAP's size.",
)  # fmt: skip
@click.option("--scale", is_flag=True, help="Estimate the scale of MAP, too.")
def align_command(reach: float | None, scale: bool, **words: Any) -> int:
    """Align MAP with REF, another map of the same ground.

    Each is a height map (.tif, PATH:STREAM, RUN, RUN:PORT) or a cloud with z up (.ply, .pcd). Estimates
    shift, rotation and tilt with standard deviations. Writes alignment.json with the covariance, aligned.tif
    (MAP on the cells of REF) and difference.png to DIR. Exits with 1 if the maps do not overlap or do not
    match, or if the ground is too flat.
    """
    from transect.algorithms.coregistration.alignment import align_maps
    from transect.evaluation.map_alignment import alignment_to_dict, save_alignment

    find = partial(align_maps, search_radius=reach, scale=scale)
    return register_maps(
        HeightMapArguments(**words), find, save_alignment, alignment_to_dict, _show_alignment
    )


def _show_alignment(found: dict[str, Any]) -> None:
    from .shared.output import show_table

    show_table(("", ""), _alignment_rows(found))


def _alignment_rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    (x, y, z), (sx, sy, sz) = found["shift_m"], found["deviation_shift_m"]
    (roll, pitch), (sr, sp, sh) = found["tilt_deg"], found["deviation_turn_deg"]
    before = found["before_m"]
    estimates = [
        ("shift x [m]", x, sx),
        ("shift y [m]", y, sy),
        ("shift z [m]", z, sz),
        ("rotation [deg]", found["heading_deg"], sh),
        ("tilt about x [deg]", roll, sr),
        ("tilt about y [deg]", pitch, sp),
    ]
    rows = [(name, f"{value:.4f} +- {sigma:.2g}") for name, value, sigma in estimates if sigma]
    if found["deviation_scale"] is not None:
        rows.append(("scale", f"{found['scale']:.5f} +- {found['deviation_scale']:.2g}"))
    return [
        *rows,
        ("height residual [m]", f"{found['residual_m']:.3g}" + (f", before {before:.3g}" if before else "")),
        ("overlap", f"{found['overlap']:.0%}"),
        ("cell size [m]", f"{found['cell_m']:.3g}"),
    ]


PLACE_HEADINGS = (
    "probability", "x", "y", "rotation [deg]", "+- x [m]", "+- y [m]", "+- rotation", "residual [m]",
)  # fmt: skip


@command.command("locate")
@height_map_options(turn=180.0, overlap=0.6)
@click.option(
    "--within", type=click.FloatRange(0, min_open=True), metavar="M",
    help="Search radius around --at; by default all of REF is searched.",
)  # fmt: skip
def locate_command(within: float | None, **words: Any) -> int:
    """Locate MAP, of a rover, in REF, of an orbiter or a drone.

    Each is a height map (.tif, PATH:STREAM, RUN, RUN:PORT) or a cloud with z up (.ply, .pcd). All shifts and
    rotations are searched; x and y are the candidate positions of the centre of MAP in coordinates of REF.
    Writes places.json and places.png to DIR. Exits with 1 if MAP does not match anywhere, or if the ground is
    too flat.
    """
    from math import inf

    from transect.algorithms.coregistration.localisation import locate_map
    from transect.evaluation.map_alignment import localisation_to_dict, save_localisation

    find = partial(locate_map, within=inf if within is None else within)

    def save(folder: Path, _: MapInput, moved: MapInput, found: Localisation) -> list[Path]:
        return save_localisation(folder, moved, found)

    return register_maps(HeightMapArguments(**words), find, save, localisation_to_dict, _show_places)


def _show_places(found: dict[str, Any]) -> None:
    from .shared.output import show_table

    show_table(PLACE_HEADINGS, [_place_row(each) for each in found["hypotheses"]])


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
    """Merge two maps by loop closures between them, e.g. of two days or two robots.

    Each is a map of keyframes, or its run; both of LaserSlam, of LidarSlam, or of VisualSlamStereo. The new
    map is in the frame of the first one. Exits with 1 if no loop closure was found.
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
    if failures:  # passed on to users of the merged map
        write_text(out / MERGED, json.dumps({"failures": failures}, indent=1) + "\n")
    shared = count_shared(merged, len(one))
    click.echo(
        f"merged {len(one)} and {len(other)} keyframes into {len(merged)}, with "
        f"{shared} loop closures between both"
    )
    click.echo(f"wrote {out}")
    return 0


CELL_SIZE_M = 0.05
ODOMETRY_RMSE, CORRECTED_RMSE = "RMSE of odometry [m]", "RMSE with loop closures [m]"
"""Names of the errors without and with loop closures."""


@command.command("show")
@click.argument("path", type=click.Path(path_type=Path), metavar="MAP")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Draw the map: PNG, SVG or PDF.")
@click.option(
    "--cell", type=click.FloatRange(0.005), default=CELL_SIZE_M, show_default=True, metavar="M",
    help="Cell size of the drawn occupancy grid (planar lasers).",
)  # fmt: skip
@json_option
def show_command(path: Path, out: Path | None, cell: float, as_json: bool) -> int:
    """Show the contents of a map of keyframes, and draw it.

    MAP is the folder of a run of a SLAM, or its map. The figure shows the observed points or walls, the
    trajectory of each session, loop closures in green, and rejected ones in red; also the trajectory by
    odometry if the run kept it, and the ground truth if the run was evaluated. A warning of the run that its
    result is bad is repeated in the first line.
    """
    show_map(path, out, cell, as_json=as_json)
    return 0


def show_map(
    path: Path, out: Path | None, cell: float = CELL_SIZE_M, *, as_json: bool = False
) -> dict[str, Any]:
    """Print the contents of a map, and draw it if a file is named; return the printed values by name."""
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
        facts[ODOMETRY_RMSE], facts[CORRECTED_RMSE] = (round(rmse, 3) for rmse in ways.rmse_m)
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
    help="NAME.yaml or NAME.png (both are written, for the ROS map_server), or NAME.tif (GeoTIFF).",
)  # fmt: skip
@click.option(
    "--cell",
    type=click.FloatRange(0.005),
    default=0.05,
    show_default=True,
    metavar="M",
    help="Cell size.",
)
def export_command(path: Path, out: Path, cell: float) -> int:
    """Write the occupancy grid of a map by LaserSlam.

    The GeoTIFF of a map that is anchored by GNSS fixes is georeferenced.
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
