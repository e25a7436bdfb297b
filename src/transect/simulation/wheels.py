"""Wheel slip: from the true motion of a body to encoder counts.

The velocity of a wheel's contact point over the ground is ``v + omega x r``, plus its motion in the body if
the wheel is steered. The component along the wheel and the slip ratio on the soil determine the speed of the
rim, which encoders measure; the lateral component is sliding.

The last axis of speeds and angles is the wheel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.geometry import rotations

from .driving import Course
from .motion import Motion, derivatives
from .randomness import generator

MIN_SLIP_ANGLE_SPEED_MPS = 1e-3
"""The slip angle of a slower wheel is not defined."""


@dataclass(frozen=True)
class SoilSlip:
    """Slip of wheels on a soil. It is not documented; the defaults are plausible for loose sand."""

    slip: float = 0.03  # slip ratio on level ground
    slip_per_slope: float = 0.5  # additional slip ratio per slope (m/m) uphill; downhill the wheel is dragged
    patches: float = 0.02  # standard deviation of the spatial variation of the slip ratio
    patch_length: float = 1.0  # correlation length of that variation, m
    slide: float = 0.15  # angle of drift downhill per lateral slope, rad (see `driving.drive`)


FIRM = SoilSlip(0.0, 0.0, 0.0, 1.0, 0.0)
"""Wheels roll without slip."""
LOOSE = SoilSlip()


@dataclass(frozen=True, eq=False)
class RollingWheels:
    """True motion of each of k wheels."""

    steering: Floats  # (n, k), rad to the left
    ground: Floats  # (n, k), speed over the ground along the wheel, m/s
    sliding: Floats  # (n, k), speed over the ground to the wheel's left, m/s
    rim: Floats  # (n, k), speed of the rim, m/s
    # (n, k), ``(|rim| - |ground|) / max(|rim|, |ground|)``: 1 is spinning on the spot, -1 is dragged
    slip: Floats
    slip_angle: Floats  # (n, k), from the wheel's direction to its velocity, rad to the left; NaN at rest


# Steering


def ackermann_steering(path: Course, wheelbase: float) -> Floats:
    """Steering angle (n, 1) in rad of the single front wheel of the equivalent bicycle model.

    The course is that of the centre of the rear axle (Rosario, 4.6).
    """
    return np.arctan(wheelbase * path.curvature)[:, None]


def four_wheel_steering(path: Course, swivels: ArrayLike) -> Floats:
    """Steering angles (n, k) in rad without lateral slip of wheels on steering axes (k, 2) in the body, m.

    Every axle points at the centre of rotation; for a turn on the spot that is the body's origin. In between
    the angles change while the vehicle is at rest.
    """
    x, y = np.asarray(swivels, dtype=np.float64).T
    curvature, crab_angle = path.curvature[:, None], path.crab[:, None]
    driving = np.arctan2(np.sin(crab_angle) + curvature * x, np.cos(crab_angle) - curvature * y)
    on_the_spot = np.arctan(-x / y)
    return driving + path.spinning[:, None] * (on_the_spot - driving)


def swivelled_contacts(steering: Floats, swivels: ArrayLike, arm: float, height: float) -> Floats:
    """Contact points (n, k, 3) in the body of wheels with a lateral offset from their steering axes.

    Parameters
    ----------
    steering : (n, k)
    swivels : (k, 2)
        Steering axes in the body, m.
    arm : float
        Distance from the axis to the wheel, along its axle, m (d of AMEDS, section 4).
    height : float
        Height of the body's origin above the ground, m.
    """
    axes = np.asarray(swivels, dtype=np.float64)
    side = np.sign(axes[:, 1])
    x = axes[:, 0] - side * arm * np.sin(steering)
    y = axes[:, 1] + side * arm * np.cos(steering)
    return np.stack([x, y, np.full(x.shape, -height)], axis=-1)


# Rolling


def ground_velocities(motion: Motion, contacts: ArrayLike, seconds: float | None = None) -> Floats:
    """Velocities (n, k, 3) in the body, m/s, of its contact points over the ground.

    Parameters
    ----------
    motion : Motion
        With n samples.
    contacts : (k, 3) or (n, k, 3)
        In the body, m.
    seconds : float, optional
        Sampling interval, if contacts move in the body.
    """
    r = np.asarray(contacts, dtype=np.float64)
    body = rotations.rotate(rotations.conjugate(motion.quaternion), motion.velocity)
    velocity = body[:, None, :] + np.cross(motion.angular_velocity[:, None, :], r)
    if r.ndim == 3 and seconds is not None:
        velocity += derivatives(r, seconds)[0]
    return velocity


def roll(
    velocities: Floats,
    steering: Floats,
    slopes: Floats,
    soil: SoilSlip,
    seed: int,
    seconds: float,
    max_slip: float = 0.9,
) -> RollingWheels:
    """Return the motion of wheels with velocities (n, k, 3) over the ground in the body.

    Parameters
    ----------
    steering : (n, k)
        rad to the left.
    slopes : (n,)
        Slope of the body's x axis, m/m, positive nose up.
    seed : int
        Seed of the soil's variation.
    seconds : float
        Sampling interval.
    max_slip : float
        The slip ratio saturates at this value on steep slopes.
    """
    c, s = np.cos(steering), np.sin(steering)
    ground = c * velocities[..., 0] + s * velocities[..., 1]
    sliding = c * velocities[..., 1] - s * velocities[..., 0]
    # Uphill is in the direction of motion: a wheel that drives backwards up a slope slips as well.
    uphill = slopes[:, None] * c * np.sign(ground)
    slip = soil.slip + soil.slip_per_slope * uphill + _patches(ground, soil, seed, seconds)
    slip = max_slip * np.tanh(slip / max_slip)
    rim = np.where(slip > 0, ground / (1 - np.maximum(slip, 0)), ground * (1 + np.minimum(slip, 0)))
    moves = np.hypot(ground, sliding) >= MIN_SLIP_ANGLE_SPEED_MPS
    angle = np.where(moves, np.arctan2(sliding, np.abs(ground)), np.nan)
    return RollingWheels(steering, ground, sliding, rim, slip, angle)


def _patches(ground: Floats, soil: SoilSlip, seed: int, seconds: float) -> Floats:
    """Spatial variation (n, k) of the slip ratio: smooth noise along the path of each wheel."""
    if not soil.patches:
        return np.zeros(ground.shape)
    distance = np.cumsum(np.abs(ground), axis=0) * seconds / soil.patch_length
    result = np.empty(ground.shape)
    for wheel in range(ground.shape[1]):
        rng = generator(seed, "wheels", "patches", wheel)
        knots = rng.standard_normal(int(distance[-1, wheel]) + 2)
        at = distance[:, wheel].astype(np.int64)
        u = distance[:, wheel] - at
        result[:, wheel] = knots[at] + u * u * (3 - 2 * u) * (knots[at + 1] - knots[at])
    return soil.patches * result


# Encoders


def measure_travel(rim: Floats, seconds: float) -> Floats:
    """Distance (n, k) travelled by the rims since the first sample, m."""
    steps = (rim[1:] + rim[:-1]) * (seconds / 2)
    return np.concatenate([np.zeros((1, rim.shape[1])), np.cumsum(steps, axis=0)])


def drive_ticks(metres: Floats, metres_per_tick: float) -> Floats:
    """Number of encoder ticks."""
    return np.floor(metres / metres_per_tick)


def stepper_units(steering: Floats, radians_per_unit: float, straight_ahead: float = 0.0) -> Floats:
    """Units of the weeding robot's stepper; `straight_ahead` is its value for driving straight."""
    return np.rint(steering / radians_per_unit + straight_ahead)
