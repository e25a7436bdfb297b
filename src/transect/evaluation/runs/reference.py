"""What a run is evaluated against: the truth of its recording, without what the run used, and its map."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import TransectError
from transect.evaluation.inputs import input_of, open_input
from transect.evaluation.positions.streams import POSES, trajectory_of
from transect.evaluation.result import HEIGHT_MAP, POSE, Input, Result
from transect.geometry import robust, se3
from transect.recording import Recording, Stream
from transect.types import GridMap, NavFix, Trajectory

if TYPE_CHECKING:
    from transect.engine import Run
    from transect.evaluation.map_reports import MapInput


Fed = Literal["not", "wholly", "in part"]
"""Whether a run was given the positions that it is judged by."""
MAX_PROJECTION_ERROR_M = 0.05  # between a receiver's track and the same track in another projection,
MAX_PROJECTION_ERROR_RATIO = 1e-3  # and relative to the distance from its start
MIN_WITHHELD = 10  # positions of the reference that a run did not use and that suffice for an evaluation


def reference_of(run: Run, recording: Recording, truth: Stream) -> tuple[Input, Fed]:
    """Return what to judge by, and how far the run was fed with it: left out of it, if enough is left."""
    made = input_of(str(recording.path or recording.name), recording, truth, truth.name)
    made = replace(made, notes=())  # of the recording, said when it was opened
    names, used = _find_fed(made, run, recording)
    if not names:
        return replace(made, notes=_warn_of_source(run, truth)), "not"
    given, withheld = " and ".join(names), int((~used).sum())
    if withheld < MIN_WITHHELD:
        note = f"the reference was an input ({given}): this is how well the run fits it, not how true it is"
        return replace(made, notes=(note,)), "wholly"
    note = f"judged by the {withheld} of {len(used)} positions of {truth.name} that {given} does not have"
    return replace(made, trajectory=_part(made.trajectory, ~used), notes=(note,)), "in part"


def _warn_of_source(run: Run, truth: Stream) -> tuple[str, ...]:
    """Say if the reference was made from a sensor that the run was given: errors of both are alike."""
    source = str(truth.meta.get("made_from", ""))
    wired = [str(wire["stream"]) for wire in run.config["wiring"].values()]
    same = [name for name in wired if source and name.split("/")[0] == source]
    if not same:
        return ()
    warning = f"not independent: {truth.name} was made from {source}, and the run used {' and '.join(same)}"
    return (
        f"{warning}; errors of that sensor are in both: this is how well they fit, not how true they are",
    )


def _find_fed(reference: Input, run: Run, recording: Recording) -> tuple[list[str], Mask]:
    """Return the streams that fed a run with positions of the reference, and which (n,) of them.

    What lies in `truth/` is no sensor's, however near it a sensor may be.
    """
    names, used = list[str](), np.zeros(len(reference.trajectory), dtype=bool)
    if reference.stream.startswith("truth/"):
        return names, used
    for wire in run.config["wiring"].values():
        same = _find_shared(reference.trajectory, recording[str(wire["stream"])])
        if len(same):
            names.append(str(wire["stream"]))
            used[same] = True
    return names, used


def _find_shared(reference: Trajectory, stream: Stream) -> Ints:
    """Return which positions of a reference a stream has too: most of its own, at the same times."""
    nothing = np.zeros(0, np.int64)
    if not issubclass(stream.type, (*POSES, NavFix)) or stream.clock != reference.clock:
        return nothing
    try:
        given = trajectory_of(stream)
    except TransectError:  # odometry that is no positions, or a receiver without a fix
        return nothing
    _, reference_rows, given_rows = np.intersect1d(reference.t_ns, given.t_ns, return_indices=True)
    enough = 2 * len(reference_rows) > len(given)
    return (
        reference_rows
        if enough and _is_same_track(reference.positions[reference_rows], given.positions[given_rows])
        else nothing
    )


def _is_same_track(a: Floats, b: Floats) -> bool:
    """Return whether positions (n, 3) are one track, be it in other axes: all as far from the first."""
    distances_a, distances_b = (np.linalg.norm(each - each[0], axis=1) for each in (a, b))
    return bool(
        distances_a.max() > MAX_PROJECTION_ERROR_M
        and robust.median(np.abs(distances_a - distances_b) - MAX_PROJECTION_ERROR_RATIO * distances_a)
        < MAX_PROJECTION_ERROR_M
    )


def _part(path: Trajectory, selected: Mask) -> Trajectory:
    orientations, covariances = (
        None if each is None else each[selected] for each in (path.orientations, path.covariances)
    )
    return replace(
        path,
        t_ns=path.t_ns[selected],
        positions=path.positions[selected],
        orientations=orientations,
        covariances=covariances,
    )


ELEVATION = "elevation"  # the layer of heights


def judge_map(folder: Path, recording: Recording, name: str) -> Result | None:
    """Compare a run's height map with the recording's own; return None where one of them is missing.

    A map in a frame of its own begins where its sensor was: it is put there by the truth of the first pose,
    and then shifted to where it fits best.
    """
    reference = true_map(recording)
    if reference is None or not (folder / f"{HEIGHT_MAP}.tif").is_file():
        return None
    from transect.evaluation.map_reports import MapInput, evaluate_maps, open_map

    opened, _ = open_map(str(folder / f"{HEIGHT_MAP}.tif"))
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
    from transect.evaluation.clouds import place_by_truth
    from transect.evaluation.map_reports import place_map

    poses = open_input(f"{folder}:{POSE}").trajectory
    T_world_sensor = place_by_truth(recording, poses.child, int(poses.t_ns[0]))
    assert poses.orientations is not None
    T_odom_sensor = se3.from_quaternion(poses.orientations[0], poses.positions[0])
    grid = place_map(made.grid, T_world_sensor @ se3.invert(T_odom_sensor), world)
    return replace(made, grid=grid, notes=(*made.notes, "map placed where the truth has its first pose"))
