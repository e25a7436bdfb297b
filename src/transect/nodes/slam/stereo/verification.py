"""The motion between two views by their points: matched, sampled (PnP), then fitted in both cameras."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.geometry import se3
from transect.nodes.features._pnp import pose_of_most
from transect.nodes.stereo.vo import locate
from transect.types.places import Observation

from ..backend.recognition import Loop
from .views import pixels_of, stereo_camera

ALIKE, CLEAR = 80, 0.9
"""Bits by which two descriptors of one point may differ; and how much nearer it must be than the second."""
CONSENSUS = 3.0
"""Pixels by which a point may miss in a sampled pose."""
LEAST, SHARE = 14, 0.2
"""Points that must agree on the motion, and their share of the matches: views of two places had 6 at most."""
UNSURE = 0.03
"""Of the depth: a motion whose sigma is larger is not verified, as of points that are all far away."""
VIEWS = 2.0
"""Times the variance of pixels: the points of the old view are as noisy as the pixels of the new one."""
FLOOR_SHIFT, FLOOR_TURN = 0.002, 0.001
"""What no number of points makes better, as calibration leaves it: of the depth, and rad."""


def verify_motion(old: Observation, new: Observation) -> Loop | None:
    """Return the motion of the left camera from an old view to a new one; None if no points bear it out."""
    mine, theirs = match(new["descriptors"], old["descriptors"])
    if len(mine) < LEAST:
        return None
    rig = stereo_camera(new)
    points, seen = old["points"][theirs].astype(np.float64), pixels_of(new)[mine]
    start = pose_of_most(points, np.ascontiguousarray(seen[:, :2]), rig.K, CONSENSUS)
    located = None if start is None else locate(points, seen, rig, start)
    if located is None:
        return None
    agree = int(located.inliers.sum())
    depth = float(np.median(points[located.inliers, 2])) if agree else np.inf
    unsure = np.sqrt(np.linalg.eigvalsh(located.covariance[:3, :3])[-1])
    if agree < max(LEAST, SHARE * len(mine)) or unsure > UNSURE * depth:
        return None
    return Loop(se3.invert(located.T_camera_world), _spread(located.covariance, depth), agree / len(mine))


def match(one: NDArray[Any], other: NDArray[Any]) -> tuple[Ints, Ints]:
    """Return rows of descriptors (n, 32) and (m, 32) that are each other's best, and clearly so."""
    if len(one) < 2 or len(other) < 2:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    apart = count_bits(one, other)
    best, back = apart.argmin(axis=1), apart.argmin(axis=0)
    two = np.partition(apart, 1, axis=1)[:, :2]
    good = (back[best] == np.arange(len(one))) & (two[:, 0] <= ALIKE) & (two[:, 0] <= CLEAR * two[:, 1])
    rows = np.flatnonzero(good)
    return rows, best[rows]


def count_bits(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.float32]:
    """Return by how many bits (n, m) descriptors differ: of bits as -1 and 1, by one matrix product."""
    a, b = (2 * np.unpackbits(each, axis=1).astype(np.float32) - 1 for each in (one, other))
    return (a.shape[1] - a @ b.T) / 2


def _spread(covariance: Floats, depth: float) -> Floats:
    """Return the covariance (6, 6) of a motion whose pixels tell one."""
    floor = np.repeat([FLOOR_SHIFT * depth, FLOOR_TURN], 3) ** 2
    return VIEWS * covariance + np.diag(floor)
