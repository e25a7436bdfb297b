"""A map on the cells of another, once it is known where it lies."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats
from transect.geometry.rasters import ELEVATION, Heights, cut_to_known, heights_of
from transect.types import GridMap

from .alignment import Alignment
from .placement import Placement
from .planes import bring_together

STEPS = 4
"""Rounds in which the height of a leaning map and the place that is asked for find each other."""


def lay_map(reference: GridMap, moved: GridMap, found: Alignment) -> GridMap:
    """Return a map where it belongs: its elevation on cells of the reference, cut to where it is known.

    Layer `difference` is its elevation less the reference's, in metres.
    """
    pair = bring_together(reference, moved, placed=True)
    x, y = pair.reference.centres
    heights = sample_placed(pair.moved, found.placement, x, y)
    layers = {
        ELEVATION: heights.astype(np.float32),
        "difference": (heights - heights_of(reference).values).astype(np.float32),
    }
    laid = GridMap(layers, reference.transform, reference.crs, reference.frame, reference.t_ns)
    return cut_to_known(laid, np.isfinite(heights))


def sample_placed(moved: Heights, placement: Placement, x: Floats, y: Floats) -> Floats:
    """Return heights (...) of a placed map at x, y (...) in metres of the plane; NaN beside it."""
    goal = np.stack([x, y], axis=-1) - (placement.middle + placement.shift)[:2]
    up, heights = np.zeros(x.shape), np.full(x.shape, np.nan)
    for _ in range(STEPS):
        offset = np.concatenate([goal, up[..., None]], axis=-1) @ placement.rotation / placement.scale
        heights = moved.at(offset[..., 0] + placement.middle[0], offset[..., 1] + placement.middle[1])
        offset[..., 2] = heights - placement.middle[2]
        up = np.nan_to_num(placement.turn(offset)[..., 2])
    return np.where(np.isfinite(heights), up + (placement.middle + placement.shift)[2], np.nan)
