"""Conversion of streams to samples with the field names of CDFF."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.units import from_si, to_si
from transect.errors import ParseError
from transect.formats.shared.interface import Note
from transect.formats.shared.payloads import frames_left_out
from transect.recording import Recording, Stream, arrow
from transect.recording.column_forms import holds
from transect.types import Image, Imu, JointState, LaserScan, PointCloud, Pose, RigidBodyState, Transform
from transect.types.returns import MEASUREMENT_ERROR, NO_RETURN, TOO_FAR

from .columns import LOGICAL, VALUE
from .kinds import COVARIANCES, DEPTHS, FIRST_VALID_RANGE_MM, QUATERNION, TRANSECT_PREFIX, XYZ

Sample = dict[str, Any]
MAX_RANGE_M = 4e6
"""Largest range of a scan: CDFF stores millimetres in 32 bits, and error codes as other numbers."""
PARTS = ("metadata", "intrinsic", "extrinsic")
"""Parts of a Frame or Pointcloud whose fields keep their names."""
_FRAME_COLUMNS = frozenset(
    (
        *("image_byte", "image_size", "width", "height", "row_size", "channels", "depth", "mode", "status"),
        *("data_depth", "pixel_size", "received_ns"),
    )
)
_JOINT_FIELDS = {
    "position": "position",
    "speed": "velocity",
    "effort": "effort",
    "raw": "raw",
    "acceleration": "acceleration",
}
_LISTS = ("ranges", "remission", "range_error", *_JOINT_FIELDS.values())
_TEXTS = ("names", "source_frame", "target_frame", "status", "mode", "depth", "data_depth")
"""Columns of lists of numbers, and of text; all others are numbers."""


@dataclass(frozen=True)
class SampleFormat:
    """Conversion of a stream to samples."""

    type_name: str  # of CDFF
    samples: Callable[[Stream], Iterator[Any]]
    columns: frozenset[str]  # those that the samples contain
    timed: bool = True  # whether the samples contain their time


def cdff_time(t_ns: int) -> Sample:
    """Return a time in CDFF's format, truncated to microseconds."""
    return {"microseconds": t_ns // 1000}


def has_column(stream: Stream, name: str) -> bool:
    """Whether a stream has a column of the type that CDFF requires."""
    if name not in stream.columns:
        return False
    kind = stream.table.schema.field(name).type
    if name in _TEXTS:
        return holds(kind, "texts" if name == "names" else "text")
    if name in _LISTS:
        return holds(kind, "list")
    return (
        holds(kind, "number")
        if name not in COVARIANCES
        else pa.types.is_fixed_size_list(kind) and kind.list_size == 9
    )


def stack_rows(stream: Stream, *names: str) -> list[list[float]]:
    """Stack columns, one list per sample; NaN for missing columns."""
    missing = np.full(len(stream), np.nan)
    found = [np.asarray(stream[n] if has_column(stream, n) else missing, dtype=np.float64) for n in names]
    return np.column_stack(found).tolist() if found else []


def _lists(stream: Stream, name: str) -> list[list[Any]] | None:
    """Return a list column; null becomes an empty list."""
    return [row or [] for row in stream.table.column(name).to_pylist()] if has_column(stream, name) else None


def _imu(stream: Stream) -> Iterator[Sample]:
    mag = "mag_raw" if "mag_raw_x" in stream.columns else "mag"
    parts = [stack_rows(stream, *(f"{name}_{axis}" for axis in "xyz")) for name in ("acc", "gyro", mag)]
    for t, acc, gyro, field in zip(stream.t_ns.tolist(), *parts, strict=True):
        yield {"ref_time": cdff_time(t), "acc": acc, "gyro": gyro, "mag": field}


def _pose(stream: Stream) -> Iterator[Sample]:
    for position, orientation in zip(stack_rows(stream, *XYZ), stack_rows(stream, *QUATERNION), strict=True):
        yield {"pos": position, "orient": orientation}


def _state(stream: Stream) -> Iterator[Sample]:
    matrices = [_matrices(stream, name) for name in COVARIANCES]
    sources, targets = (
        stream[name] if has_column(stream, name) else [frame] * len(stream)
        for name, frame in (("source_frame", stream.child), ("target_frame", stream.frame))
    )
    motion = zip(
        stack_rows(stream, "vx", "vy", "vz"),
        stack_rows(stream, "wx", "wy", "wz"),
        *matrices,
        sources,
        targets,
        strict=True,
    )
    for t, pose, (v, w, position, orientation, velocity, angular, source, target) in zip(
        stream.t_ns.tolist(), _pose(stream), motion, strict=True
    ):
        yield {
            "timestamp": cdff_time(t),
            "sourceFrame": source,
            "targetFrame": target,
            "pos": pose["pos"],
            "cov_position": position,
            "orient": pose["orient"],
            "cov_orientation": orientation,
            "velocity": v,
            "cov_velocity": velocity,
            "angular_velocity": w,
            "cov_angular_velocity": angular,
        }


def _matrices(stream: Stream, name: str) -> list[list[list[float]]]:
    values = stream[name] if has_column(stream, name) else np.full((len(stream), 9), np.nan)
    return np.asarray(values, dtype=np.float64).reshape(-1, 3, 3).tolist()


def _joints(stream: Stream) -> Iterator[Sample]:
    columns = {path: _lists(stream, name) for path, name in _JOINT_FIELDS.items()}
    names = _lists(stream, "names")
    for i, t in enumerate(stream.t_ns.tolist()):
        values_of_joints = [column[i] if column is not None else [] for column in columns.values()]
        each = zip_longest(
            *values_of_joints, fillvalue=float("nan")
        )  # drivers omit quantities that they do not measure
        yield {
            "timestamp": cdff_time(t),
            "names": names[i] if names is not None else [],
            "elements": [dict(zip(_JOINT_FIELDS, values, strict=True)) for values in each],
        }


def _scans(stream: Stream) -> Iterator[Sample]:
    ranges, errors = _lists(stream, "ranges"), _lists(stream, "range_error")
    remission = _lists(stream, "remission")
    limits = (
        np.nan_to_num(from_si(np.array(stack_rows(stream, "range_min", "range_max")), "mm"))
        .round()
        .astype(int)
    )
    angles = stack_rows(stream, "start_angle", "angle_increment", "speed")
    for i, t in enumerate(stream.t_ns.tolist()):
        yield {
            "ref_time": cdff_time(t),
            "start_angle": angles[i][0],
            "angular_resolution": angles[i][1],
            "speed": angles[i][2] if has_column(stream, "speed") else 0.0,
            "ranges": _millimetres(ranges[i] if ranges else [], errors[i] if errors else None),
            "minRange": int(limits[i][0]),
            "maxRange": int(limits[i][1]),
            "remission": remission[i] if remission else [],
        }


def _millimetres(ranges: list[float | None], errors: list[int] | None) -> list[int]:
    metres = np.array([np.nan if r is None else r for r in ranges], dtype=np.float64)
    known = errors is not None and len(errors) == len(metres)
    codes = np.array(errors, np.int64) if known else np.full(len(metres), MEASUREMENT_ERROR)
    codes = np.where(np.isin(codes, NO_RETURN), TOO_FAR, codes)
    codes = np.where(codes < FIRST_VALID_RANGE_MM, codes, MEASUREMENT_ERROR)
    bad = ~(np.abs(metres) < MAX_RANGE_M)
    return np.where(bad, codes, np.round(from_si(np.where(bad, 0.0, metres), "mm"))).astype(np.int64).tolist()


def _frames(stream: Stream) -> Iterator[Sample]:
    received = stream["received_ns"].tolist() if has_column(stream, "received_ns") else stream.t_ns.tolist()
    status = stream["status"] if has_column(stream, "status") else ["status_VALID"] * len(stream)
    for sample, received_ns, valid, kept in zip(stream, received, status, _kept_fields(stream), strict=True):
        image: Image = sample.value
        metadata = {
            "timeStamp": cdff_time(sample.t_ns),
            "receivedTime": cdff_time(received_ns),
            "pixelModel": "pix_UNDEF",
            **{name: [] for name in ("pixelCoeffs", "errValues", "attributes")},
            "mode": f"mode_{image.mode.upper()}",
            "status": f"status_{valid.upper().removeprefix('STATUS_')}",
        }
        extrinsic = {
            "hasFixedTransform": False,
            "pose_robotFrame_sensorFrame": {},
            "pose_fixedFrame_robotFrame": {},
        }
        yield {
            "metadata": metadata | kept["metadata"],
            "intrinsic": _intrinsic(image, stream.frame) | kept["intrinsic"],
            "extrinsic": extrinsic | kept["extrinsic"],
            "data": array3d(image.data),
        }


def _kept_fields(stream: Stream) -> Iterator[dict[str, Sample]]:
    """Iterate over fields of a Frame or Pointcloud that kept their names, by part."""
    names = [name for name in stream.columns if name.partition(".")[0] in PARTS]
    columns = [stream.table.column(name).to_pylist() for name in names]
    for i in range(len(stream)):
        kept: dict[str, Sample] = {part: {} for part in PARTS}
        for name, column in zip(names, columns, strict=True):
            part, _, below = name.partition(".")
            is_matrix = below == "cameraMatrix" and np.size(column[i]) == 9
            kept[part][below] = np.reshape(column[i], (3, 3)).tolist() if is_matrix else column[i]
        yield kept


def _intrinsic(image: Image, frame: str) -> Sample:
    camera = image.camera
    coefficients = camera.coefficients.tolist() if camera else []
    return {
        "sensorId": frame,
        "cameraMatrix": camera.K.tolist() if camera else np.eye(3).tolist(),
        "cameraModel": "cam_FISHEYE" if camera and camera.distortion == "equidistant" else "cam_PINHOLE",
        "distCoeffs": coefficients + [0.0] * (12 - len(coefficients)),
    }


def array3d(pixels: NDArray[Any]) -> Sample:
    """Return an image as CDFF's Array3D: its bytes, row by row, as numbers."""
    kind = pixels.dtype.newbyteorder("<").str
    if kind not in DEPTHS:
        raise ParseError(f"an image of {pixels.dtype} has no depth in CDFF")
    if pixels.ndim not in (2, 3) or not pixels.size:
        raise ParseError(f"an array of {' x '.join(map(str, pixels.shape))} is no image in CDFF")
    height, width = pixels.shape[:2]
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    data = np.ascontiguousarray(pixels).astype(kind, copy=False)
    return {
        "rows": height,
        "cols": width,
        "channels": channels,
        "depth": f"depth_{DEPTHS[kind]}",
        "rowSize": width * channels * data.dtype.itemsize,
        "data": data.view(np.uint8).reshape(-1).tolist(),
    }


def _clouds(stream: Stream) -> Iterator[Sample]:
    for sample, kept in zip(stream, _kept_fields(stream), strict=True):
        cloud: PointCloud = sample.value
        colors, intensity = cloud.fields.get("rgba"), cloud.fields.get("intensity")
        metadata = {
            "timeStamp": cdff_time(sample.t_ns),
            "sensorId": stream.frame,
            "frameId": stream.frame,
            "height": 1,
            "width": len(cloud),
            "isRegistered": False,
            "isOrdered": False,
            "hasFixedTransform": False,
        }
        yield {
            "metadata": metadata | kept["metadata"],
            "data": {
                "points": np.asarray(cloud.points, dtype=np.float64).tolist(),
                "colors": [] if colors is None else np.asarray(colors, dtype=np.float64).tolist(),
                "intensity": [] if intensity is None else np.asarray(intensity, dtype=np.float64).tolist(),
            },
        }


def _records(stream: Stream) -> Iterator[Sample]:
    """Write the columns with their names."""
    names, time = stream.columns, time_name(stream)
    columns = [stream.table.column(name).to_pylist() for name in names]
    for t, *values in zip(stream.t_ns.tolist(), *columns, strict=True):
        yield {time: cdff_time(t), **dict(zip(names, values, strict=True))}


def time_name(stream: Stream) -> str:
    """Return a name for the time of records that is not a column."""
    return next(name for name in ("timestamp", "ref_time", "time", "@time") if name not in stream.columns)


_POSE = frozenset((*XYZ, *QUATERNION))
_AXES = [f"{name}_{axis}" for name in ("acc", "gyro", "mag_raw") for axis in "xyz"]
_FORMS: dict[type, SampleFormat] = {
    Imu: SampleFormat("IMUSensors", _imu, frozenset(_AXES)),
    Pose: SampleFormat("Pose", _pose, _POSE, timed=False),
    RigidBodyState: SampleFormat(
        "RigidBodyState",
        _state,
        _POSE | {*COVARIANCES, *(f"{v}{a}" for v in "vw" for a in "xyz"), "source_frame", "target_frame"},
    ),
    JointState: SampleFormat("Joints", _joints, frozenset((*_JOINT_FIELDS.values(), "names"))),
    LaserScan: SampleFormat(
        "LaserScan", _scans, (frozenset(LaserScan.units()) - {"time_increment"}) | {"speed"}
    ),
    Image: SampleFormat("Frame", _frames, _FRAME_COLUMNS),
    PointCloud: SampleFormat("Pointcloud", _clouds, frozenset(("rgba", "intensity"))),
}


def sample_format(stream: Stream) -> SampleFormat | None:
    """Return the format of a stream; None for payloads without a CDFF type.

    Tables without a CDFF type are written column by column, under the name of the transect type.
    """
    if stream.type in _FORMS:
        return _FORMS[stream.type]
    if stream.columns == (VALUE,):
        kind = str(stream.meta.get("rock_type") or "")
        return SampleFormat(
            kind, lambda s: iter(s.table.column(VALUE).to_pylist()), frozenset((VALUE,)), timed=False
        )
    if stream.loader is not None and stream.type is not Transform:
        return None
    return SampleFormat(f"{TRANSECT_PREFIX}{stream.type.__name__}", _records, frozenset(stream.columns))


def list_lost_content(recording: Recording, written: Sequence[Stream], both_times: bool) -> tuple[str, ...]:
    """List the contents of a recording that a log with these streams lacks.

    Parameters
    ----------
    both_times : bool
        Whether the log stores two times of every sample of any type.
    """
    kept = {stream.name for stream in written}
    notes = [
        f"{stream.name}: the format has no place for this {stream.type.__name__}: it is left out"
        for stream in recording.streams
        if stream.name not in kept
    ]
    for stream in written:
        notes += [f"{stream.name}: {what}" for what in _lost_columns(stream, both_times)]
        notes += [Note(f"{stream.name}: {what}") for what in _changed_values(stream)]
    notes += frames_left_out(recording.frames.edges, written)
    return tuple(notes)


def _lost_columns(stream: Stream, both_times: bool) -> Iterator[str]:
    form = sample_format(stream)
    if form is None:
        return
    if not form.timed and stream.log_ns is not None and not both_times:
        yield f"{form.type_name} has no time of its own: sample time is written, log time is not"
    names = _names_of(stream)
    written_columns = form.columns
    if stream.type in _FORMS:
        written_columns = {
            name for name in form.columns if name not in stream.columns or has_column(stream, name)
        }
    left = [name for name in names if name not in written_columns and name.partition(".")[0] not in PARTS]
    left = [name for name in left if name != LOGICAL or not both_times]
    if left:
        yield f"{form.type_name} has no place for {', '.join(left)}"


def _changed_values(stream: Stream) -> Iterator[str]:
    """Yield the differences between a stream and its written copy."""
    if sample_format(stream) is None:
        return
    truncated = int(np.count_nonzero(stream.t_ns % 1000))
    if truncated:
        yield f"{truncated} times have nanoseconds, of which only microseconds are written"
    names = _names_of(stream)
    known = getattr(stream.type, "units", dict)()
    if unsaid := [name for name in names if stream.units.get(name) and name not in known]:
        yield f"units are not written, here those of {', '.join(unsaid)}"
    if stream.type is LaserScan and _has_fractions(stream):
        yield "ranges are written in whole millimetres"
    if stream.clock in ("sclk", "index"):
        yield f"that its times are on the {stream.clock} clock is not written"


def _names_of(stream: Stream) -> Sequence[str]:
    """Return the columns of a stream, or the fields of the first cloud."""
    if stream.type is not PointCloud:
        return stream.columns
    return tuple(stream[0].value.fields) if len(stream) else ()


def _has_fractions(stream: Stream) -> bool:
    """Whether ranges have fractions of a millimetre beyond rounding errors of the conversion."""
    ranges = arrow.lists_of(stream.table, "ranges")[0] if "ranges" in stream.columns else np.zeros(0)
    whole = to_si(np.round(from_si(ranges, "mm")), "mm")
    return not np.array_equal(whole[np.isfinite(ranges)], ranges[np.isfinite(ranges)])
