"""Samples as bytes that a page can draw: pictures as JPEG, the rest as little-endian float32."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.errors import UnsupportedError
from transect.geometry.decimation import Extremes
from transect.recording import Stream
from transect.recording.arrow import Rows, block_ranges
from transect.types import DepthMap, GridMap, Image, LaserScan, PointCloud

from .placing import Path
from .scene import Curve, Scene

WIDEST, QUALITY = 960, 80
"""Pixels of a picture at most, and its quality as JPEG."""
MOST_POINTS = 60_000
PARTS = 800
"""Parts of a plot whose extremes are kept."""
MOST_CELLS = 240
"""Along a side of a map."""
EARTHEN = np.array([[62, 78, 62], [112, 122, 78], [168, 148, 104], [204, 186, 152], [240, 234, 224]])
"""Red, green, blue from low to high."""
SPREAD = (1.0, 99.0)
"""Percentiles of a thermal or depth image that become black and white."""


def encode_picture(value: Image | DepthMap) -> bytes:
    """Return a picture as JPEG, made smaller if it is wide; thermal and depth images are stretched."""
    import cv2

    pixels = _stretch(value.data) if value.data.dtype != np.uint8 else value.data
    mode = "gray" if isinstance(value, DepthMap) else value.mode
    if mode == "rgb":
        pixels = cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR)
    elif mode == "rgba":
        pixels = cv2.cvtColor(pixels, cv2.COLOR_RGBA2BGR)
    if pixels.shape[1] > WIDEST:
        height = max(1, round(pixels.shape[0] * WIDEST / pixels.shape[1]))
        pixels = cv2.resize(pixels, (WIDEST, height), interpolation=cv2.INTER_AREA)
    done, data = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    if not done:
        raise UnsupportedError(f"a picture of {value.data.dtype} cannot be shown")
    return data.tobytes()


def _stretch(data: NDArray[Any]) -> NDArray[np.uint8]:
    values = np.asarray(data, np.float32)
    known = np.isfinite(values)
    low, high = np.percentile(values[known], SPREAD) if known.any() else (0.0, 1.0)
    scaled = (np.where(known, values, low) - low) / max(float(high - low), 1e-9)
    return (255 * np.clip(scaled, 0, 1)).astype(np.uint8)


def encode_points(located: tuple[bool, Floats], value: LaserScan | PointCloud) -> bytes:
    """Return where points are (`encode_place`), then x, y, z and a value from 0 to 1 of each."""
    points = scan_points(value) if isinstance(value, LaserScan) else cloud_points(value)
    points = points[:: max(1, -(-len(points) // MOST_POINTS))]
    return encode_place(located) + points.astype("<f4").tobytes()


def encode_place(located: tuple[bool, Floats]) -> bytes:
    """Return 17 numbers: 1 if a frame is fixed to the scene, 0 if to the robot; then its place there."""
    fixed, place = located
    return np.concatenate([[float(fixed)], place.ravel()]).astype("<f4").tobytes()


def scan_points(scan: LaserScan) -> Floats:
    """Return (n, 4): the returns of a scan in its plane, and 1 as their value."""
    hit = scan.returned()
    angles, ranges = scan.angles[hit], scan.ranges[hit]
    zeros = np.zeros(len(ranges))
    return np.column_stack([ranges * np.cos(angles), ranges * np.sin(angles), zeros, zeros + 1.0])


def cloud_points(cloud: PointCloud) -> Floats:
    """Return (n, 4): the points of a cloud that are somewhere, and how strong or how high they are."""
    points = np.asarray(cloud.points, np.float64)
    known = np.isfinite(points).all(axis=1)
    value = np.asarray(cloud.fields.get("intensity", points[:, 2]), np.float64)[known]
    low, high = np.percentile(value, (2, 98)) if len(value) else (0.0, 1.0)
    scaled = np.clip((value - low) / max(float(high - low), 1e-9), 0, 1)
    return np.column_stack([points[known], scaled])


def encode_surface(located: tuple[bool, Floats], grid: GridMap) -> bytes:
    """Return where a map is (`encode_place`), rows and columns, then x, y, z (NaN: not known) and r, g, b, 1.

    Heights are those of the layer `elevation`; maps without one lie flat at 0. Of a large map cells are left
    out, so that no side has more than `MOST_CELLS`.
    """
    layers, step = _thin(grid)
    heights = layers.get("elevation", _only(layers))
    first = next(iter(layers.values()))
    z = np.where(np.isfinite(first), 0.0, np.nan) if heights is None else heights
    row, column = (np.arange(n) * step + step // 2 + 0.5 for n in z.shape)
    a, b, c, d, e, f = grid.transform
    x = a * column[None, :] + b * row[:, None] + c
    y = d * column[None, :] + e * row[:, None] + f
    size = np.array(z.shape, "<f4").tobytes()
    places = np.stack([x, y, z], axis=-1).astype("<f4").tobytes()
    return encode_place(located) + size + places + _colour_cells(layers, heights).tobytes()


def _thin(grid: GridMap) -> tuple[dict[str, Floats], int]:
    """Return the layers of a map with only every n-th cell along both sides, and n."""
    step = max(1, -(-max(next(iter(grid.layers.values())).shape) // MOST_CELLS))
    chosen = slice(step // 2, None, step)
    return {name: np.asarray(each, np.float64)[chosen, chosen] for name, each in grid.layers.items()}, step


def _only(layers: dict[str, Floats]) -> Floats | None:
    """Return the layer of a map that has one, which is its height unless it says what else."""
    return next(iter(layers.values())) if len(layers) == 1 and "occupancy" not in layers else None


def _colour_cells(layers: dict[str, Floats], heights: Floats | None) -> NDArray[np.uint8]:
    """Return r, g, b, 1 of cells (rows, columns, 4): a photo's own, occupancy in grey, else by height."""
    first, *others = layers.values()
    if heights is not None:
        low, high = np.nanpercentile(heights, SPREAD) if np.isfinite(heights).any() else (0.0, 1.0)
        part = np.clip((heights - low) / max(float(high - low), 1e-9), 0, 1)
        places = np.linspace(0, 1, len(EARTHEN))
        colours = np.stack([np.interp(part, places, EARTHEN[:, k]) for k in range(3)], axis=-1)
    elif len(others) >= 2:
        colours = np.stack([first, *others[:2]], axis=-1)
    else:
        taken = np.clip(layers.get("occupancy", first) / 100.0, 0, 1)
        colours = np.repeat(235 - 200 * taken[..., None], 3, axis=-1)
    whole = np.concatenate([colours, np.full((*colours.shape[:2], 1), 255.0)], axis=-1)
    return np.nan_to_num(whole).astype(np.uint8)


def encode_curve(scene: Scene, stream: Stream, curve: Curve, start: float, end: float) -> bytes:
    """Return seconds and values in turn of a curve in a stretch of time: no extreme is lost."""
    times, rows = scene.seconds(stream), Rows(stream.table, curve.column)
    kept = Extremes(start, end, PARTS)
    for a, b in block_ranges(0, len(stream), overlap=0):
        values = np.asarray(rows[a:b], np.float64)
        kept.add(times[a:b], values if curve.part is None else values[:, curve.part])
    return np.column_stack(kept.curve()).astype("<f4").tobytes()


def encode_path(path: Path) -> bytes:
    """Return (n, 8): seconds, x, y, z and the quaternion x, y, z, w of each pose."""
    rows = np.column_stack([path.seconds, path.positions, path.orientations])
    return rows[np.isfinite(rows).all(axis=1)].astype("<f4").tobytes()
