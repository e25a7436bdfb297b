"""Errors in the description of a robot: units, axes, sides, mounts and copied streams.

The values are correct, but not those that their description states. Most of these errors have no magnitude:
the severity is then the fraction of the window, from its start, that they affect.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from transect.base.arrays import Floats, Ints
from transect.errors import UsageError
from transect.recording import FrameTree, Recording, Stream, arrow
from transect.recording.frames import FrameEdge
from transect.types import Image, Imu, NavFix, Odometry, RigidBodyState, Twist

from .model import Change, Event, Fault, is_kept, leave_unchanged
from .samples import change_of, flat_values, with_flat, wrap
from .timing import EVERY, STAMPED, comparable_columns, has_times, move_times

WHOLE_RECORDING = (0.0, 1.0)
"""An error of a description affects all samples."""
STANDARD_GRAVITY_MPS2 = 9.80665
TIME_ZONE_STEP_NS = 15 * 60 * 10**9
"""Time zones are multiples of a quarter of an hour."""
RANDOM_AXIS = -1.0
"""Value of the parameter `axis` with which the seed chooses the axis."""
_ACCELERATIONS = ("acc_x", "acc_y", "acc_z")
_RATES = ("gyro_x", "gyro_y", "gyro_z", "wx", "wy", "wz")


# Units


def mistake_unit(names: tuple[str, ...], factor: float, stream: Stream, event: Event) -> Change:
    """Scale columns by a factor, as if they were in another unit."""
    part, table = event.first_part(stream), stream.table
    known = [name for name in names if name in stream.columns]
    for name in known:
        values, row = flat_values(table, name)
        table = with_flat(table, name, np.where(part[row], values * factor, values))
    return change_of(stream, table, known)


def turns(stream: Stream, recording: Recording) -> bool:
    """Whether a stream has angular rates."""
    return any(name in stream.columns for name in _RATES)


def mistake_time_unit(nanoseconds: int, stream: Stream, event: Event) -> Change:
    """Interpret a count of longer units as nanoseconds."""
    fewer = stream.t_ns // nanoseconds
    return move_times(stream, event, np.where(event.first_part(stream), fewer - stream.t_ns, 0))


def mistake_zone(stream: Stream, event: Event) -> Change:
    """Interpret the time of another zone as UTC, east or west of it by the seed."""
    quarters = max(1, round(event.severity * event.parameters["hours"] * 4))
    sign = int(event.generator("sign").choice([-1, 1]))
    return move_times(
        stream, event, np.full(len(stream), sign * quarters * TIME_ZONE_STEP_NS, dtype=np.int64)
    )


# Axes


def swap_coordinates(stream: Stream, event: Event) -> Change:
    """Swap latitude and longitude."""
    part, table = event.first_part(stream), stream.table
    latitude, longitude = (flat_values(table, name)[0] for name in ("lat", "lon"))
    table = with_flat(table, "lat", np.where(part, longitude, latitude))
    table = with_flat(table, "lon", np.where(part, latitude, longitude))
    return change_of(stream, table, ["lat", "lon"])


def flip_axis(stream: Stream, event: Event) -> Change:
    """Negate the measurements along and about one axis of an inertial sensor."""
    asked = event.parameters["axis"]
    if asked not in (RANDOM_AXIS, 0, 1, 2):
        raise UsageError(f"there is no axis {asked:g}", hint="0 is x, 1 is y, 2 is z; -1: the seed chooses")
    drawn = int(event.generator(stream.name, "axis").integers(3))
    axis = "xyz"[drawn if asked == RANDOM_AXIS else int(asked)]
    names = tuple(f"{kind}_{axis}" for kind in ("acc", "gyro", "mag"))
    return mistake_unit(names, -1.0, stream, event)


# One stream for another


def find_other_side(stream: Stream, recording: Recording) -> Stream | None:
    """Return the right camera for a left one and vice versa, by tag, else by name; None if there is none."""
    sides = {"left": "right", "right": "left"}
    cameras = [s for s in recording if s.type is Image and s is not stream and s.clock == stream.clock]
    if stream.tag in sides:
        tagged = (s for s in cameras if s.tag == sides[stream.tag] and s.role == stream.role)
        return next(tagged, None)
    name = stream.name.lower()
    renamed = [name.replace(side, other) for side, other in sides.items() if side in name]
    return next((s for s in cameras if s.name.lower() in renamed), None)


def has_other_side(stream: Stream, recording: Recording) -> bool:
    """Whether a camera is one of a pair."""
    return find_other_side(stream, recording) is not None


def exchange_sides(stream: Stream, event: Event) -> Change:
    """Exchange the images of the cameras of a pair."""
    other = find_other_side(stream, event.recording)
    return leave_unchanged(stream) if other is None else _take_over(stream, other, event)


def find_model(stream: Stream, recording: Recording) -> Stream | None:
    """Return the first stream of the same type, clock and role; None if that is the stream itself."""
    kind = _kind_of(stream)
    first = next((s for s in recording if not is_kept(s) and len(s) and _kind_of(s) == kind), None)
    return None if first is stream else first


def _kind_of(stream: Stream) -> tuple[Any, ...]:
    """Return the properties that two streams must share for one to be a copy of the other."""
    schema = stream.table.schema
    columns = [(name, schema.field(name).type) for name in comparable_columns(stream)]
    payloads = stream.loader is not None
    return (stream.type, stream.clock, stream.role, payloads, None if payloads else columns)


def has_model(stream: Stream, recording: Recording) -> bool:
    """Whether a stream is not the first of its kind."""
    return find_model(stream, recording) is not None


def copy_model(stream: Stream, event: Event) -> Change:
    """Replace the values of a stream by those of the first stream of its kind; its times are kept."""
    other = find_model(stream, event.recording)
    return leave_unchanged(stream) if other is None else _take_over(stream, other, event)


def _take_over(stream: Stream, other: Stream, event: Event) -> Change:
    """Replace the values of a stream by those of another one at the nearest times."""
    part = event.first_part(stream)
    if not part.any():
        return leave_unchanged(stream)
    source: Ints = np.asarray(other.nearest(stream.t_ns))
    if stream.loader is not None:
        camera = event.recording.cameras.get(stream.camera)

        def rename(index: int, payload: Any) -> Any:
            """Return a payload with the frame and camera of this stream, which is wrong."""
            own: dict[str, Any] = {"frame": stream.frame}
            own |= {"camera": camera} if getattr(payload, "camera", None) is not None else {}
            return dataclasses.replace(payload, **own) if hasattr(payload, "frame") else payload

        return wrap(stream, event, part, np.ones(len(stream)), rename, source, other)
    names, table = comparable_columns(stream), stream.table
    both = pa.concat_tables([table.select(names), other.table.select(names)])
    rows = both.take(arrow.from_numpy(np.where(part, len(stream) + source, np.arange(len(stream)))))
    for name in names:
        place = table.column_names.index(name)
        table = table.set_column(place, table.schema.field(name), rows.column(name))
    return change_of(stream, table, names)


# Mounts


def _find_mount(frames: FrameTree, frame: str) -> FrameEdge | None:
    """Return the static edge above a frame, None if there is none."""
    return next((edge for edge in frames.edges if edge.child == frame and edge.matrix is not None), None)


def is_mounted(stream: Stream, recording: Recording) -> bool:
    """Whether the frame tree contains the mount of a stream's sensor."""
    return _find_mount(recording.frames, stream.frame) is not None


def move_mount(frames: FrameTree, stream: Stream, event: Event) -> FrameTree:
    """Shift the mount of a sensor horizontally, in a direction by the seed; its attitude is unchanged."""
    mount = _find_mount(event.recording.frames, stream.frame)
    if mount is None or mount.matrix is None:
        return frames
    angle = event.generator(stream.frame, "direction").uniform(-np.pi, np.pi)
    T: Floats = np.array(mount.matrix, dtype=np.float64)
    T[:2, 3] += event.severity * event.parameters["metres"] * np.array([np.cos(angle), np.sin(angle)])
    result = frames.copy()
    result.add_static(mount.parent, mount.child, T, source=mount.source, replace=True)
    return result


def find_moved(event: Event, frames: FrameTree) -> dict[str, Change]:
    """Return the streams whose sensors are on a moved mount: all of their samples are affected."""
    before = {edge.child: edge.matrix for edge in event.recording.frames.edges}
    moved = {edge.child for edge in frames.edges if edge.matrix is not before[edge.child]}
    return {
        s.name: Change(s, np.ones(len(s), dtype=bool), np.full(len(s), event.severity))
        for s in event.recording
        if moved and not is_kept(s) and s.frame in frames and moved & set(frames.ancestry(s.frame))
    }


_WHOLE_WINDOW = "for the whole window"

FAULTS = (
    Fault(
        "acceleration_in_g",
        "accelerations are in g instead of m/s2",
        _WHOLE_WINDOW,
        (Imu,),
        partial(mistake_unit, _ACCELERATIONS, 1.0 / STANDARD_GRAVITY_MPS2),
        lasts=WHOLE_RECORDING,
        reasons=("UNIT",),
    ),
    Fault(
        "rates_in_degrees",
        "angular rates are in deg/s instead of rad/s",
        _WHOLE_WINDOW,
        (Imu, Odometry, Twist, RigidBodyState),
        partial(mistake_unit, _RATES, 180.0 / np.pi),
        lasts=WHOLE_RECORDING,
        reasons=("UNIT",),
        able=turns,
        needs="samples with angular rates",
    ),
    *(
        Fault(
            f"times_in_{unit}",
            f"stamps are in {unit} instead of nanoseconds",
            _WHOLE_WINDOW,
            EVERY,
            partial(mistake_time_unit, nanoseconds),
            lasts=WHOLE_RECORDING,
            reasons=("UNIT", "META_TIME"),
            able=has_times,
            needs=STAMPED,
        )
        for unit, nanoseconds in (("milliseconds", 10**6), ("microseconds", 10**3))
    ),
    Fault(
        "time_zone",
        "stamps are those of another time zone",
        "by 12 hours, in steps of a quarter of an hour",
        EVERY,
        mistake_zone,
        parameters={"hours": 12.0},
        lasts=WHOLE_RECORDING,
        unit="h",
        reasons=("META_TIME",),
        able=has_times,
        needs=STAMPED,
    ),
    Fault(
        "swapped_coordinates",
        "latitude and longitude are exchanged",
        _WHOLE_WINDOW,
        (NavFix,),
        swap_coordinates,
        lasts=WHOLE_RECORDING,
        reasons=("RANGE_LIMIT", "DISAGREE"),
    ),
    Fault(
        "flipped_axis",
        "one axis of an inertial sensor has the opposite direction",
        _WHOLE_WINDOW,
        (Imu,),
        flip_axis,
        parameters={"axis": RANDOM_AXIS},
        lasts=WHOLE_RECORDING,
        reasons=("EXTRINSIC",),
    ),
    Fault(
        "exchanged_cameras",
        "the images of the left and right camera are exchanged",
        _WHOLE_WINDOW,
        (Image,),
        exchange_sides,
        lasts=WHOLE_RECORDING,
        reasons=("EXTRINSIC",),
        able=has_other_side,
        needs="a left and a right camera",
        counterpart=find_other_side,
    ),
    Fault(
        "copied_stream",
        "a stream has the values of the first stream of its kind",
        _WHOLE_WINDOW,
        EVERY,
        copy_model,
        lasts=WHOLE_RECORDING,
        reasons=("DUPLICATE",),
        able=has_model,
        needs="streams that are not the first with their type and columns",
    ),
    Fault(
        "lever_arm",
        "the position of a sensor in the frame tree is wrong",
        "0.5 m to the side",
        EVERY,
        remount=move_mount,
        parameters={"metres": 0.5},
        lasts=WHOLE_RECORDING,
        unit="m",
        reasons=("EXTRINSIC",),
        able=is_mounted,
        needs="sensors whose mount is in the frame tree",
    ),
)
