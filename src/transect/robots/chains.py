"""Chains of revolute joints in Denavit and Hartenberg's parameters: poses, Jacobians and their inverse."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from transect.errors import GeometryError
from transect.geometry._arrays import Floats, floats

Convention = Literal["standard", "modified"]


@dataclass(frozen=True, eq=False)
class Chain:
    """A serial arm; frame 0 is its base, frame i moves with joint i.

    Attributes
    ----------
    a, alpha, d : (n,)
        Length (m), twist (rad) and offset (m) of each link.
    convention : str
        `standard` (Spong): ``A_i = Rz(q) Tz(d) Tx(a) Rx(alpha)``;
        `modified` (Craig): ``A_i = Rx(alpha) Tx(a) Rz(q) Tz(d)``.
    lower, upper : (n,)
        Limits of the joints in rad; unlimited unless given.
    """

    a: Floats
    alpha: Floats
    d: Floats
    convention: Convention = "standard"
    lower: Floats = field(default_factory=lambda: np.array(-np.inf))
    upper: Floats = field(default_factory=lambda: np.array(np.inf))

    @property
    def joints(self) -> int:
        """How many joints it has."""
        return len(self.a)

    def steps(self, q: ArrayLike) -> Floats:
        """Transforms (..., n, 4, 4) from frame i to frame i - 1 at joint angles `q` (..., n) in rad."""
        angle = floats("joint angles", q, (..., self.joints))
        c, s = np.cos(angle), np.sin(angle)
        ca, sa = np.cos(self.alpha), np.sin(self.alpha)
        T = np.zeros((*angle.shape, 4, 4))
        T[..., 3, 3] = 1.0
        if self.convention == "standard":
            T[..., 0, 0], T[..., 0, 1], T[..., 0, 2], T[..., 0, 3] = c, -s * ca, s * sa, self.a * c
            T[..., 1, 0], T[..., 1, 1], T[..., 1, 2], T[..., 1, 3] = s, c * ca, -c * sa, self.a * s
            T[..., 2, 1], T[..., 2, 2], T[..., 2, 3] = sa, ca, self.d
        else:
            T[..., 0, 0], T[..., 0, 1], T[..., 0, 3] = c, -s, self.a
            T[..., 1, 0], T[..., 1, 1], T[..., 1, 2], T[..., 1, 3] = s * ca, c * ca, -sa, -sa * self.d
            T[..., 2, 0], T[..., 2, 1], T[..., 2, 2], T[..., 2, 3] = s * sa, c * sa, ca, ca * self.d
        return T

    def poses(self, q: ArrayLike) -> Floats:
        """Transforms ``T_base_i`` (..., n + 1, 4, 4) of all frames, the base (identity) first."""
        steps = self.steps(q)
        poses = np.empty((*steps.shape[:-3], self.joints + 1, 4, 4))
        poses[..., 0, :, :] = np.eye(4)
        for i in range(self.joints):
            poses[..., i + 1, :, :] = poses[..., i, :, :] @ steps[..., i, :, :]
        return poses

    def forward(self, q: ArrayLike) -> Floats:
        """``T_base_end`` (..., 4, 4) at joint angles `q` (..., n) in rad."""
        return self.poses(q)[..., -1, :, :]

    def jacobian(self, q: ArrayLike, point: ArrayLike = (0.0, 0.0, 0.0)) -> Floats:
        """Jacobian (..., 6, n): velocity (m/s), then angular velocity (rad/s), in the base frame.

        Parameters
        ----------
        q : (..., n)
            Joint angles, rad.
        point : (3,) or (..., 3)
            The point that moves, fixed to the last frame and given in it, m.
        """
        poses = self.poses(q)
        tip = np.einsum("...ij,...j->...i", poses[..., -1, :3, :3], np.asarray(point, dtype=np.float64))
        tip = tip + poses[..., -1, :3, 3]
        moving = poses[..., :-1, :, :] if self.convention == "standard" else poses[..., 1:, :, :]
        axes, origins = moving[..., :3, 2], moving[..., :3, 3]
        linear: Floats = np.cross(axes, tip[..., None, :] - origins).astype(np.float64, copy=False)
        return np.concatenate([linear, axes], axis=-1).swapaxes(-1, -2)

    def within_limits(self, q: ArrayLike, margin: ArrayLike = 0.0) -> np.ndarray:
        """Tell for each joint (..., n) whether it stays `margin` rad or more inside its limits."""
        angle = floats("joint angles", q, (..., self.joints))
        return (angle >= self.lower + np.asarray(margin)) & (angle <= self.upper - np.asarray(margin))

    def inverse(
        self, target: ArrayLike, guess: ArrayLike, tolerance: float = 1e-9, steps: int = 100
    ) -> Floats:
        """Joint angles (n,) that bring the end to the pose `target` (4, 4), from a guess (n,).

        Levenberg and Marquardt's damped steps on the pose error; for arms without a closed solution.

        Raises
        ------
        GeometryError
            If no pose within `tolerance` (m and rad) is found in that many steps.
        """
        from transect.geometry import rotations

        goal = floats("target", target, (4, 4))
        q, damping = floats("guess", guess, (self.joints,)).copy(), 1e-3

        def error_at(angles: Floats) -> Floats:
            pose = self.forward(angles)
            turn = rotations.rotation_vector_from_matrix(goal[:3, :3] @ pose[:3, :3].T)
            return np.concatenate([goal[:3, 3] - pose[:3, 3], turn])

        error = error_at(q)
        for _ in range(steps):
            if np.abs(error).max() < tolerance:
                return q
            J = self.jacobian(q)
            candidate = q + np.linalg.solve(J.T @ J + damping * np.eye(self.joints), J.T @ error)
            after = error_at(candidate)
            if np.linalg.norm(after) < np.linalg.norm(error):
                q, error, damping = candidate, after, damping / 5.0
            else:
                damping *= 4.0
        raise GeometryError(
            "no joint angles reach the target",
            why=f"{np.linalg.norm(error[:3]):.3g} m and {np.linalg.norm(error[3:]):.3g} rad remain",
            hint="give a guess nearer to the answer, or a target within reach",
        )
