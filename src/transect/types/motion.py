"""Where things are and how they move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints

from ._fields import NOWHERE, FromColumns, columns

_POSITION = ("x", "y", "z")
_QUATERNION = ("qx", "qy", "qz", "qw")


@dataclass(frozen=True, eq=False)
class Pose(FromColumns):
    """Position and attitude of `child` in `frame`.

    Attributes
    ----------
    position : (3,) array
        Metres, in `frame`.
    orientation : (4,) array
        Quaternion x, y, z, w: takes vectors of `child` to `frame`.
    """

    position: Floats = columns(*_POSITION, unit="m")
    orientation: Floats = columns(*_QUATERNION)
    t_ns: int = 0
    frame: str = NOWHERE
    child: str = NOWHERE


@dataclass(frozen=True, eq=False)
class Transform:
    """T_target_source with its uncertainty: takes points of `source` to `target`, each at its own time.

    Attributes
    ----------
    target : str
        Frame that points are taken to.
    source : str
        Frame that they are taken from.
    matrix : (4, 4) array
        Homogeneous T_target_source, metres.
    covariance : (6, 6) array or None
        Translation (m) then rotation vector (rad), both in `target`.
    target_t_ns, source_t_ns : int or None
        Time at which the frame is meant, ns.
    estimated : (7,) bool array or None
        Which of x y z qx qy qz qw were estimated (CDFF's `dataEstimated`).
    producer : str
        Who made it.
    """

    target: str
    source: str
    matrix: Floats
    covariance: Floats | None = None
    target_t_ns: int | None = None
    source_t_ns: int | None = None
    estimated: Floats | None = None
    producer: str = ""


@dataclass(frozen=True, eq=False)
class RigidBodyState(FromColumns):
    """Pose and velocities of `child` in `frame`, each with its covariance; NaN where not estimated.

    Attributes
    ----------
    position : (3,) array
        Metres, in `frame`.
    orientation : (4,) array
        Quaternion x, y, z, w: takes vectors of `child` to `frame`.
    velocity : (3,) array or None
        m/s, in `frame`.
    angular_velocity : (3,) array or None
        rad/s, in `frame`.
    covariance : (n * n,) array or None
        Row by row as recorded; 144 numbers are 12 x 12 in the order of the format.
    """

    position: Floats = columns(*_POSITION, unit="m")
    orientation: Floats = columns(*_QUATERNION)
    velocity: Floats | None = columns("vx", "vy", "vz", unit="m/s", optional=True)
    angular_velocity: Floats | None = columns("wx", "wy", "wz", unit="rad/s", optional=True)
    covariance: Floats | None = columns("covariance", optional=True, form="list")
    t_ns: int = 0
    frame: str = NOWHERE
    child: str = NOWHERE


@dataclass(frozen=True, eq=False)
class Odometry(FromColumns):
    """Dead-reckoned motion: pose of `child` in `frame` where integrated, and the twist in `child`.

    Attributes
    ----------
    position : (3,) array or None
        Metres, in `frame`.
    orientation : (4,) array or None
        Quaternion x, y, z, w: takes vectors of `child` to `frame`.
    velocity : (3,) array or None
        m/s, in `child`.
    angular_velocity : (3,) array or None
        rad/s, in `child`.
    """

    position: Floats | None = columns(*_POSITION, unit="m", optional=True)
    orientation: Floats | None = columns(*_QUATERNION, optional=True)
    velocity: Floats | None = columns("vx", "vy", "vz", unit="m/s", optional=True)
    angular_velocity: Floats | None = columns("wx", "wy", "wz", unit="rad/s", optional=True)
    t_ns: int = 0
    frame: str = NOWHERE
    child: str = NOWHERE


@dataclass(frozen=True, eq=False)
class Twist(FromColumns):
    """Velocity of a body.

    Attributes
    ----------
    velocity : (3,) array or None
        m/s, in `frame`.
    angular_velocity : (3,) array or None
        rad/s, in `frame`.
    velocity_std, angular_velocity_std : (3,) array or None
        One sigma of each number.
    """

    velocity: Floats | None = columns("vx", "vy", "vz", unit="m/s", optional=True)
    angular_velocity: Floats | None = columns("wx", "wy", "wz", unit="rad/s", optional=True)
    velocity_std: Floats | None = columns("std_vx", "std_vy", "std_vz", unit="m/s", optional=True)
    angular_velocity_std: Floats | None = columns("std_wx", "std_wy", "std_wz", unit="rad/s", optional=True)
    t_ns: int = 0
    frame: str = NOWHERE


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Poses of `child` in `frame` over time.

    Attributes
    ----------
    t_ns : (n,) int64 array
        Times on `clock`.
    positions : (n, 3) array
        Metres.
    orientations : (n, 4) array or None
        Quaternions x, y, z, w; None for a position-only track.
    covariances : (n, 6, 6) array or None
        Translation then rotation.
    clock : str
        `utc`, `device`, `sclk` or `index`.
    """

    t_ns: Ints
    positions: Floats
    orientations: Floats | None = None
    covariances: Floats | None = None
    frame: str = NOWHERE
    child: str = NOWHERE
    clock: str = "utc"

    def __len__(self) -> int:
        return int(self.t_ns.shape[0])

    @property
    def length(self) -> float:
        """Path length in metres; gaps are bridged by straight lines, NaN positions are left out."""
        known = self.positions[~np.isnan(self.positions).any(axis=1)]
        return float(np.linalg.norm(np.diff(known, axis=0), axis=1).sum())
