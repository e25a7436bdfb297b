"""Images, depths, clouds, grids and paths as Foxglove's messages, and back.

What a schema has no place for (the transform of a grid, the times of a path) stands in a second message, in
JSON, on a channel beside: `Beside`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.errors import UnsupportedError
from transect.types import DepthMap, GridMap, Image, PointCloud, Trajectory

from ..shared.bags.ros_payloads import PayloadContext, as_depth, image, pixel_encoding, point_times
from ..shared.images import decode_image
from .foxglove_schemas import NUMERIC_TYPES, message_class

Beside = dict[str, Any]
"""Content of the companion message of a payload."""
_FORMS = {number: form for form, number in NUMERIC_TYPES.items()}
_COLOURS = ("red", "green", "blue")
MAX_SKEW_COSINE = 1e-9
"""Cosine of the angle between rows and columns up to which a grid is a rectangle."""


def set_pose(pose: Any, position: Any = (0.0, 0.0, 0.0), orientation: Any = (0.0, 0.0, 0.0, 1.0)) -> None:
    """Fill a foxglove.Pose."""
    pose.position.x, pose.position.y, pose.position.z = (float(v) for v in position)
    quaternion = pose.orientation
    quaternion.x, quaternion.y, quaternion.z, quaternion.w = (float(v) for v in orientation)


def raw_image(value: Image | DepthMap) -> tuple[Any, Beside]:
    """Return an image, or depths in metres, as a RawImage."""
    pixels = np.ascontiguousarray(value.data)
    encoding = "32FC1" if isinstance(value, DepthMap) else pixel_encoding(value)
    data = pixels.astype(pixels.dtype.newbyteorder("<"), copy=False).tobytes()
    height, width = pixels.shape[:2]
    size = {"width": width, "height": height, "step": len(data) // max(height, 1)}
    return message_class("RawImage")(encoding=encoding, data=data, **size), {}


def point_cloud(value: PointCloud) -> tuple[Any, Beside]:
    """Return a cloud as a PointCloud; colours as four fields, as Foxglove's panels want them."""
    columns: dict[str, NDArray[Any]] = {axis: value.points[:, k] for k, axis in enumerate("xyz")}
    widths: dict[str, int] = {}
    for name, values in value.fields.items():
        if name == "rgb" and values.dtype == np.uint8:
            columns |= {colour: values[:, k] for k, colour in enumerate(_COLOURS)}
            columns["alpha"] = np.full(len(value), 255, np.uint8)
        elif values.ndim == 2:
            widths[name] = values.shape[1]
            columns |= {f"{name}_{k}": values[:, k] for k in range(values.shape[1])}
        else:
            columns[name] = values
    packed, dtypes = _pack(columns, len(value))
    message = message_class("PointCloud")(point_stride=packed.dtype.itemsize, data=packed.tobytes())
    set_pose(message.pose)
    _describe(message, packed.dtype)
    beside: Beside = {"dtypes": dtypes} if dtypes else {}
    beside |= {"widths": widths} if widths else {}
    beside |= {} if value.viewpoint is None else {"viewpoint": np.asarray(value.viewpoint).tolist()}
    return message, beside


def _pack(columns: Mapping[str, NDArray[Any]], count: int) -> tuple[NDArray[np.void], dict[str, str]]:
    """Return columns as packed elements, and the types of those that are kept as float64 or as two halves."""
    dtypes: dict[str, str] = {}
    parts: dict[str, NDArray[Any]] = {}
    for name, values in columns.items():
        if values.dtype.str[1:] in NUMERIC_TYPES:
            parts[name] = values
        elif values.dtype.kind in "iu":  # of 8 bytes: Foxglove has no such type
            dtypes[name] = values.dtype.name
            halves = np.ascontiguousarray(values.astype("<i8")).view("<u4").reshape(-1, 2)
            parts |= {name: halves[:, 0], f"{name}_high": halves[:, 1]}
        else:
            dtypes[name] = values.dtype.name
            parts[name] = values.astype("f8")
    packed = np.zeros(count, dtype=[(name, f"<{v.dtype.str[1:]}") for name, v in parts.items()])
    for name, values in parts.items():
        packed[name] = values
    return packed, dtypes


def _describe(message: Any, dtype: np.dtype[Any]) -> None:
    for name, (form, offset, *_) in (dtype.fields or {}).items():
        message.fields.add(name=name, offset=offset, type=NUMERIC_TYPES[form.str[1:]])


def grid(value: GridMap) -> tuple[Any, Beside]:
    """Return a grid map as a Grid, its first row the one of the smallest y."""
    a, b, c, d, e, f = value.transform
    width, height = float(np.hypot(a, d)), float(np.hypot(b, e))
    if not (width and height) or abs(a * b + d * e) > MAX_SKEW_COSINE * width * height:
        raise UnsupportedError("a grid whose rows and columns are not at right angles has no place in a Grid")
    down, rows = a * e - b * d < 0, next(iter(value.layers.values())).shape[0]
    corner = (c + b * rows, f + e * rows, 0.0) if down else (c, f, 0.0)
    layers = {name: np.flipud(layer) if down else layer for name, layer in value.layers.items()}
    columns = next(iter(layers.values())).shape[1]
    packed, dtypes = _pack({n: np.asarray(layer).reshape(-1) for n, layer in layers.items()}, rows * columns)
    stride = packed.dtype.itemsize
    made = message_class("Grid")(
        column_count=columns, row_stride=stride * columns, cell_stride=stride, data=packed.tobytes()
    )
    half = np.arctan2(d, a) / 2
    set_pose(made.pose, corner, (0.0, 0.0, np.sin(half), np.cos(half)))
    made.cell_size.x, made.cell_size.y = width, height
    _describe(made, packed.dtype)
    return made, {"transform": list(value.transform), "crs": value.crs, "dtypes": dtypes}


def path(value: Trajectory) -> tuple[Any, Beside]:
    """Return a trajectory as PosesInFrame; unmeasured values are 0, and null in the companion message."""
    made = message_class("PosesInFrame")()
    known = value.orientations is not None
    turns = value.orientations if value.orientations is not None else np.tile([0.0, 0, 0, 1], (len(value), 1))
    for position, turn in zip(np.nan_to_num(value.positions), turns, strict=True):
        set_pose(made.poses.add(), position, turn if np.isfinite(turn).all() else (0.0, 0.0, 0.0, 1.0))
    beside: Beside = {"times_ns": value.t_ns.tolist(), "child": value.child, "clock": value.clock}
    absent = np.isnan(value.positions)
    beside |= {"absent": np.flatnonzero(absent.reshape(-1)).tolist()} if absent.any() else {}
    beside |= {} if known else {"oriented": False}
    if known and not np.isfinite(turns).all():
        beside["unoriented"] = np.flatnonzero(~np.isfinite(turns).all(axis=1)).tolist()
    if value.covariances is not None:
        beside["covariances"] = np.asarray(value.covariances).reshape(-1).tolist()
    return made, beside


WRITERS = {
    Image: ("RawImage", raw_image),
    DepthMap: ("RawImage", raw_image),
    PointCloud: ("PointCloud", point_cloud),
    GridMap: ("Grid", grid),
    Trajectory: ("PosesInFrame", path),
}
"""Schema and writer by the type of a payload."""

Fields = Mapping[str, Any]


def read_compressed(fields: Fields, context: PayloadContext, beside: Beside) -> Image:
    """Return the image file in a CompressedImage."""
    where = {"t_ns": context.t_ns, "frame": context.frame, "camera": context.camera}
    return decode_image(fields["data"], context.where, mode=beside.get("mode") or None, **where)


def read_raw(fields: Fields, context: PayloadContext, beside: Beside) -> Image:
    """Return a RawImage."""
    found = image(_ros_image(fields), context)
    mode = str(beside.get("mode") or found.mode)
    return Image(found.data, mode, found.t_ns, found.frame, found.camera)


def read_depth(fields: Fields, context: PayloadContext, beside: Beside) -> DepthMap:
    """Return a RawImage of distances."""
    return as_depth(image(_ros_image(fields), context).data, context)


def _ros_image(fields: Fields) -> dict[str, Any]:
    return {**fields, "is_bigendian": False, "data": np.frombuffer(fields["data"], np.uint8)}


def read_cloud(fields: Fields, context: PayloadContext, beside: Beside) -> PointCloud:
    """Return a PointCloud."""
    columns = _unpack(fields, int(fields["point_stride"]), beside, context)
    if not {"x", "y"} <= set(columns):
        raise context.error("a cloud has no x, y", f"its fields are {', '.join(columns)}")
    missing = np.zeros(len(columns["x"]), columns["x"].dtype)
    xyz = np.column_stack([columns.pop(axis, missing) for axis in "xyz"])
    if set(_COLOURS) <= set(columns):
        columns["rgb"] = np.column_stack([columns.pop(colour) for colour in _COLOURS])
        columns.pop("alpha", None)
    for name, width in dict(beside.get("widths", {})).items():
        columns[name] = np.column_stack([columns.pop(f"{name}_{k}") for k in range(int(width))])
    if not beside and "timestamp" in columns:
        columns["t_offset_ns"] = point_times(columns.pop("timestamp"), context.t_ns)
    view = beside.get("viewpoint")
    seen_from = None if view is None else np.array(view, dtype=np.float64)
    return PointCloud(xyz, columns, context.t_ns, context.frame, seen_from)


def _unpack(fields: Fields, stride: int, beside: Beside, context: PayloadContext) -> dict[str, NDArray[Any]]:
    """Return packed elements as columns, in the types that they had before."""
    described = [(str(f["name"]), int(f["offset"]), int(f["type"])) for f in fields["fields"]]
    try:
        names, offsets, kinds = zip(*described, strict=True)
        forms = [f"<{_FORMS[kind]}" for kind in kinds]
        dtype = np.dtype({"names": names, "formats": forms, "offsets": offsets, "itemsize": stride})
        packed = np.frombuffer(fields["data"], dtype)
    except (ValueError, KeyError, TypeError) as error:
        raise context.error("packed elements cannot be decoded", f"{error}") from error
    columns = {name: np.ascontiguousarray(packed[name]) for name in names}
    for name, form in dict(beside.get("dtypes", {})).items():
        if f"{name}_high" in columns:
            halves = np.column_stack([columns[name], columns.pop(f"{name}_high")])
            columns[name] = np.ascontiguousarray(halves, dtype="<u4").view("<i8")[:, 0]
        columns[name] = columns[name].astype(form)
    return columns


def read_grid(fields: Fields, context: PayloadContext, beside: Beside) -> GridMap:
    """Return a Grid."""
    columns = int(fields["column_count"])
    layers = _unpack(fields, int(fields["cell_stride"]), beside, context)
    if not columns or int(fields["row_stride"]) != columns * int(fields["cell_stride"]):
        raise context.error("a grid cannot be decoded", "its rows have gaps, or no cells")
    shaped = {name: layer.reshape(-1, columns) for name, layer in layers.items()}
    if "transform" in beside:
        a, b, c, d, e, f = (float(v) for v in beside["transform"])
        if a * e - b * d < 0:
            shaped = {name: np.flipud(layer) for name, layer in shaped.items()}
        known = (a, b, c, d, e, f)
        return GridMap(shaped, known, str(beside.get("crs", "")), context.frame, context.t_ns)
    z, w = (float(fields.get(f"pose.orientation.{axis}") or 0.0) for axis in "zw")
    yaw = 2 * np.arctan2(z, w)
    x, y = (float(fields.get(f"pose.position.{axis}") or 0.0) for axis in "xy")
    wide, high = (float(fields.get(f"cell_size.{axis}") or 0.0) for axis in "xy")
    c, s = float(np.cos(yaw)), float(np.sin(yaw))
    placed = (wide * c, -high * s, x, wide * s, high * c, y)
    return GridMap(shaped, placed, "", context.frame, context.t_ns)


def read_path(fields: Fields, context: PayloadContext, beside: Beside) -> Trajectory:
    """Return PosesInFrame; without times of their own all poses have the message's."""
    poses = fields["poses"]

    def numbers(path: str, axes: str) -> NDArray[np.float64]:
        rows = [[float(pose.get(f"{path}.{axis}") or 0.0) for axis in axes] for pose in poses]
        return np.array(rows, dtype=np.float64).reshape(-1, len(axes))

    positions, turns = numbers("position", "xyz"), numbers("orientation", "xyzw")
    positions.reshape(-1)[beside.get("absent", [])] = np.nan
    turns[beside.get("unoriented", [])] = np.nan
    times = np.array(beside.get("times_ns", [context.t_ns] * len(poses)), dtype=np.int64)
    spread = beside.get("covariances")
    return Trajectory(
        times,
        positions,
        turns if beside.get("oriented", True) else None,
        None if spread is None else np.array(spread, dtype=np.float64).reshape(-1, 6, 6),
        frame=context.frame,
        child=str(beside.get("child", "")),
        clock=str(beside.get("clock", "utc")),
    )


READERS = {
    "foxglove.CompressedImage": (Image, read_compressed),
    "foxglove.RawImage": (Image, read_raw),
    "foxglove.PointCloud": (PointCloud, read_cloud),
    "foxglove.Grid": (GridMap, read_grid),
    "foxglove.PosesInFrame": (Trajectory, read_path),
}
"""Type and reader of a payload by the name of its schema."""
