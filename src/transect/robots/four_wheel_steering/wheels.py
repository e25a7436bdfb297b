"""Wheels: encoder ticks to angles and back, and where each wheel is (document 000, section 4, and errata).

The last axis of every array has one number for each wheel: 1 front left, 2 rear left, 3 rear right, 4 front
right. Platform is x forward, y left, z up; a positive steering angle turns a wheel to the left, a positive
drive angle rolls it forward. The suspension is not measured and taken at rest.

Velocities are those of Kelly and Seegmiller, A vector algebra formulation of mobile robot velocity kinematics
(2014): that of a wheel's contact point is ``v + omega x r + steering rate x (r - s)`` with the steering axis
at s and the contact at r. Planar, as in the document: no vertical velocity, contact below the axle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.geometry import robust, rotations, se3
from transect.geometry.array_checks import floats

from .geometry import FourWheelGeometry

WHEELS = 4


# Ticks and angles


def drive_angles(ticks: ArrayLike, geometry: FourWheelGeometry) -> Floats:
    """Drive angles psi (..., 4) in rad of tick offsets (..., 4): AMEDS eq. 4."""
    return _wheels("drive ticks", ticks) * (2 * np.pi / geometry.drive_ticks_per_turn)


def drive_ticks(angles: ArrayLike, geometry: FourWheelGeometry) -> Floats:
    """Whole ticks (..., 4) nearest to drive angles (..., 4) in rad: within half a tick, 0.006 degrees."""
    return np.rint(_wheels("drive angles", angles) * (geometry.drive_ticks_per_turn / (2 * np.pi)))


def steer_angles(ticks: ArrayLike, geometry: FourWheelGeometry) -> Floats:
    """Steering angles phi (..., 4) in rad of tick offsets (..., 4).

    AMEDS eq. 5 with the minus that the print lost (see errata), so that no offset is straight ahead.
    """
    g = geometry
    rack = g.polarity * _wheels("steer ticks", ticks) / g.steer_ticks_per_metre
    return g.angle_at_rest + (rack - (g.rack_at_rest + g.rack_offset)) / g.rack_per_radian


def steer_ticks(angles: ArrayLike, geometry: FourWheelGeometry) -> Floats:
    """Whole ticks (..., 4) nearest to steering angles (..., 4) in rad: within half a tick, 0.0006 degrees."""
    g = geometry
    rack = (_wheels("steering angles", angles) - g.angle_at_rest) * g.rack_per_radian
    # + 0.0 makes 0 of the -0 that a polarity of -1 leaves.
    return np.rint(g.polarity * (rack + g.rack_at_rest + g.rack_offset) * g.steer_ticks_per_metre) + 0.0


# Poses


def directions(steering: ArrayLike) -> tuple[Floats, Floats]:
    """Unit vectors (..., 4, 2) in Platform along which each wheel rolls, and to the left of that."""
    phi = _wheels("steering angles", steering)
    c, s = np.cos(phi), np.sin(phi)
    return np.stack([c, s], axis=-1), np.stack([-s, c], axis=-1)


def positions(steering: ArrayLike, geometry: FourWheelGeometry) -> Floats:
    """Wheel centres (..., 4, 3) in Platform, m, at steering angles (..., 4) in rad; each with its own phi."""
    _, left = directions(steering)
    outward = geometry.sides[:, None] * left
    plane = geometry.swivels + geometry.swivel_length * outward
    height = np.full((*plane.shape[:-1], 1), -geometry.wheel_height)
    return np.concatenate([plane, height], axis=-1)


def euler_angles(steering: ArrayLike, drive: ArrayLike, geometry: FourWheelGeometry) -> Floats:
    """Gamma and beta (..., 4, 2) in rad of AMEDS Table 5 as the errata read it: ``R = Rz(gamma) Rx(beta)``.

    Left wheels ``Rz(phi + 90) Rx(psi)``, right wheels ``Rz(phi - 90) Rx(-psi)``; alpha is 0.
    """
    phi, psi = np.broadcast_arrays(_wheels("steering angles", steering), _wheels("drive angles", drive))
    return np.stack([phi + geometry.sides * np.pi / 2, geometry.sides * psi], axis=-1)


def rotation_matrices(steering: ArrayLike, drive: ArrayLike, geometry: FourWheelGeometry) -> Floats:
    """``R_Platform_Wheel`` (..., 4, 3, 3) at steering and drive angles (..., 4): x is the axle, outwards."""
    return rotations.matrix_from_euler("ZX", euler_angles(steering, drive, geometry))


def poses(steering: ArrayLike, drive: ArrayLike, geometry: FourWheelGeometry) -> Floats:
    """``T_Platform_Wheel`` (..., 4, 4, 4) at steering and drive angles (..., 4) in rad."""
    return se3.from_matrix(rotation_matrices(steering, drive, geometry), positions(steering, geometry))


# The size of a wheel


class TickLength(NamedTuple):
    """How far a wheel rolls in one tick of its drive motor."""

    metres: float
    each: Floats  # (4,), the same for every wheel alone; NaN where it hardly rolled
    spread: float  # deviation (nmad) of single steps from it, relative
    steps: int  # how many steps between samples were used

    def wheel_radius(self, geometry: FourWheelGeometry) -> float:
        """Radius in m at which one turn is that many metres."""
        return self.metres * geometry.drive_ticks_per_turn / (2 * np.pi)


def tick_length(
    t_ns: ArrayLike, ticks: ArrayLike, velocity: ArrayLike, least_speed: float = 0.05
) -> TickLength:
    """Estimate the metres per drive tick from ticks and speeds that were recorded together.

    The document gives no wheel radius (H is the height of the axle under Platform, not over the ground). The
    drive motors report both ticks and m/s, so their ratio is the number with which the rover's own software
    made m/s of ticks. That is not the rolling radius on loose ground. The median of the steps: nearly half of
    them may be wild, in ticks or in speed.

    Parameters
    ----------
    t_ns : (n,)
        Sample times, ns.
    ticks, velocity : (n, 4)
        Drive motor positions, and speeds in m/s.
    least_speed : float
        Slower steps are left out, m/s.
    """
    times = np.asarray(t_ns, dtype=np.int64)
    counts, speeds = floats("ticks", ticks, ("n", WHEELS)), floats("velocity", velocity, ("n", WHEELS))
    seconds = (np.diff(times) / NS)[:, None]
    travel, turned = seconds * (speeds[1:] + speeds[:-1]) / 2, np.diff(counts, axis=0)
    used = (np.abs(travel) >= least_speed * seconds) & (seconds > 0) & (turned != 0)
    ratio = np.divide(travel, turned, out=np.full_like(travel, np.nan), where=used)
    metres, steps = float(robust.median(ratio)), int(np.isfinite(ratio).sum())
    return TickLength(metres, robust.median(ratio, axis=0), float(robust.nmad(ratio / metres)), steps)


def _wheels(name: str, values: ArrayLike) -> Floats:
    return floats(name, values, (..., WHEELS))


class WheelVelocities(NamedTuple):
    """Velocity of each wheel's contact point over the ground, m/s, both (..., 4)."""

    rolling: Floats  # (..., 4), along the wheel: the speed of its rim if it does not slip
    lateral: Floats  # (..., 4), to its left: 0 if it does not slide


def levers(steering: ArrayLike, geometry: FourWheelGeometry) -> tuple[Floats, Floats]:
    """Velocity (..., 4, 2) in Platform of each contact point: per rad/s of the platform, and of its steering.

    The first is ``k x r``, the second ``k x (r - s)``, k upwards.
    """
    contacts = positions(steering, geometry)[..., :2]
    return _cross(contacts), _cross(contacts - geometry.swivels)


def contact_velocities(
    twist: ArrayLike, steering: ArrayLike, geometry: FourWheelGeometry, steering_rate: ArrayLike = 0.0
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
    twist: ArrayLike, steering: ArrayLike, geometry: FourWheelGeometry, steering_rate: ArrayLike = 0.0
) -> WheelVelocities:
    """How fast each wheel rolls and slides; parameters as of `contact_velocities`."""
    velocity = contact_velocities(twist, steering, geometry, steering_rate)
    along, left = directions(steering)
    return WheelVelocities((velocity * along).sum(axis=-1), (velocity * left).sum(axis=-1))


def _cross(vectors: Floats) -> Floats:
    """``k x v`` for planar vectors (..., 2)."""
    return np.stack([-vectors[..., 1], vectors[..., 0]], axis=-1)
