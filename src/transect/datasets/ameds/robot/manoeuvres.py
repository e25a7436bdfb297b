"""The manoeuvres of Figure 7, told from the steering angles, or from how the platform really moved.

The figure itself is not in our copy of the document. Its text fixes the signs: all four steering angles are
positive in a "Left Crab Turn", and a positive angle turns a wheel to the left. The others follow: a left turn
has the front wheels to the left and the rear wheels to the right; a spot turn has each wheel along a circle
about the middle, so that wheels at opposite corners lean the same way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Mask
from transect.geometry.array_checks import floats
from transect.robots.four_wheel_steering.geometry import FourWheelGeometry
from transect.robots.four_wheel_steering.wheels import WHEELS

STRAIGHT = "straight"
LEFT_TURN, RIGHT_TURN = "left turn", "right turn"
LEFT_CRAB, RIGHT_CRAB = "left crab turn", "right crab turn"
SPOT, LEFT_SPOT, RIGHT_SPOT = "spot turn", "left spot turn", "right spot turn"
MIXED = "mixed"
"""No manoeuvre of Figure 7: the wheels contradict each other."""
STANDING = "standing"
UNKNOWN = "unknown"

DEAD_BAND = np.radians(2.0)
"""Steering below this is straight: the wheels are mounted no better than 2 degrees (section 2)."""
LEAST_SPEED = 0.02
"""m/s below which the platform, or a wheel, stands."""


def classify_steering(
    steering: ArrayLike,
    geometry: FourWheelGeometry,
    drive: ArrayLike | None = None,
    dead_band: float = DEAD_BAND,
) -> NDArray[np.str_]:
    """Manoeuvre (...) that the wheels are set to.

    Parameters
    ----------
    steering : (..., 4)
        Steering angles, rad.
    drive : (..., 4), optional
        Rim speeds, m/s: they tell a left spot turn from a right one.
    dead_band : float
        Smaller angles are straight, rad.
    """
    phi = floats("steering", steering, (..., WHEELS))
    sign = np.where(np.abs(phi) <= dead_band, 0.0, np.sign(phi))
    front, rear = sign[..., geometry.ends > 0], sign[..., geometry.ends < 0]
    leans = sign * geometry.ends * geometry.sides
    cases = {
        UNKNOWN: ~_all(np.isfinite(phi)),
        STRAIGHT: _all(sign == 0),
        LEFT_CRAB: _all(sign >= 0) & _some(front > 0) & _some(rear > 0),
        RIGHT_CRAB: _all(sign <= 0) & _some(front < 0) & _some(rear < 0),
        LEFT_TURN: _all(front >= 0) & _all(rear <= 0),
        RIGHT_TURN: _all(front <= 0) & _all(rear >= 0),
        **_spot_turns(_all(leans < 0), drive, geometry),
    }
    return np.select(list(cases.values()), list(cases), MIXED)


def _all(wheels: Mask) -> Mask:
    return np.asarray(wheels.all(axis=-1))


def _some(wheels: Mask) -> Mask:
    return np.asarray(wheels.any(axis=-1))


def _spot_turns(spot: Mask, drive: ArrayLike | None, geometry: FourWheelGeometry) -> dict[str, Mask]:
    """To the left the right wheels go forward and the left ones back."""
    if drive is None:
        return {SPOT: spot}
    turning = -(geometry.sides * floats("drive", drive, (..., WHEELS))).mean(axis=-1)
    return {
        LEFT_SPOT: spot & (turning > LEAST_SPEED),
        RIGHT_SPOT: spot & (turning < -LEAST_SPEED),
        SPOT: spot,
    }


def classify_motion(
    twist: ArrayLike,
    geometry: FourWheelGeometry,
    slide: float = np.radians(10.0),
    curve: float = 0.05,
    least_speed: float = LEAST_SPEED,
) -> NDArray[np.str_]:
    """Manoeuvre (...) that the platform really made: on loose ground a turn can become a crab or a spot turn.

    Parameters
    ----------
    twist : (..., 3)
        Of Platform: vx, vy in m/s, wz in rad/s.
    slide : float
        Angle between the line on which it goes and that on which it faces, rad, from which it crabs.
    curve : float
        Curvature from which it is a turn, 1/m.
    least_speed : float
        m/s, of the middle and of the corners.
    """
    v = floats("twist", twist, (..., 3))
    speed = np.hypot(v[..., 0], v[..., 1])
    corner = np.hypot(geometry.half_length, geometry.half_width)
    turning = v[..., 2] * corner
    # Backwards the same wheels make the opposite twist: as steered, not as seen from above.
    way = np.where(v[..., 0] < 0, -1.0, 1.0)
    sideways = np.arctan2(way * v[..., 1], np.abs(v[..., 0]))
    bend = way * v[..., 2]
    cases: dict[str, Mask] = {
        UNKNOWN: ~_all(np.isfinite(v)),
        STANDING: np.maximum(speed, np.abs(turning)) < least_speed,
        LEFT_SPOT: turning > np.maximum(speed, least_speed),
        RIGHT_SPOT: -turning > np.maximum(speed, least_speed),
        LEFT_CRAB: sideways > slide,
        RIGHT_CRAB: sideways < -slide,
        LEFT_TURN: bend > curve * speed,
        RIGHT_TURN: -bend > curve * speed,
    }
    return np.select(list(cases.values()), list(cases), STRAIGHT)
