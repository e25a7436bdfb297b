"""A map of places: where a robot was, how these places hang together, and what it saw there."""

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
"""What was seen from one keyframe: named arrays, each with at least one axis."""
ODOMETRY, LOOP = "odometry", "loop"
"""What an edge is made of; others may be named as their makers like."""


@dataclass(frozen=True, eq=False)
class Edges:
    """Measured motions between keyframes.

    Attributes
    ----------
    a, b : (m,) int array
        Numbers of the keyframes.
    T_a_b : (m, 4, 4) array
        Poses of b in a, metres.
    covariance : (m, 6, 6) array
        Of a small motion in the axes of b: m, then rad.
    what : tuple of m str
        `odometry`, `loop`, ...
    """

    a: Ints
    b: Ints
    T_a_b: Floats
    covariance: Floats
    what: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.what)

    @staticmethod
    def none() -> Edges:
        """Return no edges."""
        nobody = np.zeros(0, np.int64)
        return Edges(nobody, nobody, np.zeros((0, 4, 4)), np.zeros((0, 6, 6)), ())


@dataclass(frozen=True, eq=False)
class Anchor:
    """Where a map is on Earth.

    Attributes
    ----------
    crs : str
        Coordinate reference system with metres as its unit: "EPSG:32633".
    T_crs_map : (4, 4) array
        Takes points of the map to easting, northing and height.
    """

    crs: str
    T_crs_map: Floats


@dataclass(frozen=True, eq=False)
class PlaceMap:
    """Keyframes, the graph between them, and what was seen from each: what a SLAM keeps, of any sensor.

    Attributes
    ----------
    kind : str
        Name of the compound that made it, and that can find places in it.
    t_ns : (n,) int64 array
        Times of the keyframes.
    poses : (n, 4, 4) array
        T_map_body.
    covariances : (n, 6, 6) array
        Of each pose, m then rad, in the axes of the body.
    session : (n,) int array
        Keyframes of one session hang together by odometry.
    edges : Edges
    observations : sequence of n mappings
        Per keyframe, named arrays; see `Observation`.
    calibration : mapping
        What the front end has to know to use the map: plain JSON values.
    anchor : Anchor or None
    frame, child : str
        Names of the map's frame and of the body.
    """

    kind: str
    t_ns: Ints
    poses: Floats
    covariances: Floats
    session: Ints
    edges: Edges = field(default_factory=Edges.none)
    observations: Sequence[Observation] = ()
    calibration: Mapping[str, Any] = field(default_factory=dict[str, Any])
    anchor: Anchor | None = None
    frame: str = "map"
    child: str = NOWHERE

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
