"""What is kept of a stereo pair to know its place again: corners that both cameras saw, and their looks.

Corners are upright and of one size, as a robot on wheels sees them again: from nearby, and level. What they
look like are BEBLID's 256 bits (Suarez et al., 2020).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.base.arrays import Bytes, Floats, Ints
from transect.geometry import robust
from transect.types.places import Observation

from ..odometry.stereo_odometer import FARTHEST
from ..odometry.stereo_rig import StereoRig
from ..odometry.stereo_tracking import coarse_disparities, match_right
from ..odometry.stereo_tracking_methods import LARGEST, GrayPair

BITS = 256
"""Of a descriptor."""
QUALITY, APART = 0.002, 7
"""Weakest corner against the strongest; and pixels between two of them."""
DIAMETER, SCALE = 7.0, 5.0
"""Pixels of a corner, and how many times as large what is described around it is."""


def see(pair: GrayPair, rig: StereoRig, features: int) -> Observation:
    """Return what a pair shows.

    Parameters
    ----------
    pair : GrayPair
        Rectified gray images.
    rig : StereoRig
    features : int
        Largest number of corners.

    Returns
    -------
    mapping
        `points` (n, 3) float32: metres in the left camera; `descriptors` (n, 32) uint8; `camera` (1, 5): fx,
        fy, cx, cy in pixels and the baseline in metres.
    """
    corners = _find_corners(pair, features)
    disparity = coarse_disparities(pair.left, pair.right, corners, LARGEST * rig.width)
    usual = robust.median(np.append(disparity, 0.1 * LARGEST * rig.width))
    guess = np.where(np.isnan(disparity), usual, disparity)
    column, found = match_right(pair.left, pair.right, corners, guess)
    found &= corners[:, 0] - column - rig.offset > rig.fx / FARTHEST
    kept, descriptors = _describe(pair.left, corners[found])
    points = rig.points(np.column_stack([corners, column])[found][kept])
    camera = np.array([[rig.fx, rig.fy, rig.cx, rig.cy, rig.baseline]])
    return {"points": points.astype(np.float32), "descriptors": descriptors, "camera": camera}


def stereo_camera(view: Observation) -> StereoRig:
    """Return the pair that took a view; its size in pixels is not kept."""
    fx, fy, cx, cy, baseline = view["camera"][0].tolist()
    return StereoRig(fx, fy, cx, cy, baseline, 0, 0)


def pixels_of(view: Observation) -> Floats:
    """Return left column, left row, right column (n, 3) of the points, as if principal points were equal."""
    return stereo_camera(view).pixels(view["points"].astype(np.float64))


def median_depth(view: Observation) -> float:
    """Return how far away what is seen is, metres; NaN where nothing is."""
    depth = view["points"][:, 2]
    return float(np.median(depth)) if len(depth) else float("nan")


def _find_corners(pair: GrayPair, features: int) -> Floats:
    """Return the strongest corners (n, 2) of the left image."""
    import cv2

    mask = None if pair.valid is None else pair.valid.astype(np.uint8)
    found: Any = cv2.goodFeaturesToTrack(pair.left, features, QUALITY, APART, mask=mask)
    return np.zeros((0, 2)) if found is None else found.reshape(-1, 2).astype(np.float64)


def _describe(picture: Bytes, corners: Floats) -> tuple[Ints, Bytes]:
    """Return which corners (n, 2) are far enough from the edge to be described, and their descriptors."""
    import cv2

    library = cv2.xfeatures2d
    spots = [cv2.KeyPoint(x, y, DIAMETER, 0.0, 0.0, 0, row) for row, (x, y) in enumerate(corners.tolist())]
    describer: Any = library.BEBLID.create(SCALE, library.BEBLID_SIZE_256_BITS)
    described, words = describer.compute(picture, spots)
    rows = np.array([spot.class_id for spot in described], np.int64)
    return rows, np.zeros((0, BITS // 8), np.uint8) if words is None else words
