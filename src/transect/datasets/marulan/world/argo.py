"""Simulated streams of the Argo at a site.

Kept in memory: the ground (4 MB), the motion (at 100 Hz while it drives, one pose while it stands), the times
of all samples, and the errors of Nav. Computed on access, in blocks: scans (4 s), spectra and ranges (1 s),
states (10 s), images (one by one).

The random numbers of a block depend only on the seed, the stream and the block: a slice of a day has the same
rows as the whole day. Times are known without simulation; `between` and `take` of consecutive rows (and so
`Recording.slice`) simulate nothing. Access to `table`, or a column, simulates the rows of the stream, which
stay in memory: slice first.
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
from ..logs.tables import LINES, NAV_COLUMNS, SENSORS, RangeUnit
from . import lasers, radar
from .disturbances import ScanLog, disturb, log_scans, shake
from .navigation import (
    SkidSteerModel,
    WheelMotion,
    drive_wheels,
    nav_columns,
    payload_columns,
    state_errors,
    true_states,
)
from .sites import GROUND


@dataclass(frozen=True)
class StreamSettings:
    """Rates of streams, which SDI does not state, and sizes of the blocks that are simulated together."""

    nav_rate_hz: float = 20.0
    payload_rate_hz: float = 10.0
    scans_per_block: int = 300
    lines_per_block: int = 1001  # Eight revolutions of the radar's head, after which bearings repeat.
    states_per_block: int = 200


SETTINGS = StreamSettings()
UTM_ORIGIN = np.array([6_156_000.0, 226_000.0, -640.0])
"""North, east and down of the world's origin, m: near Marulan, zone 56, to the kilometre."""
Z_DOWN = np.array([1.0, 0.0, 0.0, 0.0])
"""Quaternion from Body (z down) to the body of the motion (z up): a half turn."""


@dataclass(frozen=True, eq=False)
class Argo:
    """The vehicle on a simulated day."""

    robot: Robot
    scene: Scene
    solids: Solids  # of the scene
    motion: Motion  # of the body (x forward, y left, z up) in the world, to a little after the day
    start_ns: int
    seconds: float  # length of the day
    seed: int
    stands: bool  # the vehicle does not move
    still: bool  # nothing moves, so that all sweeps of a laser have the same returns
    real: bool = False  # the lasers have the errors of `disturbances`

    def poses(self, sensor: str) -> Callable[[Ints], Floats]:
        """Return a function from times (n,) in ns to ``T_world_sensor`` (n, 4, 4)."""
        mount = se3.from_quaternion(Z_DOWN, np.zeros(3)) @ self.robot.frames.lookup("Body", sensor)
        if self.stands:
            # Only the first of the poses is computed: an hour has 360 000.
            fixed = se3.from_quaternion(self.motion.quaternion[:1], self.motion.position[:1])[0] @ mount
            return lambda t_ns: np.broadcast_to(fixed, (len(t_ns), 4, 4))
        return lambda t_ns: self.motion.at(t_ns).transforms @ mount

    def numbers(self, rate: float) -> Ints:
        """Return the numbers (n,) of the samples of a sensor with `rate` Hz."""
        return np.arange(int(np.ceil(self.seconds * rate - 1e-9)))


def make_streams(argo: Argo) -> list[Stream]:
    """Return the streams of lasers, radar and localisation, and of the vehicle if it drives (3.2.6)."""
    streams = [
        *(make_laser_stream(argo, name) for name in LASERS),
        make_nav_stream(argo),
        *make_radar_streams(argo),
    ]
    return streams if argo.stands else streams + make_payload_streams(argo)


# Lasers


def make_laser_stream(argo: Argo, name: str) -> Stream:
    """Return the scans of a laser."""
    sick = lasers.Sick.of(argo.robot)
    log, scanner = read_log(argo, name), Scanner(argo, name, sick)
    tag = name.removeprefix("Laser").lower()

    def rows(row: Ints) -> pa.Table:
        return scanner.rows(log.number[row], log.stamps[row], int(row[0]) // SETTINGS.scans_per_block)

    blocks = LazyBlocks(log.stamps, SETTINGS.scans_per_block, rows)
    return simulate(name, LaserScan, blocks, tag=tag, frame=name)


def read_log(argo: Argo, name: str) -> ScanLog:
    """Return the scans of a laser that are in the log, and their stamps."""
    sick = lasers.Sick.of(argo.robot)
    number = argo.numbers(sick.mirror_rate)
    times = sick.times(number, argo.start_ns)
    return log_scans(number, times, argo.seed, name) if argo.real else ScanLog(number, times)


@dataclass(frozen=True, eq=False)
class Scanner:
    """One laser on the Argo."""

    argo: Argo
    name: str
    sick: lasers.Sick

    def returns(self, number: Ints, block: int) -> lasers.Returns:
        """Return the returns of scans (n,) of a block."""
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
        """Return the returns of beams of realistic width, of a vibrating laser."""
        argo, poses = self.argo, self.argo.poses(self.name)

        def shaken(t_ns: Ints) -> Floats:
            return shake(poses(t_ns), argo.seed, self.name, block)

        width = self.sick.beam_width
        parts = [
            lasers.cast_scans(
                self.sick, argo.scene, shaken, number, argo.start_ns, (width * along, width * across)
            )
            for along, across, _ in lasers.SPOT
        ]
        return lasers.merge_spot(self.sick, parts, argo.solids, GROUND.near_infrared)

    def rows(self, number: Ints, stamps: Ints, block: int) -> pa.Table:
        """Return the rows of a block of scans."""
        returns = self.returns(number, block)
        good = lasers.find_detected(self.sick, returns, self.argo.solids, GROUND.near_infrared)
        noise = generator(self.argo.seed, self.name, "noise", block)
        centimetres = lasers.measure(self.sick, returns, good, noise)
        if self.argo.real:
            centimetres = disturb(centimetres, generator(self.argo.seed, self.name, "disturbances", block))
        return lasers.scan_table(self.sick, number, stamps, centimetres)


def list_hits(argo: Argo) -> pa.Table:
    """Return the kind of object that each beam of each scan hit, as numbers; see `list_hit_kinds`."""
    sick, logs = lasers.Sick.of(argo.robot), {name: read_log(argo, name) for name in LASERS}
    coded = np.concatenate([[0, 1], argo.solids.kind + 2]).astype(np.uint8)
    counts = np.concatenate([sick.counts(log.number) for log in logs.values()])
    parts = [
        coded[returns.kind + 1][np.arange(sick.beams) < sick.counts(number)[:, None]]
        for name, log in logs.items()
        for block, i in enumerate(range(0, len(log.number), SETTINGS.scans_per_block))
        for number in [log.number[i : i + SETTINGS.scans_per_block]]
        for returns in [Scanner(argo, name, sick).returns(number, block)]
    ]
    columns = {
        "stream": arrow.strings(name for name, log in logs.items() for _ in log.number),
        "index": np.concatenate([np.arange(len(log.number)) for log in logs.values()]),
        "kinds": arrow.ragged_from_offsets(np.concatenate(parts), arrow.offsets_of(counts)),
    }
    return arrow.table(np.concatenate([log.stamps for log in logs.values()]), columns)


def list_hit_kinds(argo: Argo) -> pa.Table:
    """Return the names of the kinds of objects by their numbers in `list_hits`."""
    names = ("nothing", "ground", *argo.solids.kinds)
    columns = {"number": np.arange(len(names)), "kind": arrow.strings(names)}
    return arrow.table(np.full(len(names), argo.start_ns), columns)


# Radar


def make_radar_streams(argo: Argo) -> list[Stream]:
    """Return the radar's ranges and its spectra."""
    fmcw = radar.Fmcw.of(argo.robot)
    number = argo.numbers(fmcw.line_rate)
    times = fmcw.times(number, argo.start_ns)
    # Ranges are computed from the spectra, so that blocks of spectra are cached for both streams.
    spectra = lru_cache(maxsize=16)(RadarSimulator(argo, fmcw, len(number)).spectra)
    rows = SETTINGS.lines_per_block
    ranges = LazyBlocks(times, rows, partial(_make_range_rows, fmcw, argo.start_ns, spectra))
    lines = LazyBlocks(times, rows, partial(_make_spectrum_rows, fmcw, argo.start_ns, spectra))
    return [
        simulate(RANGES, RadarRange, ranges, role="derived", frame="Radar"),
        simulate(SPECTRUM, RadarSpectrum, lines, frame="Radar"),
    ]


@dataclass(frozen=True, eq=False)
class RadarSimulator:
    """The radar on the Argo."""

    argo: Argo
    fmcw: radar.Fmcw
    lines: int

    def spectra(self, block: int) -> Floats:
        """Return a block's spectra (n, bins) in dB."""
        rows = SETTINGS.lines_per_block
        number = np.arange(block * rows, min((block + 1) * rows, self.lines))
        is_repeated = self.argo.still and len(number) == rows
        echoes = self._static_echoes if is_repeated else self._echoes(number)
        noise = generator(self.argo.seed, SPECTRUM, "noise", block)
        return radar.spectra(self.fmcw, len(number), echoes, noise)

    @cached_property
    def _static_echoes(self) -> tuple[radar.Echoes, ...]:
        return self._echoes(np.arange(SETTINGS.lines_per_block))

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
    distance, reflectivity = radar.find_strongest(fmcw, spectra(int(number[0]) // SETTINGS.lines_per_block))
    columns = {
        "range": np.round(distance, 3),
        "angle": fmcw.bearings(number),
        "reflectivity": np.round(reflectivity, 2),
        "range_unit": np.full(len(number), RangeUnit.METRES, np.int8),
    }
    return arrow.table(fmcw.times(number, start_ns), columns, units=RadarRange.units())


def _make_spectrum_rows(
    fmcw: radar.Fmcw, start_ns: int, spectra: Callable[[int], Floats], number: Ints
) -> pa.Table:
    decibels = spectra(int(number[0]) // SETTINGS.lines_per_block)
    columns = {
        "reflectivity": arrow.ragged_from_offsets(
            decibels.reshape(-1), np.arange(len(number) + 1) * fmcw.bins
        ),
        "angle": fmcw.bearings(number),
        "bin_width": np.full(len(number), fmcw.bin_width),
        "range_offset": np.full(len(number), fmcw.range_offset),
    }
    return arrow.table(fmcw.times(number, start_ns), columns, units=RadarSpectrum.units())


# Vehicle


def make_nav_stream(argo: Argo) -> Stream:
    """Return the localisation: the true motion with small correlated errors."""
    times = _sample_times(argo, SETTINGS.nav_rate_hz)

    @lru_cache(maxsize=1)
    def errors() -> Floats:
        return state_errors(times, argo.seed)

    def rows(number: Ints) -> pa.Table:
        states = np.round(true_states(argo.motion.at(times[number]), UTM_ORIGIN) + errors()[number], 6)
        columns = {**nav_columns(states), **dict(zip(NAV_COLUMNS, states.T, strict=True))}
        units = dict(zip(NAV_COLUMNS, ["m"] * 3 + ["m/s"] * 3 + ["rad"] * 3 + ["rad/s"] * 3, strict=True))
        return arrow.table(times[number], columns, units={**RigidBodyState.units(), **units})

    blocks = LazyBlocks(times, SETTINGS.states_per_block, rows)
    return simulate(NAV, RigidBodyState, blocks, role="truth", frame="Navigation", child="Body")


def _sample_times(argo: Argo, rate: float) -> Ints:
    return argo.start_ns + np.rint(argo.numbers(rate) * (1e6 / rate)).astype(np.int64) * 1000


def _skid_steer_model(argo: Argo) -> SkidSteerModel:
    return SkidSteerModel(float(argo.robot.constants["drive"]["wheel_separation"]))


def _wheel_motion(argo: Argo) -> WheelMotion:
    motion = argo.motion.at(_sample_times(argo, SETTINGS.payload_rate_hz))
    return drive_wheels(_skid_steer_model(argo), motion, argo.seed)


def make_payload_streams(argo: Argo) -> list[Stream]:
    """Return the streams of the vehicle's own data."""

    @lru_cache(maxsize=1)
    def columns() -> dict[str, dict[str, Floats]]:
        return payload_columns(_skid_steer_model(argo), _wheel_motion(argo), argo.seed)

    def rows(name: str, units: Mapping[str, str] | None) -> Parsed:
        values = {key: np.round(column, 4) for key, column in columns()[name].items()}
        return Parsed(arrow.table(_sample_times(argo, SETTINGS.payload_rate_hz), values, units=units))

    units: dict[str, Mapping[str, str]] = {sensor.stream: {sensor.column: sensor.unit} for sensor in SENSORS}
    units |= {line.stream: Twist.units() for line in LINES if line.type is Twist}
    return [
        Stream(part.stream, part.type, partial(rows, part.stream, units.get(part.stream)), frame="Body")
        for part in (*LINES, *SENSORS)
    ]


def list_slip(argo: Argo) -> pa.Table:
    """Return the true slip of the wheels, their speeds and the vehicle's."""
    motion = _wheel_motion(argo)
    columns = {
        "left": motion.slip[:, 0],
        "right": motion.slip[:, 1],
        "wheel_left": motion.wheels[:, 0],
        "wheel_right": motion.wheels[:, 1],
        "speed": motion.speed,
        "turn_rate": motion.turn,
    }
    units = {"wheel_left": "rad/s", "wheel_right": "rad/s", "speed": "m/s", "turn_rate": "rad/s"}
    return arrow.table(_sample_times(argo, SETTINGS.payload_rate_hz), columns, units=units)


@dataclass(frozen=True, eq=False)
class LazyBlocks:
    """Rows that are computed in blocks."""

    times: Ints  # (n,) of all rows, ns
    rows: int  # of a block; the last one may have fewer
    make: Callable[[Ints], pa.Table]  # returns a block, given the numbers of its rows

    def table(self, begin: int, end: int) -> pa.Table:
        """Return the rows from `begin` to `end`, exclusive."""
        if begin >= end:
            return self.table(0, 1).slice(0, 0)
        first, last = begin // self.rows, -(-end // self.rows)
        edges = [min(i * self.rows, len(self.times)) for i in range(first, last + 1)]
        tables = [self.make(np.arange(a, b)) for a, b in pairwise(edges)]
        return pa.concat_tables(tables).slice(begin - edges[0], end - begin)


def _no_blocks() -> LazyBlocks:
    return LazyBlocks(np.zeros(0, np.int64), 1, lambda number: pa.table({}))


@dataclass(frozen=True, eq=False)
class SimulatedStream(Stream):
    """A stream of the rows `begin` to `end` (exclusive) of `blocks`, which are computed on access."""

    blocks: LazyBlocks = field(default_factory=_no_blocks)
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


def simulate(name: str, kind: type, blocks: LazyBlocks, **attributes: Any) -> SimulatedStream:
    """Return a stream of all rows of `blocks`, with attributes of `Stream`."""
    n = len(blocks.times)
    source = partial(_parse, blocks, 0, n)
    return SimulatedStream(name, kind, source, blocks=blocks, begin=0, end=n, **attributes)


def _cut(stream: SimulatedStream, begin: int, end: int) -> SimulatedStream:
    source = partial(_parse, stream.blocks, begin, end)
    return dataclasses.replace(stream, source=source, begin=begin, end=end)


def _parse(blocks: LazyBlocks, begin: int, end: int) -> Parsed:
    return Parsed(blocks.table(begin, end))
