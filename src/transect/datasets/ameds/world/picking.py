"""Rock picking (section 5.2): AuxArm takes a rock from the ground and puts it into the container in front.

The rover stands. What the document does not say is invented: where the rock lies, how large it is, how long
each move takes of the time that there is, and, in `interact.yaml`, where the gripper and the container are.
The rock stays upright while it is carried; arm and gripper are not seen in the images.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.errors import UsageError
from transect.geometry import se3
from transect.simulation.solids import STEP, Look, Solid, ellipsoid, turned_box
from transect.simulation.terrain import Terrain

from .rover import JOINTS, Rover

ROCK = np.array([0.045, 0.04, 0.035])
"""m: its half lengths."""
PLACE = np.array([1.20, 0.20])
"""m ahead and to the right of Origin: where it lies."""
ABOVE, INSIDE = 0.25, 0.02
"""m over rock and container from where the gripper goes down, and over the container's rim at the end."""
PARTS = (0.08, 0.28, 0.36, 0.46, 0.56, 0.70, 0.76, 0.84, 0.98)
"""When of the whole time: it starts, is over the rock, at it, has grasped it, has lifted it, is over the
container, at it, has let go, is back."""
LAVA, PLATE = Look((0.30, 0.16, 0.12), 0.25), Look((0.7, 0.7, 0.68), 0.6)


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
        times = np.arange(int(self.seconds / STEP) + 40, dtype=np.float64) * STEP
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
