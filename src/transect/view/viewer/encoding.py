"""Samples as bytes that a page can draw: pictures as JPEG, points and curves as little-endian float32."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.errors import UnsupportedError
from transect.geometry.decimation import Extremes
from transect.recording import Stream
from transect.recording.arrow import Rows, block_ranges
from transect.types import DepthMap, Image, LaserScan, PointCloud

from .scene import Curve, Path, Scene

WIDEST, QUALITY = 960, 80
"""Pixels of a picture at most, and its quality as JPEG."""
MOST_POINTS = 60_000
PARTS = 800
"""Parts of a plot whose extremes are kept."""
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


def encode_points(scene: Scene, stream: Stream, number: int) -> bytes:
    """Return T_body_sensor (16 numbers, row by row), then x, y, z and a value from 0 to 1 of each point."""
    sample = stream[number]
    value = sample.value
    points = scan_points(value) if isinstance(value, LaserScan) else cloud_points(value)
    points = points[:: max(1, -(-len(points) // MOST_POINTS))]
    mount = scene.mount(stream, sample.t_ns)
    return mount.astype("<f4").tobytes() + points.astype("<f4").tobytes()


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
