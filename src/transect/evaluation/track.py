"""One filtered track from noisy positions, and velocities where they were measured: how far something moved.

Sums of steps between raw positions mostly measure noise: at 100 Hz, 8 mm of it are more than a metre for each
second at rest. Here the track is the most probable one (a Kalman smoother, solved as one banded system):

- the body moves with white acceleration, whose strength is the one that makes the measurements most probable;
- the white noise of positions is measured on the positions themselves (`white_noise`);
- fixes that are not RTK have an error that wanders (a first-order Gauss-Markov process), which is estimated;
- velocities count as one independent sample a second, however often they come.

The same filter is then given nothing but simulated noise, several times. What it makes of a body at rest
tells which displacements are significant; where none is, the body rests, and rest has no length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints, Mask

KNOT = 0.1
"""Seconds between the states of a track, unless samples are further apart."""
MOST_KNOTS = 200_000
LEAST_NOISE = 1e-6
"""m; no position is taken to be better."""
LEAST_WANDER = 1e-4
"""m from one knot to the next; no error wanders less."""
SPIKE = 0.05
"""m; nothing smaller is a wild position."""
FEW = 8
"""Fewer positions are taken as they are: they do not tell noise from motion."""
DRAWS = 16
"""How many times the filter is given simulated noise."""
SIGNIFICANT = 25.0
"""Sum of squares of a displacement, each axis by its deviation, from which on it is no noise: 5 sigma."""
LEAST_MOVE = 2e-3
"""m; a smaller displacement is none."""
ACCELERATIONS = 10.0 ** np.arange(-4.0, 2.6)
"""Densities of the white acceleration that are tried, m2/s3: from a train to a vehicle in rough terrain."""
VELOCITY_NOISE = 0.05
"""m/s, where a velocity comes without its deviation: that of a satellite receiver."""
VELOCITY_SECONDS = 1.0
"""Errors of velocities within this time are taken to be the same."""
SIZE = 3
"""Position, velocity, and the wandering error of the fix."""


@dataclass(frozen=True, eq=False)
class Positions:
    """Measured positions.

    Attributes
    ----------
    seconds : (n,)
        Ascending.
    places : (n, 3)
        m; no NaN.
    wander : (n, 3)
        Deviation of an error that wanders, m; 0 where the noise is white.
    forget : (n,)
        Time after which that error is another one, s.
    """

    seconds: Floats
    places: Floats
    wander: Floats
    forget: Floats

    def only(self, chosen: Mask) -> Positions:
        """Return some of the positions (n,)."""
        return Positions(self.seconds[chosen], self.places[chosen], self.wander[chosen], self.forget[chosen])


@dataclass(frozen=True, eq=False)
class Velocities:
    """Measured velocities in the axes of the positions: times (m,), m/s (m, 3), deviations (m, 3); or NaN."""

    seconds: Floats
    values: Floats
    std: Floats


@dataclass(frozen=True, eq=False)
class Track:
    """A filtered track.

    Attributes
    ----------
    seconds : (k,)
    places : (k, 3)
        m.
    noise : (draws, k, 3)
        What the filter makes of noise alone, m.
    """

    seconds: Floats
    places: Floats
    noise: Floats

    def significant(self, first: Ints, last: Ints) -> Mask:
        """Tell which displacements (m,) between knots are more than noise."""
        moved = self.places[last] - self.places[first]
        spread = np.sqrt(np.mean((self.noise[:, last] - self.noise[:, first]) ** 2, axis=0))
        far = np.linalg.norm(moved, axis=-1) >= LEAST_MOVE
        return far & (((moved / np.maximum(spread, LEAST_MOVE / 10)) ** 2).sum(axis=-1) > SIGNIFICANT)


# Noise


def white_noise(places: Floats) -> Floats:
    """Deviation (3,) in m of the white noise in positions (n, 3) in order of time, m.

    Third differences leave little of a smooth motion; their median is not moved by jumps. Steps of a coarse
    number count as noise of a twelfth of their square.
    """
    floor = np.full(3, LEAST_NOISE)
    if len(places) < FEW:
        return floor
    third = np.abs(np.diff(places, 3, axis=0))
    # The third difference of white noise has 1 + 9 + 9 + 1 times its variance.
    white = 1.4826 * np.median(third, axis=0) / np.sqrt(20)
    steps = np.abs(np.diff(places, axis=0))
    coarse = [_quantum(steps[:, axis]) for axis in range(3)]
    return np.maximum.reduce([floor, white, np.array(coarse) / np.sqrt(12)])


def find_spikes(places: Floats) -> Mask:
    """Tell which positions (n,) lie far from all their neighbours in time: wild single fixes.

    Far is ten times the white noise and three usual steps from the median of seven positions. A jump that
    stays is none.
    """
    if len(places) < FEW:
        return np.zeros(len(places), dtype=bool)
    padded = np.pad(places, ((3, 3), (0, 0)), mode="reflect")
    middle = np.median(np.lib.stride_tricks.sliding_window_view(padded, 7, axis=0), axis=-1)
    usual = np.median(np.abs(np.diff(places, axis=0)), axis=0)
    return np.any(np.abs(places - middle) > 10 * white_noise(places) + 3 * usual + SPIKE, axis=1)


def _quantum(steps: Floats) -> float:
    """Return the step of a number that is given in whole multiples of it, 0 if it is not.

    Of such a number, some steps are none: while it moves slowly, the value stays and jumps in turn.
    """
    moves = steps > 1e-9
    if np.mean(moves[1:] != moves[:-1]) < 0.1:
        return 0.0
    quantum = float(steps[moves].min())
    shares = steps[moves] / quantum
    return quantum if np.median(np.abs(shares - np.rint(shares))) < 0.05 else 0.0


# The filter


@dataclass(frozen=True, eq=False)
class _Knots:
    """What was measured, gathered at the k states of a track: one mean position and velocity each.

    Attributes
    ----------
    seconds : (k,)
    measured : (2, k, 3)
        Positions in m and velocities in m/s.
    weights : (2, k, 3)
        One by their variances; 0 where nothing was measured.
    late : (k,)
        How much later than the knot its mean position is, s.
    wanders : (k,)
        1 where the position has an error that wanders, else 0.
    spread, kept : (k, 3)
        Deviation of that error, m, and the share of it that is left from the knot before.
    """

    seconds: Floats
    measured: Floats
    weights: Floats
    late: Floats
    wanders: Floats
    spread: Floats
    kept: Floats


def filter_track(positions: Positions, velocities: Velocities | None = None) -> Track:
    """Return the most probable track, from the first to the last position.

    Parameters
    ----------
    positions : Positions
        At least one.
    velocities : Velocities, optional
        What lies outside of the time of the positions is not used.
    """
    positions = positions.only(~find_spikes(positions.places))
    t, y = positions.seconds, positions.places
    if len(t) < FEW or t[-1] <= t[0]:
        return Track(t, y, np.zeros((DRAWS, *y.shape)))
    if velocities is None:
        velocities = Velocities(np.zeros(0), np.zeros((0, 3)), np.zeros((0, 3)))
    inside = (velocities.seconds >= t[0]) & (velocities.seconds <= t[-1])
    velocities = Velocities(velocities.seconds[inside], velocities.values[inside], velocities.std[inside])
    knots = _gather(positions, velocities)
    right = _right_sides(knots, np.concatenate([knots.measured[None], _simulate(knots)]))
    states = np.empty((1 + DRAWS, len(knots.seconds), SIZE, 3))
    for axes in ((0, 1), (2,)):
        density = _most_probable(knots, right[:1], axes)
        for axis in axes:
            solved, _ = _solve(_system(knots, axis, density), right[..., axis])
            states[..., axis] = solved.reshape(states.shape[:-1])
    places = _extend(states, (knots.seconds[0] - t[0], t[-1] - knots.seconds[-1]))
    return Track(np.concatenate([t[:1], knots.seconds, t[-1:]]), y[0] + places[0], places[1:])


def _extend(states: Floats, seconds: tuple[float, float]) -> Floats:
    """Positions (draws, k + 2, 3) of states, with one at either end: knots lie between samples."""
    places, speeds = states[:, :, 0], states[:, :, 1]
    before, after = places[:, :1] - seconds[0] * speeds[:, :1], places[:, -1:] + seconds[1] * speeds[:, -1:]
    return np.concatenate([before, places, after], axis=1)


def _gather(positions: Positions, velocities: Velocities) -> _Knots:
    t, tv = positions.seconds, velocities.seconds
    number, seconds = _place_knots(t, tv)
    count, of_sample, of_velocity = len(seconds), number[: len(t)], number[len(t) :]
    kind = np.column_stack([positions.wander, positions.forget])
    # The first sample of each knot, or of the last knot before it that has one.
    own = np.bincount(of_sample, minlength=count) > 0
    held = np.maximum.accumulate(np.where(own, np.searchsorted(of_sample, np.arange(count)), 0))
    # A knot has one wandering error: samples of another kind that share it are left out.
    used = np.all(kind == kind[held][of_sample], axis=1)
    counts = np.bincount(of_sample[used], minlength=count)
    y = _means(of_sample[used], positions.places[used] - positions.places[0], count)
    late = np.where(counts > 0, _means(of_sample[used], t[used, None], count)[:, 0] - seconds, 0.0)
    kinds = kind[held]
    step = np.diff(seconds, prepend=seconds[0])
    gained = _wandering(kinds, y, counts > 0, step)
    white = white_noise(positions.places) ** 2 / np.maximum(counts, 1)[:, None] + gained / 3
    spread = np.where(kinds[:, :3] > 0, kinds[:, :3], 1.0)
    kept = np.sqrt(1 - np.minimum(gained / spread**2, 1.0))
    kept[np.any(np.diff(kinds, axis=0, prepend=np.nan) != 0, axis=1)] = 0.0
    v, weights = _mean_velocities(velocities, of_velocity, count)
    return _Knots(
        seconds,
        np.stack([y, v]),
        np.stack([np.where(counts[:, None] > 0, 1 / white, 0.0), weights]),
        late,
        np.where((kinds[:, :3] > 0).any(axis=1), 1.0, 0.0),
        spread,
        kept,
    )


def _place_knots(t: Floats, tv: Floats) -> tuple[Ints, Floats]:
    """Return the knot (n + m,) of each position and each velocity, and the times (k,) of the knots."""
    steps = [np.median(np.diff(axis)) for axis in (t, tv) if len(axis) > 1]
    spacing = max(KNOT, float(min(steps)), (t[-1] - t[0]) / MOST_KNOTS)
    every = np.concatenate([t, tv])
    _, number = np.unique(np.floor((every - t[0]) / spacing + 1e-6).astype(np.int64), return_inverse=True)
    seconds = np.bincount(number, every) / np.bincount(number)
    # Two knots that nearly touch would make the system stiff.
    number = (np.cumsum(np.diff(seconds, prepend=-np.inf) > spacing / 4) - 1)[number]
    return number, np.bincount(number, every) / np.bincount(number)


def _means(number: Ints, values: Floats, count: int) -> Floats:
    """Means (count, columns) of the values (n, columns) with each number (n,); 0 where there are none."""
    counts = np.maximum(np.bincount(number, minlength=count), 1)
    return np.column_stack([np.bincount(number, column, count) / counts for column in values.T])


def _wandering(kinds: Floats, y: Floats, own: Mask, step: Floats) -> Floats:
    """Variance (k, 3) by which the wandering error changes from the knot before, m2.

    It follows from the kind of the fix, unless the positions are smoother than that: a receiver that filters
    its fixes errs more slowly.
    """
    gained = np.zeros(y.shape)
    for kind in np.unique(kinds, axis=0):
        rows = np.all(kinds == kind, axis=1)
        if not kind[:3].any():
            continue
        spacing = float(np.median(step[rows])) or KNOT  # of the first knot alone there is no step
        variance = kind[:3] ** 2 * 2 * spacing / kind[3]
        if np.count_nonzero(rows & own) >= 3 * FEW:
            # Third differences of a random walk have 1 + 4 + 1 times the variance of its steps.
            variance = np.minimum(variance, np.mean(np.diff(y[rows & own], 3, axis=0) ** 2, axis=0) / 6)
        gained[rows] = np.maximum(variance, LEAST_WANDER**2) * (step[rows, None] / spacing)
    return gained


def _mean_velocities(velocities: Velocities, number: Ints, count: int) -> tuple[Floats, Floats]:
    """Mean velocities (count, 3) and their weights (count, 3)."""
    seconds, std = velocities.seconds, velocities.std
    known = np.isfinite(velocities.values)
    if not known.any():
        return np.zeros((count, 3)), np.zeros((count, 3))
    same = max(1.0, VELOCITY_SECONDS * len(seconds) / max(float(np.ptp(seconds)), KNOT))
    variance = np.where(np.isfinite(std) & (std > 0), std, VELOCITY_NOISE) ** 2 * same
    weight = np.where(known, 1 / variance, 0.0)
    counts = np.bincount(number, minlength=count)[:, None]
    total = _means(number, weight, count)
    mean = _means(number, weight * np.nan_to_num(velocities.values), count) / np.where(total > 0, total, 1.0)
    return mean, total * counts


def _right_sides(knots: _Knots, measured: Floats) -> Floats:
    """Right sides (draws, k * 3, 3) of positions and velocities (draws, 2, k, 3)."""
    place, speed = np.moveaxis(knots.weights * measured, 1, 0)
    sides = [place, place * knots.late[:, None] + speed, place * knots.wanders[:, None]]
    return np.stack(sides, axis=2).reshape(len(measured), -1, 3)


def _system(knots: _Knots, axis: int, density: float) -> Floats:
    """Upper bands (6, k * 3) of the normal matrix of one axis, for a density of the acceleration."""
    count = len(knots.seconds)
    bands = np.zeros((2 * SIZE, count * SIZE))
    (place, speed), late, wanders = knots.weights[..., axis], knots.late, knots.wanders
    diagonal = np.zeros((count, SIZE, SIZE))
    diagonal[:, 0, 0], diagonal[:, 0, 1], diagonal[:, 0, 2] = place, place * late, place * wanders
    diagonal[:, 1, 1], diagonal[:, 1, 2] = place * late**2 + speed, place * late * wanders
    diagonal[:, 2, 2] = place * wanders
    step = np.diff(knots.seconds)
    # Of white acceleration, integrated twice: Q = q [[s^3/3, s^2/2], [s^2/2, s]], and its inverse.
    pp, pv, vv = 12 / step**3 / density, -6 / step**2 / density, 4 / step / density
    diagonal[1:, 0, 0] += pp
    diagonal[1:, 0, 1] += pv
    diagonal[1:, 1, 1] += vv
    diagonal[:-1, 0, 0] += pp
    diagonal[:-1, 0, 1] += pp * step + pv
    diagonal[:-1, 1, 1] += pp * step**2 + 2 * pv * step + vv
    between = np.zeros((count - 1, SIZE, SIZE))
    between[:, 0, 0], between[:, 0, 1] = -pp, -pv
    between[:, 1, 0], between[:, 1, 1] = -(pp * step + pv), -(pv * step + vv)
    # The wandering error; where there is none, any number will do.
    spread, kept = knots.spread[:, axis], knots.kept[1:, axis]
    gained = 1 / (spread[1:] ** 2 * np.maximum(1 - kept**2, 1e-9))
    diagonal[0, 2, 2] += 1 / spread[0] ** 2
    diagonal[1:, 2, 2] += gained
    diagonal[:-1, 2, 2] += kept**2 * gained
    between[:, 2, 2] = -kept * gained
    last = 2 * SIZE - 1
    for i in range(SIZE):
        for j in range(SIZE):
            if i <= j:
                bands[last + i - j, j::SIZE] = diagonal[:, i, j]
            bands[last + i - (j + SIZE), j + SIZE :: SIZE] = between[:, i, j]
    return bands


def _solve(bands: Floats, right: Floats) -> tuple[Floats, float]:
    """Return solutions (draws, k * 3), and the logarithm of the determinant."""
    from scipy.linalg import cho_solve_banded, cholesky_banded

    factor = cholesky_banded(bands, check_finite=False)
    solution = cho_solve_banded((factor, False), right.T, check_finite=False).T
    return solution, 2 * float(np.log(factor[-1]).sum())


def _most_probable(knots: _Knots, right: Floats, axes: tuple[int, ...]) -> float:
    """Return the density of the acceleration, m2/s3, that makes the measurements most probable."""
    if len(knots.seconds) < FEW:
        return float(ACCELERATIONS[-1])
    squares = (knots.weights * knots.measured**2).sum(axis=(0, 1))

    def probability(density: float) -> float:
        total = 0.0
        for axis in axes:
            solution, logarithm = _solve(_system(knots, axis, density), right[..., axis])
            cost = squares[axis] - float(solution[0] @ right[0, :, axis])
            total -= cost / 2 + (len(knots.seconds) - 1) * np.log(density) + logarithm / 2
        return total

    best = max(ACCELERATIONS.tolist(), key=probability)
    return max((best / 10**0.5, best, best * 10**0.5), key=probability)


def _simulate(knots: _Knots) -> Floats:
    """Noise (draws, 2, k, 3) of positions and velocities, as the filter takes it to be."""
    rng = np.random.default_rng(len(knots.seconds))
    std = 1 / np.sqrt(np.where(knots.weights > 0, knots.weights, np.inf))
    noise = rng.standard_normal((DRAWS, *std.shape)) * std
    if knots.wanders.any():
        wander = rng.standard_normal((DRAWS, *knots.spread.shape)) * knots.spread
        for k in range(1, len(knots.seconds)):
            kept = knots.kept[k]
            wander[:, k] = kept * wander[:, k - 1] + np.sqrt(1 - kept**2) * wander[:, k]
        noise[:, 0] += wander * knots.wanders[:, None]
    return noise


# Rest and motion


def hold_at_rest(track: Track, stride: float) -> Track:
    """Return a track that stands still before it first moves and after it last did, and never wobbles.

    Where it rests in between, it goes straight from where it stopped to where it starts again.

    Parameters
    ----------
    stride : float
        Shortest time, s, in which a motion is looked for; a slow one shows only after several.
    """
    moving = np.zeros(len(track.seconds), dtype=bool)
    for first, last in _moves(track, stride):
        moving[first : last + 1] = True
    if not moving.any():
        moving[0] = True
    held = [_hold(track.seconds, moving, values) for values in (track.places, *track.noise)]
    return Track(track.seconds, held[0], np.array(held[1:]))


def _hold(seconds: Floats, moving: Mask, values: Floats) -> Floats:
    """Return values (k, 3), where nothing moves taken from a straight line between the moves around it."""
    return np.column_stack([np.interp(seconds, seconds[moving], column[moving]) for column in values.T])


def _moves(track: Track, stride: float) -> Iterator[tuple[int, int]]:
    """Yield the stretches (first, last knot) in which a track moves; in the others it rests.

    A stretch is a stride, or several where only together they are significant: a slow motion.
    """
    strides = np.floor((track.seconds - track.seconds[0]) / stride + 1e-6).astype(np.int64)
    nodes = np.append(np.flatnonzero(np.diff(strides, prepend=-1)), len(strides) - 1)
    if len(nodes) > 2 and track.seconds[nodes[-1]] - track.seconds[nodes[-2]] < stride / 2:
        nodes = np.delete(nodes, -2)
    runs, scale = [(0, len(nodes) - 1)], 1
    while runs:
        waiting: list[tuple[int, int]] = []
        for begin, end in runs:
            edges = np.append(np.arange(begin, end - scale + 1, scale), end)
            first, last = nodes[edges[:-1]], nodes[edges[1:]]
            significant = track.significant(first, last)
            yield from zip(first[significant].tolist(), last[significant].tolist(), strict=True)
            waiting += _rest_of(edges, significant)
        scale *= 2
        runs = [(begin, end) for begin, end in waiting if end - begin >= scale]


def _rest_of(edges: Ints, significant: Mask) -> list[tuple[int, int]]:
    """Return the runs (begin, end) of windows that are not significant."""
    quiet = np.concatenate([[False], ~significant, [False]])
    turns = np.flatnonzero(np.diff(quiet))
    return [(int(edges[a]), int(edges[b])) for a, b in zip(turns[::2], turns[1::2], strict=True)]
