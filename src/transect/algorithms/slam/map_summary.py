"""What a map of keyframes is made of: counts, its extent, the points seen, and the same seen from above."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.types.places import LOOP, PlaceMap

from .pose_graph import DOUBTED, PoseGraph

HALF_TURN = np.diag([1.0, -1.0, -1.0, 1.0])


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


def seen_points(places: PlaceMap) -> Floats:
    """Return the points (n, 3) seen from all keyframes; those of a planar laser lie in its plane."""
    found = [np.zeros((0, 3))]
    for T_map_body, seen in zip(places.poses, places.observations, strict=True):
        points = np.asarray(seen.get("points", np.zeros((0, 2))), np.float64)
        if points.ndim == 2 and points.shape[1] in (2, 3):
            found.append(points @ T_map_body[:3, : points.shape[1]].T + T_map_body[:3, 3])
    return np.concatenate(found)
