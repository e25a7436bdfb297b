"""Errors of poses and height maps against a truth, as nodes."""

from __future__ import annotations

from typing import cast, get_args

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.engine import At, Latest, Node, outputs, param
from transect.evaluation.association import Pairs
from transect.evaluation.height_maps import map_errors
from transect.evaluation.trajectory_errors import Align, absolute_error
from transect.geometry import se3
from transect.types import GridMap, Pose, Trajectory


class DriftPercent(Node):
    """Distance to the truth in percent of path length, after alignment of the first poses."""

    least: float = param(1.0, ge=0, unit="m", doc="path length of the truth before the first output")

    def reset(self) -> None:
        self.T_truth_estimate: Floats | None = None
        self.last_position = np.zeros(3)
        self.travelled = 0.0

    def process(self, pose: Pose, truth: At[Pose]) -> float | None:
        if self.T_truth_estimate is None:
            self.T_truth_estimate = _matrix(truth) @ se3.invert(_matrix(pose))
            self.last_position = truth.position
        self.travelled += float(np.linalg.norm(truth.position - self.last_position))
        self.last_position = truth.position
        if self.travelled <= self.least:
            return self.ctx.skip("not travelled far enough")
        error = se3.apply(self.T_truth_estimate, pose.position) - truth.position
        return 100 * float(np.linalg.norm(error)) / self.travelled


def _matrix(pose: Pose) -> Floats:
    return se3.from_quaternion(pose.orientation, pose.position)


class PositionError(Node):
    """Distance in metres to the truth, interpolated to the time of the pose; both in one frame."""

    def process(self, pose: Pose, truth: At[Pose]) -> float | None:
        distance = float(np.linalg.norm(pose.position - truth.position))
        return distance if np.isfinite(distance) else self.ctx.skip("no position")


@outputs
class TrajectoryErrors:
    """Root mean square error in metres, and in percent of the truth's path."""

    rmse: float
    percent: float


class TrajectoryError(Node):
    """Absolute trajectory error of poses against the truth, interpolated to their times; at the end."""

    align: str = param(
        "se3", choices=get_args(Align), doc="alignment of the poses to the truth before the comparison"
    )

    def reset(self) -> None:
        self.times_ns: list[int] = []
        self.poses: list[tuple[NDArray[np.float64], ...]] = []

    def process(self, pose: Pose, truth: At[Pose]) -> TrajectoryErrors | None:
        self.times_ns.append(self.ctx.time)
        self.poses.append((truth.position, truth.orientation, pose.position, pose.orientation))

    def finish(self) -> TrajectoryErrors | None:
        if not self.poses:
            return None
        t_ns = np.array(self.times_ns, np.int64)
        true_positions, true_attitudes, estimated_positions, estimated_attitudes = (
            np.array(part) for part in zip(*self.poses, strict=True)
        )
        pairs = Pairs(
            Trajectory(t_ns, true_positions, true_attitudes),
            Trajectory(t_ns, estimated_positions, estimated_attitudes),
            len(t_ns),
            "interpolate",
        )
        error = absolute_error(pairs, cast(Align, self.align))
        return TrajectoryErrors(error.statistics.rmse, error.percent)


@outputs
class MapQuality:
    """Root mean square and mean difference of heights in metres, and the F-score."""

    rmse: float
    bias: float
    f_score: float


class MapError(Node):
    """A height map against the newest reference map."""

    register: bool = param(True, doc="align the map to the reference by the best shift")
    cells: float = param(1.0, gt=0, doc="distance threshold of the F-score, in cells of the reference")

    def process(self, map: GridMap, truth: Latest[GridMap]) -> MapQuality:
        errors = map_errors(truth, map, register=self.register, cells=(self.cells,))
        return MapQuality(errors.statistics.rmse, errors.statistics.bias, errors.scores[0].f_score)
