"""What a vehicle says of itself: localisation with covariance, wheels that skid, engine, brakes, batteries.

The axes are those of document 004: Navigation is north, east, down (UTM), Body is x forward, y starboard,
z down, and a turn to starboard is positive. The world's x and y are taken for the grid's east and north.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.geometry import rotations
from transect.simulation.instruments import gauss_markov
from transect.simulation.motion import Motion
from transect.simulation.randomness import generator

NED_FROM_WORLD = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
"""Takes vectors of the world (east, north, up) to north, east, down; and back."""
Z_DOWN = np.diag([1.0, -1.0, -1.0])
"""Takes vectors of a body with z up to the same body with z down; and back."""

DEVIATIONS = np.array([*[0.012] * 3, *[0.01] * 3, *np.radians([0.03, 0.03, 0.08]), *[0.0015] * 3])
"""One sigma of the twelve states, in their units: a 2 cm RTK solution (2.2.6), the rest invented."""
SETTLING = (40.0, 3.0, 90.0, 0.2)
"""Seconds after which errors of place, velocity, angles and their rates are forgotten (invented)."""


def true_states(motion: Motion, origin: Floats) -> Floats:
    """Return the twelve states (n, 12) of a NAV_DATA line without error (3.2.1).

    North, east, down and their rates, then roll, pitch, yaw and their rates; m, m/s, rad, rad/s.

    Parameters
    ----------
    motion : Motion
        Of the body with z up, in the world.
    origin : (3,) array
        North, east and down of the world's origin, m.
    """
    turn = NED_FROM_WORLD @ rotations.matrix_from_quaternion(motion.quaternion) @ Z_DOWN
    angles = rotations.euler_from_matrix("rpy", turn)
    rates = euler_rates(angles, motion.angular_velocity @ Z_DOWN)
    return np.hstack(
        [motion.position @ NED_FROM_WORLD + origin, motion.velocity @ NED_FROM_WORLD, angles, rates]
    )


def euler_rates(angles: Floats, body_rates: Floats) -> Floats:
    """Return the derivatives (n, 3) of roll, pitch, yaw (n, 3) from angular velocities (n, 3) in the body."""
    roll, pitch, _ = angles.T
    p, q, r = body_rates.T
    across = q * np.sin(roll) + r * np.cos(roll)
    return np.column_stack(
        [p + across * np.tan(pitch), q * np.cos(roll) - r * np.sin(roll), across / np.cos(pitch)]
    )


def state_errors(t_ns: Ints, seed: int) -> Floats:
    """Return the errors (n, 12) of the states at evenly spaced times (n,): `DEVIATIONS`, forgotten slowly."""
    rng = generator(seed, "Nav", "error")
    groups = [gauss_markov(rng, t_ns, 3, seconds) for seconds in SETTLING]
    return np.hstack(groups) * DEVIATIONS


def nav_columns(states: Floats) -> dict[str, Floats]:
    """Return the columns of a `RigidBodyState` stream from measured states (n, 12), see `true_states`."""
    angles, (droll, dpitch, dyaw) = states[:, 6:9], states[:, 9:12].T
    _, pitch, yaw = angles.T
    spin = [
        droll * np.cos(pitch) * np.cos(yaw) - dpitch * np.sin(yaw),
        droll * np.cos(pitch) * np.sin(yaw) + dpitch * np.cos(yaw),
        dyaw - droll * np.sin(pitch),
    ]
    attitude = rotations.quaternion_from_euler("rpy", angles)
    names = ("x", "y", "z", "qx", "qy", "qz", "qw", "vx", "vy", "vz", "wx", "wy", "wz")
    values = np.column_stack([states[:, :3], attitude, states[:, 3:6], *spin])
    covariance = np.broadcast_to(np.diag(DEVIATIONS**2).reshape(-1), (len(states), 144))
    return {**dict(zip(names, values.T, strict=True)), "covariance": covariance}


@dataclass(frozen=True)
class Skid:
    """How a skid-steered vehicle drives.

    Attributes
    ----------
    wheel_radius : float
        m; 25 inch tyres under load. Not in the report.
    separation : float
        m between left and right wheels.
    scrub : float
        How many times faster than without skidding the two sides must differ in a turn (invented).
    """

    separation: float
    wheel_radius: float = 0.30
    scrub: float = 1.5


@dataclass(frozen=True, eq=False)
class Drive:
    """What the wheels do and why, at n times.

    Attributes
    ----------
    speed, turn : (n,) array
        True, m/s forward and rad/s to starboard.
    slip : (n, 2) array
        Of the left and right wheels: 1 - way of the ground / way of the tyre.
    wheels : (n, 2) array
        True angular velocities, rad/s.
    slope : (n,) array
        Sine of the climb.
    """

    speed: Floats
    turn: Floats
    slip: Floats
    wheels: Floats
    slope: Floats


def drive_wheels(skid: Skid, motion: Motion, seed: int) -> Drive:
    """Return how the wheels drove an evenly sampled motion; they slip more uphill and where it is loose."""
    to_world = rotations.matrix_from_quaternion(motion.quaternion)
    speed = np.einsum("ij,ij->i", motion.velocity, to_world[:, :, 0])
    turn, slope = -motion.angular_velocity[:, 2], to_world[:, 2, 0]
    loose = 0.012 * gauss_markov(generator(seed, "wheels", "slip"), motion.t_ns, 2, 4.0)
    slip = 0.02 + 0.3 * np.clip(slope * np.sign(speed), -0.2, 0.2)[:, None] + loose
    sides = 0.5 * skid.scrub * skid.separation * np.array([1.0, -1.0])
    wheels = (speed[:, None] + turn[:, None] * sides) / (skid.wheel_radius * (1 - slip))
    return Drive(speed, turn, slip, wheels, slope)


def payload_columns(skid: Skid, drive: Drive, seed: int) -> dict[str, dict[str, Floats]]:
    """Return the columns of every Payload stream (3.2.6) at the times of `drive`, in SI units.

    Speeds of wheels are measured with 0.5 % and 0.01 rad/s. Engine, gearbox, servos and brakes follow the
    driving by rules of thumb; volts are those of alternators under way. All of it is invented but for the
    names: the report says that a model of the vehicle would be needed.
    """
    rng = generator(seed, "payload", "noise")
    driver = np.abs(drive.speed) * 0.14 + drive.slope * 1.2 + np.abs(drive.turn) * 0.2
    throttle = np.clip(0.12 + driver, 0.0, 1.0)
    brakes = np.clip(1.1 * drive.turn[:, None] * np.array([-1.0, 1.0]), 0.0, 1.0)  # the inner side's
    return {
        **_actuators(throttle, brakes, rng),
        **_motion_sensors(skid, drive, throttle, rng),
        "Payload/Battery12V": {"voltage": _noisy(rng, np.full(len(throttle), 13.8), 0.03)},
        "Payload/Battery24V": {"voltage": _noisy(rng, 27.6 - 0.2 * throttle, 0.05)},
    }


def _noisy(rng: np.random.Generator, values: Floats, deviation: float) -> Floats:
    return values + deviation * rng.standard_normal(values.shape)


def _actuators(throttle: Floats, brakes: Floats, rng: np.random.Generator) -> dict[str, dict[str, Floats]]:
    """Return what servos and brakes (n, 2) were told and what they did; the choke stays closed."""
    choke, position, pressure = (
        np.zeros(len(throttle)),
        _noisy(rng, brakes, 0.004),
        _noisy(rng, 60 * brakes, 0.3),
    )
    return {
        "Payload/ServoSetpoint": {"choke_position": choke, "throttle_position": _noisy(rng, throttle, 0.003)},
        "Payload/Brakes": {
            "left_position": position[:, 0],
            "right_position": position[:, 1],
            "left_pressure": pressure[:, 0],
            "right_pressure": pressure[:, 1],
        },
        "Payload/ActuatorSetpoint": {
            "choke": choke,
            "throttle": throttle,
            "left_brake": brakes[:, 0],
            "right_brake": brakes[:, 1],
        },
    }


def _motion_sensors(
    skid: Skid, drive: Drive, throttle: Floats, rng: np.random.Generator
) -> dict[str, dict[str, Floats]]:
    """Return what wheels, gearbox and engine turn at, and the speed and turn rate that follow from them."""
    mean = drive.wheels.mean(axis=1)
    gearbox = np.abs(mean) * 12.0
    engine = np.maximum(120.0 + 90.0 * throttle, 0.6 * gearbox)
    wheels = _noisy(rng, drive.wheels * _noisy(rng, np.ones_like(drive.wheels), 0.005), 0.01)
    return {
        "Payload/VelocityTurnRate": {
            **dict.fromkeys(("vy", "vz", "wx", "wy"), np.full(len(mean), np.nan)),
            "vx": _noisy(rng, mean * skid.wheel_radius, 0.01),
            "wz": _noisy(rng, drive.turn, 0.01),
        },
        "Payload/Engine": {"angular_velocity": _noisy(rng, engine, 2.0)},
        "Payload/Gearbox": {"angular_velocity": _noisy(rng, gearbox, 0.5)},
        "Payload/WheelLeft": {"angular_velocity": wheels[:, 0]},
        "Payload/WheelRight": {"angular_velocity": wheels[:, 1]},
    }
