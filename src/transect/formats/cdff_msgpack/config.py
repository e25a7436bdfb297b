"""CDFF configuration files: cameras (`camera_config.msg`) and static frames (`transformer_config.msg`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from transect.errors import FrameError, GeometryError
from transect.recording import FrameTree, Loss
from transect.types import CameraModel

from .._rock.payloads import camera_of
from .cursor import Broken, Cursor, Cut
from .file import Entry

_INFO = "/camera_info"


def is_config(view: memoryview, entries: Sequence[tuple[Any, Entry]]) -> bool:
    """Tell whether the first value of a map is that of a configuration file, and not of a log."""
    if not entries:
        return False
    key, entry = entries[0]
    if isinstance(key, tuple):
        return True
    try:
        cursor = Cursor(view, entry.start)
        return cursor.map_length() > 0 and cursor.value() in ("intrinsic", "baseline")
    except (Cut, Broken):
        return False


def read_config(
    view: memoryview, entries: Sequence[tuple[Any, Entry]], file: str
) -> tuple[FrameTree, dict[str, CameraModel], list[Loss], list[str]]:
    """Read the frames and cameras of a configuration file; return what was lost and noticed, too."""
    frames, cameras = FrameTree(), dict[str, CameraModel]()
    losses: list[Loss] = []
    notes: list[str] = []
    for key, entry in entries:
        try:
            value = cast(Mapping[str, Any], Cursor(view, entry.start).value())
            if isinstance(key, tuple):
                parent, child = (str(name) for name in cast("tuple[Any, ...]", key))
                frames.add_static(parent, child, _transform(value), source=file)
            else:
                name = str(key).removesuffix(_INFO)
                camera = _camera(name, value)
                if camera is not None:
                    cameras[name] = camera
                else:
                    notes.append(f"{name}: its focal length is a placeholder, so the camera is left out")
        except (Cut, Broken, KeyError, TypeError, ValueError, FrameError, GeometryError) as error:
            losses.append(Loss(file, f"{key} cannot be read: {error}", byte=entry.start))
    return frames, cameras, losses, notes


def _transform(value: Mapping[str, Any]) -> Any:
    """Return T_parent_child of (parent, child): the pose of the child, as tf has it.

    The names of the two are not explained; `tcp` to `camera_left` is (0.15, 0.045, 0.26), and the camera is
    half a baseline of 0.09 m to the left of the tool centre point.
    """
    from transect.geometry import se3

    quaternion = np.asarray(value["rotation"], dtype=np.float64)
    return se3.from_quaternion(quaternion, np.asarray(value["translation"], dtype=np.float64))


def _camera(name: str, value: Mapping[str, Any]) -> CameraModel | None:
    camera, baseline = camera_of(name, value["intrinsic"]), value.get("baseline")
    if camera is None or baseline is None:
        return camera
    P = np.column_stack([camera.K, [-camera.K[0, 0] * float(baseline), 0.0, 0.0]])
    return dataclasses.replace(camera, P=P)
