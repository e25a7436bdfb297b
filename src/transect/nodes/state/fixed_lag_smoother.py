"""Pose fusion by smoothing the last seconds, again and again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transect.algorithms.fusion.measurements import Batches, Event
from transect.algorithms.fusion.quality import conclude, contradiction
from transect.algorithms.smoothing.factor_graph import UnsettledError, noise_of
from transect.algorithms.smoothing.filter_odometry import Follower
from transect.algorithms.smoothing.fixed_lag import Fit, FixedLagWindow, Keyframe
from transect.algorithms.smoothing.position_factors import innovations, join, tallies
from transect.engine import param
from transect.geometry import se3
from transect.types import Pose, Trajectory

from .error_state_filter import follow
from .pose_fusion import FusedPose, PoseFusion, refuse_too_little


class FixedLagSmoother(PoseFusion):
    """A factor graph (GTSAM) of the last seconds, solved at every keyframe; what is older is summed up.

    Causal: `pose` is where the body is now by all that came until now. `trajectory` has the keyframes as they
    were when they left the window, `lag` later: better, and not causal. `docs/fusion.md` has the factors.
    `state` is not told.
    """

    lag: float = param(40.0, gt=0, unit="s", doc="length of the window; should exceed the outages")
    wait: float = param(30.0, ge=0, unit="s", doc="longest wait for a first position before starting without")
    spacing: float = param(1.0, gt=0, unit="s", doc="time between keyframes, and between solutions")
    wheel_noise: float = param(1.0, gt=0, doc="factor on the default noise of the wheels")
    unsteady: float = param(1.0, ge=0, doc="sigma of the relative error of wheels that set off")
    tilt: float = param(0.05, gt=0, unit="rad", doc="sigma of roll and pitch where nothing measures them")

    def reset(self) -> None:
        self.gathered = self.new_inputs()
        noise = noise_of(self.wheel_noise, self.unsteady, self.tilt, self.gravity)
        self.window = FixedLagWindow(noise, self.spacing, self.lag, self.wait)
        self.noise_version = 0
        self.fits: list[Fit] = []
        self.failed: UnsettledError | None = None
        self.last_ns = -(2**63)

    def fuse(self, given: Batches) -> FusedPose | None:
        if self.failed is not None:
            self.ctx.skip("the smoother has no solution: see the judgement")
            return FusedPose(success=False)
        events = self.gathered.gather(self.ctx, *given)
        if self.gathered.alone:
            self._follow(events)
        if self.gathered.noise.version != self.noise_version:
            self.noise_version = self.gathered.noise.version
            self.window.evidence.restate(self.gathered.restate)
        try:
            fit = self.window.advance(events)
        except UnsettledError as error:
            self.failed = error
            return FusedPose(success=False)
        now = self.window.predict(self.ctx.time)
        if now is None:
            self.ctx.skip("waiting for positions that tell the heading")
            return FusedPose(success=False)
        if fit is not None:
            self.fits.append(fit)
        if now.t_ns <= self.last_ns:
            return FusedPose(success=True)  # dead reckoning has told nothing new since
        self.last_ns = now.t_ns
        attitude, place = se3.to_quaternion(now.pose)
        return FusedPose(
            pose=Pose(place, attitude, now.t_ns, self._frame(), self.gathered.body),
            covariance=now.covariance,
            success=True,
            innovations=None if fit is None else innovations(*fit, self.ctx.time),
        )

    def finish(self) -> FusedPose | None:
        """Return the keyframes as they were when they left the window, and log how the positions fitted."""
        refuse_too_little(
            self.ctx, self.window.kinds, "samples came from", lacks_track=self.gathered.lacks_track
        )
        keyframes = self._finish_window()
        if not keyframes:
            return None
        places, judged = (
            [each for some, _ in self.fits for each in some],
            join([each for _, each in self.fits]),
        )
        self.ctx.log(str(judged))
        attitudes, positions = se3.to_quaternion(np.array([each.pose for each in keyframes]))
        trajectory = Trajectory(
            np.array([each.t_ns for each in keyframes], np.int64),
            positions,
            attitudes,
            np.array([each.covariance for each in keyframes]),
            frame=self._frame(),
            child=self.gathered.body,
        )
        used = [place.t_ns for place, used in zip(places, judged.used, strict=True) if used]
        follower = self.window.follower
        notes = follower.filter.notes if follower else self.gathered.notes
        noise = self.gathered.describe_noise()
        conclude(self.ctx, tallies(places, judged), used, trajectory, self.window.biases, notes, noise)
        return FusedPose(trajectory=trajectory)

    def _follow(self, events: Sequence[Event]) -> None:
        """Let a filter go before, as an IMU and positions are all that there is."""
        if self.window.follower is None:
            self.window.follower = Follower(follow(self.gathered, gravity=self.gravity))
        self.window.evidence.followed += self.window.follower.follow(self.ctx, events)

    def _finish_window(self) -> list[Keyframe]:
        """Return all keyframes, as far as they fit."""
        if self.window.follower and self.window.follower.filter.conclude_stuck(self.ctx):
            return []
        try:
            if self.failed is None:
                return self.window.finish()
        except UnsettledError as error:
            self.failed = error
        assert self.failed is not None
        self.ctx.conclude(contradiction(self.failed, self.window.evidence.inertial, self.gravity), bad=True)
        return self.window.done

    def _frame(self) -> str:
        return self.gathered.frame if "places" in self.window.kinds else "odom"
