"""Rosario: a weeding robot drives along the rows of a soybean field and turns on its headland (document 001).

The robot is the document's: frames of Table 1, lenses and wheels of `weeder.yaml`, rates and files of its
section 4. The field is invented, and so is what the document does not give: how the imu is mounted (that is
in the calibration file), its noise, the robot's track width, the soil. Conditions that a user may set:

- ``depth``: `true` writes the true depth of every picture to `truth/depth/`; else `false`
- ``light``: `noon`, or `low_sun`
- ``route``: `lanes` there and back, or `round`: rounds of a small plot, 65 m in about 80 s, whose soil is its
  own: another seed is another place. Lanes all lie on the same soil
- ``rtk``: `fixed`, or `gaps` for float solutions and four seconds without any
- ``start``: `row`, or `turn` for a day that begins where the robot turns; lanes only
- ``track``: of rounds the `first` drive, `again` for another day of the same field, or `beside`, `row` and
  `rows` for another day 0.25, 0.52 or 1.04 m to the left
- ``visitors``: `none`, or `some`: a car is parked in the plot of the rounds, and somebody walks about

Not simulated: the rolling shutter, wind in the leaves, wheels in the picture.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from transect.base.arrays import Ints
from transect.base.clocks import NS, ns_from_iso
from transect.errors import UsageError
from transect.geometry import rotations
from transect.recording import FrameTree, Recording, Robot, Stream
from transect.simulation import driving, instruments, terrain
from transect.simulation.day import Day, Options, Truth
from transect.simulation.driving import Course
from transect.simulation.light import low_sun
from transect.simulation.motion import Motion
from transect.simulation.raycast import Scene
from transect.simulation.solids import Material, Solid, Solids, box, walker
from transect.simulation.terrain import Terrain

from . import sensors
from .cameras import Eye, Sky, eyes, find_noon
from .sensors import (
    ANTENNA,
    BASE,
    BESIDE,
    IMU,
    PLOT_LENGTH,
    ROW_LENGTH,
    ROW_SPACING,
    ROWS,
    calibrate_frames,
    drive_lanes,
    drive_rounds,
    load_weeder,
    make_chassis,
)

NAME = "sequence00"
"""The real sequences are 01 to 06."""
START_NS = ns_from_iso("2018-01-15T15:00:00Z")
TRUTH_RATE = 100
AFTER = 0.5
"""s that the world goes on after the recording: shutters that are still open then."""
RATES = {"Zed": 15, "Imu": 142, "Gps": 5, "Odometry": sensors.WHEEL_RATE}
"""Hz (3.2, Table 2, 4.4.1)."""
PHASES = {"Zed": 13_200_000, "Imu": 2_100_000, "Gps": 0, "Odometry": 41_000_000}
"""ns after the start at which each begins; nothing ties them together (4.2)."""
HEADLAND = 18.0
"""m; turns need 8, the rest is what cameras see beyond."""
WHEEL_SIZE = 0.25
"""m over which a wheel does not feel the ground's roughness."""
CONDITIONS = {
    "depth": ("false", "true"),
    "light": ("noon", "low_sun"),
    "route": ("lanes", "round"),
    "rtk": ("fixed", "gaps"),
    "start": ("row", "turn"),
    "track": ("first", "again", *BESIDE),
    "visitors": ("none", "some"),
}
"""Values that each condition may have, the usual one first."""
LEAST_SECONDS = 1.0
CAR_LOW, CAR_HIGH = (6.0, 5.4), (10.2, 7.1)
WALK = np.array([(13.0, 4.6), (16.5, 4.2), (16.0, 7.0)])
"""Where a car is parked and where somebody walks, m."""
ANOTHER_SKY = 1_000_003
"""Added to the seed of the clouds and of the cameras' noise on another day."""


@dataclass(frozen=True, eq=False)
class World:
    """A field and a robot that drives through it."""

    land: Terrain
    robot: Robot
    frames: FrameTree  # of the robot, calibrated
    way: Course
    motion: Motion  # of base_link

    def mounted(self, frame: str, t_ns: Ints) -> Motion:
        """Return the motion of a sensor's frame at some times."""
        return instruments.mount(self.motion, self.frames.lookup(BASE, frame)).at(t_ns)


def make_day(options: Options) -> Day:
    """Return a day in the field."""
    chosen = options.choose("rosario", CONDITIONS)
    if options.seconds < LEAST_SECONDS:
        raise UsageError(f"{options.seconds:g} s are too short a day", hint=f"at least {LEAST_SECONDS:g} s")
    world = _make_world(options, chosen)
    light = low_sun() if chosen["light"] == "low_sun" else find_noon()
    visitors = _invite(world.land) if chosen["visitors"] == "some" else []
    pair = eyes(
        world.robot, world.frames, options.scale, make_stamps("Zed", options.seconds), world.motion,
        Scene(world.land, Solids.of(visitors) if visitors else None),
        Sky(light, options.seed + (0 if chosen["track"] == "first" else ANOTHER_SKY)),
    )  # fmt: skip
    streams, truth = _make_streams_and_truth(world, options, pair, chosen)
    recording = Recording(
        NAME,
        tuple(streams),
        frames=world.frames,
        cameras={side: eye.camera for side, eye in pair.items()},
        robot=world.robot,
        conditions={"simulated": True, "world": "rosario", "seed": options.seed, **chosen},
        format="rosario",
        notes=("simulated: field, driving, imu noise and calibration are invented",),
    )
    return Day(recording.select(*options.streams) if options.streams else recording, truth)


def make_stamps(sensor: str, seconds: float) -> Ints:
    """Times (n,) at which a sensor samples in a day of some seconds; whole microseconds, as in the files."""
    rate = RATES[sensor]
    count = int(seconds * rate + 1e-6)
    return START_NS + PHASES[sensor] + np.arange(count, dtype=np.int64) * NS // rate // 1000 * 1000


@lru_cache(maxsize=2)
def make_field(seed: int, length: float = ROW_LENGTH, texture: int = 0) -> Terrain:
    """Return the field of a seed, its rows so many metres long; the last two are kept for further days."""
    return terrain.field(seed, length, ROWS, ROW_SPACING, headland=HEADLAND, texture=texture)


def _make_world(options: Options, chosen: Mapping[str, str]) -> World:
    seconds = options.seconds + AFTER
    if chosen["route"] == "round":
        land = make_field(options.seed, PLOT_LENGTH, texture=options.seed)
        way = drive_rounds(options.seed, seconds, START_NS, chosen["track"])
    else:
        land = make_field(options.seed)
        way = drive_lanes(options.seed, seconds, START_NS, chosen["start"] == "turn")
    robot = load_weeder()
    heights, slide = land.smooth(WHEEL_SIZE).at, sensors.SOIL.slide
    motion = driving.drive(way, make_chassis(robot), heights, slide, options.seed)
    return World(land, robot, calibrate_frames(robot), way, motion)


def _invite(land: Terrain) -> list[Solid]:
    """Return a car beside the first lane of a round, and a human who walks at its end."""
    car = box("car", (*CAR_LOW, 0.2), (*CAR_HIGH, 1.5), Material((0.55, 0.1, 0.08)))
    way = np.column_stack([WALK, land.smooth(WHEEL_SIZE).at(WALK)])
    return [car, *walker(way)]


def _make_streams_and_truth(
    world: World, options: Options, pair: Mapping[str, Eye], chosen: Mapping[str, str]
) -> tuple[list[Stream], Truth]:
    seed, seconds = options.seed, options.seconds
    imu_ns = make_stamps("Imu", seconds)
    imu = sensors.measure_imu(world.mounted(IMU, imu_ns), seed)
    rolling = sensors.measure_rear_wheels(world.motion, seed)
    antenna = world.mounted(ANTENNA, make_stamps("Gps", seconds))
    streams = [
        *(eye.stream() for eye in pair.values()),
        sensors.make_imu_stream(imu_ns, imu),
        *sensors.make_gps_streams(antenna, chosen["rtk"] == "gaps", seed),
        sensors.make_wheel_stream(make_stamps("Odometry", seconds), world.way, rolling, world.robot, seed),
        sensors.make_antenna_track(antenna, _choose_heading(world.motion)),
    ]
    slip = sensors.make_slip_table(world.motion, rolling, driving.RATE_HZ // TRUTH_RATE)
    truth = Truth(
        driving.truth(world.motion, TRUTH_RATE),
        tables={"slip": slip, "imu_bias": sensors.make_bias_table(imu_ns, imu)},
        maps={"dem": world.land.as_grid()},
        files=pair["left"].depth_files() | pair["right"].depth_files() if chosen["depth"] == "true" else {},
        origin=sensors.ORIGIN,
        body=BASE,
    )
    return streams, truth


def _choose_heading(motion: Motion) -> float:
    """Heading of the body at the start, rad from east to north."""
    return float(rotations.euler_from_quaternion("rpy", motion.quaternion[0])[2])
