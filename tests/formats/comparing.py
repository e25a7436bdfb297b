"""What differs between a recording and what was made of it by writing and opening."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from transect.recording import FrameTree, Recording, Stream
from transect.recording.arrow import PAYLOAD
from transect.types import CameraModel, Image

NAMES = ("role", "tag", "frame", "child", "camera")
MAX_ROTATION_ERROR = 1e-15
"""Rotations between frames are written as quaternions and read as unit ones, which moves their last bits."""


def differences(one: Recording, other: Recording) -> dict[str, list[str]]:
    """Return what differs, by stream, and for `frames` and `cameras`; nothing where all is equal."""
    found = {stream.name: stream_differences(stream, other) for stream in one}
    found |= {stream.name: ["is new"] for stream in other if stream.name not in one}
    found["frames"] = list(_frames(one.frames, other.frames))
    found["cameras"] = list(_cameras(one.cameras, other.cameras))
    return found


def stream_differences(one: Stream, recording: Recording, *, names: bool = True) -> list[str]:
    """Return what a stream has lost in a recording; in one of a layout with names of its own, the same type.

    Additional content, such as fields of a standard message and log times, is no loss. Without `names`
    those of frames and cameras, the role and the tag may change: a layout may have its own.
    """
    alike = [stream for stream in recording if stream.type is one.type]
    if one.name not in recording and len(alike) != 1:
        return ["is missing"]
    other = recording[one.name] if one.name in recording else alike[0]
    if len(one) != len(other):
        return [f"has {len(other)} samples for {len(one)}"]
    found = [*_attributes(one, other), *_columns(one, other), *_payloads(one, other)]
    return found if names else [what for what in found if not _is_name(what)]


def _is_name(what: str) -> bool:
    words = what.partition(" ")[0].rstrip(":")
    return words.rpartition(".")[2] in NAMES


def _attributes(one: Stream, other: Stream) -> Iterator[str]:
    for name in ("type", "clock", *NAMES):
        if getattr(one, name) != getattr(other, name):
            yield f"{name} {getattr(one, name)!r} became {getattr(other, name)!r}"
    if not np.array_equal(one.t_ns, other.t_ns):
        yield "times"
    if one.log_ns is not None and (other.log_ns is None or not np.array_equal(one.log_ns, other.log_ns)):
        yield "log times"


def _columns(one: Stream, other: Stream) -> Iterator[str]:
    names = [name for name in one.columns if name != PAYLOAD]
    for name in names:
        if name not in other.columns:
            yield f"no {name}"
        elif _plain(one.table.column(name).to_pylist()) != _plain(other.table.column(name).to_pylist()):
            yield f"other {name}"
        elif one.units.get(name, "") != other.units.get(name, ""):
            yield f"unit of {name}"


def _plain(value: Any) -> Any:
    """Return values so that NaN equals NaN, and none."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return "nan" if value is None or value != value else value


def _payloads(one: Stream, other: Stream) -> Iterator[str]:
    if one.loader is not None:
        for index in sorted({0, len(one) // 2, len(one) - 1} & set(range(len(one)))):
            before, after = one[index].value, other[index].value
            if one.type is other.type is Image:
                before, after = _picture(before), _picture(after)
            yield from _values(before, after, one.type.__name__)


def _values(one: Any, other: Any, name: str) -> Iterator[str]:
    if type(one) is not type(other):
        yield f"{name}: {type(one).__name__} became {type(other).__name__}"
    elif isinstance(one, CameraModel):
        yield from () if _plain_lens(one).same_as(_plain_lens(other)) else (name,)
    elif dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            yield from _values(getattr(one, field.name), getattr(other, field.name), f"{name}.{field.name}")
    elif isinstance(one, Mapping):
        if one.keys() != other.keys():
            yield f"{name}: {', '.join(one)} became {', '.join(other)}"
        for key in one.keys() & other.keys():
            yield from _values(one[key], other[key], f"{name}.{key}")
    elif isinstance(one, np.ndarray):
        if not np.array_equal(one, other, equal_nan=one.dtype.kind == "f"):
            yield name
    elif one != other:
        yield f"{name}: {one!r} became {other!r}"


def _frames(one: FrameTree, other: FrameTree) -> Iterator[str]:
    before = {(edge.parent, edge.child): edge for edge in one.edges}
    after = {(edge.parent, edge.child): edge for edge in other.edges}
    for names in before.keys() ^ after.keys():
        yield f"{'no' if names in before else 'new'} {' -> '.join(names)}"
    for names in before.keys() & after.keys():
        a, b = before[names], after[names]
        if a.moving != b.moving:
            yield f"{' -> '.join(names)} moves no longer"
        elif a.matrix is not None and b.matrix is not None:
            same = bool(np.allclose(a.matrix, b.matrix, rtol=0, atol=MAX_ROTATION_ERROR))
            yield from () if same else (f"other {' -> '.join(names)}",)
        elif a.motion is not None and b.motion is not None:
            same = np.array_equal(a.motion.t_ns, b.motion.t_ns)
            same = same and bool(np.allclose(a.motion.poses, b.motion.poses, rtol=0, atol=MAX_ROTATION_ERROR))
            yield from () if same else (f"other {' -> '.join(names)}",)


def _cameras(one: Mapping[str, CameraModel], other: Mapping[str, CameraModel]) -> Iterator[str]:
    for name in one.keys() | other.keys():
        if name not in one or name not in other:
            yield f"{'no' if name in one else 'new'} {name}"
        elif (
            not _plain_lens(one[name]).same_as(_plain_lens(other[name]))
            or one[name].frame != other[name].frame
        ):
            yield f"other {name}"
        elif one[name].frame != other[name].frame:
            yield f"frame of {name}"


def _picture(image: Image) -> Image:
    """Return an image as what it shows: red first, heat as grey, and all of its pixels."""
    data = image.data[..., ::-1] if image.mode == "bgr" else image.data
    mode = {"bgr": "rgb", "thermal": "gray"}.get(image.mode, image.mode)
    return dataclasses.replace(image, data=data, mode=mode, valid=None)


def _plain_lens(camera: CameraModel) -> CameraModel:
    """Return a camera without coefficients that are 0 at the end: ROS wants five."""
    return dataclasses.replace(camera, coefficients=np.trim_zeros(camera.coefficients, "b"))
