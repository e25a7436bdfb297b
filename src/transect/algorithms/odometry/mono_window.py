"""Bundle adjustment of one camera's last keyframes, with the lengths that another odometry gives (gtsam)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.geometry import se3

from .._gtsam import adjust_graph
from .._gtsam import gtsam as library
from .mono_geometry import PIXEL

ROBUST = 2.0
"""Multiples of a pixel's noise from which on an observation loses weight (Huber)."""
LENGTH, STILL = 1.0, 0.003
"""Of a step's length, and metres: hardly anything, because slip is no noise but lasts for metres. How long
steps are is held by the older views, and told by the reference slowly (`rescale`)."""
TILT, TURN = 0.1, 0.02
"""Rad: what wheels in the plane do not know of tilt and turns."""


@dataclass(frozen=True, eq=False)
class View:
    """A picture whose pose is adjusted.

    Attributes
    ----------
    T_world_body, T_body_camera, reference : (4, 4)
        Where it was taken, where the camera was on the body, and where the other odometry had the body.
    ids : (n,) int64
    pixels : (n, 2)
        Of the points seen.
    """

    T_world_body: Floats
    T_body_camera: Floats
    reference: Floats
    ids: Ints
    pixels: Floats

    @property
    def T_world_camera(self) -> Floats:
        """Where the camera was."""
        return self.T_world_body @ self.T_body_camera


def adjust(
    views: Sequence[View], ids: Ints, points: Floats, K: Floats, steps: int
) -> tuple[list[Floats], Floats]:
    """Adjust poses and points so that pixels and the reference's steps fit; the older half of poses stays.

    With the oldest pose alone, nothing but the reference would say how long the steps are, and a slip of the
    last metre would be in all of them.

    Parameters
    ----------
    ids, points : (n,), (n, 3)
        Points of the world in metres; those with NaN, or seen only once, stay.

    Returns
    -------
    poses : list of (4, 4)
        ``T_world_body`` of the views.
    points : (n, 3)
    """
    often = np.array([np.isin(ids, view.ids) for view in views]).sum(axis=0)
    used = np.flatnonzero((often >= 2) & np.isfinite(points).all(axis=1)).tolist()
    graph = library().NonlinearFactorGraph()
    _add_pixels(graph, views, {int(ids[row]): row for row in used}, K)
    _add_steps(graph, views)
    return adjust_graph(graph, [view.T_world_body for view in views], points, used, steps)


def _add_pixels(graph: Any, views: Sequence[View], place: dict[int, int], K: Floats) -> None:
    gtsam = library()
    X, L = gtsam.symbol_shorthand.X, gtsam.symbol_shorthand.L
    noise = gtsam.noiseModel.Robust.Create(
        gtsam.noiseModel.mEstimator.Huber.Create(ROBUST), gtsam.noiseModel.Isotropic.Sigma(2, PIXEL)
    )
    camera = gtsam.Cal3_S2(K[0, 0], K[1, 1], 0.0, K[0, 2], K[1, 2])
    for k, view in enumerate(views):
        mount = gtsam.Pose3(view.T_body_camera)
        for one, pixel in zip(view.ids.tolist(), view.pixels, strict=True):
            if one in place:
                key = L(place[one])
                graph.add(gtsam.GenericProjectionFactorCal3_S2(pixel, noise, X(k), key, camera, mount))


def _add_steps(graph: Any, views: Sequence[View]) -> None:
    gtsam = library()
    X = gtsam.symbol_shorthand.X
    for k in range(1, len(views)):
        step = se3.invert(views[k - 1].reference) @ views[k].reference
        length = LENGTH * float(np.linalg.norm(step[:3, 3])) + STILL
        noise = gtsam.noiseModel.Diagonal.Sigmas(np.array([TILT, TILT, TURN, length, length, length]))
        graph.add(gtsam.BetweenFactorPose3(X(k - 1), X(k), gtsam.Pose3(step), noise))
    for k in range(1, (len(views) + 1) // 2):
        graph.add(gtsam.NonlinearEqualityPose3(X(k), gtsam.Pose3(views[k].T_world_body)))


def shift_by_reference(first: View, second: View, R_first_second: Floats) -> Floats:
    """Return how far (3,) the camera went by the reference, m in the first body's axes.

    The reference may be flat, and its turns wrong: only its translation is taken, and the camera's lever arm
    turned by what was seen, (3, 3) of the body. On the spot, the lever arm alone tells the way.
    """
    moved = (se3.invert(first.reference) @ second.reference)[:3, 3]
    return moved + R_first_second @ second.T_body_camera[:3, 3] - first.T_body_camera[:3, 3]


def rescale(views: Sequence[View], points: Floats, factor: float) -> tuple[list[View], Floats]:
    """Return views and points (n, 3) so many times as far from the last camera, which stays."""
    here = views[-1].T_world_camera[:3, 3]

    def move_away(view: View) -> View:
        T = view.T_world_camera.copy()
        T[:3, 3] = here + factor * (T[:3, 3] - here)
        return replace(view, T_world_body=T @ se3.invert(view.T_body_camera))

    return [move_away(view) for view in views], here + factor * (points - here)
