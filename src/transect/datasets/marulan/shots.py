"""Which moments of recordings show what the air did to their sensors: a clear one, and the worst."""

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
class Shot:
    """A moment of a recording, and a while around it.

    Attributes
    ----------
    conditions : tuple of str
        What was in the air then: `clear` where the checks found it so.
    first_ns, at_ns : int
        When the recording began, and the moment.
    t0_ns, t1_ns : int
        The while around it.
    """

    recording: Recording
    verdicts: VerdictTable
    conditions: tuple[str, ...]
    first_ns: int
    at_ns: int
    t0_ns: int
    t1_ns: int

    @property
    def air(self) -> str:
        """The conditions as a heading has them."""
        return " and ".join(self.conditions)

    @property
    def name(self) -> str:
        """The conditions and the time."""
        return f"{self.air} at {time_text(self.at_ns - self.first_ns)}"


def choose_shots(
    recordings: Sequence[tuple[Recording, VerdictTable]], times: Sequence[str] = (), seconds: float = 5.0
) -> list[Shot]:
    """Return the moments at which recordings are looked at, one or two of each.

    A recording in which the air was never anything but clear gives its first seconds. Any other gives its
    worst moment; where no recording is clear, the first one gives its first seconds, too.

    Parameters
    ----------
    times : sequence of str
        Instead: one for all recordings, or one for each.
    seconds : float
        Length of the while around a moment.
    """
    if len(times) not in (0, 1, len(recordings)):
        raise UsageError(
            f"--at is given {len(times)} times for {len(recordings)} recordings", hint="once each"
        )
    shots: list[Shot] = []
    for k, (recording, verdicts) in enumerate(recordings):
        if times:
            shots.append(_shot_at(recording, verdicts, times[min(k, len(times) - 1)], seconds))
            continue
        shots.append(_shot(recording, verdicts, _find_worst(recording, verdicts, seconds), seconds))
    if not times and shots and all(CLEAR not in shot.conditions for shot in shots):
        shots.insert(0, _shot(*recordings[0], None, seconds))
    return shots


def _find_worst(recording: Recording, verdicts: VerdictTable, seconds: float) -> int | None:
    """Return the middle of the worst window, ns, or as near as a while of its stretch can be.

    Where the air was clear it is the window that had most of somebody who is said to have been there.
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


def _shot_at(recording: Recording, verdicts: VerdictTable, time: str, seconds: float) -> Shot:
    first, last = recording.spans().get(recording.clock, (0, 0))
    at = clocks.resolve(time, first, recording.clock)
    if not first <= at <= last:
        ends = time_text(last - first)
        raise UsageError(f"{recording.name} has nothing at {time}", why=f"it lasts from +0 s to {ends}")
    return _shot(recording, verdicts, at, seconds)


def _shot(recording: Recording, verdicts: VerdictTable, at_ns: int | None, seconds: float) -> Shot:
    """Return a shot; without a time of the first seconds, which are clear if the checks say so."""
    first, last = recording.spans().get(recording.clock, (0, 0))
    half = round(seconds * NS / 2)
    at = first + half if at_ns is None else at_ns
    at = min(max(at, first + half), max(first + half, last - half))
    touched = any(v.t0_ns < at + half and at - half < v.t1_ns for v in air_windows(verdicts))
    conditions = conditions_among(recording, verdicts)
    if not touched:
        conditions = tuple(word for word in conditions if word == HUMAN) or (CLEAR,)
    return Shot(recording, verdicts, conditions, first, at, at - half, at + half)
