"""What closing loops did to a drive: its way by odometry alone, and in truth, in the frame of its map."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from transect.base.arrays import Floats
from transect.draw.place_maps import TrajectoryComparison
from transect.evaluation.inputs import open_input
from transect.evaluation.result import SUFFIX, Result, load_result
from transect.evaluation.trajectory_errors import matrices
from transect.geometry import se3
from transect.types import PlaceMap, Trajectory

BEFORE, AFTER = "odometry", "trajectory"
"""Ports of every SLAM: poses by odometry alone, and corrected by all loops."""


def find_ways(folder: Path, places: PlaceMap) -> TrajectoryComparison | None:
    """Return the ways of a run of a SLAM and its map; None where its folder has no odometry to compare with.

    Nor is there any if the map has several sessions: odometry does not lead from one to the next.
    The truth is that by which the run was judged, brought from the point that it tracks to the body.
    """
    has_files = all((folder / f"{port}.tum").is_file() for port in (BEFORE, AFTER))
    if not has_files or len(set(places.session.tolist())) > 1:
        return None
    before, after = (open_input(f"{folder}:{port}").trajectory for port in (BEFORE, AFTER))
    T_map_odom = _join_firsts(before, after)
    if T_map_odom is None:
        return None
    drawn = se3.apply(T_map_odom, before.positions)[:, :2]
    odometry, corrected = (_load_judged(folder / f"{port}{SUFFIX}") for port in (BEFORE, AFTER))
    if odometry is None or corrected is None:
        return TrajectoryComparison(drawn, np.zeros((0, 2)))
    T_map_world = se3.invert(corrected.alignment["matrix"])
    truth = _find_true_way(after, corrected, T_map_world)
    errors = (_measure_error(odometry, T_map_world), _measure_error(corrected, T_map_world))
    return TrajectoryComparison(drawn, truth, errors)


def _join_firsts(before: Trajectory, after: Trajectory) -> Floats | None:
    """Return ``T_map_odom`` (4, 4) that joins the first poses of one time; None if there are none."""
    _, first, second = np.intersect1d(before.t_ns, after.t_ns, return_indices=True)
    if not len(first):
        return None
    return matrices(after)[second[0]] @ se3.invert(matrices(before)[first[0]])


def _load_judged(path: Path) -> Result | None:
    """Return how a trajectory was judged; None if it was not."""
    result = load_result(path) if path.is_file() else None
    return result if result is not None and "aligned" in result.arrays else None


def _find_true_way(after: Trajectory, judged: Result, T_map_world: Floats) -> Floats:
    """Return where the body truly was (n, 2), m in the map: as far beside its way as the judged point was."""
    errors = (judged.arrays["reference"] - judged.arrays["aligned"]) @ T_map_world[:3, :3].T
    start, times = after.t_ns[0], judged.arrays["t_ns"]
    way = [np.interp(times - start, after.t_ns - start, after.positions[:, axis]) for axis in (0, 1)]
    return np.column_stack(way) + errors[:, :2]


def _measure_error(result: Result, T_map_world: Floats) -> float:
    """Return the root mean square of the errors in the plane of the map, m: a planar one knows no heights."""
    errors = (result.arrays["aligned"] - result.arrays["reference"]) @ T_map_world[:3, :3].T
    return float(np.sqrt(np.mean(np.sum(errors[:, :2] ** 2, axis=1))))
