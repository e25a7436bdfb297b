"""How wrong the wheels of a recording are, learnt from positions that are held out for some seconds.

The smoother is asked for them by all the others. What it misses has the covariance ``R + s P``: R is the
position's own, P what the wheels' noise leaves open between the others, and s the factor on the variances of
that noise, which is what one wants to know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS

from ..fusion.measurements import Place
from .factor_graph import SmootherNoise, Stretch, covariances_of, poses_of, solve, stretch_of
from .observations import Evidence
from .position_factors import Hung, hang

HELD_OUT_S = 15.0
"""Seconds of positions that are held out, in every 30."""
ASKED = (0.25, 0.5, 0.75)
"""Where in that time the smoother is asked."""
LEAST_ASKED = 3
"""Positions; by fewer nothing is learnt."""
FACTORS = np.geomspace(1 / 64, 16, 41)
"""Among which the right one is looked for."""
USUAL, SPREAD = 0.25, 1.2
"""The factor before anything was seen, and one sigma of its logarithm: what was told is an upper bound."""


def learn_wheel_factor(evidence: Evidence, noise: SmootherNoise, stretch: Stretch, values: Any) -> float:
    """Return the factor on the variances of the wheels' noise.

    Parameters
    ----------
    evidence : Evidence
        Without positions that were left out.
    stretch : Stretch
        The graph of all of it.
    values : gtsam.Values
        Its solution.
    """
    first, last = stretch.times[[0, -1]]
    places = [each for each in evidence.places if first <= each.t_ns <= last]
    hidden, asked = _hold_out(places, stretch)
    if len(asked) < LEAST_ASKED:
        return 1.0
    shown = [each for each, hide in zip(places, hidden, strict=True) if not hide]
    part = stretch_of(replace(evidence, places=shown), stretch.times, noise)
    hung = hang(asked, stretch.times, stretch.path, part.links.sigmas[:, 3] if part.links else None)
    return _best_factor(hung, *_predict(part, values, hung.keyframe))


def _hold_out(places: Sequence[Place], stretch: Stretch) -> tuple[list[bool], list[Place]]:
    """Return which positions are hidden, and those of them that are asked for."""
    t_ns = np.array([each.t_ns for each in places], np.int64)
    if len(t_ns) < 2:
        return [False] * len(t_ns), []
    window = ((t_ns - t_ns[0]) / NS // HELD_OUT_S).astype(np.int64)
    hidden = (window % 2 == 1) & (window < window[-1])
    asked: list[Place] = []
    for number in np.unique(window[hidden]):
        since = t_ns[0] + round(number * HELD_OUT_S * NS)
        if not _is_steady(stretch, since, since + round(HELD_OUT_S * NS)):
            continue
        inside = np.flatnonzero(window == number)
        wanted = since + (np.array(ASKED) * HELD_OUT_S * NS).astype(np.int64)
        nearest = inside[np.abs(t_ns[inside][:, None] - wanted).argmin(axis=0)]
        asked += [places[i] for i in np.unique(nearest)]
    return hidden.tolist(), asked


def _is_steady(stretch: Stretch, since_ns: int, until_ns: int) -> bool:
    """Tell whether wheels did not set off or leap in a time: that has a noise of its own."""
    assert stretch.links is not None
    span, edges = stretch.links.span, stretch.times
    inside = (edges[1:] > since_ns) & (edges[:-1] < until_ns)
    return not (span.doubted[inside].any() or span.leapt[inside].any()) and bool(span.known[inside].all())


def _predict(part: Stretch, values: Any, keyframes: Ints) -> tuple[Floats, Floats]:
    """Return poses (n, 4, 4) of all keyframes, and covariances (n, 6, 6) of those that are asked for."""
    values = solve(part, values)
    which = np.unique(keyframes)
    covariances = np.zeros((len(part.times), 6, 6))
    covariances[which] = covariances_of(part, values, which.tolist())
    return poses_of(values), covariances


def _best_factor(hung: Hung, poses: Floats, covariances: Floats) -> float:
    """Return the mean of the factor by what is missed of positions in the plane."""
    found, P = hung.predict(poses, covariances)
    off = (hung.position - found)[:, :2]
    R = hung.sigma[:, :2, None] ** 2 * np.eye(2)
    S = R + FACTORS[:, None, None, None] * P[:, :2, :2]
    squared = np.einsum("ni,knij,nj->kn", off, np.linalg.inv(S), off)
    likelihood = -(squared + np.linalg.slogdet(S)[1]).sum(axis=1) / 2
    posterior = likelihood - (np.log(FACTORS / USUAL) / SPREAD) ** 2 / 2
    weights = np.exp(posterior - posterior.max())
    return float(weights @ FACTORS / weights.sum())
