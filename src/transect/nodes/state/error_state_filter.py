"""Pose fusion by an error-state Kalman filter: causal, at every tick by what was measured until then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from transect.algorithms.fusion.error_state import ProcessNoise
from transect.algorithms.fusion.error_state_filter import ErrorStateFilter as Filter
from transect.algorithms.fusion.initialisation import Priors
from transect.algorithms.fusion.measurements import Batches, FusionInputs
from transect.algorithms.fusion.quality import conclude
from transect.base.arrays import Floats
from transect.engine import param
from transect.geometry import rotations
from transect.types import Pose, RigidBodyState, Trajectory

from .pose_fusion import FusedPose, PoseFusion, refuse_too_little

PLACES = ("fix", "position")
_NOISE = ProcessNoise.__dataclass_fields__
_PRIORS = Priors.__dataclass_fields__


class ErrorStateFilter(PoseFusion):
    """Error-state Kalman filter of 15 states, with errors of wheels and of fixes beside them.

    Propagated by the IMU, or by the wheels where there is none. Wheels, odometry and `motion` correct it by
    relative poses, fixes and positions by their places. `docs/fusion.md` has models and formulas.
    """

    fix_seconds: float = param(
        ProcessNoise.fix_seconds, gt=0, unit="s", doc="correlation time of errors of fixes that are not RTK"
    )
    wait: float = param(3.0, ge=0, unit="s", doc="longest wait for a first position before starting without")
    adapt: float = param(0.1, ge=0, lt=1, doc="share by which noise follows an innovation; 0 keeps it")
    gate: bool = param(True, doc="whether what does not fit is refused; else everything is believed")
    patience: int = param(3, ge=1, doc="positions refused in a row before the state is doubted")
    gyro_bias: float = param(
        Priors.gyro_bias, gt=0, unit="rad/s", doc="sigma of the gyroscope biases at the start"
    )
    force_bias: float = param(
        Priors.force_bias, gt=0, unit="m/s2", doc="sigma of the accelerometer biases at the start"
    )
    gyro_walk: float = param(
        ProcessNoise.gyro_walk, gt=0, unit="rad/s/sqrt(s)", doc="random walk of the gyroscope biases"
    )
    force_walk: float = param(
        ProcessNoise.force_walk, gt=0, unit="m/s2/sqrt(s)", doc="random walk of the accelerometer biases"
    )
    scale: float = param(Priors.scale, gt=0, doc="sigma of the scale of the wheels at the start")
    scale_walk: float = param(
        ProcessNoise.scale_walk, ge=0, unit="1/sqrt(m)", doc="random walk of the scale of the wheels"
    )
    slip: float = param(Priors.slip, gt=0, doc="sigma of the slip of the wheels")
    slip_length: float = param(
        ProcessNoise.slip_length, gt=0, unit="m", doc="distance over which slip stays correlated"
    )
    unsteady: float = param(
        ProcessNoise.unsteady,
        ge=0,
        doc="sigma of slip at a start or jump of the wheels; 2 covers a wrong sign",
    )
    steer: float = param(
        Priors.steer, gt=0, doc="sigma of the relative error of turns by the wheels at the start"
    )
    steer_walk: float = param(
        ProcessNoise.steer_walk, ge=0, unit="1/sqrt(m)", doc="random walk of the relative error of turns"
    )
    side: float = param(Priors.side, gt=0, unit="rad", doc="sigma of the sideslip angle at the start")
    side_walk: float = param(
        ProcessNoise.side_walk, ge=0, unit="rad/sqrt(m)", doc="random walk of the sideslip angle"
    )
    bend: float = param(Priors.bend, gt=0, unit="rad/m", doc="sigma of unmeasured curvature at the start")
    bend_walk: float = param(
        ProcessNoise.bend_walk, ge=0, unit="rad/m/sqrt(m)", doc="random walk of unmeasured curvature"
    )
    along: float = param(
        ProcessNoise.along, gt=0, unit="m/sqrt(m)", doc="white noise of the wheels along the path"
    )
    across: float = param(
        ProcessNoise.across, gt=0, unit="m/sqrt(m)", doc="white noise of the wheels across the path"
    )
    up: float = param(
        ProcessNoise.up, gt=0, unit="m/sqrt(m)", doc="white noise of the wheels normal to the ground"
    )
    hill: float = param(
        ProcessNoise.hill, gt=0, unit="m/sqrt(m)", doc="white noise of height if nothing measures the slope"
    )
    heading: float = param(
        ProcessNoise.heading, gt=0, unit="rad/sqrt(m)", doc="white noise of the wheels' heading per distance"
    )
    skid: float = param(
        ProcessNoise.skid, gt=0, unit="rad/sqrt(rad)", doc="white noise of the wheels' heading per turn"
    )
    speed_floor: float = param(
        ProcessNoise.speed_floor,
        gt=0,
        unit="m/sqrt(s)",
        doc="white noise of the wheels' position, also at rest",
    )
    turn_floor: float = param(
        ProcessNoise.turn_floor,
        gt=0,
        unit="rad/sqrt(s)",
        doc="white noise of the wheels' heading, also at rest",
    )
    drift: float = param(
        ProcessNoise.drift,
        gt=0,
        unit="m/sqrt(m)",
        doc="position drift of `motion`; the default is 0.3 % after 10 m",
    )
    drift_turn: float = param(
        ProcessNoise.drift_turn, gt=0, unit="rad/sqrt(m)", doc="attitude drift of `motion`"
    )
    tilt: float = param(
        Priors.tilt, gt=0, unit="rad", doc="sigma of roll and pitch, at the start or not measured"
    )

    uses_turns = True

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
        """Return the whole trajectory, log what every sensor's innovations were, and conclude."""
        lacks_track = self.filter is not None and self.filter.inputs.lacks_track
        came = self.fed - {"wheels"} if lacks_track else self.fed
        refuse_too_little(self.ctx, came, "samples came from", lacks_track=lacks_track)
        if self.filter is None or self.filter.conclude_stuck(self.ctx) or not self.kept:
            return None
        for line in self.filter.report():
            self.ctx.log(line)
        times, places, attitudes, covariances = zip(*self.kept, strict=True)
        trajectory = Trajectory(
            np.array(times, np.int64),
            np.stack(places),
            np.stack(attitudes),
            np.stack(covariances),
            frame=self.filter.frame,
            child=self.filter.inputs.body,
        )
        found = self.filter
        noise = found.inputs.describe_noise()
        conclude(self.ctx, found.tallies, found.placed_ns, trajectory, found.biases, found.notes, noise)
        return FusedPose(trajectory=trajectory)

    def _new_filter(self) -> Filter:
        wait = self.wait if any(map(self.ctx.is_fed, PLACES)) else 0.0
        return new_filter(self.new_inputs(), self.values, wait=wait)

    def _pose_now(self, filtered: Filter) -> FusedPose:
        """Return what is known now, and keep it for the trajectory."""
        now = filtered.at(self.ctx.time)
        q = rotations.quaternion_from_matrix(now.rotation)
        now.covariance[range(3), range(3)] += filtered.lasting
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


def new_filter(inputs: FusionInputs, values: Mapping[str, Any], wait: float) -> Filter:
    """Return a filter by values of the parameters of `ErrorStateFilter`."""
    return Filter(
        inputs,
        ProcessNoise(**{name: values[name] for name in _NOISE}),
        Priors(**{name: values[name] for name in _PRIORS}),
        wait=wait,
        adapt=values["adapt"],
        patience=values["patience"],
        gated=values["gate"],
    )


def follow(inputs: FusionInputs, **values: float) -> Filter:
    """Return a filter by the default parameters, but for `values`, that goes before a smoother."""
    return new_filter(inputs, ErrorStateFilter().values | values, wait=0.0)
