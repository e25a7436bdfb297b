"""What tells runs apart where no truth judges them: their outputs, and how far apart their paths are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from transect.base.clocks import NS
from transect.types import Trajectory

from .result import Result

PATH, TIMES = "path", "path_t_ns"
"""Arrays of a result that has no reference: positions (n, 3) in metres, and their times (n,)."""


def path_arrays(trajectory: Trajectory | None) -> dict[str, Any]:
    """Return the arrays by which a path can be compared with those of other runs."""
    return {} if trajectory is None else {PATH: trajectory.positions, TIMES: trajectory.t_ns}


def describe_differences(results: Sequence[Result]) -> list[str]:
    """Return a line for each run but the first: which outputs differ from the first's, and by how far."""
    bare = [
        result for result in results if not result.reference and "digest" in result.metrics.get("run", {})
    ]
    if len(bare) < 2:
        return []
    first, *others = bare
    return [f"{other.estimate} against {first.estimate}: {_difference(first, other)}" for other in others]


def _difference(first: Result, other: Result) -> str:
    one, two = first.metrics["run"], other.metrics["run"]
    if one["digest"] == two["digest"]:
        return "the same bytes"
    said = [_compare_outputs(one["outputs"], two["outputs"])]
    if PATH in first.arrays and PATH in other.arrays:
        said.append(_compare_paths(first.arrays, other.arrays))
    return "; ".join(said)


def _compare_outputs(one: Mapping[str, str], two: Mapping[str, str]) -> str:
    shared = [name for name in one if name in two]
    differ = [name for name in shared if one[name] != two[name]]
    text = f"of {len(shared)} outputs {len(differ)} differ" + (f" ({', '.join(differ)})" if differ else "")
    alone = sorted(set(one) ^ set(two))
    return text + (f", only one run has {', '.join(alone)}" if alone else "")


def _compare_paths(one: Mapping[str, Any], two: Mapping[str, Any]) -> str:
    """Say how far two paths are apart at the times of both; each begins where it begins."""
    times = np.intersect1d(one[TIMES], two[TIMES])
    if not len(times):
        return "their poses have no time in common"
    a, b = (side[PATH][np.searchsorted(side[TIMES], times)] for side in (one, two))
    apart = np.linalg.norm(a - b, axis=1)
    worst = int(np.argmax(apart))
    after = (times[worst] - times[0]) / NS
    return f"paths at most {apart[worst]:.3g} m apart (after {after:.1f} s), {apart[-1]:.3g} m at the end"
