"""Which way is up, for poses that begin with the axes of a sensor that nobody mounted level."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.geometry import rotations
from transect.geometry.interpolation import interpolate_columns, interpolate_poses
from transect.recording import FrameTree
from transect.types import Imu, Pose

UP = np.array([0.0, 0.0, 1.0])
LEAST_POSES = 5
"""From which start, speed and gravity are told apart."""


def upright(felt: Sequence[Imu], poses: Sequence[Pose], frames: FrameTree) -> Floats:
    """Return the least rotation (3, 3) that makes the frame of poses level, by an IMU on the body."""
    return rotations.rotation_between(_felt_up(felt, poses, frames), UP)


def _felt_up(felt: Sequence[Imu], poses: Sequence[Pose], frames: FrameTree) -> Floats:
    """Return the acceleration (3,) that holds the body against gravity, in the frame of the poses, m/s^2."""
    child, sensor = poses[0].child, felt[0].frame
    mounting = frames.lookup(child, sensor)[:3, :3] if sensor and child and sensor != child else np.eye(3)
    t_ns, force = np.array([imu.t_ns for imu in felt]), np.stack([imu.acceleration for imu in felt])
    at_ns = np.array([pose.t_ns for pose in poses])
    places, turns = np.stack([p.position for p in poses]), np.stack([p.orientation for p in poses])
    _, turned = interpolate_poses(at_ns, places, turns, np.clip(t_ns, at_ns[0], at_ns[-1]))
    force = rotations.rotate(turned, force @ mounting.T)
    within = (at_ns >= t_ns[0]) & (at_ns <= t_ns[-1])
    if np.count_nonzero(within) < LEAST_POSES:
        return force.mean(axis=0)
    return gravity_reaction(t_ns, force, at_ns[within], places[within])


def gravity_reaction(t_ns: Ints, force: Floats, at_ns: Ints, places: Floats) -> Floats:
    """Return what a body at rest would feel (3,), m/s^2, from what it felt while it moved.

    A mean of what is felt is tilted by how the body sped up. Here places tell that: twice integrated, the
    force less its reaction to gravity is the way, but for where the body began and how fast.

    Parameters
    ----------
    t_ns, force : (n,), (n, 3)
        Specific force in a frame that does not turn, m/s^2.
    at_ns, places : (m,), (m, 3)
        Metres, in the same frame, at times among those of the force; at least three.
    """
    way = _integrated(t_ns, _integrated(t_ns, force))
    seconds = (at_ns - t_ns[0]) / NS
    powers = np.column_stack([np.ones_like(seconds), seconds, -(seconds**2) / 2])
    coefficients, *_ = np.linalg.lstsq(powers, places - interpolate_columns(t_ns, way, at_ns), rcond=None)
    return coefficients[2]


def _integrated(t_ns: Ints, values: Floats) -> Floats:
    """Return the integral (n, 3) over time from the first on, by trapezoids."""
    steps = np.diff(t_ns)[:, None] / NS * (values[1:] + values[:-1]) / 2
    return np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])
