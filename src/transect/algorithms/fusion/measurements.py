"""Input of a fusion: samples of all sensors as measurements in the order of time, in the axes of the body.

The body's axes are x forward, y left, z up, independent of its own frame. Filter and smoothers use the same
measurements, so mounts, lever arms, wheel models and geodesy are handled here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.types import Imu, NavFix, Odometry, Pose, WheelState

from ..odometry.wheel_odometer import ModelChoice, differential_model
from .context import FusionContext
from .events import Event, ImuSample, MeasuredPosition, OdometryStep, YawRate
from .height_noise import HeightConsistency
from .lever_arm import LeverArmAcceleration
from .mounts import UNNAMED_BODY, Assumptions, SensorMounts
from .odometry_inputs import OdometryInputs
from .position_inputs import POSITION_INPUTS, PositionInputs, PositionInputSettings

SampleBatches = tuple[
    Sequence[WheelState] | None,
    Sequence[Odometry] | None,
    Sequence[Pose] | None,
    Sequence[Floats] | None,
    Sequence[Imu] | None,
    Sequence[NavFix] | None,
    Sequence[Pose] | None,
]
"""Samples of the ports of `PoseFusion`, in their order; None for a port that nothing feeds."""
UNMOUNTED_IMU = "not used (mount unknown)"
REPLACEMENTS = {
    "imu": ("wheels", "odometry", "motion"), "wheels": ("imu",), "odometry": ("imu",),
    "motion": ("wheels", "odometry", "imu"), "fix": ("position",), "position": ("fix",),
}  # fmt: skip
"""Inputs that can replace one that is BAD. Wheels and an odometry use the same encoders."""
S = TypeVar("S")


class ImuInput:
    """Converts samples of an IMU to the axes of the body.

    Parameters
    ----------
    use_yaw_rate : bool
        Whether an IMU with unknown mount is used for the heading; else it is not used.
    """

    def __init__(self, mounts: SensorMounts, heights: HeightConsistency, *, use_yaw_rate: bool) -> None:
        self.mounts, self.heights, self.use_yaw_rate = mounts, heights, use_yaw_rate
        self.is_mounted = False  # whether there is an IMU whose mount is known
        self.assumes_mount = False  # whether its axes were assumed to be those of the body
        self.is_ignored = False  # whether it was not used because its mount is unknown
        self._lever_arm = LeverArmAcceleration()
        self._force: tuple[int, Floats] | None = None  # running mean

    def convert(self, ctx: FusionContext, imu: Imu, *, is_only_motion: bool) -> ImuSample | YawRate | None:
        """Convert a sample; `is_only_motion`: no odometry measures the motion."""
        if not (np.isfinite(imu.acceleration).all() and np.isfinite(imu.angular_velocity).all()):
            return ctx.skip("imu: not measured")
        body, assumptions = self.mounts.body, self.mounts.assumptions
        if not body:
            return ctx.skip("imu: before the body's frame is known")
        mount, name = self.mounts.find(ctx, imu.frame), imu.frame or "the IMU"
        if is_only_motion and (mount is None or body == imu.frame):
            text = f"no frame gives the mount of {name}: its axes are assumed to be those of the body"
            assumptions.note(ctx, text)
            mount = self.mounts.assume_body_axes(imu.frame)
            self.assumes_mount = True
        if mount is None:
            use = "used for the heading only" if self.use_yaw_rate else "not used"
            text = f"imu: {use}, because no frame gives the mount of {name} on {body}"
            assumptions.note_noise(ctx, "imu", text)
            self.heights.add_force(imu.t_ns, imu.acceleration, mounted=False)
            if not self.use_yaw_rate:
                self.is_ignored = True
                return ctx.leave_out("imu", UNMOUNTED_IMU)
            return YawRate(imu.t_ns, float(imu.angular_velocity @ self._vertical(imu)))
        rate = mount[:3, :3] @ imu.angular_velocity
        self.is_mounted = True
        force = mount[:3, :3] @ imu.acceleration - self._lever_arm.add(imu.t_ns, rate, mount[:3, 3])
        self.heights.add_force(imu.t_ns, force, mounted=True)
        return ImuSample(imu.t_ns, force, rate)

    def _vertical(self, imu: Imu, averaging_s: float = 5.0) -> Floats:
        """Return the upward unit vector (3,) in the axes of an IMU, by its mean specific force."""
        last = self._force
        weight = 1.0 if last is None else min((imu.t_ns - last[0]) / NS / averaging_s, 1.0)
        mean = weight * imu.acceleration + (0.0 if last is None else (1 - weight) * last[1])
        self._force = imu.t_ns, mean
        return mean / np.linalg.norm(mean)


class FusionInputs:
    """Converts batches of samples to measurements in the order of time.

    Parameters
    ----------
    body : str
        Frame of the body; "" for the first of `BODY_FRAMES` that the recording has.
    antenna : str
        Frame of what `fix` measures; "" for the fix's own, or the first of `ANTENNA_FRAMES`.
    track : float
        Metres between the wheels of a differential drive; 0 without one.
    positions : PositionInputSettings
    use_yaw_rate : bool
        Whether an IMU with unknown mount is used for the heading; else it is not used.
    wheel_model : callable
        Chooses the motion model of the wheels.
    """

    def __init__(
        self,
        body: str = "",
        antenna: str = "",
        track: float = 0.0,
        positions: PositionInputSettings = POSITION_INPUTS,
        *,
        use_yaw_rate: bool = True,
        wheel_model: ModelChoice = differential_model,
    ) -> None:
        self.assumptions = Assumptions()
        self.mounts = SensorMounts(body, antenna, self.assumptions)
        self.odometry = OdometryInputs(self.mounts, track, wheel_model)
        self.positions = PositionInputs(self.mounts, positions)
        self.imu = ImuInput(self.mounts, self.positions.heights, use_yaw_rate=use_yaw_rate)
        self.imu_only = False  # whether an IMU is the only motion sensor

    @property
    def body(self) -> str:
        """Frame of the body, as found."""
        return self.mounts.body

    @property
    def frame(self) -> str:
        """Frame of the positions: `map`, or their own."""
        return self.positions.frame

    def gather(
        self,
        ctx: FusionContext,
        wheels: Sequence[WheelState] | None,
        odometry: Sequence[Odometry] | None,
        motion: Sequence[Pose] | None,
        motion_covariance: Sequence[Floats] | None,
        imu: Sequence[Imu] | None,
        fix: Sequence[NavFix] | None,
        position: Sequence[Pose] | None,
    ) -> list[Event]:
        """Return the measurements of a tick in the order of time; at equal times inertial ones are first."""
        wheels, odometry = self.odometry.select(ctx, wheels, odometry)
        motion_inputs = {"wheels": wheels, "odometry": odometry, "motion": motion}
        self.imu_only = not any(
            self.odometry.has_wheels or (given is not None and ctx.is_fed(name))
            for name, given in motion_inputs.items()
        )
        self.mounts.find_body(ctx, odometry or motion or ())
        if self.imu_only and imu and not self.mounts.body:
            self.mounts.body = imu[0].frame or UNNAMED_BODY
        motion_pairs = list(zip(motion or (), _match_covariances(motion, motion_covariance), strict=True))
        events = [
            *self._convert(ctx, "imu", imu, self._convert_imu),
            *self._convert(ctx, "wheels", wheels, self.odometry.from_wheels),
            *self._convert(ctx, "odometry", odometry, self.odometry.from_odometry),
            *self._convert(ctx, "motion", motion_pairs, self.odometry.from_motion),
        ]
        for event in events:
            if isinstance(event, ImuSample) or (isinstance(event, OdometryStep) and event.covariance is None):
                sensor = event.sensor if isinstance(event, OdometryStep) else "imu"
                self.assumptions.undeclared_inputs[sensor] = None
            if isinstance(event, OdometryStep):
                self.positions.noise.add_step(event)
                distance = float(np.linalg.norm(event.transform[:3, 3]))
                self.positions.heights.add_distance(event.sensor, distance)
        events += self._convert(ctx, "fix", fix, self.positions.from_fix)
        events += self._convert(ctx, "position", position, self.positions.from_pose)
        events.sort(key=lambda each: each.t_ns)
        if self.positions.settings.estimate_noise:
            for measured in (each for each in events if isinstance(each, MeasuredPosition)):
                self.positions.noise.add(measured)
            self.positions.noise.update()
            events = [
                self.with_estimated_noise(each) if isinstance(each, MeasuredPosition) else each
                for each in events
            ]
        return events

    def with_estimated_noise(self, position: MeasuredPosition) -> MeasuredPosition:
        """Return a position with its noise as estimated until now, if it is estimated."""
        return self.positions.with_estimated_noise(position)

    @property
    def notes(self) -> list[str]:
        """Assumptions other than noise, a sentence each."""
        return [*self.assumptions.notes]

    def describe_noise(self) -> list[str]:
        """Return the noise of each sensor, a sentence each: estimated, declared, or assumed."""
        return self.assumptions.describe_noise(self.positions.noise.describe())

    def _convert_imu(self, ctx: FusionContext, imu: Imu) -> ImuSample | YawRate | None:
        return self.imu.convert(ctx, imu, is_only_motion=self.imu_only)

    def _convert(
        self,
        ctx: FusionContext,
        port: str,
        samples: Sequence[S] | None,
        convert: Callable[[FusionContext, S], Event | None],
    ) -> Iterator[Event]:
        """Yield the measurements of an input with its trust, without those that another input replaces.

        Samples that are not used are converted, too: the next step starts there. An IMU replaces wheels only
        if its mount is known.
        """
        for event in (convert(ctx, each) for each in samples or ()):
            if event is None:
                continue
            replacements = REPLACEMENTS[port]
            others = () if replacements == ("imu",) and not self.imu.is_mounted else replacements
            trust = ctx.trust(port, event.t_ns, others)
            if trust:
                yield _apply_trust(event, trust)


def _apply_trust(event: Event, trust: float) -> Event:
    """Return a measurement with its trust; the sigmas of a position are divided by it."""
    if trust == 1.0 or isinstance(event, YawRate):
        return event
    if isinstance(event, MeasuredPosition):
        return replace(event, std=event.std / trust, trust=trust)
    return replace(event, trust=trust)


def _match_covariances(
    motion: Sequence[Pose] | None, covariances: Sequence[Floats] | None
) -> Sequence[Floats | None]:
    """Return the covariance, or None, of each pose: both come from one node, at equal times."""
    poses, given = motion or (), covariances or ()
    return given if len(given) == len(poses) else [None] * len(poses)
