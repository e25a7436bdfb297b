"""Wheels, odometries and poses as relative motions of the body."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.geometry import rotations, se3
from transect.types import Odometry, Pose, WheelState

from ..odometry.wheel_odometer import MAX_WHEEL_GAP_S, ModelChoice, WheelReckoning
from .context import FusionContext
from .events import OdometryStep
from .mounts import SensorMounts

UNKNOWN_TRACK = "not used (track unknown: --set fusion.track=METRES)"


class OdometryInputs:
    """Converts samples of wheels, odometry and `motion` to steps.

    Parameters
    ----------
    track : float
        Metres between the wheels of a differential drive; 0 without one.
    wheel_model : callable
        Chooses the motion model of the wheels.
    """

    def __init__(self, mounts: SensorMounts, track: float, wheel_model: ModelChoice) -> None:
        self.mounts, self.track, self.wheel_model = mounts, track, wheel_model
        self.lacks_track = False  # whether there are wheels whose track is needed and unknown
        self.has_wheels = False
        self.has_planar = False  # whether there are wheels or an odometry
        self._wheels = WheelReckoning()
        self._headings = {name: PathHeading() for name in ("odometry", "motion")}
        self._last_pose: dict[str, tuple[int, Floats]] = {}
        self._last_rates: tuple[int, Floats] | None = None
        self._pose_is_unset = False

    def select(
        self,
        ctx: FusionContext,
        wheels: Sequence[WheelState] | None,
        odometry: Sequence[Odometry] | None,
    ) -> tuple[Sequence[WheelState] | None, Sequence[Odometry] | None]:
        """Return wheels if they are usable, and the odometry of the same encoders only without them."""
        usable = self._usable_wheels(ctx, wheels)
        self.has_wheels = self.has_wheels or bool(usable)
        if self.has_wheels:
            odometry = None
        self.has_planar = self.has_planar or bool(usable) or bool(odometry)
        return usable, odometry

    def _usable_wheels(
        self, ctx: FusionContext, wheels: Sequence[WheelState] | None
    ) -> Sequence[WheelState] | None:
        two_sided = [
            each for each in wheels or () if each.velocity is not None and not len(each.velocity) % 2
        ]
        self.lacks_track = self.lacks_track or (
            bool(two_sided) and self.wheel_model(two_sided[0], self.track) is None
        )
        if not self.lacks_track:
            return wheels
        text = "the distance between left and right wheels is unknown: wheels are not used"
        self.mounts.assumptions.note(ctx, text)
        for _ in wheels or ():
            ctx.leave_out("wheels", UNKNOWN_TRACK)
        return None

    def from_wheels(self, ctx: FusionContext, wheels: WheelState) -> OdometryStep | None:
        """Return the step that ends with a sample of wheels."""
        model = self.wheel_model(wheels, self.track)
        if model is None:
            return ctx.leave_out("wheels", "not used (no model for what they measure)")
        step = self._wheels.step(wheels.t_ns, wheels, model, MAX_WHEEL_GAP_S)
        return None if step is None else _planar_step("wheels", step[0], wheels.t_ns, step[1])

    def from_odometry(self, ctx: FusionContext, odometry: Odometry) -> OdometryStep | None:
        """Return the step that ends with a sample of an odometry, by its poses or by its twists."""
        rates, last = self._planar_rates(ctx, odometry), self._last_rates
        if rates is not None:
            self._last_rates = odometry.t_ns, rates
        position = odometry.position
        if position is not None and np.isfinite(position[:2]).all() and not self._is_unset(odometry, rates):
            position = np.nan_to_num(position)
            return self._step_to("odometry", odometry.t_ns, position, odometry.orientation, None)
        if rates is None:
            return ctx.skip("odometry: neither a position nor speed and turn rate")
        seconds = 0.0 if last is None else (odometry.t_ns - last[0]) / NS
        if last is None or not 0 < seconds <= MAX_WHEEL_GAP_S:
            return None
        return _planar_step("odometry", last[0], odometry.t_ns, (rates + last[1]) / 2 * seconds)

    def _planar_rates(self, ctx: FusionContext, odometry: Odometry) -> Floats | None:
        """Return speeds forward and to the left (m/s) and the turn rate (rad/s); None if not measured."""
        if odometry.velocity is None or odometry.angular_velocity is None:
            return None
        forward, lateral, turn = *odometry.velocity[:2], odometry.angular_velocity[2]
        if not np.isfinite([forward, turn]).all():
            return None
        if not np.isfinite(lateral):
            self.mounts.assumptions.note(ctx, "odometry has no lateral speed: 0 is assumed")
            lateral = 0.0
        return np.array([forward, lateral, turn])

    def _is_unset(self, odometry: Odometry, rates: Floats | None) -> bool:
        """Return whether the pose was never set: it stays 0 while the twist is not."""
        vectors = odometry.position, None if odometry.orientation is None else odometry.orientation[:3]
        at_origin = not any(np.nan_to_num(each).any() for each in vectors if each is not None)
        moves = rates is not None and bool(rates.any())
        self._pose_is_unset = at_origin and (moves or self._pose_is_unset)
        return self._pose_is_unset

    def from_motion(self, ctx: FusionContext, sample: tuple[Pose, Floats | None]) -> OdometryStep | None:
        """Return the step, with its covariance, that ends with a pose of a visual or lidar odometry."""
        pose, covariance = sample
        if not np.isfinite(pose.position).all():
            return ctx.skip("motion: no position")
        step = self._step_to("motion", pose.t_ns, pose.position, pose.orientation, covariance)
        mount = self.mounts.find(ctx, pose.child) if pose.child else None
        if step is None or mount is None:
            return step
        transform = mount @ step.transform @ se3.invert(mount)
        body_covariance = None if covariance is None else se3.transform_covariance(mount, covariance)
        return OdometryStep("motion", step.start_ns, step.t_ns, transform, step.planar, body_covariance)

    def _step_to(
        self,
        sensor: str,
        t_ns: int,
        position: Floats,
        orientation: Floats | None,
        covariance: Floats | None,
    ) -> OdometryStep | None:
        """Return the step from the last pose. Without orientations the heading is that of the path."""
        planar = orientation is None or not np.isfinite(orientation).all() or not orientation.any()
        if orientation is None or planar:
            orientation = rotations.quaternion_from_euler("Z", [self._headings[sensor].add(position)])
        pose = se3.from_quaternion(orientation, position)
        last = self._last_pose.get(sensor)
        self._last_pose[sensor] = t_ns, pose
        if last is None or t_ns <= last[0]:
            return None
        transform = se3.invert(last[1]) @ pose
        return OdometryStep(sensor, last[0], t_ns, transform, planar or sensor == "odometry", covariance)


def _planar_step(sensor: str, start_ns: int, t_ns: int, motion: Floats) -> OdometryStep:
    """Return a step along a circular arc, from m forward, m left and rad (3,)."""
    twist = np.array([motion[0], motion[1], 0.0, 0.0, 0.0, motion[2]])
    return OdometryStep(sensor, start_ns, t_ns, se3.exp(twist), planar=True)


class PathHeading:
    """Heading of a robot that drives along its own heading, forwards or backwards, from its path alone.

    Causal: the direction of the path is the heading up to half a turn. A robot cannot turn by 90 degrees
    between two positions, so where the direction does, it has changed gear. At rest the heading is constant.
    """

    def __init__(self, min_step_m: float = 1e-6) -> None:
        self._min_step_m = min_step_m  # shorter steps have no direction
        self._position: Floats | None = None
        self._heading = 0.0

    def add(self, position: Floats) -> float:
        """Return the heading in rad at a new position (2,) or (3,) of the path."""
        if self._position is None:
            self._position = np.array(position[:2])
        step = position[:2] - self._position
        if np.linalg.norm(step) > self._min_step_m:
            self._position = np.array(position[:2])
            turn = float(np.arctan2(step[1], step[0])) - self._heading
            if np.cos(turn) < 0:
                turn += np.pi
            self._heading += (turn + np.pi) % (2 * np.pi) - np.pi
        return self._heading
