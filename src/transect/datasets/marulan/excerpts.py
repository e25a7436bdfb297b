"""Excerpts of recordings that show the effect of obscurants: a clear one, and the worst."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transect.base import clocks
from transect.base.clocks import NS
from transect.errors import UsageError
from transect.integrity.events import CLEAR, HUMAN, air_windows, conditions_among
from transect.integrity.report import find_runs, time_text
from transect.integrity.table import VerdictTable
from transect.recording import Recording


@dataclass(frozen=True, eq=False)
class Excerpt:
    """A few seconds of a recording."""

    recording: Recording
    verdicts: VerdictTable
    conditions: tuple[str, ...]  # during the excerpt; `clear` if the checks detect no obscurant
    first_ns: int  # start of the recording
    at_ns: int  # middle of the excerpt
    t0_ns: int  # start and end of the excerpt
    t1_ns: int

    @property
    def air(self) -> str:
        """The conditions as a heading."""
        return " and ".join(self.conditions)

    @property
    def name(self) -> str:
        """The conditions and the time."""
        return f"{self.air} at {time_text(self.at_ns - self.first_ns)}"


def choose_excerpts(
    recordings: Sequence[tuple[Recording, VerdictTable]], times: Sequence[str] = (), seconds: float = 5.0
) -> list[Excerpt]:
    """Return the excerpts of recordings to draw, one or two of each.

    A clear recording is represented by its first seconds, any other one by its worst moment. If no recording
    is clear, the first seconds of the first one are added.

    Parameters
    ----------
    times : sequence of str
        Times to use instead: one for all recordings, or one for each.
    seconds : float
        Length of an excerpt.
    """
    if len(times) not in (0, 1, len(recordings)):
        raise UsageError(
            f"--at is given {len(times)} times for {len(recordings)} recordings", hint="once each"
        )
    excerpts: list[Excerpt] = []
    for k, (recording, verdicts) in enumerate(recordings):
        if times:
            excerpts.append(_excerpt_at(recording, verdicts, times[min(k, len(times) - 1)], seconds))
            continue
        excerpts.append(_excerpt(recording, verdicts, _find_worst(recording, verdicts, seconds), seconds))
    if not times and excerpts and all(CLEAR not in each.conditions for each in excerpts):
        excerpts.insert(0, _excerpt(*recordings[0], None, seconds))
    return excerpts


def _find_worst(recording: Recording, verdicts: VerdictTable, seconds: float) -> int | None:
    """Return the middle of the worst window, ns, shifted so that the excerpt is within its anomalous span.

    In clear air with a person, it is the window with most of the person's returns.
    """
    found = air_windows(verdicts)
    if not found and HUMAN in conditions_among(recording, verdicts):
        objects = verdicts.select(check="C01", reason="OBJECT")
        found = sorted(objects, key=lambda v: (-v.evidence["share"], v.t0_ns, v.stream))
    if not found:
        return None
    windows = {v.t0_ns: v for v in found if v.stream == found[0].stream}
    run = next(
        run for run in find_runs([windows[t] for t in sorted(windows)]) if windows[found[0].t0_ns] in run
    )
    half = round(seconds * NS / 2)
    low, high = run[0].t0_ns + half, run[-1].t1_ns - half
    middle = (found[0].t0_ns + found[0].t1_ns) // 2
    return min(max(middle, low), high) if low <= high else (low + high) // 2


def _excerpt_at(recording: Recording, verdicts: VerdictTable, time: str, seconds: float) -> Excerpt:
    first, last = recording.spans().get(recording.clock, (0, 0))
    at = clocks.resolve(time, first, recording.clock)
    if not first <= at <= last:
        ends = time_text(last - first)
        raise UsageError(f"{recording.name} has nothing at {time}", why=f"it lasts from +0 s to {ends}")
    return _excerpt(recording, verdicts, at, seconds)


def _excerpt(recording: Recording, verdicts: VerdictTable, at_ns: int | None, seconds: float) -> Excerpt:
    """Return the excerpt around a time, or of the first seconds without one."""
    first, last = recording.spans().get(recording.clock, (0, 0))
    half = round(seconds * NS / 2)
    at = first + half if at_ns is None else at_ns
    at = min(max(at, first + half), max(first + half, last - half))
    is_obscured = any(v.t0_ns < at + half and at - half < v.t1_ns for v in air_windows(verdicts))
    conditions = conditions_among(recording, verdicts)
    if not is_obscured:
        conditions = tuple(word for word in conditions if word == HUMAN) or (CLEAR,)
    return Excerpt(recording, verdicts, conditions, first, at, at - half, at + half)
