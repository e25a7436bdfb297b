"""Fixed-lag smoothing: the last seconds are solved at every keyframe, older keyframes are marginalised.

Factors join neighbours only, so the information of all older keyframes is a Gaussian on the variables of the
oldest one in the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.errors import TransectError
from transect.geometry import rotations, se3

from .._gtsam import SharedObjects, gtsam
from ..fusion.events import Event, MeasuredPosition
from .factor_graph import (
    ROTATION_FIRST,
    KeyframeGraph,
    SmootherNoise,
    add_common_variance,
    best_path,
    build_graph,
    copy_value,
    eliminate,
    marginal_covariances,
    paths_of,
    poses_of,
    solve,
)
from .filter_odometry import FilterOdometry
from .initial_values import HeadingUnobservableError, initial_poses, path_poses
from .observations import Observations, grid_times, keyframe_times
from .odometry_paths import PosePath
from .position_factors import POSITION_GATE, KeyframePositions, PositionStatistics, evaluate_positions
from .wheel_factors import WheelFactors

T = TypeVar("T")
PositionFit = tuple[Sequence[MeasuredPosition], PositionStatistics]
"""New positions and their statistics."""


@dataclass(frozen=True)
class FixedLagSettings:
    """Keyframes, start, and recovery."""

    spacing: float = 1.0  # s, between keyframes
    lag: float = 40.0  # s, from the first keyframe to the last
    max_wait: float = 30.0  # s, for positions; then it starts without and ignores later ones
    min_wait: float = 1.0  # s, in which every working sensor has sent something
    prediction_speed_std: float = 0.5  # m/s, after the newest keyframe with an IMU and positions alone
    patience: int = 10  # positions rejected in a row after which one is accepted


@dataclass(frozen=True, eq=False)
class PoseKeyframe:
    """Pose (4, 4) at a time, and its covariance (6, 6): translation, then rotation vector, in its frame."""

    t_ns: int
    pose: Floats
    covariance: Floats


@dataclass(eq=False)
class FixedLagWindow:
    """Sliding window of keyframes."""

    noise: SmootherNoise
    settings: FixedLagSettings = field(default_factory=FixedLagSettings)
    observations: Observations = field(default_factory=Observations)  # from the first keyframe on
    times: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # (n,), of the keyframes
    first: int = 0  # number of the first keyframe
    newest: PoseKeyframe | None = None
    finished: list[PoseKeyframe] = field(default_factory=list[PoseKeyframe])  # marginalised keyframes
    kinds: frozenset[str] = frozenset()  # of observations at the start; others are ignored
    filter_odometry: FilterOdometry | None = None  # with an IMU and positions alone
    _prior: SharedObjects | None = None  # factors on the first keyframe
    _solution: SharedObjects | None = None
    _rejected_in_row: int = 0

    def advance(self, events: Sequence[Event], *, last: bool = False) -> PositionFit | None:
        """Add events in the order of time; make keyframes that are due and solve if there are any.

        Returns the statistics of new positions; `last` makes a keyframe at the end of dead reckoning.
        """
        self._add(events)
        due = self._due_times(last)
        if not len(due):
            return None
        times = np.concatenate([self.times, due])
        values = self._extend(times) if len(self.times) else self._start(times)
        if values is None:
            return None
        after_ns, self.times = (self.times[-1] if len(self.times) else times[0]), times
        fit = self._solve(values, int(after_ns))
        while (self.times[-1] - self.times[0]) * 1e-9 > self.settings.lag:
            self._marginalise_first()
        return fit

    def predict(self, t_ns: int) -> PoseKeyframe | None:
        """Return the pose at a time after the newest keyframe, by dead reckoning."""
        newest = self.newest
        if newest is None:
            return None
        recent = self.observations.since(newest.t_ns)
        interval = np.array([newest.t_ns, min(t_ns, recent.path_interval[1])])
        if interval[1] <= interval[0]:
            return newest
        transform, added = self._motion(recent, interval)
        R = newest.pose[:3, :3]
        J = np.eye(6)
        J[:3, 3:] = -rotations.skew(R @ transform[:3, 3])
        turn = np.kron(np.eye(2), R)
        covariance = J @ newest.covariance @ J.T + turn @ added @ turn.T
        return PoseKeyframe(int(interval[1]), newest.pose @ transform, covariance)

    def _motion(self, recent: Observations, interval: Ints) -> tuple[Floats, Floats]:
        """Return the motion (4, 4) in an interval, and its covariance (6, 6) in the axes of the body."""
        wheels, motion = paths_of(recent, self.noise)
        path = best_path(recent, self.noise)
        transform = se3.relative_motions(path_poses(path, interval))[0]
        if isinstance(path, PosePath):
            covariance = path.between(interval[:1], interval[1:])[1][0]
            speed_std = 0.0 if motion is not None else self.settings.prediction_speed_std
            sigma = speed_std * (interval[1] - interval[0]) * 1e-9
            return transform, covariance + np.diag([sigma**2] * 3 + [0.0] * 3)
        segment = _require_started(wheels).between(interval[:1], interval[1:])
        return transform, np.diag(self.noise.wheels.sigmas(segment)[0][ROTATION_FIRST] ** 2)

    def finish(self) -> list[PoseKeyframe]:
        """Return all keyframes, after a last one at the end of dead reckoning."""
        self.advance((), last=True)
        if self._solution is None:
            return []
        values = self._solved[0]
        covariances = add_common_variance(marginal_covariances(self._graph(), values), self.observations)
        remaining = zip(self.times.tolist(), poses_of(values), covariances, strict=True)
        return [*self.finished, *(PoseKeyframe(*each) for each in remaining)]

    def _add(self, events: Sequence[Event]) -> None:
        """Add events, except of sensors that were silent until the start: they have no variables."""
        self.observations.add(events)
        if self.newest is None:
            self.kinds = self.observations.kinds
        for name in self.observations.kinds - self.kinds:
            setattr(self.observations, name, [])

    def _due_times(self, last: bool) -> Ints:
        """Return the times of the keyframes to make."""
        observations = self.observations
        if not (observations.wheels or observations.motion or observations.filter_path):
            return np.zeros(0, np.int64)
        start, end = observations.path_interval
        started, step_ns = len(self.times) > 0, round(self.settings.spacing * NS)
        measured = observations.times
        due = grid_times(int(self.times[-1]) + step_ns if started else start, end + 1, step_ns, measured)
        if last:
            first = int(self.times[-1]) if started else start
            if end <= first:
                return due[:0]
            due = keyframe_times(first, end, self.settings.spacing, measured)[int(started) :]
        return due if started or len(due) > 1 else due[:0]

    def _start(self, times: Ints) -> Any:
        """Return initial values; None until positions arrive and make the heading observable."""
        waited = (times[-1] - times[0]) * 1e-9
        if waited < (self.settings.min_wait if self.observations.positions else self.settings.max_wait):
            return None
        keyframes = build_graph(self.observations, times, self.noise)
        positions = keyframes.positions
        if self.observations.positions and not len(positions):
            return None
        start = self.filter_odometry.start if self.filter_odometry else None
        try:
            return keyframes.values_from_poses(initial_poses(keyframes.path, times, positions, start))
        except HeadingUnobservableError:
            return None

    def _extend(self, times: Ints) -> Any:
        """Return the values with those of new keyframes: poses by dead reckoning, all else unchanged."""
        g, known = gtsam(), self._solved[0]
        values = g.Values(known)
        last = self.first + len(self.times) - 1
        path = best_path(self.observations.since(int(self.times[-1])), self.noise)
        reckoned = path_poses(path, times[len(self.times) - 1 :])
        base = known.atPose3(g.symbol("x", last)).matrix() @ se3.invert(reckoned[0])
        for i, pose in enumerate(base @ reckoned[1:], start=last + 1):
            values.insert(g.symbol("x", i), g.Pose3(pose))
            for name in "cvb":
                if known.exists(g.symbol(name, last)):
                    copy_value(known, g.symbol(name, last), values, g.symbol(name, i))
        return values

    def _solve(self, values: Any, after_ns: int) -> PositionFit:
        """Solve, reject positions after a time that do not fit, and solve again."""
        keyframes = self._graph()
        values = solve(keyframes, values)
        positions = [
            each for each in self.observations.positions if self.times[0] <= each.t_ns <= self.times[-1]
        ]
        new = np.array([each.t_ns > after_ns for each in positions], dtype=np.bool_)
        covariances = self._covariances(keyframes, values, keyframes.positions.keyframe[new])
        statistics = self._evaluate(keyframes, values, covariances, new)
        if not statistics.used.all():
            rejected = {id(positions[i]) for i in np.flatnonzero(new)[~statistics.used]}
            accepted = [each for each in self.observations.positions if id(each) not in rejected]
            self.observations = replace(self.observations, positions=accepted)
            keyframes = self._graph()
            values = solve(keyframes, values)
            covariances = self._covariances(keyframes, values, np.zeros(0, np.int64))
        self._solution = SharedObjects(values, covariances, keyframes.wheels)
        newest_covariance = add_common_variance(covariances[-1:], self.observations)[0]
        self.newest = PoseKeyframe(int(self.times[-1]), poses_of(values)[-1], newest_covariance)
        return [positions[i] for i in np.flatnonzero(new)], statistics

    def _graph(self) -> KeyframeGraph:
        prior = None if self._prior is None else self._prior.objects
        return build_graph(self.observations, self.times, self.noise, self.first, prior)

    def _covariances(self, keyframes: KeyframeGraph, values: Any, others: Ints) -> Floats:
        """Return covariances (n, 6, 6) of the first keyframe, the last and others; NaN elsewhere."""
        indices = sorted({0, len(self.times) - 1, *others.tolist()})
        covariances = np.full((len(self.times), 6, 6), np.nan)
        covariances[indices] = marginal_covariances(keyframes, values, indices)
        return covariances

    def _evaluate(
        self, keyframes: KeyframeGraph, values: Any, covariances: Floats, new: NDArray[np.bool_]
    ) -> PositionStatistics:
        """Return the statistics of new positions; after `patience` rejected ones, one is accepted."""
        positions = keyframes.positions
        chosen = KeyframePositions(
            positions.keyframe[new], positions.lever_arm[new], positions.position[new], positions.sigma[new]
        )
        all_used = np.ones(len(chosen), np.bool_)
        statistics = evaluate_positions(chosen, all_used, poses_of(values), covariances)
        used = statistics.nis <= POSITION_GATE
        for i, fits in enumerate(used):
            self._rejected_in_row = 0 if fits else self._rejected_in_row + 1
            used[i] = fits or self._rejected_in_row > self.settings.patience
        return replace(statistics, used=used)

    def _marginalise_first(self) -> None:
        """Replace the first keyframe by its information on the second."""
        g, (values, covariances, wheels) = gtsam(), self._solved
        if np.isnan(covariances[0]).any():
            covariances = self._covariances(self._graph(), values, np.zeros(0, np.int64))
        covariance = add_common_variance(covariances[:1], self.observations)[0]
        self.finished.append(PoseKeyframe(int(self.times[0]), poses_of(values)[0], covariance))
        prior = None if self._prior is None else self._prior.objects
        known = self.observations.before(int(self.times[1]))
        pair = build_graph(known, self.times[:2], self.noise, self.first, prior, continues=True)
        if wheels is not None:
            pair.wheels = wheels.part(0, 1)
            self._keep_usual_speed(wheels)
        both, second, rest = g.Values(), g.Values(), g.Values(values)
        for key in pair.keys(0):
            copy_value(values, key, both)
            rest.erase(key)
        for key in pair.keys(1):
            copy_value(values, key, both)
            copy_value(values, key, second)
        remaining = eliminate(pair.linearise(both), pair.keys(0))
        factors = [remaining.at(i) for i in range(remaining.size())]
        self._prior = SharedObjects(
            *(g.LinearContainerFactor(each, second) for each in factors if each is not None)
        )
        self.times, self.first = self.times[1:], self.first + 1
        self.observations = self.observations.since(int(self.times[0]))
        remaining_wheels = wheels.part(1, len(self.times)) if wheels else None
        self._solution = SharedObjects(rest, covariances[1:], remaining_wheels)

    def _keep_usual_speed(self, wheels: WheelFactors) -> None:
        """Keep the usual speed, which defines slow motion, when its samples leave the window."""
        usual = self.noise.wheels.usual_speed(wheels.segments)
        self.noise = replace(self.noise, wheels=replace(self.noise.wheels, min_usual_speed=usual))

    @property
    def biases(self) -> Floats | None:
        """Biases (6,) of the IMU at the newest keyframe: m/s2, then rad/s; None without one."""
        if self._solution is None:
            return None
        values, key = self._solved[0], gtsam().symbol("b", self.first + len(self.times) - 1)
        return np.asarray(values.atConstantBias(key).vector()) if values.exists(key) else None

    @property
    def _solved(self) -> tuple[Any, Floats, WheelFactors | None]:
        """Values, covariances (n, 6, 6) as far as computed, and the wheels between keyframes."""
        return _require_started(self._solution).objects  # pyright: ignore[reportReturnType]


def _require_started(value: T | None) -> T:
    if value is None:
        raise TransectError("the window has not started")
    return value
