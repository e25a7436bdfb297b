"""Wheel odometry: where a robot is by its wheels alone."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from transect.engine import Node, param
from transect.geometry import planar, rotations
from transect.recording.clocks import NS
from transect.robots import load
from transect.robots.interact.geometry import Geometry
from transect.robots.interact.odometry import body_motion
from transect.robots.interact.wheels import steer_angles
from transect.types import Pose, WheelState

Floats = NDArray[np.float64]


class WheelOdometry(Node, interface=True):
    """Pose of the body by its wheels, in the plane and from the place of its start: x forward, y left."""

    out_name = "pose"

    def reset(self) -> None:
        self.place = np.zeros(3)
        self.before: tuple[int, Floats, Floats] | None = None

    def process(self, wheels: WheelState) -> Pose | None: ...


class FourWheelSteer(WheelOdometry):
    """The motion that fits four driven and steered wheels best (`robots.interact.odometry`)."""

    robot: str = param("interact", doc="whose geometry: a name, or a YAML file like interact.yaml")
    max_gap: float = param(0.5, gt=0, unit="s", doc="over longer ones the robot is taken to stand")

    def process(self, wheels: WheelState) -> Pose | None:
        if wheels.velocity is None or wheels.steer_ticks is None:
            return self.ctx.skip("no speeds or no steering")
        steering = steer_angles(wheels.steer_ticks, _geometry(self.robot))
        motion = self._motion(self.ctx.time, wheels.velocity, steering)
        self.before = self.ctx.time, wheels.velocity, steering
        if motion is not None:
            self.place = planar.integrate(motion[None], self.place)[-1]
        x, y, heading = self.place
        turned = rotations.quaternion_from_euler("Z", [heading])
        return Pose(np.array([x, y, 0.0]), turned, frame="odom", child="Platform")

    def _motion(self, now_ns: int, speeds: Floats, steering: Floats) -> Floats | None:
        """Return the motion (3,) since the last sample: m, m, rad; None where it is not known."""
        if self.before is None or now_ns - self.before[0] > self.max_gap * NS:
            return None
        then_ns, old_speeds, old_steering = self.before
        travel = (speeds + old_speeds) / 2 * ((now_ns - then_ns) / NS)
        middle, change = (steering + old_steering) / 2, steering - old_steering
        motion = body_motion(travel, middle, _geometry(self.robot), change).motion
        return motion if np.isfinite(motion).all() else None


@cache
def _geometry(robot: str) -> Geometry:
    return Geometry.of(load(robot))
