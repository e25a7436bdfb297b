"""Deviation of an odometry's poses from the body, in addition to its drift.

`y` is the pose of the body by the odometry. A jump in dust and back is no motion: poses deviate from the body
with heavy tails (Cauchy).

An odometry on its own map has an error that depends on the observed voxels and returns with the position: it
is bounded as long as the map is observed. Modelled as drift it would be an unbounded random walk, and the
information of the map on a longer path would be lost. So there is `s` (rad, then m), the error on the map: a
Gauss-Markov process along the path. As the map is left behind, new parts of it inherit such errors: that is
its drift, and is not estimated.

All constraints are linearised at once, as those of wheels are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.geometry import rotations

CAUCHY_SCALE = float(np.sqrt(7.0))
"""Poses deviate by a Student distribution of one degree of freedom. With its scale as sigma the weights are
Cauchy's with this constant: the root of that degree plus the six dimensions of a pose."""
MAP_ERROR_SIGMAS = np.repeat([1e-3, 0.02], 3)
"""rad and m: sigma of the error on an own map, before it is estimated."""
MAP_ERROR_LENGTH_M = 0.7
"""Correlation length of the error on a map: the voxels of such maps have edges of 0.4 to 1 m."""
MIN_STEP_M = 0.01
"""Added to the distance between keyframes, so that the pose at rest is not known without limit."""


def map_error_decay(distance: Floats) -> Floats:
    """Return the decay of the error on a map along distances in m."""
    return np.exp(-(distance + MIN_STEP_M) / MAP_ERROR_LENGTH_M)


def map_drift_ratio(distance: Floats, map_radius: float) -> Floats:
    """Return the part of the map error's variance that becomes drift along distances in m."""
    return (distance + MIN_STEP_M) / map_radius


@dataclass(frozen=True, eq=False)
class PoseDeviations:
    """Constraints on `x`, `y` and, on a map, `s` of the n keyframes with odometry."""

    keyframes: Ints  # (n,)
    sigmas: Floats  # (n, 6), rad, then m
    map_sigmas: Floats | None  # (6,), of `s`; None without a map
    decay: Floats  # (n,), of `s` from the previous keyframe; 0 where the odometry restarts

    def cost(self, bodies: Floats, poses: Floats, map_errors: Floats) -> float:
        """Return half the robust sum of squares at bodies (n, 4, 4), poses (n, 4, 4) and errors (n, 6)."""
        squares = np.sum(((pose_offsets(bodies, poses) - map_errors) / self.sigmas) ** 2, axis=1)
        robust = CAUCHY_SCALE**2 * np.log1p(squares / CAUCHY_SCALE**2).sum()
        return float(robust + np.sum(self._innovations(map_errors)[0] ** 2)) / 2

    def linearise(self, bodies: Floats, poses: Floats, map_errors: Floats, gtsam: Any) -> Iterator[Any]:
        """Yield linear factors at bodies (n, 4, 4), poses (n, 4, 4) and errors (n, 6); 0 without a map."""
        offsets = pose_offsets(bodies, poses)
        by_body, by_pose = offset_jacobians(bodies, poses, offsets)
        residuals = offsets - map_errors
        squares = np.sum((residuals / self.sigmas) ** 2, axis=1)
        weights = 1 / np.sqrt(1 + squares / CAUCHY_SCALE**2)
        unit, key = gtsam.noiseModel.Unit.Create(6), gtsam.symbol
        for k, i in enumerate(self.keyframes.tolist()):
            W = np.diag(weights[k] / self.sigmas[k])
            terms = [key("x", i), W @ by_body[k], key("y", i), W @ by_pose[k]]
            terms += [key("s", i), -W] if self.map_sigmas is not None else []
            yield gtsam.JacobianFactor(*terms, -W @ residuals[k], unit)
        if self.map_sigmas is None:
            return
        innovations = zip(self.keyframes.tolist(), self.decay, *self._innovations(map_errors), strict=True)
        for i, decay, innovation, sigmas in innovations:
            V = np.diag(1 / sigmas)
            previous = [key("s", i - 1), -decay * V] if decay else []
            yield gtsam.JacobianFactor(*previous, key("s", i), V, -innovation, unit)

    def _innovations(self, map_errors: Floats) -> tuple[Floats, Floats]:
        """Return the innovations of the Gauss-Markov process (n, 6), whitened, and their sigmas (n, 6)."""
        if self.map_sigmas is None:
            return np.zeros((0, 6)), np.zeros((0, 6))
        previous = np.concatenate([np.zeros((1, 6)), map_errors[:-1]])
        sigmas = np.sqrt(1 - self.decay**2)[:, None] * self.map_sigmas
        return (map_errors - self.decay[:, None] * previous) / sigmas, sigmas


def pose_offsets(bodies: Floats, poses: Floats) -> Floats:
    """Return rotation vectors and positions (n, 6) of bodies (n, 4, 4) in the axes of poses (n, 4, 4)."""
    R_back = np.swapaxes(poses[:, :3, :3], -1, -2)
    rotation = rotations.rotation_vector_from_matrix(R_back @ bodies[:, :3, :3])
    translation = np.einsum("nij,nj->ni", R_back, bodies[:, :3, 3] - poses[:, :3, 3])
    return np.concatenate([rotation, translation], axis=1)


def offset_jacobians(bodies: Floats, poses: Floats, offsets: Floats) -> tuple[Floats, Floats]:
    """Return Jacobians (n, 6, 6) of offsets (n, 6) by bodies and by poses, perturbed from the right."""
    by_body, by_pose = np.zeros((2, len(offsets), 6, 6))
    by_body[:, :3, :3] = rotations.inverse_left_jacobian(-offsets[:, :3])
    by_body[:, 3:, 3:] = np.swapaxes(poses[:, :3, :3], -1, -2) @ bodies[:, :3, :3]
    by_pose[:, :3, :3] = -rotations.inverse_left_jacobian(offsets[:, :3])
    by_pose[:, 3:, :3] = rotations.skew(offsets[:, 3:])
    by_pose[:, 3:, 3:] = -np.eye(3)
    return by_body, by_pose
