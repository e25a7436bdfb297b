"""Payload messages: images, clouds, maps and paths, decoded on access."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.errors import ParseError, UnsupportedError
from transect.types import CameraModel, DepthMap, GridMap, Image, PointCloud, Trajectory

from ..images import MAX_PIXELS, bands_of, decode_image, size_text
from .ros_decoder import Columns, Lists
from .ros_messages import NS, with_times

NAMED_ENCODINGS: dict[str, tuple[str, int, str]] = {
    "mono8": ("u1", 1, "gray"),
    "mono16": ("u2", 1, "gray"),
    "rgb8": ("u1", 3, "rgb"),
    "bgr8": ("u1", 3, "bgr"),
    "rgba8": ("u1", 4, "rgba"),
    "bgra8": ("u1", 4, "bgra"),
    "rgb16": ("u2", 3, "rgb"),
    "bgr16": ("u2", 3, "bgr"),
    **{
        f"bayer_{order}{bits}": (f"u{bits // 8}", 1, f"bayer_{order}")
        for order in ("rggb", "bggr", "gbrg", "grbg")
        for bits in (8, 16)
    },
}
_CV_ENCODING = re.compile(r"(8|16|32|64)([USF])C([1-4]?)")
_CV_MODES = {1: "gray", 2: "gray", 3: "bgr", 4: "bgra"}
_YUV = {"yuv422": "COLOR_YUV2RGB_UYVY", "uyvy": "COLOR_YUV2RGB_UYVY", "yuv422_yuy2": "COLOR_YUV2RGB_YUY2"}
_POINT_FORMATS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 8: "f8"}
"""sensor_msgs/PointField's datatypes."""
TIME_FIELDS = ("t", "time", "timestamp", "offset_time", "time_offset", "time_stamp", "stamp")
"""Names of the field with the time of each point."""


@dataclass(frozen=True)
class PayloadContext:
    """Context of a message."""

    where: str
    t_ns: int
    frame: str
    camera: CameraModel | None = None
    child: str = ""

    def error(self, what: str, why: str = "") -> ParseError:
        """Return an error that names the message."""
        return ParseError(what, where=self.where, why=why)


def image(fields: Mapping[str, Any], context: PayloadContext) -> Image:
    """sensor_msgs/Image: pixels as recorded, rows without their padding."""
    encoding, height, width = str(fields["encoding"]), int(fields["height"]), int(fields["width"])
    if encoding in _YUV:
        return _yuv_image(fields, context, encoding)
    form, channels, mode = _encoding(encoding, context)
    pixels = _pixels(fields, context, form, channels)
    if mode == "bgra":
        pixels, mode = pixels[..., [2, 1, 0, 3]], "rgba"
    shape = (height, width) if channels == 1 else (height, width, channels)
    return Image(pixels.reshape(shape), mode, context.t_ns, context.frame, context.camera)


def _encoding(encoding: str, context: PayloadContext) -> tuple[str, int, str]:
    if encoding in NAMED_ENCODINGS:
        return NAMED_ENCODINGS[encoding]
    match = _CV_ENCODING.fullmatch(encoding)
    if match is None:
        raise context.error("an image cannot be decoded", f"its encoding {encoding!r} is not known")
    channels = int(match[3] or 1)
    return f"{match[2].lower().replace('s', 'i')}{int(match[1]) // 8}", channels, _CV_MODES[channels]


def _pixels(fields: Mapping[str, Any], context: PayloadContext, form: str, channels: int) -> NDArray[Any]:
    height, width, step = int(fields["height"]), int(fields["width"]), int(fields["step"])
    order = ">" if fields["is_bigendian"] else "<"
    dtype = np.dtype(order + form)
    row = width * channels * dtype.itemsize
    data = fields["data"]
    if height * width > MAX_PIXELS or row > step or height * step > len(data):
        size = f"{width} x {height} pixels of {channels * dtype.itemsize} bytes, rows of {step}"
        raise context.error("an image has fewer bytes than pixels", f"{size}, and {len(data)} bytes")
    rows = np.ascontiguousarray(data[: height * step].reshape(height, step)[:, :row])
    return rows.view(dtype).reshape(height, width, channels).astype(dtype.newbyteorder("="), copy=False)


def _yuv_image(fields: Mapping[str, Any], context: PayloadContext, encoding: str) -> Image:
    import cv2

    pixels = cv2.cvtColor(_pixels(fields, context, "u1", 2), getattr(cv2, _YUV[encoding]))
    return Image(pixels, "rgb", context.t_ns, context.frame, context.camera)


def depth_image(fields: Mapping[str, Any], context: PayloadContext) -> DepthMap:
    """Read a sensor_msgs/Image of depth (REP 118): 32FC1 in metres, 16UC1 in mm with 0 for missing."""
    return as_depth(image(fields, context).data, context)


def as_depth(pixels: NDArray[Any], context: PayloadContext) -> DepthMap:
    """Return pixels as depths: floats in metres, integers in millimetres with 0 for missing depths."""
    if pixels.dtype.kind == "u":
        pixels = np.where(pixels == 0, np.float32(np.nan), pixels.astype(np.float32) / np.float32(1000))
    metres = np.where(np.isfinite(pixels), pixels, np.nan).astype(np.float32)
    return DepthMap(metres, context.t_ns, context.frame, context.camera)


def compressed_image(fields: Mapping[str, Any], context: PayloadContext) -> Image:
    """Read a sensor_msgs/CompressedImage with any image file."""
    declared = str(fields["format"]).partition(";")[0].strip()
    mode = (
        NAMED_ENCODINGS[declared][2] if declared.startswith("bayer") and declared in NAMED_ENCODINGS else None
    )
    data = fields["data"].tobytes()
    result = decode_image(data, context.where, t_ns=context.t_ns, frame=context.frame, camera=context.camera)
    return Image(result.data, mode, result.t_ns, result.frame, result.camera) if mode else result


def compressed_depth(fields: Mapping[str, Any], context: PayloadContext) -> DepthMap:
    """sensor_msgs/CompressedImage of image_transport's compressedDepth: 12 bytes of parameters, then a PNG.

    Depth of 32FC1 is stored as ``a / z + b``, and 0 for missing depths.
    """
    data = fields["data"]
    if len(data) < 12:
        raise context.error("a depth image is too short", f"it has {len(data)} bytes")
    pixels = decode_image(data[12:].tobytes(), context.where).data
    if str(fields["format"]).startswith("32FC1"):
        a, b = data[4:12].view("<f4").tolist()
        with np.errstate(divide="ignore"):
            pixels = np.where(pixels == 0, np.nan, a / (pixels.astype(np.float32) - np.float32(b)))
    return as_depth(pixels, context)


def point_cloud(fields: Mapping[str, Any], context: PayloadContext) -> PointCloud:
    """sensor_msgs/PointCloud2: x, y, z as points, other fields by their names, times as `t_offset_ns`."""
    points = _structured_points(fields, context)
    names = points.dtype.names or ()
    if not {"x", "y", "z"} <= set(names):
        raise context.error("a cloud has no x, y, z", f"its fields are {', '.join(names)}")
    xyz = np.column_stack([points[axis] for axis in "xyz"])
    others = {name: np.ascontiguousarray(points[name]) for name in names if name not in ("x", "y", "z")}
    for name in ("rgb", "rgba"):
        if name in others and others[name].dtype.itemsize == 4:
            others["rgb"] = others.pop(name).view("u4")[:, None].view("u1")[:, [2, 1, 0]]
    normal = ("normal_x", "normal_y", "normal_z")
    if set(normal) <= set(others):
        others["normal"] = np.column_stack([others.pop(name) for name in normal])
    timed = next((name for name in TIME_FIELDS if name in others and others[name].ndim == 1), None)
    if timed is not None:
        others["t_offset_ns"] = point_times(others.pop(timed), context.t_ns)
    return PointCloud(xyz, others, context.t_ns, context.frame)


def _structured_points(fields: Mapping[str, Any], context: PayloadContext) -> NDArray[np.void]:
    described: Columns = fields["fields"]
    height, width, step = int(fields["height"]), int(fields["width"]), int(fields["point_step"])
    order = ">" if fields["is_bigendian"] else "<"
    counts = [max(int(count), 1) for count in described["count"]]
    try:
        forms = [order + _POINT_FORMATS[int(kind)] for kind in described["datatype"]]
        shaped = [form if count == 1 else (form, (count,)) for form, count in zip(forms, counts, strict=True)]
        offsets = described["offset"].tolist()
        dtype = np.dtype(
            {"names": described["name"], "formats": shaped, "offsets": offsets, "itemsize": step}
        )
    except (KeyError, ValueError, TypeError) as error:
        raise context.error("a cloud cannot be decoded", f"its fields make no sense ({error})") from error
    data, row = fields["data"], max(int(fields["row_step"]), width * step)
    if step == 0 or (height - 1) * row + width * step > len(data):
        raise context.error(
            "a cloud has fewer bytes than points", f"{width} x {height} points, {len(data)} bytes"
        )
    if row == width * step:
        return np.frombuffer(data, dtype, width * height)
    rows = [np.frombuffer(data, dtype, width, k * row) for k in range(height)]
    return np.concatenate(rows)


def point_times(values: NDArray[Any], t_ns: int) -> NDArray[np.int64]:
    """Return the time of each point after the cloud's stamp in ns.

    Drivers disagree: integers are nanoseconds (Ouster, Livox), fractions are seconds (Velodyne, Hesai) or,
    above 1e15, nanoseconds (Livox); they count from the stamp or, where they are that large, from 1970.
    """
    if values.dtype.kind in "iu":
        offsets = values.astype(np.int64)
        return offsets - t_ns if len(offsets) and offsets.max() > 10**15 else offsets
    times = np.nan_to_num(values.astype(np.float64))
    largest = times.max(initial=0.0)
    if largest > 1e15:
        return times.astype(np.int64) - t_ns
    whole = np.floor(times)
    offsets = whole.astype(np.int64) * NS + np.rint((times - whole) * NS).astype(np.int64)
    return offsets - t_ns if largest > 1e8 else offsets


def grid_map(fields: Mapping[str, Any], context: PayloadContext) -> GridMap:
    """grid_map_msgs/GridMap: layers unrolled from their ring buffer; rows run along -x, columns along -y.

    Its matrices are stored column after column, or row after row where the first dimension is `row_index`.
    """
    arrays: Columns = fields["data"]
    dims: Lists = arrays["layout.dim"]
    if len(arrays["data"].offsets) - 1 != len(fields["layers"]):
        raise context.error("a grid map has more layers than arrays, or fewer")
    layers: dict[str, NDArray[Any]] = {}
    for k, name in enumerate(fields["layers"]):
        sizes = dims.values["size"][dims.offsets[k] : dims.offsets[k + 1]].tolist()
        values = arrays["data"].values[arrays["data"].offsets[k] : arrays["data"].offsets[k + 1]]
        if len(sizes) != 2 or sizes[0] * sizes[1] != len(values):
            raise context.error(
                "a grid map's layer has fewer values than cells", f"{sizes} and {len(values)}"
            )
        by_rows = dims.values["label"][dims.offsets[k]] == "row_index"
        matrix = values.reshape(sizes) if by_rows else values.reshape(sizes).T
        shift = (-int(fields["outer_start_index"]), -int(fields["inner_start_index"]))
        layers[name] = np.roll(matrix, shift, axis=(0, 1))
    cell = float(fields["info.resolution"])
    x = float(fields["info.pose.position.x"]) + float(fields["info.length_x"]) / 2
    y = float(fields["info.pose.position.y"]) + float(fields["info.length_y"]) / 2
    return GridMap(layers, (0.0, -cell, x, -cell, 0.0, y), "", context.frame, context.t_ns)


def occupancy_grid(fields: Mapping[str, Any], context: PayloadContext) -> GridMap:
    """Read a nav_msgs/OccupancyGrid: layer `occupancy` in percent, NaN if unknown."""
    height, width = int(fields["info.height"]), int(fields["info.width"])
    if height * width != len(fields["data"]):
        raise context.error(
            "a map has fewer values than cells", f"{width} x {height}, {len(fields['data'])} values"
        )
    values = fields["data"].astype(np.float32).reshape(height, width)
    cell = float(fields["info.resolution"])
    q = [float(fields[f"info.origin.orientation.{axis}"]) for axis in "xyzw"]
    yaw = np.arctan2(2 * (q[3] * q[2] + q[0] * q[1]), 1 - 2 * (q[1] ** 2 + q[2] ** 2))
    c, s = cell * float(np.cos(yaw)), cell * float(np.sin(yaw))
    x, y = float(fields["info.origin.position.x"]), float(fields["info.origin.position.y"])
    layers = {"occupancy": np.where(values < 0, np.nan, values)}
    return GridMap(layers, (c, -s, x, s, c, y), "", context.frame, context.t_ns)


def path(fields: Mapping[str, Any], context: PayloadContext) -> Trajectory:
    """Read a nav_msgs/Path: poses with their stamps, or that of the path if they have none."""
    poses = with_times(fields["poses"])
    t_ns = poses["header.stamp_ns"]
    positions = np.column_stack([poses[f"pose.position.{axis}"] for axis in "xyz"])
    orientations = np.column_stack([poses[f"pose.orientation.{axis}"] for axis in "xyzw"])
    times = np.where(t_ns == 0, context.t_ns, t_ns)
    return Trajectory(times, positions, orientations, frame=context.frame, child=context.child)


Read = Callable[[Mapping[str, Any], PayloadContext], Any]
READERS: dict[str, Read] = {
    "sensor_msgs/msg/Image": image,
    "sensor_msgs/msg/CompressedImage": compressed_image,
    "sensor_msgs/msg/PointCloud2": point_cloud,
    "grid_map_msgs/msg/GridMap": grid_map,
    "nav_msgs/msg/OccupancyGrid": occupancy_grid,
    "nav_msgs/msg/Path": path,
}
"""How a payload is read, by message type."""
DEPTH: dict[str, Read] = {
    "sensor_msgs/msg/Image": depth_image,
    "sensor_msgs/msg/CompressedImage": compressed_depth,
}


def pixel_encoding(image: Image) -> str:
    """Return the pixel encoding of an image in ROS and Foxglove: mono8, bgr8, bayer_rggb8, ..."""
    bands = bands_of(image)
    if bands != {"rgb": 3, "bgr": 3, "rgba": 4}.get(image.mode, 1):
        raise UnsupportedError(f"an image of {size_text(image)} has no encoding in ROS")
    form = image.data.dtype.str[1:]
    bits = 8 * image.data.dtype.itemsize
    if form == "f4" and image.data.ndim == 2:
        return "32FC1"
    if form not in ("u1", "u2"):
        raise UnsupportedError(f"a ROS image cannot hold pixels of type {image.data.dtype}")
    return f"mono{bits}" if image.mode in ("gray", "thermal") else f"{image.mode}{bits}"
