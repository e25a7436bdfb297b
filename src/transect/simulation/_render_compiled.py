"""Compiled shading of ground, solids and sky for each ray, and the sensor model.

The ground is passed as a tuple: `texels`, `first` and size of a texel (m) of its tile, `rock` and `openness`
(ny, nx) of the terrain, its cell (m), x and y of its first corner, and the colours (5, 3) dark, light, patch,
rock and plant of `textures.GroundAppearance`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit  # pyright: ignore[reportMissingTypeStubs]

_TILE_TEXELS = 2048
_PER_UNIT = np.float32(1.0 / 100.0)
_LARGE_COPY_LOD, _SMALL_COPY_LOD, _PATCHES_LOD = np.log2(9.3), np.log2(4.7), np.log2(28.0)
"""Levels of detail: scales of the large and small copies of the tile, finest detail used of the large one."""
_HILLS_LOD, _CLOUDS_LOD = np.log2(2.4), np.log2(37.5)
"""Levels of detail of the tile in distant hills and clouds."""
_MAX_HILL_SINE = 0.056
"""Sine of the elevation above which there is only sky; see `_hills`."""

# Functions called per ray do not count references of arrays (`_nrt`), which would take longer than much of
# their work. They create no arrays, so there is nothing to count.
_PER_RAY: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "forceinline": True,
}


@njit(**_PER_RAY)
def _texel(texels: Any, first: Any, level: int, u: Any, v: Any) -> Any:
    """Bilinear brightness at (u, v) tiles of one level."""
    n = _TILE_TEXELS >> level
    x, y = u * n - 0.5, v * n - 0.5
    i, j = int(np.floor(y)), int(np.floor(x))
    fx, fy = np.float32(x - j), np.float32(y - i)
    mask = n - 1
    top, below = first[level] + (i & mask) * n, first[level] + ((i + 1) & mask) * n
    a, b = np.float32(texels[top + (j & mask)]), np.float32(texels[top + ((j + 1) & mask)])
    c, d = np.float32(texels[below + (j & mask)]), np.float32(texels[below + ((j + 1) & mask)])
    above = a + fx * (b - a)
    return (above + fy * (c + fx * (d - c) - above)) * _PER_UNIT


@njit(**_PER_RAY)
def _sample(texels: Any, first: Any, x: Any, y: Any, texel: Any, lod: Any) -> Any:
    """Trilinear brightness at (x, y) m of a tile with texels of the given size.

    `lod` (level of detail) is the binary logarithm of a ray's footprint in texels.
    """
    per_tile = 1.0 / (texel * _TILE_TEXELS)
    u, v = x * per_tile, y * per_tile
    lod = min(max(lod, 0.0), len(first) - 1.001)
    level = int(lod)
    fraction = np.float32(lod - level)
    fine = _texel(texels, first, level, u, v)
    if fraction < np.float32(0.02):
        return fine
    return fine + fraction * (_texel(texels, first, level + 1, u, v) - fine)


@njit(**_PER_RAY)
def _hash_uniform(number: int) -> Any:
    """Return a hash of an integer, uniform in [0, 1) (the mixing of splitmix64)."""
    h = np.uint64(number + 1_000_003) * np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.float64((h ^ (h >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@njit(**_PER_RAY)
def _cover(rock: Any, gx: Any, gy: Any, jitter: Any) -> int:
    """Return the number of the rock or plant at gx, gy in cells, 0 for ground; edges follow the texture."""
    ny, nx = rock.shape
    ix, iy = min(max(int(gx), 0), nx - 2), min(max(int(gy), 0), ny - 2)
    u, v = gx - ix, gy - iy
    found, weight, max_weight = 0, 0.0, 0.0
    for k in range(4):
        a, b = k & 1, k >> 1
        number = rock[iy + b, ix + a]
        if number != 0:
            w = (u if a else 1.0 - u) * (v if b else 1.0 - v)
            weight += w
            if w > max_weight:
                found, max_weight = int(number), w
    min_weight = 0.5 if found > 0 else 0.2  # the sides of plants belong to the plant
    return found if weight > min_weight + 0.35 * (jitter - 1.0) else 0


@njit(**_PER_RAY)
def _albedo(ground: Any, point: Any, up: Any, width: Any) -> Any:
    """Linear albedo (red, green, blue) of the ground at a point, averaged over a footprint of `width` m.

    `up` is the vertical component of the normal.
    """
    texels, first, texel, rock, _, cell, corner, colours = ground
    x, y, z = point
    lod = np.log2(max(width / texel, 1e-6))
    fine = _sample(texels, first, x, y, texel, lod)
    # Only the patches of the large copy are used, not its pebbles, which would be boulders.
    coarse = _sample(texels, first, x + 3.1, y + 1.7, texel * 9.3, max(lod, _PATCHES_LOD) - _LARGE_COPY_LOD)
    value = np.float64(fine) * (0.3 + 0.7 * coarse)
    if lod < 0.0:  # finer than the texels: a small copy of the tile
        small = _sample(texels, first, x + 0.3, y + 0.9, texel / 4.7, lod + _SMALL_COPY_LOD)
        value *= 1.0 + (small - 1.0) * min(1.0, -lod)
    number = _cover(rock, (x - corner[0]) / cell, (y - corner[1]) / cell, fine)
    if number == 0:
        mix = min(max(2.5 * (coarse - 1.05), 0.0), 0.7)
        blend = min(value * 0.5, 1.2)
        r = colours[0, 0] + blend * (colours[1, 0] - colours[0, 0])
        g = colours[0, 1] + blend * (colours[1, 1] - colours[0, 1])
        b = colours[0, 2] + blend * (colours[1, 2] - colours[0, 2])
        return (
            r + mix * (colours[2, 0] * value - r), g + mix * (colours[2, 1] * value - g),
            b + mix * (colours[2, 2] * value - b),
        )  # fmt: skip
    row = 3 if number > 0 else 4
    # The texture coordinates include the height, so that the tile is not stretched to streaks on steep sides.
    side = np.float64(_sample(texels, first, x + 0.8 * z, y + 0.6 * z, texel, lod))
    own = (0.6 + 0.8 * _hash_uniform(number)) * (0.2 + 0.8 * side)
    if number < 0:  # self-shadowing of leaves
        own *= 0.25 + 0.75 * up
    return colours[row, 0] * own, colours[row, 1] * own, colours[row, 2] * own


@njit(**_PER_RAY)
def _openness(ground: Any, x: Any, y: Any) -> Any:
    """Return the ratio of the sky that is visible from the ground at x, y (m)."""
    _, _, _, _, map_, cell, corner, _ = ground
    gx, gy = (x - corner[0]) / cell, (y - corner[1]) / cell
    ny, nx = map_.shape
    ix, iy = min(max(int(gx), 0), nx - 2), min(max(int(gy), 0), ny - 2)
    u, v = gx - ix, gy - iy
    low = map_[iy, ix] + u * (map_[iy, ix + 1] - map_[iy, ix])
    return low + v * (map_[iy + 1, ix] + u * (map_[iy + 1, ix + 1] - map_[iy + 1, ix]) - low)


@njit(**_PER_RAY)
def _lamps(lamps: Any, x: Any, y: Any, z: Any, nx: Any, ny: Any, nz: Any) -> Any:
    """Irradiance of spot lights; `lamps` (k, 8): position, unit direction in the world, half angle, power."""
    total = 0.0
    for k in range(len(lamps)):
        lx, ly, lz = lamps[k, 0] - x, lamps[k, 1] - y, lamps[k, 2] - z
        away = np.sqrt(lx * lx + ly * ly + lz * lz) + 1e-9
        facing = (lx * nx + ly * ny + lz * nz) / away
        axis = -(lx * lamps[k, 3] + ly * lamps[k, 4] + lz * lamps[k, 5]) / away
        angle = np.arccos(min(max(axis, -1.0), 1.0)) / (2.0 * lamps[k, 6])
        if facing > 0.0 and angle < 1.0:
            total += lamps[k, 7] * facing * 0.5 * (1.0 + np.cos(np.pi * angle)) / (away * away)
    return total


@njit(**_PER_RAY)
def _hills(azimuth: Any) -> Any:
    """Sine of the elevation of the distant hills at an azimuth (rad)."""
    hills = 0.022 + 0.016 * np.sin(2 * azimuth + 1.0) + 0.010 * np.sin(5 * azimuth + 2.0)
    hills += 0.005 * np.sin(11 * azimuth) + 0.0015 * np.sin(37 * azimuth) + 0.0008 * np.sin(83 * azimuth)
    return max(hills, 0.003)


@njit(**_PER_RAY)
def _background(texels: Any, first: Any, dx: Any, dy: Any, dz: Any, sky: Any) -> Any:
    """Radiance of the background: hills at the horizon, and the sky with clouds.

    `sky` (14,): horizon, zenith, distant hills (red, green, blue each), clouds, direction to the sun (3), its
    glow.
    """
    if dz < _MAX_HILL_SINE:
        azimuth = np.arctan2(dy, dx)
        hills = _hills(azimuth)
        if dz < hills:
            speck = _sample(texels, first, azimuth * 60.0, dz * 150.0, 0.05, _HILLS_LOD)
            haze = 0.55 + 0.35 * min(max(dz / hills, 0.0), 1.0)
            own = (1.0 - haze) * (0.5 + 0.5 * speck)
            return haze * sky[0] + own * sky[6], haze * sky[1] + own * sky[7], haze * sky[2] + own * sky[8]
    up = 1.0 - (1.0 - min(dz, 1.0)) ** 3
    x, y = dx / (dz + 0.15), dy / (dz + 0.15)
    cloud = _sample(texels, first, x * 2.0, y * 2.0, 0.004, _CLOUDS_LOD) - 1.0
    cloud += 0.7 * (_sample(texels, first, x * 9.0, y * 9.0, 0.004, _CLOUDS_LOD) - 1.0)
    white = min(max(0.15 + 3.0 * cloud, 0.0), 1.0) * sky[9]
    sun = max(dx * sky[10] + dy * sky[11] + dz * sky[12], 0.0)
    glow = sky[13] * (0.15 * sun**8 + 1.2 * sun**256)
    r = sky[0] + up * (sky[3] - sky[0])
    g = sky[1] + up * (sky[4] - sky[1])
    b = sky[2] + up * (sky[5] - sky[2])
    bright = 1.4 * sky[2]
    return r + white * (bright - r) + glow, g + white * (bright - g) + glow, b + white * (bright - b) + glow


@njit(**_PER_RAY)
def _surface_radiance(ground: Any, solids: Any, lights: Any, point: Any, hit: Any, width: Any) -> Any:
    """Radiance (red, green, blue) of a hit at a point, averaged over a footprint of `width` m.

    `hit` is its kind, its normal (3 numbers), and whether it is in the sun.
    """
    outdoors, lamps, _ = lights
    texels, first, texel = ground[0], ground[1], ground[2]
    x, y, z = point
    kind, nx, ny, nz, sunny = hit
    if kind == 0:
        r, g, b = _albedo(ground, point, nz, width)
        seen = 1.0 * _openness(ground, x, y)
    else:
        lod = np.log2(max(width / texel, 1e-6))
        own = 0.75 + 0.25 * np.float64(_sample(texels, first, x + 0.8 * z, y + 0.6 * z, texel, lod))
        k = kind - 1
        r, g, b, seen = solids[k, 0] * own, solids[k, 1] * own, solids[k, 2] * own, 1.0
    sun = (nx * outdoors[0] + ny * outdoors[1] + nz * outdoors[2]) if sunny else 0.0
    sky_seen = seen * (0.55 + 0.45 * nz)
    lamp = _lamps(lamps, x, y, z, nx, ny, nz) if len(lamps) else 0.0
    return (
        r * (sun * outdoors[3] + sky_seen * outdoors[6] + lamp),
        g * (sun * outdoors[4] + sky_seen * outdoors[7] + lamp),
        b * (sun * outdoors[5] + sky_seen * outdoors[8] + lamp),
    )


@njit(cache=True, nogil=True, error_model="numpy")
def shade(
    ground: Any, solids: Any, lights: Any, origin: Any, directions: Any, hits: Any, pixel: Any, out: Any
) -> None:
    """Write the linear radiance (n, 3) along rays.

    `solids` (k, 3) are albedos; `lights` a tuple: (9,) direction to the sun, irradiance of the sun and of the
    sky, then lamps (see `_lamps`) and sky (see `_background`); `hits` a tuple: ranges (n,), kinds (n,),
    normals (n, 3), whether they are in the sun (n,); `pixel` the angle between rays, rad.
    """
    ranges, kind, normals, lit = hits
    for i in range(len(directions)):
        dx, dy, dz = directions[i, 0], directions[i, 1], directions[i, 2]
        if kind[i] < 0:
            r, g, b = _background(ground[0], ground[1], dx, dy, dz, lights[2])
        else:
            s, nx, ny, nz = ranges[i], normals[i, 0], normals[i, 1], normals[i, 2]
            point = origin[0] + s * dx, origin[1] + s * dy, origin[2] + s * dz
            width = s * pixel / np.sqrt(max(-(dx * nx + dy * ny + dz * nz), 0.06))
            hit = (kind[i], nx, ny, nz, lit[i])
            r, g, b = _surface_radiance(ground, solids, lights, point, hit, width)
        out[i, 0], out[i, 1], out[i, 2] = r, g, b


@njit(cache=True, nogil=True)
def shadow_starts(origin: Any, directions: Any, ranges: Any, normals: Any, sun: Any, starts: Any) -> None:
    """Write the origins (n, 3) of shadow rays, just above the surface; NaN if it faces away from the sun."""
    for i in range(len(ranges)):
        facing = normals[i, 0] * sun[0] + normals[i, 1] * sun[1] + normals[i, 2] * sun[2]
        for c in range(3):
            point = origin[c] + ranges[i] * directions[i, c] + 0.003 * normals[i, c]
            starts[i, c] = point if facing > 0.0 else np.nan


@njit(cache=True, nogil=True)
def find_possibly_shaded(
    ground: Any, cell: Any, corner: Any, ball: Any, sun: Any, starts: Any, kind: Any, possible: Any
) -> None:
    """Write which shadow rays (n,) may hit something.

    The others start on the ground, above a cell of `ground` (rows, columns) that is True, and miss the
    bounding sphere (4,: centre, radius) of all solids; or they are NaN.
    """
    rows, columns = ground.shape
    for i in range(len(starts)):
        x, y, z = starts[i, 0], starts[i, 1], starts[i, 2]
        u, v = (x - corner[0]) / cell, (y - corner[1]) / cell
        clear = False
        if kind[i] == 0 and 0.0 <= u < columns and 0.0 <= v < rows and ground[int(v), int(u)]:
            x, y, z = ball[0] - x, ball[1] - y, ball[2] - z
            along = x * sun[0] + y * sun[1] + z * sun[2]
            offset_squared = x * x + y * y + z * z - along * along
            clear = ball[3] < 0.0 or along < -ball[3] or offset_squared > ball[3] * ball[3]
        possible[i] = not (clear or np.isnan(starts[i, 0]))


@njit(cache=True, nogil=True)
def develop(
    radiance: Any,
    noise: Any,
    quantiles: Any,
    gain: Any,
    read: Any,
    shot: Any,
    curve: Any,
    top: Any,
    pixels: Any,
) -> None:
    """Write pixels (n, c) of radiance (n, c): gain, shot and read noise, and the tone curve.

    `curve` is the pixel value by square root of the exposure, from 0 to that of `top`. `noise` (n, c) are 16
    bit random numbers, or empty, and `quantiles` their normal quantiles.
    """
    scale = np.float32((len(curve) - 1) / np.sqrt(top))
    for i in range(len(radiance)):
        for c in range(radiance.shape[1]):
            x = max(radiance[i, c] * gain, np.float32(0.0))
            if len(noise):
                x += quantiles[noise[i, c]] * np.sqrt(read + shot * x)
            x = min(max(x, np.float32(0.0)), top)
            pixels[i, c] = curve[int(np.sqrt(x) * scale + np.float32(0.5))]


@njit(cache=True, nogil=True, error_model="numpy")
def blur_along_flow(begin: int, end: int, picture: Any, flow: Any, out: Any) -> None:
    """Write rows of the mean of a picture (h, w, c) along minus the flow (h, w, 2) of each pixel."""
    rows, columns, bands = picture.shape
    for i in range(begin, end):
        for j in range(columns):
            dx, dy = flow[i, j, 0], flow[i, j, 1]
            taps = min(int(2.0 * max(abs(dx), abs(dy))) + 1, 24)
            for c in range(bands):
                total = 0.0
                for k in range(taps):
                    fraction = (k + 0.5) / taps
                    x = min(max(j - fraction * dx, 0.0), columns - 1.001)
                    y = min(max(i - fraction * dy, 0.0), rows - 1.001)
                    a, b = int(y), int(x)
                    u, v = x - b, y - a
                    low = picture[a, b, c] * (1 - u) + picture[a, b + 1, c] * u
                    high = picture[a + 1, b, c] * (1 - u) + picture[a + 1, b + 1, c] * u
                    total += low * (1 - v) + high * v
                out[i, j, c] = total / taps
