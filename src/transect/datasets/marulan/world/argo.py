"""The Argo in a place: where it is, and what its sensors record there.

Held in memory: the ground (4 MB), the motion (at 100 Hz while it drives, one pose while it stands), the times
of all samples, the errors of Nav. Made when asked for: scans (4 s together), spectra and ranges (1 s), states
(10 s), pictures (one by one).

A block's random numbers depend on the seed, the stream and the block alone: any slice of a day has the rows
that the whole day has. The time axis is known without simulating; `between` and `take` of neighbouring rows
(and so `Recording.slice`) simulate nothing. Asking for `table`, or a column, simulates the rows of the stream
at hand, and these stay in memory: slice first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.base.clocks import TimeLike
from transect.geometry import se3
from transect.recording import Parsed, Robot, Stream, Timing, arrow
from transect.simulation.motion import Motion
from transect.simulation.randomness import generator
from transect.simulation.raycast import Scene
from transect.simulation.solids import Solids
from transect.types import LaserScan, RadarRange, RadarSpectrum, RigidBodyState, Twist

from ..logs import LASERS, NAV, RANGES, SPECTRUM
from ..logs.tables import LINES, NAV_COLUMNS, SENSORS
from . import lasers, radar
from .hour import Log, disturb, log_scans, shake
from .navigation import Drive, Skid, drive_wheels, nav_columns, payload_columns, state_errors, true_states
from .places import GROUND

SCANS, LINES_TOGETHER, STATES_TOGETHER = 300, 1001, 200
"""Rows of a block of a laser, of the radar and of Nav."""
NAV_RATE, PAYLOAD_RATE = 20.0, 10.0
"""Hz; the report does not say."""
UTM_ORIGIN = np.array([6_156_000.0, 226_000.0, -640.0])
"""North, east and down of the world's origin, m: near Marulan, zone 56, to the kilometre."""
Z_DOWN = np.array([1.0, 0.0, 0.0, 0.0])
"""Takes vectors of Body, whose z points down, to the body that drives, whose z points up: a half turn."""


@dataclass(frozen=True, eq=False)
class Argo:
    """A vehicle on a simulated day.

    Attributes
    ----------
    robot : Robot
        Its frames and constants.
    scene : Scene
    solids : Solids
        Of the scene.
    motion : Motion
        Of the body (x forward, y left, z up) in the world; reaches a little beyond the day.
    start_ns, seconds : int, float
        Of the day.
    seed : int
    stands : bool
        The vehicle does not move.
    still : bool
        Nothing moves, so that all sweeps of a laser meet the same.
    real : bool
        The lasers are as real ones are, see `hour`.
    """

    robot: Robot
    scene: Scene
    solids: Solids
    motion: Motion
    start_ns: int
    seconds: float
    seed: int
    stands: bool
    still: bool
    real: bool = False

    def poses(self, sensor: str) -> Callable[[Ints], Floats]:
        """Return the function from times (n,) in ns to ``T_world_sensor`` (n, 4, 4)."""
        mount = se3.from_quaternion(Z_DOWN, np.zeros(3)) @ self.robot.frames.lookup("Body", sensor)
        if self.stands:
            # Of all poses of a day only the first is made: an hour has 360 000.
            fixed = se3.from_quaternion(self.motion.quaternion[:1], self.motion.position[:1])[0] @ mount
            return lambda t_ns: np.broadcast_to(fixed, (len(t_ns), 4, 4))
        return lambda t_ns: self.motion.at(t_ns).transforms @ mount

    def numbers(self, rate: float) -> Ints:
        """Return the numbers (n,) of the samples that a sensor of `rate` Hz takes on the day."""
        return np.arange(int(np.ceil(self.seconds * rate - 1e-9)))


def make_streams(argo: Argo) -> list[Stream]:
    """Return the streams of lasers, radar and localisation; and of the vehicle, if it drives (3.2.6)."""
    made = [
        *(make_laser_stream(argo, name) for name in LASERS),
        make_nav_stream(argo),
        *make_radar_streams(argo),
    ]
    return made if argo.stands else made + make_payload_streams(argo)


# Lasers


def make_laser_stream(argo: Argo, name: str) -> Stream:
    """Return the scans of a laser."""
    sick = lasers.Sick.of(argo.robot)
    log, scanner = read_log(argo, name), Scanner(argo, name, sick)
    tag = name.removeprefix("Laser").lower()

    def rows(row: Ints) -> pa.Table:
        return scanner.rows(log.number[row], log.stamps[row], int(row[0]) // SCANS)

    return simulate(name, LaserScan, Blocks(log.stamps, SCANS, rows), tag=tag, frame=name)


def read_log(argo: Argo, name: str) -> Log:
    """Return which scans of a laser are in the log, and their stamps."""
    sick = lasers.Sick.of(argo.robot)
    number = argo.numbers(sick.mirror_rate)
    times = sick.times(number, argo.start_ns)
    return log_scans(number, times, argo.seed, name) if argo.real else Log(number, times)


@dataclass(frozen=True, eq=False)
class Scanner:
    """One laser on the Argo."""

    argo: Argo
    name: str
    sick: lasers.Sick

    def returns(self, number: Ints, block: int) -> lasers.Returns:
        """Return what scans (n,) of a block meet."""
        if self.argo.real:
            return self._cast_wide(number, block)
        if not self.argo.still:
            return self._cast(number)
        sweep, scan = self._sweep, number % self.sick.scans
        return lasers.Returns(sweep.range[scan], sweep.kind[scan], sweep.cosine[scan])

    @cached_property
    def _sweep(self) -> lasers.Returns:
        return self._cast(np.arange(self.sick.scans))

    def _cast(self, number: Ints) -> lasers.Returns:
        poses = self.argo.poses(self.name)
        return lasers.cast_scans(self.sick, self.argo.scene, poses, number, self.argo.start_ns)

    def _cast_wide(self, number: Ints, block: int) -> lasers.Returns:
        """Return what beams meet that are as wide as real ones, of a laser that is shaken."""
        argo, poses = self.argo, self.argo.poses(self.name)

        def shaken(t_ns: Ints) -> Floats:
            return shake(poses(t_ns), argo.seed, self.name, block)

        parts = [
            lasers.cast_scans(
                self.sick, argo.scene, shaken, number, argo.start_ns,
                (lasers.DIVERGENCE * along, lasers.DIVERGENCE * across),
            )
            for along, across, _ in lasers.SPOT
        ]  # fmt: skip
        return lasers.merge_spot(parts, argo.solids, GROUND.near_infrared)

    def rows(self, number: Ints, stamps: Ints, block: int) -> pa.Table:
        """Return the rows of a block of scans."""
        met = self.returns(number, block)
        good = lasers.find_seen(self.sick, met, self.argo.solids, GROUND.near_infrared)
        noise = generator(self.argo.seed, self.name, "noise", block)
        centimetres = lasers.measure(self.sick, met, good, noise)
        if self.argo.real:
            centimetres = disturb(centimetres, generator(self.argo.seed, self.name, "disturbances", block))
        return lasers.scan_table(self.sick, number, stamps, centimetres)


def list_hits(argo: Argo) -> pa.Table:
    """Return what every beam of every scan met.

    `kinds` has a number for each beam; `hit_kinds` names them.
    """
    sick, logs = lasers.Sick.of(argo.robot), {name: read_log(argo, name) for name in LASERS}
    coded = np.concatenate([[0, 1], argo.solids.kind + 2]).astype(np.uint8)
    counts = np.concatenate([sick.counts(log.number) for log in logs.values()])
    parts = [
        coded[met.kind + 1][np.arange(sick.beams) < sick.counts(number)[:, None]]
        for name, log in logs.items()
        for i in range(0, len(log.number), SCANS)
        for number in [log.number[i : i + SCANS]]
        for met in [Scanner(argo, name, sick).returns(number, i // SCANS)]
    ]
    columns = {
        "stream": arrow.strings(name for name, log in logs.items() for _ in log.number),
        "index": np.concatenate([np.arange(len(log.number)) for log in logs.values()]),
        "kinds": arrow.ragged_from_offsets(np.concatenate(parts), arrow.offsets_of(counts)),
    }
    return arrow.table(np.concatenate([log.stamps for log in logs.values()]), columns)


def list_hit_kinds(argo: Argo) -> pa.Table:
    """Return the names of what beams can hit, by the number that `hits` has for it."""
    names = ("nothing", "ground", *argo.solids.kinds)
    columns = {"number": np.arange(len(names)), "kind": arrow.strings(names)}
    return arrow.table(np.full(len(names), argo.start_ns), columns)


# Radar


def make_radar_streams(argo: Argo) -> list[Stream]:
    """Return the radar's ranges and its spectra."""
    fmcw = radar.Fmcw.of(argo.robot)
    number = argo.numbers(fmcw.line_rate)
    times = fmcw.times(number, argo.start_ns)
    # Ranges are found in the spectra: a block of these is kept for whoever asks second.
    spectra = lru_cache(maxsize=16)(Sweeper(argo, fmcw, len(number)).spectra)
    ranges = Blocks(times, LINES_TOGETHER, partial(_make_range_rows, fmcw, argo.start_ns, spectra))
    lines = Blocks(times, LINES_TOGETHER, partial(_make_spectrum_rows, fmcw, argo.start_ns, spectra))
    return [
        simulate(RANGES, RadarRange, ranges, role="derived", frame="Radar"),
        simulate(SPECTRUM, RadarSpectrum, lines, frame="Radar"),
    ]


@dataclass(frozen=True, eq=False)
class Sweeper:
    """The radar on the Argo; a block is eight turns of its head, after which it looks where it did."""

    argo: Argo
    fmcw: radar.Fmcw
    lines: int

    def spectra(self, block: int) -> Floats:
        """Return a block's spectra (n, bins) in dB."""
        number = np.arange(block * LINES_TOGETHER, min((block + 1) * LINES_TOGETHER, self.lines))
        whole = self.argo.still and len(number) == LINES_TOGETHER
        echoes = self._unmoved if whole else self._echoes(number)
        noise = generator(self.argo.seed, SPECTRUM, "noise", block)
        return radar.spectra(self.fmcw, len(number), echoes, noise)

    @cached_property
    def _unmoved(self) -> tuple[radar.Echoes, ...]:
        return self._echoes(np.arange(LINES_TOGETHER))

    def _echoes(self, number: Ints) -> tuple[radar.Echoes, ...]:
        argo, t_ns = self.argo, self.fmcw.times(number, self.argo.start_ns)
        head = radar.head_poses(argo.poses("Radar")(t_ns), self.fmcw.bearings(number))
        t = (t_ns - argo.start_ns).astype(np.float64) * 1e-9
        return (
            radar.surface_echoes(self.fmcw, argo.scene, argo.solids, GROUND.backscatter, head, t),
            radar.point_echoes(self.fmcw, argo.scene, argo.solids, head, t),
        )


def _make_range_rows(
    fmcw: radar.Fmcw, start_ns: int, spectra: Callable[[int], Floats], number: Ints
) -> pa.Table:
    distance, reflectivity = radar.strongest(fmcw, spectra(int(number[0]) // LINES_TOGETHER))
    columns = {
        "range": np.round(distance, 3),
        "angle": fmcw.bearings(number),
        "reflectivity": np.round(reflectivity, 2),
        "range_unit": np.full(len(number), 3, np.int8),
    }
    return arrow.table(fmcw.times(number, start_ns), columns, units=RadarRange.units())


def _make_spectrum_rows(
    fmcw: radar.Fmcw, start_ns: int, spectra: Callable[[int], Floats], number: Ints
) -> pa.Table:
    decibels = spectra(int(number[0]) // LINES_TOGETHER)
    columns = {
        "reflectivity": arrow.ragged_from_offsets(
            decibels.reshape(-1), np.arange(len(number) + 1) * fmcw.bins
        ),
        "angle": fmcw.bearings(number),
        "bin_width": np.full(len(number), fmcw.bin_width),
        "range_offset": np.full(len(number), fmcw.range_offset),
    }
    return arrow.table(fmcw.times(number, start_ns), columns, units=RadarSpectrum.units())


# The vehicle itself


def make_nav_stream(argo: Argo) -> Stream:
    """Return the localisation: the true motion and small correlated errors."""
    times = _space_times(argo, NAV_RATE)

    @lru_cache(maxsize=1)
    def errors() -> Floats:
        return state_errors(times, argo.seed)

    def rows(number: Ints) -> pa.Table:
        states = np.round(true_states(argo.motion.at(times[number]), UTM_ORIGIN) + errors()[number], 6)
        columns = {**nav_columns(states), **dict(zip(NAV_COLUMNS, states.T, strict=True))}
        units = dict(zip(NAV_COLUMNS, ["m"] * 3 + ["m/s"] * 3 + ["rad"] * 3 + ["rad/s"] * 3, strict=True))
        return arrow.table(times[number], columns, units={**RigidBodyState.units(), **units})

    blocks = Blocks(times, STATES_TOGETHER, rows)
    return simulate(NAV, RigidBodyState, blocks, role="truth", frame="Navigation", child="Body")


def _space_times(argo: Argo, rate: float) -> Ints:
    return argo.start_ns + np.rint(argo.numbers(rate) * (1e6 / rate)).astype(np.int64) * 1000


def _find_skid(argo: Argo) -> Skid:
    return Skid(float(argo.robot.constants["drive"]["wheel_separation"]))


def _read_drive(argo: Argo) -> Drive:
    return drive_wheels(_find_skid(argo), argo.motion.at(_space_times(argo, PAYLOAD_RATE)), argo.seed)


def make_payload_streams(argo: Argo) -> list[Stream]:
    """Return the streams of the vehicle's own data."""

    @lru_cache(maxsize=1)
    def columns() -> dict[str, dict[str, Floats]]:
        return payload_columns(_find_skid(argo), _read_drive(argo), argo.seed)

    def rows(name: str, units: Mapping[str, str] | None) -> Parsed:
        values = {key: np.round(column, 4) for key, column in columns()[name].items()}
        return Parsed(arrow.table(_space_times(argo, PAYLOAD_RATE), values, units=units))

    units: dict[str, Mapping[str, str]] = {sensor.stream: {sensor.column: sensor.unit} for sensor in SENSORS}
    units |= {line.stream: Twist.units() for line in LINES if line.type is Twist}
    return [
        Stream(part.stream, part.type, partial(rows, part.stream, units.get(part.stream)), frame="Body")
        for part in (*LINES, *SENSORS)
    ]


def list_slip(argo: Argo) -> pa.Table:
    """Return the true slip of the wheels, their speeds and the vehicle's."""
    drive = _read_drive(argo)
    columns = {
        "left": drive.slip[:, 0],
        "right": drive.slip[:, 1],
        "wheel_left": drive.wheels[:, 0],
        "wheel_right": drive.wheels[:, 1],
        "speed": drive.speed,
        "turn_rate": drive.turn,
    }
    units = {"wheel_left": "rad/s", "wheel_right": "rad/s", "speed": "m/s", "turn_rate": "rad/s"}
    return arrow.table(_space_times(argo, PAYLOAD_RATE), columns, units=units)


Make = Callable[[Ints], pa.Table]
"""From the numbers of a block's rows to the rows."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """Rows that are made in blocks.

    Attributes
    ----------
    times : (n,) int64 array
        Of all rows, ns.
    rows : int
        In a block; the last may have less.
    make : callable
        Makes whole blocks.
    """

    times: Ints
    rows: int
    make: Make

    def table(self, begin: int, end: int) -> pa.Table:
        """Return the rows from `begin` up to `end`."""
        if begin >= end:
            return self.table(0, 1).slice(0, 0)
        first, last = begin // self.rows, -(-end // self.rows)
        edges = [min(i * self.rows, len(self.times)) for i in range(first, last + 1)]
        tables = [self.make(np.arange(a, b)) for a, b in pairwise(edges)]
        return pa.concat_tables(tables).slice(begin - edges[0], end - begin)


def _no_blocks() -> Blocks:
    return Blocks(np.zeros(0, np.int64), 1, lambda number: pa.table({}))


@dataclass(frozen=True, eq=False)
class SimulatedStream(Stream):
    """A stream whose rows `begin` up to `end` of `blocks` are made when they are asked for."""

    blocks: Blocks = field(default_factory=_no_blocks)
    begin: int = 0
    end: int = 0

    @property
    def t_ns(self) -> Ints:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.blocks.times[self.begin : self.end]

    @property
    def timing(self) -> Timing:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Timing.of(self.t_ns, self.seams)

    def __len__(self) -> int:
        return self.end - self.begin

    def between(self, start: TimeLike | None = None, end: TimeLike | None = None) -> Stream:
        t_ns = self.t_ns
        first = 0 if start is None else int(np.searchsorted(t_ns, self._time(start)))
        last = len(t_ns) if end is None else int(np.searchsorted(t_ns, self._time(end)))
        return _cut(self, self.begin + first, self.begin + max(first, last))

    slice = between

    def take(self, keep: NDArray[np.bool_]) -> Stream:
        inside = np.flatnonzero(keep)
        if len(inside) and inside[-1] - inside[0] + 1 == len(inside):
            return _cut(self, self.begin + int(inside[0]), self.begin + int(inside[-1]) + 1)
        return super().take(keep)

    def replace(self, **changes: Any) -> Stream:
        if "source" not in changes:
            return dataclasses.replace(self, **changes)
        kept = {f.name: getattr(self, f.name) for f in dataclasses.fields(Stream)}
        return Stream(**{**kept, **changes})


def simulate(name: str, kind: type, blocks: Blocks, **attributes: Any) -> SimulatedStream:
    """Return a stream of all rows of `blocks`; attributes as of `Stream`."""
    n = len(blocks.times)
    source = partial(_parse, blocks, 0, n)
    return SimulatedStream(name, kind, source, blocks=blocks, begin=0, end=n, **attributes)


def _cut(stream: SimulatedStream, begin: int, end: int) -> SimulatedStream:
    source = partial(_parse, stream.blocks, begin, end)
    return dataclasses.replace(stream, source=source, begin=begin, end=end)


def _parse(blocks: Blocks, begin: int, end: int) -> Parsed:
    return Parsed(blocks.table(begin, end))
