"""Reading rawlogs: the objects of a file, gathered into a table for each sensor."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa

from transect.base.arrays import Floats
from transect.errors import ParseError
from transect.geometry import se3
from transect.recording import FrameTree, Parsed, Recording, Source, Stream, arrow, cache
from transect.recording.source import Buffer
from transect.types import Imu, LaserScan, Odometry

from ..shared.compression import GZIP, UNPACK, unpack
from ..shared.rows import LossCounter, only_file
from .objects import (
    CONTAINERS,
    END_BYTE,
    READERS,
    STEP,
    ByteCursor,
    DamagedObjectError,
    Observation,
    lay_in_plane,
)

ROBOT, ODOM = "robot", "odom"
KINDS: Mapping[type, str] = {LaserScan: "scan", Odometry: "odometry", Imu: "imu"}
"""Names of sensors without a label."""
PLACE = tuple(f"sensor_{name}" for name in ("x", "y", "z", "qx", "qy", "qz", "qw"))
"""Columns with the pose of a sensor on the robot."""
_UNITS = {
    **dict.fromkeys((*PLACE[:3], "std_error"), "m"),
    **dict.fromkeys(("theta", "beam_aperture", "delta_pitch"), "rad"),
}
_NEXT = re.compile(
    b"|".join(
        re.escape(bytes([0x80 | len(name)]) + name.encode())
        for each in (*READERS, *CONTAINERS)
        for name in (each, f"mrpt::obs::{each}")
    )
)


def read(source: Source) -> Recording:
    """Read scans, odometry and IMU; each object has the pose of its sensor on the robot."""
    name = only_file(source)
    parts = cache.parse_many(source, name, "rawlog/1", partial(_parse, file=name), text=False)
    rest = parts.pop("")
    if not parts:
        why = rest.losses[0].reason if rest.losses else rest.notes[0] if rest.notes else "it is empty"
        raise ParseError(f"{name} holds no scan, odometry or IMU", where=name, why=why)
    streams = tuple(_stream(key, part) for key, part in parts.items())
    return Recording(
        PurePosixPath(source.stem).stem if PurePosixPath(source.stem).suffix == ".rawlog" else source.stem,
        streams,
        frames=_frames(streams, name),
        format="rawlog",
        source=source,
        notes=rest.notes,
        reader_losses=rest.losses,
    )


def _stream(key: str, part: Parsed) -> Stream:
    word, _, name = key.partition("|")
    kind = next(each for each, said in KINDS.items() if said == word)
    if kind is Odometry:
        return Stream(name, kind, part, frame=ODOM, child=ROBOT)
    return Stream(name, kind, part, frame=name)


def _frames(streams: Sequence[Stream], file: str) -> FrameTree:
    """Return the poses of sensors on the robot; those of moving sensors are in their samples."""
    tree = FrameTree()
    for stream in streams:
        if not set(PLACE) <= set(stream.columns):
            continue
        places = stream.array(*PLACE)
        if (places == places[0]).all():
            T = se3.from_quaternion(places[0, 3:], places[0, :3])
            tree.add_static(ROBOT, stream.frame, T, source=file)
        else:
            tree.add_moving(ROBOT, stream.frame, stream.t_ns, places[:, :3], places[:, 3:], source=file)
    return tree


@dataclass
class _StreamRows:
    """Content and losses of a file."""

    observations: list[Observation] = field(default_factory=list[Observation])
    others: Counter[str] = field(default_factory=Counter[str])
    lost: LossCounter = field(default_factory=LossCounter)


def _parse(buffer: Buffer, file: str) -> dict[str, Parsed]:
    """Return a table for each sensor, by kind and name, and under "" losses and notes of the file."""
    data, damage = bytes(buffer), None
    if data.startswith(GZIP):
        data, damage = unpack(buffer, file, UNPACK[".gz"])
    found = _find(data)
    timed = _time_motions(found)
    said = ", ".join(f"{count} of {name}" for name, count in sorted(found.others.items()))
    tables = {f"{KINDS[kind]}|{name}": _table(kind, rows) for (kind, name), rows in _group(timed).items()}
    losses = (*([damage] if damage else ()), *found.lost.losses(file, "byte"))
    notes = (f"objects that are not read: {said}",) if said else ()
    return {"": Parsed(pa.table({"t_ns": pa.nulls(0, pa.int64())}), losses, notes), **tables}


def _find(data: bytes) -> _StreamRows:
    """Read one object after the other; after one that cannot be read, go on at the next that may."""
    found, at = _StreamRows(), 0
    while at < len(data):
        if data[at] == END_BYTE and not _NEXT.match(data, at):
            at += 1  # a container ends
            continue
        cursor = ByteCursor(data, at)
        try:
            name, version = cursor.begin()
            if name in CONTAINERS:
                CONTAINERS[name](cursor, version)
            elif name in READERS:
                seen = READERS[name](cursor, version)
                cursor.end()
                found.observations.append(seen)
            else:
                found.others[name] += 1
                cursor.at = _next(data, cursor.at)
            at = cursor.at
        except DamagedObjectError as error:
            found.lost.add(str(error), at)
            at = _next(data, at + 1)
    return found


def _next(data: bytes, at: int) -> int:
    """Return the position of the next object of a known class."""
    found = _NEXT.search(data, at)
    return found.start() if found else len(data)


def _time_motions(found: _StreamRows) -> list[Observation]:
    """Return the objects with times, with motions summed to poses; motions have the next time."""
    timed: list[Observation] = []
    t_ns: int | None = None
    for each in reversed(found.observations):
        t_ns = t_ns if each.t_ns is None else each.t_ns
        if t_ns is not None and (each.t_ns is not None or STEP in each.columns):
            timed.append(replace(each, t_ns=t_ns))
        else:
            found.lost.add("an object has no time", 0)
    T_odom_robot = np.eye(3)
    for k, each in enumerate(reversed(timed)):
        if STEP in each.columns:
            with np.errstate(invalid="ignore", over="ignore"):  # numbers of a damaged log
                T_odom_robot = T_odom_robot @ _planar_matrix(each.columns[STEP])
            x, y = T_odom_robot[:2, 2]
            theta = np.arctan2(T_odom_robot[1, 0], T_odom_robot[0, 0])
            timed[-1 - k] = replace(each, columns=lay_in_plane(x, y, theta))
    return timed[::-1]


def _planar_matrix(step: Floats) -> Floats:
    x, y, theta = step
    c, s = np.cos(theta), np.sin(theta)
    return np.array([[c, -s, x], [s, c, y], [0, 0, 1]])


def _group(observations: Sequence[Observation]) -> dict[tuple[type, str], list[Observation]]:
    """Return observations by kind and name of the sensor; a label that two kinds have gets the kind added."""
    kinds: dict[str, set[type]] = {}
    for each in observations:
        kinds.setdefault(each.label, set()).add(each.kind)
    groups: dict[tuple[type, str], list[Observation]] = {}
    for each in observations:
        word = KINDS[each.kind]
        label = f"{each.label}/{word}" if len(kinds[each.label]) > 1 else each.label
        groups.setdefault((each.kind, label if each.label else word), []).append(each)
    return groups


def _table(kind: type, rows: Sequence[Observation]) -> Parsed:
    """Return a table of the observations of one sensor; columns that none of them has are left out."""
    names = dict.fromkeys(name for each in rows for name in each.columns)
    columns = {name: _column([each.columns.get(name) for each in rows]) for name in names}
    known = {name: values for name, values in columns.items() if not _is_missing(values)}
    if all(each.pose is not None for each in rows):
        known |= dict(zip(PLACE, np.array([each.pose for each in rows]).T, strict=True))
    flat = {k: np.ascontiguousarray(v) if isinstance(v, np.ndarray) else v for k, v in known.items()}
    t_ns = np.array([each.t_ns for each in rows], np.int64)
    return Parsed(arrow.table(t_ns, flat, units={**_UNITS, **kind.units()}))


def _column(values: Sequence[Any]) -> Any:
    """Return a column of numbers, with NaN for missing ones, or of lists."""
    if any(isinstance(value, np.ndarray) for value in values):
        kind = next(value.dtype for value in values if value is not None)
        return arrow.ragged([np.zeros(0, kind) if value is None else value for value in values])
    return np.array([np.nan if value is None else value for value in values])


def _is_missing(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind == "f" and bool(np.isnan(values).all())
