"""One pose by several predictions of it (CDFF's PoseWeighting)."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from transect.algorithms.fusion.innovation_gate import chi2_quantile
from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.engine import Node, Shape, outputs, param
from transect.geometry import rotations
from transect.types import Pose, Trajectory


@outputs
class WeightedPose:
    """Estimate, its covariance (6, 6) (m, then rad, in its frame), and the number of predictions used."""

    pose: Pose | None = None
    covariance: Annotated[np.ndarray, Shape(6, 6)] | None = None
    used: int | None = None


class PoseWeighting(Node, interface=True):
    """Pose of an element by different predictions of it, including earlier ones."""

    def reset(self) -> None:
        self.pose: tuple[Floats, Floats] | None = None  # position and orientation
        self.covariance = np.zeros((6, 6))
        self.last_ns = 0

    def process(self, poses: Trajectory) -> WeightedPose | None:
        used = sum(self.update(poses, i) for i in range(len(poses)))
        if self.pose is None:
            return self.ctx.skip("no prediction has position and attitude")
        if not used:
            self.ctx.skip("no prediction fits")
        position, orientation = self.pose
        pose = Pose(position, orientation, self.last_ns, poses.frame, poses.child)
        return WeightedPose(pose, self.covariance.copy(), used)

    def update(self, poses: Trajectory, i: int) -> bool:
        """Update pose, covariance and time by one prediction; return whether it was used."""
        raise NotImplementedError


class KalmanFilter(PoseWeighting):
    """Random walk of a pose, updated by each prediction with its covariance."""

    position_walk: float = param(0.1, gt=0, unit="m/sqrt(s)", doc="random walk of the position")
    turn_walk: float = param(0.1, gt=0, unit="rad/sqrt(s)", doc="random walk of the attitude")
    position_std: float = param(0.05, gt=0, unit="m", doc="sigma of a predicted position without covariance")
    turn_std: float = param(0.05, gt=0, unit="rad", doc="sigma of a predicted attitude without covariance")
    gate: float = param(0.999, gt=0, le=1, doc="fraction of correct predictions accepted; 1 accepts all")

    def update(self, poses: Trajectory, i: int) -> bool:
        if poses.orientations is None or not np.isfinite([*poses.positions[i], *poses.orientations[i]]).all():
            return False
        position, orientation = poses.positions[i], rotations.normalise(poses.orientations[i])
        default = np.diag([self.position_std] * 3 + [self.turn_std] * 3) ** 2
        R = default if poses.covariances is None else poses.covariances[i]
        if self.pose is None:
            self.pose, self.covariance, self.last_ns = (position, orientation), R.copy(), int(poses.t_ns[i])
            return True
        self._propagate(int(poses.t_ns[i]))
        turn = rotations.multiply(orientation, rotations.conjugate(self.pose[1]))
        r = np.concatenate([position - self.pose[0], rotations.rotation_vector_from_quaternion(turn)])
        S = self.covariance + R
        if self.gate < 1 and float(r @ np.linalg.solve(S, r)) > chi2_quantile(self.gate, 6):
            return False
        K = np.linalg.solve(S, self.covariance).T
        e, J = K @ r, np.eye(6) - K
        q = rotations.multiply(rotations.quaternion_from_rotation_vector(e[3:]), self.pose[1])
        self.pose, self.covariance = (self.pose[0] + e[:3], q), J @ self.covariance @ J.T + K @ R @ K.T
        return True

    def _propagate(self, t_ns: int) -> None:
        seconds = max((t_ns - self.last_ns) / NS, 0.0)
        self.last_ns = max(t_ns, self.last_ns)
        walks = np.diag([self.position_walk] * 3 + [self.turn_walk] * 3)
        self.covariance = self.covariance + seconds * walks**2
