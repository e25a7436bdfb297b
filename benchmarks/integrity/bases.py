"""The clear recordings that faults happen to: simulated days, and real recordings where there are some."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path

import transect
from benchmarks.integrity.winding import make_winding
from transect.datasets.marulan.world.disturbances import CLEAR_HOUR
from transect.errors import UsageError, did_you_mean
from transect.integrity.runner import checkable
from transect.recording import Recording, Stream, stream_of_values
from transect.simulation.day import WorldOptions, simulate

TEST_DATA = "TRANSECT_TEST_DATA"
"""Environment variable with the folder of real recordings."""
MAX_CACHED_IMAGES = 4000
"""Rendered images and clouds in the cache for later cases."""
HOUR_BLOCK_S = 300.0
"""Part of a clear hour that is simulated and checked at once, s."""


@dataclass(frozen=True, eq=False)
class Base:
    """A clear recording.

    Attributes
    ----------
    name, what : str
        What it is called, and what it is.
    make : callable
        Takes a seed; returns the recording.
    faults : tuple of str
        Patterns of the faults that are tried on it.
    real : bool
        Whether sensors recorded it; the seed then only decides what the faults do.
    long : bool
        Whether it takes minutes to make, and is no part of a quick benchmark.
    known : mapping of str to tuple of str
        By stream, reasons of defects that it really has (`docs/integrity.md`): no false alarms.
    human : bool
        Whether somebody walks about before the lasers, and nothing else happens.
    peers : bool
        Whether other tools are asked about it, too.
    """

    name: str
    what: str
    make: Callable[[int], Recording]
    faults: tuple[str, ...] = ("*",)
    real: bool = False
    long: bool = False
    known: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    human: bool = False
    peers: bool = False


@dataclass(frozen=True, eq=False)
class _Day:
    """A simulated day, made for a seed."""

    world: str
    seconds: float
    streams: tuple[str, ...] = ()
    conditions: Mapping[str, str] = field(default_factory=dict[str, str])
    scale: float = 1.0

    def __call__(self, seed: int) -> Recording:
        options = WorldOptions(self.seconds, seed, self.scale, self.streams, self.conditions)
        return keep_payloads(simulate(self.world, options).recording)


def keep_payloads(recording: Recording) -> Recording:
    """Return a recording that makes each of its images and clouds once, while there is room for them."""
    return recording.replace(streams=tuple(_keep(stream) for stream in recording))


def _keep(stream: Stream) -> Stream:
    loader = stream.loader
    if loader is None:
        return stream
    rows = {t: row for row, t in enumerate(stream.t_ns.tolist())}
    kept = lru_cache(maxsize=MAX_CACHED_IMAGES)(lambda row: loader(stream[row].row))
    return stream.replace(loader=lambda row: kept(rows[row["t_ns"]]))


def _arm(seed: int) -> Recording:
    """Return the longest time for which the arm was logged without a break."""
    day = _Day("insight", 60.0, ("Arm/SciHi*", "Arm/SciLo*"), {"story": "soil"})(seed)
    t_ns = day["Arm/SciHi/Encoders"].t_ns.tolist()
    breaks = [0, *(k for k in range(1, len(t_ns)) if t_ns[k] - t_ns[k - 1] > 2_000_000_000), len(t_ns)]
    first, last = max(pairwise(breaks), key=lambda part: part[1] - part[0])
    return day.slice(t_ns[first], t_ns[last - 1] + 1)


def _light(seed: int) -> Recording:
    """Return laser and localisation of the vehicle, and the inertial sensor of the rover; both stand."""
    day = _Day("marulan", 60.0, ("LaserHorizontal", "Nav"), CLEAR_HOUR)(seed)
    imu = _Day("etna", 60.0, ("Gnss/Imu",), {"task": "rock_picking"})(seed)["Gnss/Imu"]
    later = imu.t_ns - imu.t_ns[0] + day["Nav"].t_ns[0]
    columns = {name: imu.column(name) for name in imu.columns}
    moved = stream_of_values("Imu", later, columns, type=imu.type)
    return Recording("light", (*day.streams, moved))


LASERS, NAV = ("LaserHorizontal", "LaserPort"), ("Nav",)
RADAR = ("RadarRangeBearing",)
AIR = ("dust", "smoke", "fog", "rain")
SIMULATED = (
    Base(
        "yard",
        "lasers, radar and localisation of a vehicle that stands, with wind and visitors",
        _Day("marulan", 40.0, (*LASERS, *RADAR, *NAV), CLEAR_HOUR),
        peers=True,
    ),
    Base(
        "yard-laser",
        "the same without the radar",
        _Day("marulan", 40.0, (*LASERS, *NAV), CLEAR_HOUR),
        faults=AIR,
    ),
    Base(
        "human",
        "the same yard, where somebody walks about",
        _Day("marulan", 60.0, (*LASERS, *RADAR, *NAV), {"human": "walking"}),
        faults=(),
        human=True,
    ),
    Base(
        "houses",
        "lasers, radar, wheels and localisation of a vehicle that drives around houses",
        _Day(
            "marulan", 40.0,
            ("LaserHorizontal", "LaserVertical", *RADAR, *NAV, "Payload/*"),
            {**CLEAR_HOUR, "scene": "houses"},
        ),
    ),
    Base(
        "cameras",
        "colour and infrared camera, and localisation, of a vehicle that stands",
        _Day("marulan", 30.0, ("Video*", *NAV), CLEAR_HOUR, 0.1),
    ),
    Base(
        "crossing",
        "two lasers whose planes cross, of a vehicle that stands",
        _Day("marulan", 40.0, ("LaserVertical", "LaserPort", *NAV), CLEAR_HOUR),
        faults=("bias_step", "extrinsic_bump", "copied_stream"),
    ),
    Base(
        "winding",
        "receiver, inertial sensor and wheels of a robot that winds its way over knolls",
        make_winding,
        faults=("wheel_slip", "lever_arm", "flipped_axis", "gnss_*", "rates_in_degrees", "acceleration_in_g"),
    ),
    Base(
        "rover",
        "receiver, inertial sensor, wheels and joints of a rover on loose ground",
        _Day("etna", 60.0, ("Gnss/*", "Platform/*", "*Arm/*")),
        peers=True,
    ),
    Base(
        "picking",
        "receiver and inertial sensor of the rover, which stands while its arm picks a rock",
        _Day("etna", 60.0, ("Gnss/*", "AuxArm/*"), {"task": "rock_picking"}),
    ),
    Base(
        "lidar",
        "lidar, cameras and inertial sensor of the rover",
        _Day("etna", 20.0, ("MainCam", "Lidar", "Gnss/Imu"), {}, 0.1),
    ),
    Base(
        "weeder",
        "stereo camera, inertial sensor, receiver and wheels in a field",
        _Day("rosario", 30.0, (), {"start": "turn"}, 0.2),
    ),
    Base("light", "a laser, an inertial sensor and localisation, for the speed", _light, faults=()),
    Base("arm", "encoders and potentiometers of an arm", _arm),
)  # fmt: skip


def _open(path: Path, start: str | None, end: str | None, seed: int) -> Recording:
    del seed  # of the fault alone
    recording = transect.open(path)
    if not any(checkable(stream) for stream in recording):  # the truth of others is what its sensor measured
        recording = recording.replace(streams=tuple(s.replace(role="measurement") for s in recording))
    return recording if start is None and end is None else recording.slice(start, end)


REAL: tuple[tuple[str, str, str, tuple[str | None, str | None], Mapping[str, tuple[str, ...]]], ...] = (
    ("csail", "a SICK laser and odometry indoors", "carmen_2dlaser/mit-csail.clf.bz2", (None, "+300s"), {}),
    (
        "kitti", "stereo camera and OXTS in a turn", "kitti_06_turn", (None, None),
        {"oxts/fix": ("LATENCY",), "oxts/imu": ("LATENCY",)},
    ),
    (
        "euroc", "an inertial sensor that flies", "euroc_v101", (None, "+60s"),
        {"cam0": ("EARLY_STOP", "GAP"), "cam1": ("EARLY_STOP", "GAP")},
    ),
    (
        "husky", "a Husky: wheels, inertial sensor, receiver", "bags/robot_localization/test1.bag",
        ("+200s", "+395s"),
        {"/imu/data": ("LATENCY", "CLOCK_DRIFT"), "/husky_velocity_controller/odom": ("LATENCY",)},
    ),
    (
        "jackal", "a Jackal: wheels and inertial sensor", "bags/robot_localization/test2.bag", (None, None),
        {"/jackal_velocity_controller/odom": ("SLIP",)},
    ),
    ("boreas", "an applied INS on a car", "boreas_traj/gt", (None, "+120s"), {}),
)  # fmt: skip


def real_bases(folder: Path | None = None) -> tuple[Base, ...]:
    """Return the real recordings of a folder, or of the one that `TRANSECT_TEST_DATA` names; () without."""
    named = str(folder) if folder is not None else os.environ.get(TEST_DATA, "")
    if folder is not None and not folder.is_dir():
        raise UsageError(f"there is no folder {folder}", hint=f"--data or {TEST_DATA} names real recordings")
    if not named:
        return ()
    return tuple(
        Base(name, what, partial(_open, Path(named) / path, *part), real=True, known=known)
        for name, what, path, part, known in REAL
        if (Path(named) / path).exists()
    )


def list_known() -> dict[str, Mapping[str, tuple[str, ...]]]:
    """Return by base and stream the reasons of defects that real recordings really have."""
    return {name: known for name, _, _, _, known in REAL}


def hour_bases(blocks: int) -> Iterator[Base]:
    """Yield clear hours in parts of five minutes, of a vehicle that stands and of one that drives."""
    streams = ("Laser*", *RADAR, *NAV)
    for scene in ("static", "houses"):
        for block in range(blocks):
            make = partial(_hour_block, streams, {**CLEAR_HOUR, "scene": scene}, block)
            what = f"minutes {5 * block} to {5 * block + 5} of a clear hour ({scene})"
            yield Base(f"hour-{scene}-{block:02d}", what, make, faults=(), long=True)


def _hour_block(streams: tuple[str, ...], conditions: Mapping[str, str], block: int, seed: int) -> Recording:
    whole = simulate(
        "marulan", WorldOptions(seconds=3600.0, seed=seed, streams=streams, conditions=conditions)
    ).recording
    return whole.slice(f"+{block * HOUR_BLOCK_S:g}s", f"+{(block + 1) * HOUR_BLOCK_S:g}s")


def choose_bases(known: tuple[Base, ...], patterns: tuple[str, ...]) -> tuple[Base, ...]:
    """Return the bases whose names match any of the patterns; all if there are none."""
    if not patterns:
        return known
    names = [base.name for base in known]
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise UsageError(f"there is no base {pattern!r}", hint=did_you_mean(pattern, names))
    return tuple(base for base in known if any(fnmatch.fnmatchcase(base.name, p) for p in patterns))
