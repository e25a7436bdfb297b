"""Where a map is put: a shift, a turn and tilt about its middle, and perhaps a scale."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from transect.base.arrays import Floats
from transect.geometry import rotations
from transect.geometry.rasters import Heights


@dataclass(frozen=True, eq=False)
class Placement:
    """Takes points of a map to the reference: ``middle + shift + scale * rotation @ (p - middle)``.

    Attributes
    ----------
    middle : (3,) float64
        About which the map is turned, in metres of the common plane.
    shift : (3,) float64
        Of the middle, in metres.
    rotation : (3, 3) float64
    scale : float
    """

    middle: Floats
    shift: Floats = field(default_factory=lambda: np.zeros(3))
    rotation: Floats = field(default_factory=lambda: np.eye(3))
    scale: float = 1.0

    def carry(self, offsets: Floats) -> Floats:
        """Return points (..., 3) of the reference for offsets (..., 3) from the middle."""
        return self.middle + self.shift + self.turn(offsets)

    def turn(self, offsets: Floats) -> Floats:
        """Return offsets (..., 3) from the middle, turned and scaled."""
        return self.scale * offsets @ self.rotation.T

    def step(self, small: Floats) -> Placement:
        """Return it after a small motion (6,) or (7,): shift, turn in the reference's axes, scale."""
        scale = self.scale * float(np.exp(small[6])) if len(small) > 6 else self.scale
        turned = rotations.matrix_from_rotation_vector(small[3:6]) @ self.rotation
        return replace(self, shift=self.shift + small[:3], rotation=turned, scale=scale)

    @property
    def matrix(self) -> Floats:
        """``T_reference_map`` (4, 4): the scale stands in its rotation."""
        matrix = np.eye(4)
        matrix[:3, :3] = self.scale * self.rotation
        matrix[:3, 3] = self.middle + self.shift - matrix[:3, :3] @ self.middle
        return matrix

    @property
    def heading(self) -> float:
        """Turn about the vertical in rad: the twist of the rotation."""
        _, _, z, w = rotations.quaternion_from_matrix(self.rotation)
        return float(np.arctan2(np.sin(2 * np.arctan2(z, w)), np.cos(2 * np.arctan2(z, w))))

    @property
    def tilt(self) -> float:
        """Angle in rad between the verticals of both maps."""
        return float(np.arccos(np.clip(self.rotation[2, 2], -1.0, 1.0)))


def begin_at(heights: Heights, shift: Floats | None = None, heading: float = 0.0) -> Placement:
    """Return a placement of a map about the middle of its known cells."""
    x, y = heights.centres
    known = np.isfinite(heights.values)
    middle = np.array([float(np.mean(each[known])) for each in (x, y, heights.values)])
    turn = rotations.matrix_from_rotation_vector(np.array([0.0, 0.0, heading]))
    return Placement(middle, np.zeros(3) if shift is None else np.asarray(shift, np.float64), turn)
