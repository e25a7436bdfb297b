"""Bundle adjustment of the last keyframes and the points that they share (gtsam)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.nodes._gtsam import adjusted
from transect.nodes._gtsam import gtsam as library

from .camera import Rig

FEWEST = 3
"""Keyframes that must have seen a point: two say little more than its own stereo does."""
SIGMA, ROBUST = 0.5, 2.0
"""Pixels of noise of one observation, and multiples of it from which on it loses weight (Huber)."""


@dataclass(frozen=True, eq=False)
class Keyframe:
    """A pair of pictures whose pose is adjusted.

    Attributes
    ----------
    T_world_camera : (4, 4)
    ids : (n,) int64
        Of the points seen.
    pixels : (n, 3)
        Left column, left row, right column.
    """

    T_world_camera: Floats
    ids: Ints
    pixels: Floats


def adjust(
    frames: Sequence[Keyframe], ids: Ints, points: Floats, rig: Rig, steps: int
) -> tuple[list[Floats], Floats]:
    """Adjust poses and points so that all pixels fit; the oldest pose stays.

    Parameters
    ----------
    ids, points : (n,), (n, 3)
        Points that are known, metres in the world; those seen by fewer than three keyframes stay.
    steps : int
        Of Levenberg and Marquardt's method.

    Returns
    -------
    poses : list of (4, 4)
        ``T_world_camera`` of the keyframes.
    points : (n, 3)
    """
    often = np.array([np.isin(ids, frame.ids) for frame in frames]).sum(axis=0)
    used = np.flatnonzero(often >= FEWEST).tolist()
    graph = library().NonlinearFactorGraph()
    _add_pixels(graph, frames, {int(ids[row]): row for row in used}, rig)
    return adjusted(graph, [frame.T_world_camera for frame in frames], points, used, steps)


def _add_pixels(graph: Any, frames: Sequence[Keyframe], place: dict[int, int], rig: Rig) -> None:
    """Add what the keyframes saw of points; `place` says by id which number a point has."""
    gtsam = library()
    X, L = gtsam.symbol_shorthand.X, gtsam.symbol_shorthand.L
    noise = gtsam.noiseModel.Robust.Create(
        gtsam.noiseModel.mEstimator.Huber.Create(ROBUST), gtsam.noiseModel.Isotropic.Sigma(3, SIGMA)
    )
    camera = gtsam.Cal3_S2Stereo(rig.fx, rig.fy, 0.0, rig.cx, rig.cy, rig.baseline)
    for k, frame in enumerate(frames):
        for one, (left, row, right) in zip(frame.ids.tolist(), frame.pixels.tolist(), strict=True):
            if one in place and not math.isnan(right):
                pixel = gtsam.StereoPoint2(left, right + rig.offset, row)
                graph.add(gtsam.GenericStereoFactor3D(pixel, noise, X(k), L(place[one]), camera))
