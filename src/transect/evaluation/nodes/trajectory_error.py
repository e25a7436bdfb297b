"""The absolute error of a whole trajectory, when it has ended."""

from __future__ import annotations

from typing import cast, get_args

import numpy as np
from numpy.typing import NDArray

from transect.engine import At, Node, outputs, param
from transect.evaluation.absolute import Align, absolute_error
from transect.evaluation.association import Pairs
from transect.types import Pose, Trajectory


@outputs
class TrajectoryErrors:
    """Root mean square error in metres, and in percent of the truth's path."""

    rmse: float
    percent: float


class TrajectoryError(Node):
    """Absolute trajectory error of poses against the truth, interpolated to their times; at the end."""

    align: str = param("se3", choices=get_args(Align), doc="what is taken out first")

    def reset(self) -> None:
        self.times: list[int] = []
        self.poses: list[tuple[NDArray[np.float64], ...]] = []

    def process(self, pose: Pose, truth: At[Pose]) -> TrajectoryErrors | None:
        self.times.append(self.ctx.time)
        self.poses.append((truth.position, truth.orientation, pose.position, pose.orientation))

    def finish(self) -> TrajectoryErrors | None:
        if not self.poses:
            return None
        t_ns = np.array(self.times, np.int64)
        at, turned, said, said_turned = (np.array(part) for part in zip(*self.poses, strict=True))
        pairs = Pairs(
            Trajectory(t_ns, at, turned), Trajectory(t_ns, said, said_turned), len(t_ns), "interpolate"
        )
        error = absolute_error(pairs, cast(Align, self.align))
        return TrajectoryErrors(error.statistics.rmse, error.percent)
