"""Noise of GNSS fixes that state none, or a wrong constant, estimated from the fixes (REML).

The antenna's path by dead reckoning differs from the fixes by an unknown similarity (origin, heading, scale)
and by errors of both. Within a window the fixes y are modelled as::

    y = X b + e,    cov(e) = sum_k theta_k K_k

X has the similarity (for heights: offset and slope). The variance components theta are those of

- white noise, one per type of fix;
- noise correlated over half a minute (multipath, ionosphere): an Ornstein-Uhlenbeck process in time;
- errors of the dead reckoning (for heights: the terrain), which accumulate along the path: a random walk, and
  an integrated one, as headings and slopes are random walks.

They maximise the restricted likelihood (REML) of all windows, by multiplicative steps to a fixed point of its
score (as in Zhou et al., MM algorithms for variance components models, J. Comput. Graph. Stat. 2019). Without
dead reckoning the path is straight and uniform, and its errors are an integrated random walk in time. East
and north are one complex number, so that the similarity is linear.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.base.clocks import NS

Complexes = NDArray[np.complex128]


@dataclass(frozen=True)
class GnssNoiseSettings:
    """Noise model of fixes and of the path, and the iteration of the estimate."""

    min_fixes: int = 5  # of one type, before their noise is estimated
    # Correlation time of the correlated noise: multipath and ionosphere change within minutes at most.
    correlation_time_s: float = 30.0
    min_std_m: float = 0.02  # smaller noise is not assumed: stamps jitter, lever arms are rounded
    # Error model of the path up to a common factor.
    position_walk: float = 0.02**2  # m2/m
    heading_walk: float = 0.01**2  # rad2/m
    slope_walk: float = 0.02**2  # 1/m, of the terrain
    velocity_walk: float = 0.5**2  # m2/s3, without dead reckoning
    # Iteration, and the relative change of each component's contribution at which it has converged.
    max_iterations: int = 60
    tolerance: float = 3e-4
    # A fix is an outlier if its squared normalised residual exceeds this multiple of the median: the ratio of
    # the 99.9 % quantile of chi-squared to its median, with two degrees of freedom (plane) or one (height).
    outlier_ratio_plane: float = 10.0
    outlier_ratio_height: float = 24.0
    min_fixes_for_outliers: int = 15
    max_outlier_rounds: int = 4


GNSS_NOISE = GnssNoiseSettings()
CORRELATION_TIME_S = GNSS_NOISE.correlation_time_s


@dataclass(frozen=True, eq=False)
class FixSample:
    """A fix, and the antenna's position by dead reckoning at that time."""

    t_ns: int
    noise_class: str
    factor: float  # noise relative to that of its class (HDOP)
    position: Floats  # (3,) east, north, up in m; up is NaN if it was not measured
    reckoned: complex | None  # m; None without dead reckoning
    distance: float  # m driven until then


# Windows


@dataclass(frozen=True, eq=False)
class _Window:
    """n fixes, projected onto the orthogonal complement of the unknowns b."""

    samples: Sequence[FixSample]
    Q: Complexes  # (n, m), columns orthogonal to X
    z: Complexes  # (m,), Q^H y: combinations of the fixes that do not depend on b
    covariances: Complexes  # (k, m, m), of z by component: white noise by class, correlated noise, path
    classes: tuple[str, ...]
    real: bool  # whether z has m real numbers, else 2 m
    seconds: float  # duration


def _plane_window(samples: Sequence[FixSample], correlated: Mapping[str, float]) -> _Window | None:
    if len(samples) < GNSS_NOISE.min_fixes:
        return None
    y = np.array([complex(each.position[0], each.position[1]) for each in samples])
    return _make_window(samples, y, _path(samples), _path_covariance(samples), correlated, real=False)


def _height_window(samples: Sequence[FixSample], correlated: Mapping[str, float]) -> _Window | None:
    samples = [each for each in samples if np.isfinite(each.position[2])]
    if len(samples) < GNSS_NOISE.min_fixes:
        return None
    y = np.array([complex(each.position[2]) for each in samples])
    distances = np.array([each.distance for each in samples])
    driven = distances - distances[0]
    if driven[-1] > 0:
        path, path_covariance = (
            driven.astype(np.complex128),
            GNSS_NOISE.slope_walk * _integrated_random_walk(driven),
        )
    else:
        path, path_covariance = _path(samples), _path_covariance(samples)
    return _make_window(samples, y, path, path_covariance, correlated, real=True)


def _seconds(samples: Sequence[FixSample]) -> Floats:
    return np.array([each.t_ns - samples[0].t_ns for each in samples]) / NS


def _path(samples: Sequence[FixSample]) -> Complexes:
    """Return the positions (n,) by dead reckoning, or times without it."""
    if any(each.reckoned is None for each in samples):
        return _seconds(samples).astype(np.complex128)
    return np.array([each.reckoned for each in samples], np.complex128)


def _path_covariance(samples: Sequence[FixSample]) -> Floats:
    """Return the covariance (n, n) of the path's errors, up to a factor."""
    settings = GNSS_NOISE
    if any(each.reckoned is None for each in samples):
        return settings.velocity_walk * _integrated_random_walk(_seconds(samples))
    driven = np.array([each.distance - samples[0].distance for each in samples])
    positions = settings.position_walk * np.minimum.outer(driven, driven)
    return positions + settings.heading_walk * _integrated_random_walk(driven)


def _integrated_random_walk(distance: Floats) -> Floats:
    """Return the covariance (n, n) of the integral of a random walk, at distances (n,) from its start."""
    first, second = np.minimum.outer(distance, distance), np.maximum.outer(distance, distance)
    return first**2 * (3 * second - first) / 6


def _make_window(
    samples: Sequence[FixSample],
    y: Complexes,
    path: Complexes,
    path_covariance: Floats,
    correlated: Mapping[str, float],
    *,
    real: bool,
) -> _Window | None:
    classes = tuple(dict.fromkeys(each.noise_class for each in samples))
    factors = np.array([each.factor for each in samples])
    white = [np.diag(factors**2 * [each.noise_class == name for each in samples]) for name in classes]
    scales = factors * [correlated[each.noise_class] for each in samples]
    seconds = _seconds(samples)
    lags = np.abs(np.subtract.outer(seconds, seconds))
    correlation = np.outer(scales, scales) * np.exp(-lags / GNSS_NOISE.correlation_time_s)
    X = np.column_stack([np.ones(len(y)), path - path.mean()])
    U, singular_values, _ = np.linalg.svd(X)
    rank = int(np.sum(singular_values > 1e-6 * max(singular_values[0], 1.0)))
    Q = U[:, rank:]
    if Q.shape[1] < 2:
        return None
    K = np.stack([*white, correlation, path_covariance]).astype(np.complex128)
    return _Window(samples, Q, Q.conj().T @ y, Q.conj().T @ K @ Q, classes, real, float(seconds[-1]))


# Variance components


@dataclass(frozen=True)
class GnssNoiseComponents:
    """Estimated sigmas of white noise by class and of correlated noise, in m."""

    white: dict[str, float]
    correlated: float
    counts: dict[str, float]  # degrees of freedom by class
    seconds: float  # duration of all windows
    outliers: list[FixSample]


def estimate_components(
    windows: Sequence[Sequence[FixSample]], correlated: Sequence[Mapping[str, float]]
) -> tuple[GnssNoiseComponents, GnssNoiseComponents]:
    """Return the noise components in the plane and of the heights, by windows of fixes.

    `correlated` has the relative sigmas of correlated noise by class: in the plane, and of heights.
    """
    return _fit(windows, _plane_window, correlated[0]), _fit(windows, _height_window, correlated[1])


def _fit(
    windows: Sequence[Sequence[FixSample]],
    make_window: Callable[[Sequence[FixSample], Mapping[str, float]], _Window | None],
    correlated: Mapping[str, float],
) -> GnssNoiseComponents:
    """Estimate, exclude outliers, and estimate again."""
    excluded: set[int] = set()
    found = _estimate((), correlated)
    for _ in range(GNSS_NOISE.max_outlier_rounds):
        remaining = [[each for each in window if id(each) not in excluded] for window in windows]
        usable = [each for samples in remaining if (each := make_window(samples, correlated)) is not None]
        found = _estimate(usable, correlated)
        if not found.outliers:
            break
        excluded |= {id(each) for each in found.outliers}
    return found


def _estimate(windows: Sequence[_Window], correlated: Mapping[str, float]) -> GnssNoiseComponents:
    """Return the REML estimate of the variance components by all windows."""
    settings = GNSS_NOISE
    names = [*correlated, "correlated", "path"]
    count = len(names)
    indices = [[*map(names.index, each.classes), count - 2, count - 1] for each in windows]
    theta = _initial_components(windows, count)
    traces = np.zeros(count)
    noise_floor, path_floor = (settings.min_std_m / 4) ** 2, 1e-6  # m2, and a factor of the path's covariance
    floors = np.array([noise_floor] * (count - 1) + [path_floor])
    for window, index in zip(windows, indices, strict=True):
        traces[index] += np.einsum("kii->k", window.covariances).real
    inverses: list[Complexes] = []
    for _ in range(settings.max_iterations):
        numerator, denominator, inverses = np.full(count, 1e-300), np.full(count, 1e-300), []
        for window, index in zip(windows, indices, strict=True):
            V = np.einsum("k,kij->ij", theta[index], window.covariances)
            W = np.linalg.inv(V + 1e-12 * float(np.trace(V).real) / len(V) * np.eye(len(V)))
            u = W @ window.z
            numerator[index] += np.einsum("i,kij,j->k", u.conj(), window.covariances, u).real
            # The variance is that of each axis; real numbers have one, complex ones two.
            dimension = 1.0 if window.real else 2.0
            denominator[index] += dimension * np.einsum("ij,kji->k", W, window.covariances).real
            inverses.append(W)
        before, theta = theta, np.maximum(theta * (numerator / denominator), floors)
        if np.abs((theta - before) * traces).max() < settings.tolerance * float(theta @ traces):
            break
    counts = dict.fromkeys(correlated, 0.0)
    for window in windows:
        for name, K in zip(window.classes, window.covariances, strict=False):
            counts[name] += (1.0 if window.real else 2.0) * float(np.linalg.matrix_rank(K, hermitian=True))
    sigmas = np.sqrt(theta)
    white = {name: float(sigmas[i]) for i, name in enumerate(correlated)}
    seconds = sum(each.seconds for each in windows)
    return GnssNoiseComponents(white, float(sigmas[-2]), counts, seconds, _outliers(windows, inverses))


def _outliers(windows: Sequence[_Window], inverses: Sequence[Complexes]) -> list[FixSample]:
    """Return the fixes with large residuals, each against the prediction by the others of its window."""
    settings = GNSS_NOISE
    if sum(len(each.samples) for each in windows) < settings.min_fixes_for_outliers:
        return []
    squared: list[float] = []
    for window, W in zip(windows, inverses, strict=True):
        weights = np.einsum("ij,jk,ik->i", window.Q, W, window.Q.conj()).real
        residuals = np.abs(window.Q @ (W @ window.z)) ** 2 / np.maximum(weights, 1e-300)
        squared += residuals.tolist()
    ratio = settings.outlier_ratio_height if windows[0].real else settings.outlier_ratio_plane
    limit = ratio * float(np.median(squared))
    samples = [each for window in windows for each in window.samples]
    return [each for each, size in zip(samples, squared, strict=True) if size > limit]


def _initial_components(windows: Sequence[_Window], count: int) -> Floats:
    """Return initial components (count,), each as large as the median of the observed variance."""
    observed = [float(np.median(np.abs(each.z) ** 2)) for each in windows]
    return np.full(count, max(float(np.median(observed)) if observed else 1.0, GNSS_NOISE.min_std_m**2))
