"""Serial chains of revolute joints in Denavit-Hartenberg parameters: poses, Jacobians, inverse kinematics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Mask
from transect.errors import GeometryError
from transect.geometry.array_checks import floats
from transect.recording import Robot

from .description import Constants

Convention = Literal["standard", "modified"]

CHUNK_SAMPLES = 8_192
"""Samples that are processed together, so that intermediate results fit into the processor cache."""


@dataclass(frozen=True, eq=False)
class Chain:
    """A serial arm; frame 0 is its base, frame i moves with joint i."""

    # a, alpha, d: (n,), length (m), twist (rad) and offset (m) of each link
    a: Floats
    alpha: Floats
    d: Floats
    # `standard` (Spong): ``A_i = Rz(q) Tz(d) Tx(a) Rx(alpha)``;
    # `modified` (Craig): ``A_i = Rx(alpha) Tx(a) Rz(q) Tz(d)``
    convention: Convention = "standard"
    # lower, upper: (n,), joint limits in rad; default: unlimited
    lower: Floats = field(default_factory=lambda: np.array(-np.inf))
    upper: Floats = field(default_factory=lambda: np.array(np.inf))

    def __post_init__(self) -> None:
        for name in ("a", "alpha", "d", "lower", "upper"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        links = {self.a.shape, self.alpha.shape, self.d.shape}
        limits = {self.lower.shape, self.upper.shape}
        if self.a.ndim != 1 or len(links) > 1 or not limits <= {*links, ()}:
            why = f"got shapes {sorted(links)} for a, alpha, d and {sorted(limits)} for the limits"
            raise GeometryError("a chain needs as many numbers of each kind as it has joints", why=why)

    @property
    def joints(self) -> int:
        """Number of joints."""
        return len(self.a)

    def steps(self, q: ArrayLike) -> Floats:
        """Transforms (..., n, 4, 4) from frame i to frame i - 1 at joint angles `q` (..., n) in rad."""
        angle = floats("joint angles", q, (..., self.joints))
        cs = _cosines_and_sines(angle)
        steps = _identities(self.joints, cs.shape[-1])
        for i, step in enumerate(steps):
            self._apply_link(i, step.copy(), cs, into=step)
        return _samples_first(steps, angle.shape[:-1])

    def poses(self, q: ArrayLike) -> Floats:
        """Transforms ``T_base_i`` (..., n + 1, 4, 4) of all frames, the base (identity) first.

        Each of the 16 numbers of a frame is contiguous over the samples, so that columns of many poses are
        fast; the array is not C-contiguous.
        """
        angle = floats("joint angles", q, (..., self.joints))
        return _samples_first(self._forward_frames(angle), angle.shape[:-1])

    def forward(self, q: ArrayLike) -> Floats:
        """``T_base_end`` (..., 4, 4) at joint angles `q` (..., n) in rad."""
        angle = floats("joint angles", q, (..., self.joints))
        cs = _cosines_and_sines(angle)
        current, following = _identities(2, cs.shape[-1])
        for i in range(self.joints):
            self._apply_link(i, current, cs, into=following)
            current, following = following, current
        return _samples_first(current, angle.shape[:-1])

    def jacobian(self, q: ArrayLike, point: ArrayLike = (0.0, 0.0, 0.0)) -> Floats:
        """Jacobian (..., 6, n): velocity (m/s), then angular velocity (rad/s), in the base frame.

        Parameters
        ----------
        q : (..., n)
            Joint angles, rad.
        point : (3,) or (..., 3)
            Point fixed to the last frame, in that frame, m.
        """
        angle = floats("joint angles", q, (..., self.joints))
        frames = self._forward_frames(angle)
        fixed = np.broadcast_to(floats("point", point, (..., 3)), (*angle.shape[:-1], 3)).reshape(-1, 3).T
        tip = (frames[-1, :3, :3] * fixed).sum(axis=1) + frames[-1, :3, 3]
        jacobian = np.empty((6, self.joints, tip.shape[-1]))
        for i in range(self.joints):
            moving = frames[i if self.convention == "standard" else i + 1]
            jacobian[:3, i] = np.cross(moving[:3, 2], tip - moving[:3, 3], axis=0)
            jacobian[3:, i] = moving[:3, 2]
        return _samples_first(jacobian, angle.shape[:-1])

    def _forward_frames(self, angle: Floats) -> Floats:
        """``T_base_i`` (n + 1, 4, 4, m) at joint angles (..., n) of m samples."""
        cs = _cosines_and_sines(angle)
        frames = _identities(self.joints + 1, cs.shape[-1])
        for start in range(0, cs.shape[-1], CHUNK_SAMPLES):
            chunk = frames[..., start : start + CHUNK_SAMPLES]
            for i in range(self.joints):
                self._apply_link(i, chunk[i], cs[..., start : start + CHUNK_SAMPLES], into=chunk[i + 1])
        return frames

    def _apply_link(self, i: int, T: Floats, cosines_and_sines: Floats, into: Floats) -> None:
        """Write ``T @ A_i`` (4, 4, m) into another array, column by column."""
        x, y, z, p = T[:3, 0], T[:3, 1], T[:3, 2], T[:3, 3]
        c, s = cosines_and_sines[:, i]
        ca, sa = np.cos(self.alpha[i]), np.sin(self.alpha[i])
        if self.convention == "standard":
            into[:3, 0] = forward = c * x + s * y
            turned = c * y - s * x
            into[:3, 1], into[:3, 2] = ca * turned + sa * z, ca * z - sa * turned
            into[:3, 3] = p + self.d[i] * z + self.a[i] * forward
        else:
            twisted = ca * y + sa * z
            into[:3, 0], into[:3, 1] = c * x + s * twisted, c * twisted - s * x
            into[:3, 2] = axis = ca * z - sa * y
            into[:3, 3] = p + self.a[i] * x + self.d[i] * axis

    def within_limits(self, q: ArrayLike, margin: ArrayLike = 0.0) -> Mask:
        """Whether each joint (..., n) is at least `margin` rad inside its limits."""
        angle = floats("joint angles", q, (..., self.joints))
        return (angle >= self.lower + np.asarray(margin)) & (angle <= self.upper - np.asarray(margin))

    def inverse(
        self, target: ArrayLike, guess: ArrayLike, tolerance: float = 1e-9, steps: int = 100
    ) -> Floats:
        """Joint angles (n,) at which the end has the pose `target` (4, 4), from a guess (n,).

        Levenberg-Marquardt iterations on the pose error, for arms without a closed solution. Joint limits are
        not considered: see `within_limits`.

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


def chain_of(robot: Robot) -> Chain:
    """Return the chain of `arm` in a robot's constants, in Craig's modified parameters."""
    numbers = Constants(robot, "an arm", "interact.yaml")
    link = {key: np.array(numbers["arm", key], dtype=np.float64) for key in ("a", "alpha", "d")}
    arm = robot.constants["arm"]
    limits = {key: np.array(arm[key], dtype=np.float64) for key in ("lower", "upper") if key in arm}
    return Chain(**link, convention="modified", **limits)


def _cosines_and_sines(angle: Floats) -> Floats:
    """Cosines, then sines, of joint angles (..., n): (2, n, m) for m samples."""
    flat = angle.reshape(-1, angle.shape[-1]).T
    return np.stack([np.cos(flat), np.sin(flat)])


def _identities(frames: int, samples: int) -> Floats:
    """Identities (frames, 4, 4, samples)."""
    result = np.zeros((frames, 4, 4, samples))
    result[:, range(4), range(4)] = 1.0
    return result


def _samples_first(array: Floats, leading: tuple[int, ...]) -> Floats:
    """Return a view (*leading, ...) of (..., m)."""
    return np.moveaxis(array, -1, 0).reshape(*leading, *array.shape[:-1])
