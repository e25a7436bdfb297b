"""`transect maps align REF MAP`: lay a height map, or a cloud, on another of the same ground."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from ._ground import Asked, bring_together, ground_options


@click.command()
@ground_options(turn=15.0, overlap=0.3)
@click.option(
    "--reach", type=click.FloatRange(0, min_open=True), metavar="M",
    help="How far MAP may be off; by default a quarter of its size.",
)  # fmt: skip
@click.option("--scale", is_flag=True, help="Its lengths may be wrong by a factor, which is found too.")
def command(reach: float | None, scale: bool, **words: Any) -> int:
    """Lay MAP on REF, another map of the same ground.

    Each is a height map (.tif, PATH:STREAM, RUN, RUN:PORT) or a cloud with z up (.ply, .pcd). Found are
    shift, turn and tilt, with standard deviations. DIR gets alignment.json with the whole covariance,
    aligned.tif (MAP on the cells of REF) and difference.png. Exits with 1 if the maps do not overlap, are not
    alike, or if the ground is too flat to tell.
    """
    from transect.algorithms.coregistration.alignment import align_maps
    from transect.evaluation.maps.coregistration import save_alignment, tell_alignment

    find = partial(align_maps, reach=reach, scale=scale)
    return bring_together(Asked(**words), find, save_alignment, tell_alignment, _show)


def _show(told: dict[str, Any]) -> None:
    from ..shared.output import show_table

    show_table(("", ""), _rows(told))


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
