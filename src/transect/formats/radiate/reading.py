"""Reading RADIATE's folders, frames at the times of their lists."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache as once
from functools import partial
from typing import Any

import numpy as np

from transect.base.clocks import Clock
from transect.errors import ParseError
from transect.recording import Loss, Parsed, Recording, Source, Stream
from transect.recording.arrow import PAYLOAD
from transect.types import CameraModel, Image, PointCloud, RadarSpectrum

from .._clouds import cloud_loader
from .._images import decode_image, file_table, image_loader
from . import CAMERAS, GPS, LIDAR, POLAR, SUFFIXES
from .description import CONFIGURATION, RADAR, read_description
from .gps import gps_streams
from .index import Index, read_index

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
        lambda: _table(index()),
        clock=_clock(source, sensor),
        tag=camera,
        frame=frame,
        camera=camera if camera in cameras else "",
        loader=loaders.get(sensor) or image_loader(source, frame, cameras.get(camera)),
    )


def _table(index: Index) -> Parsed:
    return Parsed(file_table(index.t_ns, index.files), index.losses, index.notes)


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
