"""Ackermann odometry at the rear axle (document 001, 4.6): wheels and steering to a planar path.

Two forms. The paper's takes the steering angle as it is, |delta| <= 19 degrees; the published scripts
multiply it with 0.95 first, which makes 19 degrees of the stepper's 20.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.errors import GeometryError

from .geometry import Geometry

Form = Literal["paper", "scripts"]


def motion(wheels: ArrayLike, steering: ArrayLike, geometry: Geometry, form: Form) -> tuple[Floats, Floats]:
    """Forward speed (...) in m/s and turn rate (...) in rad/s to the left, of base_link.

    Parameters
    ----------
    wheels : (..., 2) array
        Rim speeds of the left and the right wheel in m/s, negative backwards: what the paper calls
        direction * vel.
    steering : (...) array
        Rad to the left.
    form : {"paper", "scripts"}
        `tan(delta)` of a delta within the limit, or `tan(0.95 steer)`.
    """
    if form not in get_args(Form):
        raise GeometryError(
            f"unknown form of the odometry {form!r}", hint=f"one of {', '.join(get_args(Form))}"
        )
    speed = np.mean(np.asarray(wheels, dtype=np.float64), axis=-1)
    angle = np.asarray(steering, dtype=np.float64)
    limit = geometry.steering_limit
    delta = np.clip(angle, -limit, limit) if form == "paper" else geometry.steering_scale * angle
    return speed, speed * np.tan(delta) / geometry.wheelbase


def path_headings(positions: ArrayLike, least_step: float = 1e-6) -> Floats:
    """Headings (n,) in rad, unwrapped, of an odometry whose positions (n, 2) or (n, 3) alone are known.

    The rear axle moves along the heading, forwards or backwards: the path's direction gives it up to half a
    turn, and the odometry begins with heading 0. Between two steps the robot cannot turn by 90 degrees, so
    where the direction does, it has changed gear. While it stands the heading stays.

    Parameters
    ----------
    least_step : float
        Metres; shorter steps have no direction.
    """
    p = np.asarray(positions, dtype=np.float64)
    steps = np.diff(p[:, :2], axis=0)
    moving = np.flatnonzero(np.hypot(*steps.T) > least_step)
    if not len(moving):
        return np.zeros(len(p))
    direction = np.arctan2(*steps[moving].T[::-1])
    gear = np.cumprod(np.where(np.cos(np.diff(direction, prepend=0.0)) < 0, -1.0, 1.0))
    heading = np.unwrap(np.concatenate([[0.0], direction + np.pi * (gear < 0)]))
    return heading[np.searchsorted(moving, np.arange(len(p)), side="right")]
