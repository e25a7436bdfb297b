"""The noise of satellite fixes that state none, or state a constant that is wrong, estimated from the fixes.

The antenna's path by dead reckoning differs from the fixes by an unknown similarity (origin, heading, scale)
and by errors of both. Within a window the fixes y are modelled as::

    y = X b + e,    cov(e) = sum_k theta_k K_k

X has the similarity (of the heights: level and slope). The variance components theta are those of

- white noise, one per type of fix;
- noise that stays alike for half a minute (multipath, ionosphere): an Ornstein-Uhlenbeck process in time;
- errors of the dead reckoning (of the heights: the ground), which add up along the way: a random walk, and an
  integrated one, as headings and slopes are.

They maximise the restricted likelihood (REML) of all windows, by multiplicative steps to a fixed point of its
score (as in Zhou et al., MM algorithms for variance components models, J. Comput. Graph. Stat. 2019). Without
a dead reckoning the path is straight and even, and its errors are an integrated random walk in time. East and
north are one complex number, so that the similarity is linear.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.base.clocks import NS

Complexes = NDArray[np.complex128]

MIN_PLACES = 5
"""Of one type, before their noise is estimated."""
CORRELATION_S = 30.0
"""Correlation time of the noise that lasts: multipath and ionosphere change within minutes at most."""
MIN_STD_M = 0.02
"""Smaller noise is not assumed: stamps jitter, levers are rounded."""
STEPS, ENOUGH = 60, 3e-4
"""Most steps, and the change of each component's part of the variance below which no more are needed."""
OUTLIER = {False: 10.0, True: 24.0}
"""Squared residual of a fix over its variance, in medians of all, beyond which it is left out: one in a
thousand of chi-square with two degrees of freedom (complex numbers) or one (real ones)."""
MIN_JUDGED = 15
"""Fixes, before any is left out."""
MAX_ROUNDS = 4
"""Of leaving out."""
WALK, BEND = 0.02**2, 0.01**2
"""m2/m and rad2/m: random walks of position and heading of a dead reckoning, up to a common factor."""
HILL = 0.02**2
"""1/m: random walk of the slope of the ground, up to a factor."""
UNEVEN = 0.5**2
"""m2/s3: random walk of the velocity where there is no dead reckoning, up to a factor."""


@dataclass(frozen=True, eq=False)
class Sample:
    """A fix, and where the dead reckoning had its antenna then."""

    t_ns: int
    kind: str
    factor: float  # on the noise of its kind (HDOP)
    place: Floats  # (3,) east, north, up in m; up is NaN where it is not measured
    reckoned: complex | None  # m; None without a dead reckoning
    way: float  # m, driven until then


# Windows


@dataclass(frozen=True, eq=False)
class _Window:
    """What is left of n fixes beside the unknowns b.

    Attributes
    ----------
    samples : sequence of Sample
    Q : (n, m) complex
        Its columns are orthogonal to X.
    z : (m,) complex
        Q^H y: combinations of the fixes that do not depend on b.
    covariances : (k, m, m) complex
        Of z for each component: white noise by type, then lasting noise, then the reckoning's.
    kinds : tuple of str
        The types.
    real : bool
        Whether z has m real numbers, else 2 m.
    seconds : float
        From the first to the last fix.
    """

    samples: Sequence[Sample]
    Q: Complexes
    z: Complexes
    covariances: Complexes
    kinds: tuple[str, ...]
    real: bool
    seconds: float


def _level_window(samples: Sequence[Sample], shape: Mapping[str, float]) -> _Window | None:
    if len(samples) < MIN_PLACES:
        return None
    y = np.array([complex(each.place[0], each.place[1]) for each in samples])
    moved = _track_of(samples)
    strays = _strays(samples)
    return _window_of(samples, y, moved, strays, shape, real=False)


def _height_window(samples: Sequence[Sample], shape: Mapping[str, float]) -> _Window | None:
    samples = [each for each in samples if np.isfinite(each.place[2])]
    if len(samples) < MIN_PLACES:
        return None
    y = np.array([complex(each.place[2]) for each in samples])
    way = np.array([each.way for each in samples])
    moved, at = (way - way[0]).astype(np.complex128), way - way[0]
    strays = HILL * _integrated_walk(at)
    if not at[-1] > 0:
        moved, strays = _track_of(samples), _strays(samples)
    return _window_of(samples, y, moved, strays, shape, real=True)


def _seconds(samples: Sequence[Sample]) -> Floats:
    return np.array([each.t_ns - samples[0].t_ns for each in samples]) / NS


def _track_of(samples: Sequence[Sample]) -> Complexes:
    """Return the reckoned places (n,), or times where nothing is reckoned."""
    if any(each.reckoned is None for each in samples):
        return _seconds(samples).astype(np.complex128)
    return np.array([each.reckoned for each in samples], np.complex128)


def _strays(samples: Sequence[Sample]) -> Floats:
    """Return the covariance (n, n) of the errors of the reckoned places."""
    if any(each.reckoned is None for each in samples):
        return UNEVEN * _integrated_walk(_seconds(samples))
    way = np.array([each.way - samples[0].way for each in samples])
    return WALK * np.minimum.outer(way, way) + BEND * _integrated_walk(way)


def _integrated_walk(at: Floats) -> Floats:
    """Return the covariance (n, n) of the integral of a random walk, at distances (n,) from its start."""
    first, second = np.minimum.outer(at, at), np.maximum.outer(at, at)
    return first**2 * (3 * second - first) / 6


def _window_of(
    samples: Sequence[Sample],
    y: Complexes,
    moved: Complexes,
    strays: Floats,
    shape: Mapping[str, float],
    *,
    real: bool,
) -> _Window | None:
    kinds = tuple(dict.fromkeys(each.kind for each in samples))
    factors = np.array([each.factor for each in samples])
    white = [np.diag(factors**2 * [each.kind == kind for each in samples]) for kind in kinds]
    lasts = factors * [shape[each.kind] for each in samples]
    seconds = _seconds(samples)
    apart = np.abs(np.subtract.outer(seconds, seconds))
    lasting = np.outer(lasts, lasts) * np.exp(-apart / CORRELATION_S)
    unknowns = np.column_stack([np.ones(len(y)), moved - moved.mean()])
    axes, sizes, _ = np.linalg.svd(unknowns)
    rank = int(np.sum(sizes > 1e-6 * max(sizes[0], 1.0)))
    Q = axes[:, rank:]
    if Q.shape[1] < 2:
        return None
    K = np.stack([*white, lasting, strays]).astype(np.complex128)
    return _Window(samples, Q, Q.conj().T @ y, Q.conj().T @ K @ Q, kinds, real, float(seconds[-1]))


# Variance components


@dataclass(frozen=True)
class Components:
    """Sigmas found: of white noise by type, of lasting noise; how many numbers, and seconds, tell them.

    `outliers` are the fixes that do not fit them.
    """

    white: dict[str, float]
    lasting: float
    counts: dict[str, float]
    seconds: float
    outliers: list[Sample]


def estimate_components(
    windows: Sequence[Sequence[Sample]], shapes: Sequence[Mapping[str, float]]
) -> tuple[Components, Components]:
    """Return the components of the noise in the plane, and of the heights, by windows of fixes.

    `shapes`, for both: by type, how large its lasting noise is beside that of others.
    """
    return _fit(windows, _level_window, shapes[0]), _fit(windows, _height_window, shapes[1])


def _fit(
    windows: Sequence[Sequence[Sample]],
    make: Callable[[Sequence[Sample], Mapping[str, float]], _Window | None],
    shape: Mapping[str, float],
) -> Components:
    """Estimate, leave out fixes that do not fit, and estimate again."""
    left_out: set[int] = set()
    found = _estimate((), shape)
    for _ in range(MAX_ROUNDS):
        kept = [[each for each in window if id(each) not in left_out] for window in windows]
        found = _estimate([each for some in kept if (each := make(some, shape)) is not None], shape)
        if not found.outliers:
            break
        left_out |= {id(each) for each in found.outliers}
    return found


def _estimate(windows: Sequence[_Window], shape: Mapping[str, float]) -> Components:
    """Return the variance components that are likeliest by all windows."""
    names = [*shape, "lasting", "strays"]
    count = len(names)
    places = [[*map(names.index, each.kinds), count - 2, count - 1] for each in windows]
    theta = _first_guess(windows, len(names))
    sizes, least = np.zeros(len(names)), np.full(len(names), MIN_STD_M**2 / 16)
    least[-1] = 1e-6
    for window, at in zip(windows, places, strict=True):
        sizes[at] += np.einsum("kii->k", window.covariances).real
    inverses: list[Complexes] = []
    for _ in range(STEPS):
        gain, need, inverses = np.full(len(names), 1e-300), np.full(len(names), 1e-300), []
        for window, at in zip(windows, places, strict=True):
            V = np.einsum("k,kij->ij", theta[at], window.covariances)
            W = np.linalg.inv(V + 1e-12 * float(np.trace(V).real) / len(V) * np.eye(len(V)))
            u = W @ window.z
            gain[at] += np.einsum("i,kij,j->k", u.conj(), window.covariances, u).real
            # The variance is that of each axis; real numbers have one, complex ones two.
            need[at] += (1.0 if window.real else 2.0) * np.einsum("ij,kji->k", W, window.covariances).real
            inverses.append(W)
        step = gain / need
        before, theta = theta, np.maximum(theta * step, least)
        if np.abs((theta - before) * sizes).max() < ENOUGH * float(theta @ sizes):
            break
    counts = dict.fromkeys(shape, 0.0)
    for window in windows:
        for kind, K in zip(window.kinds, window.covariances, strict=False):
            counts[kind] += (1.0 if window.real else 2.0) * float(np.linalg.matrix_rank(K, hermitian=True))
    sigmas = np.sqrt(theta)
    white = {kind: float(sigmas[i]) for i, kind in enumerate(shape)}
    seconds = sum(each.seconds for each in windows)
    return Components(white, float(sigmas[-2]), counts, seconds, _outliers(windows, inverses))


def _outliers(windows: Sequence[_Window], inverses: Sequence[Complexes]) -> list[Sample]:
    """Return the fixes that are further off than others, each by what the others say of it."""
    if sum(len(each.samples) for each in windows) < MIN_JUDGED:
        return []
    squared: list[float] = []
    for window, W in zip(windows, inverses, strict=True):
        weights = np.einsum("ij,jk,ik->i", window.Q, W, window.Q.conj()).real
        errors = np.abs(window.Q @ (W @ window.z)) ** 2 / np.maximum(weights, 1e-300)
        squared += errors.tolist()
    limit = OUTLIER[windows[0].real] * float(np.median(squared))
    samples = [each for window in windows for each in window.samples]
    return [each for each, size in zip(samples, squared, strict=True) if size > limit]


def _first_guess(windows: Sequence[_Window], count: int) -> Floats:
    """Return components (count,) that all explain as much as was seen, in the median window."""
    seen = [float(np.median(np.abs(each.z) ** 2)) for each in windows]
    return np.full(count, max(float(np.median(seen)) if seen else 1.0, MIN_STD_M**2))
