"""Skid-steer odometry: both sides' wheel speeds to speed and turn rate, and on to a planar path.

Body is x forward, y starboard, z down, so a turn to starboard is positive: the left wheels are then the
faster ones. A skid-steered vehicle turns less than its wheels' distance says; the effective track that
makes up for it, and the effective radius of the tyres, are not in document 004 and are fitted to a
localisation (`fit_drive`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats
from transect.errors import GeometryError, TransectError
from transect.geometry import robust
from transect.recording import Robot

LEAST_SAMPLES = 10
"""Fewer samples of driving, or of turning, do not tell a radius or a track."""


@dataclass(frozen=True)
class Drive:
    """What turns wheel speeds into motion.

    Attributes
    ----------
    wheel_radius : float
        Effective radius of the tyres, m.
    track_width : float
        Effective distance between the left and the right wheels, m.
    """

    wheel_radius: float
    track_width: float

    @classmethod
    def of(cls, robot: Robot) -> Drive:
        """Return the drive that a robot's constants describe."""
        drive = robot.constants.get("drive", {})
        missing = [name for name in ("wheel_radius", "track_width") if name not in drive]
        if missing:
            raise TransectError(
                f"the drive of {robot.name} has no {' and no '.join(missing)}",
                why="document 004 does not print them",
                hint="fit them to Nav (datasets.marulan.robot.recorded.fit_drive), "
                "or add them to the robot's YAML",
            )
        return cls(float(drive["wheel_radius"]), float(drive["track_width"]))


@dataclass(frozen=True)
class DriveFit:
    """A fitted drive, and how far the localisation is from it.

    Attributes
    ----------
    drive : Drive
    speed_error, turn_error : float
        Robust deviation (NMAD) of forward speed (m/s) and turn rate (rad/s) from the model, while driving
        and while turning: large where the wheels slip.
    driving, turning : int
        Samples that told the radius and the track.
    """

    drive: Drive
    speed_error: float
    turn_error: float
    driving: int
    turning: int


def motion_from_wheels(left: ArrayLike, right: ArrayLike, drive: Drive) -> tuple[Floats, Floats]:
    """Return forward speed (m/s) and turn rate (rad/s, positive to starboard) of the body.

    Parameters
    ----------
    left, right : (...) array
        Angular velocities of the wheels of each side, rad/s.
    drive : Drive
    """
    v_left, v_right = (drive.wheel_radius * np.asarray(side, dtype=np.float64) for side in (left, right))
    return (v_left + v_right) / 2, (v_left - v_right) / drive.track_width


def wheels_from_motion(speed: ArrayLike, turn_rate: ArrayLike, drive: Drive) -> tuple[Floats, Floats]:
    """Return the wheels' angular velocities (rad/s), left and right: the inverse of `motion_from_wheels`."""
    v = np.asarray(speed, dtype=np.float64)
    outwards = np.asarray(turn_rate, dtype=np.float64) * drive.track_width / 2
    return (v + outwards) / drive.wheel_radius, (v - outwards) / drive.wheel_radius


def fit_drive(
    left: ArrayLike,
    right: ArrayLike,
    speed: ArrayLike,
    turn_rate: ArrayLike,
    *,
    least_speed: float = 0.1,
    least_turn: float = 0.05,
) -> DriveFit:
    """Fit radius and track to a localisation's speeds, by least absolute deviations.

    The wheels are regressed on the localisation, which is the less noisy side, with lines through the origin.
    Samples with a NaN do not count.

    Parameters
    ----------
    left, right : (n,) array
        Angular velocities of the wheels of each side, rad/s.
    speed, turn_rate : (n,) array
        Forward speed (m/s) and turn rate (rad/s, positive to starboard) of the body at the same times.
    least_speed, least_turn : float
        Slower samples (m/s, rad/s) say more about noise than about the drive, and are left out.

    Raises
    ------
    GeometryError
        If the vehicle hardly drives or hardly turns.
    """
    samples = np.column_stack([left, right, speed, turn_rate]).astype(np.float64)
    of_left, of_right, v, w = samples[np.isfinite(samples).all(axis=1)].T
    driving, turning = np.abs(v) >= least_speed, np.abs(w) >= least_turn
    _require(driving, "drives", f"{least_speed} m/s")
    _require(turning, "turns", f"{least_turn} rad/s")
    radius = 1 / _slope(v[driving], (of_left + of_right)[driving] / 2, "their mean with the speed")
    track = radius * _slope(w[turning], (of_left - of_right)[turning], "left minus right with the turn rate")
    drive = Drive(radius, track)
    modelled_v, modelled_w = motion_from_wheels(of_left, of_right, drive)
    return DriveFit(
        drive,
        speed_error=float(robust.nmad((modelled_v - v)[driving])),
        turn_error=float(robust.nmad((modelled_w - w)[turning])),
        driving=int(driving.sum()),
        turning=int(turning.sum()),
    )


def _require(enough: NDArray[np.bool_], does: str, least: str) -> None:
    count = int(enough.sum())
    if count < LEAST_SAMPLES:
        raise GeometryError(
            f"the vehicle hardly {does}, so its drive cannot be fitted",
            why=f"{count} samples of {len(enough)} are faster than {least}",
        )


def _slope(x: Floats, y: Floats, what: str) -> float:
    """Return the s that minimises sum |y - s x|: the median of y / x, weighted by |x|; x is not 0."""
    slope = float(robust.weighted_percentile(y / x, np.abs(x), 50.0))
    if slope <= 0:
        raise GeometryError(
            "the wheels do not turn as the vehicle moves, so its drive cannot be fitted",
            why=f"{what} should grow, but its slope is {slope:.3g}",
            hint="are left and right exchanged, or is one sign reversed?",
        )
    return slope
