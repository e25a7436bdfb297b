"""Rows of correspondences."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from transect.types import Correspondences2D


def taken(matches: Correspondences2D, rows: NDArray[Any]) -> Correspondences2D:
    """Return some rows of correspondences, in that order."""

    def of(values: Any) -> Any:
        return None if values is None else values[rows]

    return Correspondences2D(
        matches.source[rows],
        matches.sink[rows],
        of(matches.probability),
        of(matches.source_index),
        of(matches.sink_index),
        matches.source_camera,
        matches.sink_camera,
        matches.t_ns,
    )
