"""Factor graph of a sequence of keyframes, and its solution.

Variables of keyframe i: pose `x`, calibration of the wheels `c`; with an IMU velocity `v` and biases `b`; and
if variance components of an odometry in six degrees of freedom are estimated, its pose `y` and, on its own
map, its map error `s`. Every factor joins neighbours at most, so that the variables of one keyframe separate
the past from the future.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.errors import TransectError

from .._gtsam import gtsam
from .imu_preintegration import ImuNoise, add_imu_factors
from .observations import Observations, SuspectInterval
from .odometry_noise import (
    CAUCHY_SCALE,
    MAP_ERROR_SIGMAS,
    PoseDeviations,
    map_drift_ratio,
    map_error_decay,
)
from .odometry_paths import CALIBRATION_SIZE, PlanarPath, PosePath
from .position_factors import KeyframePositions, assign_to_keyframes, common_variance
from .wheel_factors import WheelFactors, WheelNoise, add_wheel_factors

ROTATION_FIRST = np.r_[3:6, 0:3]
"""Permutation from translation, rotation to GTSAM's rotation, translation."""

# Names of variance components, row by row of the constraints that have them; "" is not estimated. Suspect
# intervals have components of their own, by the same kinds of errors.
WHEEL_ERROR_KINDS = ("tilt", "tilt", "turn", "along", "across", "up")
MOTION_ERROR_KINDS = ("rotation",) * 3 + ("translation",) * 3
POSE_ERROR_KINDS = ("attitude",) * 3 + ("position",) * 3
CALIBRATION_COMPONENTS = tuple(
    f"wheels: change of {each}" for each in ("length", "turn scale", "curvature", "sideslip")
)
WHEEL_COMPONENTS = ("", "", "wheels: turn", "wheels: along", "wheels: across", "")
MOTION_COMPONENTS = ("motion: rotation",) * 3 + ("motion: translation",) * 3
POSE_COMPONENTS = ("motion: attitude",) * 3 + ("motion: position",) * 3
MAP_COMPONENTS = ("motion: map error of attitude",) * 3 + ("motion: map error of position",) * 3
MAP_MOTION_COMPONENTS = MOTION_COMPONENTS[:3] + MAP_COMPONENTS[3:]
"""Components of a step by an odometry on its own map."""
SUSPECT_PREFIX = "suspect"
SUSPECT_VARIANCE_FACTOR = 100.0
"""Initial factor on the variances of suspect steps."""
MIN_POSE_VARIANCES = np.repeat([1e-10, 1e-8], 3)
"""rad2 and m2: of the poses of an odometry without covariances."""


class ConvergenceError(TransectError):
    """The solver did not converge: measurements contradict each other."""


@dataclass(frozen=True)
class SmootherNoise:
    """Noise model of all factors."""

    wheels: WheelNoise = field(default_factory=WheelNoise)
    imu: ImuNoise = field(default_factory=ImuNoise)
    # Sigmas of an odometry in six degrees of freedom without covariances: m after a metre, rad after a radian
    # or ten metres.
    motion: tuple[float, float] = (0.02, 0.02)
    tilt: float = 0.05  # rad, of roll and pitch if nothing measures them
    huber_sigmas: float = 2.0  # of the robust cost of positions
    start_sigma: float = 1e-3  # m and rad, of the start of a body without positions
    start_speed: float = 100.0  # m/s, sigma of the first velocity if only positions observe it
    has_components: bool = False  # whether variance components are estimated: poses of `motion` deviate, too
    map_radius: float = 0.0  # m, of the map of such an odometry, in which its error is bounded; 0: no map
    factors: Mapping[str, float] = field(default_factory=dict[str, float])  # on variances, by component

    def sigma_factors(self, names: Sequence[str]) -> Floats:
        """Return factors (n,) on the sigmas of components."""
        initial = [SUSPECT_VARIANCE_FACTOR if name.startswith(SUSPECT_PREFIX) else 1.0 for name in names]
        return np.sqrt([self.factors.get(name, each) for name, each in zip(names, initial, strict=True)])


def make_noise(
    wheel_noise: float, start_slip: float, tilt: float, gravity: float, map_radius: float = 0.0
) -> SmootherNoise:
    """Return the noise model by the parameters of a node."""
    wheels = WheelNoise(start_slip=start_slip).scale_by(wheel_noise)
    return SmootherNoise(wheels=wheels, imu=ImuNoise(gravity=gravity), tilt=tilt, map_radius=map_radius)


@dataclass(eq=False)
class KeyframeGraph:
    """Keyframes, and the factors of all measurements between them."""

    times: Ints  # (n,), of the keyframes, ns
    first: int  # number of the first keyframe
    path: PlanarPath | PosePath  # best dead reckoning
    graph: Any  # NonlinearFactorGraph of all but wheels and pose deviations
    wheels: WheelFactors | None
    positions: KeyframePositions
    inertial: bool  # whether there are velocities and biases
    deviations: PoseDeviations | None = None  # of an odometry's poses (`y`) from the body

    def keys(self, i: int) -> list[int]:
        """Return the variables of keyframe `i` of the sequence."""
        names = "x" + "c" * (self.wheels is not None) + "vb" * self.inertial
        return [gtsam().symbol(name, self.first + i) for name in names]

    @property
    def has_map(self) -> bool:
        """Whether an odometry has an own map: its drift is a part of its map error then."""
        return self.deviations is not None and self.deviations.map_sigmas is not None

    def cost(self, values: Any) -> float:
        """Return half the robust sum of squares."""
        wheels = self.wheels.cost(*self._wheel_values(values)) if self.wheels else 0.0
        deviations = self.deviations.cost(*self._deviation_values(values)) if self.deviations else 0.0
        return float(self.graph.error(values)) + wheels + deviations

    def linearise(self, values: Any) -> Any:
        """Return the graph, linearised at some values."""
        linear = self.graph.linearize(values)
        if self.wheels:
            factors = self.wheels.linearise(*self._wheel_values(values))
            add_wheel_factors(linear, factors, self.first, gtsam())
        if self.deviations:
            for factor in self.deviations.linearise(*self._deviation_values(values), gtsam()):
                linear.push_back(factor)
        return linear

    def _wheel_values(self, values: Any) -> tuple[Floats, Floats]:
        calibration = gtsam().utilities.extractVectors(values, "c").reshape(-1, CALIBRATION_SIZE)
        return poses_of(values), calibration

    def _deviation_values(self, values: Any) -> tuple[Floats, Floats, Floats]:
        assert self.deviations is not None
        bodies, poses = poses_of(values)[self.deviations.keyframes], poses_of(values, "y")
        if self.deviations.map_sigmas is None:
            return bodies, poses, np.zeros((len(poses), 6))
        return bodies, poses, gtsam().utilities.extractVectors(values, "s").reshape(-1, 6)

    def values_from_poses(self, poses: Floats) -> Any:
        """Return initial values of all variables by poses (n, 4, 4) of the keyframes."""
        g = gtsam()
        values = g.Values()
        velocities = np.gradient(poses[:, :3, 3], (self.times - self.times[0]) * 1e-9, axis=0)
        for i, pose in enumerate(poses):
            values.insert(g.symbol("x", self.first + i), g.Pose3(pose))
            if self.deviations and i in self.deviations.keyframes:
                values.insert(g.symbol("y", self.first + i), g.Pose3(pose))
                if self.deviations.map_sigmas is not None:
                    values.insert(g.symbol("s", self.first + i), np.zeros(6))
            if self.wheels:
                values.insert(g.symbol("c", self.first + i), np.zeros(CALIBRATION_SIZE))
            if self.inertial:
                values.insert(g.symbol("v", self.first + i), velocities[i])
                values.insert(g.symbol("b", self.first + i), g.imuBias.ConstantBias())
        return values


def poses_of(values: Any, name: str = "x") -> Floats:
    """Return the poses (n, 4, 4) of all keyframes in order: of the body, or by an odometry (`y`)."""
    g = gtsam()
    # Rows are in the order of the variables' names: all x, then all y.
    count = sum(g.symbolChr(key) == ord("x") for key in values.keys())  # noqa: SIM118
    rows = g.utilities.extractPose3(values)[slice(count) if name == "x" else slice(count, None)]
    poses = np.tile(np.eye(4), (len(rows), 1, 1))
    poses[:, :3, :3] = rows[:, :9].reshape(-1, 3, 3)
    poses[:, :3, 3] = rows[:, 9:]
    return poses


def build_graph(
    observations: Observations,
    times: Ints,
    noise: SmootherNoise,
    first: int = 0,
    prior: Sequence[Any] | None = None,
    *,
    continues: bool = False,
) -> KeyframeGraph:
    """Return the graph of keyframes at `times` (n,).

    Parameters
    ----------
    observations : Observations
        Everything measured between the first keyframe and the last.
    first : int
        Number of the first keyframe.
    prior : sequence of factors, optional
        Information on the first keyframe from before; by default the prior of a start.
    continues : bool
        Whether another graph starts at the last keyframe, and has the factors of that keyframe alone.
    """
    graph = gtsam().NonlinearFactorGraph()
    wheels, motion = paths_of(observations, noise)
    path = best_path(observations, noise)
    wheel_factors: WheelFactors | None = None
    if wheels is not None:
        wheel_factors = _add_wheels(graph, wheels, times, noise, first, observations.suspect)
    deviations: PoseDeviations | None = None
    if motion is not None and noise.has_components:
        deviations = _add_deviating_motion(graph, motion, times, noise, observations.suspect)
    elif motion is not None:
        _add_motion(graph, motion, times, first, motion_only=wheel_factors is None)
    inertial = bool(observations.inertial)
    if inertial:
        imu_only = wheels is None and motion is None
        add_imu_factors(graph, observations.inertial, times, noise.imu, first, imu_only=imu_only)
    if not inertial and motion is None:
        _add_level(graph, len(times) - continues, noise.tilt, first)
    along = wheel_factors.sigmas[:, 3] if wheel_factors is not None and motion is None else None
    # With an IMU alone the relative positions matter: common errors are added afterwards.
    widen = not observations.filter_path
    positions = assign_to_keyframes(observations.positions, times, path, along, widen=widen)
    _add_positions(graph, positions, noise.huber_sigmas, first)
    keyframes = KeyframeGraph(times, first, path, graph, wheel_factors, positions, inertial, deviations)
    for factor in prior if prior is not None else _prior_factors(keyframes, noise):
        graph.push_back(factor)
    return keyframes


def paths_of(observations: Observations, noise: SmootherNoise) -> tuple[PlanarPath | None, PosePath | None]:
    """Return the paths by wheels, and in six degrees of freedom, if there are any."""
    wheels = PlanarPath.from_steps(observations.wheels) if observations.wheels else None
    return wheels, PosePath.from_steps(observations.motion, *noise.motion) if observations.motion else None


def best_path(observations: Observations, noise: SmootherNoise) -> PlanarPath | PosePath:
    """Return the path between keyframes by the best dead reckoning."""
    wheels, motion = paths_of(observations, noise)
    if motion is None and wheels is None and observations.filter_path:
        return PosePath.from_steps(observations.filter_path, *noise.motion)
    path = (wheels or motion) if noise.has_components else (motion or wheels)
    if path is None:
        raise TransectError("there is no dead reckoning to smooth")
    return path


def _add_wheels(
    graph: Any,
    path: PlanarPath,
    times: Ints,
    noise: SmootherNoise,
    first: int,
    suspect: Sequence[SuspectInterval],
) -> WheelFactors:
    """Add random walks of the calibration; the wheels themselves are linearised by `WheelFactors`."""
    g, segments = gtsam(), path.between(times[:-1], times[1:])
    walks = noise.wheels.walk_sigmas(segments) * noise.sigma_factors(CALIBRATION_COMPONENTS)
    for i, sigmas in enumerate(walks, start=first):
        model = g.noiseModel.Diagonal.Sigmas(sigmas)
        keys = g.symbol("c", i), g.symbol("c", i + 1)
        graph.push_back(g.BetweenFactorVector(*keys, np.zeros(CALIBRATION_SIZE), model))
    sigmas = noise.wheels.sigmas(segments) * noise.sigma_factors(WHEEL_COMPONENTS)
    for i, name in enumerate(suspect_names(suspect, ("wheels", "odometry"), times)):
        if name:
            sigmas[i] *= noise.sigma_factors(component_names(name, WHEEL_ERROR_KINDS))
    return WheelFactors(segments, sigmas, noise.wheels.huber_sigmas)


def suspect_names(suspect: Sequence[SuspectInterval], sensors: Collection[str], times: Ints) -> list[str]:
    """Return the name of the suspect window, or "", of each segment (n - 1) between keyframes (n,)."""
    names = [""] * (len(times) - 1)
    for window in (each for interval in suspect if interval.sensor in sensors for each in interval.split()):
        for i in np.flatnonzero((times[:-1] < window.t1_ns) & (times[1:] > window.t0_ns)):
            names[i] = f"{SUSPECT_PREFIX} {window.sensor} {window.t0_ns}"
    return names


def keyframe_suspect_names(names: Sequence[str]) -> list[str]:
    """Return the name of the suspect window, or "", of n keyframes by those of n - 1 segments."""
    return [before or after for before, after in zip(["", *names], [*names, ""], strict=True)]


def component_names(source: str, kinds: Sequence[str]) -> tuple[str, ...]:
    """Return the names of components of a source, or of a suspect window, by kinds of errors."""
    return tuple(f"{source}: {kind}" if kind else "" for kind in kinds)


def _add_deviating_motion(
    graph: Any, path: PosePath, times: Ints, noise: SmootherNoise, suspect: Sequence[SuspectInterval]
) -> PoseDeviations:
    """Add the drift between the odometry's own poses; return their deviations from the body."""
    g, has_map = gtsam(), noise.map_radius > 0
    transforms, covariances, known = path.between(times[:-1], times[1:])
    distance = np.linalg.norm(transforms[:, :3, 3], axis=1)
    factors = noise.sigma_factors(MAP_MOTION_COMPONENTS if has_map else MOTION_COMPONENTS)
    if has_map:
        covariances[:, :3] = covariances[:, 3:, :3] = 0.0
        drift_ratio = map_drift_ratio(distance, noise.map_radius)
        covariances[:, range(3), range(3)] = drift_ratio[:, None] * MAP_ERROR_SIGMAS[3:] ** 2
    names = suspect_names(suspect, ("motion",), times)
    for i in np.flatnonzero(known):
        suspect_factors = (
            noise.sigma_factors(component_names(names[i], MOTION_ERROR_KINDS))
            if names[i] and not has_map
            else 1.0
        )
        W = whitening_matrix(covariances[i], *(factors * suspect_factors)[[5, 0]])
        model = g.noiseModel.Gaussian.SqrtInformation(W, False)
        if names[i] and has_map:  # it may leave the map at once, but its drift is not larger
            model = g.noiseModel.Robust.Create(g.noiseModel.mEstimator.Cauchy.Create(CAUCHY_SCALE), model)
        keys = g.symbol("y", i), g.symbol("y", i + 1)
        graph.push_back(g.BetweenFactorPose3(*keys, g.Pose3(transforms[i]), model))
    keyframes = np.unique(np.concatenate([np.flatnonzero(known), np.flatnonzero(known) + 1]))
    step_variances = np.diagonal(np.diff(path.covariance_sums, axis=0), axis1=1, axis2=2)
    variances = np.median(step_variances, axis=0)[ROTATION_FIRST] / 2
    row = np.sqrt(np.maximum(variances, MIN_POSE_VARIANCES)) * noise.sigma_factors(POSE_COMPONENTS)
    sigmas = np.tile(row, (len(keyframes), 1))
    by_keyframe = keyframe_suspect_names(names)
    for k, name in enumerate(by_keyframe[i] for i in keyframes):
        if name and has_map:
            sigmas[k] *= noise.sigma_factors(component_names(name, POSE_ERROR_KINDS))
    map_sigmas = MAP_ERROR_SIGMAS * noise.sigma_factors(MAP_COMPONENTS) if has_map else None
    decay = np.append(0.0, known * map_error_decay(distance))[keyframes]
    return PoseDeviations(keyframes, sigmas, map_sigmas, decay)


def whitening_matrix(covariance: Floats, translation: float, rotation: float) -> Floats:
    """Return a root (6, 6) of the inverse of a covariance (6, 6) with factors on sigmas, rotation first.

    The factor on translation applies to the part that rotation does not explain: cameras confuse a turn with
    a lateral translation by an amount that depends on the distance of the scene, not on its visibility.
    """
    rotation_block, cross = covariance[3:, 3:] + 1e-12 * np.eye(3), covariance[:3, 3:]
    slope = np.linalg.solve(rotation_block, cross.T).T
    conditional = covariance[:3, :3] - slope @ cross.T + 1e-12 * np.eye(3)
    W_rotation = np.linalg.inv(rotation * np.linalg.cholesky(rotation_block))
    W_translation = np.linalg.inv(translation * np.linalg.cholesky((conditional + conditional.T) / 2))
    return np.block([[W_rotation, np.zeros((3, 3))], [-W_translation @ slope, W_translation]]).astype(
        np.float64
    )


def _add_motion(graph: Any, path: PosePath, times: Ints, first: int, *, motion_only: bool) -> None:
    g = gtsam()
    transforms, covariances, known = path.between(times[:-1], times[1:])
    # Without another sensor a gap is bridged by a sigma of a metre and a radian.
    gap_covariance = np.eye(6)
    for i in range(len(transforms)):
        if not known[i] and not motion_only:
            continue
        covariance = (covariances[i] if known[i] else gap_covariance)[np.ix_(ROTATION_FIRST, ROTATION_FIRST)]
        model = g.noiseModel.Gaussian.Covariance(covariance + 1e-10 * np.eye(6))
        keys = g.symbol("x", first + i), g.symbol("x", first + i + 1)
        graph.push_back(g.BetweenFactorPose3(*keys, g.Pose3(transforms[i]), model))


def _add_level(graph: Any, count: int, tilt: float, first: int) -> None:
    g = gtsam()
    up, model = g.Unit3(np.array([0.0, 0.0, 1.0])), g.noiseModel.Isotropic.Sigma(2, tilt)
    for i in range(first, first + count):
        graph.push_back(g.AttitudeFactorPose3(g.symbol("x", i), up, model, up))


def _add_positions(graph: Any, positions: KeyframePositions, huber_sigmas: float, first: int) -> None:
    g = gtsam()
    huber = g.noiseModel.mEstimator.Huber.Create(huber_sigmas)
    rows = zip(positions.keyframe, positions.lever_arm, positions.position, positions.sigma, strict=True)
    for i, lever_arm, position, sigma in rows:
        model = g.noiseModel.Robust.Create(huber, g.noiseModel.Diagonal.Sigmas(sigma))
        graph.push_back(g.GPSFactorArm(g.symbol("x", first + int(i)), position, lever_arm, model))


def _prior_factors(keyframes: KeyframeGraph, noise: SmootherNoise) -> list[Any]:
    """Return prior factors of the first keyframe."""
    g, i = gtsam(), keyframes.first
    factors: list[Any] = []
    if keyframes.wheels:
        model = g.noiseModel.Diagonal.Sigmas(np.array(noise.wheels.calibration_sigmas))
        factors.append(g.PriorFactorVector(g.symbol("c", i), np.zeros(CALIBRATION_SIZE), model))
    if keyframes.inertial:
        imu_only = not keyframes.wheels and isinstance(keyframes.path, PosePath)
        factors += noise.imu.prior_factors(i, noise.start_speed if imu_only else None)
    if not len(keyframes.positions):
        sigmas = noise.start_sigma * np.ones(6)
        if keyframes.inertial:
            sigmas[:2] = 1.0  # gravity determines roll and pitch
        model = g.noiseModel.Diagonal.Sigmas(sigmas)
        factors.append(g.PriorFactorPose3(g.symbol("x", i), g.Pose3(), model))
    return factors


# Solution


@dataclass(frozen=True)
class SolverSettings:
    """Gauss-Newton with step halving."""

    max_steps: int = 100
    max_halvings: int = 8
    tolerance: float = 1e-3  # decrease of the cost, half a sum of squared sigmas, at convergence


SOLVER = SolverSettings()


def solve(keyframes: KeyframeGraph, values: Any, settings: SolverSettings = SOLVER) -> Any:
    """Return the values of least cost, by Gauss-Newton; steps that increase the cost are halved."""
    cost = keyframes.cost(values)
    for _ in range(settings.max_steps):
        step = _solve_linear(keyframes.linearise(values))
        for _ in range(settings.max_halvings):
            candidate = values.retract(step)
            new_cost = keyframes.cost(candidate)
            if new_cost <= cost:
                break
            step = step.scale(0.5)
        else:
            return values
        values, decrease, cost = candidate, cost - new_cost, new_cost
        if decrease <= settings.tolerance:
            return values
    raise ConvergenceError(
        "the smoother did not converge",
        why=f"after {settings.max_steps} steps its cost still decreases, it is {cost:.4g}",
    )


def _solve_linear(linear: Any) -> Any:
    """Return the minimum of a linear graph.

    GTSAM's Cholesky fails if a variable is 2^12 times less certain than its neighbour, such as positions of
    metres and wheels of millimetres. QR does not.
    """
    try:
        return linear.optimize()
    except RuntimeError:
        try:
            return linear.optimize(gtsam().EliminateQR)
        except RuntimeError as error:
            why = "the measurements do not determine all of pose, velocity and biases"
            raise ConvergenceError("the smoother found no solution", why=why) from error


def eliminate(linear: Any, keys: Sequence[int]) -> Any:
    """Return the linear graph of the other variables after the elimination of some."""
    try:
        return linear.eliminatePartialSequential(keys)[1]
    except RuntimeError:  # as above
        return linear.eliminatePartialSequential(keys, gtsam().EliminateQR)[1]


def _marginals(linear: Any, values: Any) -> Any:
    try:
        return gtsam().Marginals(linear, values)
    except RuntimeError:  # as above
        return linear.eliminateMultifrontal(function=gtsam().EliminateQR)


def marginal_covariances(
    keyframes: KeyframeGraph, values: Any, indices: Sequence[int] | None = None
) -> Floats:
    """Return covariances (n, 6, 6) of the poses: translation, then rotation vector, in the poses' frame.

    `indices` of keyframes in the sequence; all by default.
    """
    g = gtsam()
    chosen = range(len(keyframes.times)) if indices is None else indices
    if not chosen:
        return np.zeros((0, 6, 6))
    marginals = _marginals(keyframes.linearise(values), values)
    keys = [g.symbol("x", keyframes.first + i) for i in chosen]
    covariances = np.array([marginals.marginalCovariance(key) for key in keys]).reshape(-1, 6, 6)
    J = np.zeros_like(covariances)
    J[:, :3, 3:] = J[:, 3:, :3] = [values.atPose3(key).rotation().matrix() for key in keys]
    return J @ covariances @ np.swapaxes(J, -1, -2)


def add_common_variance(covariances: Floats, observations: Observations) -> Floats:
    """Return covariances (n, 6, 6) with the common error of all fixes that their sigmas lack."""
    result = covariances.copy()
    imu_only = bool(observations.filter_path)
    result[:, range(3), range(3)] += common_variance(observations.positions, imu_only=imu_only)
    return result


def copy_value(values: Any, key: int, target: Any, new_key: int | None = None) -> None:
    """Insert one of the values into others, under the same or another key."""
    g = gtsam()
    get = {"x": values.atPose3, "b": values.atConstantBias}.get(chr(g.symbolChr(key)), values.atVector)
    target.insert(key if new_key is None else new_key, get(key))
