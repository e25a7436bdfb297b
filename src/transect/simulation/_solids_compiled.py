"""Compiled loops of `solids`: where one ray first meets a box, a cylinder, an ellipsoid or leaves.

For other ray casters: `nearest(solids.arrays, ox, oy, oz, dx, dy, dz, max_range, t)`, callable from any
compiled loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit  # pyright: ignore[reportMissingTypeStubs]

BOX, CYLINDER, ELLIPSOID = 0, 1, 2
LEAF = 0.025
"""Metres: leaves closer together than this stop the same rays."""
_NEVER = np.inf


@njit(cache=True, nogil=True)
def offset_at(a: Any, i: int, t: float) -> Any:
    """Return where the track of solid i is at t seconds: it moves along straight pieces and begins again."""
    if a.track[i] < 0:
        return 0.0, 0.0, 0.0
    path = a.tracks[a.track[i]]
    place = (t / a.track_step) % len(path)
    k = int(place)
    u = place - k
    p, q = path[k % len(path)], path[(k + 1) % len(path)]
    return p[0] + u * (q[0] - p[0]), p[1] + u * (q[1] - p[1]), p[2] + u * (q[2] - p[2])


@njit(cache=True, nogil=True)
def _quadratic(a: float, b: float, c: float) -> Any:
    """Return both solutions of a s2 + 2 b s + c = 0 in order, infinite where there are none."""
    under = b * b - a * c
    if under < 0 or a < 1e-15:
        return _NEVER, -_NEVER
    root = np.sqrt(under)
    return (-b - root) / a, (-b + root) / a


@njit(cache=True, nogil=True)
def _slab(o: float, d: float, half: float) -> Any:
    """Return where a ray enters and leaves the slab |x| <= half."""
    if abs(d) < 1e-12:
        return (-_NEVER, _NEVER) if abs(o) <= half else (_NEVER, -_NEVER)
    near, far = (-half - o) / d, (half - o) / d
    return (near, far) if near <= far else (far, near)


@njit(cache=True, nogil=True)
def _box(o: Any, d: Any, size: Any) -> Any:
    near, far, axis = -_NEVER, _NEVER, 0
    for k in range(3):
        enters, leaves = _slab(o[k], d[k], size[k])
        if enters > near:
            near, axis = enters, k
        far = min(far, leaves)
    sign = -1.0 if d[axis] > 0 else 1.0
    normal = (sign if axis == 0 else 0.0, sign if axis == 1 else 0.0, sign if axis == 2 else 0.0)
    return near, far, normal


@njit(cache=True, nogil=True)
def _cylinder(o: Any, d: Any, size: Any) -> Any:
    """Meet a cylinder along z with radius ``size[0]`` and half length ``size[2]``."""
    a, b, r = d[0] * d[0] + d[1] * d[1], o[0] * d[0] + o[1] * d[1], size[0]
    if a < 1e-15:
        side_in, side_out = (-_NEVER, _NEVER) if o[0] * o[0] + o[1] * o[1] <= r * r else (_NEVER, -_NEVER)
    else:
        side_in, side_out = _quadratic(a, b, o[0] * o[0] + o[1] * o[1] - r * r)
    cap_in, cap_out = _slab(o[2], d[2], size[2])
    if side_in >= cap_in:
        normal = ((o[0] + side_in * d[0]) / r, (o[1] + side_in * d[1]) / r, 0.0)
    else:
        normal = (0.0, 0.0, -1.0 if d[2] > 0 else 1.0)
    return max(side_in, cap_in), min(side_out, cap_out), normal


@njit(cache=True, nogil=True)
def _ellipsoid(o: Any, d: Any, size: Any) -> Any:
    ax, ay, az = o[0] / size[0], o[1] / size[1], o[2] / size[2]
    bx, by, bz = d[0] / size[0], d[1] / size[1], d[2] / size[2]
    near, far = _quadratic(
        bx * bx + by * by + bz * bz, ax * bx + ay * by + az * bz, ax * ax + ay * ay + az * az - 1.0
    )
    if near > far:
        return near, far, (0.0, 0.0, 1.0)
    nx, ny, nz = (ax + near * bx) / size[0], (ay + near * by) / size[1], (az + near * bz) / size[2]
    norm = np.sqrt(nx * nx + ny * ny + nz * nz)
    return near, far, (nx / norm, ny / norm, nz / norm)


@njit(cache=True, nogil=True)
def _even(x: int, y: int, z: int, salt: int) -> float:
    """Return a number between 0 and 1, the same for the same four (the mixing of splitmix64)."""
    h = np.uint64(salt) + np.uint64(0x9E3779B97F4A7C15)
    for part in (x, y, z):
        h ^= np.uint64(part + 1_000_003)
        h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        h ^= h >> np.uint64(31)
    return (np.float64(h >> np.uint64(11)) + 0.5) * 2.0**-53


@njit(cache=True, nogil=True)
def _depth(o: Any, d: Any, near: float, density: float, salt: int) -> float:
    """Return how far a ray gets into leaves (Beer and Lambert), the same for rays that enter together."""
    at = max(near, 0.0)
    u = _even(
        int(np.floor((o[0] + at * d[0]) / LEAF)),
        int(np.floor((o[1] + at * d[1]) / LEAF)),
        int(np.floor((o[2] + at * d[2]) / LEAF)),
        salt,
    )
    return at - np.log(u) / density


@njit(cache=True, nogil=True)
def _local(rotation: Any, x: float, y: float, z: float) -> Any:
    """Return a vector of the world in the solid's axes."""
    return (
        rotation[0, 0] * x + rotation[1, 0] * y + rotation[2, 0] * z,
        rotation[0, 1] * x + rotation[1, 1] * y + rotation[2, 1] * z,
        rotation[0, 2] * x + rotation[1, 2] * y + rotation[2, 2] * z,
    )


@njit(cache=True, nogil=True)
def _meet(a: Any, i: int, o: Any, d: Any) -> Any:
    """Return the distance at which a ray, in the solid's axes, meets solid i, and the normal there."""
    if a.shape[i] == BOX:
        near, far, normal = _box(o, d, a.size[i])
    elif a.shape[i] == CYLINDER:
        near, far, normal = _cylinder(o, d, a.size[i])
    else:
        near, far, normal = _ellipsoid(o, d, a.size[i])
    if near > far or far < 0.0:
        return _NEVER, normal
    if a.density[i] < _NEVER:
        depth = _depth(o, d, near, a.density[i], i)
        return (depth if depth < far else _NEVER), normal
    return (near if near > 0.0 else _NEVER), normal


@njit(cache=True, nogil=True)
def nearest(
    a: Any, ox: float, oy: float, oz: float, dx: float, dy: float, dz: float, max_range: float, t: float
) -> Any:
    """Return what a ray meets first.

    Parameters
    ----------
    a : Arrays
        `Solids.arrays`.
    ox, oy, oz, dx, dy, dz : float
        Origin (m) and unit direction of the ray in the world.
    max_range : float
        m; nothing further away counts, so a ray caster gives the distance it has so far.
    t : float
        Seconds since the day began, for what moves.

    Returns
    -------
    distance : float
        m; `max_range` where nothing is met.
    index : int
        Of the solid; -1 where nothing is met.
    nx, ny, nz : float
        Unit normal of its surface in the world; (0, 0, 1) where nothing is met.
    """
    best, found, normal = max_range, -1, (0.0, 0.0, 1.0)
    for i in range(len(a.shape)):
        x, y, z = offset_at(a, i, t)
        cx, cy, cz = a.centre[i, 0] + x - ox, a.centre[i, 1] + y - oy, a.centre[i, 2] + z - oz
        along, reach = cx * dx + cy * dy + cz * dz, a.reach[i]
        if along < -reach or along - reach > best:
            continue
        if cx * cx + cy * cy + cz * cz - along * along > reach * reach:
            continue
        o, d = _local(a.rotation[i], -cx, -cy, -cz), _local(a.rotation[i], dx, dy, dz)
        distance, local_normal = _meet(a, i, o, d)
        if distance < best:
            best, found, normal = distance, i, local_normal
    if found < 0:
        return best, found, 0.0, 0.0, 1.0
    r = a.rotation[found]
    return (
        best,
        found,
        r[0, 0] * normal[0] + r[0, 1] * normal[1] + r[0, 2] * normal[2],
        r[1, 0] * normal[0] + r[1, 1] * normal[1] + r[1, 2] * normal[2],
        r[2, 0] * normal[0] + r[2, 1] * normal[1] + r[2, 2] * normal[2],
    )


@njit(cache=True, nogil=True)
def nearest_of_rays(a: Any, origins: Any, directions: Any, limit: Any, t: Any) -> Any:
    """Return ranges, numbers from 1 and normals of what n rays meet; see `Solids.nearest`."""
    n = len(origins)
    ranges, number, normal = np.empty(n), np.empty(n, np.int32), np.empty((n, 3))
    for i in range(n):
        o, d = origins[i], directions[i]
        distance, index, nx, ny, nz = nearest(a, o[0], o[1], o[2], d[0], d[1], d[2], limit[i], t[i])
        met = index >= 0
        ranges[i], number[i] = distance if met else np.inf, index + 1
        normal[i, 0], normal[i, 1], normal[i, 2] = (nx, ny, nz) if met else (np.nan, np.nan, np.nan)
    return ranges, number, normal
