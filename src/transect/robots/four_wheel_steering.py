"""Kinematics and odometry of a platform on four steered wheels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.errors import GeometryError
from transect.geometry import robust, rotations, se3
from transect.geometry.array_checks import floats
from transect.recording import Robot

from .description import Constants


@dataclass(frozen=True, eq=False)
class FourWheelGeometry:
    """Geometry of platform and motors, SI units; wheels in the order of the encoders."""

    # half_length, half_width, wheel_height, swivel_length: L, W, H and d of AMEDS section 4, m
    half_length: float
    half_width: float
    wheel_height: float
    swivel_length: float
    # ends, sides: (4,), +1 for front and left wheels, -1 for rear and right wheels
    ends: Floats
    sides: Floats
    drive_ticks_per_turn: float  # k_psi of eq. 4
    # steer_ticks_per_metre, rack_at_rest, rack_offset, rack_per_radian, angle_at_rest: k_phi, r0, 60.67 mm,
    # 1.125 mm/degree and phi0 of eq. 5
    steer_ticks_per_metre: float
    rack_at_rest: float
    rack_offset: float
    rack_per_radian: float
    angle_at_rest: float
    polarity: Floats  # (4,), p of eq. 5

    @classmethod
    def of(cls, robot: Robot) -> FourWheelGeometry:
        """Return the geometry of a robot's constants."""
        numbers = Constants(robot, "four steered wheels", "interact.yaml")
        wheels = [str(wheel).split() for wheel in numbers["platform", "wheels"]]
        return cls(
            half_length=numbers["platform", "half_length"],
            half_width=numbers["platform", "half_width"],
            wheel_height=numbers["platform", "wheel_height"],
            swivel_length=numbers["platform", "swivel_length"],
            ends=np.array([1.0 if "front" in words else -1.0 for words in wheels]),
            sides=np.array([1.0 if "left" in words else -1.0 for words in wheels]),
            drive_ticks_per_turn=numbers["drive", "ticks_per_turn"],
            steer_ticks_per_metre=numbers["steer", "ticks_per_metre"],
            rack_at_rest=numbers["steer", "rack_at_rest"],
            rack_offset=numbers["steer", "rack_offset"],
            rack_per_radian=numbers["steer", "rack_per_radian"],
            angle_at_rest=numbers["steer", "angle_at_rest"],
            polarity=np.array(numbers["steer", "polarity"], dtype=np.float64),
        )

    @property
    def swivels(self) -> Floats:
        """(4, 2): x and y of the steering axes in Platform, m."""
        return np.stack([self.ends * self.half_length, self.sides * self.half_width], axis=-1)


WHEEL_COUNT = 4


def drive_angles(ticks: ArrayLike, geometry: FourWheelGeometry) -> Floats:
    """Drive angles psi (..., 4) in rad of tick offsets (..., 4), AMEDS eq. 4."""
    return _wheels("drive ticks", ticks) * (2 * np.pi / geometry.drive_ticks_per_turn)


def drive_ticks(angles: ArrayLike, geometry: FourWheelGeometry) -> Floats:
    """Whole ticks (..., 4) nearest to drive angles (..., 4) in rad: within half a tick, 0.006 degrees."""
    return np.rint(_wheels("drive angles", angles) * (geometry.drive_ticks_per_turn / (2 * np.pi)))


def steer_angles(ticks: ArrayLike, geometry: FourWheelGeometry) -> Floats:
    """Steering angles phi (..., 4) in rad of tick offsets (..., 4).

    AMEDS eq. 5 with the minus that is missing in print, so that zero ticks are straight ahead.
    """
    g = geometry
    rack = g.polarity * _wheels("steer ticks", ticks) / g.steer_ticks_per_metre
    return g.angle_at_rest + (rack - (g.rack_at_rest + g.rack_offset)) / g.rack_per_radian


def steer_ticks(angles: ArrayLike, geometry: FourWheelGeometry) -> Floats:
    """Whole ticks (..., 4) nearest to steering angles (..., 4) in rad: within half a tick, 0.0006 degrees."""
    g = geometry
    rack = (_wheels("steering angles", angles) - g.angle_at_rest) * g.rack_per_radian
    # adding 0.0 removes the -0.0 of a polarity of -1
    return np.rint(g.polarity * (rack + g.rack_at_rest + g.rack_offset) * g.steer_ticks_per_metre) + 0.0


def directions(steering: ArrayLike) -> tuple[Floats, Floats]:
    """Unit vectors (..., 4, 2) in Platform in the rolling direction of each wheel, and to its left."""
    phi = _wheels("steering angles", steering)
    c, s = np.cos(phi), np.sin(phi)
    return np.stack([c, s], axis=-1), np.stack([-s, c], axis=-1)


def positions(steering: ArrayLike, geometry: FourWheelGeometry) -> Floats:
    """Wheel centres (..., 4, 3) in Platform, m, at steering angles (..., 4) in rad."""
    _, left = directions(steering)
    outward = geometry.sides[:, None] * left
    plane = geometry.swivels + geometry.swivel_length * outward
    height = np.full((*plane.shape[:-1], 1), -geometry.wheel_height)
    return np.concatenate([plane, height], axis=-1)


def euler_angles(steering: ArrayLike, drive: ArrayLike, geometry: FourWheelGeometry) -> Floats:
    """Gamma and beta (..., 4, 2) in rad of AMEDS Table 5, corrected: ``R = Rz(gamma) Rx(beta)``.

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


class TickLength(NamedTuple):
    """Rolling distance of a wheel per tick of its drive motor."""

    metres: float
    each: Floats  # (4,), of each wheel; NaN if it was slower than the minimum speed
    spread: float  # relative standard deviation (nmad) of single steps
    steps: int  # number of steps between samples

    def wheel_radius(self, geometry: FourWheelGeometry) -> float:
        """Wheel radius, m."""
        return self.metres * geometry.drive_ticks_per_turn / (2 * np.pi)


def tick_length(
    t_ns: ArrayLike, ticks: ArrayLike, velocity: ArrayLike, min_speed: float = 0.05
) -> TickLength:
    """Estimate the metres per drive tick from ticks and speeds that were recorded together.

    AMEDS gives no wheel radius (H is the height of Platform above the axle, not the ground). The drive motors
    report ticks and m/s, so their ratio is the conversion factor of the rover's software, not the rolling
    radius on loose ground. The median of the steps tolerates nearly half of outliers.

    Parameters
    ----------
    t_ns : (n,)
        Sample times, ns.
    ticks, velocity : (n, 4)
        Drive motor positions, and speeds in m/s.
    min_speed : float
        Slower steps are ignored, m/s.
    """
    times = np.asarray(t_ns, dtype=np.int64)
    counts, speeds = (
        floats("ticks", ticks, ("n", WHEEL_COUNT)),
        floats("velocity", velocity, ("n", WHEEL_COUNT)),
    )
    seconds = (np.diff(times) / NS)[:, None]
    travel, turned = seconds * (speeds[1:] + speeds[:-1]) / 2, np.diff(counts, axis=0)
    used = (np.abs(travel) >= min_speed * seconds) & (seconds > 0) & (turned != 0)
    ratio = np.divide(travel, turned, out=np.full_like(travel, np.nan), where=used)
    metres, steps = float(robust.median(ratio)), int(np.isfinite(ratio).sum())
    return TickLength(metres, robust.median(ratio, axis=0), float(robust.nmad(ratio / metres)), steps)


def _wheels(name: str, values: ArrayLike) -> Floats:
    return floats(name, values, (..., WHEEL_COUNT))


class WheelVelocities(NamedTuple):
    """Velocity of each wheel's contact point over the ground, m/s, both (..., 4)."""

    rolling: Floats  # (..., 4), in the rolling direction: the rim speed without slip
    lateral: Floats  # (..., 4), to the left: 0 without sliding


def levers(steering: ArrayLike, geometry: FourWheelGeometry) -> tuple[Floats, Floats]:
    """Velocity (..., 4, 2) in Platform of each contact point per rad/s of the platform, and of its steering.

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
        Of Platform in Platform: vx, vy in m/s and wz in rad/s.
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
    """Rolling and lateral velocity of each wheel; parameters as in `contact_velocities`."""
    velocity = contact_velocities(twist, steering, geometry, steering_rate)
    along, left = directions(steering)
    return WheelVelocities((velocity * along).sum(axis=-1), (velocity * left).sum(axis=-1))


def _cross(vectors: Floats) -> Floats:
    """``k x v`` for planar vectors (..., 2)."""
    return np.stack([-vectors[..., 1], vectors[..., 0]], axis=-1)


MIN_WHEELS = 2
"""One wheel does not separate rotation from sliding."""


class BodyMotion(NamedTuple):
    """Motion or twist of the platform in Platform."""

    # (..., 3), x, y and rotation: m, m, rad from distances; m/s, m/s, rad/s from speeds; NaN with too few
    # wheels
    motion: Floats
    # along, across: (..., 4), residuals of the two equations of each wheel, m or m/s
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
    """Estimate the motion of the platform from that of its wheels by weighted least squares.

    Parameters
    ----------
    travel : (..., 4)
        Rolling distance, m, or rim speed, m/s, of each wheel. Wheels with NaN are ignored.
    steering : (..., 4)
        Steering angles, rad.
    steered : (..., 4)
        Change of the steering angles meanwhile, rad (or rad/s): a wheel is `swivel_length` beside its axis
        and rolls when it is steered.
    weights : (4,) or (..., 4)
        Weight of each wheel.
    across_weight : float
        Weight of the lateral equation (no sliding) relative to the rolling equation; greater than 0.
    """
    if not across_weight > 0:
        raise GeometryError(f"expected across_weight greater than 0, got {across_weight}")
    rolled, phi = np.broadcast_arrays(
        floats("travel", travel, (..., WHEEL_COUNT)), floats("steering", steering, (..., WHEEL_COUNT))
    )
    used = np.isfinite(rolled) & np.isfinite(phi)
    phi, rolled = np.where(used, phi, 0.0), np.where(used, rolled, 0.0)
    row_weights = np.broadcast_to(np.asarray(weights, dtype=np.float64), rolled.shape) * used
    rows, goal = _equations(rolled, phi, np.nan_to_num(np.broadcast_to(steered, rolled.shape)), geometry)
    weight = np.stack([row_weights, across_weight * row_weights], axis=-1)
    normal = np.einsum("...we,...wei,...wej->...ij", weight, rows, rows)
    right = np.einsum("...we,...wei,...we->...i", weight, rows, goal)
    enough = np.count_nonzero(row_weights > 0, axis=-1) >= MIN_WHEELS
    solvable = np.where(enough[..., None, None], normal, np.eye(3))
    motion = np.linalg.solve(solvable, right[..., None])[..., 0]
    motion = np.where(enough[..., None], motion, np.nan)
    residual = np.where(used[..., None], np.einsum("...wei,...i->...we", rows, motion) - goal, np.nan)
    return BodyMotion(motion, residual[..., 0], residual[..., 1])


def _equations(
    rolled: Floats, phi: Floats, steered: Floats, geometry: FourWheelGeometry
) -> tuple[Floats, Floats]:
    """Rows (..., 4, 2, 3) of each wheel, along and across, and right-hand sides (..., 4, 2)."""
    turning, swivelling = levers(phi, geometry)
    axes = np.stack(directions(phi), axis=-2)  # (..., wheel, along or across, xy)
    rows = np.concatenate([axes, np.einsum("...wej,...wj->...we", axes, turning)[..., None]], axis=-1)
    by_steering = np.einsum("...wej,...wj->...we", axes, swivelling) * steered[..., None]
    return rows, np.stack([rolled, np.zeros_like(rolled)], axis=-1) - by_steering
