"""Error-state Kalman filter: applies measurements in the order of time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from transect.base.arrays import Floats
from transect.geometry.robust import inflate
from transect.types import Imu, NavFix, Odometry, Pose, Record, WheelState

from . import error_state as ekf
from . import wheel_updates
from .context import FusionContext
from .events import MOTION_SENSORS, Event, ImuSample, MeasuredPosition, OdometryStep, YawRate
from .filter_settings import FilterSettings
from .imu_propagation import MAX_IMU_GAP_NS, ImuPropagation
from .initialisation import Initialiser, Priors
from .innovation_gate import (
    POSITION_SENSORS,
    InnovationStatistics,
    SensorInnovations,
    SensorTally,
    chi2_quantile,
)
from .measurements import FusionInputs
from .position_updates import PositionUpdates
from .quality import describe_unaligned
from .wheel_propagation import WheelPropagation

WHEEL_CLONE, MOTION_CLONE = 0, 1
"""Slots of the state's clones."""
DEFAULT_NOISE, DEFAULT_PRIORS, DEFAULT_SETTINGS = ekf.ProcessNoise(), Priors(), FilterSettings()


class ErrorStateFilter:
    """Error-state Kalman filter of a ground robot; `process` takes samples as they arrive.

    The IMU propagates the state. Without one, wheels or an odometry do. Other relative motions and positions
    are measurement updates.
    """

    def __init__(
        self,
        inputs: FusionInputs,
        noise: ekf.ProcessNoise = DEFAULT_NOISE,
        priors: Priors = DEFAULT_PRIORS,
        settings: FilterSettings = DEFAULT_SETTINGS,
    ) -> None:
        self.inputs, self.noise, self.settings = inputs, noise, settings
        self.initialiser = Initialiser(inputs, priors, noise.gravity, settings.max_wait_s)
        self.statistics = InnovationStatistics(settings.gate)
        self.imu = ImuPropagation(noise, settings.imu)
        self.wheels = WheelPropagation(noise, settings)
        self.positions = PositionUpdates(noise, priors.tilt, settings, self.statistics, self.wheels)
        self.state: ekf.FilterState | None = None  # None until initialised
        self.frame = "odom"  # of the poses
        self.observer: Callable[[ekf.FilterState], None] | None = None  # called after each event
        self._motion_pose: tuple[int, Floats] | None = None  # time and pose of `motion` since its clone

    def process(
        self,
        ctx: FusionContext,
        t_ns: int,
        *,
        wheels: Sequence[WheelState] | None = None,
        odometry: Sequence[Odometry] | None = None,
        motion: Sequence[Pose] | None = None,
        motion_covariance: Sequence[Floats] | None = None,
        imu: Sequence[Imu] | None = None,
        fix: Sequence[NavFix] | None = None,
        position: Sequence[Pose] | None = None,
    ) -> ekf.FilterState | None:
        """Apply the samples since the last call; return the state at a time, None before the first one.

        Parameters
        ----------
        ctx : FusionContext
        t_ns : int
            Time of the returned state; not earlier than any sample.
        wheels, odometry, motion, motion_covariance, imu, fix, position : sequences of samples
            Inputs of the node `PoseFusion`; None if there is no such sensor.
        """
        samples = wheels, odometry, motion, motion_covariance, imu, fix, position
        return self.at(t_ns) if self.process_events(ctx, self.inputs.gather(ctx, *samples)) else None

    def process_events(self, ctx: FusionContext, events: Sequence[Event]) -> bool:
        """Apply the events of a tick. Return True once the filter is initialised."""
        if self.state is None:
            started = self.initialiser.start(events)
            if started is None:
                return False
            by_positions = self.initialiser.by_positions
            self.frame = self.inputs.frame if by_positions else "odom"
            self.positions.T_frame_positions = np.eye(4) if by_positions else None
            self.state, events = started
        elif self.initialiser.can_improve:
            improved = self.initialiser.improve(events)
            if improved is not None:
                self.frame = self.inputs.frame
                self.state, events = improved
                self.imu.samples = []
        for event in events:
            if event.t_ns < self.state.t_ns and not isinstance(event, YawRate):
                name = "imu" if isinstance(event, ImuSample) else event.sensor
                ctx.skip(f"{name}: older than the state")
            else:
                self._apply(self.state, event)
                if self.observer is not None:
                    self.observer(self.state)
        return True

    def _apply(self, x: ekf.FilterState, event: Event) -> None:
        if isinstance(event, ImuSample):
            self._apply_imu(x, event)
        elif isinstance(event, YawRate):
            self.wheels.gyro.add(event)
        elif isinstance(event, OdometryStep):
            self._apply_step(x, event)
        elif event.t_ns == x.t_ns or self.imu.covers(event.t_ns) or self.inputs.imu_only:
            if self.imu.covers(event.t_ns):
                self.imu.propagate(x, event.t_ns)
            else:
                self.imu.propagate_over_gap(x, event.t_ns)
            self._update_by_position(x, event)
        else:
            self.positions.waiting.append(event)

    def _apply_imu(self, x: ekf.FilterState, sample: ImuSample) -> None:
        if self.imu.covers(sample.t_ns):
            self.imu.propagate(x, sample.t_ns, self.imu.mean_with_newest(sample))
        else:
            if self.inputs.imu_only:
                self.imu.propagate_over_gap(x, sample.t_ns)
            x.t_ns = max(x.t_ns, sample.t_ns)
            x.clones[:] = [None, None]
        self.imu.add(sample)

    def _apply_step(self, x: ekf.FilterState, step: OdometryStep) -> None:
        self.wheels.add(step)
        if not self.imu.covers(step.t_ns):
            self.wheels.handle_start(x)
            self._propagate_by_step(x, step)
            self.wheels.start_slip.add(step.forward_m, rests=self.wheels.starts.standing_s > 0)
            return
        self.imu.propagate(x, step.t_ns)
        if step.sensor == "motion":
            self._update_by_motion(x, step)
            return
        clone = x.clones[WHEEL_CLONE]
        if clone is not None and clone[0] == step.start_ns:
            wheel_updates.propagate_calibration(x, abs(step.forward_m), self.noise)
            sensor = self.statistics.sensor(step.sensor)
            v = wheel_updates.step_variances(step.transform, step.seconds, self.noise)
            covariance = inflate(np.diag([v[0], v[1], v[2], 1.0, 1.0, v[3]]) * sensor.factor, step.trust)
            measurement = wheel_updates.relative_pose_measurement(
                x, step.transform, WHEEL_CLONE, covariance, by_wheels=True
            )
            self._update_by_odometry(x, measurement, sensor, step.trust)
        x.clone_pose(WHEEL_CLONE)

    def _update_by_motion(self, x: ekf.FilterState, step: OdometryStep) -> None:
        """Update by a pose in the drifting frame of a visual or lidar odometry."""
        last = self._motion_pose
        if x.clones[MOTION_CLONE] is None or last is None or last[0] != step.start_ns:
            x.clone_pose(MOTION_CLONE)
            self._motion_pose = step.t_ns, np.eye(4)
            return
        pose = last[1] @ step.transform
        self._motion_pose = step.t_ns, pose
        distance = float(np.linalg.norm(step.transform[:3, 3]))
        ekf.drift_odometry_frame(x, MOTION_CLONE, distance, self.noise)
        sensor = self.statistics.sensor("motion")
        covariance = step.covariance
        if covariance is None or not np.isfinite(covariance).all():
            stds = [self.settings.motion_std_m] * 3 + [self.settings.motion_std_rad] * 3
            covariance = np.diag(np.array(stds) ** 2)
        covariance = inflate(covariance * sensor.factor, step.trust)
        measurement = wheel_updates.relative_pose_measurement(
            x, pose, MOTION_CLONE, covariance, by_wheels=False
        )
        self._update_by_odometry(x, measurement, sensor, step.trust)

    def _update_by_odometry(
        self,
        x: ekf.FilterState,
        measurement: ekf.LinearMeasurement,
        sensor: SensorInnovations,
        trust: float,
    ) -> None:
        """Update by a relative motion. One outside the gate (slip) is down-weighted, not rejected.

        Untrusted measurements do not adapt the noise.
        """
        S = measurement.innovation_covariance(x)
        nis = float(measurement.r @ np.linalg.solve(S, measurement.r))
        gain = self.settings.adaptation_gain if trust == 1.0 else 0.0
        if not sensor.test(nis, S, gain, slice(0, 3)) and self.settings.gated:
            limit = chi2_quantile(self.settings.gate.confidence, len(S))
            measurement = replace(measurement, R=measurement.R * (nis / limit) ** 2)
        ekf.update(x, measurement)

    def _propagate_by_step(self, x: ekf.FilterState, step: OdometryStep) -> None:
        """Propagate by a step, and update by the positions that were measured during it."""
        if step.sensor == "motion" and self.inputs.odometry.has_planar:
            return
        self.wheels.bridge_gap(x, step)
        gyro = self.wheels.gyro.between(step.start_ns, step.t_ns)
        waiting = self.positions.waiting
        self.positions.waiting = [each for each in waiting if each.t_ns > step.t_ns]
        for position in (each for each in waiting if each.t_ns <= step.t_ns):
            self.wheels.propagate(x, position.t_ns, step, gyro)
            self._update_by_position(x, position)
        self.wheels.propagate(x, step.t_ns, step, gyro)
        if gyro is not None:
            sensor = self.statistics.sensor(step.sensor)
            heading_variance = wheel_updates.step_variances(step.transform, step.seconds, self.noise)[3]
            variance = heading_variance * sensor.factor / step.trust**2
            measurement = wheel_updates.turn_measurement(x, step.transform, step.seconds, variance, gyro)
            self._update_by_odometry(x, measurement, sensor, step.trust)

    def _update_by_position(self, x: ekf.FilterState, position: MeasuredPosition) -> None:
        assert self.initialiser.initial is not None
        start_ns = self.initialiser.initial.t_ns
        self.positions.update(x, position, start_ns, inertial=bool(self.imu.samples))

    # Output

    def at(self, t_ns: int) -> ekf.FilterState:
        """Return the state propagated to a time shortly after the newest event."""
        assert self.state is not None
        x = self.state.copy()
        if not 0 < t_ns - x.t_ns <= MAX_IMU_GAP_NS:
            return x
        if self.imu.covers(t_ns):
            self.imu.propagate(x, t_ns)
        elif self.inputs.imu_only:
            self.imu.propagate_over_gap(x, t_ns)
        else:
            self.wheels.extrapolate(x, t_ns)
        x.t_ns = t_ns
        return x

    def angular_velocity(self, x: ekf.FilterState) -> tuple[Floats, Floats]:
        """Return the angular velocity (3,) in the map and its covariance (3, 3)."""
        if self.imu.samples:
            return self.imu.angular_velocity(x)
        return x.rotation @ self.wheels.twist[3:], np.eye(3) * self.noise.rest_heading_noise**2

    def innovations(self, t_ns: int) -> Record:
        """Return the statistics of each sensor's innovations since the last call."""
        return Record(self.statistics.record((*MOTION_SENSORS, *POSITION_SENSORS)), t_ns=t_ns)

    @property
    def biases(self) -> Floats | None:
        """Biases (6,) of the IMU: m/s2, then rad/s; None without one whose mount is known."""
        x = self.state
        return np.concatenate([x.accel_bias, x.gyro_bias]) if x and self.imu.samples else None

    def report_unaligned(self, ctx: FusionContext) -> bool:
        """Return whether an IMU and positions never made the heading observable; if so, report why."""
        if self.state is not None or not self.inputs.imu_only:
            return False
        for sentence in self.inputs.describe_noise():
            ctx.report_noise(sentence)
        for note in self.notes:
            ctx.conclude(note)
        events = self.initialiser.events
        inertial = [each for each in events if isinstance(each, ImuSample)]
        positions = [each for each in events if isinstance(each, MeasuredPosition)]
        ctx.conclude(describe_unaligned(inertial, positions, self.noise.gravity), bad=True)
        return True

    @property
    def notes(self) -> list[str]:
        """Assumptions, and how the heading was initialised, a sentence each."""
        initial = self.initialiser.initial
        alignment = initial.alignment if initial else None
        return [*self.inputs.notes, *([str(alignment)] if alignment else [])]

    @property
    def tallies(self) -> dict[str, SensorTally]:
        """Number of accepted and rejected measurements by sensor."""
        return self.statistics.tallies

    def report(self) -> Iterator[str]:
        """Yield a line for each sensor that had innovations."""
        return self.statistics.report()
