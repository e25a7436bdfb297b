"""Which pose of the estimate belongs to which of the reference; and, where none does, why.

By the nearest stamp, as most papers do, or by interpolating the reference to the estimate's times, which
leaves out the error that the nearest stamp makes at speed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Ints
from transect.base.clocks import NS
from transect.errors import TransectError, UsageError
from transect.geometry.interpolation import interpolate_attitudes, interpolate_columns, nearest_index
from transect.geometry.kernels import norm
from transect.types import Trajectory

By = Literal["nearest", "interpolate", "rows"]
MAX_DIFF = 0.01
"""Seconds between stamps that belong together, by default."""
LEAST = 0.5
"""Part of the shorter trajectory that must find a partner, by default."""
UNITS = ((1e3, "milliseconds"), (1e6, "microseconds"), (1e9, "nanoseconds"))
"""What stamps may have been written in, where seconds were expected."""


class AssociationError(TransectError):
    """Two trajectories whose times do not meet; says what their times are and what to try."""


@dataclass(frozen=True)
class Pairs:
    """Poses that belong together, row by row.

    Attributes
    ----------
    reference, estimate : Trajectory
        Of equal length; the reference is interpolated if that was asked for.
    candidates : int
        How many pairs there could have been: the length of the shorter trajectory, or of the estimate.
    by : str
        How they were found.
    offset_ns : int
        What was added to the estimate's times.
    notes : tuple of str
        What a person should know: stamps out of order, or given twice.
    """

    reference: Trajectory
    estimate: Trajectory
    candidates: int
    by: By
    offset_ns: int = 0
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.estimate)


def associate(
    reference: Trajectory,
    estimate: Trajectory,
    *,
    by: By = "nearest",
    max_diff: float = MAX_DIFF,
    offset: float = 0.0,
    least: float = LEAST,
) -> Pairs:
    """Find the pairs of two trajectories.

    Parameters
    ----------
    by : {"nearest", "interpolate", "rows"}
        The nearest stamp of the longer trajectory for each of the shorter one; the reference interpolated
        (SLERP) to each time of the estimate; or row by row, as always where one of them has no stamps.
    max_diff : float
        Seconds: between stamps that belong together, or from an interpolated time to both its neighbours.
    offset : float
        Seconds added to the estimate's times.
    least : float
        Part of the candidates that must find a partner.

    Raises
    ------
    AssociationError
        If too few do: with spans, overlap, rates, and the flag to try.
    """
    if by not in get_args(By):
        raise UsageError(f"pairs cannot be found by {by!r}", hint=" or ".join(get_args(By)))
    shift = round(offset * NS)
    moved = replace(estimate, t_ns=estimate.t_ns + shift) if shift else estimate
    for called, one in (("reference", reference), ("estimate", moved)):
        _refuse_bad(called, one)
    if "index" in (reference.clock, estimate.clock):
        by = "rows"
    pair = {"nearest": _nearest, "interpolate": _interpolate, "rows": _row_by_row}[by]
    limit = round(max_diff * NS)
    ref, est, candidates = pair(reference, moved, limit)
    if len(est) < max(1, least * candidates):
        what = f"{len(est)} of {candidates} poses have a partner within {max_diff:g} s"
        why, hint = _explain_mismatch(reference.t_ns, moved.t_ns, limit)
        raise AssociationError(what if len(est) else f"no poses belong together: {what}", why=why, hint=hint)
    notes = (*_disorder("reference", reference), *_disorder("estimate", moved))
    return Pairs(ref, est, candidates, by, shift, notes)


def rows(trajectory: Trajectory, index: Ints) -> Trajectory:
    """Return some poses of a trajectory; those that follow each other are not copied."""
    turned, spread = trajectory.orientations, trajectory.covariances
    run = len(index) > 0 and index[-1] - index[0] == len(index) - 1 and bool((np.diff(index) == 1).all())
    at = slice(int(index[0]), int(index[-1]) + 1) if run else index
    return replace(
        trajectory,
        t_ns=trajectory.t_ns[at],
        positions=trajectory.positions[at],
        orientations=None if turned is None else turned[at],
        covariances=None if spread is None else spread[at],
    )


def _nearest(reference: Trajectory, estimate: Trajectory, limit: int) -> tuple[Trajectory, Trajectory, int]:
    """Each stamp of the shorter trajectory takes the nearest of the longer.

    Ties are decided as evo decides them, so that published numbers come out again: of equal stamps the last,
    or the first if stamps are out of order; half-way between two, as their float seconds fall.
    """
    estimate_is_longer = len(estimate) > len(reference)
    short, long = (reference, estimate) if estimate_is_longer else (estimate, reference)
    order, axis, equal = _sorted_axis(long.t_ns)
    right = np.clip(np.searchsorted(axis, short.t_ns), 0, len(axis) - 1)
    left = np.maximum(right - 1, 0)
    to_left, to_right = np.abs(short.t_ns - axis[left]), np.abs(axis[right] - short.t_ns)
    later = to_right < to_left
    tie = np.flatnonzero(to_right == to_left)
    query, before, after = (_seconds(t[tie]) for t in (short.t_ns, axis[left], axis[right]))
    later[tie] = after - query < query - before
    partner = order[equal[np.where(later, right, left)]]
    near = np.flatnonzero(np.minimum(to_left, to_right) <= limit)
    ours, theirs = rows(short, near), rows(long, partner[near])
    return (*((ours, theirs) if estimate_is_longer else (theirs, ours)), len(short))


def _row_by_row(
    reference: Trajectory, estimate: Trajectory, limit: int
) -> tuple[Trajectory, Trajectory, int]:
    if len(reference) != len(estimate):
        raise AssociationError(
            f"{len(reference)} poses and {len(estimate)} poses cannot be paired row by row",
            why="one of the trajectories has no stamps",
            hint="KITTI's times.txt beside the poses gives them stamps",
        )
    return reference, estimate, len(estimate)


def _sorted_axis(t_ns: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the order that sorts stamps, the different ones, and which of equal ones stands for them."""
    if bool((np.diff(t_ns) > 0).all()):
        every = np.arange(len(t_ns))
        return every, t_ns, every
    order = np.argsort(t_ns, kind="stable")
    axis, first, count = np.unique(t_ns[order], return_index=True, return_counts=True)
    is_sorted = bool((np.diff(t_ns) >= 0).all())
    return order, axis, first + (count - 1 if is_sorted else 0)


def _seconds(t_ns: Ints) -> NDArray[np.float64]:
    return t_ns // NS + (t_ns % NS) / NS


def _interpolate(
    reference: Trajectory, estimate: Trajectory, limit: int
) -> tuple[Trajectory, Trajectory, int]:
    """The reference at each time of the estimate that has neighbours within the limit."""
    order = np.argsort(reference.t_ns, kind="stable")
    axis, first = np.unique(reference.t_ns[order], return_index=True)
    known = rows(reference, order[first])
    right = np.searchsorted(axis, estimate.t_ns)
    inside = (right < len(axis)) & ((right > 0) | (axis[np.minimum(right, len(axis) - 1)] == estimate.t_ns))
    after = axis[np.minimum(right, len(axis) - 1)] - estimate.t_ns
    before = estimate.t_ns - axis[np.maximum(right - 1, 0)]
    exact = after == 0
    near = np.flatnonzero(inside & (exact | ((after <= limit) & (before <= limit))))
    times = estimate.t_ns[near]
    turned = known.orientations
    at = Trajectory(
        times,
        interpolate_columns(axis, known.positions, times),
        None if turned is None else interpolate_attitudes(axis, turned, times),
        frame=known.frame,
        child=known.child,
        clock=known.clock,
    )
    return at, rows(estimate, near), len(estimate)


def _refuse_bad(called: str, trajectory: Trajectory) -> None:
    """Raise for trajectories that no metric can take."""
    if not len(trajectory):
        raise AssociationError(f"the {called} has no poses")
    if not np.isfinite(trajectory.positions).all():
        bad = ~np.isfinite(trajectory.positions).all(axis=1)
        raise AssociationError(
            f"{int(bad.sum())} of {len(trajectory)} positions of the {called} are not numbers",
            where=f"pose {int(np.argmax(bad))}",
            hint="leave out what was not measured",
        )
    if trajectory.orientations is None:
        return
    off = np.abs(norm(trajectory.orientations.T) - 1)
    if not (off < 1e-2).all():  # also true for NaN
        worst = int(np.argmax(np.where(np.isnan(off), np.inf, off)))
        raise AssociationError(
            f"{int((~(off < 1e-2)).sum())} quaternions of the {called} do not have length 1",
            where=f"pose {worst}: {trajectory.orientations[worst].tolist()}",
            why="they are read in the order x, y, z, w; columns may be swapped, or angles",
            hint="check the columns of the file",
        )


def _disorder(called: str, trajectory: Trajectory) -> list[str]:
    steps = np.diff(trajectory.t_ns)
    back, same = int((steps < 0).sum()), int((steps == 0).sum())
    said = [f"{back} stamps of the {called} are earlier than the one before"] if back else []
    return said + ([f"{same} stamps of the {called} are given twice in a row"] if same else [])


def _explain_mismatch(reference: Ints, estimate: Ints, limit_ns: int) -> tuple[str, str]:
    """Return why stamps do not meet, and what to try.

    Parameters
    ----------
    reference, estimate : (n,), (m,) int64
        Nanoseconds.
    limit_ns : int
        How far apart they may be.
    """
    spans = [(int(t.min()), int(t.max())) for t in (reference, estimate)]
    overlap = min(b for _, b in spans) - max(a for a, _ in spans)
    said = [f"{called} {_span(*span)}, {_rate(t)}" for called, span, t in
            zip(("reference", "estimate"), spans, (reference, estimate), strict=True)]  # fmt: skip
    if unit := _likely_unit(spans):
        return "; ".join([*said, f"one of them seems to be in {unit}"]), "convert its stamps to seconds"
    if overlap < 0:
        offset = (spans[0][0] - spans[1][0]) / NS
        why = "; ".join([*said, f"they do not overlap: {-overlap / NS:.6g} s lie between them"])
        return why, f"--offset {offset:.3f} puts their beginnings together; --offset auto searches"
    gap = _median_gap(reference, estimate)
    why = "; ".join(
        [*said, f"they overlap for {overlap / NS:.6g} s", f"half of the stamps are {gap / NS:.3g} s apart"]
    )
    if gap > limit_ns:
        return why, f"--max-diff {1.1 * gap / NS:.3g}, or --pairs interpolate"
    return why, "--least 0 takes the pairs that there are"


def _span(first_ns: int, last_ns: int) -> str:
    return f"from {first_ns / NS:.3f} to {last_ns / NS:.3f} s"


def _rate(t_ns: Ints) -> str:
    if len(t_ns) < 2 or t_ns.max() == t_ns.min():
        return f"{len(t_ns)} poses"
    return f"{len(t_ns)} poses at {(len(t_ns) - 1) / (int(t_ns.max()) - int(t_ns.min())) * NS:.3g} Hz"


def _likely_unit(spans: list[tuple[int, int]]) -> str:
    """Return the unit that would bring one axis to the other, or ""."""
    firsts = [max(abs(a), abs(b)) for a, b in spans]
    if min(firsts) == 0:
        return ""
    ratio = max(firsts) / min(firsts)
    return next((name for factor, name in UNITS if 0.5 < ratio / factor < 2), "")


def _median_gap(reference: Ints, estimate: Ints) -> float:
    """Return the median distance (ns) of the stamps of the shorter axis to the other, where they overlap."""
    short, long = sorted((reference, estimate), key=len)
    axis = np.sort(long)
    inside = short[(short >= axis[0]) & (short <= axis[-1])]
    if not len(inside):
        inside = short
    return float(np.median(np.abs(inside - axis[nearest_index(axis, inside)])))
