"""Interact as a machine that drives and moves its arms; numbers from the document, equations written here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from transect import robots
from transect.base.arrays import Floats, Mask
from transect.errors import UsageError
from transect.geometry import se3
from transect.recording import Robot
from transect.simulation import driving, wheels
from transect.simulation.driving import Chassis, Course, Leg
from transect.simulation.motion import Motion, derivatives
from transect.simulation.solids import TRACK_STEP_S, Material, Solid, ellipsoid, turned_box
from transect.simulation.terrain import Terrain

WHEEL_RADIUS = 0.2
"""m; not in the document, invented: a clearance of 20 cm and H = 13.5 cm leave little choice."""
MASS = 430.0
"""kg; not in the document, invented: platform, two arms and payload."""
JOINTS = {
    "Main": (0.0, -0.703, 0.0, -2.0, 0.0, -0.983, 0.0),
    "Aux": (1.43, 1.61, -0.946, -1.801, -0.903, 1.64, 1.421),
}
"""rad: MainCam 1.9 m over the ground and AuxCam in front, level, looking ahead and 18 and 25 degrees down."""


@dataclass(frozen=True, eq=False)
class Rover:
    """Interact."""

    robot: Robot  # whose frames and constants are used

    @classmethod
    def load(cls) -> Rover:
        """Return the rover of document 000."""
        return cls(robots.load("interact"))

    def number(self, group: str, key: str) -> Any:
        """Return a constant of the robot."""
        return self.robot.constants[group][key]

    @cached_property
    def height(self) -> float:
        """Of Platform over the ground: axles are H below it, wheels stand on the ground."""
        return float(self.number("platform", "wheel_height")) + WHEEL_RADIUS

    @cached_property
    def swivels(self) -> Floats:
        """(4, 2): steering axes in Platform, m: front left, rear left, rear right, front right (errata)."""
        length, width = (float(self.number("platform", key)) for key in ("half_length", "half_width"))
        return np.array([[length, width], [-length, width], [-length, -width], [length, -width]])

    @cached_property
    def sides(self) -> Floats:
        """(4,): 1 for a left wheel, -1 for a right one."""
        return np.sign(self.swivels[:, 1])

    @property
    def swivel_length(self) -> float:
        """From a steering axis to its wheel, m."""
        return float(self.number("platform", "swivel_length"))

    @cached_property
    def chassis(self) -> Chassis:
        """The wheels straight ahead."""
        outward = np.column_stack([np.zeros(4), self.swivel_length * self.sides])
        return Chassis(self.swivels + outward, self.height)

    @property
    def metres_per_tick(self) -> float:
        """AMEDS eq. 4 and the wheel's radius."""
        return 2 * np.pi * WHEEL_RADIUS / float(self.number("drive", "ticks_per_turn"))

    @cached_property
    def origin(self) -> Floats:
        """Geodetic (3,): the lander, origin of the world."""
        return np.array([self.number("world_origin", k) for k in ("latitude", "longitude", "altitude")])

    def in_platform(self, frame: str) -> Floats:
        """``T_Platform_frame`` (4, 4) of a frame that does not move on the rover."""
        return self.robot.frames.lookup("Platform", frame)

    # Wheels

    def contacts(self, steering: Floats) -> Floats:
        """Where the wheels (n, 4, 3) touch the ground, in Platform."""
        return wheels.swivelled_contacts(steering, self.swivels, self.swivel_length, self.height)

    def steer_ticks(self, steering: Floats) -> Floats:
        """Whole ticks (n, 4) of the steer motors at angles (n, 4): AMEDS eq. 5, solved for the ticks."""
        steer = self.robot.constants["steer"]
        turned = (steering - steer["angle_at_rest"]) * steer["rack_per_radian"]
        rack = turned + steer["rack_at_rest"] + steer["rack_offset"]
        ticks = np.rint(rack * steer["ticks_per_metre"])
        return ticks * np.asarray(steer["polarity"], dtype=np.float64) + 0.0

    def steering(self, ticks: Floats) -> Floats:
        """Angles (n, 4) in rad of ticks (n, 4) of the steer motors: AMEDS eq. 5, see errata."""
        steer = self.robot.constants["steer"]
        rack = np.asarray(steer["polarity"], dtype=np.float64) * ticks / steer["ticks_per_metre"]
        at_rest = steer["rack_at_rest"] + steer["rack_offset"]
        return steer["angle_at_rest"] + (rack - at_rest) / steer["rack_per_radian"]

    def commanded_speeds(self, way: Course, steering: Floats) -> Floats:
        """Rim speeds (n, 4) in m/s that the course asks for on level ground without slip."""
        vx, vy, wz = (column[:, None] for column in way.twist.T)
        places = self.contacts(steering)
        moved, _ = derivatives(places, 1 / driving.RATE_HZ)
        x = vx - wz * places[..., 1] + moved[..., 0]
        y = vy + wz * places[..., 0] + moved[..., 1]
        return x * np.cos(steering) + y * np.sin(steering)

    def platform_twist(self, rim: Floats, steering: Floats) -> Floats:
        """vx, vy, wz (n, 3) that fit rims (n, 4) which roll and do not slide: least squares."""
        places, c, s = self.contacts(steering), np.cos(steering), np.sin(steering)
        x, y = places[..., 0], places[..., 1]
        along = np.stack([c, s, x * s - y * c], axis=-1)
        across = np.stack([-s, c, x * c + y * s], axis=-1)
        rows = np.concatenate([along, across], axis=1)
        goal = np.concatenate([rim, np.zeros_like(rim)], axis=1)
        normal = np.einsum("nki,nkj->nij", rows, rows)
        return np.linalg.solve(normal, np.einsum("nki,nk->ni", rows, goal)[..., None])[..., 0]

    def wheel_rotations(self, steering: Floats, drive: Floats) -> Floats:
        """``R_Platform_Wheel`` (n, 4, 3, 3), its axle along x outwards: Table 5 as the errata read it."""
        yaw, roll = steering + self.sides * np.pi / 2, self.sides * drive
        cz, sz, cx, sx = np.cos(yaw), np.sin(yaw), np.cos(roll), np.sin(roll)
        rows = [[cz, -sz * cx, sz * sx], [sz, cz * cx, -cz * sx], [np.zeros_like(cz), sx, cx]]
        return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)

    def loads(self, force: Floats) -> Floats:
        """Normal forces (n, 4) in N at the wheels, of specific forces (n, 3) in Platform, m/s2.

        Weight and inertia act at Platform; of all forces that balance them, the most even ones.
        """
        places = self.chassis.contacts
        balance = np.vstack([np.ones(4), places.T])
        moment = -self.height * force[:, :2]
        return MASS * np.column_stack([force[:, 2], moment]) @ np.linalg.pinv(balance).T

    # Arms

    def arm_end(self, angles: Floats) -> Floats:
        """``T_base_end`` (n, 4, 4): product of Craig's modified DH transforms (Table 3, see errata)."""
        arm = self.robot.constants["arm"]
        result = np.tile(np.eye(4), (len(angles), 1, 1))
        for joint, (alpha, a, d) in enumerate(zip(arm["alpha"], arm["a"], arm["d"], strict=True)):
            result = result @ _place_link(alpha, a, d, angles[:, joint])
        return result

    def camera_in_origin(self, side: str, angles: Floats) -> Floats:
        """``T_Origin_Cam`` (n, 4, 4) of MainCam or AuxCam."""
        base = self.robot.frames.lookup("Origin", f"{side}Arm (base)")
        return base @ self.arm_end(angles) @ self.robot.frames.lookup(f"{side}Arm (end)", f"{side}Cam")

    def camera_in_world(self, side: str, platform: Motion, angles: Floats) -> Floats:
        """``T_world_Cam`` (n, 4, 4) at the samples of the platform's motion, with joint angles (n, 7)."""
        camera = self.camera_in_origin(side, angles)
        return se3.compose(platform.transforms, self.in_platform("Origin"), camera)


def _place_link(alpha: float, a: float, d: float, theta: Floats) -> Floats:
    """``Rot_x(alpha) Trans_x(a) Rot_z(theta) Trans_z(d)`` (n, 4, 4)."""
    ca, sa, c, s = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
    T = np.zeros((len(theta), 4, 4))
    T[:, 0, 0], T[:, 0, 1], T[:, 0, 3] = c, -s, a
    T[:, 1, 0], T[:, 1, 1], T[:, 1, 2], T[:, 1, 3] = s * ca, c * ca, -sa, -d * sa
    T[:, 2, 0], T[:, 2, 1], T[:, 2, 2], T[:, 2, 3] = s * sa, c * sa, ca, d * ca
    T[:, 3, 3] = 1.0
    return T


# The way


def _plan_side() -> list[Leg]:
    """A quarter of the way around the lander, with the manoeuvres of Figure 7: 90 degrees to the left."""
    return [
        driving.straight(3.0, 0.4),
        driving.turn(0.5, 3.0, 0.4),
        driving.turn(-0.5, 3.0, 0.4),
        driving.straight(2.0, 0.5),
        driving.crab(1.5, -0.3, 0.3),
        driving.stop(3.0),
        driving.straight(1.0, -0.3),
        driving.spot_turn(-0.4, 0.25),
        driving.turn(np.pi / 2 + 0.4, 4.0, 0.5),
    ]


def plan_return(seconds: float, start_ns: int, aside: float = 0.0) -> Course:
    """The course out past the lander, back, and out again, as often as it takes: one ground both ways."""
    ways = [(6.0, 0.6), (6.0, -0.9), (8.0, 0.7), (6.0, 0.0)]
    start = _step_aside((-15.0, -14.0, 0.1), aside)
    return driving.course(_plan_there_and_back(ways, 0.7, seconds), seconds, start_ns, start)


def plan_far(seconds: float, start_ns: int, aside: float = 0.0) -> Course:
    """The same over 268 m of winding ground: as long as a traverse of Table 6, as fast as the fastest."""
    ways = [(28.0, 0.8), (34.0, -1.1), (40.0, 0.9), (30.0, -0.9), (36.0, 0.8), (40.0, -0.5), (35.0, 0.0)]
    start = _step_aside((-115.0, -45.0, 0.1), aside)
    return driving.course(_plan_there_and_back(ways, 0.8, seconds), seconds, start_ns, start)


def _step_aside(start: tuple[float, float, float], metres: float) -> tuple[float, float, float]:
    """Return a planar pose so many metres to the left of another."""
    x, y, yaw = start
    return x - metres * float(np.sin(yaw)), y + metres * float(np.cos(yaw)), yaw


def _plan_there_and_back(ways: Sequence[tuple[float, float]], speed: float, seconds: float) -> list[Leg]:
    """Straight and bent ways out in turn, the same ways back, and again until the time is over."""
    about = driving.spot_turn(np.pi, 0.35)
    out = [leg for length, bend in ways for leg in _plan_bend(length, bend, speed)]
    home = [leg for length, bend in ways[::-1] for leg in _plan_bend(length, -bend, speed)[::-1]]
    once = [*out, about, *home, about]
    return once * (int(seconds / sum(leg.seconds for leg in once)) + 1)


def _plan_bend(length: float, bend: float, speed: float) -> list[Leg]:
    """Straight on for metres, then a bend in rad."""
    return [driving.straight(length, speed), *([driving.turn(bend, 5.0, speed)] if bend else [])]


def plan_lap(seconds: float, start_ns: int, aside: float = 0.0) -> Course:
    """The course around the lander for a time, as often as it takes; it begins in the south-west."""
    side = _plan_side()
    once = driving.course(side, 120.0).pose[-1]
    nominal = sum(leg.seconds for leg in side)
    legs = side * (int(seconds / nominal) + 1)
    # Four sides, each turned by a right angle, come back to the start: this is what they turn about.
    x, y = once[:2]
    start = _step_aside((-(x - y) / 2, -(x + y) / 2, 0.0), aside)
    return driving.course(legs, seconds, start_ns, start)


ROCK = np.array([0.045, 0.04, 0.035])
"""m: its half lengths."""
PLACE = np.array([1.20, 0.20])
"""m ahead and to the right of Origin: where it lies."""
ABOVE, INSIDE = 0.25, 0.02
"""m over rock and container from where the gripper goes down, and over the container's rim at the end."""
PARTS = (0.08, 0.28, 0.36, 0.46, 0.56, 0.70, 0.76, 0.84, 0.98)
"""When of the whole time: it starts, is over the rock, at it, has grasped it, has lifted it, is over the
container, at it, has let go, is back."""
LAVA, PLATE = Material((0.30, 0.16, 0.12), 0.25), Material((0.7, 0.7, 0.68), 0.6)


@dataclass(frozen=True, eq=False)
class Picking:
    """One rock that is picked up."""

    rover: Rover
    land: Terrain
    T_world_origin: Floats  # (4, 4), where the rover stands
    seconds: float  # how long all of it takes

    @cached_property
    def tip(self) -> Floats:
        """(3,) between the ends of the fingers, in AuxArm (end), m."""
        points = np.asarray(self.rover.robot.constants["shapes"]["gripper"]["points"], np.float64)
        return points[points[:, 2] == points[:, 2].max()].mean(axis=0)

    @cached_property
    def rim(self) -> Floats:
        """Corners (4, 3) of the container's rim in Origin, m."""
        return np.asarray(self.rover.robot.constants["shapes"]["container"]["points"], np.float64)

    @cached_property
    def rock(self) -> Floats:
        """(3,) in Origin: the middle of the rock as it lies on the ground, m."""
        flat = se3.apply(self.T_world_origin, np.array([*PLACE, 0.0]))
        there = np.array([*flat[:2], float(self.land.at(flat[:2])) + ROCK[2]])
        return se3.apply(se3.invert(self.T_world_origin), there)

    @cached_property
    def keys(self) -> Floats:
        """Joint angles (10, 7) in rad at the beginning and at `PARTS`."""
        rest, box = np.array(JOINTS["Aux"]), self.rim.mean(axis=0)
        up = np.array([0.0, 0.0, -ABOVE])  # z is down
        over = self._reach(self.rock + up, rest)
        at = self._reach(self.rock, over)
        carried = self._reach(box + up, over)
        placed = self._reach(box - np.array([0.0, 0.0, INSIDE]), carried)
        return np.array([rest, rest, over, at, at, over, carried, placed, placed, rest])

    def _reach(self, goal: Floats, start: Floats) -> Floats:
        """Return angles (7,) with the tip at a place (3,) in Origin, near to others, gripper downwards."""
        from scipy.optimize import least_squares

        arm = self.rover.robot.constants["arm"]
        limits = np.array(arm["lower"]), np.array(arm["upper"])
        base = self.rover.robot.frames.lookup("Origin", "AuxArm (base)")

        def miss(angles: Floats) -> Floats:
            end = base @ self.rover.arm_end(angles[None])[0]
            off = se3.apply(end, self.tip) - goal
            return np.concatenate([100 * off, 0.3 * (end[:3, 2] - [0.0, 0.0, 1.0]), 0.01 * (angles - start)])

        best = least_squares(miss, np.clip(start, *limits), bounds=limits)
        if np.linalg.norm(miss(best.x)[:3]) > 0.5:  # 5 mm
            raise UsageError("the arm does not reach the rock on this ground", hint="another --seed")
        return best.x

    def joints(self, elapsed: Floats) -> Floats:
        """True angles (n, 7) in rad of AuxArm at seconds (n,): from key to key, without a jerk."""
        part = np.clip(elapsed / self.seconds, 0.0, 1.0)
        times = np.array([0.0, *PARTS])
        key = np.clip(np.searchsorted(times, part, side="right") - 1, 0, len(times) - 2)
        u = np.clip((part - times[key]) / (times[key + 1] - times[key]), 0.0, 1.0)
        smooth = (u**3 * (10 - 15 * u + 6 * u**2))[:, None]
        return self.keys[key] * (1 - smooth) + self.keys[key + 1] * smooth

    def tips(self, elapsed: Floats) -> Floats:
        """Where the tip is in the world (n, 3) at seconds (n,), m."""
        base = self.rover.robot.frames.lookup("Origin", "AuxArm (base)")
        return se3.apply(self.T_world_origin @ base @ self.rover.arm_end(self.joints(elapsed)), self.tip)

    def held(self, elapsed: Floats) -> Mask:
        """Whether the gripper holds the rock at seconds (n,): from the grasp until it lets go."""
        part = elapsed / self.seconds
        return (part >= PARTS[3]) & (part < PARTS[6] + (PARTS[7] - PARTS[6]) / 2)

    def rocks(self, elapsed: Floats) -> Floats:
        """Where the middle of the rock is in the world (n, 3) at seconds (n,), m; at the end in the box."""
        lying, tips, held = se3.apply(self.T_world_origin, self.rock), self.tips(elapsed), self.held(elapsed)
        last = self.tips(np.array([self.seconds * PARTS[6]]))
        after = elapsed / self.seconds >= PARTS[7] - (PARTS[7] - PARTS[6]) / 2
        return np.where(held[:, None], tips, np.where(after[:, None], last, lying))

    def solids(self) -> list[Solid]:
        """Return the rock on its way, and the container."""
        times = np.arange(int(self.seconds / TRACK_STEP_S) + 40, dtype=np.float64) * TRACK_STEP_S
        rock = ellipsoid("rock", np.zeros(3), ROCK, LAVA).moving(self.rocks(times))
        return [rock, *self._build_container()]

    def _build_container(self) -> list[Solid]:
        low, high = self.rim.min(axis=0), self.rim.max(axis=0)
        deep, thin = 0.12, 0.004
        middle = (low + high) / 2 + np.array([0.0, 0.0, deep / 2])  # z is down
        wide, broad = (high - low)[:2]
        walls = [
            ((0.0, 0.0, deep / 2), [wide, broad, thin]),
            *(((s * wide / 2, 0.0, 0.0), [thin, broad, deep]) for s in (-1, 1)),
            *(((0.0, s * broad / 2, 0.0), [wide, thin, deep]) for s in (-1, 1)),
        ]
        turn = self.T_world_origin[:3, :3]
        return [
            turned_box("container", se3.apply(self.T_world_origin, middle + np.array(at)), size, turn, PLATE)
            for at, size in walls
        ]
