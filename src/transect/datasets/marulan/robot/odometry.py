"""Skid-steer odometry: speed and turn rate from the wheel speeds of both sides.

Body is x forward, y starboard, z down, so that a turn to starboard is positive, with faster left wheels. A
skid-steered vehicle turns less than the distance of its wheels suggests. The effective track width, and the
effective radius of the tyres, are not in SDI and are fitted to a localisation (`fit_drive`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats
from transect.errors import GeometryError, TransectError
from transect.geometry import robust
from transect.recording import Robot


@dataclass(frozen=True)
class SkidSteerDrive:
    """Effective dimensions of a skid-steer drive."""

    wheel_radius: float  # m
    track_width: float  # distance between the left and the right wheels, m

    @classmethod
    def of(cls, robot: Robot) -> SkidSteerDrive:
        """Return the drive of a robot's constants."""
        drive = robot.constants.get("drive", {})
        missing = [name for name in ("wheel_radius", "track_width") if name not in drive]
        if missing:
            raise TransectError(
                f"the drive of {robot.name} has no {' and no '.join(missing)}",
                why="SDI does not print them",
                hint="fit them to Nav (datasets.marulan.robot.derived_streams.fit_drive), "
                "or add them to the robot's YAML",
            )
        return cls(float(drive["wheel_radius"]), float(drive["track_width"]))


@dataclass(frozen=True)
class DriveFit:
    """A fitted drive, and the residuals of the localisation, which are large if the wheels slip."""

    drive: SkidSteerDrive
    speed_error: float  # NMAD of the forward speed while driving, m/s
    turn_error: float  # NMAD of the turn rate while turning, rad/s
    driving: int  # samples that determine the radius, ...
    turning: int  # ... and the track width


def motion_from_wheels(left: ArrayLike, right: ArrayLike, drive: SkidSteerDrive) -> tuple[Floats, Floats]:
    """Return forward speed (m/s) and turn rate (rad/s, positive to starboard) of the body.

    Parameters
    ----------
    left, right : (...) array
        Angular velocities of the wheels of each side, rad/s.
    drive : SkidSteerDrive
    """
    v_left, v_right = (drive.wheel_radius * np.asarray(side, dtype=np.float64) for side in (left, right))
    return (v_left + v_right) / 2, (v_left - v_right) / drive.track_width


def fit_drive(
    left: ArrayLike,
    right: ArrayLike,
    speed: ArrayLike,
    turn_rate: ArrayLike,
    *,
    min_speed: float = 0.1,
    min_turn: float = 0.05,
    min_samples: int = 10,
) -> DriveFit:
    """Fit radius and track width to the velocities of a localisation, by least absolute deviations.

    The wheels are regressed on the localisation, which has less noise, with lines through the origin. Samples
    with NaN are ignored.

    Parameters
    ----------
    left, right : (n,) array
        Angular velocities of the wheels of each side, rad/s.
    speed, turn_rate : (n,) array
        Forward speed (m/s) and turn rate (rad/s, positive to starboard) of the body at the same times.
    min_speed, min_turn : float
        Slower samples (m/s, rad/s) are dominated by noise, and ignored.
    min_samples : int
        Required number of samples of driving, and of turning.

    Raises
    ------
    GeometryError
        If too few samples are faster.
    """
    samples = np.column_stack([left, right, speed, turn_rate]).astype(np.float64)
    of_left, of_right, v, w = samples[np.isfinite(samples).all(axis=1)].T
    driving, turning = np.abs(v) >= min_speed, np.abs(w) >= min_turn
    _require(driving, min_samples, "drive", f"{min_speed} m/s")
    _require(turning, min_samples, "turn", f"{min_turn} rad/s")
    radius = 1 / _slope(v[driving], (of_left + of_right)[driving] / 2, "their mean with the speed")
    track = radius * _slope(w[turning], (of_left - of_right)[turning], "left minus right with the turn rate")
    drive = SkidSteerDrive(radius, track)
    modelled_v, modelled_w = motion_from_wheels(of_left, of_right, drive)
    return DriveFit(
        drive,
        speed_error=float(robust.nmad((modelled_v - v)[driving])),
        turn_error=float(robust.nmad((modelled_w - w)[turning])),
        driving=int(driving.sum()),
        turning=int(turning.sum()),
    )


def _require(is_fast: NDArray[np.bool_], min_samples: int, verb: str, min_speed: str) -> None:
    count = int(is_fast.sum())
    if count < min_samples:
        raise GeometryError(
            f"the vehicle does not {verb} enough to fit its drive",
            why=f"{count} samples of {len(is_fast)} are faster than {min_speed}",
        )


def _slope(x: Floats, y: Floats, what: str) -> float:
    """Return the s that minimises sum |y - s x|: the median of y / x, weighted by |x|; x must not be 0."""
    slope = float(robust.weighted_percentile(y / x, np.abs(x), 50.0))
    if slope <= 0:
        raise GeometryError(
            "the wheels do not turn as the vehicle moves, so its drive cannot be fitted",
            why=f"{what} should grow, but its slope is {slope:.3g}",
            hint="are left and right exchanged, or is one sign reversed?",
        )
    return slope
