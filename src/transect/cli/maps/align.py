"""`transect maps align REF MAP`: lay a height map, or a cloud, on another of the same ground."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ._ground import ground_options, open_both, parse_place, say_written, show_pairs


@click.command()
@ground_options
@click.option(
    "--reach", type=click.FloatRange(0, min_open=True), metavar="M",
    help="How far MAP may be off; by default a quarter of its size.",
)  # fmt: skip
@click.option(
    "--turn", type=click.FloatRange(0, 180), default=15.0, show_default=True, metavar="DEG",
    help="How far it may be turned about the vertical.",
)  # fmt: skip
@click.option("--scale", is_flag=True, help="Its lengths may be wrong by a factor, which is found too.")
@click.option(
    "--overlap", type=click.FloatRange(0, 1, min_open=True), default=0.3, show_default=True, metavar="X",
    help="Share of MAP that must lie on known ground of REF.",
)  # fmt: skip
def command(
    reference: str,
    moved: str,
    out: Path | None,
    at: str | None,
    cell: float | None,
    no_tilt: bool,
    as_json: bool,
    reach: float | None,
    turn: float,
    scale: bool,
    overlap: float,
) -> int:
    """Lay MAP on REF, another map of the same ground.

    Each is a height map (.tif, PATH:STREAM, RUN, RUN:PORT) or a cloud with z up (.ply, .pcd). Found are
    shift, turn and tilt, with standard deviations. DIR gets alignment.json with the whole covariance,
    aligned.tif (MAP on the cells of REF) and difference.png. Exits with 1 if the maps do not overlap, are not
    alike, or if the ground is too flat to tell.
    """
    from math import radians

    from transect.evaluation.maps.coregistration import save_alignment, tell_alignment
    from transect.nodes.maps.coregistration import align_maps

    from .. import LOSSY
    from .._options import new_folder
    from .._tables import show_json

    folder = None if out is None else new_folder(out)
    first, second, lost = open_both(reference, moved, cell)
    found = align_maps(
        first.grid, second.grid, reach=reach, turn=radians(turn), scale=scale, tilt=not no_tilt,
        at=parse_place(at), overlap=overlap,
    )  # fmt: skip
    if folder is not None:
        say_written(save_alignment(folder, first, second, found))
    told = tell_alignment(found)
    if as_json:
        show_json(told)
    else:
        show_pairs(_rows(told))
    return LOSSY if lost else 0


def _rows(told: dict[str, Any]) -> list[tuple[str, str]]:
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
