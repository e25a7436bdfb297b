"""Reading of RADIATE's folders: frames with times from the index files (`<sensor>.txt`), and calibration."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache as once
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base import files
from transect.base.clocks import NS, Clock, decimal_from_ns
from transect.base.files import refuse_existing
from transect.errors import ParseError, TransectError, UnsupportedError, UsageError
from transect.recording import Loss, Parsed, Recording, Sample, Source, Stream, Timing, arrow, cache
from transect.recording.arrow import PAYLOAD
from transect.recording.source import Buffer
from transect.recording.text import scan, whole_lines
from transect.types import CameraModel, Image, Imu, NavFix, PointCloud, RadarSpectrum, Twist

from ..calibration.model import CalibrationFile, documents, numbers
from ..calibration.yaml_dialects import place_sensor, read_radiate
from ..shared.clouds import cloud_loader
from ..shared.clouds.plain import text_of
from ..shared.file_groups import file_table
from ..shared.images import decode_image, encode_image, find_listed, image_loader
from ..shared.payloads import good_payloads, payload_bytes, source_file
from ..shared.rows import exact_stamps, lines_lost, one_unit
from . import CAMERAS, CARTESIAN, GPS, LIDAR, POLAR, SUFFIXES
from .gps import LINES, gps_streams, packets_of

META, ANNOTATIONS = "meta.json", "annotations/annotations.json"
MAX_JSON_BYTES = 1 << 26


def read(source: Source) -> Recording:
    """Read the existing folders; frames have the order and times of the index files."""
    calibration, bin_width, losses = read_description(source)
    conditions, lost = _conditions(source)
    indices = {s: once(partial(read_index, source, s, SUFFIXES[s])) for s in SUFFIXES if _exists(source, s)}
    if not indices:
        raise ParseError(f"{source.path} has none of RADIATE's folders", where=str(source.path))
    streams = [
        _payloads(source, sensor, indices[sensor], calibration.cameras, bin_width)
        for sensor in indices
        if sensor != GPS
    ]
    if GPS in indices:
        clock = _clock(source, GPS)
        others = [i for sensor, i in indices.items() if sensor != GPS and _clock(source, sensor) == clock]
        streams += gps_streams(source, GPS, indices[GPS], others, clock)
    return Recording(
        name=source.stem,
        streams=tuple(streams),
        frames=calibration.tree(CONFIGURATION[1]),
        cameras=dict(calibration.cameras),
        conditions=conditions,
        format="radiate",
        source=source,
        reader_losses=(*losses, *lost),
    )


def _exists(source: Source, sensor: str) -> bool:
    return f"{sensor}.txt" in source or sensor in source.folders


def _clock(source: Source, sensor: str) -> Clock:
    return "utc" if f"{sensor}.txt" in source else "index"


def _payloads(
    source: Source,
    sensor: str,
    index: Callable[[], FrameTimes],
    cameras: Mapping[str, CameraModel],
    bin_width: float,
) -> Stream:
    """Return the stream of a folder of radar images, clouds or pictures."""
    camera = CAMERAS.get(sensor, "")
    kind: type = {POLAR: RadarSpectrum, LIDAR: PointCloud}.get(sensor, Image)
    frame = camera or ("lidar" if sensor == LIDAR else RADAR)
    loaders: dict[str, Callable[[Mapping[str, Any]], Any]] = {
        POLAR: partial(_load_polar, source, bin_width),
        LIDAR: cloud_loader(source, frame),
    }
    return Stream(
        sensor,
        kind,
        lambda: index().parsed,
        clock=_clock(source, sensor),
        tag=camera,
        frame=frame,
        camera=camera if camera in cameras else "",
        loader=loaders.get(sensor) or image_loader(source, frame, cameras.get(camera)),
    )


def _load_polar(source: Source, bin_width: float, row: Mapping[str, Any]) -> RadarSpectrum:
    """Load a polar image: row r of it is at r bins, column c at c steps clockwise from straight ahead.

    The angles run from x (right) towards y (forward) of the radar's frame, as those of a laser scan do.
    """
    name = row[PAYLOAD]
    image = decode_image(source.buffer(name), name).data
    if image.ndim != 2:
        raise ParseError(f"{name} is no polar radar image", where=name, why="it has colours")
    bearings = np.arange(image.shape[1]) * (2 * np.pi / image.shape[1])
    return RadarSpectrum(
        reflectivity=image.T,
        angle=np.pi / 2 - bearings,
        bin_width=bin_width,
        range_offset=-bin_width,
        t_ns=row["t_ns"],
        frame=RADAR,
    )


def _conditions(source: Source) -> tuple[dict[str, Any], list[Loss]]:
    """Return the texts of meta.json (`type` is the weather) and how many objects are annotated, by class."""
    losses: list[Loss] = []
    meta = _json(source, META, dict, losses)
    conditions: dict[str, Any] = {"weather": meta["type"]} if isinstance(meta.get("type"), str) else {}
    conditions |= {key: value for key, value in meta.items() if isinstance(value, str) and key != "type"}
    objects = _json(source, ANNOTATIONS, list, losses)
    if objects:
        classes = Counter(str(o.get("class_name")) for o in objects if isinstance(o, dict))
        conditions |= {"annotations": ANNOTATIONS, "objects": dict(sorted(classes.items()))}
    return conditions, losses


def _json(source: Source, name: str, kind: type, losses: list[Loss]) -> Any:
    if name not in source or source.size(name) > MAX_JSON_BYTES:
        return kind()
    source.record_read(name)
    try:
        found = json.loads(source.read(name))
    except (ValueError, RecursionError) as error:
        losses.append(Loss(name, f"it is not JSON: {error}"))
        return kind()
    return found if isinstance(found, kind) else kind()


CONFIGURATION = ("config.yaml", "default-calib.yaml")
BIN_WIDTH_M = 0.173611
"""Metres per range bin of RADIATE's Navtech CTS350-X, if it is not in a config.yaml."""
RADAR = "radar"


def read_description(source: Source) -> tuple[CalibrationFile, float, list[Loss]]:
    """Return cameras, frames, the radar's bin width in metres, and losses."""
    content: dict[str, Any] = {}
    losses: list[Loss] = []
    for name in (n for n in CONFIGURATION if n in source):
        source.record_read(name)
        try:
            content |= documents(source.document(name), name)[0]
        except ParseError as error:
            losses.append(Loss(name, error.why or error.what))
    bin_width, calibration = BIN_WIDTH_M, CalibrationFile({})
    try:
        if "radar_calib" in content:
            bin_width = float(numbers(content["radar_calib"]["range_res"], what="range_res"))
        if "left_cam_calib" in content:
            calibration = _calibration(content)
    except (TransectError, ValueError, TypeError, LookupError, OverflowError) as error:
        losses.append(Loss(CONFIGURATION[1], f"not a calibration: {error}"))
    return calibration, bin_width, losses


def _calibration(content: Mapping[str, Any]) -> CalibrationFile:
    stereo = read_radiate({key: value for key, value in content.items() if key != "lidar_calib"})
    sensor_mounts = [
        ("left", name, place_sensor(content[f"{name}_calib"], content["left_cam_calib"]))
        for name in (RADAR, "lidar")
        if f"{name}_calib" in content
    ]
    calibration = CalibrationFile(stereo.cameras, (*stereo.frames, *sensor_mounts), stereo.kind, stereo.notes)
    calibration.tree()  # raises where one of the transforms is not rigid
    return calibration


@dataclass(frozen=True, eq=False)
class FrameTimes:
    """The frames of one sensor that are in the index file and on disk, in index order."""

    t_ns: NDArray[np.int64]  # (n,) int64
    files: list[str]
    losses: tuple[Loss, ...] = ()  # indexed files that are missing
    notes: tuple[str, ...] = ()  # files that are not indexed, repeated or decreasing times

    @property
    def parsed(self) -> Parsed:
        """The table of a payload stream."""
        return Parsed(file_table(self.t_ns, self.files), self.losses, self.notes)


def read_index(source: Source, sensor: str, suffix: str) -> FrameTimes:
    """Read `<sensor>.txt`; without it, t is the number in the file name, on the clock `index`."""
    list_name = f"{sensor}.txt"
    present = [name for name in source.under(sensor) if name.endswith(suffix)]
    if list_name not in source:
        return _frames_by_number(present, sensor)
    listed = cache.parse(source, list_name, "radiate.index/1", partial(parse_index, file=list_name))
    paths = [f"{sensor}/{frame}{suffix}" for frame in arrow.texts(listed.table, PAYLOAD)]
    found = find_listed(source, listed, paths, list_name)
    t_ns, files = arrow.numbers(found.table, "t_ns"), arrow.texts(found.table, PAYLOAD)
    unlisted = sorted(set(present) - set(paths))
    notes = _describe_disorder(sensor, t_ns)
    if unlisted:
        notes.append(f"{len(unlisted)} files of {sensor} are not in {list_name}: {unlisted[0]}, ...")
    return FrameTimes(t_ns, files, found.losses, tuple(notes))


def _frames_by_number(files: list[str], sensor: str) -> FrameTimes:
    stems = {name: PurePosixPath(name).stem for name in files}
    frames = {n: int(s) for n, s in stems.items() if s.isascii() and s.isdigit() and len(s) < 10}
    t_ns = np.array(list(frames.values()), np.int64) * NS  # one frame = 1 s
    return FrameTimes(
        t_ns, list(frames), notes=(f"there is no {sensor}.txt: frames have numbers, but no times",)
    )


def _describe_disorder(sensor: str, t_ns: NDArray[np.int64]) -> list[str]:
    timing = Timing.of(t_ns)
    notes = [f"{timing.repeated} repeat the one before"] if timing.repeated else []
    notes += [f"{timing.backwards} go back in time"] if timing.backwards else []
    return [f"of {timing.count} times of {sensor}, {' and '.join(notes)}"] if notes else []


def parse_index(buffer: Buffer, file: str) -> Parsed:
    """Parse lines of `Frame: 000001 Time: 1574859771.744660272`; the frame is kept as text."""
    size, truncated = whole_lines(buffer, file)
    tokens = scan(buffer, size)
    good = (tokens.counts == 4) & tokens.equals(0, b"Frame:") & tokens.equals(2, b"Time:")
    losses = lines_lost(tokens, np.flatnonzero(~good), "not `Frame: <number> Time: <seconds>`", file)
    t_ns, lines, bad = exact_stamps(tokens, 3, np.flatnonzero(good), file)
    frames = [tokens.text(int(tokens.first[line]) + 1) for line in lines]
    return Parsed(file_table(t_ns, frames), (*losses, *bad, *([truncated] if truncated else [])))


_POSITION_DECIMALS, _VECTOR_DECIMALS = 15, 5
"""Decimals of positions and covariances, and of `_VECTOR_LINES`."""
_INDENTED_LINES = (2, 3, 8, 9, 11, 12, 14, 15)
"""Lines (from 0) that begin with a blank: the second and third of each matrix."""
_VECTOR_LINES = (4, 5, 6, 16, 17)
"""Lines (from 0) of the attitude, angular velocity, acceleration, velocity and angular velocity again."""


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write radar, lidar, stereo images and GPS/IMU as a RADIATE folder."""
    folders = _folders(recording)
    packets = [s for s in recording.streams if s.type in (NavFix, Imu, Twist)]
    if not folders and not packets:
        raise UsageError(f"{recording.name} has no radar, lidar, stereo or GPS/IMU to write as RADIATE")
    refuse_existing(path)
    notes = [
        f"{s.name}: RADIATE has no folder for it"
        for s in recording.streams
        if s not in packets and s not in folders.values()
    ]
    for folder, stream in folders.items():
        notes += _write_payloads(recording, stream, path, folder)
    return (*notes, *_write_packets(packets, path), *_write_description(recording, folders.get(POLAR), path))


def _folders(recording: Recording) -> dict[str, Stream]:
    """Choose a stream for each folder: the one of its name, else the first of its type and tag."""
    wanted: dict[str, Callable[[Stream], bool]] = {
        POLAR: lambda s: s.type is RadarSpectrum and s.loader is not None,
        CARTESIAN: lambda s: s.type is Image and s.name == CARTESIAN,
        LIDAR: lambda s: s.type is PointCloud,
        **{folder: lambda s, tag=tag: s.type is Image and s.tag == tag for folder, tag in CAMERAS.items()},
    }
    chosen: dict[str, Stream] = {}
    for folder, fits in wanted.items():
        streams = sorted((s for s in recording.streams if fits(s)), key=lambda s: s.name != folder)
        chosen |= {folder: streams[0]} if streams else {}
    return chosen


def _write_payloads(recording: Recording, stream: Stream, path: Path, folder: str) -> list[str]:
    notes: list[str] = []
    frames = _frame_names(recording, stream)
    written: list[tuple[str, int]] = []
    for sample, data in good_payloads(stream, partial(_payload, recording, folder=folder), notes):
        frame = frames[sample.index]
        files.write_bytes(path / folder / f"{frame}{SUFFIXES[folder]}", data)
        written.append((frame, sample.t_ns))
    _write_index(path / f"{folder}.txt", written)
    return notes


def _frame_names(recording: Recording, stream: Stream) -> list[str]:
    """Return the frames' own numbers where they come from a RADIATE folder, else 000001, 000002, ..."""
    names = [source_file(recording, sample) for sample in stream] if recording.format == "radiate" else []
    stems = [PurePosixPath(name).stem for name in names if name is not None]
    keep_names = len(stems) == len(stream) == len(set(stems))
    return stems if keep_names else [f"{i:06d}" for i in range(1, len(stream) + 1)]


def _write_index(file: Path, frames: Sequence[tuple[str, int]]) -> None:
    lines = [f"Frame: {frame} Time: {decimal_from_ns(t)}\n" for frame, t in frames]
    files.write_text(file, "".join(lines))


def _payload(recording: Recording, sample: Sample, folder: str) -> bytes:
    """Return the original file of a payload of RADIATE, else encode it in the same way."""
    is_original = recording.format == "radiate" and source_file(recording, sample) is not None
    if is_original or folder not in (POLAR, LIDAR):
        return payload_bytes(recording, sample, SUFFIXES[folder])
    return _polar_image(sample.value) if folder == POLAR else _cloud_text(sample.value)


def _polar_image(spectrum: RadarSpectrum) -> bytes:
    pixels = spectrum.reflectivity
    if pixels.ndim != 2 or pixels.dtype != np.uint8:
        raise UnsupportedError("RADIATE's radar images are whole turns of 8 bits")
    return encode_image(Image(np.ascontiguousarray(pixels.T)), ".png")


def _cloud_text(cloud: PointCloud) -> bytes:
    """Return lines of x,y,z,intensity,ring."""
    columns = dict(zip("xyz", cloud.points.T, strict=True))
    for name in ("intensity", "ring"):
        columns[name] = cloud.fields.get(name, np.full(len(cloud), np.nan))
    return text_of({name: np.asarray(values, np.float64) for name, values in columns.items()}, ",")


def _write_packets(streams: Sequence[Stream], path: Path) -> list[str]:
    """Write one GPS_IMU_Twist folder: the first stream of each kind that shares the times of the first."""
    chosen = one_unit(streams)
    if chosen:
        rows = packets_of(chosen.get(NavFix), chosen.get(Imu), chosen.get(Twist))
        frames = [f"{i:06d}" for i in range(1, len(rows) + 1)]
        for frame, row in zip(frames, rows, strict=True):
            files.write_text(path / GPS / f"{frame}.txt", _packet(row))
        times = next(iter(chosen.values())).t_ns.tolist()
        _write_index(path / f"{GPS}.txt", list(zip(frames, times, strict=True)))
    others = [s.name for s in streams if s not in chosen.values()]
    return [f"{name}: RADIATE has one GPS/IMU with one time axis" for name in others]


def _packet(row: NDArray[np.float64]) -> str:
    """Return a packet's 18 lines."""
    lines: list[str] = []
    at = 0
    for number, width in enumerate(LINES):
        digits = _VECTOR_DECIMALS if number in _VECTOR_LINES else _POSITION_DECIMALS
        blank = " " if number in _INDENTED_LINES else ""
        lines.append(blank + ",".join(_text(v, digits) for v in row[at : at + width].tolist()) + " \n")
        at += width
    return "".join(lines)


def _text(value: float, digits: int) -> str:
    """Return a number in the format of RADIATE, with more digits if it would change otherwise."""
    text = f"{value:.{digits}f}"
    return text if float(text) == value or value != value else repr(value)


def _copy_description(source: Source, path: Path) -> list[str]:
    notes: list[str] = []
    for name in (n for n in (*CONFIGURATION, META, ANNOTATIONS) if n in source):
        try:
            data = source.read(name)
        except ParseError as error:
            notes.append(f"{name} is not copied: {error.what}")
            continue
        files.write_bytes(path / name, data)
    return notes


def _write_description(recording: Recording, polar: Stream | None, path: Path) -> list[str]:
    """Copy calibration, weather and annotations of a RADIATE recording, or create them for other formats."""
    if recording.format == "radiate" and recording.source is not None:
        return _copy_description(recording.source, path)
    weather = {"name": recording.name, "type": str(recording.conditions.get("weather", ""))}
    files.write_text(path / META, json.dumps(weather))
    if first := next(good_payloads(polar or (), lambda sample: sample.value, []), None):
        spectrum: RadarSpectrum = first[1]
        azimuths, cells = spectrum.reflectivity.shape
        text = f"range_res: {spectrum.bin_width!r}, range_cells: {cells}, azimuth_cells: {azimuths}"
        files.write_text(path / CONFIGURATION[0], f"radar_calib: {{{text}}}\n")
    return ["cameras are not written to RADIATE's calibration"] if recording.cameras else []
