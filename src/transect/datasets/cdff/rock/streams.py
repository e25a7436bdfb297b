"""Streams from the flat columns of Rock and CDFF logs: files, tables and payloads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.errors import FrameError, ParseError, StreamError
from transect.formats.shared.images import MAX_PIXELS, decode_image
from transect.recording import Loss, Parsed, Source, Stream, arrow, cache
from transect.recording.arrow import PAYLOAD
from transect.recording.stream import LOGGED_TYPE
from transect.types import CameraModel, Image, PointCloud, Transform

from .columns import BYTE_OFFSET, LOG_TIME, LOGICAL, LOGICAL_TIME, FlatColumns, join_tables
from .kinds import DEPTHS, RECORD, QuaternionOrder, TypeMapping, find_mapping, read_sample_time
from .times import LOST_TICK, SampleTimes, Ticks, times_of

Fetch = Callable[[str, int, int], NDArray[np.uint8]]
"""Returns the bytes of an image by file, byte offset and size."""
FetchRows = Callable[[str, int, int, int], NDArray[np.float64]]
"""Returns rows of k numbers as (n, k) by file, byte offset, size and k."""
_DEPTHS = {name: np.dtype(kind) for kind, name in DEPTHS.items()}
_MODES = {"grayscale": "gray", "undefined": "", "undef": ""}
_COMPRESSED = ("jpeg", "png", "pjpg")


def mode_of(word: str, channels: int) -> str:
    """Return the mode of an image by its name in a log: `mode_GRAY`, `MODE_BAYER_RGGB`."""
    mode = re.sub(r"^mode[_-]", "", word.lower()).replace("-", "_")
    return _MODES.get(mode, mode) or {1: "gray", 3: "rgb", 4: "rgba"}.get(channels, "")


def frame_loader(
    fetch: Fetch, frame: str, camera: CameraModel | None
) -> Callable[[Mapping[str, Any]], Image]:
    """Return a Stream loader for the columns of a Frame."""

    def load(row: Mapping[str, Any]) -> Image:
        _require_fields(row, "image_byte", "width", "height")
        where = f"{row[PAYLOAD]}@{row['image_byte']}"
        data = fetch(row[PAYLOAD], row["image_byte"], row["image_size"])
        attributes: dict[str, Any] = {"t_ns": row["t_ns"], "frame": frame, "camera": camera}
        if any(word in row.get("mode", "").lower() for word in _COMPRESSED):
            return decode_image(data.tobytes(), where, **attributes)
        pixels = _pixels(data, row, where)
        channels = pixels.shape[2] if pixels.ndim == 3 else 1
        status = row.get("status", "").upper()
        valid = np.zeros(pixels.shape[:2], dtype=bool) if status.endswith("INVALID") else None
        return Image(pixels, mode_of(row.get("mode", ""), channels), valid=valid, **attributes)

    return load


def _require_fields(row: Mapping[str, Any], *names: str) -> None:
    """Raise ParseError unless a sample has some fields; they may be missing in a damaged stream."""
    missing = [name for name in names if name not in row]
    if missing:
        where = f"{row.get(PAYLOAD, '')}@{row['t_ns']} ns"
        raise ParseError(
            "a sample is not what its type promises", where=where, why=f"no {', '.join(missing)}"
        )


def _pixels(data: NDArray[np.uint8], row: Mapping[str, Any], where: str) -> NDArray[Any]:
    """Reshape the bytes to (h, w) or (h, w, channels); rows may have padding."""
    kind, channels = _pixel_type(row, where)
    height, width = int(row["height"]), int(row["width"])
    used = width * channels * kind.itemsize
    step = int(row.get("row_size") or 0) or used
    if min(height, width, channels) < 1 or height * width > MAX_PIXELS or step < used:
        raise ParseError(
            "an image has an impossible size", where=where, why=f"{width} x {height}, {step} bytes per row"
        )
    if len(data) < height * step:
        raise ParseError(
            "an image is shorter than it says", where=where, why=f"{len(data)} bytes for {height} x {step}"
        )
    rows = data[: height * step].reshape(height, step)[:, :used]
    pixels = np.ascontiguousarray(rows).view(kind).reshape(height, width, channels)
    return pixels[:, :, 0] if channels == 1 else pixels


def _pixel_type(row: Mapping[str, Any], where: str) -> tuple[np.dtype[Any], int]:
    """Return number type and channels of a pixel: CDFF names both, Rock gives bits and bytes."""
    if "depth" in row:
        name = re.sub(r"^depth[_-]", "", row["depth"])
        if name not in _DEPTHS:
            raise ParseError(f"an image has the unknown depth {row['depth']!r}", where=where)
        return _DEPTHS[name], int(row.get("channels") or 1)
    bits, size = int(row.get("data_depth") or 8), int(row.get("pixel_size") or 1)
    kind = np.dtype(np.uint16 if bits > 8 else np.uint8)
    return kind, max(size // kind.itemsize, 1)


def cloud_loader(fetch: FetchRows, frame: str) -> Callable[[Mapping[str, Any]], PointCloud]:
    """Return a Stream loader for the columns of a Pointcloud."""

    def load(row: Mapping[str, Any]) -> PointCloud:
        _require_fields(row, "points_byte")

        def rows(name: str, width: int) -> NDArray[np.float64]:
            if f"{name}_byte" not in row:
                return np.zeros((0, width))
            return fetch(row[PAYLOAD], row[f"{name}_byte"], row[f"{name}_size"], width)

        points = rows("points", 3)
        fields = {"rgba": rows("colors", 4), "intensity": rows("intensity", 1).reshape(-1)}
        kept = {name: values for name, values in fields.items() if len(values) == len(points) > 0}
        return PointCloud(points, kept, t_ns=row["t_ns"], frame=frame)

    return load


def load_transform(row: Mapping[str, Any]) -> Transform:
    """Build T_target_source from a row of a Transform."""
    from transect.geometry import se3

    _require_fields(row, *"xyz", "qw")
    covariance, estimated = row.get("covariance"), row.get("estimated")
    return Transform(
        target=row.get("target_frame", ""),
        source=row.get("source_frame", ""),
        matrix=se3.from_quaternion([row[f"q{n}"] for n in "xyzw"], [row[n] for n in "xyz"]),
        covariance=None if covariance is None else np.reshape(covariance, (6, 6)),
        target_t_ns=row.get("target_t_ns"),
        source_t_ns=row["t_ns"],
        estimated=None if estimated is None else np.asarray(estimated),
        producer=row.get("producer", ""),
    )


_COEFFICIENT_COUNTS = {"radtan": (4, 5, 8), "equidistant": (4,)}
"""Numbers of coefficients of OpenCV's distortion models."""


def camera_of(name: str, intrinsic: Mapping[str, Any], width: int = 0, height: int = 0) -> CameraModel | None:
    """Return a camera from a CDFF `intrinsic`, or None where its focal length is a placeholder (0 or 1)."""
    K = np.asarray(intrinsic["cameraMatrix"], dtype=np.float64).reshape(3, 3)
    if not min(K[0, 0], K[1, 1]) > 1.0:
        return None
    given = np.asarray(intrinsic.get("distCoeffs", ()), dtype=np.float64).reshape(-1)
    fisheye = "FISHEYE" in str(intrinsic.get("cameraModel", "")).upper()
    model, coefficients = _distortion(given, fisheye)
    return CameraModel(name, width, height, K, model, coefficients, frame=name)


def _distortion(given: NDArray[np.float64], fisheye: bool) -> tuple[str, NDArray[np.float64]]:
    """Return model and coefficients in OpenCV's order; CDFF pads them with zeros to twelve."""
    used = int(np.max(np.flatnonzero(given), initial=-1)) + 1
    model = "equidistant" if fisheye else "radtan"
    size = next((size for size in _COEFFICIENT_COUNTS[model] if size >= used), 0)
    if not used or not size:
        return "none", np.zeros(0)
    coefficients = np.zeros(size)
    coefficients[:used] = given[:used]
    return model, coefficients


def camera_in(probe: FlatColumns, name: str) -> CameraModel | None:
    """Return the camera in the first of some Frame samples, or None."""
    flat = FlatColumns(probe.table)
    matrix, coefficients = flat.vector(9, "intrinsic.cameramatrix"), flat.lists("intrinsic.distcoeffs")
    sizes = [flat.numbers("data.cols"), flat.numbers("data.rows")]
    if matrix is None or not len(matrix):
        return None
    values, offsets = coefficients if coefficients is not None else (np.zeros(0), np.zeros(2, np.int64))
    intrinsic = {
        "cameraMatrix": matrix[0],
        "distCoeffs": values[offsets[0] : offsets[1]],
        "cameraModel": next(iter(flat.texts("intrinsic.cameramodel") or []), ""),
    }
    width, height = (int(size[0]) if size is not None else 0 for size in sizes)
    return camera_of(name, intrinsic, width, height)


_REPLACED = "\N{REPLACEMENT CHARACTER}"
PROBE_SAMPLES = 8
"""First samples that determine the type of a stream."""


@dataclass(frozen=True)
class LogPart:
    """The part of a stream in one file."""

    file: str
    flat: Callable[[], Parsed]  # flat columns of all samples
    probe: Callable[[], Parsed]  # flat columns of the first samples


def log_part(source: Source, file: str, key: str, flat: Callable[[int | None], Parsed]) -> LogPart:
    """Return a part that is parsed through the cache; `flat` parses the first samples, or all."""
    whole = partial(cache.parse_pieces, source, file, key, lambda _: [flat(None)])
    return LogPart(file, whole, lambda: flat(PROBE_SAMPLES))


def read_files(files: Sequence[str], read: Callable[[str], None], losses: list[Loss]) -> None:
    """Read logs; an unreadable one is a loss, unless it is the only one."""
    for file in files:
        try:
            read(file)
        except (ParseError, FrameError) as error:
            if len(files) == 1:
                raise
            losses.append(Loss(file, error.why or error.what))


@dataclass(frozen=True)
class LoggedPort:
    """A logged port of a task."""

    name: str
    type_name: str
    pieces: Sequence[LogPart]  # in order of time
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    log_name: str = "log time"  # name of the log times in notes
    given_name: str = "logical time"


@dataclass(frozen=True)
class ReadOptions:
    """Payload access and options."""

    octets: Fetch
    rows: FetchRows
    # those in images are added
    cameras: dict[str, CameraModel] = field(default_factory=dict[str, CameraModel])
    order: QuaternionOrder | None = None  # order of quaternions; None to detect it


def make_streams(logged: LoggedPort, reading: ReadOptions) -> list[Stream]:
    """Return the streams of a port: two for stereo pairs."""
    probe = _probe(logged)
    if logged.type_name.endswith("FramePair"):
        return [_stream(logged, reading, probe.under(side), side) for side in ("left", "right")]
    return [_stream(logged, reading, probe, "")]


def _probe(logged: LoggedPort) -> FlatColumns:
    """Return the first samples of the first part with samples."""
    tables = (join_tables([(piece.file, piece.probe())])[0] for piece in logged.pieces)
    return FlatColumns(next((table for table in tables if table.num_rows), pa.table({})))


def _stream(logged: LoggedPort, reading: ReadOptions, probe: FlatColumns, side: str) -> Stream:
    kind = find_mapping("Frame" if side else logged.type_name, probe)
    times = _times(probe, logged)
    frame, child = _frames(probe, kind)
    name = f"{logged.name}/{side}" if side else logged.name
    camera = _camera_of(name, probe, reading.cameras) if kind.type is Image else None
    return Stream(
        name,
        kind.type,
        partial(_finish, logged, kind, reading.order, side),
        clock=times.clock,
        role=kind.role,
        tag=side or _tag(logged.name),
        frame=frame,
        child=child,
        loader=_loader(kind, reading, frame, camera),
        camera=camera.name if camera else "",
        meta={
            LOGGED_TYPE: logged.type_name,
            "rock_type": logged.type_name,
            **({"rock": logged.meta} if logged.meta else {}),
        },
    )


def _tag(name: str) -> str:
    words = re.split(r"[/._]", name.lower())
    return next((side for side in ("left", "right") if side in words), "")


def _frames(probe: FlatColumns, kind: TypeMapping) -> tuple[str, str]:
    """Return frame and child: the pose of a sample transforms from its source to its target frame."""

    def first(*names: str) -> str:
        return next(iter(FlatColumns(probe.table).texts(*names) or []), "")

    if kind.type in (Image, PointCloud):
        return first("intrinsic.sensorid", "metadata.frameid", "metadata.sensorid"), ""
    return first("targetframe", "metadata.parentframeid"), first("sourceframe", "metadata.childframeid")


def _camera_of(name: str, probe: FlatColumns, cameras: dict[str, CameraModel]) -> CameraModel | None:
    """Return the camera of an image stream: `/rig/left` for `/rig/left/image`, or that in its samples."""
    known = cameras.get(name) or cameras.get(name.rpartition("/")[0])
    camera = known or camera_in(probe, name)
    if camera is not None:
        cameras.setdefault(camera.name, camera)
    return camera


def _loader(
    kind: TypeMapping, reading: ReadOptions, frame: str, camera: CameraModel | None
) -> Callable[[Mapping[str, Any]], Any] | None:
    if kind.type is Image:
        return frame_loader(reading.octets, frame, camera)
    if kind.type is PointCloud:
        return cloud_loader(reading.rows, frame)
    return load_transform if kind.type is Transform else None


def _times(flat: FlatColumns, logged: LoggedPort) -> SampleTimes:
    def ticks(column: str, name: str) -> Ticks | None:
        if column not in flat.table.column_names:
            return None
        values, known = arrow.integers(flat.table.column(column))
        return Ticks(np.where(known, values, LOST_TICK), name)

    return times_of(
        len(flat),
        read_sample_time(flat),
        ticks(LOGICAL_TIME, logged.given_name),
        ticks(LOG_TIME, logged.log_name),
    )


def _finish(logged: LoggedPort, kind: TypeMapping, order: QuaternionOrder | None, side: str) -> Parsed:
    """Concatenate the parts and give the columns their canonical names."""
    parts = [(piece.file, piece.flat()) for piece in logged.pieces]
    table, files, losses = join_tables(parts)
    flat = FlatColumns(table).under(side) if side else FlatColumns(table)
    if not len(flat):
        return Parsed(arrow.empty(getattr(kind.type, "units", dict)()), tuple(losses))
    times = _times(flat, logged)
    losses += _bad_times(times, flat, files)
    try:
        mapped = kind.columns_of(flat, order)
    except StreamError as error:
        mapped = RECORD.columns_of(flat)
        mapped.notes.append(
            f"{kind.type.__name__} expected, but {error.what}: its fields are kept as they are"
        )
    if kind.type in (Image, PointCloud):
        mapped.columns = {PAYLOAD: arrow.strings(files), **mapped.columns}
    result = arrow.table(times.t_ns, mapped.columns, units=mapped.units, log_ns=times.log_ns)
    if LOGICAL_TIME in table.column_names and not np.array_equal(times.t_ns, _read_given_ns(flat)):
        result = result.append_column(LOGICAL, arrow.from_numpy(_read_given_ns(flat)))
    if not times.good.all():
        result = result.filter(arrow.from_numpy(times.good))
    all_notes = (*times.notes, *mapped.notes, *_list_unmeasured(result), *_undecodable(result))
    notes = [f"{logged.name}: {note}" for note in all_notes]
    return Parsed(result, tuple(losses), (*(note for _, part in parts for note in part.notes), *notes))


def _read_given_ns(flat: FlatColumns) -> Any:
    return Ticks(arrow.numbers(flat.table, LOGICAL_TIME), "").to_ns()[0]


def _bad_times(times: SampleTimes, flat: FlatColumns, files: Sequence[str]) -> list[Loss]:
    bad = np.flatnonzero(~times.good)
    if not len(bad):
        return []
    first = int(bad[0])
    byte = (
        int(arrow.numbers(flat.table, BYTE_OFFSET)[first]) if BYTE_OFFSET in flat.table.column_names else None
    )
    return [Loss(files[first], "the time is lost, or out of range", byte=byte, count=len(bad))]


def _list_unmeasured(table: pa.Table) -> list[str]:
    """Name the columns that are NaN throughout, which in Rock means not estimated."""
    empty: list[str] = []
    for name in table.column_names if table.num_rows else ():
        kind = table.schema.field(name).type
        if pa.types.is_floating(kind) or (
            pa.types.is_fixed_size_list(kind) and pa.types.is_floating(kind.value_type)
        ):
            values = arrow.numbers(table, name)
            empty += [name] if values.size and np.isnan(values).all() else []
    return [f"NaN throughout, that is not estimated: {', '.join(empty)}"] if empty else []


def _undecodable(table: pa.Table) -> list[str]:
    """Name the columns with text that is not UTF-8."""
    bad = [
        field.name
        for field in table.schema
        if pa.types.is_large_string(field.type)
        and any(_REPLACED in text for text in arrow.texts(table, field.name))
    ]
    return [f"not UTF-8, so some characters are replaced: {', '.join(bad)}"] if bad else []


def group_parts(files: Iterable[str], numbered: str) -> dict[str, list[str]]:
    """Group files by log.

    Parameters
    ----------
    numbered : str
        Regular expression of the file name of a part, with groups for the name of the log and the number of
        the part.

    Returns
    -------
    dict of str to list of str
        The files of each log in the order of their numbers; a file without a number is a separate log.
    """
    test = re.compile(numbered).fullmatch
    found: dict[str, list[tuple[int, str]]] = {}
    for file in sorted(files):
        match = test(file)
        name, number = (match[1], int(match[2])) if match else (file.partition(".")[0], 0)
        found.setdefault(name, []).append((number, file))
    return {name: [file for _, file in sorted(parts)] for name, parts in found.items()}


def stream_names(ports: Mapping[str, Collection[str]]) -> dict[tuple[str, str], str]:
    """Name the ports of several logs: prefixed with the name of the log if several have them."""
    counts = Counter(name for names in ports.values() for name in names)
    return {
        (log, name): name if counts[name] == 1 else f"{log}/{name.lstrip('/')}"
        for log, names in ports.items()
        for name in names
    }
