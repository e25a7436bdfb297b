"""Evaluation of maps with ground truth: precision and recall of loop closures, accuracy of localisation."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks._harness import quality
from transect.engine.runs import Run
from transect.geometry import rotations, se3
from transect.types import PlaceMap, Pose

REVISIT_RADIUS_M, SAME_HEADING_RAD, OPPOSITE_HEADING_RAD = 3.0, np.radians(30.0), np.radians(150.0)
"""Distance and headings of a revisit of an old keyframe, in the same or the opposite direction."""

CORRECT_WITHIN_M, CORRECT_WITHIN_RAD, WRONG_BEYOND_M = 0.3, np.radians(1.0), 1.0
"""Limits of the error of a correct pose in a map, and of a wrong one."""
Truth = Callable[[np.ndarray], np.ndarray]
"""Returns ground truth poses (n, 4, 4) at times (n,)."""


@dataclass(frozen=True)
class LoopErrors:
    """Errors of all loop closures, and revisits: those with a loop closure, and all."""

    shift: np.ndarray  # (n,) m
    turn: np.ndarray  # (n,) rad
    same: tuple[int, int]  # in the same direction
    opposite: tuple[int, int]


def judge_loops(places: PlaceMap, true: np.ndarray, recent: float) -> LoopErrors:
    """Compare the loop closures of a map with true poses (n, 4, 4) of its keyframes.

    A revisit is a keyframe near one that is more than `recent` metres older along the path; it is found
    if an accepted loop closure ends there.
    """
    edges = [k for k, what in enumerate(places.edges.what) if what == "loop"]
    a, b = places.edges.a[edges], places.edges.b[edges]
    off = se3.invert(places.edges.T_a_b[edges]) @ se3.invert(true[a]) @ true[b]
    turn = np.linalg.norm(rotations.rotation_vector_from_matrix(off[:, :3, :3]), axis=1)
    closed = set(np.maximum(a, b).tolist())
    path_m = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(true[:, :3, 3], axis=0), axis=1))])
    counts = {True: [0, 0], False: [0, 0]}
    for k in range(len(true)):
        old = np.flatnonzero(path_m[k] - path_m[:k] > recent)
        near = old[np.linalg.norm(true[old, :3, 3] - true[k, :3, 3], axis=1) < REVISIT_RADIUS_M]
        angle = np.array([_turn(true[i], true[k]) for i in near])
        for same, found in (
            (True, (angle < SAME_HEADING_RAD).any()),
            (False, (angle > OPPOSITE_HEADING_RAD).any()),
        ):
            if found:
                counts[same][0] += k in closed
                counts[same][1] += 1
    return LoopErrors(np.linalg.norm(off[:, :3, 3], axis=1), turn, tuple(counts[True]), tuple(counts[False]))


def _turn(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(rotations.rotation_vector_from_matrix(a[:3, :3].T @ b[:3, :3])))


def judge_places(
    name: str, places: PlaceMap, mapped: Truth, run: Run, truth: Truth, frames: int, asked: bool = True
) -> None:
    """Report the ratio of localised frames and their errors; if asked, 95 % must be correct."""
    poses: list[Pose] = run["pose"].values
    keyframes, true = mapped(places.t_ns), truth(np.array([pose.t_ns for pose in poses], np.int64))
    found = np.array([se3.from_quaternion(p.orientation, p.position) for p in poses]).reshape(-1, 4, 4)
    nearest = [int(np.argmin(np.linalg.norm(keyframes[:, :3, 3] - T[:3, 3], axis=1))) for T in true]
    estimated = se3.invert(places.poses[nearest]) @ found
    off = se3.invert(se3.invert(keyframes[nearest]) @ true) @ estimated
    metres, turn = np.linalg.norm(off[:, :3, 3], axis=1), np.linalg.norm(se3.log(off)[..., 3:], axis=-1)
    good = 100 * np.count_nonzero((metres < CORRECT_WITHIN_M) & (turn < CORRECT_WITHIN_RAD)) / frames
    quality(f"{name}, said to be found", 100 * len(poses) / frames, "%")
    quality(f"{name}, right to 0.3 m and 1 deg", good, "%", at_least=95 if asked else None)
    quality(f"{name}, wrong by more than 1 m", int(np.count_nonzero(metres > WRONG_BEYOND_M)), "", at_most=0)
    if len(poses):
        quality(f"{name}, median error", float(np.median(metres)), "m")
        quality(f"{name}, error of 95 %", float(np.percentile(metres, 95)), "m")
        quality(f"{name}, worst error", float(metres.max()), "m")
