"""Pose fusion by an error-state Kalman filter: causal, at every tick by the measurements until then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from transect.algorithms.fusion.error_state import ProcessNoise
from transect.algorithms.fusion.error_state_filter import ErrorStateFilter as Filter
from transect.algorithms.fusion.filter_settings import FilterSettings
from transect.algorithms.fusion.initialisation import Priors
from transect.algorithms.fusion.innovation_gate import POSITION_SENSORS, GateSettings
from transect.algorithms.fusion.measurements import FusionInputs, SampleBatches
from transect.algorithms.fusion.quality import conclude
from transect.base.arrays import Floats
from transect.engine import param
from transect.geometry import rotations
from transect.types import Pose, RigidBodyState, Trajectory

from .pose_fusion import FusedPose, PoseFusion, require_observable

NOISE_PARAMS = tuple(ProcessNoise.__dataclass_fields__)
PRIOR_PARAMS = tuple(Priors.__dataclass_fields__)


class ErrorStateFilter(PoseFusion):
    """Error-state Kalman filter of 15 states, with errors of wheels and of fixes as additional states.

    Propagated by the IMU, or without one by the wheels. Wheels, odometry and `motion` update it as
    relative poses, fixes and positions as positions. `docs/fusion.md` has models and formulas.
    """

    fix_correlation_time: float = param(
        ProcessNoise.fix_correlation_time,
        gt=0,
        unit="s",
        doc="correlation time of errors of fixes that are not RTK",
    )
    wait: float = param(
        FilterSettings.max_wait_s,
        ge=0,
        unit="s",
        doc="longest wait for a first position before starting without",
    )
    adaptation_gain: float = param(
        FilterSettings.adaptation_gain,
        ge=0,
        lt=1,
        doc="gain of the adaptation of each sensor's noise to its innovations; 0 for none",
    )
    gate: bool = param(FilterSettings.gated, doc="whether outliers are rejected or down-weighted")
    gate_confidence: float = param(
        GateSettings.confidence, gt=0, lt=1, doc="fraction of consistent measurements inside the gate"
    )
    patience: int = param(
        FilterSettings.patience, ge=1, doc="positions rejected in a row before the state is considered wrong"
    )
    gyro_bias: float = param(
        Priors.gyro_bias, gt=0, unit="rad/s", doc="sigma of the gyroscope biases at the start"
    )
    accel_bias: float = param(
        Priors.accel_bias, gt=0, unit="m/s2", doc="sigma of the accelerometer biases at the start"
    )
    gyro_bias_walk: float = param(
        ProcessNoise.gyro_bias_walk, gt=0, unit="rad/s/sqrt(s)", doc="random walk of the gyroscope biases"
    )
    accel_bias_walk: float = param(
        ProcessNoise.accel_bias_walk, gt=0, unit="m/s2/sqrt(s)", doc="random walk of the accelerometer biases"
    )
    scale: float = param(Priors.scale, gt=0, doc="sigma of the scale of the wheels at the start")
    scale_walk: float = param(
        ProcessNoise.scale_walk, ge=0, unit="1/sqrt(m)", doc="random walk of the scale of the wheels"
    )
    slip: float = param(Priors.slip, gt=0, doc="sigma of the slip of the wheels")
    slip_length: float = param(
        ProcessNoise.slip_length, gt=0, unit="m", doc="distance over which slip stays correlated"
    )
    start_slip: float = param(
        ProcessNoise.start_slip,
        ge=0,
        doc="sigma of slip at a start or jump of the wheels; 2 covers a wrong sign",
    )
    turn_scale: float = param(
        Priors.turn_scale, gt=0, doc="sigma of the relative error of turns by the wheels at the start"
    )
    turn_scale_walk: float = param(
        ProcessNoise.turn_scale_walk, ge=0, unit="1/sqrt(m)", doc="random walk of the relative error of turns"
    )
    sideslip: float = param(Priors.sideslip, gt=0, unit="rad", doc="sigma of the sideslip angle at the start")
    sideslip_walk: float = param(
        ProcessNoise.sideslip_walk, ge=0, unit="rad/sqrt(m)", doc="random walk of the sideslip angle"
    )
    curvature: float = param(
        Priors.curvature, gt=0, unit="rad/m", doc="sigma of unmeasured curvature at the start"
    )
    curvature_walk: float = param(
        ProcessNoise.curvature_walk, ge=0, unit="rad/m/sqrt(m)", doc="random walk of unmeasured curvature"
    )
    along_noise: float = param(
        ProcessNoise.along_noise, gt=0, unit="m/sqrt(m)", doc="white noise of the wheels along the path"
    )
    across_noise: float = param(
        ProcessNoise.across_noise, gt=0, unit="m/sqrt(m)", doc="white noise of the wheels across the path"
    )
    vertical_noise: float = param(
        ProcessNoise.vertical_noise,
        gt=0,
        unit="m/sqrt(m)",
        doc="white noise of the wheels normal to the ground",
    )
    terrain_noise: float = param(
        ProcessNoise.terrain_noise,
        gt=0,
        unit="m/sqrt(m)",
        doc="white noise of height if nothing measures the slope",
    )
    heading_noise: float = param(
        ProcessNoise.heading_noise,
        gt=0,
        unit="rad/sqrt(m)",
        doc="white noise of the wheels' heading per distance",
    )
    skid_noise: float = param(
        ProcessNoise.skid_noise, gt=0, unit="rad/sqrt(rad)", doc="white noise of the wheels' heading per turn"
    )
    rest_position_noise: float = param(
        ProcessNoise.rest_position_noise,
        gt=0,
        unit="m/sqrt(s)",
        doc="white noise of the wheels' position, also at rest",
    )
    rest_heading_noise: float = param(
        ProcessNoise.rest_heading_noise,
        gt=0,
        unit="rad/sqrt(s)",
        doc="white noise of the wheels' heading, also at rest",
    )
    motion_drift: float = param(
        ProcessNoise.motion_drift,
        gt=0,
        unit="m/sqrt(m)",
        doc="position drift of `motion`; the default is 0.3 % after 10 m",
    )
    motion_turn_drift: float = param(
        ProcessNoise.motion_turn_drift, gt=0, unit="rad/sqrt(m)", doc="attitude drift of `motion`"
    )
    tilt: float = param(
        Priors.tilt, gt=0, unit="rad", doc="sigma of roll and pitch, at the start or not measured"
    )

    uses_yaw_rate = True

    def reset(self) -> None:
        self.filter: Filter | None = None
        self.fed: set[str] = set()
        self.poses: list[tuple[int, Floats, Floats, Floats]] = []

    def fuse(self, samples: SampleBatches) -> FusedPose | None:
        if self.filter is None:
            wait = self.wait if any(map(self.ctx.is_fed, POSITION_SENSORS)) else 0.0
            self.filter = new_filter(self.new_inputs(), self.values, wait=wait)
        self.fed = self.fed | {name for name, batch in zip(self.inputs, samples, strict=True) if batch}
        events = self.filter.inputs.gather(self.ctx, *samples)
        if not self.filter.process_events(self.ctx, events):
            self.ctx.skip(self.filter.initialiser.status)
            return FusedPose(success=False)
        return self._current_pose(self.filter)

    def finish(self) -> FusedPose | None:
        """Return the whole trajectory, log statistics of the innovations, and conclude."""
        lacks_track = self.filter is not None and self.filter.inputs.odometry.lacks_track
        fed = self.fed - {"wheels"} if lacks_track else self.fed
        require_observable(self.ctx, fed, "inputs with samples", lacks_track=lacks_track)
        if self.filter is None or self.filter.report_unaligned(self.ctx) or not self.poses:
            return None
        for line in self.filter.report():
            self.ctx.log(line)
        times, positions, orientations, covariances = zip(*self.poses, strict=True)
        trajectory = Trajectory(
            np.array(times, np.int64),
            np.stack(positions),
            np.stack(orientations),
            np.stack(covariances),
            frame=self.filter.frame,
            child=self.filter.inputs.body,
        )
        conclude(
            self.ctx,
            self.filter.tallies,
            self.filter.positions.used_ns,
            trajectory,
            self.filter.biases,
            self.filter.notes,
            self.filter.inputs.describe_noise(),
        )
        return FusedPose(trajectory=trajectory)

    def _current_pose(self, filtered: Filter) -> FusedPose:
        """Return the current pose, and store it for the trajectory."""
        x = filtered.at(self.ctx.time)
        q = rotations.quaternion_from_matrix(x.rotation)
        x.covariance[range(3), range(3)] += filtered.positions.untracked_variance
        C = x.pose_covariance
        self.poses.append((self.ctx.time, x.p, q, C))
        names: dict[str, Any] = {
            "t_ns": self.ctx.time,
            "frame": filtered.frame,
            "child": filtered.inputs.body,
        }
        omega, omega_covariance = filtered.angular_velocity(x)
        covariance = np.zeros((12, 12))
        covariance[:9, :9], covariance[9:, 9:] = x.covariance[:9, :9], omega_covariance
        return FusedPose(
            pose=Pose(x.p, q, **names),
            covariance=C,
            state=RigidBodyState(x.p, q, x.v, omega, covariance.reshape(-1), **names),
            success=True,
            innovations=filtered.innovations(self.ctx.time),
        )


def new_filter(inputs: FusionInputs, values: Mapping[str, Any], wait: float) -> Filter:
    """Return a filter by values of the parameters of `ErrorStateFilter`."""
    settings = FilterSettings(
        max_wait_s=wait,
        adaptation_gain=values["adaptation_gain"],
        patience=values["patience"],
        gated=values["gate"],
        gate=GateSettings(confidence=values["gate_confidence"]),
    )
    noise = ProcessNoise(**{name: values[name] for name in NOISE_PARAMS})
    return Filter(inputs, noise, Priors(**{name: values[name] for name in PRIOR_PARAMS}), settings)


def new_default_filter(inputs: FusionInputs, gravity: float) -> Filter:
    """Return a filter with default parameters, whose path a smoother starts from."""
    return new_filter(inputs, ErrorStateFilter().values | {"gravity": gravity}, wait=0.0)
