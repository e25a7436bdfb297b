"""Estimation of the noise of each source by variance components (Helmert 1907, Foerstner 1979).

The residual of a measurement is smaller than its error by what the solution took from it: its redundancy is
1 - a P a', with its whitened Jacobian row a and the covariance P of all variables. The sum of squared
residuals over the sum of redundancies of one component is the factor on its variance. The graph is solved
again with these factors, several times.

No truth is needed, but three sources: if two disagree, either may be wrong. Sources that share an error agree
in it: two odometries by one camera are one source.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints

from .._gtsam import gtsam
from .factor_graph import (
    CALIBRATION_COMPONENTS,
    MAP_COMPONENTS,
    MAP_MOTION_COMPONENTS,
    MOTION_COMPONENTS,
    MOTION_ERROR_KINDS,
    POSE_COMPONENTS,
    POSE_ERROR_KINDS,
    SUSPECT_PREFIX,
    SUSPECT_VARIANCE_FACTOR,
    WHEEL_COMPONENTS,
    WHEEL_ERROR_KINDS,
    KeyframeGraph,
    SmootherNoise,
    build_graph,
    component_names,
    keyframe_suspect_names,
    solve,
    suspect_names,
)
from .observations import Observations


@dataclass(frozen=True)
class VarianceComponentSettings:
    """Iteration, and the prior of the factors."""

    iterations: int = 8
    step_exponent: float = 1.5  # over-relaxation of the multiplicative steps, which are short
    # Largest factor of one step: an inseparable component would alternate between the prior and nothing.
    max_step_factor: float = 10.0
    # Factor on the variance of pose deviations in the very first solution, whose start may be far off.
    initial_pose_variance_factor: float = 1e4
    # Pseudo-measurements of the specified noise: that of wheels is known well, that of an odometry's own
    # covariances and of suspect steps is not.
    wheel_prior_weight: float = 1.0
    prior_weight: float = 0.1


VARIANCE_COMPONENTS = VarianceComponentSettings()
REPORT_PREFIX = "variance components: "
CONSISTENT_SIGMA_FACTOR = 3.0
"""Suspect seconds with a smaller sigma factor are reported as consistent. Affects the report only."""
VARIABLE_SIZES = {"x": 6, "y": 6, "s": 6, "c": 4, "v": 3, "b": 6}
"""Dimension of each variable of a keyframe, in the order of its block."""
VARIABLE_OFFSETS = dict(zip(VARIABLE_SIZES, np.cumsum([0, *VARIABLE_SIZES.values()]).tolist(), strict=False))
BLOCK_SIZE = sum(VARIABLE_SIZES.values())


def estimate_variance_components(
    observations: Observations,
    noise: SmootherNoise,
    times: Ints,
    values: Any,
    settings: VarianceComponentSettings = VARIANCE_COMPONENTS,
) -> tuple[SmootherNoise, Any]:
    """Return the noise with a factor on the variance of each component, and a solution with it.

    Parameters
    ----------
    observations : Observations
        Of wheels, a motion and an IMU. Each suspect second has components of its own.
    times : (n,)
        Of keyframes, ns.
    values : gtsam.Values
        Initial values of all variables.
    """
    loose_factors = dict.fromkeys(POSE_COMPONENTS, settings.initial_pose_variance_factor)
    values = solve(build_graph(observations, times, replace(noise, factors=loose_factors)), values)
    for _ in range(settings.iterations):
        keyframes = build_graph(observations, times, noise)
        values = solve(keyframes, values)
        factors = dict(noise.factors)
        for name, (squares, redundancy) in _sum_by_component(keyframes, values, observations).items():
            prior = SUSPECT_VARIANCE_FACTOR if name.startswith(SUSPECT_PREFIX) else 1.0
            factor = factors.get(name, prior)
            is_wheels = name.partition(":")[0] == "wheels"
            weight = settings.wheel_prior_weight if is_wheels else settings.prior_weight
            ratio = (squares + weight * prior / factor) / (redundancy + weight)
            limit = settings.max_step_factor
            factors[name] = factor * float(np.clip(ratio**settings.step_exponent, 1 / limit, limit))
        noise = replace(noise, factors=factors)
    return noise, values


def describe_factors(factors: Mapping[str, float]) -> list[str]:
    """Return sentences on the factors of all components."""
    if not factors:
        return []
    sigma_factors = {
        name: np.sqrt(each) for name, each in factors.items() if not name.startswith(SUSPECT_PREFIX)
    }
    reported = (*MOTION_COMPONENTS[::3], MAP_COMPONENTS[-1], *WHEEL_COMPONENTS)
    texts = {
        name.replace(":", ""): f"{sigma_factors[name]:.2g}" for name in reported if name in sigma_factors
    }
    listed = ", ".join(f"{name} {factor}" for name, factor in texts.items())
    sentences = [f"{REPORT_PREFIX}sigma factors relative to the specified noise: {listed}"]
    suspect: dict[str, dict[str, float]] = defaultdict(dict)
    for name, factor in factors.items():
        if name.startswith(SUSPECT_PREFIX):
            _, sensor, window = name.partition(":")[0].split()
            suspect[sensor][window] = max(float(np.sqrt(factor)), suspect[sensor].get(window, 0.0))
    for sensor, by_window in suspect.items():
        consistent = sum(each < CONSISTENT_SIGMA_FACTOR for each in by_window.values())
        text = f"{sensor} is consistent in {consistent} of {len(by_window)} suspect seconds, which are used"
        sentences.append(f"{REPORT_PREFIX}{text}; the largest sigma factor is {max(by_window.values()):.0f}")
    return sentences


@dataclass(frozen=True, eq=False)
class LinearConstraint:
    """Whitened rows of one constraint, linearised at the solution."""

    keyframe: int  # the first that it joins
    jacobian: Floats  # (m, 2 BLOCK_SIZE), by the variables of that keyframe and the next
    residual: Floats  # (m,)
    components: tuple[str, ...]  # of each row; "" is not estimated


def _sum_by_component(
    keyframes: KeyframeGraph, values: Any, observations: Observations
) -> dict[str, list[float]]:
    """Return the sums of squared residuals and of redundancies by component."""
    constraints = list(linear_constraints(keyframes, values, observations))
    covariances = neighbour_covariances(constraints, len(keyframes.times))
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for each in constraints:
        if not any(each.components):
            continue
        explained = np.einsum("ij,jk,ik->i", each.jacobian, covariances[each.keyframe], each.jacobian)
        for name, residual, redundancy in zip(each.components, each.residual, 1.0 - explained, strict=True):
            if name:
                sums[name][0] += float(residual) ** 2
                sums[name][1] += max(float(redundancy), 0.0)
    return dict(sums)


def linear_constraints(
    keyframes: KeyframeGraph, values: Any, observations: Observations
) -> Iterator[LinearConstraint]:
    """Yield all constraints, linearised at some values."""
    g, linear = gtsam(), keyframes.linearise(values)
    suspect = {
        "y": suspect_names(observations.suspect, ("motion",), keyframes.times),
        "c": suspect_names(observations.suspect, ("wheels", "odometry"), keyframes.times),
    }
    last = len(keyframes.times) - 2
    for number in range(linear.size()):
        factor = linear.at(number)
        keys = [(chr(g.symbolChr(key)), g.symbolIndex(key) - keyframes.first) for key in factor.keys()]  # noqa: SIM118
        A, residual = factor.jacobian()
        first = min(index for _, index in keys)
        i = min(first, last)
        jacobian, column = np.zeros((len(residual), 2 * BLOCK_SIZE)), 0
        for letter, index in keys:
            size, offset = VARIABLE_SIZES[letter], (index - i) * BLOCK_SIZE + VARIABLE_OFFSETS[letter]
            jacobian[:, offset : offset + size] = A[:, column : column + size]
            column += size
        letters = [letter for letter, _ in keys]
        components = _components(letters, first, suspect, has_map=keyframes.has_map)
        yield LinearConstraint(i, jacobian, residual, components)


def _components(
    letters: list[str], i: int, suspect: dict[str, list[str]], *, has_map: bool
) -> tuple[str, ...]:
    """Return the component of each row of a constraint, by the variables that it joins.

    Of a suspect odometry these are its steps, on a map its poses.
    """
    match sorted(letters):
        case ["c", "x", "x"]:
            name = suspect["c"][i]
            return component_names(name, WHEEL_ERROR_KINDS) if name else WHEEL_COMPONENTS
        case ["c", "c"]:
            return CALIBRATION_COMPONENTS
        case ["x", "y"] | ["s", "x", "y"]:
            name = keyframe_suspect_names(suspect["y"])[i] if has_map else ""
            return component_names(name, POSE_ERROR_KINDS) if name else POSE_COMPONENTS
        case ["s"] | ["s", "s"]:
            return MAP_COMPONENTS
        case ["y", "y"]:
            if has_map:
                return MAP_MOTION_COMPONENTS
            name = suspect["y"][i]
            return component_names(name, MOTION_ERROR_KINDS) if name else MOTION_COMPONENTS
        case _:
            return ()


def neighbour_covariances(constraints: list[LinearConstraint], count: int) -> Floats:
    """Return covariances (count - 1, 2 BLOCK_SIZE, 2 BLOCK_SIZE) of consecutive keyframes.

    Selected inversion (Takahashi 1973) of a block-tridiagonal information matrix: a forward pass eliminates
    the past (filter), a backward pass adds the future (smoother).
    """
    diagonal = np.zeros((count, BLOCK_SIZE, BLOCK_SIZE))
    upper = np.zeros((count - 1, BLOCK_SIZE, BLOCK_SIZE))
    for each in constraints:
        H, i = each.jacobian.T @ each.jacobian, each.keyframe
        diagonal[i] += H[:BLOCK_SIZE, :BLOCK_SIZE]
        upper[i] += H[:BLOCK_SIZE, BLOCK_SIZE:]
        diagonal[i + 1] += H[BLOCK_SIZE:, BLOCK_SIZE:]
    for block in diagonal:
        absent = np.diagonal(block) == 0
        block[absent, absent] = 1.0
    filtered = np.empty_like(diagonal)
    filtered[0] = np.linalg.inv(diagonal[0])
    for i in range(1, count):
        filtered[i] = np.linalg.inv(diagonal[i] - upper[i - 1].T @ filtered[i - 1] @ upper[i - 1])
    covariances, following = np.empty((count - 1, 2 * BLOCK_SIZE, 2 * BLOCK_SIZE)), filtered[-1]
    for i in range(count - 2, -1, -1):
        gain = filtered[i] @ upper[i]
        cross, smoothed = -gain @ following, filtered[i] + gain @ following @ gain.T
        covariances[i] = np.block([[smoothed, cross], [cross.T, following]])
        following = smoothed
    return covariances
