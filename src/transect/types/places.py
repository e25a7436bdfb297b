"""Keyframe map: poses of a robot, the pose graph between them, and the observations at each keyframe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.errors import GeometryError

from ._fields import NOWHERE

Observation = Mapping[str, NDArray[Any]]
"""Observations at one keyframe: named arrays, each with at least one axis."""
ODOMETRY, LOOP = "odometry", "loop"
"""Origin of an edge; a SLAM may define others."""


@dataclass(frozen=True, eq=False)
class Edges:
    """Relative poses between keyframes: the edges of the pose graph."""

    a: Ints  # (m,) index of the first keyframe
    b: Ints  # (m,) index of the second keyframe
    T_a_b: Floats  # (m, 4, 4) pose of b in a, metres
    covariance: Floats  # (m, 6, 6) of a small motion in the axes of b: m, then rad
    what: tuple[str, ...]  # Origin of each edge: `odometry`, `loop`, ...

    def __len__(self) -> int:
        return len(self.what)

    @staticmethod
    def none() -> Edges:
        """Return no edges."""
        empty = np.zeros(0, np.int64)
        return Edges(empty, empty, np.zeros((0, 4, 4)), np.zeros((0, 6, 6)), ())


@dataclass(frozen=True, eq=False)
class Anchor:
    """Georeference of a map."""

    crs: str  # Coordinate reference system in metres: "EPSG:32633"
    T_crs_map: Floats  # (4, 4) transforms points of the map to easting, northing and height


@dataclass(frozen=True, eq=False)
class PlaceMap:
    """Map of a SLAM system with any sensor: keyframes, pose graph and the observations at each keyframe."""

    kind: str  # Name of the compound that made it, and that can relocalise in it
    t_ns: Ints  # (n,) int64 times of the keyframes
    poses: Floats  # (n, 4, 4) T_map_body
    covariances: Floats  # (n, 6, 6) of each pose, m then rad, in the axes of the body
    session: Ints  # (n,) session of each keyframe; odometry connects the keyframes of one session
    edges: Edges = field(default_factory=Edges.none)  # Of the pose graph
    observations: Sequence[Observation] = ()  # Named arrays of each of the n keyframes; see `Observation`
    # Parameters that the front end needs to use the map: plain JSON values
    calibration: Mapping[str, Any] = field(default_factory=dict[str, Any])
    anchor: Anchor | None = None  # Georeference, if known
    frame: str = "map"  # Name of the map's frame
    child: str = NOWHERE  # Name of the body

    def __post_init__(self) -> None:
        sizes = [len(each) for each in (self.poses, self.covariances, self.session, self.observations)]
        if any(size != len(self.t_ns) for size in sizes):
            raise GeometryError(
                "the parts of a map do not fit each other",
                why=f"{len(self.t_ns)} times, and poses, covariances, sessions, observations: {sizes}",
            )
        ends = np.concatenate([self.edges.a, self.edges.b])
        if len(ends) and not (ends.min() >= 0 and ends.max() < len(self.t_ns)):
            raise GeometryError("an edge of the map leads to a keyframe that it does not have")

    def __len__(self) -> int:
        return int(self.t_ns.shape[0])

    @property
    def length(self) -> float:
        """Metres along the keyframes of all sessions."""
        steps = np.linalg.norm(np.diff(self.poses[:, :3, 3], axis=0), axis=1)
        return float(steps[np.diff(self.session) == 0].sum())
