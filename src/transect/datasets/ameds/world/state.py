"""True state of a simulated day on Etna: the ground, the lander, and the rover."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.errors import UsageError
from transect.simulation import driving, instruments, terrain, wheels
from transect.simulation.day import WorldOptions
from transect.simulation.driving import Course
from transect.simulation.instruments import FixSchedule
from transect.simulation.lidar import MEASURED_VLP_32C, VLP_32C, SpinningLidar
from transect.simulation.light import PRESETS, Light
from transect.simulation.motion import Motion
from transect.simulation.raycast import Hits, Scene
from transect.simulation.solids import Solid, Solids, SurfaceMaterial, box, rod
from transect.simulation.terrain import Terrain

from .rover import JOINTS_RAD, RockPicking, Rover, plan_far, plan_lap, plan_return

START_NS = 1_656_936_000 * NS
"""2022-07-04 12:00 UTC, in the weeks of the campaign."""


@dataclass(frozen=True)
class GroundSettings:
    """Numbers of the ground and of the drives."""

    wheel_blur_m: float = 0.25  # Length over which a wheel averages the ground.
    slope: tuple[float, float] = (0.05, 0.03)  # Towards east and north.
    rocks: int = 2500
    clear_distance_m: float = 0.7  # Within this distance of the rover's path ...
    clear_height_m: float = 0.06  # ... no rock is higher than this, as a driver avoids them.
    margin_m: float = 3.0  # Distance from the path beyond which no rock needs to be lowered.
    track_offset_m: float = 1.5  # Offset of the track `beside` to the left.
    other_day_seed: int = 1_000_003  # Added to the seed on another day.


SETTINGS = GroundSettings()


class Route(NamedTuple):
    """A course and its ground."""

    # function of duration (s), start (ns) and offset to the left (m)
    plan: Callable[[float, int, float], Course]
    ground: float = 76.8  # length of a side of the ground, m
    cell: float = 0.05  # m
    # duration to the end, s; 0 if the ground is cleared of rocks only along the course of the day
    duration: float = 0.0


SOILS = {"loose": wheels.LOOSE, "firm": wheels.FIRM}
COVERAGES = {
    "yes": FixSchedule("rtk fixed"),
    "no": FixSchedule("3d"),
    "gaps": FixSchedule("rtk fixed", [(8.0, 12.0, "rtk float"), (12.0, 15.0, "3d"), (15.0, 17.0, "none")]),
}
TRACKS = ("first", "again", "beside")
LIDARS = {"ideal": VLP_32C, "measured": MEASURED_VLP_32C}
ROUTES = {
    "lap": Route(plan_lap),
    "return": Route(plan_return),
    "far": Route(plan_far, ground=307.2, cell=0.1, duration=345.0),
}
CONDITIONS = {
    "rtk": COVERAGES,
    "soil": SOILS,
    "light": PRESETS,
    "lidar": LIDARS,
    "depth": ("off", "on"),
    "task": ("traverse", "rock_picking"),
    "route": ROUTES,
    "track": TRACKS,
}
"""Conditions and their values, the default first."""
METAL = SurfaceMaterial(albedo=(0.75, 0.72, 0.68), near_infrared=0.8)


@dataclass(frozen=True, eq=False)
class EtnaState:
    """State of the world at any time, for the options of a day."""

    options: WorldOptions

    def __post_init__(self) -> None:
        assert self.conditions  # refuses unknown conditions
        if self.options.seconds < 2:
            raise UsageError(f"a day of {self.options.seconds} s is too short", hint="2 seconds or more")

    @property
    def seed(self) -> int:
        """Seed of everything except the ground and the lidar, which are the same on another day."""
        return self.options.seed + (0 if self.conditions["track"] == "first" else SETTINGS.other_day_seed)

    @cached_property
    def conditions(self) -> dict[str, str]:
        """Value of each condition."""
        return self.options.choose("etna", CONDITIONS)

    @cached_property
    def rover(self) -> Rover:
        """Interact."""
        return Rover.load()

    @cached_property
    def soil(self) -> wheels.SoilSlip:
        """Loose or firm."""
        return SOILS[self.conditions["soil"]]

    @property
    def lidar(self) -> SpinningLidar:
        """Ideal lidar, or one with measured sensitivity and biases."""
        return LIDARS[self.conditions["lidar"]]

    @property
    def light(self) -> Light:
        """Sun and sky."""
        return PRESETS[self.conditions["light"]]()

    # The rover

    @cached_property
    def course(self) -> Course:
        """Commanded course."""
        if self.conditions["task"] == "rock_picking":
            x, y, yaw = plan_lap(self.options.seconds, START_NS).pose[0]
            return driving.course([driving.stop(1.0)], self.options.seconds, START_NS, start=(x, y, yaw))
        return self._plan(self.options.seconds, self.conditions["track"])

    def _plan(self, seconds: float, track: str) -> Course:
        offset = SETTINGS.track_offset_m if track == "beside" else 0.0
        return ROUTES[self.conditions["route"]].plan(seconds, START_NS, offset)

    @cached_property
    def motion(self) -> Motion:
        """Motion of Platform, at `driving.RATE_HZ`."""
        ground = self.land.smooth(SETTINGS.wheel_blur_m)
        return driving.drive(
            self.course, self.rover.chassis, ground.at, slide=self.soil.slide, seed=self.seed
        )

    @cached_property
    def spatial_dual(self) -> Motion:
        """Motion of Origin: the receiver and its IMU, x forward, y right, z down."""
        return instruments.mount(self.motion, self.rover.in_platform("Origin"))

    @cached_property
    def rolling(self) -> wheels.RollingWheels:
        """Motion of the four wheels, at `driving.RATE_HZ`."""
        steering = wheels.four_wheel_steering(self.course, self.rover.swivels)
        velocities = wheels.ground_velocities(self.motion, self.rover.contacts(steering), 1 / driving.RATE_HZ)
        ahead = self.motion.transforms[:, :3, 0]
        slopes = ahead[:, 2] / np.hypot(ahead[:, 0], ahead[:, 1])
        return wheels.roll(velocities, steering, slopes, self.soil, self.seed, 1 / driving.RATE_HZ)

    @cached_property
    def gravity(self) -> float:
        """Gravity at the lander, m/s2."""
        return instruments.normal_gravity(float(self.rover.origin[0]), float(self.rover.origin[2]))

    def times(self, rate: float) -> Ints:
        """Return sample times (n,) at a rate, Hz, from the start to the end of the day."""
        count = int(np.floor((self.motion.t_ns[-1] - START_NS) * rate / NS)) + 1
        return START_NS + np.rint(np.arange(count) * (NS / rate)).astype(np.int64)

    @cached_property
    def picking(self) -> RockPicking | None:
        """Rock picking by AuxArm, None on a traverse."""
        if self.conditions["task"] != "rock_picking":
            return None
        pose = self.motion.transforms[0] @ self.rover.in_platform("Origin")
        return RockPicking(self.rover, self.land, pose, self.options.seconds)

    def joints(self, side: str, elapsed: Floats) -> Floats:
        """Return the true angles (n, 7) of an arm, "Main" or "Aux", rad, at seconds (n,).

        Both arms rest on a traverse, and MainArm always (section 2).
        """
        if side == "Aux" and self.picking is not None:
            return self.picking.joints(elapsed)
        return np.tile(np.array(JOINTS_RAD[side]), (len(elapsed), 1))

    # The ground

    @cached_property
    def land(self) -> Terrain:
        """Lava with rocks, without large ones on the rover's path."""
        route = ROUTES[self.conditions["route"]]
        rocky, bare = _make_mountain(self.options.seed, route.ground, route.cell)
        window, distance = _distances_from_path(rocky, self._cleared_path[:, :2])
        height = rocky.height.copy()
        slack = np.maximum(distance - SETTINGS.clear_distance_m, 0)
        highest = bare.height[window] + SETTINGS.clear_height_m + slack
        height[window] = np.minimum(height[window], highest)
        return replace(rocky, height=height)

    @property
    def _cleared_path(self) -> Floats:
        """Poses (n, 3) of all tracks of a route that is driven on several days, else of the course."""
        duration = ROUTES[self.conditions["route"]].duration
        if not duration:
            return self.course.pose
        return np.concatenate([self._plan(duration, track).pose for track in TRACKS])

    @cached_property
    def scene(self) -> Scene:
        """Ground and solids."""
        return Scene(self.land, self.solids)

    @cached_property
    def solids(self) -> Solids:
        """Lander at the world's origin, and rock and container of a rock picking."""
        objects = [] if self.picking is None else self.picking.solids()
        return Solids.of([*_build_lander(float(self.land.at(np.zeros(2)))), *objects])

    def reflectance(self, points: Floats, hits: Hits) -> Floats:
        """Return the near-infrared reflectance (n,) of ray hits at points (n, 3)."""
        rock = self.land.rock[_nearest_corners(self.land, points)]
        # Each rock has its own shade; the golden ratio distributes them evenly.
        shade = np.where(rock == 0, 0.16, 0.10 + 0.22 * (rock * 0.6180339887 % 1.0))
        solid = np.maximum(hits.kind - 1, 0)
        return np.where(hits.kind > 0, self.solids.near_infrared[solid], shade)


@lru_cache(maxsize=2)
def _make_mountain(seed: int, size: float, cell: float) -> tuple[Terrain, Terrain]:
    """Return the slope with and without rocks; `size` is the length of a side, m."""
    rocky, bare = (
        terrain.rough(seed, size, cell, rocks=rocks, slope=SETTINGS.slope) for rocks in (SETTINGS.rocks, 0)
    )
    return rocky, bare


def _nearest_corners(land: Terrain, points: Floats) -> tuple[Ints, Ints]:
    """Return row and column of the grid corners nearest to points (n, 2 or 3)."""
    at = np.rint((points[:, :2] - land.origin) / land.cell).astype(np.int64)
    rows, columns = land.height.shape
    return np.clip(at[:, 1], 0, rows - 1), np.clip(at[:, 0], 0, columns - 1)


def _distances_from_path(land: Terrain, path: Floats) -> tuple[tuple[slice, slice], Floats]:
    """Return a window of the corners around a path (n, 2), and their distances from it, m."""
    from scipy.ndimage import distance_transform_edt

    rows, columns = _nearest_corners(land, path)
    margin = round(SETTINGS.margin_m / land.cell)
    window = tuple(slice(max(int(at.min()) - margin, 0), int(at.max()) + margin) for at in (rows, columns))
    away = np.ones(land.height.shape, bool)
    away[rows, columns] = False
    distances = np.asarray(distance_transform_edt(away[window]), dtype=np.float64)
    return (window[0], window[1]), distances * land.cell


def _build_lander(ground: float) -> list[Solid]:
    legs = [(x, y) for x in (-1.3, 1.3) for y in (-1.3, 1.3)]
    return [
        box("lander", (-0.9, -0.9, ground + 0.9), (0.9, 0.9, ground + 2.1), METAL),
        *(
            rod("lander", (0.6 * x, 0.6 * y, ground + 1.0), (x, y, ground - 0.2), 0.06, METAL)
            for x, y in legs
        ),
    ]
