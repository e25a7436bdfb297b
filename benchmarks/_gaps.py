"""Rosario with its RTK positions withheld for 30 s in every 60, or one in ten; plain ways across the gaps."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import transect
from transect.geometry import align, correlation, interpolation, rotations
from transect.recording import Recording, Stream, arrow
from transect.types import Odometry, Pose, Trajectory

NS = 1_000_000_000
DATA_DIR = Path(os.environ.get("TRANSECT_TEST_DATA") or "../shared/data") / "rosario_gt_odom"
PERIOD_S, GAP_S, PHASES_S = 60.0, 30.0, (0.0, 20.0, 40.0)
HEADING_FIT_S = 10.0
"""Seconds of positions before a gap to which the baseline's heading is fitted; as many must come after it."""
MAX_FIT_ERROR_RATIO = 0.1
"""Largest distance of the odometry from the fixes that its heading is fitted to, as a ratio of the path."""
STEP_NS = NS // 10
"""Between samples of the odometry, which has no stamps: 10 Hz by the documentation."""
MAX_OFFSET_NS = 2 * NS
MAX_STEP_NS = 4 * STEP_NS
"""ns between two fixes that still tell a speed."""
MIN_DRIVING_SPEED_MPS = 0.5
"""m/s; a robot that is faster drives, and does not shunt."""
MAX_SPEED_MPS = 3.0
"""m/s; a faster step between two fixes is an error of a stamp."""
CHI2_95_2D = 5.991
"""95 % of the squared Mahalanobis distances in the plane are less."""


@dataclass(frozen=True)
class Drive:
    """One sequence.

    Attributes
    ----------
    fix_ns, fixes : (n,), (n, 3)
        RTK positions of the antenna.
    track : (m, 2)
        Odometry of the body, unstamped.
    lever : (3,)
        The antenna in the body.
    """

    name: str
    recording: Recording
    fix_ns: np.ndarray
    fixes: np.ndarray
    track: np.ndarray
    lever: np.ndarray


@dataclass(frozen=True)
class Withheld:
    """A drive with some of its fixes withheld.

    Attributes
    ----------
    known : (n,)
        Mask of the fixes that one may use.
    gaps : list of (k,)
        Indices of the fixes of each gap.
    odometry_ns : (m,)
        Stamps of the odometry by the known fixes alone.
    correlation : float
        Of the two speeds then.
    """

    drive: Drive
    phase: float
    known: np.ndarray
    gaps: list[np.ndarray]
    odometry_ns: np.ndarray
    correlation: float


def drives() -> list[Drive]:
    """All sequences that are there."""
    names = sorted(file.name[8:10] for file in DATA_DIR.glob("sequence??_new_gt_IMU_frame.txt"))
    return [_drive(name) for name in names]


def _drive(name: str) -> Drive:
    recording = transect.open(DATA_DIR, sequence=name)
    truth, odometry = recording["GroundTruth"], recording["Odometry"]
    fixes = np.column_stack([truth[axis] for axis in "xyz"])
    track = np.column_stack([odometry[axis] for axis in "xy"])
    lever = recording.frames.lookup("base_link", "gps")[:3, 3]
    return Drive(name, recording, truth.t_ns, fixes, track, lever)


def withheld(drive: Drive) -> Iterator[Withheld]:
    """The three phases."""
    seconds = (drive.fix_ns - drive.fix_ns[0]) * 1e-9
    for phase in PHASES_S:
        starts = np.arange(phase + PERIOD_S - GAP_S, seconds[-1] - GAP_S - HEADING_FIT_S, PERIOD_S)
        gaps = [np.flatnonzero((seconds >= each) & (seconds < each + GAP_S)) for each in starts]
        yield _without(drive, phase, gaps)


def steady(drive: Drive) -> Iterator[Withheld]:
    """Withhold one fix in ten, twice: the robot drives at its usual speed, and has begun 30 s ago."""
    seconds, (_, speed) = (drive.fix_ns - drive.fix_ns[0]) * 1e-9, _missed(drive)
    for phase in (0, 5):
        each = np.arange(phase, len(seconds) - 1, 10)
        yield _without(drive, phase, [each[(seconds[each] > 30) & (speed[each] > MIN_DRIVING_SPEED_MPS)]])


def fix_noise(drive: Drive) -> float:
    """Sigma of a fix while driving, m on each axis: by how it misses the line between its neighbours."""
    missed, speed = _missed(drive)
    return float(np.sqrt(np.mean(missed[speed > MIN_DRIVING_SPEED_MPS] ** 2) / 1.5))


def _missed(drive: Drive) -> tuple[np.ndarray, np.ndarray]:
    """How far fixes (n, 2) lie off the line between their neighbours, and the speed (n,); NaN at the ends."""
    t, place = drive.fix_ns * 1e-9, drive.fixes[:, :2]
    missed, speed = np.full((len(t), 2), np.nan), np.full(len(t), np.nan)
    share = ((t[1:-1] - t[:-2]) / (t[2:] - t[:-2]))[:, None]
    missed[1:-1] = place[1:-1] - (1 - share) * place[:-2] - share * place[2:]
    speed[1:-1] = np.hypot(*(place[2:] - place[:-2]).T) / (t[2:] - t[:-2])
    return missed, speed


def _without(drive: Drive, phase: float, gaps: list[np.ndarray]) -> Withheld:
    known = np.ones(len(drive.fixes), dtype=bool)
    known[np.concatenate(gaps)] = False
    offset, rho = _offset(drive, known)
    stamps = drive.fix_ns[0] + offset + STEP_NS * np.arange(len(drive.track))
    return Withheld(drive, phase, known, gaps, stamps, rho)


def _offset(drive: Drive, known: np.ndarray) -> tuple[int, float]:
    """When the odometry began after the first fix, ns, by the correlation of speeds at known fixes."""
    start, steps_ns = drive.fix_ns[0], np.diff(drive.fix_ns)
    speed = np.hypot(*np.diff(drive.fixes[:, :2], axis=0).T) / (steps_ns * 1e-9)
    usable = known[1:] & known[:-1] & (steps_ns < MAX_STEP_NS) & (speed < MAX_SPEED_MPS)
    middle = drive.fix_ns[:-1] + steps_ns // 2 - start
    reckoned = np.hypot(*np.diff(drive.track, axis=0).T) / (STEP_NS * 1e-9)
    at = STEP_NS * np.arange(len(reckoned)) + STEP_NS // 2
    found = correlation.time_offset(
        middle, np.where(usable, speed, np.nan), at, reckoned, MAX_OFFSET_NS, step_ns=STEP_NS // 2
    )
    return found.offset_ns, found.correlation


def measured(case: Withheld) -> Recording:
    """The recording that one may use: stamped odometry, and known positions of the antenna."""
    drive = case.drive
    columns = {axis: drive.track[:, i] for i, axis in enumerate("xy")}
    columns["z"] = np.zeros(len(drive.track))
    places = {axis: drive.fixes[case.known, i] for i, axis in enumerate("xyz")}
    streams = (
        Stream(
            "Odometry",
            Odometry,
            arrow.table(case.odometry_ns, columns, units=Odometry.units()),
            frame="odom",
            child="base_link",
        ),
        Stream(
            "Rtk",
            Pose,
            arrow.table(drive.fix_ns[case.known], places, units=Pose.units()),
            frame="world",
            child="gps",
        ),
    )
    return drive.recording.replace(streams=streams)


def reanchored(case: Withheld, gap: np.ndarray) -> np.ndarray:
    """Odometry from the last fix on (k, 2), turned by the angle that fits it to the last 10 s of fixes.

    The body's track is taken for the antenna's, as the plainest use of an odometry does. While the robot
    shunts, odometry and fixes disagree (in sequence 03 by half a turn): then the fit is over the last 20 or
    30 s, which makes the baseline better.
    """
    drive, last = case.drive, gap[0] - 1
    track = interpolation.interpolate_columns(case.odometry_ns, drive.track, drive.fix_ns)
    for seconds in (HEADING_FIT_S, 2 * HEADING_FIT_S, 3 * HEADING_FIT_S):
        before = np.flatnonzero(drive.fix_ns[: last + 1] > drive.fix_ns[last] - seconds * NS)
        fit = align.yaw(_flat(track[before]), _flat(drive.fixes[before, :2]))
        if fit.rmse < MAX_FIT_ERROR_RATIO * np.linalg.norm(np.ptp(track[before], axis=0)):
            break
    return drive.fixes[last, :2] + (track[gap] - track[last]) @ fit.rotation[:2, :2].T


def straight(case: Withheld, gap: np.ndarray) -> np.ndarray:
    """Places (k, 2) on the line between the fixes at both ends."""
    ends = np.array([gap[0] - 1, gap[-1] + 1])
    drive = case.drive
    return interpolation.interpolate_columns(drive.fix_ns[ends], drive.fixes[ends, :2], drive.fix_ns[gap])


def antenna_of(trajectory: Trajectory, lever: np.ndarray, t_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The antenna (k, 2) by a trajectory of the body, and its covariance (k, 2, 2), both interpolated."""
    reach = rotations.rotate(trajectory.orientations, np.tile(lever, (len(trajectory), 1)))
    by = np.concatenate([np.tile(np.eye(3), (len(reach), 1, 1)), -rotations.skew(reach)], axis=2)
    spread = by @ trajectory.covariances @ np.swapaxes(by, -1, -2)
    rows = np.column_stack([trajectory.positions + reach, spread.reshape(-1, 9)])
    at = interpolation.interpolate_columns(trajectory.t_ns, rows, t_ns)
    return at[:, :2], at[:, 3:].reshape(-1, 3, 3)[:, :2, :2]


def squared_distances(errors: np.ndarray, covariances: np.ndarray, sigma: float) -> np.ndarray:
    """Mahalanobis distances (k,) squared of errors (k, 2); `sigma` is that of the withheld fixes, m."""
    total = covariances + sigma**2 * np.eye(2)
    return np.einsum("ni,ni->n", errors, np.linalg.solve(total, errors[..., None])[..., 0])


def _flat(points: np.ndarray) -> np.ndarray:
    return np.column_stack([points, np.zeros(len(points))])
