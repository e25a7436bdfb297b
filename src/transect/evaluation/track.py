"""Smoothed track from noisy positions, and velocities if they were measured: path length and displacement.

Sums of steps between raw positions mostly measure noise: at 100 Hz, noise of 8 mm adds more than a metre of
path for each second at rest. Here the track is the most probable one (a Kalman smoother, solved as one banded
system):

- the body moves with white acceleration, whose density maximises the likelihood of the measurements;
- the white noise of positions is estimated from the positions themselves (`white_noise`);
- fixes that are not RTK have a drifting error (a first-order Gauss-Markov process), which is a state;
- velocities count as one independent sample per second, at any rate.

The same filter is then run on simulated noise several times. Its output for a body at rest determines which
displacements are significant. Where none is, the body rests, and rest adds no length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints, Mask


@dataclass(frozen=True)
class TrackSettings:
    """Settings of the track smoother."""

    knot_s: float = 0.1  # time between the states of a track, unless samples are further apart
    max_knots: int = 200_000
    min_samples: int = 8  # with fewer positions noise and motion cannot be separated: no filtering
    min_noise_m: float = 1e-6  # smallest standard deviation of a position
    min_drift_m: float = 1e-4  # smallest standard deviation of the drift between two knots
    min_spike_m: float = 0.05  # smallest deviation of an outlier
    # Densities of the white acceleration that are tried, m2/s3: from a train to a vehicle in rough terrain
    acceleration_densities: tuple[float, ...] = tuple(10.0**n for n in range(-4, 3))
    velocity_noise_mps: float = 0.05  # where no standard deviation is given: that of a satellite receiver
    velocity_correlation_s: float = 1.0  # errors of velocities within this time are considered equal
    noise_draws: int = 16  # simulated noise sequences from which the significance of motion is estimated
    # Sum of squares of a displacement in standard deviations, from which on it is significant: 5 sigma
    min_significance: float = 25.0
    min_displacement_m: float = 2e-3  # smaller displacements are not significant


TRACK = TrackSettings()
STATE_SIZE = 3  # position, velocity, and the drifting error of the fix


@dataclass(frozen=True, eq=False)
class Positions:
    """Measured positions."""

    seconds: Floats  # (n,), ascending
    values: Floats  # (n, 3), m; no NaN
    drift_std: Floats  # (n, 3), standard deviation of the drifting error, m; 0 if the noise is white
    drift_time: Floats  # (n,), correlation time of that error, s

    def select(self, rows: Mask) -> Positions:
        """Return some of the positions (n,)."""
        return Positions(self.seconds[rows], self.values[rows], self.drift_std[rows], self.drift_time[rows])


@dataclass(frozen=True, eq=False)
class Velocities:
    """Measured velocities in the axes of the positions."""

    seconds: Floats  # (m,)
    values: Floats  # (m, 3), m/s; NaN where not measured
    std: Floats  # (m, 3), standard deviations, m/s; NaN where unknown


@dataclass(frozen=True, eq=False)
class SmoothedTrack:
    """A smoothed track."""

    seconds: Floats  # (k,)
    positions: Floats  # (k, 3), m
    noise: Floats  # (draws, k, 3), output of the filter for simulated noise, m

    def is_significant(self, first: Ints, last: Ints) -> Mask:
        """Return which displacements (m,) between knots are significant."""
        moved = self.positions[last] - self.positions[first]
        spread = np.sqrt(np.mean((self.noise[:, last] - self.noise[:, first]) ** 2, axis=0))
        is_displaced = np.linalg.norm(moved, axis=-1) >= TRACK.min_displacement_m
        normalised = moved / np.maximum(spread, TRACK.min_displacement_m / 10)
        return is_displaced & ((normalised**2).sum(axis=-1) > TRACK.min_significance)


# Noise


def white_noise(positions: Floats) -> Floats:
    """Return the standard deviation (3,) in m of the white noise in positions (n, 3) in order of time.

    Third differences remove a smooth motion, and their median ignores jumps. The quantisation step q of a
    coarse number adds the variance q^2 / 12.
    """
    floor = np.full(3, TRACK.min_noise_m)
    if len(positions) < TRACK.min_samples:
        return floor
    third = np.abs(np.diff(positions, 3, axis=0))
    # The third difference of white noise has 1 + 9 + 9 + 1 times its variance.
    white = 1.4826 * np.median(third, axis=0) / np.sqrt(20)
    steps = np.abs(np.diff(positions, axis=0))
    coarse = [_quantum(steps[:, axis]) for axis in range(3)]
    return np.maximum.reduce([floor, white, np.array(coarse) / np.sqrt(12)])


def find_spikes(positions: Floats) -> Mask:
    """Return which positions (n,) are single outliers among their neighbours in time.

    An outlier differs from the median of seven positions by more than ten times the white noise plus three
    median steps. A permanent jump is not an outlier.
    """
    if len(positions) < TRACK.min_samples:
        return np.zeros(len(positions), dtype=bool)
    padded = np.pad(positions, ((3, 3), (0, 0)), mode="reflect")
    middle = np.median(np.lib.stride_tricks.sliding_window_view(padded, 7, axis=0), axis=-1)
    median_step = np.median(np.abs(np.diff(positions, axis=0)), axis=0)
    limit = 10 * white_noise(positions) + 3 * median_step + TRACK.min_spike_m
    return np.any(np.abs(positions - middle) > limit, axis=1)


def _quantum(steps: Floats) -> float:
    """Return the quantisation step of a coordinate, 0 if it is not quantised.

    While a quantised coordinate changes slowly, some of its steps are 0.
    """
    moves = steps > 1e-9
    if np.mean(moves[1:] != moves[:-1]) < 0.1:
        return 0.0
    quantum = float(steps[moves].min())
    multiples = steps[moves] / quantum
    return quantum if np.median(np.abs(multiples - np.rint(multiples))) < 0.05 else 0.0


# The filter


@dataclass(frozen=True, eq=False)
class _Knots:
    """The measurements at the k states of a track: one mean position and velocity each."""

    seconds: Floats  # (k,)
    measured: Floats  # (2, k, 3), positions in m and velocities in m/s
    weights: Floats  # (2, k, 3), inverse variances; 0 where nothing was measured
    delay: Floats  # (k,), time of the mean position after the knot, s
    drifts: Floats  # (k,), 1 where the position has a drifting error, else 0
    drift_std: Floats  # (k, 3), standard deviation of that error, m
    correlation: Floats  # (k, 3), of that error with the knot before


def filter_track(positions: Positions, velocities: Velocities | None = None) -> SmoothedTrack:
    """Return the most probable track, from the first to the last position.

    Parameters
    ----------
    positions : Positions
        At least one.
    velocities : Velocities, optional
        Those before the first or after the last position are ignored.
    """
    positions = positions.select(~find_spikes(positions.values))
    t, y = positions.seconds, positions.values
    if len(t) < TRACK.min_samples or t[-1] <= t[0]:
        return SmoothedTrack(t, y, np.zeros((TRACK.noise_draws, *y.shape)))
    if velocities is None:
        velocities = Velocities(np.zeros(0), np.zeros((0, 3)), np.zeros((0, 3)))
    inside = (velocities.seconds >= t[0]) & (velocities.seconds <= t[-1])
    velocities = Velocities(velocities.seconds[inside], velocities.values[inside], velocities.std[inside])
    knots = _gather(positions, velocities)
    right = _right_sides(knots, np.concatenate([knots.measured[None], _simulate(knots)]))
    states = np.empty((1 + TRACK.noise_draws, len(knots.seconds), STATE_SIZE, 3))
    for axes in ((0, 1), (2,)):
        density = _most_likely_density(knots, right[:1], axes)
        for axis in axes:
            solved, _ = _solve(_system(knots, axis, density), right[..., axis])
            states[..., axis] = solved.reshape(states.shape[:-1])
    moved = _extend(states, (knots.seconds[0] - t[0], t[-1] - knots.seconds[-1]))
    return SmoothedTrack(np.concatenate([t[:1], knots.seconds, t[-1:]]), y[0] + moved[0], moved[1:])


def _extend(states: Floats, seconds: tuple[float, float]) -> Floats:
    """Return positions (draws, k + 2, 3) of states, extrapolated to the first and the last sample."""
    positions, speeds = states[:, :, 0], states[:, :, 1]
    before = positions[:, :1] - seconds[0] * speeds[:, :1]
    after = positions[:, -1:] + seconds[1] * speeds[:, -1:]
    return np.concatenate([before, positions, after], axis=1)


def _gather(positions: Positions, velocities: Velocities) -> _Knots:
    t, tv = positions.seconds, velocities.seconds
    number, seconds = _place_knots(t, tv)
    count, of_sample, of_velocity = len(seconds), number[: len(t)], number[len(t) :]
    kind = np.column_stack([positions.drift_std, positions.drift_time])
    # The first sample of each knot, or of the last knot before it that has one
    own = np.bincount(of_sample, minlength=count) > 0
    held = np.maximum.accumulate(np.where(own, np.searchsorted(of_sample, np.arange(count)), 0))
    # A knot has one drifting error: samples of another kind at the same knot are ignored.
    used = np.all(kind == kind[held][of_sample], axis=1)
    counts = np.bincount(of_sample[used], minlength=count)
    y = _means(of_sample[used], positions.values[used] - positions.values[0], count)
    delay = np.where(counts > 0, _means(of_sample[used], t[used, None], count)[:, 0] - seconds, 0.0)
    kinds = kind[held]
    step = np.diff(seconds, prepend=seconds[0])
    drift = _drift_variance(kinds, y, counts > 0, step)
    white = white_noise(positions.values) ** 2 / np.maximum(counts, 1)[:, None] + drift / 3
    spread = np.where(kinds[:, :3] > 0, kinds[:, :3], 1.0)
    correlation = np.sqrt(1 - np.minimum(drift / spread**2, 1.0))
    correlation[np.any(np.diff(kinds, axis=0, prepend=np.nan) != 0, axis=1)] = 0.0
    v, weights = _mean_velocities(velocities, of_velocity, count)
    return _Knots(
        seconds,
        np.stack([y, v]),
        np.stack([np.where(counts[:, None] > 0, 1 / white, 0.0), weights]),
        delay,
        np.where((kinds[:, :3] > 0).any(axis=1), 1.0, 0.0),
        spread,
        correlation,
    )


def _place_knots(t: Floats, tv: Floats) -> tuple[Ints, Floats]:
    """Return the knot (n + m,) of each position and each velocity, and the times (k,) of the knots."""
    steps = [np.median(np.diff(axis)) for axis in (t, tv) if len(axis) > 1]
    spacing = max(TRACK.knot_s, float(min(steps)), (t[-1] - t[0]) / TRACK.max_knots)
    every = np.concatenate([t, tv])
    _, number = np.unique(np.floor((every - t[0]) / spacing + 1e-6).astype(np.int64), return_inverse=True)
    seconds = np.bincount(number, every) / np.bincount(number)
    # Two knots at almost the same time would make the system ill-conditioned.
    number = (np.cumsum(np.diff(seconds, prepend=-np.inf) > spacing / 4) - 1)[number]
    return number, np.bincount(number, every) / np.bincount(number)


def _means(number: Ints, values: Floats, count: int) -> Floats:
    """Return the means (count, columns) of the values (n, columns) of each number (n,).

    0 if there are none.
    """
    counts = np.maximum(np.bincount(number, minlength=count), 1)
    return np.column_stack([np.bincount(number, column, count) / counts for column in values.T])


def _drift_variance(kinds: Floats, y: Floats, own: Mask, step: Floats) -> Floats:
    """Return the variance (k, 3), m2, of the change of the drifting error since the knot before.

    It follows from the kind of the fix, unless the positions are smoother: the error of a receiver that
    filters its fixes changes more slowly.
    """
    drift = np.zeros(y.shape)
    for kind in np.unique(kinds, axis=0):
        rows = np.all(kinds == kind, axis=1)
        if not kind[:3].any():
            continue
        spacing = float(np.median(step[rows])) or TRACK.knot_s  # the first knot alone has no step
        variance = kind[:3] ** 2 * 2 * spacing / kind[3]
        if np.count_nonzero(rows & own) >= 3 * TRACK.min_samples:
            # Third differences of a random walk have 1 + 4 + 1 times the variance of its steps.
            variance = np.minimum(variance, np.mean(np.diff(y[rows & own], 3, axis=0) ** 2, axis=0) / 6)
        drift[rows] = np.maximum(variance, TRACK.min_drift_m**2) * (step[rows, None] / spacing)
    return drift


def _mean_velocities(velocities: Velocities, number: Ints, count: int) -> tuple[Floats, Floats]:
    """Return mean velocities (count, 3) and their weights (count, 3)."""
    seconds, std = velocities.seconds, velocities.std
    known = np.isfinite(velocities.values)
    if not known.any():
        return np.zeros((count, 3)), np.zeros((count, 3))
    duration = max(float(np.ptp(seconds)), TRACK.knot_s)
    correlated = max(1.0, TRACK.velocity_correlation_s * len(seconds) / duration)
    variance = np.where(np.isfinite(std) & (std > 0), std, TRACK.velocity_noise_mps) ** 2 * correlated
    weight = np.where(known, 1 / variance, 0.0)
    counts = np.bincount(number, minlength=count)[:, None]
    total = _means(number, weight, count)
    mean = _means(number, weight * np.nan_to_num(velocities.values), count) / np.where(total > 0, total, 1.0)
    return mean, total * counts


def _right_sides(knots: _Knots, measured: Floats) -> Floats:
    """Return the right sides (draws, k * 3, 3) of positions and velocities (draws, 2, k, 3)."""
    position, speed = np.moveaxis(knots.weights * measured, 1, 0)
    sides = [position, position * knots.delay[:, None] + speed, position * knots.drifts[:, None]]
    return np.stack(sides, axis=2).reshape(len(measured), -1, 3)


def _system(knots: _Knots, axis: int, density: float) -> Floats:
    """Return the upper bands (6, k * 3) of the normal matrix of one axis, for an acceleration density."""
    count = len(knots.seconds)
    bands = np.zeros((2 * STATE_SIZE, count * STATE_SIZE))
    (position, speed), delay, drifts = knots.weights[..., axis], knots.delay, knots.drifts
    diagonal = np.zeros((count, STATE_SIZE, STATE_SIZE))
    diagonal[:, 0, 0], diagonal[:, 0, 1] = position, position * delay
    diagonal[:, 0, 2] = position * drifts
    diagonal[:, 1, 1], diagonal[:, 1, 2] = position * delay**2 + speed, position * delay * drifts
    diagonal[:, 2, 2] = position * drifts
    step = np.diff(knots.seconds)
    # White acceleration integrated twice: Q = q [[s^3/3, s^2/2], [s^2/2, s]], and its inverse.
    pp, pv, vv = 12 / step**3 / density, -6 / step**2 / density, 4 / step / density
    diagonal[1:, 0, 0] += pp
    diagonal[1:, 0, 1] += pv
    diagonal[1:, 1, 1] += vv
    diagonal[:-1, 0, 0] += pp
    diagonal[:-1, 0, 1] += pp * step + pv
    diagonal[:-1, 1, 1] += pp * step**2 + 2 * pv * step + vv
    between = np.zeros((count - 1, STATE_SIZE, STATE_SIZE))
    between[:, 0, 0], between[:, 0, 1] = -pp, -pv
    between[:, 1, 0], between[:, 1, 1] = -(pp * step + pv), -(pv * step + vv)
    # The drifting error; where there is none, its values have no effect.
    spread, correlation = knots.drift_std[:, axis], knots.correlation[1:, axis]
    information = 1 / (spread[1:] ** 2 * np.maximum(1 - correlation**2, 1e-9))
    diagonal[0, 2, 2] += 1 / spread[0] ** 2
    diagonal[1:, 2, 2] += information
    diagonal[:-1, 2, 2] += correlation**2 * information
    between[:, 2, 2] = -correlation * information
    last = 2 * STATE_SIZE - 1
    for i in range(STATE_SIZE):
        for j in range(STATE_SIZE):
            if i <= j:
                bands[last + i - j, j::STATE_SIZE] = diagonal[:, i, j]
            bands[last + i - (j + STATE_SIZE), j + STATE_SIZE :: STATE_SIZE] = between[:, i, j]
    return bands


def _solve(bands: Floats, right: Floats) -> tuple[Floats, float]:
    """Return solutions (draws, k * 3), and the logarithm of the determinant."""
    from scipy.linalg import cho_solve_banded, cholesky_banded

    factor = cholesky_banded(bands, check_finite=False)
    solution = cho_solve_banded((factor, False), right.T, check_finite=False).T
    return solution, 2 * float(np.log(factor[-1]).sum())


def _most_likely_density(knots: _Knots, right: Floats, axes: tuple[int, ...]) -> float:
    """Return the acceleration density, m2/s3, that maximises the likelihood of the measurements."""
    densities = TRACK.acceleration_densities
    if len(knots.seconds) < TRACK.min_samples:
        return densities[-1]
    squares = (knots.weights * knots.measured**2).sum(axis=(0, 1))

    def log_likelihood(density: float) -> float:
        total = 0.0
        for axis in axes:
            solution, logarithm = _solve(_system(knots, axis, density), right[..., axis])
            cost = squares[axis] - float(solution[0] @ right[0, :, axis])
            total -= cost / 2 + (len(knots.seconds) - 1) * np.log(density) + logarithm / 2
        return total

    best = max(densities, key=log_likelihood)
    return max((best / 10**0.5, best, best * 10**0.5), key=log_likelihood)


def _simulate(knots: _Knots) -> Floats:
    """Return simulated noise (draws, 2, k, 3) of positions and velocities, as the filter models it."""
    rng = np.random.default_rng(len(knots.seconds))
    std = 1 / np.sqrt(np.where(knots.weights > 0, knots.weights, np.inf))
    noise = rng.standard_normal((TRACK.noise_draws, *std.shape)) * std
    if knots.drifts.any():
        drift = rng.standard_normal((TRACK.noise_draws, *knots.drift_std.shape)) * knots.drift_std
        for k in range(1, len(knots.seconds)):
            correlation = knots.correlation[k]
            drift[:, k] = correlation * drift[:, k - 1] + np.sqrt(1 - correlation**2) * drift[:, k]
        noise[:, 0] += drift * knots.drifts[:, None]
    return noise


# Rest and motion


def hold_at_rest(track: SmoothedTrack, stride: float) -> SmoothedTrack:
    """Return a track with constant position at rest.

    A rest between two motions is a straight line from the end of one to the start of the next.

    Parameters
    ----------
    stride : float
        Shortest time, s, over which motion is tested; slow motion is significant only over several.
    """
    moving = np.zeros(len(track.seconds), dtype=bool)
    for first, last in _moves(track, stride):
        moving[first : last + 1] = True
    if not moving.any():
        moving[0] = True
    held = [_hold(track.seconds, moving, values) for values in (track.positions, *track.noise)]
    return SmoothedTrack(track.seconds, held[0], np.array(held[1:]))


def _hold(seconds: Floats, moving: Mask, values: Floats) -> Floats:
    """Return values (k, 3), interpolated linearly between motions while nothing moves."""
    return np.column_stack([np.interp(seconds, seconds[moving], column[moving]) for column in values.T])


def _moves(track: SmoothedTrack, stride: float) -> Iterator[tuple[int, int]]:
    """Yield the intervals (first, last knot) in which a track moves; in the others it rests.

    An interval is a stride, or several that are significant only together: a slow motion.
    """
    strides = np.floor((track.seconds - track.seconds[0]) / stride + 1e-6).astype(np.int64)
    nodes = np.append(np.flatnonzero(np.diff(strides, prepend=-1)), len(strides) - 1)
    if len(nodes) > 2 and track.seconds[nodes[-1]] - track.seconds[nodes[-2]] < stride / 2:
        nodes = np.delete(nodes, -2)
    runs, scale = [(0, len(nodes) - 1)], 1
    while runs:
        pending: list[tuple[int, int]] = []
        for begin, end in runs:
            edges = np.append(np.arange(begin, end - scale + 1, scale), end)
            first, last = nodes[edges[:-1]], nodes[edges[1:]]
            significant = track.is_significant(first, last)
            yield from zip(first[significant].tolist(), last[significant].tolist(), strict=True)
            pending += _rest_of(edges, significant)
        scale *= 2
        runs = [(begin, end) for begin, end in pending if end - begin >= scale]


def _rest_of(edges: Ints, significant: Mask) -> list[tuple[int, int]]:
    """Return the runs (begin, end) of windows that are not significant."""
    quiet = np.concatenate([[False], ~significant, [False]])
    turns = np.flatnonzero(np.diff(quiet))
    return [(int(edges[a]), int(edges[b])) for a, b in zip(turns[::2], turns[1::2], strict=True)]
