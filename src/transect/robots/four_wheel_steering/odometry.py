"""Four-wheel-steer odometry: the motion of the platform that fits its four wheels best.

Every wheel gives two equations, Kelly and Seegmiller's velocity of its contact point along and across the
wheel: along, it is what the encoder says; across, it is zero. Eight equations for three unknowns are solved
by weighted least squares; `geometry.planar` puts the motions together along arcs of circles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.errors import GeometryError
from transect.geometry.array_checks import floats

from .geometry import FourWheelGeometry
from .wheels import WHEELS, directions, levers

LEAST_WHEELS = 2
"""Fewer wheels do not tell a turn from a slide."""


class BodyMotion(NamedTuple):
    """What the platform did, as a twist in Platform."""

    # (..., 3), x, y and turn: m, m, rad of travelled metres; m/s, m/s, rad/s of speeds. NaN with too few
    # wheels.
    motion: Floats
    # along, across: (..., 4), what remains of each wheel's two equations, in m or m/s: the wheels
    # contradict each other
    along: Floats
    across: Floats


def body_motion(
    travel: ArrayLike,
    steering: ArrayLike,
    geometry: FourWheelGeometry,
    steered: ArrayLike = 0.0,
    weights: ArrayLike = 1.0,
    across_weight: float = 1.0,
) -> BodyMotion:
    """Motion of the platform from that of its wheels.

    Parameters
    ----------
    travel : (..., 4)
        How far each wheel rolled, m, or how fast it rolls, m/s. A wheel with a NaN is left out.
    steering : (..., 4)
        Steering angles, rad.
    steered : (..., 4)
        Change of the steering angles meanwhile, rad (or rad/s): a wheel stands `swivel_length` beside its
        axis and rolls when it is turned.
    weights : (4,) or (..., 4)
        How much each wheel is trusted.
    across_weight : float
        How much a wheel is trusted not to slide sideways, against rolling as it says; greater than 0.
    """
    if not across_weight > 0:
        raise GeometryError(f"expected across_weight greater than 0, got {across_weight}")
    rolled, phi = np.broadcast_arrays(
        floats("travel", travel, (..., WHEELS)), floats("steering", steering, (..., WHEELS))
    )
    used = np.isfinite(rolled) & np.isfinite(phi)
    phi, rolled = np.where(used, phi, 0.0), np.where(used, rolled, 0.0)
    known = np.broadcast_to(np.asarray(weights, dtype=np.float64), rolled.shape) * used
    rows, goal = _equations(rolled, phi, np.nan_to_num(np.broadcast_to(steered, rolled.shape)), geometry)
    weight = np.stack([known, across_weight * known], axis=-1)
    normal = np.einsum("...we,...wei,...wej->...ij", weight, rows, rows)
    right = np.einsum("...we,...wei,...we->...i", weight, rows, goal)
    enough = np.count_nonzero(known > 0, axis=-1) >= LEAST_WHEELS
    solvable = np.where(enough[..., None, None], normal, np.eye(3))
    motion = np.linalg.solve(solvable, right[..., None])[..., 0]
    motion = np.where(enough[..., None], motion, np.nan)
    left = np.where(used[..., None], np.einsum("...wei,...i->...we", rows, motion) - goal, np.nan)
    return BodyMotion(motion, left[..., 0], left[..., 1])


def _equations(
    rolled: Floats, phi: Floats, steered: Floats, geometry: FourWheelGeometry
) -> tuple[Floats, Floats]:
    """Rows (..., 4, 2, 3) of each wheel, along and across, and what they should give (..., 4, 2)."""
    turning, swivelling = levers(phi, geometry)
    axes = np.stack(directions(phi), axis=-2)  # (..., wheel, along or across, xy)
    rows = np.concatenate([axes, np.einsum("...wej,...wj->...we", axes, turning)[..., None]], axis=-1)
    by_steering = np.einsum("...wej,...wj->...we", axes, swivelling) * steered[..., None]
    return rows, np.stack([rolled, np.zeros_like(rolled)], axis=-1) - by_steering
