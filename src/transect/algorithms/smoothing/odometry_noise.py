"""How poses of an odometry stray from the body, besides its drift along the way.

`y` is where the odometry has the body. A leap in dust and back is no motion: poses stray with wide tails.

An odometry that is laid on its own map errs alike within a voxel or so, and then otherwise: it wanders about
the right place, and does not leave it before the map is left behind. Taken for drift, that is a walk without
an end, and what the map knows of a longer way is lost. So there is `s` (rad, then m), by how much it errs: a
Gauss-Markov process along the way. As the map is left behind, new parts of it are laid on such errors: that
is its drift, and no agreement has to find it out.

Constraints are linearised all at once, as those of wheels are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.geometry import rotations

TAILS = float(np.sqrt(7.0))
"""Poses stray as by a Student distribution of one degree of freedom. With its scale as sigma its weights are
Cauchy's of this constant: the root of that degree and the six numbers of a pose."""
WANDER = np.repeat([1e-3, 0.02], 3)
"""rad and m: sigma of the wander of an odometry on its own map, before it is weighed."""
ALIKE = 0.7
"""m of way along which it errs alike: the voxels of such maps have edges of 0.4 to 1 m."""
LEAST_WAY = 0.01
"""m between keyframes: what stands is not known without end."""


def keep_wander(way: Floats) -> Floats:
    """Return which part of a wander is kept along ways in m."""
    return np.exp(-(way + LEAST_WAY) / ALIKE)


def hand_on(way: Floats, reach: float) -> Floats:
    """Return which part of a wander's variance becomes drift along ways, m, on a map that reaches so far."""
    return (way + LEAST_WAY) / reach


@dataclass(frozen=True, eq=False)
class Straying:
    """Constraints on `x`, `y` and, on a map, `s` of keyframes where an odometry has the body.

    Attributes
    ----------
    seen : (n,)
        These keyframes.
    white : (n, 6)
        Sigmas, rad, then m.
    wander : (6,) or None
        Sigmas of `s`; None without a map.
    kept : (n,)
        Part of `s` that is kept from the keyframe before; 0 where the odometry begins anew.
    """

    seen: Ints
    white: Floats
    wander: Floats | None
    kept: Floats

    def cost(self, bodies: Floats, poses: Floats, strays: Floats) -> float:
        """Return half the sum of squares of bodies (n, 4, 4), poses (n, 4, 4) and strays (n, 6), robust."""
        squares = np.sum(((offsets_of(bodies, poses) - strays) / self.white) ** 2, axis=1)
        tied = TAILS**2 * np.log1p(squares / TAILS**2).sum()
        return float(tied + np.sum(self._innovate(strays)[0] ** 2)) / 2

    def linear(self, bodies: Floats, poses: Floats, strays: Floats, gtsam: Any) -> Iterator[Any]:
        """Give linear factors near bodies (n, 4, 4), poses (n, 4, 4) and strays (n, 6); 0 without a map."""
        off = offsets_of(bodies, poses)
        to_body, to_pose = derivatives_of(bodies, poses, off)
        left = off - strays
        counts = 1 / np.sqrt(1 + np.sum((left / self.white) ** 2, axis=1) / TAILS**2)
        unit, key = gtsam.noiseModel.Unit.Create(6), gtsam.symbol
        for k, i in enumerate(self.seen.tolist()):
            W = np.diag(counts[k] / self.white[k])
            terms = [key("x", i), W @ to_body[k], key("y", i), W @ to_pose[k]]
            terms += [key("s", i), -W] if self.wander is not None else []
            yield gtsam.JacobianFactor(*terms, -W @ left[k], unit)
        if self.wander is not None:
            yield from self._link(strays, unit, gtsam)

    def _link(self, strays: Floats, unit: Any, gtsam: Any) -> Iterator[Any]:
        """Give linear factors of each `s` and the one before."""
        for i, kept, left, sigmas in zip(self.seen.tolist(), self.kept, *self._innovate(strays), strict=True):
            V, key = np.diag(1 / sigmas), gtsam.symbol
            before = [key("s", i - 1), -kept * V] if kept else []
            yield gtsam.JacobianFactor(*before, key("s", i), V, -left, unit)

    def _innovate(self, strays: Floats) -> tuple[Floats, Floats]:
        """Return what is new in strays (n, 6), in sigmas, and these sigmas (n, 6)."""
        if self.wander is None:
            return np.zeros((0, 6)), np.zeros((0, 6))
        before = np.concatenate([np.zeros((1, 6)), strays[:-1]])
        sigmas = np.sqrt(1 - self.kept**2)[:, None] * self.wander
        return (strays - self.kept[:, None] * before) / sigmas, sigmas


def offsets_of(bodies: Floats, poses: Floats) -> Floats:
    """Return rotation vectors and places (n, 6) of bodies (n, 4, 4) in the axes of poses (n, 4, 4)."""
    back = np.swapaxes(poses[:, :3, :3], -1, -2)
    turned = rotations.rotation_vector_from_matrix(back @ bodies[:, :3, :3])
    moved = np.einsum("nij,nj->ni", back, bodies[:, :3, 3] - poses[:, :3, 3])
    return np.concatenate([turned, moved], axis=1)


def derivatives_of(bodies: Floats, poses: Floats, offsets: Floats) -> tuple[Floats, Floats]:
    """Return derivatives (n, 6, 6) of offsets (n, 6) by bodies and by poses, changed from the right."""
    to_body, to_pose = np.zeros((2, len(offsets), 6, 6))
    to_body[:, :3, :3] = rotations.inverse_left_jacobian(-offsets[:, :3])
    to_body[:, 3:, 3:] = np.swapaxes(poses[:, :3, :3], -1, -2) @ bodies[:, :3, :3]
    to_pose[:, :3, :3] = -rotations.inverse_left_jacobian(offsets[:, :3])
    to_pose[:, 3:, :3] = rotations.skew(offsets[:, 3:])
    to_pose[:, 3:, 3:] = -np.eye(3)
    return to_body, to_pose
