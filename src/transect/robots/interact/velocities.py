"""Inverse velocity kinematics: how fast each wheel must roll and slide for the platform to move as it does.

Kelly and Seegmiller, A vector algebra formulation of mobile robot velocity kinematics (2014): the velocity
of a wheel's contact point is ``v + omega x r + steering rate x (r - s)`` with the steering axis at s and the
contact at r. Planar, as in the document: no vertical velocity, suspension at rest, contact below the axle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.geometry._arrays import floats

from .geometry import Geometry
from .wheels import directions, positions


class WheelVelocities(NamedTuple):
    """Velocity of each wheel's contact point over the ground, m/s, both (..., 4).

    Attributes
    ----------
    rolling : (..., 4)
        Along the wheel: the speed of its rim if it does not slip.
    lateral : (..., 4)
        To its left: 0 if it does not slide.
    """

    rolling: Floats
    lateral: Floats


def levers(steering: ArrayLike, geometry: Geometry) -> tuple[Floats, Floats]:
    """Velocity (..., 4, 2) in Platform of each contact point: per rad/s of the platform, and of its steering.

    The first is ``k x r``, the second ``k x (r - s)``, k upwards.
    """
    contacts = positions(steering, geometry)[..., :2]
    return _cross(contacts), _cross(contacts - geometry.swivels)


def contact_velocities(
    twist: ArrayLike, steering: ArrayLike, geometry: Geometry, steering_rate: ArrayLike = 0.0
) -> Floats:
    """Velocities (..., 4, 2) of the contact points in Platform, m/s.

    Parameters
    ----------
    twist : (..., 3)
        Of Platform, in Platform: vx, vy in m/s and wz in rad/s.
    steering : (..., 4)
        rad.
    steering_rate : (..., 4)
        rad/s.
    """
    body = floats("twist", twist, (..., 3))[..., None, :]
    rate = np.asarray(steering_rate, dtype=np.float64)[..., None]
    turning, swivelling = levers(steering, geometry)
    return body[..., :2] + body[..., 2:] * turning + rate * swivelling


def wheel_velocities(
    twist: ArrayLike, steering: ArrayLike, geometry: Geometry, steering_rate: ArrayLike = 0.0
) -> WheelVelocities:
    """How fast each wheel rolls and slides; parameters as of `contact_velocities`."""
    velocity = contact_velocities(twist, steering, geometry, steering_rate)
    along, left = directions(steering)
    return WheelVelocities((velocity * along).sum(axis=-1), (velocity * left).sum(axis=-1))


def _cross(vectors: Floats) -> Floats:
    """``k x v`` for planar vectors (..., 2)."""
    return np.stack([-vectors[..., 1], vectors[..., 0]], axis=-1)
