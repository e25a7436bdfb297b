"""Simulation model of Interact's wheels and arms, independent of `robot`; numbers from AMEDS."""

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
from transect.simulation.solids import TRACK_STEP_S, Solid, SurfaceMaterial, ellipsoid, turned_box
from transect.simulation.terrain import Terrain

JOINTS_RAD = {
    "Main": (0.0, -0.703, 0.0, -2.0, 0.0, -0.983, 0.0),
    "Aux": (1.43, 1.61, -0.946, -1.801, -0.903, 1.64, 1.421),
}
"""Joint angles with MainCam 1.9 m over the ground, AuxCam in front, looking ahead, 18 and 25 degrees down."""


@dataclass(frozen=True, eq=False)
class Rover:
    """Interact; its frames and constants are those of `robot`."""

    robot: Robot
    wheel_radius: float = 0.2  # m; not in AMEDS, plausible with a clearance of 20 cm and H = 13.5 cm
    mass: float = 430.0  # kg; not in AMEDS: platform, two arms and payload

    @classmethod
    def load(cls) -> Rover:
        """Return the rover of AMEDS."""
        return cls(robots.load("interact"))

    def number(self, group: str, key: str) -> Any:
        """Return a constant of the robot."""
        return self.robot.constants[group][key]

    @cached_property
    def height(self) -> float:
        """Height of Platform over the ground, m: H above the axles."""
        return float(self.number("platform", "wheel_height")) + self.wheel_radius

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
        """Contact points with straight steering."""
        outward = np.column_stack([np.zeros(4), self.swivel_length * self.sides])
        return Chassis(self.swivels + outward, self.height)

    @property
    def metres_per_tick(self) -> float:
        """Travel per drive tick, m (AMEDS eq. 4)."""
        return 2 * np.pi * self.wheel_radius / float(self.number("drive", "ticks_per_turn"))

    @cached_property
    def origin(self) -> Floats:
        """Geodetic (3,): the lander, origin of the world."""
        return np.array([self.number("world_origin", k) for k in ("latitude", "longitude", "altitude")])

    def in_platform(self, frame: str) -> Floats:
        """``T_Platform_frame`` (4, 4) of a frame that does not move on the rover."""
        return self.robot.frames.lookup("Platform", frame)

    # Wheels

    def contacts(self, steering: Floats) -> Floats:
        """Return the contact points (n, 4, 3) of the wheels in Platform."""
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

    def commanded_speeds(self, course: Course, steering: Floats) -> Floats:
        """Return the rim speeds (n, 4), m/s, of a course on level ground without slip."""
        vx, vy, wz = (column[:, None] for column in course.twist.T)
        contacts = self.contacts(steering)
        velocity, _ = derivatives(contacts, 1 / driving.RATE_HZ)
        x = vx - wz * contacts[..., 1] + velocity[..., 0]
        y = vy + wz * contacts[..., 0] + velocity[..., 1]
        return x * np.cos(steering) + y * np.sin(steering)

    def platform_twist(self, rim: Floats, steering: Floats) -> Floats:
        """Return vx, vy, wz (n, 3) by rim speeds (n, 4) without sideways sliding, by least squares."""
        contacts, c, s = self.contacts(steering), np.cos(steering), np.sin(steering)
        x, y = contacts[..., 0], contacts[..., 1]
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
        """Return normal forces (n, 4) of the wheels, N, for specific forces (n, 3) in Platform, m/s2.

        Weight and inertia act at Platform; the solution is the one with the smallest norm.
        """
        balance = np.vstack([np.ones(4), self.chassis.contacts.T])
        moment = -self.height * force[:, :2]
        return self.mass * np.column_stack([force[:, 2], moment]) @ np.linalg.pinv(balance).T

    # Arms

    def arm_end(self, angles: Floats) -> Floats:
        """``T_base_end`` (n, 4, 4): product of Craig's modified DH transforms (Table 3, see errata)."""
        arm = self.robot.constants["arm"]
        result = np.tile(np.eye(4), (len(angles), 1, 1))
        for joint, (alpha, a, d) in enumerate(zip(arm["alpha"], arm["a"], arm["d"], strict=True)):
            result = result @ _link_transform(alpha, a, d, angles[:, joint])
        return result

    def camera_in_origin(self, side: str, angles: Floats) -> Floats:
        """``T_Origin_Cam`` (n, 4, 4) of MainCam or AuxCam."""
        base = self.robot.frames.lookup("Origin", f"{side}Arm (base)")
        return base @ self.arm_end(angles) @ self.robot.frames.lookup(f"{side}Arm (end)", f"{side}Cam")

    def camera_in_world(self, side: str, platform: Motion, angles: Floats) -> Floats:
        """``T_world_Cam`` (n, 4, 4) at the samples of the platform's motion, with joint angles (n, 7)."""
        camera = self.camera_in_origin(side, angles)
        return se3.compose(platform.transforms, self.in_platform("Origin"), camera)


def _link_transform(alpha: float, a: float, d: float, theta: Floats) -> Floats:
    """``Rot_x(alpha) Trans_x(a) Rot_z(theta) Trans_z(d)`` (n, 4, 4)."""
    ca, sa, c, s = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
    T = np.zeros((len(theta), 4, 4))
    T[:, 0, 0], T[:, 0, 1], T[:, 0, 3] = c, -s, a
    T[:, 1, 0], T[:, 1, 1], T[:, 1, 2], T[:, 1, 3] = s * ca, c * ca, -sa, -d * sa
    T[:, 2, 0], T[:, 2, 1], T[:, 2, 2], T[:, 2, 3] = s * sa, c * sa, ca, d * ca
    T[:, 3, 3] = 1.0
    return T


# Course


def _plan_side() -> list[Leg]:
    """Return a quarter of the lap around the lander, 90 degrees to the left, with manoeuvres of Figure 7."""
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


def plan_return(seconds: float, start_ns: int, offset: float = 0.0) -> Course:
    """Return the course past the lander and back over the same ground, repeated for a time."""
    sections = [(6.0, 0.6), (6.0, -0.9), (8.0, 0.7), (6.0, 0.0)]
    start = _shift_left((-15.0, -14.0, 0.1), offset)
    return driving.course(_plan_there_and_back(sections, 0.7, seconds), seconds, start_ns, start)


def plan_far(seconds: float, start_ns: int, offset: float = 0.0) -> Course:
    """Return the same over 268 m of winding ground: a long and fast traverse of Table 6."""
    sections = [(28.0, 0.8), (34.0, -1.1), (40.0, 0.9), (30.0, -0.9), (36.0, 0.8), (40.0, -0.5), (35.0, 0.0)]
    start = _shift_left((-115.0, -45.0, 0.1), offset)
    return driving.course(_plan_there_and_back(sections, 0.8, seconds), seconds, start_ns, start)


def _shift_left(start: tuple[float, float, float], metres: float) -> tuple[float, float, float]:
    """Return a planar pose shifted to the left."""
    x, y, yaw = start
    return x - metres * float(np.sin(yaw)), y + metres * float(np.cos(yaw)), yaw


def _plan_there_and_back(sections: Sequence[tuple[float, float]], speed: float, seconds: float) -> list[Leg]:
    """Return straight and curved sections (length, turn angle) there and back, repeated for a time."""
    about = driving.spot_turn(np.pi, 0.35)
    there = [leg for length, angle in sections for leg in _plan_section(length, angle, speed)]
    back = [leg for length, angle in sections[::-1] for leg in _plan_section(length, -angle, speed)[::-1]]
    once = [*there, about, *back, about]
    return once * (int(seconds / sum(leg.seconds for leg in once)) + 1)


def _plan_section(length: float, angle: float, speed: float) -> list[Leg]:
    """Return a straight leg, m, followed by a turn, rad."""
    return [driving.straight(length, speed), *([driving.turn(angle, 5.0, speed)] if angle else [])]


def plan_lap(seconds: float, start_ns: int, offset: float = 0.0) -> Course:
    """Return laps around the lander for a time, from the south-west."""
    side = _plan_side()
    once = driving.course(side, 120.0).pose[-1]
    nominal = sum(leg.seconds for leg in side)
    legs = side * (int(seconds / nominal) + 1)
    # Four sides, each rotated by a right angle, are a closed lap around this centre.
    x, y = once[:2]
    start = _shift_left((-(x - y) / 2, -(x + y) / 2, 0.0), offset)
    return driving.course(legs, seconds, start_ns, start)


ROCK = np.array([0.045, 0.04, 0.035])
"""Half lengths of the rock, m."""
ROCK_POSITION = np.array([1.20, 0.20])
"""Position of the rock ahead and to the right of Origin, m."""
KEY_TIMES = (0.08, 0.28, 0.36, 0.46, 0.56, 0.70, 0.76, 0.84, 0.98)
"""Relative times of the key poses: start, above the rock, at it, grasped, lifted, above the container, at it,
released, back."""
LAVA, PLATE = SurfaceMaterial((0.30, 0.16, 0.12), 0.25), SurfaceMaterial((0.7, 0.7, 0.68), 0.6)


@dataclass(frozen=True, eq=False)
class RockPicking:
    """Motion of AuxArm and the rock in a rock picking."""

    rover: Rover
    land: Terrain
    T_world_origin: Floats  # (4, 4)
    seconds: float  # duration
    approach_height: float = 0.25  # of the gripper over rock and container, m
    release_height: float = 0.02  # over the container's rim, m

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
        """(3,) initial centre of the rock in Origin, m."""
        level = se3.apply(self.T_world_origin, np.array([*ROCK_POSITION, 0.0]))
        centre = np.array([*level[:2], float(self.land.at(level[:2])) + ROCK[2]])
        return se3.apply(se3.invert(self.T_world_origin), centre)

    @cached_property
    def keys(self) -> Floats:
        """Joint angles (10, 7), rad, at the start and at `KEY_TIMES`."""
        rest, box = np.array(JOINTS_RAD["Aux"]), self.rim.mean(axis=0)
        up = np.array([0.0, 0.0, -self.approach_height])  # z is down
        over = self._solve_joints(self.rock + up, rest)
        at = self._solve_joints(self.rock, over)
        carried = self._solve_joints(box + up, over)
        placed = self._solve_joints(box - np.array([0.0, 0.0, self.release_height]), carried)
        return np.array([rest, rest, over, at, at, over, carried, placed, placed, rest])

    def _solve_joints(self, goal: Floats, start: Floats) -> Floats:
        """Return angles (7,) with the tip at a goal (3,) in Origin, near `start`, with the gripper down."""
        from scipy.optimize import least_squares

        arm = self.rover.robot.constants["arm"]
        limits = np.array(arm["lower"]), np.array(arm["upper"])
        base = self.rover.robot.frames.lookup("Origin", "AuxArm (base)")

        def residual(angles: Floats) -> Floats:
            end = base @ self.rover.arm_end(angles[None])[0]
            off = se3.apply(end, self.tip) - goal
            return np.concatenate([100 * off, 0.3 * (end[:3, 2] - [0.0, 0.0, 1.0]), 0.01 * (angles - start)])

        best = least_squares(residual, np.clip(start, *limits), bounds=limits)
        if np.linalg.norm(residual(best.x)[:3]) > 0.5:  # 5 mm
            raise UsageError("the arm does not reach the rock on this ground", hint="another --seed")
        return best.x

    def joints(self, elapsed: Floats) -> Floats:
        """Return the true angles (n, 7) of AuxArm, rad, at seconds (n,): minimum-jerk motion between keys."""
        fraction = np.clip(elapsed / self.seconds, 0.0, 1.0)
        times = np.array([0.0, *KEY_TIMES])
        key = np.clip(np.searchsorted(times, fraction, side="right") - 1, 0, len(times) - 2)
        u = np.clip((fraction - times[key]) / (times[key + 1] - times[key]), 0.0, 1.0)
        smooth = (u**3 * (10 - 15 * u + 6 * u**2))[:, None]
        return self.keys[key] * (1 - smooth) + self.keys[key + 1] * smooth

    def tips(self, elapsed: Floats) -> Floats:
        """Return the positions (n, 3) of the tip in the world, m, at seconds (n,)."""
        base = self.rover.robot.frames.lookup("Origin", "AuxArm (base)")
        return se3.apply(self.T_world_origin @ base @ self.rover.arm_end(self.joints(elapsed)), self.tip)

    def is_held(self, elapsed: Floats) -> Mask:
        """Return whether the gripper holds the rock at seconds (n,)."""
        fraction = elapsed / self.seconds
        return (fraction >= KEY_TIMES[3]) & (fraction < KEY_TIMES[6] + (KEY_TIMES[7] - KEY_TIMES[6]) / 2)

    def rock_positions(self, elapsed: Floats) -> Floats:
        """Return the centres (n, 3) of the rock in the world, m, at seconds (n,); at the end in the box."""
        first, tips = se3.apply(self.T_world_origin, self.rock), self.tips(elapsed)
        last = self.tips(np.array([self.seconds * KEY_TIMES[6]]))
        after = elapsed / self.seconds >= KEY_TIMES[7] - (KEY_TIMES[7] - KEY_TIMES[6]) / 2
        return np.where(self.is_held(elapsed)[:, None], tips, np.where(after[:, None], last, first))

    def solids(self) -> list[Solid]:
        """Return the moving rock and the container."""
        times = np.arange(int(self.seconds / TRACK_STEP_S) + 40, dtype=np.float64) * TRACK_STEP_S
        rock = ellipsoid("rock", np.zeros(3), ROCK, LAVA).moving(self.rock_positions(times))
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
