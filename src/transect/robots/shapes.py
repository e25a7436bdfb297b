"""Known things that are fixed to a robot's frames: a container, a gripper, a bumper."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.recording import Robot


@dataclass(frozen=True, eq=False)
class Shape:
    """Points fixed to a frame, and which of them a line joins.

    Attributes
    ----------
    name, frame : str
    points : (k, 3)
        In `frame`, m.
    lines : (m, 2) int
        Indices of points.
    invented : bool
        True where the points are a guess and no measurement.
    """

    name: str
    frame: str
    points: Floats
    lines: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    invented: bool = False


def shapes_of(robot: Robot) -> tuple[Shape, ...]:
    """Return the shapes that a robot's `constants.shapes` describe."""
    return tuple(
        Shape(
            name,
            shape["frame"],
            np.array(shape["points"], dtype=np.float64).reshape(-1, 3),
            np.array(shape.get("lines", []), dtype=np.int64).reshape(-1, 2),
            bool(shape.get("invented", False)),
        )
        for name, shape in robot.constants.get("shapes", {}).items()
    )
