"""A height map against a reference map, as one result: numbers, notes, and what a figure is drawn from."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect._version import __version__
from transect.base.arrays import Floats
from transect.errors import GeometryError, UsageError
from transect.evaluation.inputs import LEVELLED, Reader, find_output, list_outputs, open_named, split_run
from transect.evaluation.result import Result
from transect.geometry import rotations
from transect.geometry.rasters import ELEVATION, cut_to_known, heights_of
from transect.recording import Loss
from transect.types import GridMap, Provenance, SourceFile

from .height_maps import NO_SHIFT, MapErrors, map_errors

METRIC = "map"
SUFFIXES = (".tif", ".tiff")


@dataclass(frozen=True, eq=False)
class MapInput:
    """One side of a comparison: a map, what to call it, and the files that were read."""

    name: str
    grid: GridMap
    files: tuple[SourceFile, ...] = ()
    notes: tuple[str, ...] = ()
    source: str = ""  # as the user typed it


def evaluate_maps(
    reference: MapInput,
    estimate: MapInput,
    *,
    register: bool = True,
    shift: ArrayLike = NO_SHIFT,
    reach: float | None = None,
    command: str = "",
) -> Result:
    """Compare a height map with its reference.

    Parameters
    ----------
    register : bool
        Remove the shift in x, y, z that fits best.
    shift : (3,)
        Initial shift (m) of the estimate.
    reach : float, optional
        Search radius (m) of the shift; ten cells of the reference by default.

    Raises
    ------
    GeometryError, UsageError
        If they cannot be compared.
    """
    errors = map_errors(reference.grid, estimate.grid, register=register, shift=shift, reach=reach)
    moved = np.eye(4)
    moved[:3, 3] = errors.shift
    known = int(np.isfinite(heights_of(reference.grid).values).sum())
    return Result(
        estimate.name,
        reference.name,
        {METRIC: _metric(errors)},
        figure_arrays(reference.grid, errors),
        {"mode": "shift" if register else "none", "matrix": moved, "scale": 1.0},
        {"matched": errors.statistics.count, "candidates": known, "by": "cells", "offset_s": 0.0},
        notes=(
            *_describe_shift(errors),
            *_describe_frames(reference, estimate),
            *errors.notes,
            *reference.notes,
            *estimate.notes,
        ),
        provenance=Provenance(
            tuple(dict.fromkeys((*reference.files, *estimate.files))),
            f"transect {__version__}",
            "",
            command,
            {"register": register, "shift": np.asarray(shift, np.float64).tolist(), "reach": reach},
        ),
    )


def _metric(errors: MapErrors) -> dict[str, Any]:
    return errors.statistics.to_dict() | {
        "coverage": errors.coverage,
        "shift_m": errors.shift,
        "deviation_shift_m": errors.deviations,
        "before": None if errors.before is None else errors.before.to_dict(),
        "scores": [{**vars(score), "f_score": score.f_score} for score in errors.scores],
    }


def _describe_shift(errors: MapErrors) -> tuple[str, ...]:
    """Return the shift that was removed, in the words of `transect maps align`."""
    if errors.before is None:
        return ()
    parts = (
        f"{axis} {value:.3f}" + ("" if np.isnan(sigma) else f" +- {sigma:.2g}")
        for axis, value, sigma in zip("xyz", errors.shift, errors.deviations, strict=True)
    )
    return (f"a shift was removed: {', '.join(parts)} m; RMSE before {errors.before.rmse:.3g} m",)


def _describe_frames(reference: MapInput, estimate: MapInput) -> tuple[str, ...]:
    """Return a note if the maps are in different frames whose rotation is unknown."""
    map_frame, reference_frame = estimate.grid.frame, reference.grid.frame
    if map_frame == reference_frame or not map_frame or (estimate.grid.crs and reference.grid.crs):
        return ()
    begins = ", which begins level where the robot started" if map_frame == LEVELLED else ""
    other = (
        f"the reference in {reference_frame!r}"
        if reference_frame
        else "the frame of the reference is not known"
    )
    sides = shlex.join([reference.source or "REF", estimate.source or "MAP"])
    unknown = "a rotation between them is not removed"
    found = f"transect maps align {sides} estimates it if the ground has relief"
    return (f"the map is in its own frame {map_frame!r}{begins}; {other}: {unknown}, {found}",)


def figure_arrays(reference: GridMap, errors: MapErrors) -> dict[str, NDArray[Any]]:
    """Return differences, heights of the reference and its transform, cropped to the differences."""
    layers = {
        "map_difference": errors.difference.astype(np.float32),
        "map_reference": heights_of(reference).values.astype(np.float32),
    }
    shown = cut_to_known(GridMap(layers, reference.transform), np.isfinite(errors.difference))
    return {**shown.layers, "map_transform": np.array(shown.transform)}


def place_map(grid: GridMap, T_reference_grid: Floats, frame: str) -> GridMap:
    """Return a map transformed to another frame by a translation and a rotation about the vertical.

    Parameters
    ----------
    T_reference_grid : (4, 4)
        Transform from the map's frame to the other one. Only the rotation about the vertical is used (the
        twist of its swing-twist decomposition): a tilt of the map remains as an error.
    frame : str
        Name of the other frame.
    """
    x, y, z, w = rotations.quaternion_from_matrix(T_reference_grid[:3, :3])
    if np.hypot(z, w) < np.hypot(x, y):
        raise GeometryError("the map is upside down", why="its frame and the reference's differ")
    yaw = 2 * np.arctan2(z, w)
    turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    a, b, c, d, e, f = grid.transform
    (a, b, c), (d, e, f) = turn @ np.array([[a, b, c], [d, e, f]]) + [
        [0, 0, T_reference_grid[0, 3]],
        [0, 0, T_reference_grid[1, 3]],
    ]
    heights = np.asarray(grid.layers[ELEVATION], np.float64) + T_reference_grid[2, 3]
    return replace(
        grid, layers={**grid.layers, ELEVATION: heights}, transform=(a, b, c, d, e, f), frame=frame
    )


def is_map(source: str, reader: Reader | None = None) -> bool:
    """Return whether a path names a map: by its suffix, as ``PATH:STREAM``, as ``RUN`` or ``RUN:PORT``.

    A run with trajectories is a map only if the port of the map is named.
    """
    if (run := split_run(source)) is not None:
        folder, port = run
        maps = [name for _, name in list_outputs(folder, ".tif")]
        return port in maps if port else bool(maps) and not list_outputs(folder, ".tum")
    path = Path(_file_of_port(source))
    if path.exists() or ":" not in source:
        return path.suffix.lower() in SUFFIXES
    recording, name = open_named(source, reader)
    return bool(name) and recording[name].type is GridMap


def open_map(source: str, reader: Reader | None = None) -> tuple[MapInput, tuple[Loss, ...]]:
    """Open the only map that a path holds, or the named one; return it and its reading losses."""
    run = split_run(source)
    recording, name = open_named(find_output(*run, ".tif") if run else _file_of_port(source), reader)
    maps = [s for s in recording if s.type is GridMap and name in ("", s.name)]
    samples = [(stream, row) for stream in maps for row in range(len(stream))]
    losses = tuple(loss for stream in maps for loss in stream.losses)
    if len(samples) != 1:
        names = ", ".join(stream.name for stream in maps)
        raise UsageError(
            f"{source} has {len(samples) or 'no'} maps",
            why=f"maps: {names}" if names else "",
            hint=f"name one: {recording.typed_streams(stream.name for stream in maps)}"
            if len(maps) > 1
            else f"transect info {recording.typed} lists its streams",
        )
    stream, row = samples[0]
    called = recording.name if len(recording) == 1 else f"{recording.name}:{stream.name}"
    grid = stream[row].payload
    return MapInput(called, grid, tuple(recording.provenance.sources), source=source), losses


def _file_of_port(source: str) -> str:
    """Return the file ``FOLDER/PORT.tif`` of ``FOLDER:PORT`` if it is there; else the source as it is."""
    folder, _, port = source.rpartition(":")
    file = Path(folder) / f"{port}.tif"
    return str(file) if folder and file.is_file() else source
