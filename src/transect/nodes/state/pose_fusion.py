"""Pose fusion: where a robot is by everything that it measured."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated

import numpy as np

from transect.algorithms.fusion.measurements import BODIES, Batches, FusionInputs
from transect.engine import Batch, Node, outputs, param
from transect.engine.context import Context
from transect.engine.ports import Shape
from transect.errors import FrameError, UsageError
from transect.types import Imu, NavFix, Odometry, Pose, Record, RigidBodyState, Trajectory, WheelState

from .wheel_odometry import model_for

PERIOD = 0.1
"""Seconds between two ticks."""
RECKONING, CORRECTING = ("wheels", "odometry", "motion"), ("imu", "fix", "position")
"""Inputs that say how a body moves, and those that know where it is, or which way it looks."""


@outputs
class FusedPose:
    """What a fusion gives: at every tick (a filter), and all at once when the inputs end.

    Attributes
    ----------
    pose : Pose
        Of the body. Its frame is `map` (x east, y north, z up from the first fix, or the frame of the given
        positions) where a place was measured, else `odom`, which begins at the body's start.
    covariance : (6, 6) array
        Of the pose: translation (m), then rotation vector (rad), both in the pose's frame.
    state : RigidBodyState
        The same pose with its velocities; `covariance` has 144 numbers, 12 x 12: position, rotation vector,
        velocity, angular velocity, all in the pose's frame.
    success : bool
        Whether there is a pose.
    innovations : Record
        What each sensor's measurements since the last tick said (see `docs/fusion.md`).
    trajectory : Trajectory
        All poses with their covariances, when the inputs end.
    """

    pose: Pose | None = None
    covariance: Annotated[np.ndarray, Shape(6, 6)] | None = None
    state: RigidBodyState | None = None
    success: bool | None = None
    innovations: Record | None = None
    trajectory: Trajectory | None = None


class PoseFusion(Node, interface=True, every=PERIOD):
    """Pose of a body by its wheels or an odometry, with an IMU, satellite fixes or known positions.

    Every input is optional (None: nothing feeds it). Needed are a dead reckoning (`wheels`, `odometry` or
    `motion`) and something beside it, or an `imu` and positions (`fix` or `position`). `wheels` and
    `odometry` come from the same encoders: where both are there, `wheels` are used.

    Inputs
    ------
    wheels
        As encoders saw them.
    odometry
        Pose in a frame of its own, or twist in the body.
    motion
        Poses by visual or lidar odometry, of a frame that is fixed to the body, in a frame that drifts.
    motion_covariance
        (6, 6), one with each pose of `motion`: of the step to it from the pose before (translation, then
        rotation vector, in the axes of the later pose).
    imu
        In its own frame.
    fix
        Of an antenna.
    position
        Of an antenna, or of whatever `child` says, in metres; orientations may be NaN.
    """

    body: str = param("", doc="frame of the body; if empty, Platform, base_link, base_footprint or Body")
    antenna: str = param("", doc="frame of the antenna; if empty, that of the fixes, or gps")
    track: float = param(0.0, ge=0, unit="m", doc="distance between left and right wheels that do not steer")
    position_std: float = param(
        0.0, ge=0, unit="m", doc="sigma of `position`; 0 = 0.02 as for RTK, unless they are clearly noisier"
    )
    fix_std: float = param(
        0.0, ge=0, unit="m", doc="horizontal sigma of fixes that state none; 0 = found from the fixes"
    )
    fix_period: float = param(0.2, ge=0, unit="s", doc="shortest time between two fixes that are used")
    gravity: float = param(9.80665, gt=0, unit="m/s2", doc="magnitude of gravity at the site")

    uses_turns = False
    """Whether an IMU whose mount is not known tells the heading."""

    def ready(self) -> None:
        """Refuse a wiring of which nothing can be fused; say what is known not to be used."""
        fed = [name for name in self.inputs if self.ctx.is_fed(name)]
        refuse_too_little(self.ctx, fed, "wired are")
        if "imu" in fed and {*fed} & {*RECKONING}:
            for frame in self.ctx.frames_of("imu"):
                if not self._tells_mount(frame):
                    use = "only tells the heading" if self.uses_turns else "is not used"
                    self.ctx.log(f"no frame tells how {frame or 'the IMU'} is mounted: it {use}")

    def _tells_mount(self, frame: str) -> bool:
        """Tell whether frames tell how a sensor is mounted, as far as is known before samples come."""
        bodies = [self.body] if self.body else [each for each in BODIES if each in self.ctx.frames]
        if not bodies:
            return frame in BODIES
        try:
            self.ctx.frames.lookup(bodies[0], frame)
        except FrameError:
            return frame == bodies[0]
        return True

    def new_inputs(self) -> FusionInputs:
        """Return what puts the samples of all inputs in order of time, on the body."""
        return FusionInputs(
            self.body,
            self.antenna,
            self.track,
            self.position_std,
            self.fix_period,
            self.fix_std,
            estimates=True,
            turns=self.uses_turns,
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

    def fuse(self, given: Batches) -> FusedPose | None:
        """Return what is known at a tick; `given` is what came since the last one, port by port."""
        raise NotImplementedError


def refuse_too_little(ctx: Context, came: Collection[str], said: str, *, lacks_track: bool = False) -> None:
    """Refuse inputs, or kinds of evidence, of which no poses can be fused; `said` is what they did.

    `lacks_track`: wheels came, and nobody knows how far apart they are.
    """
    if {*came} & {"imu", "inertial"} and {*came} & {"fix", "position", "places"}:
        return  # accelerations, added up twice, are a dead reckoning that places keep from drifting
    reckoned = {name for name in came if name in RECKONING}
    corrected = {*came} - {*RECKONING, "motion_covariance"}
    # Wheels and an odometry are the same encoders.
    if reckoned and (corrected or len(reckoned - {"odometry"}) > 1):
        return
    missing, options = (
        ("anything that corrects it", CORRECTING)
        if reckoned
        else ("a dead reckoning, or an IMU and positions", (*RECKONING, *CORRECTING))
    )
    if lacks_track and not reckoned:
        raise UsageError(
            "poses cannot be fused by wheels whose track is not known",
            why="left and right wheels tell a turn only by the distance between them",
            hint=f"--set {ctx.node}.track=METRES",
        )
    wires = [wire for name in options for wire in ctx.wires_of(name)]
    raise UsageError(
        f"poses cannot be fused without {missing}",
        why=f"{said}: {', '.join(sorted(came)) or 'nothing'}",
        hint=" or ".join(wires) or f"another recording: no stream of this one fits {_either(options)}",
    )


def _either(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
