"""Motion in the plane: poses (..., 3) are x, y in metres and the heading in radians, from x towards y.

Headings are not wrapped. A motion is a body twist times its duration, in the frame of the moving body; it
describes a circular arc.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.geometry.array_checks import check_times_ns, floats


def rotations_from_headings(headings: ArrayLike) -> Floats:
    """Matrices (..., 2, 2) that take vectors of body frames with headings (...) in rad to the plane."""
    angle = floats("headings", headings, (...,))
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([np.stack([c, -s], axis=-1), np.stack([s, c], axis=-1)], axis=-2)


def motions_from_rates(t_ns: ArrayLike, rates: ArrayLike) -> Floats:
    """Motions (n - 1, 3) between times, by the trapezoidal rule.

    Parameters
    ----------
    t_ns : (n,) int64 array
        Sorted times.
    rates : (n, 3) array
        Speeds along x and y of the body in m/s, and the turn rate in rad/s.
    """
    twist = floats("rates", rates, ("n", 3))
    seconds = np.diff(check_times_ns("times", t_ns)) * 1e-9
    return seconds[:, None] * (twist[1:] + twist[:-1]) / 2


def integrate(motions: ArrayLike, start: ArrayLike = (0.0, 0.0, 0.0)) -> Floats:
    """Poses (n + 1, 3) of a body that starts at `start` and makes motions (n, 3); exact for circular arcs.

    All poses after a motion that is NaN are NaN.
    """
    step = floats("motions", motions, ("n", 3))
    first = floats("start", start, (3,))
    turn = step[:, 2]
    heading = first[2] + np.concatenate([[0.0], np.cumsum(turn)])
    # The chord of an arc of angle a is sin(a/2) / (a/2) times its length, along the heading at half the arc.
    chord = np.sinc(turn / (2 * np.pi))[:, None] * step[:, :2]
    displacement = np.einsum("nij,nj->ni", rotations_from_headings(heading[:-1] + turn / 2), chord)
    position = first[:2] + np.concatenate([np.zeros((1, 2)), np.cumsum(displacement, axis=0)])
    return np.column_stack([position, heading])


def points_from_polar(ranges: ArrayLike, angles: ArrayLike) -> Floats:
    """Points (..., 3) in a sensor's frame: ranges (...) in m at bearings (...) in rad, in its x-y plane."""
    r, a = np.asarray(ranges, dtype=np.float64), np.asarray(angles, dtype=np.float64)
    return np.stack([r * np.cos(a), r * np.sin(a), np.zeros(np.broadcast(r, a).shape)], axis=-1)


def hull_of(points: Floats) -> Floats:
    """Return the corners (k, 2) of the convex hull of points (n, 2), counter-clockwise (Andrew's chain)."""
    ordered = np.unique(points.round(9), axis=0)

    def half(line: Floats) -> list[Floats]:
        kept: list[Floats] = []
        for point in line:
            while len(kept) > 1 and _turn(kept[-2], kept[-1], point) <= 0:
                kept.pop()
            kept.append(point)
        return kept[:-1]

    return np.array([*half(ordered), *half(ordered[::-1])]).reshape(-1, 2)


def _turn(a: Floats, b: Floats, c: Floats) -> float:
    (ux, uy), (vx, vy) = b - a, c - a
    return float(ux * vy - uy * vx)
