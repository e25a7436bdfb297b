"""`transect maps locate REF MAP`: where in a large height map a small one fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ._ground import ground_options, open_both, parse_place, say_written

HEADINGS = ("probability", "x", "y", "turn [deg]", "+- x [m]", "+- y [m]", "+- turn", "differ by [m]")


@click.command()
@ground_options
@click.option(
    "--within", type=click.FloatRange(0, min_open=True), metavar="M",
    help="How far --at may be wrong; by default MAP may be anywhere on REF.",
)  # fmt: skip
@click.option(
    "--turn", type=click.FloatRange(0, 180), default=180.0, show_default=True, metavar="DEG",
    help="How far its heading may be wrong.",
)  # fmt: skip
@click.option(
    "--overlap", type=click.FloatRange(0, 1, min_open=True), default=0.6, show_default=True, metavar="X",
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
    within: float | None,
    turn: float,
    overlap: float,
) -> int:
    """Find where MAP, a rover's own, fits into REF, that of an orbiter or a drone.

    Each is a height map (.tif, PATH:STREAM, RUN, RUN:PORT) or a cloud with z up (.ply, .pcd). Every shift and
    turn is tried; x and y are coordinates of REF at which the middle of MAP may be. DIR gets places.json and
    places.png. Exits with 1 if MAP fits nowhere, or if the ground is too flat to tell.
    """
    from math import inf, radians

    from transect.evaluation.maps.coregistration import save_localisation, tell_localisation
    from transect.nodes.maps.coregistration import locate_map

    from .. import LOSSY
    from .._options import new_folder
    from .._tables import show_json, show_table

    folder = None if out is None else new_folder(out)
    first, second, lost = open_both(reference, moved, cell)
    found = locate_map(
        first.grid, second.grid, at=parse_place(at), within=inf if within is None else within,
        turn=radians(turn), tilt=not no_tilt, overlap=overlap,
    )  # fmt: skip
    if folder is not None:
        say_written(save_localisation(folder, second, found))
    told = tell_localisation(found)
    if as_json:
        show_json(told)
    else:
        show_table(HEADINGS, [_row(each) for each in told["hypotheses"]])
    return LOSSY if lost else 0


def _row(each: dict[str, Any]) -> tuple[str, ...]:
    (x, y), (sx, sy, _) = each["place"], each["deviation_shift_m"]
    return (
        f"{each['probability']:.3f}", f"{x:.8g}", f"{y:.8g}", f"{each['heading_deg']:.2f}", f"{sx:.2g}",
        f"{sy:.2g}", f"{each['deviation_turn_deg'][2]:.2g}", f"{each['residual_m']:.3g}",
    )  # fmt: skip
