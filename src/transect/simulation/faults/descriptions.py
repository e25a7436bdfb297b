"""What people get wrong when they describe a robot: units, axes, sides and mounts, and streams taken twice.

The numbers are right, and are not what their description says they are. Most such mistakes have no size: the
severity is then the share of the window for which they are made, from its beginning.
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

from .model import Change, Event, Fault, is_kept, leave_alone
from .samples import change_of, flat_values, with_flat, wrap
from .timing import EVERY, STAMPED, comparable_columns, has_times, move_times

ALWAYS = (0.0, 1.0)
"""A mistake in a description is there from the first sample on."""
STANDARD_GRAVITY = 9.80665
"""m/s2 in one g."""
QUARTER_NS = 15 * 60 * 10**9
"""Zones of time are multiples of a quarter of an hour."""
SEED_CHOOSES = -1.0
_ACCELERATIONS = ("acc_x", "acc_y", "acc_z")
_RATES = ("gyro_x", "gyro_y", "gyro_z", "wx", "wy", "wz")


# Units


def mistake_unit(names: tuple[str, ...], factor: float, stream: Stream, event: Event) -> Change:
    """Give columns in another unit, of which a number is `factor` times as large."""
    part, table = event.first_part(stream), stream.table
    there = [name for name in names if name in stream.columns]
    for name in there:
        values, row = flat_values(table, name)
        table = with_flat(table, name, np.where(part[row], values * factor, values))
    return change_of(stream, table, there)


def turns(stream: Stream, recording: Recording) -> bool:
    """Tell whether a stream has rates of turn."""
    return any(name in stream.columns for name in _RATES)


def mistake_time_unit(nanoseconds: int, stream: Stream, event: Event) -> Change:
    """Take a count of longer units for nanoseconds."""
    fewer = stream.t_ns // nanoseconds
    return move_times(stream, event, np.where(event.first_part(stream), fewer - stream.t_ns, 0))


def mistake_zone(stream: Stream, event: Event) -> Change:
    """Take the time of another zone for UTC, east or west of it by the seed."""
    quarters = max(1, round(event.severity * event.parameters["hours"] * 4))
    sign = int(event.generator("sign").choice([-1, 1]))
    return move_times(stream, event, np.full(len(stream), sign * quarters * QUARTER_NS, dtype=np.int64))


# Axes


def swap_coordinates(stream: Stream, event: Event) -> Change:
    """Give longitude as latitude, and latitude as longitude."""
    part, table = event.first_part(stream), stream.table
    latitude, longitude = (flat_values(table, name)[0] for name in ("lat", "lon"))
    table = with_flat(table, "lat", np.where(part, longitude, latitude))
    table = with_flat(table, "lon", np.where(part, latitude, longitude))
    return change_of(stream, table, ["lat", "lon"])


def flip_axis(stream: Stream, event: Event) -> Change:
    """Negate what is measured along and about one axis of an inertial sensor."""
    asked = event.parameters["axis"]
    if asked not in (SEED_CHOOSES, 0, 1, 2):
        raise UsageError(f"there is no axis {asked:g}", hint="0 is x, 1 is y, 2 is z; -1: the seed chooses")
    drawn = int(event.generator(stream.name, "axis").integers(3))
    axis = "xyz"[drawn if asked == SEED_CHOOSES else int(asked)]
    names = tuple(f"{kind}_{axis}" for kind in ("acc", "gyro", "mag"))
    return mistake_unit(names, -1.0, stream, event)


# One stream for another


def find_other_side(stream: Stream, recording: Recording) -> Stream | None:
    """Return the right camera of a left one and the reverse, by tag, else by name; None for none."""
    sides = {"left": "right", "right": "left"}
    cameras = [s for s in recording if s.type is Image and s is not stream and s.clock == stream.clock]
    if stream.tag in sides:
        tagged = (s for s in cameras if s.tag == sides[stream.tag] and s.role == stream.role)
        return next(tagged, None)
    name = stream.name.lower()
    renamed = [name.replace(side, other) for side, other in sides.items() if side in name]
    return next((s for s in cameras if s.name.lower() in renamed), None)


def has_other_side(stream: Stream, recording: Recording) -> bool:
    """Tell whether a camera is one of a pair."""
    return find_other_side(stream, recording) is not None


def exchange_sides(stream: Stream, event: Event) -> Change:
    """Give a camera's pictures to the other camera of its pair."""
    other = find_other_side(stream, event.recording)
    return leave_alone(stream) if other is None else _take_over(stream, other, event)


def find_model(stream: Stream, recording: Recording) -> Stream | None:
    """Return the first stream of the same type, clock and role; None for that stream itself."""
    kind = _kind_of(stream)
    first = next((s for s in recording if not is_kept(s) and len(s) and _kind_of(s) == kind), None)
    return None if first is stream else first


def _kind_of(stream: Stream) -> tuple[Any, ...]:
    """Return what two streams must have in common for one to be a copy of the other."""
    schema = stream.table.schema
    columns = [(name, schema.field(name).type) for name in comparable_columns(stream)]
    payloads = stream.loader is not None
    return (stream.type, stream.clock, stream.role, payloads, None if payloads else columns)


def has_model(stream: Stream, recording: Recording) -> bool:
    """Tell whether another stream of the same kind comes before a stream."""
    return find_model(stream, recording) is not None


def copy_model(stream: Stream, event: Event) -> Change:
    """Give a stream the values of the first stream of its kind; it keeps its own times."""
    other = find_model(stream, event.recording)
    return leave_alone(stream) if other is None else _take_over(stream, other, event)


def _take_over(stream: Stream, other: Stream, event: Event) -> Change:
    """Return a stream that has what another one had at the nearest time."""
    part = event.first_part(stream)
    if not part.any():
        return leave_alone(stream)
    source: Ints = np.asarray(other.nearest(stream.t_ns))
    if stream.loader is not None:
        camera = event.recording.cameras.get(stream.camera)

        def rename(index: int, payload: Any) -> Any:
            """Return a payload that says, wrongly, that it is from this stream's sensor."""
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
    """Return the static edge that carries a frame, None where there is none."""
    return next((edge for edge in frames.edges if edge.child == frame and edge.matrix is not None), None)


def is_mounted(stream: Stream, recording: Recording) -> bool:
    """Tell whether the frame tree says where a stream's sensor is mounted."""
    return _find_mount(recording.frames, stream.frame) is not None


def move_mount(frames: FrameTree, stream: Stream, event: Event) -> FrameTree:
    """Move the mount of a sensor to the side, in a direction by the seed; it keeps its attitude."""
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
    """Return the streams whose sensors hang on a mount that moved: all of their samples are touched."""
    before = {edge.child: edge.matrix for edge in event.recording.frames.edges}
    moved = {edge.child for edge in frames.edges if edge.matrix is not before[edge.child]}
    return {
        s.name: Change(s, np.ones(len(s), dtype=bool), np.full(len(s), event.severity))
        for s in event.recording
        if moved and not is_kept(s) and s.frame in frames and moved & set(frames.ancestry(s.frame))
    }


_FOR_ALL = "for all of the window"

FAULTS = (
    Fault(
        "acceleration_in_g",
        "accelerations are in g where m/s2 is said",
        _FOR_ALL,
        (Imu,),
        partial(mistake_unit, _ACCELERATIONS, 1.0 / STANDARD_GRAVITY),
        lasts=ALWAYS,
        reasons=("UNIT",),
    ),
    Fault(
        "rates_in_degrees",
        "rates of turn are in deg/s where rad/s is said",
        _FOR_ALL,
        (Imu, Odometry, Twist, RigidBodyState),
        partial(mistake_unit, _RATES, 180.0 / np.pi),
        lasts=ALWAYS,
        reasons=("UNIT",),
        able=turns,
        needs="samples with rates of turn",
    ),
    *(
        Fault(
            f"times_in_{unit}",
            f"stamps count {unit} where nanoseconds are said",
            _FOR_ALL,
            EVERY,
            partial(mistake_time_unit, nanoseconds),
            lasts=ALWAYS,
            reasons=("UNIT", "META_TIME"),
            able=has_times,
            needs=STAMPED,
        )
        for unit, nanoseconds in (("milliseconds", 10**6), ("microseconds", 10**3))
    ),
    Fault(
        "time_zone",
        "stamps are those of another time zone",
        "12 hours away, in steps of a quarter of an hour",
        EVERY,
        mistake_zone,
        parameters={"hours": 12.0},
        lasts=ALWAYS,
        unit="h",
        reasons=("META_TIME",),
        able=has_times,
        needs=STAMPED,
    ),
    Fault(
        "swapped_coordinates",
        "latitude and longitude are exchanged",
        _FOR_ALL,
        (NavFix,),
        swap_coordinates,
        lasts=ALWAYS,
        reasons=("RANGE_LIMIT", "DISAGREE"),
    ),
    Fault(
        "flipped_axis",
        "one axis of an inertial sensor points the other way",
        _FOR_ALL,
        (Imu,),
        flip_axis,
        parameters={"axis": SEED_CHOOSES},
        lasts=ALWAYS,
        reasons=("EXTRINSIC",),
    ),
    Fault(
        "exchanged_cameras",
        "the left camera has the pictures of the right one, and the reverse",
        _FOR_ALL,
        (Image,),
        exchange_sides,
        lasts=ALWAYS,
        reasons=("EXTRINSIC",),
        able=has_other_side,
        needs="a left and a right camera",
        partner=find_other_side,
    ),
    Fault(
        "copied_stream",
        "a stream has the values of the first stream of its kind",
        _FOR_ALL,
        EVERY,
        copy_model,
        lasts=ALWAYS,
        reasons=("DUPLICATE",),
        able=has_model,
        needs="streams that are not the first with their type and columns",
    ),
    Fault(
        "lever_arm",
        "the frame tree has a sensor mounted elsewhere than it is",
        "0.5 m to the side",
        EVERY,
        remount=move_mount,
        parameters={"metres": 0.5},
        lasts=ALWAYS,
        unit="m",
        reasons=("EXTRINSIC",),
        able=is_mounted,
        needs="sensors whose mount is in the frame tree",
    ),
)
