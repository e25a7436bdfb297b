"""Association of the poses of an estimate with those of its reference, and the time offset between the two.

Poses are paired by the nearest stamp, as most papers do, or by interpolating the reference to the estimate's
times, which removes the error that the nearest stamp makes at speed. The time offset is estimated by
correlating the speed or the rate of turn of both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.errors import GeometryError, TransectError, UsageError
from transect.geometry import rotations
from transect.geometry.correlation import TimeOffset, time_offset
from transect.geometry.interpolation import interpolate_attitudes, interpolate_columns, nearest_index
from transect.geometry.kernels import norm
from transect.types import Trajectory

By = Literal["nearest", "interpolate", "rows"]
Pairing = Literal["auto", "nearest", "interpolate", "rows"]
MAX_TIME_DIFFERENCE_S = 0.01  # between the stamps of a pair, by default
MIN_MATCHED_RATIO = 0.5  # of the shorter trajectory, by default
MAX_GAP_PERIODS = 1.5  # gap of the reference, in its periods, over which it is interpolated, by default
MAX_INTERPOLATED_PERIOD_S = 1.0  # of a reference that `auto` interpolates
UNITS = ((1e3, "milliseconds"), (1e6, "microseconds"), (1e9, "nanoseconds"))
"""Units of stamps that are mistaken for seconds."""


class AssociationError(TransectError):
    """Two trajectories whose times do not match; states their times and what to try."""


@dataclass(frozen=True)
class Pairs:
    """Associated poses, row by row."""

    reference: Trajectory  # interpolated if that was requested
    estimate: Trajectory
    candidates: int  # possible pairs: the length of the shorter trajectory, or of the estimate
    by: By  # method
    offset_ns: int = 0  # added to the estimate's times
    max_diff: float = MAX_TIME_DIFFERENCE_S  # largest difference of the stamps of a pair, s
    notes: tuple[str, ...] = ()  # about stamps out of order, or duplicate ones

    def __len__(self) -> int:
        return len(self.estimate)


def associate(
    reference: Trajectory,
    estimate: Trajectory,
    *,
    by: Pairing = "nearest",
    max_diff: float | None = None,
    offset: float = 0.0,
    least: float = MIN_MATCHED_RATIO,
) -> Pairs:
    """Associate the poses of two trajectories.

    Parameters
    ----------
    by : {"auto", "nearest", "interpolate", "rows"}
        The nearest stamp of the longer trajectory for each of the shorter one; the reference interpolated
        (SLERP) to each time of the estimate; or row by row, as always if one of them has no stamps. `auto`
        uses the nearest, and if too few are near enough, interpolates a reference that is dense enough.
    max_diff : float, optional
        Largest difference (s) between the stamps of a pair (0.01), or between an interpolated time and both
        its neighbours (1.5 periods of the reference).
    offset : float
        Seconds added to the estimate's times.
    least : float
        Fraction of the candidates that must be matched.

    Raises
    ------
    AssociationError
        If fewer are; the error has spans, overlap, rates, and the flag to try.
    """
    if by not in get_args(Pairing):
        raise UsageError(f"pairs cannot be found by {by!r}", hint=" or ".join(get_args(Pairing)))
    shift = round(offset * NS)
    moved = replace(estimate, t_ns=estimate.t_ns + shift) if shift else estimate
    for called, one in (("reference", reference), ("estimate", moved)):
        _refuse_bad(called, one)
    if "index" in (reference.clock, estimate.clock):
        by = "rows"
    found = _pair("nearest" if by == "auto" else by, reference, moved, max_diff)
    notes = (*_disorder("reference", reference), *_disorder("estimate", moved))
    if by == "auto" and max_diff is None and found.are_too_few(least):
        period = _median_period(reference.t_ns)
        between = (
            _pair("interpolate", reference, moved, None) if 0 < period <= MAX_INTERPOLATED_PERIOD_S else found
        )
        if not between.are_too_few(least):
            note = (
                "the reference is interpolated to the estimate's times: "
                f"{len(found.estimate)} of {found.candidates} poses are within {found.max_diff:g} s of one"
            )
            found, notes = between, (*notes, note)
    if found.are_too_few(least):
        what = f"{len(found.estimate)} of {found.candidates} poses have a match within {found.max_diff:g} s"
        why, hint = _explain_mismatch(reference.t_ns, moved.t_ns, found)
        raise AssociationError(what if len(found.estimate) else f"no poses match: {what}", why=why, hint=hint)
    return Pairs(found.reference, found.estimate, found.candidates, found.by, shift, found.max_diff, notes)


@dataclass(frozen=True, eq=False)
class _Association:
    """Pairs of one method, and the number of possible pairs."""

    reference: Trajectory
    estimate: Trajectory
    candidates: int
    by: By
    max_diff: float

    def are_too_few(self, least: float) -> bool:
        return len(self.estimate) < max(1, least * self.candidates)


def _pair(by: By, reference: Trajectory, estimate: Trajectory, max_diff: float | None) -> _Association:
    if max_diff is None:
        gap = MAX_GAP_PERIODS * _median_period(reference.t_ns)
        max_diff = max(gap, MAX_TIME_DIFFERENCE_S) if by == "interpolate" else MAX_TIME_DIFFERENCE_S
    pair = {"nearest": _nearest, "interpolate": _interpolate, "rows": _row_by_row}[by]
    return _Association(*pair(reference, estimate, round(max_diff * NS)), by, max_diff)


def _median_period(t_ns: Ints) -> float:
    """Return the median period (s) of stamps; 0 for fewer than two."""
    steps = np.diff(np.unique(t_ns))
    return float(np.median(steps)) / NS if len(steps) else 0.0


def rows(trajectory: Trajectory, index: Ints) -> Trajectory:
    """Return some poses of a trajectory; consecutive ones are not copied."""
    orientations, spread = trajectory.orientations, trajectory.covariances
    run = len(index) > 0 and index[-1] - index[0] == len(index) - 1 and bool((np.diff(index) == 1).all())
    at = slice(int(index[0]), int(index[-1]) + 1) if run else index
    return replace(
        trajectory,
        t_ns=trajectory.t_ns[at],
        positions=trajectory.positions[at],
        orientations=None if orientations is None else orientations[at],
        covariances=None if spread is None else spread[at],
    )


def _nearest(reference: Trajectory, estimate: Trajectory, limit: int) -> tuple[Trajectory, Trajectory, int]:
    """Match each stamp of the shorter trajectory with the nearest of the longer.

    Ties are decided as in evo, so that published numbers are reproduced: of equal stamps the last, or the
    first if stamps are out of order; half-way between two, by their seconds in floating point.
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
    match = order[equal[np.where(later, right, left)]]
    near = np.flatnonzero(np.minimum(to_left, to_right) <= limit)
    ours, theirs = rows(short, near), rows(long, match[near])
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
    """Return the order that sorts stamps, the distinct stamps, and the index that represents equal ones."""
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
    """Interpolate the reference at each time of the estimate that has neighbours within the limit."""
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
    """Raise for trajectories that no metric accepts."""
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
    problems = [f"{back} stamps of the {called} are earlier than the one before"] if back else []
    return problems + ([f"{same} stamps of the {called} are given twice in a row"] if same else [])


def _explain_mismatch(reference: Ints, estimate: Ints, found: _Association) -> tuple[str, str]:
    """Return why stamps (n,), (m,) in ns do not match, and what else to try."""
    spans = [(int(t.min()), int(t.max())) for t in (reference, estimate)]
    overlap = min(b for _, b in spans) - max(a for a, _ in spans)
    reasons = [f"{called} {_span(*span)}, {_rate(t)}" for called, span, t in
            zip(("reference", "estimate"), spans, (reference, estimate), strict=True)]  # fmt: skip
    if unit := _likely_unit(spans):
        return "; ".join([*reasons, f"one of them seems to be in {unit}"]), "convert its stamps to seconds"
    if overlap < 0:
        offset = (spans[0][0] - spans[1][0]) / NS
        why = "; ".join([*reasons, f"they do not overlap: {-overlap / NS:.6g} s lie between them"])
        return why, f"--offset {offset:.3f} aligns their starts; --offset auto searches"
    between = found.by == "interpolate"
    gap = (_median_bracket if between else _median_gap)(reference, estimate) / NS
    apart = "from neighbours in the reference" if between else "apart"
    reasons += [f"they overlap for {overlap / NS:.6g} s", f"half of the stamps are {gap:.3g} s {apart}"]
    wider = f"--max-diff {1.1 * gap:.3g}"
    if not gap > found.max_diff:
        return "; ".join(reasons), "--least 0 takes the pairs that there are"
    return "; ".join(reasons), wider if between else f"{wider}, or --pairs interpolate"


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


def _median_bracket(reference: Ints, estimate: Ints) -> float:
    """Return the median distance (ns) of the estimate's stamps to the farther neighbour in the reference."""
    axis = np.unique(reference)
    inside = estimate[(estimate >= axis[0]) & (estimate <= axis[-1])]
    if not len(inside):
        return 0.0
    right = np.clip(np.searchsorted(axis, inside), 1, max(len(axis) - 1, 1))
    return float(np.median(np.maximum(axis[right] - inside, inside - axis[right - 1])))


def _median_gap(reference: Ints, estimate: Ints) -> float:
    """Return the median distance (ns) of the stamps of the shorter axis to the other, where they overlap."""
    short, long = sorted((reference, estimate), key=len)
    axis = np.sort(long)
    inside = short[(short >= axis[0]) & (short <= axis[-1])]
    if not len(inside):
        inside = short
    return float(np.median(np.abs(inside - axis[nearest_index(axis, inside)])))


MIN_CORRELATION = 0.5  # of two signals that show the same motion


class OffsetSearchError(TransectError):
    """Two trajectories whose offset cannot be told from their motion."""


@dataclass(frozen=True)
class EstimatedOffset:
    """A time offset estimated by correlation."""

    seconds: float  # to add to the estimate's times
    signal: str  # what was correlated
    correlation: float  # of the two signals at the offset
    confidence: float  # in [0, 1]: height of that peak above the next one

    def __str__(self) -> str:
        return (
            f"offset {self.seconds:+.4f} s by {self.signal}: correlation {self.correlation:.2f}, "
            f"confidence {self.confidence:.2f}"
        )


def find_offset(
    reference: Trajectory, estimate: Trajectory, max_offset: float | None = None
) -> EstimatedOffset:
    """Return the offset to add to the times of an estimate, from the signal with the clearest correlation.

    Parameters
    ----------
    max_offset : float, optional
        Largest offset (s) that is searched; by default all at which they overlap.

    Raises
    ------
    OffsetSearchError
        If no signal determines it: a body stands still, moves periodically, or the drives are different.
    """
    limit = None if max_offset is None else round(max_offset * NS)
    found: list[EstimatedOffset] = []
    why = list[str]()
    estimate_signals = signals_of(estimate)
    for name, (t_ns, values) in signals_of(reference).items():
        if name not in estimate_signals:
            continue
        try:
            best = time_offset(t_ns, values, *estimate_signals[name], max_offset_ns=limit)
        except GeometryError as error:
            why.append(f"{name}: {error.what}")
            continue
        if best.correlation >= MIN_CORRELATION and best.confidence > 0:
            found.append(EstimatedOffset(best.offset_ns / NS, name, best.correlation, best.confidence))
        why.append(_describe_offset(name, best))
    if not found:
        raise OffsetSearchError(
            "the motion does not determine a time offset", why="; ".join(why), hint="--offset SECONDS"
        )
    return max(found, key=lambda each: each.confidence)


def signals_of(trajectory: Trajectory) -> dict[str, tuple[Ints, Floats]]:
    """Return the signals of a trajectory's motion: `rate of turn` (rad/s) and `speed` (m/s).

    Each has sorted times in ns, half-way between poses, and values.
    """
    t_ns, order = np.unique(trajectory.t_ns, return_index=True)
    steps = np.diff(t_ns)
    times = t_ns[:-1] + steps // 2
    found: dict[str, tuple[Ints, Floats]] = {}
    if trajectory.orientations is not None:
        orientations = trajectory.orientations[order]
        found["rate of turn"] = (
            times,
            rotations.angle_between(orientations[1:], orientations[:-1]) * NS / steps,
        )
    moved = np.linalg.norm(np.diff(trajectory.positions[order], axis=0), axis=1)
    found["speed"] = times, moved * NS / steps
    return found


def _describe_offset(name: str, best: TimeOffset) -> str:
    return f"{name}: best correlation {best.correlation:.2f}, confidence {best.confidence:.2f}"
