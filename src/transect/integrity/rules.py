"""Rules of verdicts: windows, scores, states, declaration, and the combination of several checks.

Pure functions and one counter; the letters (a) to (f) refer to the verdict model in `docs/integrity.md`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Ints, Mask
from transect.types import STATES, State


@dataclass(frozen=True)
class VerdictRules:
    """Numbers of the verdict model."""

    k_on: int = 2  # Consecutive windows after which BAD is declared, ...
    k_off: int = 3  # ... and cleared.
    max_suspect_score: float = 0.5
    max_bad_score: float = 0.1
    # Windows without any sample that are judged separately; the rest of a silence is merged into one.
    max_silent_windows: int = 5


RULES = VerdictRules()
GROUPS = ("timing", "signal", "content", "cross", "state")
UNDECIDED = ("NO_BASELINE", "UNREADABLE")
"""Reasons for UNKNOWN that prevent OK: there is evidence against the sensor, but it is not conclusive."""
_ORDER: Sequence[State] = ("UNKNOWN", "OK", "SUSPECT", "BAD")


def tile(start_ns: int, end_ns: int, window_ns: int) -> Ints:
    """Return the edges (n + 1,) of the windows that tile [start, end); the last one may be shorter (a)."""
    count = max(0, -(-(end_ns - start_ns) // window_ns))
    edges = start_ns + window_ns * np.arange(count + 1, dtype=np.int64)
    edges[-1] = end_ns if count else start_ns
    return edges


def tile_sampled(times_ns: Iterable[Ints], start_ns: int, end_ns: int, window_ns: int) -> Ints:
    """Return the edges (n + 1,) of windows that tile [start, end) as `tile` does, long silences merged.

    After `max_silent_windows` windows without a sample of any stream, those up to the next sample are one:
    the number of windows grows with the samples and not with the time between them. `times_ns` has the
    stamps of all streams, in any order; those outside belong to the first and last window.
    """
    count = max(1, -(-(end_ns - start_ns) // window_ns))
    occupied = [np.array([0, count - 1], np.int64)]
    for t_ns in times_ns:
        inside = np.clip(t_ns, start_ns, end_ns - 1).astype(np.uint64)
        since = inside - np.uint64(start_ns % 2**64)  # modulo 2^64, as the span may not fit into an int64
        occupied.append(np.unique(since // np.uint64(window_ns)).astype(np.int64))
    numbers = np.unique(np.concatenate(occupied))
    kept = np.unique(numbers[:, None] + np.arange(RULES.max_silent_windows + 2))
    edges = np.uint64(start_ns % 2**64) + kept[kept < count].astype(np.uint64) * np.uint64(window_ns)
    return np.append(edges.astype(np.int64), end_ns)


def score_of(value: float, warn: float, fail: float) -> float | None:
    """Return the score of a statistic in [0, 1], None for NaN (c).

    1 up to `warn`; beyond it 0.5, falling linearly to 0 at `fail`. If `warn` is larger than `fail`, small
    statistics are bad. The score never increases as the statistic gets worse.
    """
    if math.isnan(value):
        return None
    if warn > fail:
        value, warn, fail = -value, -warn, -fail
    if value <= warn:
        return 1.0
    if value >= fail:
        return 0.0
    return 0.5 * (fail - value) / (fail - warn)


def state_of(score: float | None) -> State:
    """Return the state of a score; UNKNOWN for None (b)."""
    if score is None:
        return "UNKNOWN"
    if score > RULES.max_suspect_score:
        return "OK"
    return "SUSPECT" if score > RULES.max_bad_score else "BAD"


class Declaration:
    """Declares BAD after `k_on` consecutive BAD windows, and clears it after `k_off` that are not BAD (d).

    Consecutive windows are counted, as InSight's arm does for its faults; there is no moving average. A
    BAD window that is not yet declared is SUSPECT. An UNKNOWN window stays UNKNOWN, and changes no count.
    """

    def __init__(self, k_on: int = RULES.k_on, k_off: int = RULES.k_off) -> None:
        self.k_on, self.k_off = k_on, k_off
        self._bad = self._better = 0
        self._declared = False

    def declare(self, raw: State, windows: int = 1) -> State:
        """Process the state of the next window, or of several merged ones; return the declared state."""
        if raw == "UNKNOWN":
            return raw
        if raw == "BAD":
            self._bad, self._better = self._bad + windows, 0
        else:
            self._bad, self._better = 0, self._better + windows
        if self._bad >= self.k_on:
            self._declared = True
        elif self._better >= self.k_off:
            self._declared = False
        if self._declared:
            return "BAD"
        return "SUSPECT" if raw == "BAD" else raw


def declare(raws: Iterable[State], k_on: int = RULES.k_on, k_off: int = RULES.k_off) -> list[State]:
    """Return the declared states of consecutive windows; see `Declaration`."""
    declaration = Declaration(k_on, k_off)
    return [declaration.declare(raw) for raw in raws]


def worst(states: Iterable[State]) -> State:
    """Return the worst state; UNKNOWN only if all are (b)."""
    return _ORDER[max((_ORDER.index(state) for state in states), default=0)]


@dataclass(frozen=True)
class RolledUp:
    """Combined verdict of several checks for one window."""

    state: State  # worst declared state
    raw: State  # worst state of this window alone
    score: float | None  # product over the groups of the smallest score in each
    # index of the verdict with the smallest score, which supplies the reason; None if all are OK
    at: int | None


def roll_up(
    groups: Sequence[str],
    scores: Sequence[float | None],
    states: Sequence[State],
    raws: Sequence[State],
    reasons: Sequence[str] = (),
) -> RolledUp:
    """Return the combined verdict of the checks of one sensor for one window (e).

    UNKNOWN verdicts are left out. The result is UNKNOWN, and never OK, if nothing is known or if a
    verdict is UNKNOWN for a reason of `UNDECIDED`.
    """
    smallest_of: dict[str, float] = {}
    at, smallest = None, 1.0
    for index, (group, score) in enumerate(zip(groups, scores, strict=True)):
        if score is None:
            continue
        smallest_of[group] = min(score, smallest_of.get(group, 1.0))
        # Ties: a declared verdict first, then the first in order.
        if score < smallest or (score == smallest < 1.0 and at is not None and _beats(states, index, at)):
            at, smallest = index, score
    total = math.prod(smallest_of[group] for group in sorted(smallest_of)) if smallest_of else None
    state = worst(states)
    if at is None and state in ("SUSPECT", "BAD"):  # a past fault that is not yet cleared
        at = next(index for index, each in enumerate(states) if each == state)
    undecided = next((index for index, reason in enumerate(reasons) if reason in UNDECIDED), None)
    if state == "OK" and undecided is not None:
        return RolledUp("UNKNOWN", "UNKNOWN", None, undecided)
    return RolledUp(state, worst(raws), total, at)


def _beats(states: Sequence[State], index: int, at: int) -> bool:
    return _ORDER.index(states[index]) > _ORDER.index(states[at])


def masked_ratio(region: Mask | None) -> float:
    """Return the ratio of beams or pixels that a region drops, 0 without a region (f)."""
    return 0.0 if region is None or not region.size else float(np.mean(region))


def unite(regions: Sequence[Mask]) -> Mask | None:
    """Return the union of the regions that have the shape of the first one (f)."""
    if not regions:
        return None
    same = [region for region in regions if region.shape == regions[0].shape]
    return np.logical_or.reduce(same)


def count_states(states: Iterable[State]) -> dict[State, int]:
    """Return how often each state occurs."""
    found = list(states)
    return {state: found.count(state) for state in STATES}
