"""The height map of a run, where the recording has one of the same ground."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from transect.errors import TransectError
from transect.evaluation.inputs import open_input
from transect.evaluation.maps.report import MapInput, evaluate_maps, open_map, place_map
from transect.evaluation.reconstruction import place_by_truth
from transect.evaluation.result import POSE, Result
from transect.geometry import se3
from transect.recording import Recording, Stream
from transect.types import GridMap

ELEVATION, MAP = "elevation", "dem"
"""The layer of heights, and the port of a compound's height map."""


def judge_map(folder: Path, recording: Recording, name: str) -> Result | None:
    """Compare a run's height map with the recording's own; return None where one of them is missing.

    A map in a frame of its own begins where its sensor was: it is put there by the truth of the first pose,
    and then shifted to where it fits best.
    """
    reference = true_map(recording)
    if reference is None or not (folder / f"{MAP}.tif").is_file():
        return None
    opened, _ = open_map(str(folder / f"{MAP}.tif"))
    made, command = replace(opened, name=name), f"transect run {name}"
    try:
        truth = MapInput(reference.name, reference[0].payload)
        return evaluate_maps(truth, _place(made, truth.grid, folder, recording), command=command)
    except TransectError as error:
        return Result(name, reference.name, failure=error.what)


def true_map(recording: Recording) -> Stream | None:
    """Return the height map of a recording that was made by other means: the simulator's, or a drone's.

    Depth images are rasters too, but have no elevation, and come more than once.
    """
    maps = [each for each in recording.streams if each.type is GridMap and len(each) == 1]
    found = [each for each in maps if ELEVATION in each[0].payload.layers]
    return next(iter(sorted(found, key=lambda each: each.role != "truth")), None)


def _place(made: MapInput, reference: GridMap, folder: Path, recording: Recording) -> MapInput:
    """Return a map in the reference's frame; two maps with reference systems are compared by these."""
    truth = recording.truth
    world = reference.frame or (truth.frame if truth is not None else "")
    if made.grid.crs and reference.crs:
        return made
    if not reference.crs:
        made = replace(made, grid=replace(made.grid, crs=""))  # x and y stay: they are those of its frame
    if made.grid.frame == world:
        return made
    poses = open_input(f"{folder}:{POSE}").trajectory
    T_world_sensor = place_by_truth(recording, poses.child, int(poses.t_ns[0]))
    assert poses.orientations is not None
    T_odom_sensor = se3.from_quaternion(poses.orientations[0], poses.positions[0])
    grid = place_map(made.grid, T_world_sensor @ se3.invert(T_odom_sensor), world)
    return replace(made, grid=grid, notes=(*made.notes, "map placed where the truth has its first pose"))
