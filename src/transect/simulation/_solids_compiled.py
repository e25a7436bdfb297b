"""Compiled loops of `solids`: where one ray first meets a box, a cylinder, an ellipsoid or leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit  # pyright: ignore[reportMissingTypeStubs]

BOX, CYLINDER, ELLIPSOID = 0, 1, 2
LEAF = 0.025
"""Metres: leaves closer together than this stop the same rays."""
_NEVER = np.inf


@njit(cache=True, nogil=True)
def offset_at(track: int, tracks: Any, step: float, t: float) -> Any:
    """Return where a track is at t seconds: it moves along straight pieces and begins again; -1 stays."""
    if track < 0:
        return 0.0, 0.0, 0.0
    points = tracks.shape[1]
    place = (t / step) % points
    k = int(place)
    u, p, q = place - k, k % points, (k + 1) % points
    x = tracks[track, p, 0] + u * (tracks[track, q, 0] - tracks[track, p, 0])
    y = tracks[track, p, 1] + u * (tracks[track, q, 1] - tracks[track, p, 1])
    z = tracks[track, p, 2] + u * (tracks[track, q, 2] - tracks[track, p, 2])
    return x, y, z


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
def _meet(shape: int, size: Any, density: float, salt: int, o: Any, d: Any) -> Any:
    """Return the distance at which a ray, in a solid's axes, meets it, and the normal there."""
    if shape == BOX:
        near, far, normal = _box(o, d, size)
    elif shape == CYLINDER:
        near, far, normal = _cylinder(o, d, size)
    else:
        near, far, normal = _ellipsoid(o, d, size)
    if near > far or far < 0.0:
        return _NEVER, normal
    if density < _NEVER:
        depth = _depth(o, d, near, density, salt)
        return (depth if depth < far else _NEVER), normal
    return (near if near > 0.0 else _NEVER), normal


@njit(cache=True, nogil=True)
def _may_meet(x: Any, y: Any, z: Any, reach: Any, o: Any, d: Any, far: float, near: Any) -> None:
    """Write which solids a ray may meet, by the balls around them: without branches, several at once."""
    ox, oy, oz = o
    dx, dy, dz = d
    for i in range(len(near)):
        cx, cy, cz, r = x[i] - ox, y[i] - oy, z[i] - oz, reach[i]
        along = cx * dx + cy * dy + cz * dz
        aside = cx * cx + cy * cy + cz * cz - along * along
        near[i] = (aside <= r * r) & (along >= -r) & (along - r <= far)


@njit(cache=True, nogil=True)
def nearest_of_rays(a: Any, origins: Any, directions: Any, limit: Any, t: Any) -> Any:
    """Return ranges, numbers from 1 and normals of what n rays meet; see `Solids.nearest`."""
    n = len(origins)
    ranges, number, normals = np.full(n, np.inf), np.zeros(n, np.int32), np.full((n, 3), np.nan)
    near = np.empty(len(a.shape), np.bool_)
    # Out of the tuple once: handing it on counts references, which takes longer than the work.
    x, y, z, reach = a.place[0], a.place[1], a.place[2], a.reach
    shape, centre, size, turn, density = a.shape, a.centre, a.size, a.rotation, a.density
    track, tracks, step = a.track, a.tracks, a.track_step
    for j in range(n):
        o = (origins[j, 0], origins[j, 1], origins[j, 2])
        d = (directions[j, 0], directions[j, 1], directions[j, 2])
        _may_meet(x, y, z, reach, o, d, limit[j], near)
        best = limit[j]
        for i in range(len(near)):
            if not near[i]:
                continue
            moved = offset_at(track[i], tracks, step, t[j])
            u, v, w = (
                o[0] - centre[i, 0] - moved[0],
                o[1] - centre[i, 1] - moved[1],
                o[2] - centre[i, 2] - moved[2],
            )
            local_o = _turned(turn, i, u, v, w)
            local_d = _turned(turn, i, d[0], d[1], d[2])
            half = (size[i, 0], size[i, 1], size[i, 2])
            distance, normal = _meet(shape[i], half, density[i], i, local_o, local_d)
            if distance < best:
                best = ranges[j] = distance
                number[j] = i + 1
                for k in range(3):
                    normals[j, k] = (
                        turn[i, k, 0] * normal[0] + turn[i, k, 1] * normal[1] + turn[i, k, 2] * normal[2]
                    )
    return ranges, number, normals


@njit(cache=True, nogil=True)
def _turned(turn: Any, i: int, x: float, y: float, z: float) -> Any:
    """Return a vector of the world in the axes of solid i."""
    return (
        turn[i, 0, 0] * x + turn[i, 1, 0] * y + turn[i, 2, 0] * z,
        turn[i, 0, 1] * x + turn[i, 1, 1] * y + turn[i, 2, 1] * z,
        turn[i, 0, 2] * x + turn[i, 1, 2] * y + turn[i, 2, 2] * z,
    )
