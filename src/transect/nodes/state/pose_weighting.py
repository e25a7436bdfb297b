"""One pose of several predictions of it (CDFF's PoseWeighting)."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from transect.algorithms.fusion.innovation_gate import limit
from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.engine import Node, Shape, outputs, param
from transect.geometry import rotations
from transect.types import Pose, Trajectory


@outputs
class WeightedPose:
    """The estimate, its covariance (6, 6) (m, then rad, in its frame), and how many predictions it used."""

    pose: Pose | None = None
    covariance: Annotated[np.ndarray, Shape(6, 6)] | None = None
    used: int | None = None


class PoseWeighting(Node, interface=True):
    """Pose of an element by different predictions of it, those before included."""

    def reset(self) -> None:
        self.pose: tuple[Floats, Floats] | None = None
        self.spread = np.zeros((6, 6))
        self.last_ns = 0

    def process(self, poses: Trajectory) -> WeightedPose | None:
        used = sum(self.use(poses, i) for i in range(len(poses)))
        if self.pose is None:
            return self.ctx.skip("no prediction has position and attitude")
        if not used:
            self.ctx.skip("no prediction fits")
        place, turned = self.pose
        at = Pose(place, turned, self.last_ns, poses.frame, poses.child)
        return WeightedPose(at, self.spread.copy(), used)

    def use(self, poses: Trajectory, i: int) -> bool:
        """Correct pose, spread and time by one prediction; tell whether it was used."""
        raise NotImplementedError


class KalmanFilter(PoseWeighting):
    """A pose that walks at random, corrected by each prediction with the weight of its covariance."""

    place_walk: float = param(0.1, gt=0, unit="m/sqrt(s)", doc="random walk of the position")
    turn_walk: float = param(0.1, gt=0, unit="rad/sqrt(s)", doc="random walk of the attitude")
    place_std: float = param(0.05, gt=0, unit="m", doc="sigma of a predicted position without covariance")
    turn_std: float = param(0.05, gt=0, unit="rad", doc="sigma of a predicted attitude without covariance")
    gate: float = param(0.999, gt=0, le=1, doc="share of correct predictions accepted; 1 accepts all")

    def use(self, poses: Trajectory, i: int) -> bool:
        if poses.orientations is None or not np.isfinite([*poses.positions[i], *poses.orientations[i]]).all():
            return False
        place, turned = poses.positions[i], rotations.normalise(poses.orientations[i])
        R = self._noise() if poses.covariances is None else poses.covariances[i]
        if self.pose is None:
            self.pose, self.spread, self.last_ns = (place, turned), R.copy(), int(poses.t_ns[i])
            return True
        self._age(int(poses.t_ns[i]))
        turn = rotations.multiply(turned, rotations.conjugate(self.pose[1]))
        r = np.concatenate([place - self.pose[0], rotations.rotation_vector_from_quaternion(turn)])
        S = self.spread + R
        if self.gate < 1 and float(r @ np.linalg.solve(S, r)) > limit(self.gate, 6):
            return False
        K = np.linalg.solve(S, self.spread).T
        e, J = K @ r, np.eye(6) - K
        q = rotations.multiply(rotations.quaternion_from_rotation_vector(e[3:]), self.pose[1])
        self.pose, self.spread = (self.pose[0] + e[:3], q), J @ self.spread @ J.T + K @ R @ K.T
        return True

    def _noise(self) -> Floats:
        return np.diag([self.place_std] * 3 + [self.turn_std] * 3) ** 2

    def _age(self, t_ns: int) -> None:
        seconds = max((t_ns - self.last_ns) / NS, 0.0)
        self.last_ns = max(t_ns, self.last_ns)
        self.spread = self.spread + seconds * np.diag([self.place_walk] * 3 + [self.turn_walk] * 3) ** 2
