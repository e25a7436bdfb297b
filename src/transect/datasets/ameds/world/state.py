"""What is true on a day on Etna: the ground, the lander on it, and the rover that drives around it."""

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
from transect.simulation.day import Options
from transect.simulation.driving import Course
from transect.simulation.instruments import FixSchedule
from transect.simulation.lidar import MEASURED_VLP_32C, VLP_32C, SpinningLidar
from transect.simulation.light import PRESETS, Light
from transect.simulation.motion import Motion
from transect.simulation.raycast import Hits, Scene
from transect.simulation.solids import Material, Solid, Solids, box, rod
from transect.simulation.terrain import Terrain

from .rover import JOINTS, Picking, Rover, plan_far, plan_lap, plan_return

START_NS = 1_656_936_000 * NS
"""2022-07-04 12:00 UTC, in the weeks of the campaign."""
WHEEL_SIZE = 0.25
"""m over which a wheel averages the ground."""
SLOPE = (0.05, 0.03)
"""Rise per metre towards east and north."""
ROCKS = 2500
"""On 76.8 m squared."""
CLEAR = (0.7, 0.06)
"""Within so many metres of the rover's middle no rock is higher than this: someone chose the way."""
AROUND = 3.0
"""Rocks further than this from the way, m, are not that high anyway."""


class Route(NamedTuple):
    """A way and its ground."""

    # returns the course of so many seconds from a time on, so many metres to the left of its usual track
    plan: Callable[[float, int, float], Course]
    # ground, cell: m along a side of the ground, and along a cell
    ground: float = 76.8
    cell: float = 0.05
    # seconds that it takes to the end; 0: the ground is cleared of rocks only where the day is driven
    out: float = 0.0


SOILS = {"loose": wheels.LOOSE, "firm": wheels.FIRM}
COVERAGES = {
    "yes": FixSchedule("rtk fixed"),
    "no": FixSchedule("3d"),
    "gaps": FixSchedule("rtk fixed", [(8.0, 12.0, "rtk float"), (12.0, 15.0, "3d"), (15.0, 17.0, "none")]),
}
TRACKS = ("first", "again", "beside")
BESIDE, ANOTHER_DAY = 1.5, 1_000_003
"""m to the left of the usual track, where the route begins; and what another day adds to the seed."""
LIDARS = {"ideal": VLP_32C, "measured": MEASURED_VLP_32C}
ROUTES = {
    "lap": Route(plan_lap),
    "return": Route(plan_return),
    "far": Route(plan_far, ground=307.2, cell=0.1, out=345.0),
}
KNOWN = {
    "rtk": COVERAGES,
    "soil": SOILS,
    "light": PRESETS,
    "lidar": LIDARS,
    "depth": ("off", "on"),
    "task": ("traverse", "rock_picking"),
    "route": ROUTES,
    "track": TRACKS,
}
"""Conditions and their values, the usual one first."""
METAL = Material(albedo=(0.75, 0.72, 0.68), near_infrared=0.8)


@dataclass(frozen=True, eq=False)
class State:
    """The world at every moment, from what was asked for."""

    options: Options

    def __post_init__(self) -> None:
        assert self.conditions  # refuses what is not known
        if self.options.seconds < 2:
            raise UsageError(f"a day of {self.options.seconds} s is too short", hint="2 seconds or more")

    @property
    def seed(self) -> int:
        """Of everything but the ground and the lidar, which are the same on another day."""
        return self.options.seed + (0 if self.conditions["track"] == "first" else ANOTHER_DAY)

    @cached_property
    def conditions(self) -> dict[str, str]:
        """What was asked for, or the usual."""
        return self.options.choose("etna", KNOWN)

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
        """Ideal, or as dim and biased as one that was measured."""
        return LIDARS[self.conditions["lidar"]]

    @property
    def light(self) -> Light:
        """Sun and sky."""
        return PRESETS[self.conditions["light"]]()

    # The rover

    @cached_property
    def course(self) -> Course:
        """What its driver wants."""
        if self.conditions["task"] == "rock_picking":
            x, y, yaw = plan_lap(self.options.seconds, START_NS).pose[0]
            return driving.course([driving.stop(1.0)], self.options.seconds, START_NS, start=(x, y, yaw))
        return self._plan(self.options.seconds, self.conditions["track"])

    def _plan(self, seconds: float, track: str) -> Course:
        aside = BESIDE if track == "beside" else 0.0
        return ROUTES[self.conditions["route"]].plan(seconds, START_NS, aside)

    @cached_property
    def motion(self) -> Motion:
        """Of Platform, at `driving.RATE_HZ`."""
        under_wheels = self.land.smooth(WHEEL_SIZE)
        return driving.drive(
            self.course, self.rover.chassis, under_wheels.at, slide=self.soil.slide, seed=self.seed
        )

    @cached_property
    def spatial_dual(self) -> Motion:
        """Of Origin: the receiver and its IMU, x forward, y right, z down."""
        return instruments.mount(self.motion, self.rover.in_platform("Origin"))

    @cached_property
    def rolling(self) -> wheels.WheelMotion:
        """Of the four wheels, at `driving.RATE_HZ`."""
        steering = wheels.four_wheel_steering(self.course, self.rover.swivels)
        velocities = wheels.ground_velocities(self.motion, self.rover.contacts(steering), 1 / driving.RATE_HZ)
        ahead = self.motion.transforms[:, :3, 0]
        slopes = ahead[:, 2] / np.hypot(ahead[:, 0], ahead[:, 1])
        return wheels.roll(velocities, steering, slopes, self.soil, self.seed, 1 / driving.RATE_HZ)

    @cached_property
    def gravity(self) -> float:
        """m/s2 at the lander."""
        return instruments.normal_gravity(float(self.rover.origin[0]), float(self.rover.origin[2]))

    def times(self, rate: float) -> Ints:
        """Sample times (n,) at a rate in Hz, from the start to the end of the day."""
        count = int(np.floor((self.motion.t_ns[-1] - START_NS) * rate / NS)) + 1
        return START_NS + np.rint(np.arange(count) * (NS / rate)).astype(np.int64)

    @cached_property
    def picking(self) -> Picking | None:
        """The rock that AuxArm picks up, if that is the task."""
        if self.conditions["task"] != "rock_picking":
            return None
        pose = self.motion.transforms[0] @ self.rover.in_platform("Origin")
        return Picking(self.rover, self.land, pose, self.options.seconds)

    def joints(self, side: str, elapsed: Floats) -> Floats:
        """True angles (n, 7) in rad of an arm, "Main" or "Aux", at seconds (n,).

        Both keep still on a traverse, and MainArm always (section 2).
        """
        if side == "Aux" and self.picking is not None:
            return self.picking.joints(elapsed)
        return np.tile(np.array(JOINTS[side]), (len(elapsed), 1))

    # The ground

    @cached_property
    def land(self) -> Terrain:
        """Lava with rocks, none of them large where the rover drives."""
        route = ROUTES[self.conditions["route"]]
        rocky, bare = _make_mountain(self.options.seed, route.ground, route.cell)
        near, low = CLEAR
        window, distance = _measure_distances(rocky, self._chosen_ways[:, :2])
        height = rocky.height.copy()
        highest = bare.height[window] + low + np.maximum(distance - near, 0)
        height[window] = np.minimum(height[window], highest)
        return replace(rocky, height=height)

    @property
    def _chosen_ways(self) -> Floats:
        """Poses (n, 3) of all tracks of a route that is driven on several days; else of the course alone."""
        out = ROUTES[self.conditions["route"]].out
        return np.concatenate([self._plan(out, track).pose for track in TRACKS]) if out else self.course.pose

    @cached_property
    def scene(self) -> Scene:
        """The ground and what stands on it."""
        return Scene(self.land, self.solids)

    @cached_property
    def solids(self) -> Solids:
        """The lander at the world's origin, and the rock and the container if one is picked."""
        things = [] if self.picking is None else self.picking.solids()
        return Solids.of([*_build_lander(float(self.land.at(np.zeros(2)))), *things])

    def reflectance(self, places: Floats, hits: Hits) -> Floats:
        """Near-infrared reflectance (n,) of what rays hit at places (n, 3)."""
        rock = self.land.rock[_find_corners(self.land, places)]
        # Every rock has its own shade; the golden ratio spreads their numbers evenly.
        shade = np.where(rock == 0, 0.16, 0.10 + 0.22 * (rock * 0.6180339887 % 1.0))
        solid = np.maximum(hits.kind - 1, 0)
        return np.where(hits.kind > 0, self.solids.near_infrared[solid], shade)


@lru_cache(maxsize=2)
def _make_mountain(seed: int, size: float, cell: float) -> tuple[Terrain, Terrain]:
    """The slope with its rocks and without them, m along a side and a cell."""
    rocky, bare = (terrain.rough(seed, size, cell, rocks=rocks, slope=SLOPE) for rocks in (ROCKS, 0))
    return rocky, bare


def _find_corners(land: Terrain, places: Floats) -> tuple[Ints, Ints]:
    """Row and column of the corners of the grid nearest to places (n, 2 or 3)."""
    at = np.rint((places[:, :2] - land.origin) / land.cell).astype(np.int64)
    rows, columns = land.height.shape
    return np.clip(at[:, 1], 0, rows - 1), np.clip(at[:, 0], 0, columns - 1)


def _measure_distances(land: Terrain, way: Floats) -> tuple[tuple[slice, slice], Floats]:
    """A window of the corners around a way (n, 2), and their distances from it in m."""
    from scipy.ndimage import distance_transform_edt

    rows, columns = _find_corners(land, way)
    margin = round(AROUND / land.cell)
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
