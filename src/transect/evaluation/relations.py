"""Relations (Kümmerle et al., Autonomous Robots 2009): errors of chosen relative motions, not of whole paths.

``eps = 1/N sum trans(d_ij - d*_ij)^2 + rot(d_ij - d*_ij)^2`` over relations (i, j), translation and rotation
apart; a relation is true whatever happened between its ends, so a mistake is counted once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS, ns_from_decimal
from transect.errors import GeometryError, ParseError
from transect.geometry import se3
from transect.geometry.interpolation import nearest_index
from transect.geometry.rotations import quaternion_from_euler, rotation_vector_from_matrix
from transect.types import Trajectory

from .absolute import matrices
from .association import rows
from .statistics import Statistics

COLUMNS = 8


@dataclass(frozen=True)
class Relations:
    """True relative motions.

    Attributes
    ----------
    first_ns, last_ns : (n,) int64
        Times of the two poses.
    motion : (n, 4, 4) float64
        From the first to the last, in the first one's frame.
    """

    first_ns: Ints
    last_ns: Ints
    motion: Floats

    def __len__(self) -> int:
        return len(self.first_ns)


@dataclass(frozen=True)
class RelationErrors:
    """The error of each relation that the estimate has poses for.

    Attributes
    ----------
    translation, rotation : (n,) float64
        Metres and radians.
    left_out : int
        Relations without a pose of the estimate near enough in time.
    """

    translation: Floats
    rotation: Floats
    left_out: int

    @property
    def absolute(self) -> tuple[Statistics, Statistics]:
        """Of translation (m) and rotation (rad)."""
        return Statistics.of(self.translation), Statistics.of(self.rotation)

    @property
    def squared(self) -> tuple[float, float]:
        """Mean squares of translation (m2) and rotation (rad2): Kümmerle's epsilon, in its two parts."""
        return float(np.mean(self.translation**2)), float(np.mean(self.rotation**2))


def read_relations(path: Path | str) -> Relations:
    """Read a file of relations: ``t_i t_j x y z roll pitch yaw`` in seconds, metres and radians.

    Raises
    ------
    ParseError
        For a line that is not such a row.
    """
    times: list[tuple[int, int]] = []
    motions: list[list[float]] = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            if len(words) != COLUMNS:
                raise ValueError(f"{len(words)} words")
            times.append((ns_from_decimal(words[0]), ns_from_decimal(words[1])))
            motions.append([float(word) for word in words[2:]])
        except ValueError as error:
            why = f"expected t_i t_j x y z roll pitch yaw: {error}"
            raise ParseError(
                f"{path} is not a file of relations", where=f"{path}:{number}", why=why
            ) from error
    if not times:
        raise ParseError(f"{path} has no relations", where=str(path))
    values, stamps = np.array(motions), np.array(times, np.int64)
    turned = quaternion_from_euler("xyz", values[:, 3:])
    return Relations(stamps[:, 0], stamps[:, 1], se3.from_quaternion(turned, values[:, :3]))


def relation_errors(relations: Relations, estimate: Trajectory, max_diff: float = 0.5) -> RelationErrors:
    """Return how far the relative motions of an estimate are from the true ones.

    Parameters
    ----------
    max_diff : float
        Seconds from a relation's times to the estimate's poses.
    """
    order = np.argsort(estimate.t_ns, kind="stable")
    poses = rows(estimate, order)
    first, last = (nearest_index(poses.t_ns, t) for t in (relations.first_ns, relations.last_ns))
    limit = round(max_diff * NS)
    near = (np.abs(poses.t_ns[first] - relations.first_ns) <= limit) & (
        np.abs(poses.t_ns[last] - relations.last_ns) <= limit
    )
    if not near.any():
        raise GeometryError(
            "the estimate has no poses at the times of the relations", hint="--max-diff, --offset"
        )
    world = matrices(poses)
    said = se3.invert(world[first[near]]) @ world[last[near]]
    error = se3.invert(relations.motion[near]) @ said
    return RelationErrors(
        np.linalg.norm(error[:, :3, 3], axis=1),
        np.linalg.norm(rotation_vector_from_matrix(error[:, :3, :3]), axis=1),
        int((~near).sum()),
    )
