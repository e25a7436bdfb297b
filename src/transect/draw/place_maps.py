"""Pictures of maps of keyframes: what was seen, the path, and its loops."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from transect.algorithms.slam.occupancy_grid import gray_image, occupancy_grid
from transect.algorithms.slam.place_maps import flip_z_up, format_loop_count, is_z_down, map_points
from transect.algorithms.slam.pose_graph import REJECTED
from transect.base.arrays import Ints
from transect.draw.places import Drawn, Ways, draw_places
from transect.types.places import LOOP, PlaceMap

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_map(
    places: PlaceMap, cell: float = 0.05, ways: Ways | None = None, *, failed: bool = False
) -> Figure:
    """Draw a map from above, where they are known with the ways before its loops were closed and in truth.

    The title of one that is a failed result says that it is not to be trusted.
    """
    if is_z_down(places) and ways is not None:
        ways = replace(ways, before=ways.before * (1.0, -1.0), truth=ways.truth * (1.0, -1.0))
    places = flip_z_up(places)
    loops = sum(what == LOOP for what in places.edges.what)
    title = f"{places.kind}: {len(places)} places, {places.length:.0f} m, {format_loop_count(loops)}"
    title = f"BAD, do not trust it: {title}" if failed else title
    return draw_places([(title, replace(drawn_of(places, cell), ways=ways))])


def drawn_of(places: PlaceMap, cell: float) -> Drawn:
    """Return what is drawn of a map: the grid of a planar laser, points of other sensors."""
    drawn = Drawn(
        places.poses[:, :2, 3], places.session, _pairs(places, LOOP), _pairs(places, REJECTED),
        map_points(places)[:, :2],
    )  # fmt: skip
    if places.kind != "LaserSlam":
        return drawn
    grid = occupancy_grid(replace(places, anchor=None), cell)
    a, _, left, _, _, top = grid.transform
    rows, columns = grid.layers["occupancy"].shape
    return replace(drawn, image=gray_image(grid), extent=(left, left + a * columns, top - a * rows, top))


def _pairs(places: PlaceMap, what: str) -> Ints:
    chosen = np.array([each == what for each in places.edges.what], bool)
    return np.stack([places.edges.a[chosen], places.edges.b[chosen]], axis=-1).astype(np.int64)
