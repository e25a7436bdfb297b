"""GTSAM, imported when it is used; it belongs to the extra `fusion`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from transect.base.arrays import Floats
from transect.errors import MissingExtraError


@cache
def gtsam() -> Any:
    """Return the module, or say what to install."""
    try:
        import gtsam as module
    except ImportError as error:
        raise MissingExtraError("gtsam", "fusion") from error
    return module


def adjust_graph(
    graph: Any, poses: Sequence[Floats], points: Floats, rows: Sequence[int], steps: int
) -> tuple[list[Floats], Floats]:
    """Return poses X(k), (4, 4), and points L(row), (n, 3), that fit a graph better; the first pose stays.

    Parameters
    ----------
    rows : sequence of int
        Points that the graph has factors of; the others stay.
    steps : int
        Of Levenberg and Marquardt's method.
    """
    library = gtsam()
    X, L = library.symbol_shorthand.X, library.symbol_shorthand.L
    values = library.Values()
    for k, pose in enumerate(poses):
        values.insert(X(k), library.Pose3(pose))
    for row in rows:
        values.insert(L(row), points[row])
    graph.add(library.NonlinearEqualityPose3(X(0), library.Pose3(poses[0])))
    params = library.LevenbergMarquardtParams()
    params.setMaxIterations(steps)
    found = library.LevenbergMarquardtOptimizer(graph, values, params).optimize()
    moved = points.copy()
    for row in rows:
        moved[row] = found.atPoint3(L(row))
    return [found.atPose3(X(k)).matrix() for k in range(len(poses))], moved


class Kept:
    """Holds objects of GTSAM that never change, so that a copy of a node's state may share them."""

    def __init__(self, *things: Any) -> None:
        self.things = things

    def __deepcopy__(self, memo: dict[int, Any]) -> Kept:
        return self
