"""What tells runs apart: their settings; and where no truth judges them, their outputs and paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from transect.base.clocks import NS
from transect.geometry import interpolation
from transect.types import Trajectory

from .result import Result

PATH, TIMES = "path", "path_t_ns"
"""Arrays of a result that has no reference: positions (n, 3) in metres, and their times (n,)."""


SETTINGS = "settings"
"""Of the metric `run`: parameters by node, and the streams of inputs (`wire`)."""
SHOWN = 6
"""Settings, or outputs, that are named in a line; the others are counted."""


def settings_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a user can set of a run, by its configuration."""
    wired = {name: each["stream"] for name, each in config.get("wiring", {}).items()}
    return {**config.get("parameters", {}), "wire": wired}


def describe_settings(results: Sequence[Result]) -> list[str]:
    """Return a line for each run whose settings differ from the first's: what each has, then the first.

    Of another implementation only the settings that both have are compared.
    """
    runs = [result for result in results if SETTINGS in result.metrics.get("run", {})]
    if len(runs) < 2:
        return []
    from transect.engine.digest import settings_that_differ

    first, lines = runs[0], list[str]()
    for other in runs[1:]:
        one, two = (each.metrics["run"][SETTINGS] for each in (first, other))
        differ = settings_that_differ(two, one)
        said = [
            f"{name} {a} instead of {b}" for name, (a, b) in differ.items() if a is not None and b is not None
        ]
        more = f", and {len(said) - SHOWN} more" if len(said) > SHOWN else ""
        if said:
            lines.append(f"{other.estimate} against {first.estimate}: {', '.join(said[:SHOWN])}{more}")
    return lines


def path_arrays(trajectory: Trajectory | None) -> dict[str, Any]:
    """Return the arrays by which a path can be compared with those of other runs."""
    return {} if trajectory is None else {PATH: trajectory.positions, TIMES: trajectory.t_ns}


def describe_differences(results: Sequence[Result]) -> list[str]:
    """Return a line for each run but the first: which outputs differ from the first's, and by how far.

    Runs that have no output in common are of unlike compounds, and are not compared: each is held against the
    first that has outputs of the same names, if there is one.
    """
    bare = [
        result for result in results if not result.reference and "digest" in result.metrics.get("run", {})
    ]
    if len(bare) < 2:
        return []
    lines: list[str] = []
    firsts: list[Result] = []
    for result in bare:
        outputs = result.metrics["run"]["outputs"]
        alike = next(
            (one for one in firsts if not outputs.keys().isdisjoint(one.metrics["run"]["outputs"])), None
        )
        if alike is None:
            firsts.append(result)
        else:
            lines.append(f"{result.estimate} against {alike.estimate}: {_difference(alike, result)}")
    if len(firsts) > 1:
        names = ", ".join(each.estimate for each in firsts)
        lines.append(f"not compared with each other, as they have no output in common: {names}")
    return lines


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
    text = f"of {len(shared)} outputs {len(differ)} differ" + (f" ({_list_some(differ)})" if differ else "")
    alone = sorted(set(one) ^ set(two))
    return text + (f", only one run has {_list_some(alone)}" if alone else "")


def _list_some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"


def _compare_paths(one: Mapping[str, Any], two: Mapping[str, Any]) -> str:
    """Say how far two paths are apart, at the times of the one with fewer poses; each begins where it begins.

    The other is interpolated: a smoother has poses at its keyframes, a filter at its ticks.
    """
    few, many = sorted((one, two), key=lambda side: len(side[TIMES]))
    if len(many[TIMES]) < 2 or (np.diff(many[TIMES]) <= 0).any():
        return "their poses cannot be compared"
    there = interpolation.interpolate_columns(many[TIMES], many[PATH], few[TIMES])
    shared = np.isfinite(there).all(axis=1) & np.isfinite(few[PATH]).all(axis=1)
    if not shared.any():
        return "their poses have no time in common"
    times = few[TIMES][shared]
    apart = np.linalg.norm(few[PATH][shared] - there[shared], axis=1)
    worst = int(np.argmax(apart))
    after = (times[worst] - times[0]) / NS
    return f"paths at most {apart[worst]:.3g} m apart (after {after:.1f} s), {apart[-1]:.3g} m at the end"
