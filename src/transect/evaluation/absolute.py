"""Absolute trajectory error (Sturm et al., IROS 2012): how far the estimate is from the truth, once aligned.

``F_i = Q_i^-1 S P_i`` with the reference Q, the estimate P and the alignment S; the error is the length of
its translation, or the angle of its rotation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.errors import GeometryError, UsageError
from transect.geometry import align, kernels, rotations, se3
from transect.types import Trajectory

from .association import Pairs
from .statistics import Statistics

Align = Literal["none", "origin", "line", "yaw", "se3", "sim3"]


@dataclass(frozen=True)
class AbsoluteError:
    """The error of each pair.

    Attributes
    ----------
    t_ns : (n,) int64
    translation : (n,) float64
        Metres.
    rotation : (n,) float64 or None
        Radians; None where one of the trajectories has positions only.
    alignment : (4, 4) float64
        What was applied to the estimate; with a scale it is a similarity.
    scale : float
    path : float
        Length of the reference in metres, from pair to pair.
    aligned : (n, 3) float64
        Positions of the estimate in the reference's frame.
    """

    t_ns: NDArray[np.int64]
    translation: Floats
    rotation: Floats | None
    mode: Align
    alignment: Floats
    scale: float
    path: float
    aligned: Floats

    @property
    def statistics(self) -> Statistics:
        """Of the translation, in metres."""
        return Statistics.of(self.translation)

    @property
    def percent(self) -> float:
        """The root mean square error as a part of the path, in percent (Rosario's Table 4)."""
        return 100 * self.statistics.rmse / self.path if self.path else float("nan")


def absolute_error(pairs: Pairs, mode: Align = "se3") -> AbsoluteError:
    """Return how far an estimate is from its reference.

    Parameters
    ----------
    mode : {"none", "origin", "line", "yaw", "se3", "sim3"}
        What is taken out first: nothing; the first pose; a shift and the turn that takes one straight path's
        direction to the other's; a turn about the vertical and a shift; any rigid motion; that and a scale.
        Each hides the errors that it can explain.

    Raises
    ------
    GeometryError
        If the positions do not determine the alignment: too few, or all on a line; or if nothing is left to
        compare, because the first pose is the only one.
    """
    reference, estimate = pairs.reference, pairs.estimate
    if len(pairs) < 2 and mode != "none":
        raise GeometryError(
            "only one pose has a partner: alignment puts it on the reference's, and no error is left to tell",
            hint="--align none compares it as it is",
        )
    matrix, scale = alignment_of(reference, estimate, mode)
    aligned = _move(matrix, estimate.positions)
    return AbsoluteError(
        t_ns=reference.t_ns,
        translation=kernels.norm((aligned - reference.positions).T),
        rotation=_angles(reference, estimate, matrix, scale),
        mode=mode,
        alignment=matrix,
        scale=scale,
        path=float(kernels.norm(np.diff(reference.positions.T)).sum()),
        aligned=aligned,
    )


def alignment_of(reference: Trajectory, estimate: Trajectory, mode: Align) -> tuple[Floats, float]:
    """Return the (4, 4) matrix that takes the estimate to the reference's frame, and its scale."""
    if mode not in get_args(Align):
        raise UsageError(f"there is no alignment {mode!r}", hint=", ".join(get_args(Align)))
    if mode == "none":
        return np.eye(4), 1.0
    if mode == "origin" and reference.orientations is not None and estimate.orientations is not None:
        return align.first_pose(matrices(estimate)[:1], matrices(reference)[:1]), 1.0
    found = align.align(estimate.positions, reference.positions, mode)
    return found.matrix, found.scale


def matrices(trajectory: Trajectory) -> Floats:
    """Return the poses as (n, 4, 4); they must have attitudes."""
    if trajectory.orientations is None:
        raise UsageError("this needs attitudes, the trajectory has positions only")
    return se3.from_quaternion(trajectory.orientations, trajectory.positions)


def _move(matrix: Floats, positions: Floats) -> Floats:
    """Return positions (n, 3) moved; in blocks, for which no library starts its threads."""
    moved = np.empty_like(positions)
    for block in kernels.blocks(len(positions)):
        moved[block] = se3.apply(matrix, positions[block])
    return moved


def _angles(reference: Trajectory, estimate: Trajectory, matrix: Floats, scale: float) -> Floats | None:
    if reference.orientations is None or estimate.orientations is None:
        return None
    attitudes = estimate.orientations, reference.orientations
    turn = rotations.quaternion_from_matrix(matrix[:3, :3] / scale).tolist()
    found = np.empty(len(reference))
    for block in kernels.blocks(len(reference)):
        said, true = (kernels.normalise(kernels.columns(t[block])) for t in attitudes)
        found[block] = kernels.angle_between(kernels.multiply(turn, said), true)
    return found
