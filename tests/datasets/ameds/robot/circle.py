"""A left turn on a circle in closed form: what wheels on axles through one point must do."""

from __future__ import annotations

import numpy as np

SWIVELS = np.array([[0.402, 0.396], [-0.402, 0.396], [-0.402, -0.396], [0.402, -0.396]])
"""Document 000, section 4: L = 402 mm, W = 396 mm; wheels 1 to 4."""
WHEEL_OFFSET_M = 0.143
"""d, m."""


def circle_wheels(radius: float, omega: float) -> tuple[np.ndarray, np.ndarray]:
    """Steering angles (4,) and rim speeds (4,) of a platform that turns at omega about (0, radius).

    All axles pass through that point; a left wheel is `OUTSIDE` nearer to it than its swivel, a right one
    farther away. For a centre to the left of all wheels.
    """
    x, y = SWIVELS.T
    steering = np.arctan2(x, radius - y)
    distance = np.hypot(x, radius - y) + np.array([-1, -1, 1, 1]) * WHEEL_OFFSET_M
    return steering, omega * distance
