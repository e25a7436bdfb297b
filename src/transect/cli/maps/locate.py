"""`transect maps locate REF MAP`: where in a large height map a small one fits."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ._ground import Asked, bring_together, ground_options

if TYPE_CHECKING:
    from transect.algorithms.coregistration.localisation import Localisation
    from transect.evaluation.maps.report import MapInput

HEADINGS = ("probability", "x", "y", "turn [deg]", "+- x [m]", "+- y [m]", "+- turn", "differ by [m]")


@click.command()
@ground_options(turn=180.0, overlap=0.6)
@click.option(
    "--within", type=click.FloatRange(0, min_open=True), metavar="M",
    help="How far --at may be wrong; by default MAP may be anywhere on REF.",
)  # fmt: skip
def command(within: float | None, **words: Any) -> int:
    """Find where MAP, a rover's own, fits into REF, that of an orbiter or a drone.

    Each is a height map (.tif, PATH:STREAM, RUN, RUN:PORT) or a cloud with z up (.ply, .pcd). Every shift and
    turn is tried; x and y are coordinates of REF at which the middle of MAP may be. DIR gets places.json and
    places.png. Exits with 1 if MAP fits nowhere, or if the ground is too flat to tell.
    """
    from math import inf

    from transect.algorithms.coregistration.localisation import locate_map
    from transect.evaluation.maps.coregistration import save_localisation, tell_localisation

    find = partial(locate_map, within=inf if within is None else within)

    def save(folder: Path, _: MapInput, moved: MapInput, found: Localisation) -> list[Path]:
        return save_localisation(folder, moved, found)

    return bring_together(Asked(**words), find, save, tell_localisation, _show)


def _show(told: dict[str, Any]) -> None:
    from ..shared.output import show_table

    show_table(HEADINGS, [_row(each) for each in told["hypotheses"]])


def _row(each: dict[str, Any]) -> tuple[str, ...]:
    (x, y), (sx, sy, _) = each["place"], each["deviation_shift_m"]
    return (
        f"{each['probability']:.3f}", f"{x:.8g}", f"{y:.8g}", f"{each['heading_deg']:.2f}", f"{sx:.2g}",
        f"{sy:.2g}", f"{each['deviation_turn_deg'][2]:.2g}", f"{each['residual_m']:.3g}",
    )  # fmt: skip
