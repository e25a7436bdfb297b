"""Errors of a whole trajectory against its reference: absolute, per step, and in terms of its own covariance.

- Absolute trajectory error (ATE; Sturm et al., IROS 2012): ``F_i = Q_i^-1 S P_i`` with the reference Q, the
  estimate P and the alignment S; the error is the length of its translation, or the angle of its rotation.
- Relative pose error (RPE): drift over a step of frames, seconds or metres,
  ``E_ij = (Q_i^-1 Q_j)^-1 (P_i^-1 P_j)``, whatever the alignment.
- Normalised estimation error squared (NEES) with its chi-square bounds (Bar-Shalom et al. 2001).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.errors import GeometryError, UsageError
from transect.geometry import align, kernels, robust, rotations, se3
from transect.types import Trajectory

from .association import Pairs


@dataclass(frozen=True)
class Statistics:
    """Of errors, in their unit; NaN where there are none."""

    rmse: float
    mean: float
    median: float
    std: float
    min: float
    max: float
    sse: float  # sum of squares
    count: int

    @staticmethod
    def of(errors: NDArray[np.float64]) -> Statistics:
        """Summarise (n,) errors."""
        n = len(errors)
        if not n:
            nan = float("nan")
            return Statistics(nan, nan, nan, nan, nan, nan, 0.0, 0)
        squares = float(np.sum(np.square(errors)))
        return Statistics(
            rmse=float(np.sqrt(squares / n)),
            mean=float(np.mean(errors)),
            median=float(robust.median(errors)),
            std=float(np.std(errors)),
            min=float(np.min(errors)),
            max=float(np.max(errors)),
            sse=squares,
            count=n,
        )

    def to_dict(self) -> dict[str, float | int]:
        """Return plain values."""
        return asdict(self)


Align = Literal["none", "origin", "line", "yaw", "se3", "sim3"]


@dataclass(frozen=True)
class AbsoluteError:
    """The error of each pair."""

    t_ns: NDArray[np.int64]  # (n,) int64
    translation: Floats  # (n,) float64, metres
    rotation: Floats | None  # (n,) float64, radians; None where one of the trajectories has positions only
    mode: Align
    alignment: Floats  # (4, 4) float64, what was applied to the estimate; with a scale it is a similarity
    scale: float
    path: float  # length of the reference in metres, from pair to pair
    aligned: Floats  # (n, 3) float64, positions of the estimate in the reference's frame

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
            "only one pose has a match: alignment puts it on the reference's, and no error is left to tell",
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
        estimated, true = (kernels.normalise(kernels.columns(t[block])) for t in attitudes)
        found[block] = kernels.angle_between(kernels.multiply(turn, estimated), true)
    return found


Per = Literal["frames", "seconds", "metres"]


@dataclass(frozen=True)
class RelativeError:
    """The error of each step."""

    # (n,) int64, pairs at which each step begins and ends
    first: Ints
    last: Ints
    t_ns: Ints  # (n,) int64, time at its end
    # (n,) float64, metres and radians
    translation: Floats
    rotation: Floats
    distance: Floats  # (n,) float64, metres of the reference's path in the step
    step: float
    per: Per

    @property
    def statistics(self) -> Statistics:
        """Of the translation, in metres."""
        return Statistics.of(self.translation)

    @property
    def rotation_statistics(self) -> Statistics:
        """Of the rotation, in radians."""
        return Statistics.of(self.rotation)


def relative_error(
    pairs: Pairs, step: float = 1.0, per: Per = "frames", *, overlapping: bool = False
) -> RelativeError:
    """Return how much an estimate drifts over steps.

    Parameters
    ----------
    step : float
        Length of a step.
    per : {"frames", "seconds", "metres"}
        Its unit; metres are travelled by the reference.
    overlapping : bool
        Begin a step at every pose, not where the last one ended.

    Raises
    ------
    GeometryError
        If the trajectory is shorter than a step.
    """
    first, last = steps_of(pairs, step, per, overlapping)
    if not len(first):
        raise GeometryError(f"the trajectory is shorter than {step:g} {per}", hint="a shorter step")
    translation, rotation = relative_errors(pairs, first, last)
    travelled = travelled_distance(pairs.reference.positions)
    return RelativeError(
        first=first,
        last=last,
        t_ns=pairs.reference.t_ns[last],
        translation=translation,
        rotation=rotation,
        distance=travelled[last] - travelled[first],
        step=step,
        per=per,
    )


def relative_errors(pairs: Pairs, first: Ints, last: Ints) -> tuple[Floats, Floats]:
    """Return the translation (n,) in metres and the angle (n,) in radians of E for steps between pairs.

    The translation of E is the difference of the two motions, turned; its length is that of the difference.
    """
    translation, rotation = np.empty(len(first)), np.empty(len(first))
    true, estimated = _columns(pairs.reference), _columns(pairs.estimate)
    for block in kernels.blocks(len(first)):
        true_move, true_turn = _motions(*true, first[block], last[block])
        estimated_shift, estimated_rotation = _motions(*estimated, first[block], last[block])
        translation[block] = kernels.norm([b - a for a, b in zip(true_move, estimated_shift, strict=True)])
        rotation[block] = kernels.angle_between(true_turn, estimated_rotation)
    return translation, rotation


def _columns(trajectory: Trajectory) -> tuple[Floats, Floats]:
    """Return positions (3, n) and unit quaternions (4, n) of a trajectory."""
    if trajectory.orientations is None:
        raise UsageError("this needs attitudes, the trajectory has positions only")
    turns = np.empty((4, len(trajectory.orientations)))
    for block in kernels.blocks(turns.shape[1]):
        turns[:, block] = kernels.normalise(kernels.columns(trajectory.orientations[block]))
    return kernels.columns(trajectory.positions), turns


def _motions(
    positions: Floats, turns: Floats, first: Ints, last: Ints
) -> tuple[kernels.Components, kernels.Components]:
    """Return components of the translations and rotations between poses, in the frame of the first."""
    conjugates = kernels.conjugate(turns.take(first, axis=1))
    displacements = positions.take(last, axis=1) - positions.take(first, axis=1)
    return kernels.rotate(conjugates, displacements), kernels.multiply(conjugates, turns.take(last, axis=1))


def travelled_distance(positions: Floats) -> Floats:
    """Return (n,) metres travelled up to each of (n, 3) positions."""
    return np.concatenate([[0.0], np.cumsum(kernels.norm(np.diff(positions.T)))])


def steps_of(pairs: Pairs, step: float, per: Per, overlapping: bool) -> tuple[Ints, Ints]:
    """Return the pairs at which steps begin and end."""
    if per not in get_args(Per):
        raise UsageError(f"steps are not counted in {per!r}", hint=", ".join(get_args(Per)))
    if not step > 0:
        raise UsageError(f"a step of {step:g} {per} leads nowhere")
    n = len(pairs)
    if per == "frames":
        length = round(step)
        first = np.arange(0, max(n - length, 0), 1 if overlapping else length)
        return first, first + length
    axis = travelled_distance(pairs.reference.positions)
    if per == "seconds":
        axis = (pairs.reference.t_ns - pairs.reference.t_ns[0]) / NS
    if overlapping:
        last = np.searchsorted(axis, axis + step)
        first = np.flatnonzero(last < n)
        return first, last[first]
    ends = _ends(axis, step)
    return ends[:-1], ends[1:]


def _ends(axis: Floats, step: float) -> Ints:
    """Return where steps end that follow each other; each is at least as long as asked for."""
    found, at = [0], 0
    while (at := int(np.searchsorted(axis, axis[at] + step))) < len(axis):
        found.append(at)
    return np.array(found, np.int64)


@dataclass(frozen=True)
class Consistency:
    """Normalised errors ``e' P^-1 e`` and what they should be."""

    nees: Floats  # (n,) float64, of each sample
    dimension: int  # of the error
    bounds: tuple[float, float]  # between which 95 % of single values lie if the covariance is right
    mean_bounds: tuple[float, float]  # the same for the mean of all, were they independent

    @property
    def normalised_mean(self) -> float:
        """Mean divided by the dimension: 1 if consistent, more if too sure of itself, less if too careful."""
        return float(self.nees.mean() / self.dimension)

    @property
    def inside(self) -> float:
        """Fraction of the samples inside the bounds; 0.95 if consistent."""
        return float(np.mean((self.nees >= self.bounds[0]) & (self.nees <= self.bounds[1])))


def consistency(errors: Floats, covariances: Floats, probability: float = 0.95) -> Consistency:
    """Judge covariances by the errors that were made.

    Parameters
    ----------
    errors : (n, k)
        Estimate minus truth; for poses translation (m), then rotation vector (rad).
    covariances : (n, k, k)
        What the estimate says of them; add the truth's own where it has one.

    Raises
    ------
    GeometryError
        If a covariance cannot be inverted.
    """
    from scipy.stats import chi2

    n, k = errors.shape
    if covariances.shape != (n, k, k):
        raise GeometryError(f"expected covariances of shape {(n, k, k)}, got {covariances.shape}")
    try:
        np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError as error:
        raise GeometryError("a covariance is not positive definite", why=str(error)) from error
    nees = np.einsum("ni,ni->n", errors, np.linalg.solve(covariances, errors[:, :, None])[:, :, 0])
    tails = ((1 - probability) / 2, (1 + probability) / 2)
    low, high = (float(chi2.ppf(tail, k)) for tail in tails)
    mean_low, mean_high = (float(chi2.ppf(tail, n * k) / n) for tail in tails)
    return Consistency(nees, k, (low, high), (mean_low, mean_high))
