"""Joining of recordings: streams are concatenated in time, or kept apart under a prefix."""

from __future__ import annotations

import dataclasses
import itertools
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from transect.base import clocks
from transect.errors import FrameError, StreamError, TimeError, TransectError

from . import arrow
from .arrow import PART
from .frames import FrameTree
from .losses import Parsed
from .recording import Recording
from .source import Source
from .stream import Row, Stream

if TYPE_CHECKING:
    from transect.types import CameraModel


def join(recordings: Sequence[Recording], *, prefix: bool = False, name: str = "") -> Recording:
    """Concatenate recordings into one.

    Streams of equal name, type and clock are concatenated in time order; `Stream.seams` marks the joints. A
    note lists the streams that a recording lacks.

    Parameters
    ----------
    prefix : bool
        Keep streams apart, named ``<recording>/<stream>``; overlaps and different calibrations are allowed.
    name : str
        Name of the joined recording; default the parts' names joined by `+`.
    """
    if not recordings:
        raise TransectError("nothing to join", hint="give at least one recording")
    joined_name = name or "+".join(r.name for r in recordings)
    if prefix:
        return _side_by_side(recordings, joined_name)
    recordings = calibrate(recordings)
    ordered = sorted(recordings, key=lambda r: r.span[0] if r.span and r.clock != "index" else 0)
    hint = _hint_apart(recordings)
    cameras = _same_cameras(ordered, hint)
    frames = ordered[0].frames
    for other in ordered[1:]:
        frames = frames.merge(other.frames)
    numbered = _number(ordered)
    names = list(dict.fromkeys(s.name for streams in numbered for s in streams))
    streams = tuple(
        _end_to_end([s for streams in numbered for s in streams if s.name == n], hint) for n in names
    )
    notes = tuple(dict.fromkeys([*(note for r in ordered for note in r.notes), *_missing(ordered, names)]))
    losses = tuple(loss for r in ordered for loss in r.reader_losses)
    conditions = {key: value for r in reversed(ordered) for key, value in r.conditions.items()}
    return recordings[0].replace(
        robot=next((r.robot for r in recordings if r.robot), None),
        parts=_parts(ordered),
        conditions={**conditions, "joined": [dict(r.conditions) for r in ordered]},
        name=joined_name,
        streams=streams,
        frames=frames,
        cameras=cameras,
        notes=notes,
        reader_losses=losses,
    )


def _hint_apart(recordings: Sequence[Recording]) -> str:
    """Return the command that opens recordings with separate streams."""
    paths = [shlex.quote(str(recording.path or recording.name)) for recording in recordings]
    return f"transect info {' '.join(paths)} --apart  keeps their streams apart; or open them one by one"


def _side_by_side(recordings: Sequence[Recording], name: str) -> Recording:
    recordings = _uniquely_named(recordings)
    numbered = zip(recordings, _number(recordings), strict=True)
    streams = [_prefix(s, r, recordings) for r, streams in numbered for s in streams]
    cameras = {
        f"{r.name}/{key}": dataclasses.replace(camera, frame=camera.frame and f"{r.name}/{camera.frame}")
        for r in recordings
        for key, camera in r.cameras.items()
    }
    frames = FrameTree()
    for r in recordings:
        frames = frames.merge(r.frames, prefix=f"{r.name}/")
    losses = tuple(loss for r in recordings for loss in r.reader_losses)
    return recordings[0].replace(
        name=name,
        streams=tuple(streams),
        cameras=cameras,
        frames=frames,
        reader_losses=losses,
        parts=_parts(recordings),
    )


def _uniquely_named(recordings: Sequence[Recording]) -> list[Recording]:
    """Return the recordings with unique names: a number is appended to repeated ones."""
    taken: set[str] = set()
    named: list[Recording] = []
    for recording in recordings:
        names = itertools.chain([recording.name], (f"{recording.name}_{n}" for n in itertools.count(2)))
        name = next(name for name in names if name not in taken)
        taken.add(name)
        named.append(recording.replace(name=name))
    return named


def _prefix(stream: Stream, own: Recording, recordings: Sequence[Recording]) -> Stream:
    """Return a stream with its recording's name as prefix of its own name and of its frames.

    A frame that exactly one recording has gets the name of that recording: the outputs of a run refer to the
    frames of the recording that was its input.
    """

    def owner(frame: str) -> str:
        owners = [each for each in recordings if frame in each.frames]
        return owners[0].name if len(owners) == 1 else own.name

    return stream.replace(
        name=f"{own.name}/{stream.name.removeprefix('/')}",
        camera=stream.camera and f"{own.name}/{stream.camera}",
        frame=stream.frame and f"{owner(stream.frame)}/{stream.frame}",
        child=stream.child and f"{owner(stream.child)}/{stream.child}",
    )


def _parts(recordings: Sequence[Recording]) -> tuple[Source | None, ...]:
    return tuple(source for recording in recordings for source in recording.parts or (recording.source,))


def _same_cameras(recordings: Sequence[Recording], hint: str) -> dict[str, CameraModel]:
    """Return the cameras; recordings with images of a camera take precedence for its calibration."""
    cameras: dict[str, CameraModel] = {}
    for key in dict.fromkeys(key for recording in recordings for key in recording.cameras):
        calibrated = [recording for recording in recordings if key in recording.cameras]
        used = [each for each in calibrated if any(s.camera == key for s in each)] or calibrated
        cameras[key] = used[0].cameras[key]
        for other in used[1:]:
            if not cameras[key].same_as(other.cameras[key]):
                raise TransectError(
                    f"the calibrations of {key!r} differ between the recordings",
                    where=other.name,
                    hint=hint,
                )
    return cameras


def _missing(recordings: Sequence[Recording], names: Sequence[str]) -> list[str]:
    """Return a sentence for each recording that lacks some of the streams."""
    recordings = [recording for recording in recordings if recording.streams]
    absent = {r.name: [name for name in names if name not in {s.name for s in r}] for r in recordings}
    return [f"{name} has no {', '.join(missing)}" for name, missing in absent.items() if missing]


def _number(recordings: Sequence[Recording]) -> list[list[Stream]]:
    """Return the streams of each recording, with the index of the part in each row of payload streams."""
    firsts = itertools.accumulate((len(r.parts or (None,)) for r in recordings), initial=0)
    return [[_with_part(s, first) for s in r] for r, first in zip(recordings, firsts, strict=False)]


def _with_part(stream: Stream, first: int) -> Stream:
    if stream.loader is None:
        return stream
    table, loader = stream.table, stream.loader
    if PART in table.column_names:
        part = arrow.numbers(table, PART) + first
        table = table.drop_columns([PART])
    else:
        part = np.full(table.num_rows, first, dtype=np.int64)
    numbered = table.append_column(PART, arrow.from_numpy(part))

    def load(row: Mapping[str, Any]) -> Any:
        return loader({**row, PART: row[PART] - first})

    return stream.replace(source=dataclasses.replace(stream.parsed, table=numbered), loader=load)


def _end_to_end(parts: Sequence[Stream], hint: str) -> Stream:
    """Return the concatenation of streams of the same type, clock, frames and units."""
    first = parts[0]
    for part in parts[1:]:
        _refuse_unlike(first, part, hint)
    _refuse_overlap([p for p in parts if len(p)], hint)
    try:
        table = pa.concat_tables([p.table for p in parts], promote_options="permissive")
    except pa.ArrowInvalid as error:
        raise StreamError(
            f"the columns of {first.name} differ between the recordings", why=str(error), hint=hint
        ) from error
    ends = np.cumsum([len(p) for p in parts])
    inner = [int(s + e - len(p)) for p, e in zip(parts, ends, strict=True) for s in p.seams]
    seams = tuple(sorted({*inner, *(int(e) for e in ends[:-1] if 0 < e < ends[-1])}))
    losses = tuple(loss for p in parts for loss in p.losses)
    notes = tuple(dict.fromkeys(n for p in parts for n in p.parsed.notes))
    shared = {
        key: value
        for key, value in first.meta.items()
        if all(_is_same(p.meta.get(key), value) for p in parts)
    }
    joined = Parsed(table, losses, notes)
    return first.replace(source=joined, seams=seams, loader=_loader_of(parts), meta=shared)


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (isinstance(one, str) and one == other)


def _refuse_unlike(first: Stream, other: Stream, hint: str) -> None:
    for what in ("type", "clock", "frame", "child"):
        if getattr(first, what) != getattr(other, what):
            raise StreamError(
                f"{first.name} has another {what} in one of the recordings",
                why=f"{getattr(first, what)} and {getattr(other, what)}",
                hint=hint,
            )
    units, others = first.units, other.units
    for name in units.keys() & others.keys():
        if units[name] != others[name]:
            raise StreamError(
                f"{first.name}: {name} is in {units[name] or 'no unit'} in one recording and in "
                f"{others[name] or 'no unit'} in another",
                hint=hint,
            )


def _refuse_overlap(filled: Sequence[Stream], hint: str) -> None:
    for before, after in itertools.pairwise(filled):
        end, start = before.timing.end_ns, after.timing.start_ns
        if end is not None and start is not None and start <= end and before.clock != "index":
            raise TimeError(
                f"the recordings overlap in {before.name}",
                why=f"one ends at {clocks.text_from_ns(end, before.clock)}, the next starts at "
                f"{clocks.text_from_ns(start, before.clock)}",
                hint=hint,
            )


def _loader_of(parts: Sequence[Stream]) -> Callable[[Row], Any] | None:
    """Return a loader that dispatches to the loader of a row's part."""
    loaders: dict[int, Callable[[Row], Any]] = {}
    for part in parts:
        if part.loader is not None:
            loaders |= dict.fromkeys(np.unique(arrow.numbers(part.table, PART)).tolist(), part.loader)
    return (lambda row: loaders[row[PART]](row)) if loaders else None


SIDES = ("left", "right")


def calibrate(recordings: Sequence[Recording]) -> list[Recording]:
    """Return the recordings, those with streams first, with the cameras of recordings without streams."""
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


def _with_mounts(known: FrameTree, calibrated: FrameTree, cameras: Sequence[str]) -> FrameTree:
    """Return the known frames with those of the cameras, connected by a common frame if there is one."""
    shared = next((name for name in calibrated.frames if name in known), None)
    if shared is None:
        return known.merge(calibrated)
    mounts = FrameTree()
    for camera in cameras:
        if camera and camera not in known:
            mounts.add_static(shared, camera, calibrated.lookup(shared, camera))
    return known.merge(mounts)


def _pair(streams: Sequence[Stream], cameras: Mapping[str, CameraModel], frames: FrameTree) -> dict[str, str]:
    """Match streams with cameras by name, tag (left, right) or position; return camera by stream."""
    found: dict[str, str] = {}
    for stream in streams:
        named = [key for key in cameras if key.lower() in (stream.camera.lower(), stream.name.lower())]
        candidates = named or [
            key for key in cameras if stream.tag and stream.tag.lower() in re.findall(r"[a-z]+", key.lower())
        ]
        if len(candidates) == 1:
            found[stream.name] = candidates[0]
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
    """Return the names of two cameras, left one first; an empty list if their extrinsics are unknown."""
    one, other = cameras
    try:
        T_one_other = frames.lookup(cameras[one].frame, cameras[other].frame)
    except FrameError:
        return []
    return [one, other] if T_one_other[0, 3] > 0 else [other, one]


def _calibrated(stream: Stream, key: str, camera: CameraModel) -> Stream:
    """Return a stream of images with a camera model and the camera's frame."""
    load = stream.loader

    def load_calibrated(row: Row) -> Any:
        assert load is not None
        image = load(row)
        return dataclasses.replace(image, camera=camera, frame=camera.frame or image.frame)

    loader = load_calibrated if load else None
    return stream.replace(camera=key, frame=camera.frame or stream.frame, loader=loader)
