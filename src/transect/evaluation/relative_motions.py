"""Errors of relative motions: by segments of a length, by distance travelled, and of given relations.

Segments are KITTI's (Geiger et al., CVPR 2012): from every tenth pose, to the first pose at least a length
further along the reference's path; translation error per metre, rotation error per metre.

Relations (Kümmerle et al., Autonomous Robots 2009) are chosen relative motions:
``eps = 1/N sum trans(d_ij - d*_ij)^2 + rot(d_ij - d*_ij)^2`` over relations (i, j), translation and rotation
apart; a relation is independent of the path between its ends, so an error is counted once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS, ns_from_decimal
from transect.errors import GeometryError, ParseError
from transect.geometry import robust, se3
from transect.geometry.interpolation import nearest_index
from transect.geometry.rotations import quaternion_from_euler, rotation_vector_from_matrix
from transect.types import Trajectory

from .association import Pairs, rows
from .trajectory_errors import Statistics, matrices, relative_errors, travelled_distance

KITTI_LENGTHS = (100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0)
ROVER_LENGTHS = (5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0)
"""m, for traverses that are too short for KITTI's."""
KITTI_SEGMENT_STEP = 10  # poses between the starts of segments


@dataclass(frozen=True)
class SegmentErrors:
    """One row per segment."""

    length: Floats  # (n,) float64, nominal length, m
    first: Ints  # (n,) int64, first pair
    last: Ints  # (n,) int64, last pair
    translation: Floats  # (n,) float64, metres per metre
    rotation: Floats  # (n,) float64, radians per metre

    @property
    def percent(self) -> float:
        """Mean translation error in percent, over all segments."""
        return float(100 * self.translation.mean())

    @property
    def degrees_per_metre(self) -> float:
        """Mean rotation error, over all segments."""
        return float(np.degrees(self.rotation.mean()))

    def by_length(self) -> dict[float, tuple[float, float, int]]:
        """Return, by length: translation error (percent), rotation error (deg/m), number of segments."""
        found: dict[float, tuple[float, float, int]] = {}
        for length in sorted(set(self.length.tolist())):
            selected = self.length == length
            rotation = float(np.degrees(self.rotation[selected].mean()))
            found[length] = (float(100 * self.translation[selected].mean()), rotation, int(selected.sum()))
        return found


def segment_errors(
    pairs: Pairs, lengths: Sequence[float] | None = None, every: int = KITTI_SEGMENT_STEP
) -> SegmentErrors:
    """Return the errors of all segments.

    Parameters
    ----------
    lengths : sequence of float, optional
        m; KITTI's if the path is long enough for the shortest of them, else those for rovers.
    every : int
        Number of poses between the starts of segments.
    """
    travelled = travelled_distance(pairs.reference.positions)
    if lengths is None:
        lengths = KITTI_LENGTHS if travelled[-1] >= KITTI_LENGTHS[0] else ROVER_LENGTHS
    starts = np.arange(0, len(pairs), every)
    first, last, length = _segments(travelled, starts, np.asarray(lengths, np.float64))
    if not len(first):
        raise GeometryError(
            f"no segment of {min(lengths):g} m fits",
            why=f"the path is {travelled[-1]:.3g} m long",
            hint="shorter lengths",
        )
    translation, rotation = relative_errors(pairs, first, last)
    return SegmentErrors(length, first, last, translation / length, rotation / length)


def _segments(travelled: Floats, starts: Ints, lengths: Floats) -> tuple[Ints, Ints, Floats]:
    """Return first and last poses of segments, and their nominal length.

    The last is the first pose *beyond* it.
    """
    ends = np.searchsorted(travelled, travelled[starts][:, None] + lengths, side="right")
    start, length = np.nonzero(ends < len(travelled))
    return starts[start], ends[start, length], lengths[length]


@dataclass(frozen=True)
class DriftCurve:
    """Relative position error against distance travelled (CDFF, Figures 6 and 10)."""

    distance: Floats  # (m,) float64, metres
    median: Floats  # (m,) float64, median error in percent of the distance
    high: Floats  # (m,) float64, 90th percentile of it
    settled: float  # mean of the median over the last quarter of the distances


def drift_curve(pairs: Pairs, points: int = 40) -> DriftCurve:
    """Return the error per distance, from the shortest steps to half of the path."""
    travelled = travelled_distance(pairs.reference.positions)
    if travelled[-1] == 0:
        raise GeometryError("the reference does not move")
    step = float(robust.median(np.diff(travelled)[np.diff(travelled) > 0]))
    distances = np.linspace(max(4 * step, travelled[-1] / 200), travelled[-1] / 2, points)
    median, high = np.full(points, np.nan), np.full(points, np.nan)
    for k, distance in enumerate(distances):
        first, last, _ = _segments(travelled, np.arange(len(pairs)), np.array([distance]))
        if len(first):
            percent = 100 * relative_errors(pairs, first, last)[0] / distance
            median[k], high[k] = robust.median(percent), robust.percentile(percent, 90)
    return DriftCurve(distances, median, high, float(np.nanmean(median[-points // 4 :])))


@dataclass(frozen=True)
class Relations:
    """True relative motions."""

    first_ns: Ints  # (n,) int64, time of the first pose
    last_ns: Ints  # (n,) int64, time of the last pose
    motion: Floats  # (n, 4, 4) float64, from the first to the last, in the first one's frame

    def __len__(self) -> int:
        return len(self.first_ns)


@dataclass(frozen=True)
class RelationErrors:
    """The error of each relation that the estimate has poses for."""

    translation: Floats  # (n,) float64, m
    rotation: Floats  # (n,) float64, rad
    left_out: int  # number of relations without a pose of the estimate close in time

    @property
    def absolute(self) -> tuple[Statistics, Statistics]:
        """Of translation (m) and rotation (rad)."""
        return Statistics.of(self.translation), Statistics.of(self.rotation)

    @property
    def squared(self) -> tuple[float, float]:
        """Mean squares of translation (m2) and rotation (rad2): Kümmerle's epsilon, in its two parts."""
        return float(np.mean(self.translation**2)), float(np.mean(self.rotation**2))


def read_relations(path: Path | str) -> Relations:
    """Read a file of relations: ``t_i t_j x y z roll pitch yaw`` in seconds, metres and radians.

    Raises
    ------
    ParseError
        For a line that is not such a row.
    """
    times: list[tuple[int, int]] = []
    motions: list[list[float]] = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            if len(words) != 8:
                raise ValueError(f"{len(words)} words")
            times.append((ns_from_decimal(words[0]), ns_from_decimal(words[1])))
            motions.append([float(word) for word in words[2:]])
        except ValueError as error:
            why = f"expected t_i t_j x y z roll pitch yaw: {error}"
            raise ParseError(
                f"{path} is not a file of relations", where=f"{path}:{number}", why=why
            ) from error
    if not times:
        raise ParseError(f"{path} has no relations", where=str(path))
    values, stamps = np.array(motions), np.array(times, np.int64)
    quaternions = quaternion_from_euler("xyz", values[:, 3:])
    return Relations(stamps[:, 0], stamps[:, 1], se3.from_quaternion(quaternions, values[:, :3]))


def relation_errors(relations: Relations, estimate: Trajectory, max_diff: float = 0.5) -> RelationErrors:
    """Return the errors of the relative motions of an estimate.

    Parameters
    ----------
    max_diff : float
        Largest difference (s) between the times of a relation and of the estimate's poses.
    """
    order = np.argsort(estimate.t_ns, kind="stable")
    poses = rows(estimate, order)
    first, last = (nearest_index(poses.t_ns, t) for t in (relations.first_ns, relations.last_ns))
    limit = round(max_diff * NS)
    near = (np.abs(poses.t_ns[first] - relations.first_ns) <= limit) & (
        np.abs(poses.t_ns[last] - relations.last_ns) <= limit
    )
    if not near.any():
        raise GeometryError(
            "the estimate has no poses at the times of the relations", hint="--max-diff, --offset"
        )
    world = matrices(poses)
    estimated = se3.invert(world[first[near]]) @ world[last[near]]
    error = se3.invert(relations.motion[near]) @ estimated
    return RelationErrors(
        np.linalg.norm(error[:, :3, 3], axis=1),
        np.linalg.norm(rotation_vector_from_matrix(error[:, :3, :3]), axis=1),
        int((~near).sum()),
    )
