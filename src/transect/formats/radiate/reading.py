"""Reading RADIATE's folders: frames at the times of their lists, and what it says of its sensors."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache as once
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.clocks import NS, Clock
from transect.errors import ParseError, TransectError
from transect.recording import Loss, Parsed, Recording, Source, Stream, Timing, arrow, cache
from transect.recording.arrow import PAYLOAD
from transect.recording.source import Buffer
from transect.recording.text import scan, whole_lines
from transect.types import CameraModel, Image, PointCloud, RadarSpectrum

from ..calibration.documents import documents
from ..calibration.model import Calibration, numbers
from ..calibration.radiate import place_sensor, read_radiate
from ..shared.clouds import cloud_loader
from ..shared.images import decode_image, file_table, find_listed, image_loader
from ..shared.rows import exact_stamps, lines_lost
from . import CAMERAS, GPS, LIDAR, POLAR, SUFFIXES
from .gps import gps_streams

META, ANNOTATIONS = "meta.json", "annotations/annotations.json"
LARGEST_JSON = 1 << 26


def read(source: Source) -> Recording:
    """Read the folders that are there; frames come in the order and at the times of their lists."""
    calibration, bin_width, losses = read_description(source)
    conditions, lost = _conditions(source)
    indices = {s: once(partial(read_index, source, s, SUFFIXES[s])) for s in SUFFIXES if _is_there(source, s)}
    if not indices:
        raise ParseError(f"{source.path} holds none of RADIATE's folders", where=str(source.path))
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


def _is_there(source: Source, sensor: str) -> bool:
    return f"{sensor}.txt" in source or sensor in source.folders


def _clock(source: Source, sensor: str) -> Clock:
    return "utc" if f"{sensor}.txt" in source else "index"


def _payloads(
    source: Source,
    sensor: str,
    index: Callable[[], Index],
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
    """Return what meta.json says (`type` is the weather) and how many objects are annotated, by class."""
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
    if name not in source or source.size(name) > LARGEST_JSON:
        return kind()
    source.touch(name)
    try:
        found = json.loads(source.read(name))
    except (ValueError, RecursionError) as error:
        losses.append(Loss(name, f"it is not JSON: {error}"))
        return kind()
    return found if isinstance(found, kind) else kind()


CONFIGURATION = ("config.yaml", "default-calib.yaml")
BIN_WIDTH = 0.173611
"""Metres per range bin of the Navtech CTS350-X as RADIATE ran it, where no config.yaml says so."""
RADAR = "radar"


def read_description(source: Source) -> tuple[Calibration, float, list[Loss]]:
    """Return cameras and frames, the radar's bin width in metres, and what could not be read."""
    content: dict[str, Any] = {}
    losses: list[Loss] = []
    for name in (n for n in CONFIGURATION if n in source):
        source.touch(name)
        try:
            content |= documents(source.document(name), name)[0]
        except ParseError as error:
            losses.append(Loss(name, error.why or error.what))
    bin_width, calibration = BIN_WIDTH, Calibration({})
    try:
        if "radar_calib" in content:
            bin_width = float(numbers(content["radar_calib"]["range_res"], what="range_res"))
        if "left_cam_calib" in content:
            calibration = _calibration(content)
    except (TransectError, ValueError, TypeError, LookupError, OverflowError) as error:
        losses.append(Loss(CONFIGURATION[1], f"not a calibration: {error}"))
    return calibration, bin_width, losses


def _calibration(content: Mapping[str, Any]) -> Calibration:
    stereo = read_radiate({key: value for key, value in content.items() if key != "lidar_calib"})
    placed = [
        ("left", name, place_sensor(content[f"{name}_calib"], content["left_cam_calib"]))
        for name in (RADAR, "lidar")
        if f"{name}_calib" in content
    ]
    calibration = Calibration(stereo.cameras, (*stereo.frames, *placed), stereo.kind, stereo.notes)
    calibration.tree()  # raises where one of the transforms is not rigid
    return calibration


@dataclass(frozen=True, eq=False)
class Index:
    """The frames of one sensor that are listed and there, in the list's order.

    Attributes
    ----------
    t_ns : (n,) int64 array
    files : list of str
    losses, notes : tuples
        Frames that are listed but not there; files that no line lists, and times that repeat or go back.
    """

    t_ns: NDArray[np.int64]
    files: list[str]
    losses: tuple[Loss, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def parsed(self) -> Parsed:
        """The table of a payload stream."""
        return Parsed(file_table(self.t_ns, self.files), self.losses, self.notes)


def read_index(source: Source, sensor: str, suffix: str) -> Index:
    """Read `<sensor>.txt`; without it the files are numbered by their names, on the index clock."""
    list_name = f"{sensor}.txt"
    here = [name for name in source.under(sensor) if name.endswith(suffix)]
    if list_name not in source:
        return _number(here, sensor)
    listed = cache.parse(source, list_name, "radiate.index/1", partial(parse_index, file=list_name))
    paths = [f"{sensor}/{frame}{suffix}" for frame in arrow.texts(listed.table, PAYLOAD)]
    found = find_listed(source, listed, paths, list_name)
    t_ns, files = arrow.numbers(found.table, "t_ns"), arrow.texts(found.table, PAYLOAD)
    unlisted = sorted(set(here) - set(paths))
    notes = _disorder(sensor, t_ns)
    if unlisted:
        notes.append(f"{len(unlisted)} files of {sensor} are not in {list_name}: {unlisted[0]}, ...")
    return Index(t_ns, files, found.losses, tuple(notes))


def _number(files: list[str], sensor: str) -> Index:
    numbers = {name: PurePosixPath(name).stem for name in files}
    frames = {n: int(s) for n, s in numbers.items() if s.isascii() and s.isdigit() and len(s) < 10}
    t_ns = np.array(list(frames.values()), np.int64) * NS
    return Index(t_ns, list(frames), notes=(f"there is no {sensor}.txt: frames have numbers, but no times",))


def _disorder(sensor: str, t_ns: NDArray[np.int64]) -> list[str]:
    timing = Timing.of(t_ns)
    said = [f"{timing.repeated} repeat the one before"] if timing.repeated else []
    said += [f"{timing.backwards} go back in time"] if timing.backwards else []
    return [f"of {timing.count} times of {sensor}, {' and '.join(said)}"] if said else []


def parse_index(buffer: Buffer, file: str) -> Parsed:
    """Parse lines of `Frame: 000001 Time: 1574859771.744660272`; the frame stands as it is written."""
    size, cut = whole_lines(buffer, file)
    tokens = scan(buffer, size)
    good = (tokens.counts == 4) & tokens.equals(0, b"Frame:") & tokens.equals(2, b"Time:")
    losses = lines_lost(tokens, np.flatnonzero(~good), "not `Frame: <number> Time: <seconds>`", file)
    t_ns, lines, bad = exact_stamps(tokens, 3, np.flatnonzero(good), file)
    frames = [tokens.text(int(tokens.first[line]) + 1) for line in lines]
    return Parsed(file_table(t_ns, frames), (*losses, *bad, *([cut] if cut else [])))
