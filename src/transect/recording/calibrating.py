"""The cameras of a calibration file given to the images of recordings that have none.

A camera takes the images of a stream that has its name, or is tagged with the same word (left, right). Of two
streams that are tagged left and right, and two cameras whose relative pose is known, the right one is the one
on the positive x axis of the other. A single camera takes the images of a single stream.

Where a frame of the calibration (an IMU) is one of the recording, the cameras are put on that, and the other
frames of the calibration are left out.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from transect.errors import FrameError

from .frames import FrameTree

if TYPE_CHECKING:
    from transect.types import CameraModel

    from .recording import Recording
    from .stream import Row, Stream

SIDES = ("left", "right")


def calibrate(recordings: Sequence[Recording]) -> list[Recording]:
    """Return the recordings, those with streams first, with the cameras of those that have cameras alone."""
    calibrations = [each for each in recordings if not each.streams and each.cameras]
    others = [each for each in recordings if each not in calibrations]
    if not others:
        return list(recordings)
    for calibration in calibrations:
        others = [_with_cameras(each, calibration) for each in others]
    return [*others, *(each.replace(frames=FrameTree()) for each in calibrations)]


def _with_cameras(recording: Recording, calibration: Recording) -> Recording:
    from transect.types import Image

    lacking = [s for s in recording if s.type is Image and s.camera not in recording.cameras]
    pairs = _pair(lacking, calibration.cameras, calibration.frames)
    if not pairs:
        return recording
    given = {name: _calibrated(recording[name], key, calibration.cameras[key]) for name, key in pairs.items()}
    streams = tuple(given.get(stream.name, stream) for stream in recording)
    notes = tuple(f"{name}: calibrated by {key} of {calibration.name}" for name, key in pairs.items())
    used = {key: calibration.cameras[key] for key in pairs.values()}
    return recording.replace(
        streams=streams,
        cameras={**recording.cameras, **used},
        frames=_with_mounts(recording.frames, calibration.frames, [each.frame for each in used.values()]),
        notes=(*recording.notes, *notes),
    )


def _with_mounts(known: FrameTree, told: FrameTree, cameras: Sequence[str]) -> FrameTree:
    """Return the known frames with those of the cameras."""
    shared = next((name for name in told.frames if name in known), None)
    if shared is None:
        return known.merge(told)
    mounts = FrameTree()
    for camera in cameras:
        if camera and camera not in known:
            mounts.add_static(shared, camera, told.lookup(shared, camera))
    return known.merge(mounts)


def _pair(streams: Sequence[Stream], cameras: Mapping[str, CameraModel], frames: FrameTree) -> dict[str, str]:
    """Return the camera of each stream that has one, by the names of both."""
    found: dict[str, str] = {}
    for stream in streams:
        named = [key for key in cameras if key.lower() in (stream.camera.lower(), stream.name.lower())]
        alike = named or [key for key in cameras if stream.tag and stream.tag.lower() in _words(key)]
        if len(alike) == 1:
            found[stream.name] = alike[0]
    if found:
        return found
    if len(streams) == len(cameras) == 1:
        return {streams[0].name: next(iter(cameras))}
    tagged = {stream.tag: stream.name for stream in streams}
    if len(streams) == len(cameras) == 2 and tagged.keys() == set(SIDES):
        keys = _left_and_right(cameras, frames)
        return {tagged[side]: key for side, key in zip(SIDES, keys, strict=False)}
    return {}


def _left_and_right(cameras: Mapping[str, CameraModel], frames: FrameTree) -> list[str]:
    """Return the names of two cameras, that of the left one first; none where their places are not known."""
    one, other = cameras
    try:
        T_one_other = frames.lookup(cameras[one].frame, cameras[other].frame)
    except FrameError:
        return []
    return [one, other] if T_one_other[0, 3] > 0 else [other, one]


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z]+", name.lower())


def _calibrated(stream: Stream, key: str, camera: CameraModel) -> Stream:
    """Return a stream whose images are of a camera; its frame is the camera's."""
    loader = stream.loader
    frame = camera.frame or stream.frame
    return stream.replace(
        camera=key, frame=frame, loader=None if loader is None else _loading(loader, camera)
    )


def _loading(load: Callable[[Row], Any], camera: CameraModel) -> Callable[[Row], Any]:
    def load_calibrated(row: Row) -> Any:
        image = load(row)
        return dataclasses.replace(image, camera=camera, frame=camera.frame or image.frame)

    return load_calibrated
