"""Wheel odometry: pose of a robot by its wheels alone."""

from __future__ import annotations

from functools import cache, partial
from typing import Literal

import numpy as np

from transect.algorithms.odometry.wheel_odometer import (
    MAX_WHEEL_GAP_S,
    MotionModel,
    WheelReckoning,
    differential_motion,
    finite_motion,
)
from transect.base.arrays import Floats
from transect.engine import Node, param
from transect.geometry import planar, rotations
from transect.robots import load
from transect.robots.ackermann import AckermannGeometry
from transect.robots.ackermann import motion as ackermann_motion
from transect.robots.four_wheel_steering import FourWheelGeometry, body_motion, steer_angles
from transect.types import Pose, WheelState

# Motion models


def four_wheel_motion(
    then: WheelState, now: WheelState, seconds: float, robot: str = "interact"
) -> Floats | None:
    """Return the least-squares motion (3,) of Platform by four steered wheels; None without speeds."""
    if now.velocity is None or then.velocity is None or now.steer_ticks is None or then.steer_ticks is None:
        return None
    geometry = _four_wheels(robot)
    before, after = steer_angles(then.steer_ticks, geometry), steer_angles(now.steer_ticks, geometry)
    travel = (now.velocity + then.velocity) / 2 * seconds
    return finite_motion(body_motion(travel, (before + after) / 2, geometry, after - before).motion)


def ackermann_wheels_motion(
    then: WheelState,
    now: WheelState,
    seconds: float,
    robot: str = "weeder",
    form: Literal["paper", "scripts"] = "scripts",
) -> Floats | None:
    """Return the motion (3,) of the rear axle's centre by two wheels and a steering angle (Rosario, 4.6)."""
    if now.velocity is None or then.velocity is None or now.steering is None or then.steering is None:
        return None
    geometry = _ackermann(robot)
    before = ackermann_motion(then.velocity, then.steering, geometry, form)
    after = ackermann_motion(now.velocity, now.steering, geometry, form)
    speed, turn = (float(a + b) / 2 for a, b in zip(before, after, strict=True))
    return finite_motion(np.array([speed, 0.0, turn]) * seconds)


def model_for(wheels: WheelState, track: float = 0.0) -> MotionModel | None:
    """Return the motion model for the measured quantities of wheels; None if they are not enough.

    Four steering encoders: Interact. One steering angle with two wheels: the weeder. No steering: a
    differential drive, whose track must be given.
    """
    if wheels.velocity is None:
        return None
    if wheels.steer_ticks is not None and len(wheels.velocity) == 4:
        return four_wheel_motion
    if wheels.steering is not None and np.size(wheels.steering) == 1:
        return ackermann_wheels_motion
    return partial(differential_motion, track=track) if track > 0 else None


@cache
def _four_wheels(robot: str) -> FourWheelGeometry:
    return FourWheelGeometry.of(load(robot))


@cache
def _ackermann(robot: str) -> AckermannGeometry:
    return AckermannGeometry.of(load(robot))


# Nodes


class WheelOdometry(Node, interface=True):
    """Planar pose of the body by its wheels, relative to its start: x forward, y left."""

    out_name = "pose"
    max_gap: float = param(
        MAX_WHEEL_GAP_S, gt=0, unit="s", doc="longest gap that is bridged; in a longer one the robot stands"
    )

    def reset(self) -> None:
        self.pose = np.zeros(3)
        self.reckoning = WheelReckoning()

    def process(self, wheels: WheelState) -> Pose | None:
        chosen = self.choose_model(wheels)
        if chosen is None:
            return None
        model, child = chosen
        step = self.reckoning.step(self.ctx.time, wheels, model, self.max_gap)
        if step is not None:
            self.pose = planar.integrate(step[1][None], self.pose)[-1]
        x, y, heading = self.pose
        orientation = rotations.quaternion_from_euler("Z", [heading])
        return Pose(np.array([x, y, 0.0]), orientation, t_ns=self.ctx.time, frame="odom", child=child)

    def choose_model(self, wheels: WheelState) -> tuple[MotionModel, str] | None:
        """Return the motion model and the body's frame; None, with a counted reason, if there is no model."""
        raise NotImplementedError


class FourWheelSteer(WheelOdometry):
    """Least-squares motion of four driven and steered wheels (`robots.four_wheel_steering`)."""

    robot: str = param("interact", doc="robot that gives the geometry: a name, or a YAML file")

    def choose_model(self, wheels: WheelState) -> tuple[MotionModel, str] | None:
        if wheels.velocity is None or wheels.steer_ticks is None:
            return self.ctx.skip("no speeds or no steering")
        return partial(four_wheel_motion, robot=self.robot), "Platform"


class Ackermann(WheelOdometry):
    """Two driven rear wheels and one steering angle (`robots.ackermann`)."""

    robot: str = param("weeder", doc="robot that gives the geometry: a name, or a YAML file")
    form: str = param(
        "scripts", choices=("paper", "scripts"), doc="paper: tan(delta); scripts: tan(0.95 delta)"
    )

    def choose_model(self, wheels: WheelState) -> tuple[MotionModel, str] | None:
        if wheels.velocity is None or wheels.steering is None:
            return self.ctx.skip("no speeds or no steering")
        form: Literal["paper", "scripts"] = "paper" if self.form == "paper" else "scripts"
        return partial(ackermann_wheels_motion, robot=self.robot, form=form), "base_link"


class Differential(WheelOdometry):
    """Differential drive, or skid-steered wheels with an effective track."""

    track: float = param(0.0, ge=0, unit="m", doc="distance between left and right wheels; 0 if not known")
    child: str = param("base_link", doc="frame of the body")

    def choose_model(self, wheels: WheelState) -> tuple[MotionModel, str] | None:
        if not self.track:
            return self.ctx.skip(f"the track of the wheels is not known: --set {self.ctx.node}.track=METRES")
        if wheels.velocity is None or len(wheels.velocity) % 2:
            return self.ctx.skip("no speeds of a left and a right side")
        return partial(differential_motion, track=self.track), self.child
