"""Pose fusion: pose of a robot by all its motion and position sensors."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

import numpy as np

from transect.algorithms.fusion.events import MOTION_SENSORS
from transect.algorithms.fusion.measurements import FusionInputs, SampleBatches
from transect.algorithms.fusion.mounts import BODY_FRAMES
from transect.algorithms.fusion.position_inputs import PositionInputSettings
from transect.engine import Batch, Node, outputs, param
from transect.engine.context import Context
from transect.engine.ports import Shape
from transect.errors import FrameError, UsageError
from transect.types import Imu, NavFix, Odometry, Pose, Record, RigidBodyState, Trajectory, WheelState

from .wheel_odometry import model_for

TICK_PERIOD_S = 0.1
CORRECTING_INPUTS = ("imu", "fix", "position")
"""Inputs that observe position or heading, other than by relative motion."""


@outputs
class FusedPose:
    """Result of a fusion: at every tick (filters), and the whole trajectory when the inputs end.

    Attributes
    ----------
    pose : Pose
        Of the body. Its frame is `map` (x east, y north, z up from the first fix, or the frame of the given
        positions) if a position was measured, else `odom`, which has its origin at the body's start.
    covariance : (6, 6) array
        Of the pose: translation (m), then rotation vector (rad), both in the pose's frame.
    state : RigidBodyState
        The same pose with its velocities; `covariance` has 144 numbers, 12 x 12: position, rotation vector,
        velocity, angular velocity, all in the pose's frame.
    success : bool
        Whether there is a pose.
    innovations : Record
        Statistics of each sensor's innovations since the last tick (see `docs/fusion.md`).
    trajectory : Trajectory
        All poses with their covariances, when the inputs end.
    """

    pose: Pose | None = None
    covariance: Annotated[np.ndarray, Shape(6, 6)] | None = None
    state: RigidBodyState | None = None
    success: bool | None = None
    innovations: Record | None = None
    trajectory: Trajectory | None = None


class PoseFusion(Node, interface=True, every=TICK_PERIOD_S):
    """Pose of a body by its wheels or an odometry, with an IMU, satellite fixes or known positions.

    Every input is optional (None: nothing feeds it). A fusion needs a dead reckoning (`wheels`, `odometry` or
    `motion`) with another sensor, or an `imu` with positions (`fix` or `position`). `wheels` and `odometry`
    come from the same encoders: if both exist, `wheels` are used.

    Inputs
    ------
    wheels
        Encoder readings.
    odometry
        Pose in a frame of its own, or twist in the body.
    motion
        Poses by visual or lidar odometry, of a frame that is fixed to the body, in a frame that drifts.
    motion_covariance
        (6, 6), one with each pose of `motion`: of the step to it from the last pose (translation, then
        rotation vector, in the axes of the later pose).
    imu
        In its own frame.
    fix
        Of an antenna.
    position
        Of an antenna, or of the frame in `child`, in metres; orientations may be NaN.
    """

    body: str = param("", doc="frame of the body; if empty, Platform, base_link, base_footprint or Body")
    antenna: str = param("", doc="frame of the antenna; if empty, that of the fixes, or gps")
    track: float = param(0.0, ge=0, unit="m", doc="distance between left and right wheels that do not steer")
    position_std: float = param(
        0.0, ge=0, unit="m", doc="sigma of `position`; 0 = 0.02 as for RTK, unless they are clearly noisier"
    )
    fix_std: float = param(
        0.0, ge=0, unit="m", doc="horizontal sigma of fixes that state none; 0 = estimated from the fixes"
    )
    fix_period: float = param(0.2, ge=0, unit="s", doc="shortest time between two fixes that are used")
    gravity: float = param(9.80665, gt=0, unit="m/s2", doc="magnitude of gravity at the site")

    uses_yaw_rate = False
    """Whether an IMU with unknown mount is used for the heading."""

    def ready(self) -> None:
        """Refuse inputs from which no pose is observable; log sensors that will not be used."""
        fed = [name for name in self.inputs if self.ctx.is_fed(name)]
        require_observable(self.ctx, fed, "wired inputs")
        if "imu" in fed and {*fed} & {*MOTION_SENSORS}:
            for frame in self.ctx.frames_of("imu"):
                if not self._is_mounted(frame):
                    use = "is only used for the heading" if self.uses_yaw_rate else "is not used"
                    self.ctx.log(f"no frame gives the mount of {frame or 'the IMU'}: it {use}")

    def _is_mounted(self, frame: str) -> bool:
        """Return whether frames give the mount of a sensor, as far as known before samples arrive."""
        bodies = [self.body] if self.body else [each for each in BODY_FRAMES if each in self.ctx.frames]
        if not bodies:
            return frame in BODY_FRAMES
        try:
            self.ctx.frames.lookup(bodies[0], frame)
        except FrameError:
            return frame == bodies[0]
        return True

    def new_inputs(self) -> FusionInputs:
        """Return the converter of samples to measurements in the axes of the body."""
        positions = PositionInputSettings(
            self.position_std, self.fix_std, self.fix_period, estimate_noise=True
        )
        return FusionInputs(
            self.body,
            self.antenna,
            self.track,
            positions,
            use_yaw_rate=self.uses_yaw_rate,
            wheel_model=model_for,
        )

    def process(
        self,
        wheels: Batch[WheelState] | None = None,
        odometry: Batch[Odometry] | None = None,
        motion: Batch[Pose] | None = None,
        motion_covariance: Batch[np.ndarray] | None = None,
        imu: Batch[Imu] | None = None,
        fix: Batch[NavFix] | None = None,
        position: Batch[Pose] | None = None,
    ) -> FusedPose | None:
        return self.fuse((wheels, odometry, motion, motion_covariance, imu, fix, position))

    def fuse(self, samples: SampleBatches) -> FusedPose | None:
        """Return the result of a tick from the samples since the last one, by port."""
        raise NotImplementedError


def require_observable(
    ctx: Context, inputs: Collection[str], found: str, *, lacks_track: bool = False
) -> None:
    """Raise an error if no poses can be fused from some inputs, or kinds of measurements.

    `found` introduces the inputs in the message. `lacks_track`: there are wheels of unknown track.
    """
    if {*inputs} & {"imu", "inertial"} and {*inputs} & {"fix", "position", "positions"}:
        return  # integrated accelerations are a dead reckoning whose drift positions bound
    reckoned = {name for name in inputs if name in MOTION_SENSORS}
    corrected = {*inputs} - {*MOTION_SENSORS, "motion_covariance"}
    # Wheels and an odometry use the same encoders.
    if reckoned and (corrected or len(reckoned - {"odometry"}) > 1):
        return
    missing, options = (
        ("anything that corrects it", CORRECTING_INPUTS)
        if reckoned
        else ("a dead reckoning, or an IMU and positions", (*MOTION_SENSORS, *CORRECTING_INPUTS))
    )
    if lacks_track and not reckoned:
        raise UsageError(
            "poses cannot be fused by wheels whose track is not known",
            why="the turn of left and right wheels depends on the distance between them",
            hint=f"--set {ctx.node}.track=METRES",
        )
    wires = [wire for name in options for wire in ctx.wires_of(name)]
    names = f"{', '.join(options[:-1])} or {options[-1]}"
    raise UsageError(
        f"poses cannot be fused without {missing}",
        why=f"{found}: {', '.join(sorted(inputs)) or 'nothing'}",
        hint=" or ".join(wires) or f"another recording: no stream of this one fits {names}",
    )
