"""Pose fusion by an error-state Kalman filter: causal, at every tick by what was measured until then."""

from __future__ import annotations

from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.engine import param
from transect.geometry import rotations
from transect.types import Pose, RigidBodyState, Trajectory

from .fusion import Batches, Filter, Noise, Priors
from .pose_fusion import FusedPose, PoseFusion, refuse_too_little

PLACES = ("fix", "position")
_NOISE = Noise.__dataclass_fields__
_PRIORS = Priors.__dataclass_fields__


class ErrorStateFilter(PoseFusion):
    """Error-state Kalman filter of 15 states, with errors of wheels and of fixes beside them.

    Propagated by the IMU, or by the wheels where there is none. Wheels, odometry and `motion` correct it by
    relative poses, fixes and positions by their places. `docs/fusion.md` has models and formulas.
    """

    fix_seconds: float = param(60.0, gt=0, unit="s", doc="for which errors of single fixes stay alike")
    wait: float = param(3.0, ge=0, unit="s", doc="for a first place; then it begins without")
    adapt: float = param(0.1, ge=0, lt=1, doc="how fast noise follows innovations; 0 never")
    patience: int = param(3, ge=1, doc="places refused in a row, after which the state is doubted")
    gyro_bias: float = param(2e-3, gt=0, unit="rad/s", doc="sigma at the start")
    force_bias: float = param(0.05, gt=0, unit="m/s2", doc="sigma at the start")
    gyro_walk: float = param(1e-5, gt=0, unit="rad/s/sqrt(s)", doc="of the gyroscopes' biases")
    force_walk: float = param(1e-4, gt=0, unit="m/s2/sqrt(s)", doc="of the accelerometers' biases")
    scale: float = param(0.05, gt=0, doc="sigma of the wheels' scale at the start")
    scale_walk: float = param(1e-3, ge=0, unit="1/sqrt(m)", doc="by which that scale changes")
    slip: float = param(0.03, gt=0, doc="sigma of slip that changes along the way")
    slip_length: float = param(2.0, gt=0, unit="m", doc="along which slip stays alike")
    unsteady: float = param(1.0, ge=0, doc="sigma of slip as wheels set off or leap: 2 is a wrong direction")
    steer: float = param(0.1, gt=0, doc="sigma of the relative error of turns at the start")
    steer_walk: float = param(5e-3, ge=0, unit="1/sqrt(m)", doc="by which that error changes")
    side: float = param(0.02, gt=0, unit="rad", doc="sigma of the angle beside the heading at the start")
    side_walk: float = param(2e-3, ge=0, unit="rad/sqrt(m)", doc="by which that angle changes")
    bend: float = param(0.02, gt=0, unit="rad/m", doc="sigma of the curvature that wheels do not see")
    bend_walk: float = param(5e-4, ge=0, unit="rad/m/sqrt(m)", doc="by which that curvature changes")
    along: float = param(0.01, gt=0, unit="m/sqrt(m)", doc="white noise of wheels along the way")
    across: float = param(0.01, gt=0, unit="m/sqrt(m)", doc="and across it")
    up: float = param(0.03, gt=0, unit="m/sqrt(m)", doc="and off the plane of the body")
    hill: float = param(0.1, gt=0, unit="m/sqrt(m)", doc="of heights, where nothing tells the slope")
    heading: float = param(5e-3, gt=0, unit="rad/sqrt(m)", doc="white noise of the wheels' heading")
    skid: float = param(0.1, gt=0, unit="rad/sqrt(rad)", doc="white noise of the wheels' turns")
    speed_floor: float = param(0.05, gt=0, unit="m/sqrt(s)", doc="that wheels do not see, also at rest")
    turn_floor: float = param(5e-3, gt=0, unit="rad/sqrt(s)", doc="and of turns")
    drift: float = param(0.01, gt=0, unit="m/sqrt(m)", doc="of the frame of `motion`: 0.3 % after 10 m")
    drift_turn: float = param(1e-3, gt=0, unit="rad/sqrt(m)", doc="by which that frame turns")
    tilt: float = param(0.05, gt=0, unit="rad", doc="sigma of roll and pitch by gravity, or unmeasured")

    def reset(self) -> None:
        self.filter: Filter | None = None
        self.fed: set[str] = set()
        self.kept: list[tuple[int, Floats, Floats, Floats]] = []

    def fuse(self, given: Batches) -> FusedPose | None:
        if self.filter is None:
            self.filter = self._new_filter()
        self.fed = self.fed | {name for name, batch in zip(self.inputs, given, strict=True) if batch}
        events = self.filter.inputs.gather(self.ctx, *given)
        if not self.filter.take(self.ctx, events):
            self.ctx.skip(self.filter.waiting_for)
            return FusedPose(success=False)
        return self._pose_now(self.filter)

    def finish(self) -> FusedPose | None:
        """Return the whole trajectory, and log what every sensor's innovations were."""
        refuse_too_little(self.fed, "samples came from")
        if self.filter is None or not self.kept:
            return None
        for line in self.filter.report():
            self.ctx.log(line)
        times, places, attitudes, covariances = zip(*self.kept, strict=True)
        return FusedPose(
            trajectory=Trajectory(
                np.array(times, np.int64),
                np.stack(places),
                np.stack(attitudes),
                np.stack(covariances),
                frame=self.filter.frame,
                child=self.filter.inputs.body,
            )
        )

    def _new_filter(self) -> Filter:
        values = self.values
        return Filter(
            self.new_inputs(),
            Noise(**{name: values[name] for name in _NOISE}),
            Priors(**{name: values[name] for name in _PRIORS}),
            wait=self.wait if any(map(self.ctx.fed, PLACES)) else 0.0,
            adapt=self.adapt,
            patience=self.patience,
        )

    def _pose_now(self, filtered: Filter) -> FusedPose:
        """Return what is known now, and keep it for the trajectory."""
        now = filtered.at(self.ctx.time)
        q = rotations.quaternion_from_matrix(now.rotation)
        C = now.pose_covariance
        self.kept.append((self.ctx.time, now.p, q, C))
        names: dict[str, Any] = {
            "t_ns": self.ctx.time,
            "frame": filtered.frame,
            "child": filtered.inputs.body,
        }
        omega, spread = filtered.angular_velocity(now)
        full = np.zeros((12, 12))
        full[:9, :9], full[9:, 9:] = now.covariance[:9, :9], spread
        return FusedPose(
            pose=Pose(now.p, q, **names),
            covariance=C,
            state=RigidBodyState(now.p, q, now.v, omega, full.reshape(-1), **names),
            success=True,
            innovations=filtered.innovations(self.ctx.time),
        )
