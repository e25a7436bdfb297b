"""Initialisation of the filter: roll and pitch by gravity, heading by a path of positions or the receiver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.geometry import align, interpolation, rotations, se3

from . import error_state as ekf
from .events import Event, ImuSample, MeasuredPosition, OdometryStep
from .heading_alignment import HeadingAlignment, align_by_acceleration
from .imu_propagation import MAX_IMU_GAP_NS
from .measurements import FusionInputs


@dataclass(frozen=True)
class Priors:
    """Standard deviations of the initial state; the node `ErrorStateFilter` documents each as a parameter."""

    gyro_bias: float = 2e-3  # rad/s
    accel_bias: float = 0.05  # m/s2
    scale: float = 0.05  # ratio
    slip: float = 0.03  # ratio
    turn_scale: float = 0.1  # ratio
    sideslip: float = 0.02  # rad
    curvature: float = 0.02  # rad/m
    tilt: float = 0.05  # rad


@dataclass(frozen=True)
class InitialisationSettings:
    """Data needed for the first pose, and its uncertainty."""

    # Levelling
    levelling_s: float = 0.5  # duration of the inertial measurements whose mean is gravity
    # Wheels whose steps are smaller than both are at rest.
    max_rest_step_m: float = 1e-3
    max_rest_turn_rad: float = 1e-3
    rest_speed_variance: float = 1e-4  # m2/s2
    rest_gyro_ratio: float = 0.1  # sigma of a gyroscope bias measured at rest over the prior sigma
    # Heading by a path
    min_path_m: float = 3.0  # extent of the positions
    max_heading_sigma_rad: float = 0.2
    max_refits: int = 10  # each after removal of outliers
    outlier_sigmas: float = 3.0  # or the median residual, if that is larger
    heading_std: float = 0.5  # rad; larger than that of the fit, because the filter uses its positions again
    # Start without positions: its pose defines the origin and the heading of the frame.
    local_position_std_m: float = 1e-3
    local_heading_std_rad: float = 1e-3
    extra_position_std_m: float = 1.0  # added to the sigma of the first position
    receiver_attitude_std: float = 0.02  # rad, of an attitude by a receiver
    # IMU and positions alone
    alignment_history_s: float = 20.0
    retry_ns: int = NS // 2  # between two attempts
    min_gyro_bias_std: float = 5e-3  # rad/s, of gyroscopes that only positions correct
    # Velocity
    velocity_std: float = 1.0  # m/s, of the first wheel step, or of zero without any measurement
    velocity_positions_s: float = 1.0  # duration of the positions from which the velocity is computed
    max_braking_m_s2: float = 2.0  # during these positions


INITIALISATION = InitialisationSettings()


@dataclass(frozen=True, eq=False)
class InitialPose:
    """First pose and its standard deviations."""

    t_ns: int
    pose: Floats  # (4, 4), T_map_body
    position_std: float  # m
    heading_std: float  # rad
    tilt_std: float  # rad
    alignment: HeadingAlignment | None = None  # with an IMU and positions alone


def level(inertial: Sequence[ImuSample]) -> Floats:
    """Return the rotation R_level_body (3, 3), without heading, by gravity."""
    x, y, z = np.mean([each.force for each in inertial], axis=0)
    roll, pitch = np.arctan2(y, z), np.arctan2(-x, np.hypot(y, z))
    return rotations.matrix_from_euler("rpy", [roll, pitch, 0.0])


def integrate_steps(steps: Sequence[OdometryStep]) -> tuple[Ints, Floats]:
    """Return times (n,) and poses (n, 4, 4) by dead reckoning; the body is stationary in gaps."""
    times, poses = [steps[0].start_ns], [np.eye(4)]
    for step in steps:
        times.append(step.t_ns)
        poses.append(poses[-1] @ step.transform)
    return np.array(times, np.int64), np.stack(poses)


def align_path(
    steps: Sequence[OdometryStep], positions: Sequence[MeasuredPosition], R_level_body: Floats
) -> tuple[int, Floats] | None:
    """Return the start time and T_map_body (4, 4) of a path aligned with positions; None if it is too short.

    `R_level_body` (3, 3) is the rotation at the start.
    """
    settings = INITIALISATION
    if not steps or len(positions) < 2:
        return None
    t_ns, poses = integrate_steps(steps)
    used = [each for each in positions if t_ns[0] <= each.t_ns <= t_ns[-1]]
    if len(used) < 2 or _extent(np.stack([each.position for each in used])) < settings.min_path_m:
        return None
    levelled = se3.from_matrix(R_level_body, np.zeros(3)) @ poses
    antenna_paths = np.stack([se3.apply(levelled, each.lever_arm) for each in used])
    antenna = np.stack(
        [
            interpolation.interpolate_columns(t_ns, path, np.array([each.t_ns]))[0]
            for path, each in zip(antenna_paths, used, strict=True)
        ]
    )
    measured = np.stack([each.position for each in used])
    std = float(np.median([each.std[:2].max() for each in used]))
    inliers = np.ones(len(used), np.bool_)
    for _ in range(settings.max_refits):
        fit = align.yaw(antenna[inliers], measured[inliers])
        residual = np.linalg.norm((measured - antenna @ fit.rotation.T - fit.translation)[:, :2], axis=1)
        if _heading_std(antenna[inliers], residual[inliers], std) <= settings.max_heading_sigma_rad:
            return int(t_ns[0]), se3.from_matrix(fit.rotation, fit.translation) @ levelled[0]
        inliers = residual <= max(settings.outlier_sigmas * std, float(np.median(residual)))
        if np.count_nonzero(inliers) < 2 or _extent(measured[inliers]) < settings.min_path_m:
            return None
    return None


def _heading_std(antenna: Floats, residual: Floats, std: float) -> float:
    """Return the sigma (rad) of the heading of a path (n, 3) that was fitted to n positions.

    Their noise is the stated one (m), or that of the residuals (n,), m, if it is larger.
    """
    noise = float(np.sqrt(np.sum(residual**2) / max(2 * len(residual) - 3, 1)))
    extent = np.sqrt(np.sum((antenna[:, :2] - antenna[:, :2].mean(axis=0)) ** 2))
    return max(std, noise) / max(float(extent), 1e-9)


def _extent(positions: Floats) -> float:
    return float(np.linalg.norm(positions[:, :2] - positions[0, :2], axis=1).max())


def find_initial_pose(events: Sequence[Event], priors: Priors, *, by_positions: bool) -> InitialPose | None:
    """Return the first pose by the measurements until now; None if it is not observable yet.

    `by_positions`: in the frame of the positions, else at the origin with heading 0.
    """
    settings = INITIALISATION
    inertial = [each for each in events if isinstance(each, ImuSample)]
    duration = (events[-1].t_ns - events[0].t_ns) / NS if events else 0.0
    if duration < settings.levelling_s:
        return None
    first = [each for each in inertial if each.t_ns <= events[0].t_ns + settings.levelling_s * NS]
    R_level_body, tilt_std = level(first) if first else np.eye(3), priors.tilt
    if not by_positions:
        position_std, heading_std = settings.local_position_std_m, settings.local_heading_std_rad
        pose = se3.from_matrix(R_level_body, np.zeros(3))
        return InitialPose(events[0].t_ns, pose, position_std, heading_std, tilt_std)
    positions = [each for each in events if isinstance(each, MeasuredPosition)]
    with_attitude = next((each for each in positions if each.attitude is not None), None)
    if with_attitude is not None and with_attitude.attitude is not None:
        R = rotations.matrix_from_quaternion(with_attitude.attitude)
        pose = se3.from_matrix(R, with_attitude.position - R @ with_attitude.lever_arm)
        attitude_std = settings.receiver_attitude_std
        position_std = float(with_attitude.std.max())
        return InitialPose(with_attitude.t_ns, pose, position_std, attitude_std, attitude_std)
    found = align_path(_steps_of_one_sensor(events), positions, R_level_body)
    if found is None:
        return None
    position_std = settings.extra_position_std_m + float(positions[0].std.max())
    return InitialPose(found[0], found[1], position_std, settings.heading_std, tilt_std)


def find_inertial_pose(
    events: Sequence[Event], priors: Priors, gravity: float, *, forward_is_known: bool
) -> InitialPose | None:
    """Return the first pose of a body with an IMU and positions alone; None if it is not observable yet."""
    settings = INITIALISATION
    inertial = [each for each in events if isinstance(each, ImuSample)]
    positions = [each for each in events if isinstance(each, MeasuredPosition)]
    if not inertial or not positions:
        return None
    levelling_end_ns = inertial[0].t_ns + settings.levelling_s * NS
    R_level_body = level([each for each in inertial if each.t_ns <= levelling_end_ns])
    with_attitude = next((each for each in positions if each.attitude is not None), None)
    if with_attitude is not None:
        knows_speed = positions[-1].t_ns - with_attitude.t_ns >= settings.levelling_s * NS
        return find_initial_pose(events, priors, by_positions=True) if knows_speed else None
    found = align_by_acceleration(
        inertial, positions, R_level_body, gravity, forward_is_known=forward_is_known
    )
    if found is None:
        return None
    position_std = settings.extra_position_std_m + float(positions[0].std[:2].max())
    return InitialPose(found.t_ns, found.pose, position_std, settings.heading_std, priors.tilt, found)


def recent_events(events: Sequence[Event]) -> list[Event]:
    """Return the events of the alignment's history, from the last gap of the IMU on."""
    times = np.array([each.t_ns for each in events if isinstance(each, ImuSample)], np.int64)
    if not len(times):
        return list(events)
    gaps = np.flatnonzero(np.diff(times) > MAX_IMU_GAP_NS)
    after_gap_ns = int(times[gaps[-1] + 1]) if len(gaps) else 0
    start_ns = max(after_gap_ns, int(times[-1] - INITIALISATION.alignment_history_s * NS))
    return [each for each in events if each.t_ns >= start_ns]


def _steps_of_one_sensor(events: Sequence[Event]) -> list[OdometryStep]:
    """Return the steps of wheels or odometry, else of `motion`."""
    steps = [each for each in events if isinstance(each, OdometryStep)]
    return [each for each in steps if each.sensor != "motion"] or steps


def make_state(initial: InitialPose, events: Sequence[Event], priors: Priors) -> ekf.FilterState:
    """Return the initial state. Gyroscope biases are measured if the wheels are stationary."""
    settings = INITIALISATION
    rest_rate = _mean_rate_at_rest(events)
    variances = np.zeros(ekf.STATE_SIZE)
    variances[ekf.POSITION] = initial.position_std**2
    velocity, velocity_std = _initial_velocity(initial, events)
    variances[ekf.VELOCITY] = velocity_std**2 if rest_rate is None else settings.rest_speed_variance
    gyro_std = priors.gyro_bias if rest_rate is None else settings.rest_gyro_ratio * priors.gyro_bias
    if initial.alignment is not None:
        gyro_std = max(gyro_std, settings.min_gyro_bias_std)
    variances[ekf.GYRO_BIAS], variances[ekf.ACCEL_BIAS] = gyro_std**2, priors.accel_bias**2
    variances[ekf.ErrorIndex.SCALE : ekf.ErrorIndex.CURVATURE + 1] = (
        np.array([priors.scale, priors.slip, priors.turn_scale, priors.sideslip, priors.curvature]) ** 2
    )
    P = np.diag(variances)
    P[ekf.ATTITUDE, ekf.ATTITUDE] = np.diag([initial.tilt_std, initial.tilt_std, initial.heading_std]) ** 2
    bias = np.zeros(3) if rest_rate is None else rest_rate
    if initial.alignment is not None:
        velocity, bias = initial.alignment.velocity, initial.alignment.gyro_bias
    R, p = initial.pose[:3, :3].copy(), initial.pose[:3, 3].copy()
    return ekf.FilterState(initial.t_ns, p, R, velocity, P, bias)


def _mean_rate_at_rest(events: Sequence[Event]) -> Floats | None:
    """Return the mean angular velocity (3,) during levelling if the wheels were stationary, else None."""
    settings = INITIALISATION
    end_ns = events[0].t_ns + settings.levelling_s * NS
    steps = [each for each in _steps_of_one_sensor(events) if each.t_ns <= end_ns]
    rates = [each.rate for each in events if isinstance(each, ImuSample) and each.t_ns <= end_ns]
    if len(steps) < 3 or not rates or any(_moves(each.transform) for each in steps):
        return None
    return np.mean(rates, axis=0)


def _moves(transform: Floats) -> bool:
    turn = float(np.linalg.norm(rotations.rotation_vector_from_matrix(transform[:3, :3])))
    distance = float(np.linalg.norm(transform[:3, 3]))
    return distance > INITIALISATION.max_rest_step_m or turn > INITIALISATION.max_rest_turn_rad


def _initial_velocity(initial: InitialPose, events: Sequence[Event]) -> tuple[Floats, float]:
    """Return the velocity (3,) in the map at the start, and its sigma (m/s).

    A log may start during motion: the velocity is that of the first step, without steps that of the
    positions, if the body does not brake between them.
    """
    settings = INITIALISATION
    step = next((each for each in _steps_of_one_sensor(events) if each.t_ns > initial.t_ns), None)
    if step is not None:
        return initial.pose[:3, :3] @ step.transform[:3, 3] / step.seconds, settings.velocity_std
    positions = [each for each in events if isinstance(each, MeasuredPosition) and each.t_ns >= initial.t_ns]
    end_ns = initial.t_ns + settings.velocity_positions_s * NS
    early = [each for each in positions if each.t_ns <= end_ns]
    last = (early if len(early) > 1 else positions)[-1] if positions else None
    if last is None or last.t_ns == positions[0].t_ns:
        return np.zeros(3), settings.velocity_std
    seconds = (last.t_ns - positions[0].t_ns) / NS
    noise = np.hypot(positions[0].std.max(), last.std.max()) / seconds
    velocity = (last.position - positions[0].position) / seconds
    return velocity, float(np.hypot(noise, settings.max_braking_m_s2 * seconds))


class Initialiser:
    """Collects measurements until the first pose is observable.

    With an IMU and positions alone the first heading may be the course over ground. Then measurements are
    collected further, until accelerations make the heading observable.
    """

    def __init__(self, inputs: FusionInputs, priors: Priors, gravity: float, max_wait_s: float) -> None:
        self.inputs, self.priors, self.gravity = inputs, priors, gravity
        self.max_wait_ns = round(max_wait_s * NS)
        self.initial: InitialPose | None = None
        self.by_positions = False  # whether the first pose is in the frame of the positions
        self.status = ""  # reason why there is no pose yet
        self.events: list[Event] = []
        self._last_attempt_ns = -(2**62)

    @property
    def can_improve(self) -> bool:
        """Whether the heading is only the course over ground."""
        return self.initial is not None and (
            self.initial.alignment is not None and self.initial.alignment.by_course
        )

    def start(self, events: Sequence[Event]) -> tuple[ekf.FilterState, list[Event]] | None:
        """Add events; return the initial state and the events after it, None if it is not observable yet."""
        self.events.extend(events)
        if not self.events:
            self.status = "no samples yet"
            return None
        self.events = [
            self.inputs.with_estimated_noise(each) if isinstance(each, MeasuredPosition) else each
            for each in self.events
        ]
        if self.inputs.imu_only:
            self.status = "waiting for accelerations, or a path, that make the heading observable"
            initial = self._find_inertial_pose()
            return None if initial is None else self._start_at(initial, by_positions=True)
        by_positions = any(isinstance(each, MeasuredPosition) for each in self.events)
        if not by_positions and self.events[-1].t_ns - self.events[0].t_ns < self.max_wait_ns:
            self.status = "waiting for a first position"
            return None
        initial = find_initial_pose(self.events, self.priors, by_positions=by_positions)
        if initial is None:
            self.status = "heading not observable yet"
            return None
        return self._start_at(initial, by_positions=by_positions)

    def improve(self, events: Sequence[Event]) -> tuple[ekf.FilterState, list[Event]] | None:
        """Add events; return a new initial state if accelerations make the heading observable."""
        self.events.extend(events)
        initial = self._find_inertial_pose() if self.events else None
        if initial is None or initial.alignment is None or initial.alignment.by_course:
            return None
        return self._start_at(initial, by_positions=True)

    def _find_inertial_pose(self) -> InitialPose | None:
        now = self.events[-1].t_ns
        if now - self._last_attempt_ns < INITIALISATION.retry_ns:
            return None
        self.events, self._last_attempt_ns = recent_events(self.events), now
        known = not self.inputs.imu.assumes_mount
        return find_inertial_pose(self.events, self.priors, self.gravity, forward_is_known=known)

    def _start_at(self, initial: InitialPose, *, by_positions: bool) -> tuple[ekf.FilterState, list[Event]]:
        self.initial, self.by_positions = initial, by_positions
        state = make_state(initial, self.events, self.priors)
        remaining, self.events = [each for each in self.events if each.t_ns >= state.t_ns], []
        return state, remaining
