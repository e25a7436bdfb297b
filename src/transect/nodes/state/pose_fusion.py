"""Pose fusion: where a robot is by everything that it measured."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from transect.engine import Batch, Node, outputs
from transect.engine.ports import Shape
from transect.types import Imu, NavFix, Odometry, Pose, Record, RigidBodyState, Trajectory, WheelState

PERIOD = 0.1
"""Seconds between two ticks."""


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

    Every input is optional (None: nothing feeds it); a dead reckoning (`wheels`, `odometry` or `motion`) and
    something beside it are needed. `wheels` and `odometry` come from the same encoders: where both are there,
    `wheels` are used.

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

    def process(
        self,
        wheels: Batch[WheelState] | None = None,
        odometry: Batch[Odometry] | None = None,
        motion: Batch[Pose] | None = None,
        motion_covariance: Batch[np.ndarray] | None = None,
        imu: Batch[Imu] | None = None,
        fix: Batch[NavFix] | None = None,
        position: Batch[Pose] | None = None,
    ) -> FusedPose | None: ...
