"""Verdicts as a person reads them: a strip over time, sentences, and the worst moments.

What the codes of verdicts mean, in words, and what to do about them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from transect.base import clocks
from transect.base.clocks import NS
from transect.base.files import file_name
from transect.recording import Recording
from transect.types import State, Verdict

from . import catalogue
from .model import Limit
from .rules import UNDECIDED, count_states, worst

if TYPE_CHECKING:
    from .table import VerdictTable


from typing import NamedTuple

SUCCESSION = 5 * NS
"""Windows of one problem that are no further apart are one stretch, ns."""


RATIO_PREFIX = "fraction of "
"""Begin of the description of a ratio, which is printed in per cent."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a sensor.

    Attributes
    ----------
    spans : tuple of (int, int)
        When it was there, ns: from the first window that was anomalous to the last, though BAD is declared
        later and cleared later. Stretches that are nearly one are one.
    seconds : float
        How long in all.
    worst : Verdict
        Of the window in which it was worst.
    mend : str
        What to try, as it is typed for the recording; "" where that is not known.
    """

    sensor: str
    stream: str
    check: str
    reason: str
    state: State
    spans: tuple[tuple[int, int], ...]
    seconds: float
    worst: Verdict
    mend: str = ""

    def sentence(self, start_ns: int) -> str:
        """Return what is wrong, when, and how much, as a sentence."""
        times = [span_text(*span, start_ns) for span in self.spans[:3]]
        left = len(self.spans) - 3
        more = f" and {left} more time{'s' * (left > 1)}" if left > 0 else ""
        who = "" if self.stream == self.sensor else f"{self.stream} "
        said = f"{who}{reason_of(self.reason).words}: {', '.join(times)}{more}"
        if measured := self._measured():
            several = self.seconds * NS > 1.5 * (self.worst.t1_ns - self.worst.t0_ns)
            at = f"worst at {time_text(self.worst.t0_ns - start_ns)}, " if several else ""
            said += f"; {at}{measured}"
        return f"{said} ({self.check} {self.reason})"

    def _measured(self) -> str:
        """Return the statistic that gave the reason, or else is farthest beyond its limits, in words."""
        limits = limits_of(self.check)
        beyond = [(excess, name) for name, excess in _excesses(self.worst).items() if excess > 0]
        meant = [each for each in beyond if each[1] in limits and limits[each[1]].reason == self.reason]
        beyond = meant or beyond
        said = ""
        if beyond:
            excess, name = max(beyond)
            unit, doc = (limits[name].unit, limits[name].doc) if name in limits else ("", name)
            limit = self.worst.threshold[f"{name}.{'fail' if excess >= 1 else 'warn'}"]
            said = _in_words(self.worst.evidence[name], limit, unit, doc)
        compared = f"compared with {', '.join(self.worst.peers)}" if self.worst.peers else ""
        return "; ".join(part for part in (said, self.worst.note, compared) if part)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "stream": self.stream, "check": self.check, "reason": self.reason, "state": self.state,
            "words": reason_of(self.reason).words, "mend": self.mend,
            "spans_ns": [list(span) for span in self.spans],
            "seconds": self.seconds, "worst_ns": self.worst.t0_ns, "score": self.worst.score,
            "note": self.worst.note, "evidence": {k: v for k, v in self.worst.evidence.items() if v == v},
            "peers": list(self.worst.peers),
        }  # fmt: skip


def _in_words(value: float, limit: float, unit: str, doc: str) -> str:
    """Return a statistic and its limit in words; parts of something in per cent.

    `fraction of the beams that are near` is printed as `71 % of the beams are near (limit 3 %)`.
    """
    if doc.startswith(RATIO_PREFIX):
        whole = doc.removeprefix(RATIO_PREFIX).replace(" that ", " ", 1)
        return f"{100 * value:.3g} % of {whole} (limit {100 * limit:g} %)"
    return f"{value:.3g}{f' {unit}' if unit else ''} {doc} (limit {limit:g})"


@dataclass(frozen=True)
class SensorReport:
    """What was found out about one sensor.

    Attributes
    ----------
    windows : sequence of Verdict
        What all checks say together, in order of time.
    problems : sequence of Problem
        The worst first.
    """

    sensor: str
    windows: Sequence[Verdict]
    problems: Sequence[Problem]

    @property
    def state(self) -> State:
        """The worst that was declared; not OK where something that nothing decides speaks against it."""
        state = worst(verdict.state for verdict in self.windows)
        undecided = any(verdict.reason in UNDECIDED for verdict in self.windows)
        return "UNKNOWN" if state == "OK" and undecided else state

    @property
    def mean_score(self) -> float | None:
        """Mean of the scores that are known, over time."""
        return mean_score(self.windows)

    @property
    def span(self) -> tuple[int, int]:
        """Begin and end of its session, ns."""
        return self.windows[0].t0_ns, self.windows[-1].t1_ns

    @property
    def window_ns(self) -> int:
        """Length of its usual windows, ns; that of a long silence is longer."""
        return self.windows[0].t1_ns - self.windows[0].t0_ns

    @property
    def window_count(self) -> int:
        """Number of usual windows that its session would have."""
        return -(-(self.span[1] - self.span[0]) // self.window_ns)

    def strip(self, length: int, axis: tuple[int, int]) -> list[State | None]:
        """Return states for a strip of cells over a time, ns, each the worst of its windows; None without."""
        begin, window = axis[0], self.window_ns
        count = -(-(axis[1] - begin) // window)
        length = min(length, count)
        cells: list[list[State]] = [[] for _ in range(length)]
        for verdict in self.windows:
            first, last = (
                ((t - begin) // window * length + length - 1) // count
                for t in (verdict.t0_ns, verdict.t1_ns - 1)
            )
            for at in range(first, max(first, last) + 1):
                cells[min(at, length - 1)].append(verdict.state)
        return [worst(states) if states else None for states in cells]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "sensor": self.sensor,
            "state": self.state,
            "mean_score": self.mean_score,
            "windows": count_states(verdict.state for verdict in self.windows),
            "problems": [problem.to_dict() for problem in self.problems],
        }


def mean_score(windows: Iterable[Verdict]) -> float | None:
    """Return the mean of the scores that are known, weighted by the length of their windows."""
    known = [(v.score, v.t1_ns - v.t0_ns) for v in windows if v.score is not None]
    weight = sum(length for _, length in known)
    return sum(score * length for score, length in known) / weight if weight else None


def report_sensors(table: VerdictTable, recording: Recording | None = None) -> list[SensorReport]:
    """Return what was found out about each sensor, by name; with the recording also what to try."""
    problems = list(_problems(table))
    if recording is not None:
        problems = [replace(each, mend=_advise(each, recording)) for each in problems]
    return [
        SensorReport(name, windows, [each for each in problems if each.sensor == name])
        for name, windows in table.by_sensor.items()
    ]


def _advise(problem: Problem, recording: Recording) -> str:
    """Return what to try, with the names and times that are to be typed."""
    clock = recording[problem.stream].clock if problem.stream in recording else recording.clock
    return reason_of(problem.reason).mend.format(
        paths=recording.typed,
        copy=shlex.quote(file_name(f"{recording.name}-readable")),
        stream=shlex.quote(problem.stream),
        after=clocks.text_from_ns(problem.spans[-1][1], clock),
    )


def axis_of(report: SensorReport, longest: SensorReport) -> tuple[int, int]:
    """Return the time, ns, over which a sensor is drawn: that of the longest session, if it began in that."""
    first, last = longest.span
    return longest.span if first <= report.span[0] < last else report.span


def _problems(table: VerdictTable) -> Iterator[Problem]:
    """Yield what is wrong, BAD before SUSPECT, longer before shorter."""
    rows: dict[tuple[str, str, str, str], list[Verdict]] = {}
    for verdict in chain(
        table.select(state=("SUSPECT", "BAD"), muted=""), table.select(reason=UNDECIDED, muted="")
    ):
        rows.setdefault((verdict.sensor, verdict.stream, verdict.check, verdict.reason), []).append(verdict)
    found: list[Problem] = []
    for key, verdicts in rows.items():
        state = worst(verdict.state for verdict in verdicts)
        there = [each for run in find_runs(verdicts) for each in _find_anomalous(run, state)]
        seconds = sum(v.t1_ns - v.t0_ns for v in there) / NS
        spans = tuple(_spans([(v.t0_ns, v.t1_ns) for v in there]))
        found.append(Problem(*key, state, spans, seconds, min(there, key=badness)))
    yield from sorted(found, key=lambda each: (each.state != "BAD", -each.seconds, each.stream, each.check))


def find_runs(verdicts: Sequence[Verdict]) -> Iterator[list[Verdict]]:
    """Yield windows that follow each other without a gap, run by run."""
    run: list[Verdict] = []
    for verdict in verdicts:
        if run and verdict.t0_ns != run[-1].t1_ns:
            yield run
            run = []
        run.append(verdict)
    yield run


def _find_anomalous(run: Sequence[Verdict], state: State) -> list[Verdict]:
    """Return the windows of a run that were anomalous, if a state was declared in it.

    BAD is declared some windows after it began, and cleared some windows after it ended.
    """
    declared = any(verdict.state == state for verdict in run)
    return [v for v in run if declared and (v.raw in ("SUSPECT", "BAD") or v.reason in UNDECIDED)]


def limits_of(check: str) -> Mapping[str, Limit]:
    """Return the limits of a check by its identifier, none if it is not known."""
    return next((kind.limits for kind in catalogue.load_all().values() if kind.id == check), {})


def _excesses(verdict: Verdict) -> dict[str, float]:
    """Return how far each statistic is beyond its limits: 0 at `warn`, 1 at `fail`."""
    found: dict[str, float] = {}
    for name, value in verdict.evidence.items():
        warn, fail = (verdict.threshold.get(f"{name}.{what}") for what in ("warn", "fail"))
        if warn is not None and fail is not None and value == value:
            found[name] = (value - warn) / (fail - warn or 1.0)
    return found


def badness(verdict: Verdict) -> tuple[float, float, int]:
    """Return what sorts the worst window first: its score, then how far it is beyond its limits."""
    score = 1.0 if verdict.score is None else verdict.score
    return score, -max(_excesses(verdict).values(), default=0.0), verdict.t0_ns


def _spans(windows: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    start, end = windows[0]
    for t0, t1 in windows[1:]:
        if t0 > end + SUCCESSION:
            yield start, end
            start = t0
        end = t1
    yield start, end


def time_text(ns: int) -> str:
    """Return a time since the start as a person reads it: `+12 s`, `+3:05`, `+1:02:03`."""
    seconds = ns // NS
    if seconds < 100:
        return f"+{seconds} s"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"+{hours}:{minutes:02d}:{rest:02d}" if hours else f"+{minutes}:{rest:02d}"


def span_text(start: int, end: int, first: int) -> str:
    """Return a stretch of time since the start: `+12 s to +32 s`."""
    if end - start <= NS:
        return time_text(start - first)
    return f"{time_text(start - first)} to {time_text(end - first)}"


class Reason(NamedTuple):
    """What is wrong, as the end of a sentence about a sensor, and what to try.

    `mend` may name {paths} of the recording and the {stream}, as they are typed in a shell, and {after}: a
    time, when the problem was over.
    """

    words: str
    mend: str


REASONS: dict[str, Reason] = {
    "NO_DATA": Reason("gave no samples", "look for a crashed driver, a loose cable, a full disk"),
    "LATE_START": Reason("started late", "leave the beginning out (--from), or do without it there"),
    "EARLY_STOP": Reason("stopped early", "leave the end out (--to), or do without it there"),
    "GAP": Reason("lost samples", "look for full queues, a slow disk, a loose cable"),
    "RATE": Reason("came at another rate", "check the driver; state the nominal rate in --config"),
    "JITTER": Reason("was stamped unevenly", "stamp at the sensor, not when the message is read"),
    "BACKWARD": Reason("has stamps that go back", "sort it, or find out which clock was set back"),
    "DUPLICATE": Reason("has stamps that repeat", "it is logged twice, or faster than it measures"),
    "CLOCK_JUMP": Reason(
        "has a clock that jumped",
        "use what comes after it: transect check {paths} --from {after}; run and export take it, too",
    ),
    "CLOCK_DRIFT": Reason("has a clock that drifts", "synchronise it (PTP, NTP)"),
    "LATENCY": Reason(
        "is stamped later or earlier than a peer",
        "find out which is late; transect run takes --offset {stream}=auto",
    ),
    "META_TIME": Reason("has times that contradict others", "compare the loggers' time zones and epochs"),
    "STUCK": Reason("repeated one sample", "restart the sensor; leave that stretch out"),
    "SATURATED": Reason("was at the end of its range", "set a larger range, or damp the mount"),
    "RANGE_LIMIT": Reason("was at the end of its range", "set a larger range"),
    "NAN": Reason("has values that are none", "find out what the driver writes where it measures nothing"),
    "NOISE": Reason(
        "was noisier than usual", "check its mount, cable and power; give it less weight when it is fused"
    ),
    "SPIKES": Reason("has single values that are far off", "leave the masked samples out"),
    "BIAS": Reason("has a bias that moved", "calibrate at rest; check its temperature"),
    "UNIT": Reason("has numbers that cannot be in their unit", "correct the unit in the robot's description"),
    "DUST": Reason("saw a cloud", "drop the masked beams; a radar sees through it"),
    "SMOKE": Reason("saw a cloud", "drop the masked beams; a radar sees through it"),
    "OBSCURANT": Reason("saw a cloud", "drop the masked beams; a radar sees through it"),
    "NO_BASELINE": Reason(
        "may see dust or smoke, or bushes in the wind: nothing shows what it sees in clear air",
        "transect check {paths} --reference CLEAR, a recording at the same place in clear air",
    ),
    "UNREADABLE": Reason(
        "has samples that cannot be read",
        "copy its files again; transect export {paths} -o {copy} leaves them out and names them",
    ),
    "RAIN": Reason("saw rain", "drop the masked beams; it stays usable"),
    "BLOCKED": Reason("is blocked in a sector", "clean or clear it; drop the masked beams"),
    "MULTIPATH": Reason("saw echoes of echoes", "leave out what lies behind reflectors"),
    "BLUR": Reason("is blurred", "shorten the exposure; check the focus"),
    "DARK": Reason("is too dark", "lengthen the exposure; use light, or infrared"),
    "OVEREXPOSED": Reason("is overexposed", "shorten the exposure"),
    "HAZE": Reason("sees through haze", "use infrared or radar there"),
    "FROZEN_IMAGE": Reason("repeated one image", "restart the camera; leave that stretch out"),
    "POSITION_JUMP": Reason(
        "has positions that jump", "leave those out; look for multipath and for changes of the fix"
    ),
    "DISAGREE": Reason("disagrees with a peer", "find out which of them is right; a third sensor decides"),
    "OBJECT_CONFIRMED": Reason("saw something that a peer sees, too", "nothing: it is there"),
    "EXTRINSIC": Reason("has moved on the robot", "calibrate again; check its mount"),
    "FIX_LOST": Reason("lost its fix", "go by its declared deviations; bridge it by odometry"),
    "SLIP": Reason("slipped", "use visual odometry there"),
    "NIS": Reason("does not fit its covariance", "correct the covariances"),
    "NEES": Reason("does not fit its covariance", "correct the covariances"),
    "GATE_INERT": Reason("has a gate that rejects nothing", "tighten the gate"),
    "COV_INVALID": Reason("has covariances that are none", "repair them before it is fused"),
    "DIVERGED": Reason("diverged", "start it again with a better guess"),
    "INLIERS": Reason("matched too few features", "do not trust its motion there"),
    "MATCH": Reason("matched features badly", "do not trust its motion there"),
    "ROUNDNESS": Reason("saw points from too narrow an angle", "widen the baseline"),
}
"""By code; a check of one's own may have codes of its own."""


def reason_of(code: str) -> Reason:
    """Return what a code means; one that is not known stands for itself."""
    return REASONS.get(code, Reason(f"has {code}", "read what the check says"))
