"""Pose fusion by smoothing the last seconds at every keyframe."""

from __future__ import annotations

import numpy as np

from transect.algorithms.fusion.measurements import SampleBatches
from transect.algorithms.fusion.quality import conclude, describe_contradiction
from transect.algorithms.smoothing.factor_graph import ConvergenceError, make_noise
from transect.algorithms.smoothing.filter_odometry import FilterOdometry
from transect.algorithms.smoothing.fixed_lag import (
    FixedLagSettings,
    FixedLagWindow,
    PoseKeyframe,
    PositionFit,
)
from transect.algorithms.smoothing.position_factors import (
    join_statistics,
    record_innovations,
    tally_positions,
)
from transect.engine import param
from transect.geometry import se3
from transect.types import Pose, Trajectory

from .error_state_filter import new_default_filter
from .pose_fusion import FusedPose, PoseFusion, require_observable


class FixedLagSmoother(PoseFusion):
    """Factor graph (GTSAM) of the last seconds, solved at every keyframe; older keyframes are marginalised.

    Causal: `pose` is the current pose by the measurements until now. `trajectory` has the keyframes when they
    left the window, `lag` later: more accurate, and not causal. `docs/fusion.md` has the factors. `state` is
    not set.
    """

    lag: float = param(
        FixedLagSettings.lag, gt=0, unit="s", doc="length of the window; should exceed the outages"
    )
    wait: float = param(
        FixedLagSettings.max_wait,
        ge=0,
        unit="s",
        doc="longest wait for a first position before starting without",
    )
    spacing: float = param(
        FixedLagSettings.spacing, gt=0, unit="s", doc="time between keyframes, and between solutions"
    )
    wheel_noise: float = param(1.0, gt=0, doc="factor on the default noise of the wheels")
    start_slip: float = param(1.0, ge=0, doc="sigma of the relative error of wheels after a start")
    tilt: float = param(0.05, gt=0, unit="rad", doc="sigma of roll and pitch if nothing measures them")

    def reset(self) -> None:
        self.fusion_inputs = self.new_inputs()
        noise = make_noise(self.wheel_noise, self.start_slip, self.tilt, self.gravity)
        self.window = FixedLagWindow(noise, FixedLagSettings(self.spacing, self.lag, self.wait))
        self.noise_version = 0
        self.fits: list[PositionFit] = []
        self.error: ConvergenceError | None = None
        self.last_ns = -(2**63)

    def fuse(self, samples: SampleBatches) -> FusedPose | None:
        if self.error is not None:
            self.ctx.skip("the smoother has no solution: see the judgement")
            return FusedPose(success=False)
        inputs, window = self.fusion_inputs, self.window
        events = inputs.gather(self.ctx, *samples)
        if inputs.imu_only:
            if window.filter_odometry is None:
                window.filter_odometry = FilterOdometry(new_default_filter(inputs, self.gravity))
            window.observations.filter_path += window.filter_odometry.process_events(self.ctx, events)
        if inputs.positions.noise.version != self.noise_version:
            self.noise_version = inputs.positions.noise.version
            window.observations.update_noise(inputs.with_estimated_noise)
        try:
            fit = window.advance(events)
        except ConvergenceError as error:
            self.error = error
            return FusedPose(success=False)
        now = window.predict(self.ctx.time)
        if now is None:
            self.ctx.skip("waiting for positions that make the heading observable")
            return FusedPose(success=False)
        if fit is not None:
            self.fits.append(fit)
        if now.t_ns <= self.last_ns:
            return FusedPose(success=True)  # no new dead reckoning since
        self.last_ns = now.t_ns
        orientation, position = se3.to_quaternion(now.pose)
        return FusedPose(
            pose=Pose(position, orientation, now.t_ns, self._frame(), inputs.body),
            covariance=now.covariance,
            success=True,
            innovations=None if fit is None else record_innovations(*fit, self.ctx.time),
        )

    def finish(self) -> FusedPose | None:
        """Return the keyframes when they left the window, and log the statistics of positions."""
        inputs = self.fusion_inputs
        lacks_track = inputs.odometry.lacks_track
        require_observable(self.ctx, self.window.kinds, "inputs with samples", lacks_track=lacks_track)
        keyframes = self._finish_window()
        if not keyframes:
            return None
        positions = [each for some, _ in self.fits for each in some]
        statistics = join_statistics([each for _, each in self.fits])
        self.ctx.log(str(statistics))
        orientations, translations = se3.to_quaternion(np.array([each.pose for each in keyframes]))
        trajectory = Trajectory(
            np.array([each.t_ns for each in keyframes], np.int64),
            translations,
            orientations,
            np.array([each.covariance for each in keyframes]),
            frame=self._frame(),
            child=inputs.body,
        )
        used_ns = [each.t_ns for each, used in zip(positions, statistics.used, strict=True) if used]
        filter_odometry = self.window.filter_odometry
        notes = filter_odometry.filter.notes if filter_odometry else inputs.notes
        tallies = tally_positions(positions, statistics)
        noise = inputs.describe_noise()
        conclude(self.ctx, tallies, used_ns, trajectory, self.window.biases, notes, noise)
        return FusedPose(trajectory=trajectory)

    def _finish_window(self) -> list[PoseKeyframe]:
        """Return all keyframes until a failure."""
        filter_odometry = self.window.filter_odometry
        if filter_odometry and filter_odometry.filter.report_unaligned(self.ctx):
            return []
        try:
            if self.error is None:
                return self.window.finish()
        except ConvergenceError as error:
            self.error = error
        assert self.error is not None
        text = describe_contradiction(self.error, self.window.observations.inertial, self.gravity)
        self.ctx.conclude(text, bad=True)
        return self.window.finished

    def _frame(self) -> str:
        return self.fusion_inputs.frame if "positions" in self.window.kinds else "odom"
