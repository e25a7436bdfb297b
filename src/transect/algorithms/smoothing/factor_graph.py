"""The factor graph of a stretch of keyframes, and its solution.

Variables of keyframe i: pose `x`, calibration of the wheels `c`; with an IMU velocity `v` and biases `b`; and
where an odometry in six degrees of freedom is weighed, `y`: where that has the body, and `s`: how far that is
off on a map of its own. Every factor joins neighbours at most, so that the variables of one keyframe part
what was before from what comes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.errors import TransectError

from .._gtsam import gtsam
from .imu_preintegration import InertialNoise, add_inertial
from .observations import Doubt, Evidence
from .odometry_noise import TAILS, WANDER, Straying, hand_on, keep_wander
from .odometry_paths import CALIBRATION, PlanarPath, PosePath
from .position_factors import Hung, common_variance, hang
from .wheel_factors import WheelLinks, WheelNoise, add_linear

MAX_STEPS, MAX_HALVINGS, ENOUGH = 100, 8, 1e-3
"""Gauss-Newton: steps, halvings of one, and the gain below which it is done: in halves of squared sigmas."""
ANY_SPEED = 100.0
"""m/s: sigma of the first velocity where only places tell it."""
SWAPPED = np.r_[3:6, 0:3]
"""Rotation and translation change places: GTSAM has the rotation first."""
OF_WHEELS, OF_MOTION = ("tilt", "tilt", "turn", "along", "across", "up"), ("turn",) * 3 + ("way",) * 3
OF_POSE = ("attitude",) * 3 + ("place",) * 3
"""Kinds of errors, row by row of the constraints that have them."""
BY_CALIBRATION = tuple(f"wheels: change of {each}" for each in ("lengths", "turns", "curvature", "angle"))
BY_WHEELS = ("", "", "wheels: turn", "wheels: along", "wheels: across", "")
BY_MOTION = ("motion: turn",) * 3 + ("motion: way",) * 3
BY_POSE = ("motion: attitude",) * 3 + ("motion: place",) * 3
BY_WANDER = ("motion: wander of attitude",) * 3 + ("motion: wander of place",) * 3
ON_MAP = BY_MOTION[:3] + BY_WANDER[3:]
"""Their names while nothing is in doubt, those of a step by `motion` also on a map; what has no name is not
weighed."""
LEAST_STRAYING = np.repeat([1e-10, 1e-8], 3)
"""rad2 and m2: of the poses of an odometry that tells no error."""
DOUBTED = 100.0
"""Factor on the variances of what is in doubt, before it is known how far it agrees with the rest."""


class UnsettledError(TransectError):
    """Measurements that contradict each other so much that no motion fits them."""


@dataclass(frozen=True)
class SmootherNoise:
    """How wrong everything is.

    Attributes
    ----------
    wheels : WheelNoise
    inertial : InertialNoise
    motion : (2,) tuple
        Sigma of an odometry in six degrees of freedom that does not tell its own: m after a metre, rad after
        a radian or ten metres.
    tilt : float
        Sigma of roll and pitch of a body whose tilt nothing measures, rad.
    robust : float
        Positions that are off by more sigmas than this count less (Huber).
    start : float
        Sigma of where a body without positions says that it begins, m and rad.
    weighed : bool
        Whether poses of an odometry in six degrees of freedom stray, too, besides its drift along the way.
    reach : float
        m that the map reaches that such an odometry is laid on, and for which it wanders instead of drifting
        where it is weighed; 0 for one that is laid on none.
    factors : mapping of str to float
        On variances, by the name of an error, or of a window in doubt: see `weighing`.
    """

    wheels: WheelNoise = field(default_factory=WheelNoise)
    inertial: InertialNoise = field(default_factory=InertialNoise)
    motion: tuple[float, float] = (0.02, 0.02)
    tilt: float = 0.05
    robust: float = 2.0
    start: float = 1e-3
    weighed: bool = False
    reach: float = 0.0
    factors: Mapping[str, float] = field(default_factory=dict[str, float])

    def scales(self, names: Sequence[str]) -> Floats:
        """Return factors (n,) on sigmas by the names of errors; what is in doubt begins with `DOUBTED`."""
        told = [DOUBTED if name.startswith("doubted") else 1.0 for name in names]
        return np.sqrt([self.factors.get(name, each) for name, each in zip(names, told, strict=True)])


def noise_of(
    wheel_noise: float, unsteady: float, tilt: float, gravity: float, reach: float = 0.0
) -> SmootherNoise:
    """Return the noise that a node's parameters mean."""
    wheels = WheelNoise(unsteady=unsteady).times(wheel_noise)
    return SmootherNoise(wheels=wheels, inertial=InertialNoise(gravity=gravity), tilt=tilt, reach=reach)


@dataclass(eq=False)
class Stretch:
    """Keyframes, and everything that was measured of them.

    Attributes
    ----------
    times : (n,)
        Of the keyframes, ns.
    first : int
        Number of the first keyframe.
    path : PlanarPath or PosePath
        Dead reckoning, by the best that there is.
    graph : NonlinearFactorGraph
        All but the wheels.
    links : WheelLinks or None
    hung : Hung
        Positions.
    inertial : bool
        Whether there are velocities and biases.
    straying : Straying or None
        How an odometry strays from the body where it has it (`y`).
    """

    times: Ints
    first: int
    path: PlanarPath | PosePath
    graph: Any
    links: WheelLinks | None
    hung: Hung
    inertial: bool
    straying: Straying | None = None

    def keys(self, i: int) -> list[int]:
        """Return the variables of keyframe `i` of the stretch."""
        names = "x" + "c" * (self.links is not None) + "vb" * self.inertial
        return [gtsam().symbol(name, self.first + i) for name in names]

    @property
    def on_map(self) -> bool:
        """Whether an odometry is laid on its own map: its drift is a part of its wander then."""
        return self.straying is not None and self.straying.wander is not None

    def cost(self, values: Any) -> float:
        """Return what the solution makes small."""
        wheels = self.links.cost(*self._arrays(values)) if self.links else 0.0
        strays = self.straying.cost(*self._strays(values)) if self.straying else 0.0
        return float(self.graph.error(values)) + wheels + strays

    def linear(self, values: Any) -> Any:
        """Return the graph, linear near some values."""
        linear = self.graph.linearize(values)
        if self.links:
            add_linear(linear, self.links.linear(*self._arrays(values)), self.first, gtsam())
        if self.straying:
            for factor in self.straying.linear(*self._strays(values), gtsam()):
                linear.push_back(factor)
        return linear

    def _arrays(self, values: Any) -> tuple[Floats, Floats]:
        return poses_of(values), gtsam().utilities.extractVectors(values, "c").reshape(-1, CALIBRATION)

    def _strays(self, values: Any) -> tuple[Floats, Floats, Floats]:
        assert self.straying is not None
        bodies, poses = poses_of(values)[self.straying.seen], poses_of(values, "y")
        if self.straying.wander is None:
            return bodies, poses, np.zeros((len(poses), 6))
        return bodies, poses, gtsam().utilities.extractVectors(values, "s").reshape(-1, 6)


def poses_of(values: Any, name: str = "x") -> Floats:
    """Return the poses (n, 4, 4) of all keyframes, in their order: of the body, or by an odometry (`y`)."""
    g = gtsam()
    # Rows come in the order of the variables' names: all x, then all y.
    count = sum(g.symbolChr(key) == ord("x") for key in values.keys())  # noqa: SIM118
    rows = g.utilities.extractPose3(values)[slice(count) if name == "x" else slice(count, None)]
    poses = np.tile(np.eye(4), (len(rows), 1, 1))
    poses[:, :3, :3] = rows[:, :9].reshape(-1, 3, 3)
    poses[:, :3, 3] = rows[:, 9:]
    return poses


def stretch_of(
    evidence: Evidence,
    times: Ints,
    noise: SmootherNoise,
    first: int = 0,
    prior: Sequence[Any] | None = None,
    *,
    goes_on: bool = False,
) -> Stretch:
    """Return the graph of keyframes at `times` (n,).

    Parameters
    ----------
    first : int
        Number of the first keyframe.
    prior : sequence of factors, optional
        What is known of the first keyframe from before; without it, what one may suppose.
    goes_on : bool
        Whether another stretch begins at the last keyframe, and has what is said of that keyframe alone.
    """
    graph = gtsam().NonlinearFactorGraph()
    wheels, motion = paths_of(evidence, noise)
    path = path_of(evidence, noise)
    links = _add_wheels(graph, wheels, times, noise, first, evidence.doubted) if wheels is not None else None
    straying: Straying | None = None
    if motion is not None and noise.weighed:
        straying = _add_straying_motion(graph, motion, times, noise, evidence.doubted)
    elif motion is not None:
        _add_motion(graph, motion, times, first, measured_alone=links is None)
    inertial = bool(evidence.inertial)
    if inertial:
        alone = wheels is None and motion is None
        add_inertial(graph, evidence.inertial, times, noise.inertial, first, alone=alone)
    if not inertial and motion is None:
        _add_level(graph, len(times) - goes_on, noise.tilt, first)
    along = links.sigmas[:, 3] if links is not None and motion is None else None
    # An IMU alone is held by how positions follow each other: what they err alike is added afterwards.
    hung = hang(evidence.places, times, path, along, widen=not evidence.followed)
    _add_places(graph, hung, noise.robust, first)
    stretch = Stretch(times, first, path, graph, links, hung, inertial, straying)
    for factor in prior if prior is not None else _prior_factors(stretch, noise):
        graph.push_back(factor)
    return stretch


def paths_of(evidence: Evidence, noise: SmootherNoise) -> tuple[PlanarPath | None, PosePath | None]:
    """Return the paths by wheels, and in six degrees of freedom, where there are such."""
    wheels = PlanarPath.of(evidence.wheels) if evidence.wheels else None
    return wheels, PosePath.of(evidence.motion, *noise.motion) if evidence.motion else None


def path_of(evidence: Evidence, noise: SmootherNoise) -> PlanarPath | PosePath:
    """Return the way between keyframes, by the best that there is."""
    wheels, motion = paths_of(evidence, noise)
    if motion is None and wheels is None and evidence.followed:
        return PosePath.of(evidence.followed, *noise.motion)
    path = (wheels or motion) if noise.weighed else (motion or wheels)
    if path is None:
        raise TransectError("there is no dead reckoning to smooth")
    return path


def _add_wheels(
    graph: Any, path: PlanarPath, times: Ints, noise: SmootherNoise, first: int, doubted: Sequence[Doubt]
) -> WheelLinks:
    """Let the calibration drift; the wheels themselves are linearised by `WheelLinks`."""
    g, span = gtsam(), path.between(times[:-1], times[1:])
    for i, sigmas in enumerate(noise.wheels.drifts(span) * noise.scales(BY_CALIBRATION), start=first):
        model = g.noiseModel.Diagonal.Sigmas(sigmas)
        graph.push_back(
            g.BetweenFactorVector(g.symbol("c", i), g.symbol("c", i + 1), np.zeros(CALIBRATION), model)
        )
    sigmas = noise.wheels.sigmas(span) * noise.scales(BY_WHEELS)
    for i, doubt in enumerate(name_doubts(doubted, ("wheels", "odometry"), times)):
        if doubt:
            sigmas[i] *= noise.scales(name_rows(doubt, OF_WHEELS))
    return WheelLinks(span, sigmas, noise.wheels.robust)


def name_doubts(doubted: Sequence[Doubt], sensors: Collection[str], times: Ints) -> list[str]:
    """Return the name of the doubt, or "", of each span (n - 1) between keyframes at times (n,)."""
    names = [""] * (len(times) - 1)
    for window in (each for doubt in doubted if doubt.sensor in sensors for each in doubt.windows()):
        for i in np.flatnonzero((times[:-1] < window.t1_ns) & (times[1:] > window.t0_ns)):
            names[i] = f"doubted {window.sensor} {window.t0_ns}"
    return names


def doubts_beside(doubts: Sequence[str]) -> list[str]:
    """Return the name of the doubt, or "", of n keyframes by those of the n - 1 spans between them."""
    return [before or after for before, after in zip(["", *doubts], [*doubts, ""], strict=True)]


def name_rows(source: str, kinds: Sequence[str]) -> tuple[str, ...]:
    """Return the names of errors of a source, or of a doubt, by their kinds; "" has no name."""
    return tuple(f"{source}: {kind}" if kind else "" for kind in kinds)


def _add_straying_motion(
    graph: Any, path: PosePath, times: Ints, noise: SmootherNoise, doubted: Sequence[Doubt]
) -> Straying:
    """Let the odometry's own poses drift from each other; return how they stray from the body."""
    g = gtsam()
    moved, spread, known = path.between(times[:-1], times[1:])
    way, usual = np.linalg.norm(moved[:, :3, 3], axis=1), noise.scales(ON_MAP if noise.reach else BY_MOTION)
    if noise.reach:
        spread[:, :3] = spread[:, 3:, :3] = 0.0
        spread[:, range(3), range(3)] = hand_on(way, noise.reach)[:, None] * WANDER[3:] ** 2
    doubts = name_doubts(doubted, ("motion",), times)
    for i in np.flatnonzero(known):
        on_map = noise.reach > 0
        loose = noise.scales(name_rows(doubts[i], OF_MOTION)) if doubts[i] and not on_map else 1.0
        model = g.noiseModel.Gaussian.SqrtInformation(whiten(spread[i], *(usual * loose)[[5, 0]]), False)
        if doubts[i] and on_map:  # it may leave the map at once, but does not drift the more
            model = g.noiseModel.Robust.Create(g.noiseModel.mEstimator.Cauchy.Create(TAILS), model)
        graph.push_back(
            g.BetweenFactorPose3(g.symbol("y", i), g.symbol("y", i + 1), g.Pose3(moved[i]), model)
        )
    seen = np.unique(np.concatenate([np.flatnonzero(known), np.flatnonzero(known) + 1]))
    told = np.median(np.diagonal(np.diff(path.spread, axis=0), axis1=1, axis2=2), axis=0)[SWAPPED] / 2
    white = np.tile(np.sqrt(np.maximum(told, LEAST_STRAYING)) * noise.scales(BY_POSE), (len(seen), 1))
    for k, doubt in enumerate(doubts_beside(doubts)[i] for i in seen):
        if doubt and noise.reach:
            white[k] *= noise.scales(name_rows(doubt, OF_POSE))
    wander = WANDER * noise.scales(BY_WANDER) if noise.reach else None
    return Straying(seen, white, wander, np.append(0.0, known * keep_wander(way))[seen])


def whiten(covariance: Floats, way: float, turn: float) -> Floats:
    """Return a root (6, 6) of the inverse of a covariance (6, 6) with factors on its sigmas, rotation first.

    The factor of the way is on what the turn does not explain of it: cameras take a turn for a way aside, and
    by how much depends on how far things are, not on how well they are seen.
    """
    of_turn, both = covariance[3:, 3:] + 1e-12 * np.eye(3), covariance[:3, 3:]
    slope = np.linalg.solve(of_turn, both.T).T
    rest = covariance[:3, :3] - slope @ both.T + 1e-12 * np.eye(3)
    W_turn = np.linalg.inv(turn * np.linalg.cholesky(of_turn))
    W_way = np.linalg.inv(way * np.linalg.cholesky((rest + rest.T) / 2))
    return np.block([[W_turn, np.zeros((3, 3))], [-W_way @ slope, W_way]]).astype(np.float64)


def _add_motion(graph: Any, path: PosePath, times: Ints, first: int, measured_alone: bool) -> None:
    g = gtsam()
    moved, spread, known = path.between(times[:-1], times[1:])
    # Nothing else joins these keyframes where it was not measured: it may have moved by a metre and a radian.
    lost = np.eye(6)
    for i in range(len(moved)):
        if not known[i] and not measured_alone:
            continue
        covariance = (spread[i] if known[i] else lost)[np.ix_(SWAPPED, SWAPPED)]
        model = g.noiseModel.Gaussian.Covariance(covariance + 1e-10 * np.eye(6))
        pair = g.symbol("x", first + i), g.symbol("x", first + i + 1)
        graph.push_back(g.BetweenFactorPose3(*pair, g.Pose3(moved[i]), model))


def _add_level(graph: Any, count: int, tilt: float, first: int) -> None:
    g = gtsam()
    up, model = g.Unit3(np.array([0.0, 0.0, 1.0])), g.noiseModel.Isotropic.Sigma(2, tilt)
    for i in range(first, first + count):
        graph.push_back(g.AttitudeFactorPose3(g.symbol("x", i), up, model, up))


def _add_places(graph: Any, hung: Hung, robust: float, first: int) -> None:
    g = gtsam()
    huber = g.noiseModel.mEstimator.Huber.Create(robust)
    for i, arm, position, sigma in zip(hung.keyframe, hung.arm, hung.position, hung.sigma, strict=True):
        model = g.noiseModel.Robust.Create(huber, g.noiseModel.Diagonal.Sigmas(sigma))
        graph.push_back(g.GPSFactorArm(g.symbol("x", first + int(i)), position, arm, model))


def _prior_factors(stretch: Stretch, noise: SmootherNoise) -> list[Any]:
    """Return factors for what one may suppose of the first keyframe."""
    g, i = gtsam(), stretch.first
    factors: list[Any] = []
    if stretch.links:
        model = g.noiseModel.Diagonal.Sigmas(np.array(noise.wheels.start))
        factors.append(g.PriorFactorVector(g.symbol("c", i), np.zeros(CALIBRATION), model))
    if stretch.inertial:
        alone = not stretch.links and isinstance(stretch.path, PosePath)
        factors += noise.inertial.prior_factors(i, ANY_SPEED if alone else None)
    if not len(stretch.hung):
        sigmas = noise.start * np.ones(6)
        if stretch.inertial:
            sigmas[:2] = 1.0  # gravity tells roll and pitch
        model = g.noiseModel.Diagonal.Sigmas(sigmas)
        factors.append(g.PriorFactorPose3(g.symbol("x", i), g.Pose3(), model))
    return factors


def solve(stretch: Stretch, values: Any) -> Any:
    """Return the values that fit best, by Gauss-Newton from a guess; steps that do not help are halved."""
    cost = stretch.cost(values)
    for _ in range(MAX_STEPS):
        step = _step_to_minimum(stretch.linear(values))
        for _ in range(MAX_HALVINGS):
            tried = values.retract(step)
            now = stretch.cost(tried)
            if now <= cost:
                break
            step = step.scale(0.5)
        else:
            return values
        values, gain, cost = tried, cost - now, now
        if gain <= ENOUGH:
            return values
    raise UnsettledError(
        "the smoother did not settle", why=f"after {MAX_STEPS} steps its cost still falls, it is {cost:.4g}"
    )


def _step_to_minimum(linear: Any) -> Any:
    """Return the step to the minimum of a linear graph.

    GTSAM gives up by Cholesky where a number is 2^12 times less certain than its neighbour: positions within
    metres beside wheels within millimetres. QR can do it.
    """
    try:
        return linear.optimize()
    except RuntimeError:
        try:
            return linear.optimize(gtsam().EliminateQR)
        except RuntimeError as error:
            why = "what was measured does not determine all of pose, velocity and biases"
            raise UnsettledError("the smoother found no solution", why=why) from error


def eliminate(linear: Any, keys: Sequence[int]) -> Any:
    """Return the linear graph that is left when some variables are eliminated."""
    try:
        return linear.eliminatePartialSequential(keys)[1]
    except RuntimeError:  # as above
        return linear.eliminatePartialSequential(keys, gtsam().EliminateQR)[1]


def _marginals(linear: Any, values: Any) -> Any:
    """Return what tells the covariance of each variable."""
    try:
        return gtsam().Marginals(linear, values)
    except RuntimeError:  # as above
        return linear.eliminateMultifrontal(function=gtsam().EliminateQR)


def covariances_of(stretch: Stretch, values: Any, which: Sequence[int] | None = None) -> Floats:
    """Return covariances (n, 6, 6) of the poses: translation, then rotation vector, in the poses' frame.

    `which` keyframes, counted in the stretch; all by default.
    """
    g = gtsam()
    chosen = range(len(stretch.times)) if which is None else which
    if not chosen:
        return np.zeros((0, 6, 6))
    marginals = _marginals(stretch.linear(values), values)
    keys = [g.symbol("x", stretch.first + i) for i in chosen]
    found = np.array([marginals.marginalCovariance(key) for key in keys]).reshape(-1, 6, 6)
    turn = np.zeros_like(found)
    turn[:, :3, 3:] = turn[:, 3:, :3] = [values.atPose3(key).rotation().matrix() for key in keys]
    return turn @ found @ np.swapaxes(turn, -1, -2)


def widen(covariances: Floats, evidence: Evidence) -> Floats:
    """Return covariances (n, 6, 6) with what fixes err alike, where their sigmas do not have it."""
    result = covariances.copy()
    result[:, range(3), range(3)] += common_variance(evidence.places, followed=bool(evidence.followed))
    return result


def copy_value(values: Any, key: int, into: Any, new_key: int | None = None) -> None:
    """Insert one of the values into others, under the same or another key."""
    g = gtsam()
    get = {"x": values.atPose3, "b": values.atConstantBias}.get(chr(g.symbolChr(key)), values.atVector)
    into.insert(key if new_key is None else new_key, get(key))
