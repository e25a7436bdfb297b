"""How wrong each source is, by how far all of them agree.

What is left of a measurement in the solution is smaller than its error by what the solution took from it:
its redundancy is 1 - a P a', with its whitened row a and the covariance P of all variables. The squares of
what is left, over the redundancies of the same kind of error, are the factor by which its variance was told
wrong (variance components: Helmert 1907, Foerstner 1979). It is solved again with it, until it stays.

This needs no truth, and three sources: of two that disagree nobody knows which is wrong. Sources that share
an error agree in it: two odometries by one camera are one source.
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
    BY_CALIBRATION,
    BY_MOTION,
    BY_POSE,
    BY_WANDER,
    BY_WHEELS,
    DOUBTED,
    OF_MOTION,
    OF_POSE,
    OF_WHEELS,
    ON_MAP,
    SmootherNoise,
    Stretch,
    doubts_beside,
    name_doubts,
    name_rows,
    solve,
    stretch_of,
)
from .observations import Evidence

ROUNDS, HASTE = 8, 1.5
"""Rounds of weighing, and the power of each step: the plain one is short, as it underrates what it took."""
STRIDE = 10.0
"""Times a variance that one step is at most: where an error leaves no trace beside another one, only what was
told is known of it, and it would leap back and forth between that and nothing."""
LOOSE = 1e4
"""Factor on the variance of straying in the very first solution."""
TOLD = {"wheels": 1.0}
TOLD_OTHERWISE = 0.1
"""Measurements that what was told of an error counts for: of wheels much is known beforehand, while what an
odometry tells of itself, or what is in doubt, is to be found out."""
WEIGHED = "weighed: "
"""What sentences about weights begin with."""
MUCH = 3.0
"""Times the usual error from which on what is in doubt hardly counts."""
SIZES = {"x": 6, "y": 6, "s": 6, "c": 4, "v": 3, "b": 6}
"""Numbers of each variable of a keyframe, in the order of its block."""
PLACES = dict(zip(SIZES, np.cumsum([0, *SIZES.values()]).tolist(), strict=False))
BLOCK = sum(SIZES.values())


def weigh(evidence: Evidence, noise: SmootherNoise, times: Ints, values: Any) -> tuple[SmootherNoise, Any]:
    """Return the noise with a factor on each error's variance, and a solution with it.

    Parameters
    ----------
    evidence : Evidence
        Of wheels, a motion and an IMU; what is in doubt has a factor of its own in each second.
    times : (n,)
        Of keyframes, ns.
    values : gtsam.Values
        First values of all variables.
    """
    # Poses that may stray far at first hide no better solution from where it begins.
    loose = replace(noise, factors=dict.fromkeys(BY_POSE, LOOSE))
    values = solve(stretch_of(evidence, times, loose), values)
    for _ in range(ROUNDS):
        stretch = stretch_of(evidence, times, noise)
        values = solve(stretch, values)
        factors = dict(noise.factors)
        for name, (squares, redundancy) in _tally(stretch, values, evidence).items():
            first = DOUBTED if name.startswith("doubted") else 1.0
            now = factors.get(name, first)
            told = TOLD.get(name.partition(":")[0], TOLD_OTHERWISE)
            step = ((squares + told * first / now) / (redundancy + told)) ** HASTE
            factors[name] = now * float(np.clip(step, 1 / STRIDE, STRIDE))
        noise = replace(noise, factors=factors)
    return noise, values


def describe(factors: Mapping[str, float]) -> list[str]:
    """Return factors on variances as sentences about errors, for a person."""
    if not factors:
        return []
    sure = {name: np.sqrt(each) for name, each in factors.items() if not name.startswith("doubted")}
    said = {
        name.replace(":", ""): f"{sure[name]:.2g}"
        for name in (*BY_MOTION[::3], BY_WANDER[-1], *BY_WHEELS)
        if name in sure
    }
    told = ", ".join(f"{name} {times}" for name, times in said.items())
    sentences = [f"{WEIGHED}errors, in times of what was told: {told}"]
    doubts: dict[str, dict[str, float]] = defaultdict(dict)
    for name, factor in factors.items():
        if name.startswith("doubted"):
            _, sensor, window = name.partition(":")[0].split()
            doubts[sensor][window] = max(float(np.sqrt(factor)), doubts[sensor].get(window, 0.0))
    for sensor, times in doubts.items():
        good, worst = sum(each < MUCH for each in times.values()), max(times.values())
        what = f"{sensor} agreed with the rest in {good} of {len(times)} s in doubt, and counts there"
        sentences.append(f"{WEIGHED}{what}; at worst it errs {worst:.0f} times as much as it should")
    return sentences


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of one constraint, near the solution.

    Attributes
    ----------
    keyframe : int
        The first that it joins.
    by : (m, 2 BLOCK)
        Derivatives by the variables of that keyframe and the next.
    left : (m,)
        What is left of the measurement, in sigmas.
    names : tuple of str
        Of the errors of each row; "" of those that are not weighed.
    """

    keyframe: int
    by: Floats
    left: Floats
    names: tuple[str, ...]


def _tally(stretch: Stretch, values: Any, evidence: Evidence) -> dict[str, list[float]]:
    """Return by the name of an error: the squares of what is left, and the redundancies, summed up."""
    rows = list(rows_of(stretch, values, evidence))
    covariances = invert_near_diagonal(rows, len(stretch.times))
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for each in rows:
        if not any(each.names):
            continue
        redundancy = 1.0 - np.einsum("ij,jk,ik->i", each.by, covariances[each.keyframe], each.by)
        for name, left, free in zip(each.names, each.left, redundancy, strict=True):
            if name:
                sums[name][0] += float(left) ** 2
                sums[name][1] += max(float(free), 0.0)
    return dict(sums)


def rows_of(stretch: Stretch, values: Any, evidence: Evidence) -> Iterator[Rows]:
    """Give the rows of all constraints."""
    g, linear = gtsam(), stretch.linear(values)
    doubts = {
        "y": name_doubts(evidence.doubted, ("motion",), stretch.times),
        "c": name_doubts(evidence.doubted, ("wheels", "odometry"), stretch.times),
    }
    last = len(stretch.times) - 2
    for number in range(linear.size()):
        factor = linear.at(number)
        keys = [(chr(g.symbolChr(key)), g.symbolIndex(key) - stretch.first) for key in factor.keys()]  # noqa: SIM118
        A, left = factor.jacobian()
        first = min(index for _, index in keys)
        i = min(first, last)
        by, column = np.zeros((len(left), 2 * BLOCK)), 0
        for letter, index in keys:
            place = (index - i) * BLOCK + PLACES[letter]
            by[:, place : place + SIZES[letter]] = A[:, column : column + SIZES[letter]]
            column += SIZES[letter]
        yield Rows(i, by, left, _name_rows([letter for letter, _ in keys], first, doubts, stretch.on_map))


def _name_rows(letters: list[str], i: int, doubts: dict[str, list[str]], on_map: bool) -> tuple[str, ...]:
    """Return the names of the errors of a constraint's rows, by the variables that it joins.

    What is in doubt of an odometry are its steps, and on a map its poses.
    """
    match sorted(letters):
        case ["c", "x", "x"]:
            return name_rows(doubts["c"][i], OF_WHEELS) if doubts["c"][i] else BY_WHEELS
        case ["c", "c"]:
            return BY_CALIBRATION
        case ["x", "y"] | ["s", "x", "y"]:
            doubt = doubts_beside(doubts["y"])[i] if on_map else ""
            return name_rows(doubt, OF_POSE) if doubt else BY_POSE
        case ["s"] | ["s", "s"]:
            return BY_WANDER
        case ["y", "y"]:
            if on_map:
                return ON_MAP
            return name_rows(doubts["y"][i], OF_MOTION) if doubts["y"][i] else BY_MOTION
        case _:
            return ()


def invert_near_diagonal(rows: list[Rows], count: int) -> Floats:
    """Return covariances (count - 1, 2 BLOCK, 2 BLOCK) of each two keyframes that follow each other.

    The information matrix joins neighbours alone, so that what is needed of its inverse comes from blocks:
    forwards all that was before is eliminated, backwards all that comes after is put in again.
    """
    diagonal, beside = np.zeros((count, BLOCK, BLOCK)), np.zeros((count - 1, BLOCK, BLOCK))
    for each in rows:
        H, i = each.by.T @ each.by, each.keyframe
        diagonal[i] += H[:BLOCK, :BLOCK]
        beside[i] += H[:BLOCK, BLOCK:]
        diagonal[i + 1] += H[BLOCK:, BLOCK:]
    for block in diagonal:
        absent = np.diagonal(block) == 0
        block[absent, absent] = 1.0
    inverses = np.empty_like(diagonal)
    inverses[0] = np.linalg.inv(diagonal[0])
    for i in range(1, count):
        inverses[i] = np.linalg.inv(diagonal[i] - beside[i - 1].T @ inverses[i - 1] @ beside[i - 1])
    covariances, later = np.empty((count - 1, 2 * BLOCK, 2 * BLOCK)), inverses[-1]
    for i in range(count - 2, -1, -1):
        gain = inverses[i] @ beside[i]
        across, here = -gain @ later, inverses[i] + gain @ later @ gain.T
        covariances[i] = np.block([[here, across], [across.T, later]])
        later = here
    return covariances
