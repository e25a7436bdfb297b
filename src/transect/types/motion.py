"""Poses, transforms, velocities and trajectories."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints

from ._fields import NOWHERE, FromColumns, columns

_POSITION = ("x", "y", "z")
_QUATERNION = ("qx", "qy", "qz", "qw")


@dataclass(frozen=True, eq=False)
class Pose(FromColumns):
    """Position and attitude of `child` in `frame`."""

    position: Floats = columns(*_POSITION, unit="m")  # (3,) in `frame`
    orientation: Floats = columns(
        *_QUATERNION
    )  # (4,) quaternion x, y, z, w: rotates vectors of `child` to `frame`
    t_ns: int = 0
    frame: str = NOWHERE
    child: str = NOWHERE


@dataclass(frozen=True, eq=False)
class Transform:
    """T_target_source: transforms points of `source` to `target`, each frame at its own time."""

    target: str  # Frame to which points are transformed
    source: str  # Frame of the points
    matrix: Floats  # (4, 4) homogeneous T_target_source, metres
    covariance: Floats | None = None  # (6, 6) translation (m), then rotation vector (rad), both in `target`
    target_t_ns: int | None = None  # Time of the target frame, ns
    source_t_ns: int | None = None  # Time of the source frame, ns
    # (7,) bool: which of x y z qx qy qz qw were estimated (CDFF `dataEstimated`)
    estimated: Floats | None = None
    producer: str = ""  # Where the numbers come from


@dataclass(frozen=True, eq=False)
class RigidBodyState(FromColumns):
    """Pose and velocities of `child` in `frame`, each with its covariance; NaN if not estimated."""

    position: Floats = columns(*_POSITION, unit="m")  # (3,) in `frame`
    orientation: Floats = columns(
        *_QUATERNION
    )  # (4,) quaternion x, y, z, w: rotates vectors of `child` to `frame`
    velocity: Floats | None = columns("vx", "vy", "vz", unit="m/s", optional=True)  # (3,) in `frame`
    angular_velocity: Floats | None = columns(
        "wx", "wy", "wz", unit="rad/s", optional=True
    )  # (3,) in `frame`
    # (n * n,) row by row as recorded; 144 numbers are 12 x 12 in the order of the format
    covariance: Floats | None = columns("covariance", optional=True, form="list")
    t_ns: int = 0
    frame: str = NOWHERE
    child: str = NOWHERE


@dataclass(frozen=True, eq=False)
class Odometry(FromColumns):
    """Dead-reckoned motion: the integrated pose of `child` in `frame`, and the twist in `child`."""

    position: Floats | None = columns(*_POSITION, unit="m", optional=True)  # (3,) in `frame`
    # (4,) quaternion x, y, z, w: rotates vectors of `child` to `frame`
    orientation: Floats | None = columns(*_QUATERNION, optional=True)
    velocity: Floats | None = columns("vx", "vy", "vz", unit="m/s", optional=True)  # (3,) in `child`
    angular_velocity: Floats | None = columns(
        "wx", "wy", "wz", unit="rad/s", optional=True
    )  # (3,) in `child`
    t_ns: int = 0
    frame: str = NOWHERE
    child: str = NOWHERE


@dataclass(frozen=True, eq=False)
class Twist(FromColumns):
    """Linear and angular velocity of a body, with standard deviations; (3,) each."""

    velocity: Floats | None = columns("vx", "vy", "vz", unit="m/s", optional=True)  # In `frame`
    angular_velocity: Floats | None = columns("wx", "wy", "wz", unit="rad/s", optional=True)  # In `frame`
    # Standard deviation of each component
    velocity_std: Floats | None = columns("std_vx", "std_vy", "std_vz", unit="m/s", optional=True)
    # Standard deviation of each component
    angular_velocity_std: Floats | None = columns("std_wx", "std_wy", "std_wz", unit="rad/s", optional=True)
    t_ns: int = 0
    frame: str = NOWHERE


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Poses of `child` in `frame` over time."""

    t_ns: Ints  # (n,) int64 times on `clock`
    positions: Floats  # (n, 3) metres
    orientations: Floats | None = None  # (n, 4) quaternions x, y, z, w; None for a track of positions only
    covariances: Floats | None = None  # (n, 6, 6) translation, then rotation
    frame: str = NOWHERE
    child: str = NOWHERE
    clock: str = "utc"  # `utc`, `device`, `sclk` or `index`

    def __len__(self) -> int:
        return int(self.t_ns.shape[0])

    @property
    def length(self) -> float:
        """Path length in metres; gaps are bridged by straight lines, NaN positions are left out."""
        known = self.positions[~np.isnan(self.positions).any(axis=1)]
        return float(np.linalg.norm(np.diff(known, axis=0), axis=1).sum())
