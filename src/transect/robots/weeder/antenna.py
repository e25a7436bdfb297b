"""The gps antenna: from base_link to it and back, and its fixes in metres.

Table 1 puts it at (1.8, -0.030, 1.593) m in base_link. What is known of the robot's attitude is its heading,
so that the ground counts as level.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.errors import GeometryError
from transect.geometry import geodesy, rotations
from transect.geometry.geodesy import Axes


def antenna_from_base(base: ArrayLike, heading: ArrayLike, lever: ArrayLike) -> Floats:
    """Positions (..., 3) of the antenna for positions (..., 3) of base_link.

    Parameters
    ----------
    base : (..., 3) array
        Metres, in a frame whose z axis points up.
    heading : (...) array
        Of base_link, rad from x to y.
    lever : (3,) array
        The antenna in base_link, metres (`Geometry.antenna`).
    """
    return np.asarray(base, dtype=np.float64) + _turn(heading, lever)


def base_from_antenna(antenna: ArrayLike, heading: ArrayLike, lever: ArrayLike) -> Floats:
    """Positions (..., 3) of base_link for those of the antenna: the inverse of `antenna_from_base`."""
    return np.asarray(antenna, dtype=np.float64) - _turn(heading, lever)


def _turn(heading: ArrayLike, lever: ArrayLike) -> Floats:
    turn = rotations.quaternion_from_euler("z", np.asarray(heading, dtype=np.float64)[..., None])
    return rotations.rotate(turn, lever)


def local_from_fixes(
    fixes: ArrayLike, origin: ArrayLike | None = None, axes: Axes = "ENU"
) -> tuple[Floats, Floats]:
    """Fixes (n, 3), latitude and longitude in rad and height in m, in metres about an origin.

    Parameters
    ----------
    origin : (3,) array, optional
        Geodetic; the first fix that was measured, if None.

    Returns
    -------
    positions : (n, 3) array
        East, north, up unless other axes are asked for; NaN where there was no fix.
    origin : (3,) array
    """
    points = np.asarray(fixes, dtype=np.float64)
    start = _first_measured(points) if origin is None else np.asarray(origin, dtype=np.float64)
    return geodesy.local_from_geodetic(points, start, axes), start


def _first_measured(points: Floats) -> Floats:
    measured = points[np.isfinite(points).all(axis=-1)]
    if not len(measured):
        raise GeometryError("there is no fix to measure from", why=f"all {len(points)} are NaN")
    return measured[0]
