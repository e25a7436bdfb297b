"""GTSAM, imported on first use; it belongs to the extra `fusion`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from transect.base.arrays import Floats
from transect.errors import MissingExtraError


@cache
def gtsam() -> Any:
    """Return the module; raise an error that names the extra if it is missing."""
    try:
        import gtsam as module
    except ImportError as error:
        raise MissingExtraError("gtsam", "fusion") from error
    return module


def adjust_graph(
    graph: Any, poses: Sequence[Floats], points: Floats, rows: Sequence[int], steps: int
) -> tuple[list[Floats], Floats]:
    """Optimise poses X(k), (4, 4), and points L(row), (n, 3), of a graph; the first pose is fixed.

    Parameters
    ----------
    rows : sequence of int
        Points that the graph has factors of; the others are unchanged.
    steps : int
        Largest number of Levenberg-Marquardt iterations.
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
    solution = library.LevenbergMarquardtOptimizer(graph, values, params).optimize()
    adjusted = points.copy()
    for row in rows:
        adjusted[row] = solution.atPoint3(L(row))
    return [solution.atPose3(X(k)).matrix() for k in range(len(poses))], adjusted


class SharedObjects:
    """Objects of GTSAM that never change, shared by copies of a node's state."""

    def __init__(self, *objects: Any) -> None:
        self.objects = objects

    def __deepcopy__(self, memo: dict[int, Any]) -> SharedObjects:
        return self
