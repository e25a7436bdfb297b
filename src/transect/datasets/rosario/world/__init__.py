"""Rosario: a weeding robot drives along the rows of a soybean field and turns on its headland.

The robot is that of the paper: frames of Table 1, lenses and wheels of `weeder.yaml`, rates and files of
section 4. The field is invented, as are numbers that the paper does not state: the mount of the IMU (which is
in the calibration file), its noise, the robot's track width, the soil. Conditions:

- ``depth``: `true` writes the true depth of each image to `truth/depth/`; else `false`
- ``light``: `noon`, or `low_sun`
- ``route``: `lanes` there and back, or `round`: laps of a small plot, 65 m in about 80 s, whose soil depends
  on the seed. All lanes have the same soil
- ``rtk``: `fixed`, or `gaps` for float solutions and four seconds without a fix
- ``start``: `row`, or `turn` for a day that starts where the robot turns; lanes only
- ``track``: of laps the `first` drive, `again` for another day on the same field, or `beside`, `row` and
  `rows` for another day 0.25, 0.52 or 1.04 m to the left
- ``visitors``: `none`, or `some`: a parked car and a walking person in the plot of the laps

Not simulated: the rolling shutter, wind in the leaves, wheels in the image.
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
from transect.simulation.day import Day, Truth, WorldOptions
from transect.simulation.driving import Course
from transect.simulation.light import low_sun
from transect.simulation.motion import Motion
from transect.simulation.raycast import Scene
from transect.simulation.solids import Solid, Solids, SurfaceMaterial, box, walker
from transect.simulation.terrain import Terrain

from . import sensors
from .cameras import CloudySky, ZedCamera, make_stereo_pair, noon_light
from .sensors import (
    ANTENNA,
    BASE,
    FIELD,
    IMU,
    TRACK_OFFSETS_M,
    calibrate_frames,
    drive_lanes,
    drive_laps,
    load_weeder,
    make_chassis,
)

NAME = "sequence00"
"""The real sequences are 01 to 06."""
START_NS = ns_from_iso("2018-01-15T15:00:00Z")
RATES_HZ = {"Zed": 15, "Imu": 142, "Gps": 5, "Odometry": sensors.NOISE.wheel_rate_hz}
"""Rates of the sensors (3.2, Table 2, 4.4.1)."""
PHASES_NS = {"Zed": 13_200_000, "Imu": 2_100_000, "Gps": 0, "Odometry": 41_000_000}
"""Times of the first samples after the start; the sensors are not synchronised (4.2)."""


@dataclass(frozen=True)
class DaySettings:
    """Numbers of a simulated day."""

    truth_rate_hz: int = 100
    margin_s: float = 0.5  # Simulated time after the recording, for shutters that are still open.
    headland_m: float = 18.0  # Turns need 8 m; the rest is the cameras' background.
    wheel_blur_m: float = 0.25  # Length over which a wheel averages the ground.
    min_day_s: float = 1.0
    other_day_seed: int = 1_000_003  # Added to the seed of clouds and camera noise on another day.


SETTINGS = DaySettings()
CONDITIONS = {
    "depth": ("false", "true"),
    "light": ("noon", "low_sun"),
    "route": ("lanes", "round"),
    "rtk": ("fixed", "gaps"),
    "start": ("row", "turn"),
    "track": ("first", "again", *TRACK_OFFSETS_M),
    "visitors": ("none", "some"),
}
"""Values of each condition, the default first."""
CAR_LOW_M, CAR_HIGH_M = (6.0, 5.4), (10.2, 7.1)
"""Corners of the parked car."""
WALK = np.array([(13.0, 4.6), (16.5, 4.2), (16.0, 7.0)])
"""Corners of the loop that a person walks, m."""


@dataclass(frozen=True, eq=False)
class RosarioWorld:
    """A field and a robot that drives through it."""

    land: Terrain
    robot: Robot
    frames: FrameTree  # of the robot, calibrated
    course: Course
    motion: Motion  # of base_link

    def sensor_motion(self, frame: str, t_ns: Ints) -> Motion:
        """Return the motion of a sensor's frame at given times."""
        return instruments.mount(self.motion, self.frames.lookup(BASE, frame)).at(t_ns)


def make_day(options: WorldOptions) -> Day:
    """Simulate a day in the field."""
    chosen = options.choose("rosario", CONDITIONS)
    if options.seconds < SETTINGS.min_day_s:
        hint = f"at least {SETTINGS.min_day_s:g} s"
        raise UsageError(f"{options.seconds:g} s are too short a day", hint=hint)
    world = _make_world(options, chosen)
    light = low_sun() if chosen["light"] == "low_sun" else noon_light()
    visitors = _make_visitors(world.land) if chosen["visitors"] == "some" else []
    pair = make_stereo_pair(
        world.robot, world.frames, options.scale, make_stamps("Zed", options.seconds), world.motion,
        Scene(world.land, Solids.of(visitors) if visitors else None),
        CloudySky(light, options.seed + (0 if chosen["track"] == "first" else SETTINGS.other_day_seed)),
    )  # fmt: skip
    streams, truth = _make_streams_and_truth(world, options, pair, chosen)
    recording = Recording(
        NAME,
        tuple(streams),
        frames=world.frames,
        cameras={side: camera.camera for side, camera in pair.items()},
        robot=world.robot,
        conditions={"simulated": True, "world": "rosario", "seed": options.seed, **chosen},
        format="rosario",
        notes=("simulated: field, driving, imu noise and calibration are invented",),
    )
    return Day(recording.select(*options.streams) if options.streams else recording, truth)


def make_stamps(sensor: str, seconds: float) -> Ints:
    """Return the sample times (n,) of a sensor for a day of this length, in whole microseconds."""
    rate = RATES_HZ[sensor]
    count = int(seconds * rate + 1e-6)
    return START_NS + PHASES_NS[sensor] + np.arange(count, dtype=np.int64) * NS // rate // 1000 * 1000


@lru_cache(maxsize=2)
def make_field(seed: int, length: float = FIELD.row_length_m, texture: int = 0) -> Terrain:
    """Return the field of a seed with rows of this length, m; the last two are cached."""
    headland = SETTINGS.headland_m
    return terrain.field(seed, length, FIELD.rows, FIELD.row_spacing_m, headland=headland, texture=texture)


def _make_world(options: WorldOptions, chosen: Mapping[str, str]) -> RosarioWorld:
    seconds = options.seconds + SETTINGS.margin_s
    if chosen["route"] == "round":
        land = make_field(options.seed, FIELD.plot_length_m, texture=options.seed)
        course = drive_laps(options.seed, seconds, START_NS, chosen["track"])
    else:
        land = make_field(options.seed)
        course = drive_lanes(options.seed, seconds, START_NS, chosen["start"] == "turn")
    robot = load_weeder()
    heights, slide = land.smooth(SETTINGS.wheel_blur_m).at, sensors.SOIL.slide
    motion = driving.drive(course, make_chassis(robot), heights, slide, options.seed)
    return RosarioWorld(land, robot, calibrate_frames(robot), course, motion)


def _make_visitors(land: Terrain) -> list[Solid]:
    """Return a car beside the first lane of a lap, and a person who walks at its end."""
    car = box("car", (*CAR_LOW_M, 0.2), (*CAR_HIGH_M, 1.5), SurfaceMaterial((0.55, 0.1, 0.08)))
    path = np.column_stack([WALK, land.smooth(SETTINGS.wheel_blur_m).at(WALK)])
    return [car, *walker(path)]


def _make_streams_and_truth(
    world: RosarioWorld, options: WorldOptions, pair: Mapping[str, ZedCamera], chosen: Mapping[str, str]
) -> tuple[list[Stream], Truth]:
    seed, seconds = options.seed, options.seconds
    imu_ns = make_stamps("Imu", seconds)
    imu = sensors.measure_imu(world.sensor_motion(IMU, imu_ns), seed)
    rolling = sensors.measure_rear_wheels(world.motion, seed)
    antenna = world.sensor_motion(ANTENNA, make_stamps("Gps", seconds))
    wheel_ns = make_stamps("Odometry", seconds)
    streams = [
        *(camera.stream() for camera in pair.values()),
        sensors.make_imu_stream(imu_ns, imu),
        *sensors.make_gps_streams(antenna, chosen["rtk"] == "gaps", seed),
        sensors.make_wheel_stream(wheel_ns, world.course, rolling, world.robot, seed),
        sensors.make_antenna_track(antenna, _initial_heading(world.motion)),
    ]
    slip = sensors.make_slip_table(world.motion, rolling, driving.RATE_HZ // SETTINGS.truth_rate_hz)
    truth = Truth(
        driving.truth(world.motion, SETTINGS.truth_rate_hz),
        tables={"slip": slip, "imu_bias": sensors.make_bias_table(imu_ns, imu)},
        maps={"dem": world.land.as_grid()},
        files=pair["left"].depth_files() | pair["right"].depth_files() if chosen["depth"] == "true" else {},
        origin=sensors.ORIGIN,
        body=BASE,
    )
    return streams, truth


def _initial_heading(motion: Motion) -> float:
    """Return the heading of the body at the start, rad from east to north."""
    return float(rotations.euler_from_quaternion("rpy", motion.quaternion[0])[2])
