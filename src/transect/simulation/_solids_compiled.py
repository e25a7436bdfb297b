"""Compiled loops of `solids`: first intersections of rays with boxes, cylinders, ellipsoids and foliage."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit  # pyright: ignore[reportMissingTypeStubs]

SHAPE_BOX, SHAPE_CYLINDER, SHAPE_ELLIPSOID = 0, 1, 2
LEAF_SIZE_M = 0.025
"""Rays that enter foliage within a cell of this size are stopped at the same depth."""
_NEVER = np.inf

# Functions called per ray do not count references of arrays (`_nrt`), which would take longer than much of
# their work. They create no arrays, so there is nothing to count.
_PER_RAY: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}
_INLINE: dict[str, Any] = {**_PER_RAY, "forceinline": True}
"""For functions with all arrays of the solids as arguments, whose passing is expensive."""


@njit(**_PER_RAY)
def offset_at(track: int, tracks: Any, step: float, t: float) -> Any:
    """Return the offset of a periodic track at t seconds, by linear interpolation; zero for track -1."""
    if track < 0:
        return 0.0, 0.0, 0.0
    points = tracks.shape[1]
    phase = (t / step) % points
    k = int(phase)
    u, p, q = phase - k, k % points, (k + 1) % points
    x = tracks[track, p, 0] + u * (tracks[track, q, 0] - tracks[track, p, 0])
    y = tracks[track, p, 1] + u * (tracks[track, q, 1] - tracks[track, p, 1])
    z = tracks[track, p, 2] + u * (tracks[track, q, 2] - tracks[track, p, 2])
    return x, y, z


@njit(**_PER_RAY)
def _quadratic(a: float, b: float, c: float) -> Any:
    """Return both solutions of a s2 + 2 b s + c = 0 in order, infinite if there are none."""
    discriminant = b * b - a * c
    if discriminant < 0 or a < 1e-15:
        return _NEVER, -_NEVER
    root = np.sqrt(discriminant)
    return (-b - root) / a, (-b + root) / a


@njit(**_PER_RAY)
def _slab(o: float, d: float, half: float) -> Any:
    """Return the distances at which a ray enters and leaves the slab |x| <= half."""
    if abs(d) < 1e-12:
        return (-_NEVER, _NEVER) if abs(o) <= half else (_NEVER, -_NEVER)
    near, far = (-half - o) / d, (half - o) / d
    return (near, far) if near <= far else (far, near)


@njit(**_PER_RAY)
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


@njit(**_PER_RAY)
def _cylinder(o: Any, d: Any, size: Any) -> Any:
    """Intersect a cylinder along z with radius ``size[0]`` and half length ``size[2]``."""
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


@njit(**_PER_RAY)
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


@njit(**_PER_RAY)
def _hash_uniform(x: int, y: int, z: int, salt: int) -> float:
    """Return a hash of four integers, uniform between 0 and 1 (the mixing of splitmix64)."""
    h = np.uint64(salt) + np.uint64(0x9E3779B97F4A7C15)
    for part in (x, y, z):
        h ^= np.uint64(part + 1_000_003)
        h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        h ^= h >> np.uint64(31)
    return (np.float64(h >> np.uint64(11)) + 0.5) * 2.0**-53


@njit(**_PER_RAY)
def _depth(o: Any, d: Any, near: float, density: float, salt: int) -> float:
    """Return the range at which foliage stops a ray (Beer-Lambert), equal for rays that enter together."""
    at = max(near, 0.0)
    u = _hash_uniform(
        int(np.floor((o[0] + at * d[0]) / LEAF_SIZE_M)),
        int(np.floor((o[1] + at * d[1]) / LEAF_SIZE_M)),
        int(np.floor((o[2] + at * d[2]) / LEAF_SIZE_M)),
        salt,
    )
    return at - np.log(u) / density


@njit(**_PER_RAY)
def _intersect(shape: int, size: Any, density: float, salt: int, o: Any, d: Any) -> Any:
    """Return the range of the intersection of a ray with a solid, in the solid's axes, and the normal."""
    if shape == SHAPE_BOX:
        near, far, normal = _box(o, d, size)
    elif shape == SHAPE_CYLINDER:
        near, far, normal = _cylinder(o, d, size)
    else:
        near, far, normal = _ellipsoid(o, d, size)
    if near > far or far < 0.0:
        return _NEVER, normal
    if density < _NEVER:
        depth = _depth(o, d, near, density, salt)
        return (depth if depth < far else _NEVER), normal
    return (near if near > 0.0 else _NEVER), normal


@njit(**_INLINE)
def _gap(cx: float, cy: float, cz: float, r: float, d: Any, far: float) -> float:
    """Return a value <= 0 if a ray intersects a sphere at (cx, cy, cz) from its origin."""
    along = cx * d[0] + cy * d[1] + cz * d[2]
    offset_squared = cx * cx + cy * cy + cz * cz - along * along
    return max(offset_squared - r * r, max(-along, along - far) - r)


@njit(**_INLINE)
def _measure_gaps(centre: Any, radius: Any, o: Any, d: Any, far: float, gaps: Any) -> None:
    """Write the gaps to the bounding spheres of groups of solids.

    Without branches, and with one number type, so that the loop is vectorised.
    """
    x, y, z = centre[0], centre[1], centre[2]
    for g in range(len(gaps)):
        gaps[g] = _gap(x[g] - o[0], y[g] - o[1], z[g] - o[2], radius[g], d, far)


@njit(**_INLINE)
def _to_solid(rotation: Any, i: int, x: float, y: float, z: float) -> Any:
    """Return a vector of the world in the axes of solid i."""
    return (
        rotation[i, 0, 0] * x + rotation[i, 1, 0] * y + rotation[i, 2, 0] * z,
        rotation[i, 0, 1] * x + rotation[i, 1, 1] * y + rotation[i, 2, 1] * z,
        rotation[i, 0, 2] * x + rotation[i, 1, 2] * y + rotation[i, 2, 2] * z,
    )


@njit(**_INLINE)
def _intersect_solid(a: Any, i: int, o: Any, d: Any, t: float) -> Any:
    """Return the range at which a ray of the world intersects solid i at t seconds, and the normal."""
    moved = offset_at(a.track[i], a.tracks, a.track_step, t)
    u, v, w = (
        o[0] - a.centre[i, 0] - moved[0],
        o[1] - a.centre[i, 1] - moved[1],
        o[2] - a.centre[i, 2] - moved[2],
    )
    local_o = _to_solid(a.rotation, i, u, v, w)
    local_d = _to_solid(a.rotation, i, d[0], d[1], d[2])
    half = (a.size[i, 0], a.size[i, 1], a.size[i, 2])
    return _intersect(a.shape[i], half, a.density[i], i, local_o, local_d)


@njit(**_INLINE)
def _find_nearest_in_group(a: Any, g: int, o: Any, d: Any, limit: float, t: float) -> Any:
    """Return the distance to the nearest solid of a group (inf for none), its number and its normal."""
    best, number, outward = limit, 0, (0.0, 0.0, 0.0)
    for m in range(a.first[g], a.first[g + 1]):
        i = a.member[m]
        x, y, z = a.ball_centre[i, 0] - o[0], a.ball_centre[i, 1] - o[1], a.ball_centre[i, 2] - o[2]
        if _gap(x, y, z, a.ball_radius[i], d, best) <= 0.0:
            distance, normal = _intersect_solid(a, i, o, d, t)
            if distance < best:
                best, number, outward = distance, i + 1, normal
    return (best if number else _NEVER), number, outward


@njit(**_PER_RAY)
def _find_nearest(a: Any, origins: Any, directions: Any, limit: Any, t: Any, gaps: Any, met: Any) -> None:
    """Write the hits of rays: ranges, numbers and normals; `gaps` (groups,) is a work array."""
    ranges, number, normals = met
    for j in range(len(ranges)):
        o = (origins[j, 0], origins[j, 1], origins[j, 2])
        d = (directions[j, 0], directions[j, 1], directions[j, 2])
        _measure_gaps(a.group_centre, a.group_radius, o, d, limit[j], gaps)
        outward = (0.0, 0.0, 0.0)
        for g in range(len(gaps)):
            if gaps[g] <= 0.0:
                distance, k, normal = _find_nearest_in_group(a, g, o, d, min(limit[j], ranges[j]), t[j])
                if k:
                    ranges[j], number[j], outward = distance, k, normal
        if number[j]:
            i = number[j] - 1
            for c in range(3):
                normals[j, c] = (
                    a.rotation[i, c, 0] * outward[0]
                    + a.rotation[i, c, 1] * outward[1]
                    + a.rotation[i, c, 2] * outward[2]
                )


@njit(cache=True, nogil=True)
def find_nearest_hits(a: Any, origins: Any, directions: Any, limit: Any, t: Any) -> Any:
    """Return ranges, numbers from 1 and normals of the first hits of n rays; see `Solids.nearest`."""
    n = len(origins)
    ranges, number, normals = np.full(n, np.inf), np.zeros(n, np.int32), np.full((n, 3), np.nan)
    _find_nearest(a, origins, directions, limit, t, np.empty(len(a.group_radius)), (ranges, number, normals))
    return ranges, number, normals
