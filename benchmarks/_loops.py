"""How good loops of a map are, against the truth: which are right, and which revisits were seen."""

from dataclasses import dataclass

import numpy as np

from transect.geometry import rotations, se3
from transect.types import PlaceMap

NEAR, AHEAD, BEHIND = 3.0, np.radians(30.0), np.radians(150.0)
"""Metres and headings within which an old keyframe is a revisit: the same way, or the opposite one."""


@dataclass(frozen=True)
class Loops:
    """Errors of all loops, m and rad (n,); keyframes that come again the same way and the opposite one."""

    shift: np.ndarray
    turn: np.ndarray
    same: tuple[int, int]
    opposite: tuple[int, int]


def judge_loops(places: PlaceMap, true: np.ndarray, recent: float) -> Loops:
    """Hold the loops of a map against true poses (n, 4, 4) of its keyframes.

    A revisit is a keyframe with an older one nearby, more than `recent` metres of the way before; it is seen
    if a loop that is believed ends there.
    """
    edges = [k for k, what in enumerate(places.edges.what) if what == "loop"]
    a, b = places.edges.a[edges], places.edges.b[edges]
    off = se3.invert(places.edges.T_a_b[edges]) @ se3.invert(true[a]) @ true[b]
    turn = np.linalg.norm(rotations.rotation_vector_from_matrix(off[:, :3, :3]), axis=1)
    seen = set(np.maximum(a, b).tolist())
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(true[:, :3, 3], axis=0), axis=1))])
    counts = {True: [0, 0], False: [0, 0]}
    for k in range(len(true)):
        before = np.flatnonzero(way[k] - way[:k] > recent)
        near = before[np.linalg.norm(true[before, :3, 3] - true[k, :3, 3], axis=1) < NEAR]
        angle = np.array([_turn(true[i], true[k]) for i in near])
        for same, found in ((True, (angle < AHEAD).any()), (False, (angle > BEHIND).any())):
            if found:
                counts[same][0] += k in seen
                counts[same][1] += 1
    return Loops(np.linalg.norm(off[:, :3, 3], axis=1), turn, tuple(counts[True]), tuple(counts[False]))


def _turn(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(rotations.rotation_vector_from_matrix(a[:3, :3].T @ b[:3, :3])))
