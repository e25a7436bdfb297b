"""Figures of results: path and errors of one, and comparisons of several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from transect.base.clocks import NS
from transect.draw.figures import Drawing, save_figures
from transect.errors import UsageError
from transect.geometry.ground import MapView, map_view
from transect.types import GridMap

from .inputs import find_output, open_named, split_run
from .result import Result, short_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from transect.draw.evaluation import Background

MAX_MAP_CELLS = 1500  # along a side of a map that is drawn
ALIGNED = {
    "none": "not aligned",
    "origin": "aligned at the first pose",
    "yaw": "aligned by heading and translation",
    "se3": "aligned by rotation and translation",
    "sim3": "aligned by rotation, translation and scale",
}
"""What was done to the estimate before it was compared."""
DPI = 200  # for print
Named = tuple[str, "Callable[[], Figure]"]
"""The name of a figure, and what makes it."""


def draw_results(results: Sequence[Result], folder: Path, ground: str | None = None) -> list[Path]:
    """Draw everything that the arrays of results allow into a folder; return the paths.

    Parameters
    ----------
    ground : str, optional
        A map in the references' frame, ``PATH`` or ``PATH:STREAM``, to draw below the trajectories.
    """
    return save_figures(plan_figures(results, folder, ground))


def plan_figures(results: Sequence[Result], folder: Path, ground: str | None = None) -> Iterator[Drawing]:
    """Yield the figures that `draw_results` draws; none is made before it is asked for."""
    usable = [result for result in results if "ate_translation" in result.arrays]
    background = None if ground is None else _background(ground, usable)
    figures = chain(
        _of_each(usable, background), _of_all(usable, background), _drifts(results), _maps(results)
    )
    return (Drawing(folder / f"{name}.png", make, DPI) for name, make in figures)


def _of_each(results: Sequence[Result], background: Background | None) -> Iterator[Named]:
    from transect.draw.evaluation import trajectory_figure

    for result in results:
        arrays = result.arrays
        rmse = result.metrics["ate"]["translation"]["rmse"]
        how = ALIGNED.get(result.alignment["mode"], result.alignment["mode"])
        title = f"{result.estimate}\nATE {rmse:.4g} m against {result.reference}\n{how}"
        make = partial(
            trajectory_figure,
            arrays["reference"],
            arrays["aligned"],
            arrays["ate_translation"],
            title=title,
            background=background,
            view=view_of(result),
        )
        yield f"trajectory_{short_name(_label(result, results))}", make


def _of_all(results: Sequence[Result], background: Background | None) -> Iterator[Named]:
    from transect.draw.evaluation import box_figure, trajectories_figure

    if len(results) > 1:
        errors = {_label(r, results): r.arrays["ate_translation"] for r in results}
        yield "boxes", partial(box_figure, errors, title=_against("errors", results))
    references = dict.fromkeys(r.reference for r in results)
    for reference in references:
        group = [r for r in results if r.reference == reference]
        ending = f"_{short_name(reference)}" if len(references) > 1 else ""
        yield f"errors{ending}", partial(_errors, group)
        if len(group) > 1:
            longest = max(group, key=lambda r: len(r.arrays["reference"]))
            paths = {r.estimate: r.arrays["aligned"] for r in group}
            yield f"trajectories{ending}", partial(
                trajectories_figure, longest.arrays["reference"], paths,
                title=_against("paths", group), background=background, view=view_of(longest),
            )  # fmt: skip


def view_of(result: Result) -> MapView:
    """Return how the reference is seen from above; results of older versions do not say it."""
    if "view" in result.truth:
        return MapView(**result.truth["view"])
    return map_view(result.arrays["reference"])


def _errors(group: Sequence[Result]) -> Figure:
    """Draw the errors of estimates of one reference over time, or over poses where there are no stamps."""
    from transect.draw.evaluation import error_figure

    errors = {r.estimate: r.arrays["ate_translation"] for r in group}
    metres = {r.estimate: r.arrays["distance"] for r in group}
    spans = [r.truth["duration_s"] or np.nan for r in group]  # None in a file, NaN before: no stamps
    timed = bool(np.isfinite(spans).all())
    seconds = {r.estimate: (r.arrays["t_ns"] - r.arrays["t_ns"][0]) / NS for r in group}
    if not timed:
        seconds = {name: np.arange(len(error), dtype=np.float64) for name, error in errors.items()}
    who = f" of {next(iter(errors))}" if len(errors) == 1 else ""
    return error_figure(seconds, metres, errors, title=_against(f"errors{who}", group), timed=timed)


def _drifts(results: Sequence[Result]) -> Iterator[Named]:
    from transect.draw.evaluation import DriftCurve, drift_figure

    curves = {
        _label(r, results): DriftCurve(
            *(r.arrays[f"drift_{part}"] for part in ("distance", "median", "high"))
        )
        for r in results
        if "drift_distance" in r.arrays
    }
    if curves:
        yield "drift", partial(drift_figure, curves, title=_against("drift", results))


def _maps(results: Sequence[Result]) -> Iterator[Named]:
    from transect.draw.clouds import map_figure

    for result in results:
        if "map_difference" not in result.arrays:
            continue
        difference, heights = result.arrays["map_difference"], result.arrays["map_reference"]
        a, b, west, d, e, north = result.arrays["map_transform"].tolist()
        rows, cols = difference.shape
        extent = (west, west + a * cols, north + e * rows, north)
        if b or d:  # of a map that lies askew, metres along its own sides
            extent = (0.0, float(np.hypot(a, d)) * cols, 0.0, float(np.hypot(b, e)) * rows)
        title = f"{result.estimate}: RMSE {result.metrics['map']['rmse']:.3g} m"
        make = partial(map_figure, difference, heights, extent, title=title)
        yield f"map_{short_name(_label(result, results))}", make


def _label(result: Result, results: Sequence[Result]) -> str:
    """Return the estimate's name, with the reference's where there are several."""
    several = len({r.reference for r in results}) > 1
    return f"{result.reference} {result.estimate}" if several else result.estimate


def _against(what: str, results: Sequence[Result]) -> str:
    """Return the title of a figure: what it shows, and the reference if it is the same for all."""
    references = {r.reference for r in results}
    return f"{what} against {references.pop()}" if len(references) == 1 else what


def _background(ground: str, results: Sequence[Result]) -> Background:
    """Return the first layer of a map; it must lie square in the references' frame, and under one of them."""
    from transect.draw.evaluation import Background

    run = split_run(ground)
    recording, name = open_named(find_output(*run, ".tif") if run else ground)
    found = [recording[name]] if name else [s for s in recording if s.type is GridMap and len(s)]
    if len(found) != 1 or found[0].type is not GridMap:
        names = ", ".join(stream.name for stream in found)
        several = (
            f"--map {recording.typed_streams(stream.name for stream in found)}" if len(found) > 1 else ""
        )
        hint = several or f"transect info {recording.typed} lists its streams"
        raise UsageError(f"{ground} is not one map", why=names, hint=hint)
    raster = found[0][0].payload
    a, b, west, d, e, north = raster.transform
    heights = next(iter(raster.layers.values()))
    if b or d or a <= 0 or e >= 0:
        raise UsageError(f"{ground} does not lie north up", hint="resample it first")
    rows, columns = heights.shape
    extent = (west, west + a * columns, north + e * rows, north)
    if not any(_under(extent, result.arrays["reference"]) for result in results):
        right, up = (f"from {low:.1f} to {high:.1f} m" for low, high in (extent[:2], extent[2:]))
        raise UsageError(
            f"{ground} does not lie under the reference",
            why=f"it reaches {right} and {up}",
            hint="a map in the frame of the reference",
        )
    step = max(1, max(rows, columns) // MAX_MAP_CELLS)
    return Background(heights[::step, ::step], extent)


def _under(extent: tuple[float, float, float, float], positions: NDArray[np.float64]) -> bool:
    """Return whether half of the positions (n, 3) are on the map."""
    x, y = positions[:, 0], positions[:, 1]
    inside = (x >= extent[0]) & (x <= extent[1]) & (y >= extent[2]) & (y <= extent[3])
    return bool(inside.mean() >= 0.5)
