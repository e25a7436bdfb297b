"""Conversion of a product to another frame, unit, resolution or file type.

CDFF's second function of an Orchestrator: "translate the perception and localization data into the format as
requested by the autonomy framework".
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import decimal_from_ns
from transect.base.units import from_si
from transect.errors import FrameError, UnsupportedError
from transect.formats import open as open_recording
from transect.formats.geotiff import encode_geotiff
from transect.formats.shared.clouds import encode_cloud
from transect.formats.tum import header, pose_lines
from transect.geometry import se3
from transect.geometry.neighbours import voxel_indices
from transect.products import Product
from transect.recording import FrameTree, arrow
from transect.types import GridMap, PointCloud

from .forms import METRES, ProductForm


@dataclass(frozen=True)
class TimedPoses:
    """The poses of a trajectory in a frame."""

    t_ns: Any  # (n,) int64
    matrices: Floats  # (n, 4, 4)
    frame: str
    clock: str


def convert(product: Product, content: bytes, form: ProductForm, frames: FrameTree | None = None) -> bytes:
    """Return a product's bytes in another form.

    Parameters
    ----------
    frames : FrameTree
        Transforms from the product's frame to the one that is wanted.

    Raises
    ------
    UnsupportedError
        If the product cannot be converted to that form.
    FrameError
        If no transform relates the frames.
    """
    kind = product.payload.format
    if form == ProductForm() or form == ProductForm(format=kind):
        return content
    readers: Mapping[str, Callable[[Path], Any]] = {"tum": _read_poses, "ply": _read_one, "tif": _read_one}
    if kind not in readers:
        raise UnsupportedError(f"a {product.kind} kept as {kind} cannot be converted")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"product.{kind}"
        file.write_bytes(content)
        value = readers[kind](file)
    if form.frame:
        value = _change_frame(value, form.frame, product, frames or FrameTree())
    if form.resolution is not None:
        value = _downsample(value, form.resolution)
    return _write(value, form.format or kind, form.unit, product)


def _read_poses(file: Path) -> TimedPoses:
    [stream] = open_recording(file, format="tum")
    table = stream.table
    columns = [arrow.numbers(table, name) for name in ("x", "y", "z", "qx", "qy", "qz", "qw")]
    matrices = se3.from_quaternion(np.column_stack(columns[3:]), np.column_stack(columns[:3]))
    return TimedPoses(arrow.numbers(table, "t_ns"), matrices, stream.frame, stream.clock)


def _read_one(file: Path) -> GridMap | PointCloud:
    [stream] = open_recording(file)
    return stream[0].payload


def _change_frame(value: Any, frame: str, product: Product, frames: FrameTree) -> Any:
    """Return a value with its positions in another frame."""
    now = product.frame or getattr(value, "frame", "")
    if now == frame:
        return value
    if isinstance(value, GridMap):
        raise UnsupportedError("a map cannot be rotated", hint=f"it is in {now}")
    if not now:
        raise FrameError(f"the frame of the {product.kind} is not known")
    if isinstance(value, TimedPoses):
        return replace(value, matrices=frames.lookup(frame, now, value.t_ns) @ value.matrices, frame=frame)
    assert isinstance(value, PointCloud)
    T_frame_now = frames.lookup(frame, now, product.t0_ns)
    return replace(value, points=se3.apply(T_frame_now, value.points), frame=frame)


def _downsample(value: Any, resolution: float) -> Any:
    """Return a cloud or a map with fewer points or cells."""
    if isinstance(value, PointCloud):
        rows = voxel_indices(value.points, resolution)
        fields = {name: each[rows] for name, each in value.fields.items()}
        return replace(value, points=value.points[rows], fields=fields)
    if isinstance(value, GridMap):
        times = round(resolution / value.resolution[0])
        if times < 1:
            why = f"its cells are {value.resolution[0]:g} m wide"
            raise UnsupportedError(f"the map has no resolution of {resolution:g} m", why=why)
        return _coarsen(value, times)
    raise UnsupportedError("poses have no resolution", hint="ask for a part of the time")


def _coarsen(grid: GridMap, times: int) -> GridMap:
    """Return a map with the means of blocks of `times` x `times` cells; cells without a value are ignored."""
    a, b, c, d, e, f = grid.transform
    layers = {name: _block_means(np.asarray(layer, np.float64), times) for name, layer in grid.layers.items()}
    return replace(grid, layers=layers, transform=(a * times, b * times, c, d * times, e * times, f))


def _block_means(layer: Floats, times: int) -> Floats:
    rows, columns = (-(-size // times) * times for size in layer.shape)
    padded = np.full((rows, columns), np.nan)
    padded[: layer.shape[0], : layer.shape[1]] = layer
    blocks = padded.reshape(rows // times, times, columns // times, times)
    known = np.isfinite(blocks)
    counts = known.sum((1, 3))
    sums = np.where(known, blocks, 0.0).sum((1, 3))
    return np.divide(sums, counts, out=np.full(counts.shape, np.nan), where=counts > 0)


def _write(value: Any, kind: str, unit: str, product: Product) -> bytes:
    writers: Mapping[tuple[type, str], Callable[[], bytes]] = {
        (TimedPoses, "tum"): lambda: _tum(value, product),
        (TimedPoses, "kitti"): lambda: _rows("", value.matrices[:, :3].reshape(-1, 12), "%.9g", " "),
        (TimedPoses, "csv"): lambda: _pose_rows(value, unit),
        (PointCloud, "ply"): lambda: encode_cloud(value, ".ply"),
        (PointCloud, "pcd"): lambda: encode_cloud(value, ".pcd"),
        (PointCloud, "csv"): lambda: _rows(_names("x,y,z", unit), from_si(value.points, unit)),
        (GridMap, "tif"): lambda: encode_geotiff(value),
        (GridMap, "csv"): lambda: _rows(_names("x,y,z", unit), from_si(_cells(value), unit)),
    }
    chosen = writers.get((type(value), kind))
    if chosen is None:
        known = ", ".join(name for each, name in writers if each is type(value))
        raise UnsupportedError(f"a {product.kind} cannot be written as {kind}", hint=known)
    if unit != METRES and kind != "csv":
        raise UnsupportedError(f"{kind} has metres, not {unit}", hint="csv has any unit")
    return chosen()


def _names(axes: str, unit: str) -> str:
    return ",".join(f"{axis} [{unit}]" for axis in axes.split(","))


def _tum(poses: TimedPoses, product: Product) -> bytes:
    quaternions, positions = se3.to_quaternion(poses.matrices)
    columns = [*positions.T, *quaternions.T]
    return header(f"{product.name} in {poses.frame or product.frame}", poses.clock) + pose_lines(
        poses.t_ns, columns
    )


def _pose_rows(poses: TimedPoses, unit: str) -> bytes:
    quaternions, positions = se3.to_quaternion(poses.matrices)
    times = [decimal_from_ns(t) for t in poses.t_ns.tolist()]
    numbers = np.column_stack([from_si(positions, unit), quaternions])
    lines = (",".join([t, *(f"{v:.9g}" for v in row)]) for t, row in zip(times, numbers, strict=True))
    return "\n".join([f"t [s],{_names('x,y,z', unit)},qx,qy,qz,qw", *lines, ""]).encode()


def _cells(grid: GridMap) -> Floats:
    """Return x, y, z (n, 3) of the centre of every cell that has a value."""
    heights = np.asarray(grid.layers.get("elevation", next(iter(grid.layers.values()))), np.float64)
    rows, columns = np.nonzero(np.isfinite(heights))
    a, b, c, d, e, f = grid.transform
    col, row = columns + 0.5, rows + 0.5
    return np.column_stack([a * col + b * row + c, d * col + e * row + f, heights[rows, columns]])


def _rows(head: str, numbers: Floats, form: str = "%.9g", between: str = ",") -> bytes:
    lines = [between.join(form % value for value in row) for row in numbers.tolist()]
    return "\n".join([*([head] if head else []), *lines, ""]).encode()
