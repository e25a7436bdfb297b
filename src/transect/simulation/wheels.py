"""Wheels that roll and slip: from the true motion of a body to what encoders count.

Forward physics. The body is rigid, so the ground moves past each wheel's contact with ``v + omega x r``, and
with the contact's own motion in the body where the wheel is steered. The part along the wheel, and the slip
that the soil costs there, give the speed of its rim; the part across it is sliding. Encoders count rims.

Last axis of speeds and angles: one number for each wheel.
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

MOST_SLIP = 0.9
"""A wheel on any slope still drives a little."""
LEAST_SPEED = 1e-3
"""m/s; the slip angle of a slower wheel means nothing."""


@dataclass(frozen=True)
class Soil:
    """How much wheels lose on a ground. The documents do not say; these are plausible for loose sand."""

    slip: float = 0.03  # slip ratio on level ground
    slip_per_slope: float = 0.5  # more of it per slope (m/m) uphill; downhill the wheel is dragged
    patches: float = 0.02  # deviation of the slip ratio from place to place
    patch_length: float = 1.0  # along how many metres the soil stays alike
    slide: float = 0.15  # angle of drift downhill per slope across, rad (see `driving.drive`)


FIRM = Soil(0.0, 0.0, 0.0, 1.0, 0.0)
"""Wheels roll without slip."""
LOOSE = Soil()


@dataclass(frozen=True, eq=False)
class Rolling:
    """What each of k wheels truly does."""

    steering: Floats  # (n, k), rad to the left
    ground: Floats  # (n, k), speed over the ground along the wheel, m/s
    sliding: Floats  # (n, k), speed over the ground to the wheel's left, m/s
    rim: Floats  # (n, k), speed of the rim, m/s
    # (n, k), ``(|rim| - |ground|) / max(|rim|, |ground|)``: 1 spins on the spot, -1 is dragged; either way
    slip: Floats
    slip_angle: Floats  # (n, k), from the wheel's line to its velocity, rad to the left; NaN at rest


# Steering


def ackermann_steering(way: Course, wheelbase: float) -> Floats:
    """Angle (n, 1) in rad of the one wheel that would stand for both front wheels.

    The course is that of the middle of the rear axle (document 001, 4.6).
    """
    return np.arctan(wheelbase * way.curvature)[:, None]


def four_wheel_steering(way: Course, swivels: ArrayLike) -> Floats:
    """Angles (n, k) in rad at which wheels on steering axes (k, 2) in the body, m, do not scrub.

    Every axle points at the centre of the turn; for a turn on the spot that is the body's origin. In between
    the angles change while the vehicle stands.
    """
    x, y = np.asarray(swivels, dtype=np.float64).T
    bent, crabbed = way.curvature[:, None], way.crab[:, None]
    driving = np.arctan2(np.sin(crabbed) + bent * x, np.cos(crabbed) - bent * y)
    on_the_spot = np.arctan(-x / y)
    return driving + way.spinning[:, None] * (on_the_spot - driving)


def swivelled_contacts(steering: Floats, swivels: ArrayLike, arm: float, height: float) -> Floats:
    """Contacts (n, k, 3) in the body of wheels that stand outwards of their steering axes.

    Parameters
    ----------
    steering : (n, k)
    swivels : (k, 2)
        Steering axes in the body, m.
    arm : float
        From the axis to the wheel, along its axle, m (d of document 000, section 4).
    height : float
        Of the body's origin over the ground, m.
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
        Between samples, where contacts move in the body.
    """
    r = np.asarray(contacts, dtype=np.float64)
    body = rotations.rotate(rotations.conjugate(motion.quaternion), motion.velocity)
    velocity = body[:, None, :] + np.cross(motion.angular_velocity[:, None, :], r)
    if r.ndim == 3 and seconds is not None:
        velocity += derivatives(r, seconds)[0]
    return velocity


def roll(
    velocities: Floats, steering: Floats, slopes: Floats, soil: Soil, seed: int, seconds: float
) -> Rolling:
    """Return what wheels do that move over the ground with velocities (n, k, 3) in the body.

    Parameters
    ----------
    steering : (n, k)
        rad to the left.
    slopes : (n,)
        Of the body's x axis, m/m, positive nose up.
    seed : int
        Of the soil's patches.
    seconds : float
        Between samples.
    """
    c, s = np.cos(steering), np.sin(steering)
    ground = c * velocities[..., 0] + s * velocities[..., 1]
    sliding = c * velocities[..., 1] - s * velocities[..., 0]
    # Uphill is ahead or behind: a wheel that drives backwards up a slope slips as well.
    uphill = slopes[:, None] * c * np.sign(ground)
    slip = soil.slip + soil.slip_per_slope * uphill + _patches(ground, soil, seed, seconds)
    slip = MOST_SLIP * np.tanh(slip / MOST_SLIP)
    rim = np.where(slip > 0, ground / (1 - np.maximum(slip, 0)), ground * (1 + np.minimum(slip, 0)))
    moves = np.hypot(ground, sliding) >= LEAST_SPEED
    angle = np.where(moves, np.arctan2(sliding, np.abs(ground)), np.nan)
    return Rolling(steering, ground, sliding, rim, slip, angle)


def _patches(ground: Floats, soil: Soil, seed: int, seconds: float) -> Floats:
    """Slip (n, k) that differs from place to place: smooth noise along the way of each wheel."""
    if not soil.patches:
        return np.zeros(ground.shape)
    way = np.cumsum(np.abs(ground), axis=0) * seconds / soil.patch_length
    result = np.empty(ground.shape)
    for wheel in range(ground.shape[1]):
        rng = generator(seed, "wheels", "patches", wheel)
        knots = rng.standard_normal(int(way[-1, wheel]) + 2)
        at = way[:, wheel].astype(np.int64)
        u = way[:, wheel] - at
        result[:, wheel] = knots[at] + u * u * (3 - 2 * u) * (knots[at + 1] - knots[at])
    return soil.patches * result


# Encoders


def measure_travel(rim: Floats, seconds: float) -> Floats:
    """Metres (n, k) that rims have gone since the first sample."""
    steps = (rim[1:] + rim[:-1]) * (seconds / 2)
    return np.concatenate([np.zeros((1, rim.shape[1])), np.cumsum(steps, axis=0)])


def drive_ticks(metres: Floats, metres_per_tick: float) -> Floats:
    """Whole ticks that an encoder has passed."""
    return np.floor(metres / metres_per_tick)


def stepper_units(steering: Floats, radians_per_unit: float, straight_ahead: float = 0.0) -> Floats:
    """Whole units of the weeding robot's stepper; `straight_ahead` is what it says when driving straight."""
    return np.rint(steering / radians_per_unit + straight_ahead)
