"""Noise of the wheels of a recording, estimated by cross-validation with withheld positions.

The smoother predicts them from all others. The residual has the covariance ``R + s P``: R is the position's
own, P the uncertainty that the wheels' noise leaves between the others, and s the factor on the variances of
that noise, whose posterior mean is returned. `fusion.wheel_drift` estimates the same factor causally.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS

from ..fusion.events import MeasuredPosition
from ..fusion.variance_factor import VarianceFactorPrior
from .factor_graph import KeyframeGraph, SmootherNoise, build_graph, marginal_covariances, poses_of, solve
from .observations import Observations
from .position_factors import KeyframePositions, assign_to_keyframes

FACTOR_PRIOR = VarianceFactorPrior(median=0.25, log_sigma=1.2, min_factor=1 / 64)
"""The specified noise is an upper bound, so the median is less than 1."""


@dataclass(frozen=True)
class CrossValidationSettings:
    """Which positions are withheld and predicted."""

    withheld_s: float = 15.0  # duration of an interval; every second one is withheld
    predicted_at: tuple[float, ...] = (0.25, 0.5, 0.75)  # as fractions of an interval
    min_predictions: int = 3
    prior: VarianceFactorPrior = FACTOR_PRIOR


CROSS_VALIDATION = CrossValidationSettings()


def estimate_wheel_factor(
    observations: Observations, noise: SmootherNoise, keyframes: KeyframeGraph, values: Any
) -> float:
    """Return the factor on the variances of the wheels' noise.

    Parameters
    ----------
    observations : Observations
        Without outliers among the positions.
    keyframes : KeyframeGraph
        Graph of all of them.
    values : gtsam.Values
        Its solution.
    """
    first, last = keyframes.times[[0, -1]]
    positions = [each for each in observations.positions if first <= each.t_ns <= last]
    withheld, predicted = _withhold(positions, keyframes)
    if len(predicted) < CROSS_VALIDATION.min_predictions:
        return 1.0
    training_positions = [each for each, hide in zip(positions, withheld, strict=True) if not hide]
    part = build_graph(replace(observations, positions=training_positions), keyframes.times, noise)
    along = part.wheels.sigmas[:, 3] if part.wheels else None
    targets = assign_to_keyframes(predicted, keyframes.times, keyframes.path, along)
    return _best_factor(targets, *_predict(part, values, targets.keyframe))


def _withhold(
    positions: Sequence[MeasuredPosition], keyframes: KeyframeGraph
) -> tuple[list[bool], list[MeasuredPosition]]:
    """Return which positions are withheld, and those of them that are predicted."""
    t_ns = np.array([each.t_ns for each in positions], np.int64)
    if len(t_ns) < 2:
        return [False] * len(t_ns), []
    interval_ns = CROSS_VALIDATION.withheld_s * NS
    window = ((t_ns - t_ns[0]) / NS // CROSS_VALIDATION.withheld_s).astype(np.int64)
    withheld = (window % 2 == 1) & (window < window[-1])
    predicted: list[MeasuredPosition] = []
    for number in np.unique(window[withheld]):
        start_ns = t_ns[0] + round(number * CROSS_VALIDATION.withheld_s * NS)
        if not _is_steady(keyframes, start_ns, start_ns + round(interval_ns)):
            continue
        inside = np.flatnonzero(window == number)
        targets_ns = start_ns + (np.array(CROSS_VALIDATION.predicted_at) * interval_ns).astype(np.int64)
        nearest = inside[np.abs(t_ns[inside][:, None] - targets_ns).argmin(axis=0)]
        predicted += [positions[i] for i in np.unique(nearest)]
    return withheld.tolist(), predicted


def _is_steady(keyframes: KeyframeGraph, start_ns: int, end_ns: int) -> bool:
    """Return whether wheels neither started nor jumped in an interval: that has a noise of its own."""
    assert keyframes.wheels is not None
    segments, edges = keyframes.wheels.segments, keyframes.times
    inside = (edges[1:] > start_ns) & (edges[:-1] < end_ns)
    starts_or_jumps = segments.manoeuvre_distance[inside].any() or segments.jump[inside].any()
    return not starts_or_jumps and bool(segments.known[inside].all())


def _predict(part: KeyframeGraph, values: Any, keyframes: Ints) -> tuple[Floats, Floats]:
    """Return poses (n, 4, 4) of all keyframes, and covariances (n, 6, 6) of the requested ones."""
    values = solve(part, values)
    requested = np.unique(keyframes)
    covariances = np.zeros((len(part.times), 6, 6))
    covariances[requested] = marginal_covariances(part, values, requested.tolist())
    return poses_of(values), covariances


def _best_factor(positions: KeyframePositions, poses: Floats, covariances: Floats) -> float:
    """Return the posterior mean of the factor by residuals in the plane."""
    predicted, P = positions.predict(poses, covariances)
    residual = (positions.position - predicted)[:, :2]
    R = positions.sigma[:, :2, None] ** 2 * np.eye(2)
    prior = CROSS_VALIDATION.prior
    S = R + prior.factors[:, None, None, None] * P[:, :2, :2]
    squared = np.einsum("ni,knij,nj->kn", residual, np.linalg.inv(S), residual)
    return prior.posterior_mean(-(squared + np.linalg.slogdet(S)[1]).sum(axis=1) / 2)
