"""`transect eval` of height maps: a GeoTIFF, a map of a recording, or one that a run wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from transect.errors import TransectError, UsageError

from ._eval_inputs import Judged

if TYPE_CHECKING:
    from transect.evaluation.map_report import MapInput

SUFFIXES = (".tif", ".tiff")


def is_map(source: str) -> bool:
    """Tell whether a person names a map: by its suffix, or as ``PATH:STREAM`` of one."""
    from transect.types import GridMap

    from ._eval_open import open_named

    path = Path(_of_run(source))
    if path.exists() or ":" not in source:
        return path.suffix.lower() in SUFFIXES
    recording, name = open_named(source)
    return bool(name) and recording[name].type is GridMap


def judged_maps(paths: Sequence[str], align: str, shift: str | None, command: str, strict: bool) -> Judged:
    """Compare each map with the first; what is taken out is a shift, and nothing with `align` none."""
    from transect.evaluation.map_report import evaluate_maps
    from transect.evaluation.result import Result

    from ._eval_open import distinct_names

    found = Judged()
    if len(paths) < 2:
        raise UsageError("there is nothing to compare", hint="transect eval REF.tif EST.tif")
    reference, given = open_map(paths[0], found, strict), _metres(shift)
    for path in paths[1:]:
        try:
            estimate = open_map(path, found, strict)
            result = evaluate_maps(
                reference, estimate, register=align != "none", shift=given, command=command
            )
        except TransectError as error:
            if len(paths) == 2:
                raise
            found.errors[path] = error
            result = Result(Path(path).name, reference.name, failure=error.what)
        found.results.append(result)
    names = distinct_names([result.estimate for result in found.results], paths[1:])
    found.results = [replace(r, estimate=name) for r, name in zip(found.results, names, strict=True)]
    return found


def _metres(text: str | None) -> tuple[float, ...]:
    try:
        parts = tuple(float(part) for part in (text or "0,0,0").split(","))
    except ValueError:
        parts = ()
    if len(parts) != 3:
        raise UsageError(f"--shift {text} is not three lengths", hint="--shift 500012.5,4178800,1920")
    return parts


def open_map(source: str, found: Judged, strict: bool) -> MapInput:
    """Open the only map that a path holds, or the named one."""
    from transect.evaluation.map_report import MapInput
    from transect.types import GridMap

    from ._eval_open import open_named

    recording, name = open_named(_of_run(source))
    maps = [s for s in recording if s.type is GridMap and name in ("", s.name)]
    samples = [(stream, row) for stream in maps for row in range(len(stream))]
    losses = tuple(loss for stream in maps for loss in stream.losses)
    if losses and strict:
        raise losses[0].error()
    if losses:
        found.losses[source] = losses
    if len(samples) != 1:
        names = ", ".join(stream.name for stream in maps)
        raise UsageError(
            f"{source} has {len(samples) or 'no'} maps",
            why=f"maps: {names}" if names else "",
            hint="PATH:STREAM",
        )
    stream, row = samples[0]
    called = recording.name if len(recording) == 1 else f"{recording.name}:{stream.name}"
    return MapInput(called, stream[row].payload, tuple(recording.provenance.sources))


def _of_run(source: str) -> str:
    """Return the file of a map that is named as the port of a run, ``RUN:PORT``; others as they are."""
    folder, _, port = source.rpartition(":")
    file = Path(folder) / f"{port}.tif"
    return str(file) if folder and file.is_file() else source
