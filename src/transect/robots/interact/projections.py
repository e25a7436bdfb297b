"""Known things in the images, as in Figure 5: where their points fall.

The figure shows the rock container, the gripper and the axes of AuxCam. The document gives no coordinates for
the first two: those in `interact.yaml` are invented and say so; give your own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.recording import Robot
from transect.robots.shapes import Shape, shapes_of

AXIS = 0.1
"""Length of a drawn axis, m."""


@dataclass(frozen=True, eq=False)
class Projection:
    """A shape in the images of one camera.

    Attributes
    ----------
    shape : Shape
    camera : str
    t_ns : (n,)
        Times of the images.
    pixels : (n, k, 2)
        With distortion; NaN behind the camera, beyond the lens model, and where the arm is not known.
    visible : (n, k)
        Whether the point is inside the image. Nothing is taken to hide it.
    age_s : mapping of str to (n,)
        The DT of Figure 5: image time minus the time of the nearest joint angles, by stream.
    """

    shape: Shape
    camera: str
    t_ns: Ints
    pixels: Floats
    visible: Mask
    age_s: dict[str, Floats]


def axes_of(frame: str, length: float = AXIS) -> Shape:
    """Return the origin of a frame and the tips of its x, y and z axis."""
    points = np.concatenate([np.zeros((1, 3)), length * np.eye(3)])
    return Shape(f"{frame} axes", frame, points, np.array([[0, 1], [0, 2], [0, 3]]))


def shapes_of_figure_5(robot: Robot) -> tuple[Shape, ...]:
    """Return the shapes of a robot's `constants.shapes`, and the axes of AuxCam."""
    return (*shapes_of(robot), axes_of("AuxCam"))
