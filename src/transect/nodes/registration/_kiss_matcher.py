"""KISS-Matcher behind types: the transform on which most of many doubtful matches agree (Lim, ICRA 2025)."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.errors import MissingExtraError
from transect.geometry import se3

NOISE_LIMIT = 1.0
"""Metres: larger bounds on the noise are no use, and the library would write a warning to the terminal."""
SOLVER_GAIN = 0.75
"""Of the noise, the bound in the solver; the library's own."""


@dataclass(frozen=True)
class Solution:
    """``T_sink_source`` (4, 4), whether the library believes it, and how many matches agree with it."""

    matrix: Floats
    valid: bool
    inliers: int


def solve_matches(source: Floats, sink: Floats, noise: float) -> Solution:
    """Find the transform on which most matches agree: row i of source (n, 3) was matched with row i of sink.

    Parameters
    ----------
    noise : float
        Metres: how far a right match may be off.
    """
    matcher = _matcher(noise)
    rows = [list(each.astype(np.float32)) for each in (source, sink)]
    return _solution(matcher, matcher.prune_and_solve(*rows))


def _matcher(noise: float) -> Any:
    try:
        library = import_module("kiss_matcher")
    except ModuleNotFoundError as error:
        raise MissingExtraError("kiss_matcher", "fusion") from error
    most = 0.999 * NOISE_LIMIT / noise
    settings = library.KISSMatcherConfig(
        voxel_size=noise,
        use_voxel_sampling=False,
        robin_noise_bound_gain=min(1.0, most),
        solver_noise_bound_gain=min(SOLVER_GAIN, most),
    )
    return library.KISSMatcher(settings)


def _solution(matcher: Any, found: Any) -> Solution:
    matrix = se3.from_matrix(np.array(found.rotation), np.array(found.translation).reshape(3))
    valid = bool(found.valid) and bool(np.isfinite(matrix).all())
    return Solution(matrix if valid else np.eye(4), valid, int(matcher.get_num_final_inliers()))
