"""Simulated vehicle data: localisation with covariance, skid-steered wheels, engine, brakes, batteries.

The axes are those of SDI: Navigation is north, east, down (UTM), Body is x forward, y starboard, z down, and
a turn to starboard is positive. x and y of the world are east and north of the grid.
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
"""Rotation from the world (east, north, up) to north, east, down; its own inverse."""
Z_DOWN = np.diag([1.0, -1.0, -1.0])
"""Rotation from a body with z up to the same body with z down; its own inverse."""

STATE_SIGMAS = np.array([*[0.012] * 3, *[0.01] * 3, *np.radians([0.03, 0.03, 0.08]), *[0.0015] * 3])
"""Sigmas of the twelve states, in their units: a 2 cm RTK solution (2.2.6), the rest invented."""
CORRELATION_TIMES_S = (40.0, 3.0, 90.0, 0.2)
"""Correlation times of the errors of position, velocity, angles and their rates (invented)."""


def true_states(motion: Motion, origin: Floats) -> Floats:
    """Return the true states (n, 12) of a NAV_DATA line (3.2.1).

    North, east, down and their rates, then roll, pitch, yaw and their rates; m, m/s, rad, rad/s.

    Parameters
    ----------
    motion : Motion
        Motion of the body with z up in the world.
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
    """Return correlated errors (n, 12) of the states at evenly spaced times (n,)."""
    rng = generator(seed, "Nav", "error")
    groups = [gauss_markov(rng, t_ns, 3, seconds) for seconds in CORRELATION_TIMES_S]
    return np.hstack(groups) * STATE_SIGMAS


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
    covariance = np.broadcast_to(np.diag(STATE_SIGMAS**2).reshape(-1), (len(states), 144))
    return {**dict(zip(names, values.T, strict=True)), "covariance": covariance}


@dataclass(frozen=True)
class SkidSteerModel:
    """Dimensions and slip of a skid-steered vehicle."""

    separation: float  # between left and right wheels, m
    wheel_radius: float = 0.30  # m; 25 inch tyres under load, not in SDI
    # Speed difference of the two sides in a turn, relative to the one without skidding (invented).
    skid_factor: float = 1.5
    base_slip: float = 0.02
    slip_per_slope: float = 0.3  # Slip per sine of the slope, ...
    max_slope: float = 0.2  # ... which is limited to this.
    slip_sigma: float = 0.012  # Random slip on loose ground, ...
    slip_time_s: float = 4.0  # ... and its correlation time.


@dataclass(frozen=True, eq=False)
class WheelMotion:
    """True motion of vehicle and wheels at n times."""

    speed: Floats  # (n,) m/s forward
    turn: Floats  # (n,) rad/s to starboard
    slip: Floats  # (n, 2) of the left and right wheels: 1 - distance over ground / distance of the tyre
    wheels: Floats  # (n, 2) rad/s
    slope: Floats  # (n,) sine of the slope


def drive_wheels(model: SkidSteerModel, motion: Motion, seed: int) -> WheelMotion:
    """Return the wheel motion of an evenly sampled motion; slip increases uphill and on loose ground."""
    to_world = rotations.matrix_from_quaternion(motion.quaternion)
    speed = np.einsum("ij,ij->i", motion.velocity, to_world[:, :, 0])
    turn, slope = -motion.angular_velocity[:, 2], to_world[:, 2, 0]
    noise = gauss_markov(generator(seed, "wheels", "slip"), motion.t_ns, 2, model.slip_time_s)
    climb = np.clip(slope * np.sign(speed), -model.max_slope, model.max_slope)[:, None]
    slip = model.base_slip + model.slip_per_slope * climb + model.slip_sigma * noise
    sides = 0.5 * model.skid_factor * model.separation * np.array([1.0, -1.0])
    wheels = (speed[:, None] + turn[:, None] * sides) / (model.wheel_radius * (1 - slip))
    return WheelMotion(speed, turn, slip, wheels, slope)


def payload_columns(model: SkidSteerModel, motion: WheelMotion, seed: int) -> dict[str, dict[str, Floats]]:
    """Return the columns of all Payload streams (3.2.6) at the times of a motion, in SI units.

    Wheel speeds have errors of 0.5 % and 0.01 rad/s. Engine, gearbox, servos and brakes follow the motion by
    invented rules of thumb, as SDI has no model of the vehicle; voltages are those with running alternators.
    """
    rng = generator(seed, "payload", "noise")
    load = np.abs(motion.speed) * 0.14 + motion.slope * 1.2 + np.abs(motion.turn) * 0.2
    throttle = np.clip(0.12 + load, 0.0, 1.0)
    brakes = np.clip(1.1 * motion.turn[:, None] * np.array([-1.0, 1.0]), 0.0, 1.0)  # of the inner side
    return {
        **_actuators(throttle, brakes, rng),
        **_motion_sensors(model, motion, throttle, rng),
        "Payload/Battery12V": {"voltage": _noisy(rng, np.full(len(throttle), 13.8), 0.03)},
        "Payload/Battery24V": {"voltage": _noisy(rng, 27.6 - 0.2 * throttle, 0.05)},
    }


def _noisy(rng: np.random.Generator, values: Floats, sigma: float) -> Floats:
    return values + sigma * rng.standard_normal(values.shape)


def _actuators(throttle: Floats, brakes: Floats, rng: np.random.Generator) -> dict[str, dict[str, Floats]]:
    """Return setpoints and states of servos and brakes (n, 2); the choke stays closed."""
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
    model: SkidSteerModel, motion: WheelMotion, throttle: Floats, rng: np.random.Generator
) -> dict[str, dict[str, Floats]]:
    """Return angular velocities of wheels, gearbox and engine, and the resulting speed and turn rate."""
    mean = motion.wheels.mean(axis=1)
    gearbox = np.abs(mean) * 12.0
    engine = np.maximum(120.0 + 90.0 * throttle, 0.6 * gearbox)
    wheels = _noisy(rng, motion.wheels * _noisy(rng, np.ones_like(motion.wheels), 0.005), 0.01)
    return {
        "Payload/VelocityTurnRate": {
            **dict.fromkeys(("vy", "vz", "wx", "wy"), np.full(len(mean), np.nan)),
            "vx": _noisy(rng, mean * model.wheel_radius, 0.01),
            "wz": _noisy(rng, motion.turn, 0.01),
        },
        "Payload/Engine": {"angular_velocity": _noisy(rng, engine, 2.0)},
        "Payload/Gearbox": {"angular_velocity": _noisy(rng, gearbox, 0.5)},
        "Payload/WheelLeft": {"angular_velocity": wheels[:, 0]},
        "Payload/WheelRight": {"angular_velocity": wheels[:, 1]},
    }
