"""A map of places in words and as a picture."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.algorithms.slam.pose_graph import DOUBTED, PoseGraph
from transect.base.arrays import Floats, Ints
from transect.types.places import LOOP, PlaceMap

HALF_TURN = np.diag([1.0, -1.0, -1.0, 1.0])

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from transect.draw.places import Drawn, Ways


def describe_places(places: PlaceMap) -> dict[str, Any]:
    """Return what a map is made of, as plain values."""
    sizes = [sum(values.nbytes for values in seen.values()) for seen in places.observations]
    return {
        "kind": places.kind,
        "frame": places.frame,
        "anchor": places.anchor.crs if places.anchor else "none",
        "places": len(places),
        "length [m]": round(places.length, 1),
        "sessions": len(set(places.session.tolist())),
        "parts": len(PoseGraph.of(places).firsts()),
        "loops": sum(what == LOOP for what in places.edges.what),
        "doubted": sum(what == DOUBTED for what in places.edges.what),
        "MB seen": round(sum(sizes) / 1e6, 2),
        "MB per 100 m": round(sum(sizes) / 1e4 / max(places.length, 1.0), 2),
    }


def count_loops(count: int) -> str:
    """Return a number of loops in words."""
    return f"{count} loop" if count == 1 else f"{count} loops"


def lies_below(places: PlaceMap) -> bool:
    """Tell whether z of a map points down, as z of its body does; one that fixes anchored has z up."""
    return places.anchor is None and bool(places.calibration.get("z_down", False))


def raise_map(places: PlaceMap) -> PlaceMap:
    """Return a map as it is seen from above: if its z points down, half a turn about x."""
    return replace(places, poses=HALF_TURN @ places.poses) if lies_below(places) else places


def draw_map(
    places: PlaceMap, cell: float = 0.05, ways: Ways | None = None, *, failed: bool = False
) -> Figure:
    """Draw a map from above, where they are known with the ways before its loops were closed and in truth.

    The title of one that is a failed result says that it is not to be trusted.
    """
    from transect.draw.places import draw_places

    if lies_below(places) and ways is not None:
        ways = replace(ways, before=ways.before * (1.0, -1.0), truth=ways.truth * (1.0, -1.0))
    places = raise_map(places)
    loops = sum(what == LOOP for what in places.edges.what)
    title = f"{places.kind}: {len(places)} places, {places.length:.0f} m, {count_loops(loops)}"
    title = f"BAD, do not trust it: {title}" if failed else title
    return draw_places([(title, replace(drawn_of(places, cell), ways=ways))])


def drawn_of(places: PlaceMap, cell: float) -> Drawn:
    """Return what is drawn of a map: the grid of a planar laser, points of other sensors."""
    from transect.draw.places import Drawn

    drawn = Drawn(
        places.poses[:, :2, 3], places.session, _pairs(places, LOOP), _pairs(places, DOUBTED),
        seen_points(places)[:, :2],
    )  # fmt: skip
    if places.kind != "LaserSlam":
        return drawn
    from transect.algorithms.slam.occupancy_grid import occupancy_of, pixels_of

    grid = occupancy_of(replace(places, anchor=None), cell)
    a, _, left, _, _, top = grid.transform
    rows, columns = grid.layers["occupancy"].shape
    return replace(drawn, image=pixels_of(grid), extent=(left, left + a * columns, top - a * rows, top))


def _pairs(places: PlaceMap, what: str) -> Ints:
    chosen = np.array([each == what for each in places.edges.what], bool)
    return np.stack([places.edges.a[chosen], places.edges.b[chosen]], axis=-1).astype(np.int64)


def seen_points(places: PlaceMap) -> Floats:
    """Return the points (n, 3) seen from all keyframes; those of a planar laser lie in its plane."""
    found = [np.zeros((0, 3))]
    for T_map_body, seen in zip(places.poses, places.observations, strict=True):
        points = np.asarray(seen.get("points", np.zeros((0, 2))), np.float64)
        if points.ndim == 2 and points.shape[1] in (2, 3):
            found.append(points @ T_map_body[:3, : points.shape[1]].T + T_map_body[:3, 3])
    return np.concatenate(found)
