"""The CSV files of a drive: poses of the sensors, inertial data, pulses of a wheel.

Poses are in metres east, north and up of a fixed point. The matrices of the development kit are passive
rotations (of the axes): ``R_enu_sensor = Rx(-roll) Ry(-pitch) Rz(-heading)``.

In the first release poses are in UTM, and roll and pitch mean something else: they are those of the car, with
the signs changed: ``R_utm_applanix = Rz(-heading) Rx(-pitch) Ry(-roll)``. By the formula above, heading and
velocity would disagree. The turn rates about x and y are rotated by the heading once too often there; they
are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import NS
from transect.base.file_bytes import Content
from transect.base.units import DEGREES
from transect.geometry import rotations, se3
from transect.recording import Loss, Parsed, Role, Source, Stream, arrow, cache
from transect.recording.source import HEAD_BYTES
from transect.recording.text import CsvLayout, line_pieces, read_csv
from transect.types import Imu, Record, RigidBodyState

from ..shared.rows import clock_of_head
from . import Attitude, header_of, rows_of, unit_of_head

POSITION = ("easting", "northing", "altitude")
VELOCITY = ("vel_east", "vel_north", "vel_up")
ANGLES = ("roll", "pitch", "heading")
RATES = ("angvel_x", "angvel_y", "angvel_z")
POSE = (*POSITION, *VELOCITY, *ANGLES, *RATES)
EXTRA_COLUMNS = {"accelx": "ax", "accely": "ay", "accelz": "az", "latitude": "lat", "longitude": "lon"}
"""Extra columns of some files, and their names here: accelerations without gravity, geodetic positions."""
UNITS = {**RigidBodyState.units(), "ax": "m/s2", "ay": "m/s2", "az": "m/s2", "lat": "rad", "lon": "rad"}
INERTIAL = {
    **{f"gyro_{axis}": (f"angvel_{axis}", f"w{axis}") for axis in "xyz"},
    **{f"acc_{axis}": (f"accel{axis}", f"a{axis}") for axis in "xyz"},
}
"""Canonical columns, and their names in the files of Boreas and of Boreas Road Trip."""
STATE = ("x", "y", "z", "qx", "qy", "qz", "qw", "vx", "vy", "vz", "wx", "wy", "wz")
MIN_UTM_NORTHING_M = 1e6
"""Toronto is at 4.8e6 m in UTM; coordinates relative to a fixed point are much smaller."""
MIN_UNIX_NS = 100_000_000 * NS
"""1973; earlier times are in another unit."""
REST_ACCELERATION_RANGE_M_S2 = (7.0, 13.0)
"""Range of accelerometers at rest, unless gravity was removed."""


def read_table(source: Source, file: str) -> Parsed:
    """Return a CSV file parsed: its columns by the names in its header, times in ns."""
    return cache.parse_pieces(source, file, "boreas.table/1", partial(parse_table, file=file))


def parse_table(content: Content, file: str) -> Iterator[Parsed]:
    """Parse a header and rows of numbers in pieces; the size of the first time determines its unit."""
    head = bytes(content[:HEAD_BYTES])
    names = [f"{name}_{i}" if name in header_of(head)[:i] else name for i, name in enumerate(header_of(head))]
    layout = CsvLayout(names, {names[0]: unit_of_head(head)})
    first = np.zeros(0, np.int64)
    for piece in line_pieces(content, file):
        csv = read_csv(piece, layout, file)
        t_ns = arrow.numbers(csv.table, names[0])
        first = np.append(first, t_ns[:1])[:1]
        same = in_one_unit(t_ns, first)
        other = [Loss(file, "the time is in another unit than the first", count=int((~same).sum()))]
        columns = {name: arrow.numbers(csv.table, name)[same] for name in names[1:]}
        yield Parsed(arrow.table(t_ns[same], columns), (*csv.losses, *([] if same.all() else other)))


def in_one_unit(t_ns: Ints, first: Ints) -> Mask:
    """Return (n,) which times are in the unit of the first (1,); all, if the first is no Unix time."""
    return (t_ns >= MIN_UNIX_NS) | (first < MIN_UNIX_NS).any()


def columns_of(table: pa.Table, names: tuple[str, ...]) -> Floats:
    """Return (n, k) columns of a table, NaN for those that are missing."""
    missing = np.full(table.num_rows, np.nan)
    known = table.column_names
    return np.column_stack([arrow.numbers(table, name) if name in known else missing for name in names])


def _read_converted(
    source: Source,
    file: str,
    parser: str,
    convert: Callable[[pa.Table], dict[str, Floats]],
    names: tuple[str, ...],
    units: dict[str, str],
) -> Parsed:
    """Return a CSV file, its columns converted while it is parsed; missing ones of `names` are a loss."""

    def build(content: Content) -> Iterator[Parsed]:
        for parsed in parse_table(content, file):
            table = arrow.table(arrow.numbers(parsed.table, "t_ns"), convert(parsed.table), units=units)
            yield Parsed(table, parsed.losses)

    missing = [name for name in names if name not in header_of(source.head(file))]
    lost = [Loss(file, f"its header has no {', '.join(missing)}", line=1)] if missing else []
    found = cache.parse_pieces(source, file, parser, build)
    return Parsed(found.table, (*found.losses, *lost))


# Poses


def pose_stream(
    source: Source, name: str, file: str, sensor: str, T_applanix_sensor: Floats | None, attitude: Attitude
) -> Stream:
    """Return the poses of a sensor, with velocities and turn rates, all in the world's axes.

    Parameters
    ----------
    T_applanix_sensor : (4, 4) array or None
        Extrinsics of the sensor; poses in UTM are corrected by them.
    """
    head = source.head(file)
    utm = is_utm(head)
    return Stream(
        name,
        RigidBodyState,
        partial(_read_poses, source, file, T_applanix_sensor, utm, attitude),
        clock=clock_of_head(head, unit_of_head(head)),
        role="truth",
        frame="utm" if utm else "enu",
        child=sensor,
    )


def is_utm(head: bytes) -> bool:
    """Return whether the first pose of a file is in UTM."""
    rows = rows_of(head, len(header_of(head)))
    return bool(rows) and len(rows[0]) > 2 and abs(rows[0][2]) > MIN_UTM_NORTHING_M


def _read_poses(
    source: Source, file: str, T_applanix_sensor: Floats | None, utm: bool, attitude: Attitude
) -> Parsed:
    T = T_applanix_sensor if utm and attitude == "auto" else None
    in_degrees = _names_in_degrees(source.head(file))

    def convert(table: pa.Table) -> dict[str, Floats]:
        return _poses(table, utm, T) | _extra_columns(table, in_degrees)

    parser = f"boreas.poses/1|{utm}|{None if T is None else T.tolist()}"
    found = _read_converted(source, file, parser, convert, POSE, UNITS)
    notes = (_note_on_utm(file, T_applanix_sensor is not None, attitude),) if utm else ()
    return replace(found, notes=notes)


def _poses(table: pa.Table, utm: bool, T_applanix_sensor: Floats | None) -> dict[str, Floats]:
    """Return the columns of the poses, velocities and turn rates in a table."""
    positions, velocities, angles, rates = np.hsplit(columns_of(table, POSE), 4)
    attitudes = rotations.quaternion_from_euler("XYZ", -angles)
    rates = _vertical_rate_only(attitudes, rates) if utm else rotations.rotate(attitudes, rates)
    if T_applanix_sensor is not None:
        positions, attitudes = _correct_roll_pitch(positions, attitudes, T_applanix_sensor)
    states = np.column_stack([positions, attitudes, velocities, rates])
    return dict(zip(STATE, states.T, strict=True))


def _correct_roll_pitch(
    positions: Floats, attitudes: Floats, T_applanix_sensor: Floats
) -> tuple[Floats, Floats]:
    """Return positions (n, 3) and attitudes (n, 4) of a sensor with roll and pitch read in the car's axes."""
    T_utm_applanix = se3.from_quaternion(attitudes, positions) @ se3.invert(T_applanix_sensor)
    roll, pitch, heading = rotations.euler_from_matrix("XYZ", T_utm_applanix[:, :3, :3]).T
    tilted = rotations.matrix_from_euler("ZXY", np.column_stack([heading, pitch, roll]))
    q, corrected = se3.to_quaternion(se3.from_matrix(tilted, T_utm_applanix[:, :3, 3]) @ T_applanix_sensor)
    return corrected, q


def _vertical_rate_only(attitudes: Floats, rates: Floats) -> Floats:
    """Return (n, 3) angular velocities in the world frame, with only the z component."""
    cos_tilt = 1 - 2 * (attitudes[:, 0] ** 2 + attitudes[:, 1] ** 2)
    unknown = np.full(len(rates), np.nan)
    return np.column_stack([unknown, unknown, cos_tilt * rates[:, 2]])


def _note_on_utm(file: str, has_extrinsics: bool, attitude: Attitude) -> str:
    tilt = "roll and pitch are read in the axes of the car (attitude=devkit reads them as pyboreas does)"
    if attitude == "devkit":
        tilt = "roll and pitch are read as pyboreas does, which does not fit the velocities"
    elif not has_extrinsics:
        tilt = "roll and pitch are wrong by the tilt of the road, as calib/ does not say where the sensor is"
    return f"{file} is in UTM, of the first release: {tilt}; turn rates about x and y are not usable there"


def _extra_columns(table: pa.Table, in_degrees: Container[str]) -> dict[str, Floats]:
    """Return the columns of a file of poses that are not part of the pose."""
    names = [str(name) for name in table.column_names[1:] if name not in POSE]
    values = {name: arrow.numbers(table, name) for name in names}
    return {
        EXTRA_COLUMNS.get(name, name): DEGREES.to_si(column) if name in in_degrees else column
        for name, column in values.items()
    }


def _names_in_degrees(head: bytes) -> list[str]:
    """Return which of latitude and longitude are not in radians in the first rows of a file."""
    names = header_of(head)
    rows = np.array(rows_of(head, len(names))).reshape(-1, len(names))
    largest = dict(zip(names, np.nanmax(np.abs(rows), axis=0, initial=0.0), strict=True))
    return [
        name
        for name, canonical in EXTRA_COLUMNS.items()
        if canonical in ("lat", "lon") and largest.get(name, 0) > np.pi
    ]


# Inertial data and wheels


def imu_stream(source: Source, name: str, file: str, frame: str, role: Role) -> Stream:
    """Return turn rates and accelerations; an `Imu` has gravity in them, else they are a `Record`."""
    head = source.head(file)
    with_gravity = has_gravity(head)
    return Stream(
        name,
        Imu if with_gravity else Record,
        partial(_read_imu, source, file, with_gravity),
        clock=clock_of_head(head, unit_of_head(head)),
        role=role,
        frame=frame,
    )


def has_gravity(head: bytes) -> bool:
    """Return whether the accelerations in the first rows of a file are as large as gravity."""
    names = header_of(head)
    axes = [names.index(name) for axis in "xyz" for name in INERTIAL[f"acc_{axis}"] if name in names]
    rows = rows_of(head, len(names))
    if len(axes) != 3 or not rows:
        return False
    size = float(np.median(np.linalg.norm(np.array(rows)[:, axes], axis=1)))
    return REST_ACCELERATION_RANGE_M_S2[0] < size < REST_ACCELERATION_RANGE_M_S2[1]


def _read_imu(source: Source, file: str, with_gravity: bool) -> Parsed:
    known = header_of(source.head(file))
    in_file = tuple(second if second in known else first for first, second in INERTIAL.values())
    canonical = [name if with_gravity or name[0] == "g" else f"linear_{name}" for name in INERTIAL]
    units = {name: "rad/s" if name[0] == "g" else "m/s2" for name in canonical}

    def convert(table: pa.Table) -> dict[str, Floats]:
        return dict(zip(canonical, columns_of(table, in_file).T, strict=True))

    found = _read_converted(source, file, f"boreas.imu/1|{with_gravity}", convert, in_file, units)
    notes = () if with_gravity else (f"gravity has been taken off the accelerations in {file}: it is no Imu",)
    return replace(found, notes=notes)


def record_stream(source: Source, name: str, file: str, frame: str) -> Stream:
    """Return the rows of a file as they are."""
    head = source.head(file)
    clock = clock_of_head(head, unit_of_head(head))
    return Stream(name, Record, partial(read_table, source, file), clock=clock, frame=frame)
