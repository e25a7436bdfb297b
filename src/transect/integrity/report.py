"""Summary of verdicts for people: problems of each sensor as sentences, and states over time.

The table `REASONS` explains the reason codes of verdicts, with advice.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

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


MAX_SPAN_GAP_NS = 5 * NS
"""Anomalous windows of one problem with a smaller gap between them are one time span."""
RATIO_PREFIX = "fraction of "
"""Start of the description of a ratio, which is printed in per cent."""


@dataclass(frozen=True)
class SensorProblem:
    """A problem of a sensor: one reason of one check, in all windows with it."""

    sensor: str
    stream: str
    check: str
    reason: str
    state: State
    # Start and end, ns, of the anomalous windows, although BAD is declared and cleared some windows later.
    # Spans less than `MAX_SPAN_GAP_NS` apart are merged.
    spans: tuple[tuple[int, int], ...]
    seconds: float  # total duration
    worst: Verdict
    advice: str = ""  # with the names of the recording, ready to be typed; "" if unknown

    def sentence(self, start_ns: int) -> str:
        """Return the problem, its times (relative to `start_ns`), and its size as a sentence."""
        times = [span_text(*span, start_ns) for span in self.spans[:3]]
        left = len(self.spans) - 3
        more = f" and {left} more time{'s' * (left > 1)}" if left > 0 else ""
        who = "" if self.stream == self.sensor else f"{self.stream} "
        text = f"{who}{reason_of(self.reason).words}: {', '.join(times)}{more}"
        if measured := self._measured():
            several = self.seconds * NS > 1.5 * (self.worst.t1_ns - self.worst.t0_ns)
            at = f"worst at {time_text(self.worst.t0_ns - start_ns)}, " if several else ""
            text += f"; {at}{measured}"
        return f"{text} ({self.check} {self.reason})"

    def _measured(self) -> str:
        """Return the statistic with this reason, else the one farthest beyond its limits, in words."""
        limits = limits_of(self.check)
        beyond = [(excess, name) for name, excess in _excesses(self.worst).items() if excess > 0]
        same = [each for each in beyond if each[1] in limits and limits[each[1]].reason == self.reason]
        beyond = same or beyond
        statistic = ""
        if beyond:
            excess, name = max(beyond)
            unit, doc = (limits[name].unit, limits[name].doc) if name in limits else ("", name)
            limit = self.worst.threshold[f"{name}.{'fail' if excess >= 1 else 'warn'}"]
            statistic = _in_words(self.worst.evidence[name], limit, unit, doc)
        compared = f"compared with {', '.join(self.worst.peers)}" if self.worst.peers else ""
        return "; ".join(part for part in (statistic, self.worst.note, compared) if part)

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as plain values."""
        return {
            "stream": self.stream, "check": self.check, "reason": self.reason, "state": self.state,
            "words": reason_of(self.reason).words, "mend": self.advice,
            "spans_ns": [list(span) for span in self.spans],
            "seconds": self.seconds, "worst_ns": self.worst.t0_ns, "score": self.worst.score,
            "note": self.worst.note, "evidence": {k: v for k, v in self.worst.evidence.items() if v == v},
            "peers": list(self.worst.peers),
        }  # fmt: skip


def _in_words(value: float, limit: float, unit: str, doc: str) -> str:
    """Return a statistic and its limit in words; ratios in per cent.

    `fraction of the beams that are near` is printed as `71 % of the beams are near (limit 3 %)`.
    """
    if doc.startswith(RATIO_PREFIX):
        whole = doc.removeprefix(RATIO_PREFIX).replace(" that ", " ", 1)
        return f"{100 * value:.3g} % of {whole} (limit {100 * limit:g} %)"
    return f"{value:.3g}{f' {unit}' if unit else ''} {doc} (limit {limit:g})"


@dataclass(frozen=True)
class SensorReport:
    """Combined verdicts and problems of one sensor."""

    sensor: str
    windows: Sequence[Verdict]  # combined verdict of all checks for each window, in order of time
    problems: Sequence[SensorProblem]  # the worst first

    @property
    def state(self) -> State:
        """Worst declared state; UNKNOWN instead of OK with inconclusive evidence against the sensor."""
        state = worst(verdict.state for verdict in self.windows)
        undecided = any(verdict.reason in UNDECIDED for verdict in self.windows)
        return "UNKNOWN" if state == "OK" and undecided else state

    @property
    def mean_score(self) -> float | None:
        """Mean of the known scores, weighted by time."""
        return mean_score(self.windows)

    @property
    def span(self) -> tuple[int, int]:
        """Start and end of the session, ns."""
        return self.windows[0].t0_ns, self.windows[-1].t1_ns

    @property
    def window_ns(self) -> int:
        """Length of the regular windows, ns; the window of a long silence is longer."""
        return self.windows[0].t1_ns - self.windows[0].t0_ns

    @property
    def window_count(self) -> int:
        """Length of the session in regular windows."""
        return -(-(self.span[1] - self.span[0]) // self.window_ns)

    def strip(self, length: int, axis: tuple[int, int]) -> list[State | None]:
        """Return at most `length` states over a time axis (start, end), ns: the worst of each cell's windows.

        Cells without a window are None.
        """
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
        """Return the report as plain values."""
        return {
            "sensor": self.sensor,
            "state": self.state,
            "mean_score": self.mean_score,
            "windows": count_states(verdict.state for verdict in self.windows),
            "problems": [problem.to_dict() for problem in self.problems],
        }


def mean_score(windows: Iterable[Verdict]) -> float | None:
    """Return the mean of the known scores, weighted by the length of their windows; None without any."""
    known = [(v.score, v.t1_ns - v.t0_ns) for v in windows if v.score is not None]
    weight = sum(length for _, length in known)
    return sum(score * length for score, length in known) / weight if weight else None


def report_sensors(table: VerdictTable, recording: Recording | None = None) -> list[SensorReport]:
    """Return a report for each sensor; with advice if the recording is given."""
    problems = list(_problems(table))
    if recording is not None:
        problems = [replace(each, advice=_advise(each, recording)) for each in problems]
    return [
        SensorReport(name, windows, [each for each in problems if each.sensor == name])
        for name, windows in table.by_sensor.items()
    ]


def _advise(problem: SensorProblem, recording: Recording) -> str:
    """Return the advice for a problem, with the names and times of the recording."""
    clock = recording[problem.stream].clock if problem.stream in recording else recording.clock
    return reason_of(problem.reason).advice.format(
        paths=recording.typed,
        copy=shlex.quote(file_name(f"{recording.name}-readable")),
        stream=shlex.quote(problem.stream),
        after=clocks.text_from_ns(problem.spans[-1][1], clock),
    )


def axis_of(report: SensorReport, longest: SensorReport) -> tuple[int, int]:
    """Return the time axis (start, end), ns, of a sensor: the longest session if its own starts within it."""
    first, last = longest.span
    return longest.span if first <= report.span[0] < last else report.span


def _problems(table: VerdictTable) -> Iterator[SensorProblem]:
    """Yield the problems, BAD before SUSPECT, longer before shorter."""
    rows: dict[tuple[str, str, str, str], list[Verdict]] = {}
    for verdict in chain(
        table.select(state=("SUSPECT", "BAD"), muted=""), table.select(reason=UNDECIDED, muted="")
    ):
        rows.setdefault((verdict.sensor, verdict.stream, verdict.check, verdict.reason), []).append(verdict)
    found: list[SensorProblem] = []
    for key, verdicts in rows.items():
        state = worst(verdict.state for verdict in verdicts)
        anomalous = [each for run in find_runs(verdicts) for each in _find_anomalous(run, state)]
        seconds = sum(v.t1_ns - v.t0_ns for v in anomalous) / NS
        spans = tuple(_spans([(v.t0_ns, v.t1_ns) for v in anomalous]))
        found.append(SensorProblem(*key, state, spans, seconds, min(anomalous, key=badness)))
    yield from sorted(found, key=lambda each: (each.state != "BAD", -each.seconds, each.stream, each.check))


def find_runs(verdicts: Sequence[Verdict]) -> Iterator[list[Verdict]]:
    """Yield runs of windows without a gap between them."""
    run: list[Verdict] = []
    for verdict in verdicts:
        if run and verdict.t0_ns != run[-1].t1_ns:
            yield run
            run = []
        run.append(verdict)
    yield run


def _find_anomalous(run: Sequence[Verdict], state: State) -> list[Verdict]:
    """Return the anomalous windows of a run in which a state was declared.

    BAD is declared some windows after the anomaly starts, and cleared some windows after it ends.
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
    """Return the sort key that puts the worst window first: its score, then its excess over the limits."""
    score = 1.0 if verdict.score is None else verdict.score
    return score, -max(_excesses(verdict).values(), default=0.0), verdict.t0_ns


def _spans(windows: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    start, end = windows[0]
    for t0, t1 in windows[1:]:
        if t0 > end + MAX_SPAN_GAP_NS:
            yield start, end
            start = t0
        end = t1
    yield start, end


def time_text(ns: int) -> str:
    """Format a time since the start: `+12 s`, `+3:05`, `+1:02:03`."""
    seconds = ns // NS
    if seconds < 100:
        return f"+{seconds} s"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"+{hours}:{minutes:02d}:{rest:02d}" if hours else f"+{minutes}:{rest:02d}"


def span_text(start: int, end: int, first: int) -> str:
    """Format a time span since the start: `+12 s to +32 s`."""
    if end - start <= NS:
        return time_text(start - first)
    return f"{time_text(start - first)} to {time_text(end - first)}"


class Reason(NamedTuple):
    """Meaning of a reason code, as the predicate of a sentence about a sensor, and advice.

    `advice` may contain {paths} and {stream}, quoted for a shell, and {after}, the end of the problem.
    """

    words: str
    advice: str


REASONS: dict[str, Reason] = {
    "NO_DATA": Reason("gave no samples", "look for a crashed driver, a loose cable, a full disk"),
    "LATE_START": Reason("started late", "skip the start (--from), or do not use the sensor there"),
    "EARLY_STOP": Reason("stopped early", "skip the end (--to), or do not use the sensor there"),
    "GAP": Reason("lost samples", "look for full queues, a slow disk, a loose cable"),
    "RATE": Reason("came at another rate", "check the driver; state the nominal rate in --config"),
    "JITTER": Reason("was stamped unevenly", "stamp at the sensor, not when the message is read"),
    "BACKWARD": Reason("has stamps that go back", "sort it, or find out which clock was set back"),
    "DUPLICATE": Reason("has stamps that repeat", "it is logged twice, or faster than it measures"),
    "CLOCK_JUMP": Reason(
        "has a clock that jumped",
        "use the data after the jump: transect check {paths} --from {after}; also run and export",
    ),
    "CLOCK_DRIFT": Reason("has a clock that drifts", "synchronise it (PTP, NTP)"),
    "LATENCY": Reason(
        "is stamped later or earlier than a peer",
        "find out which is late; estimate the offset: transect run --offset {stream}=auto",
    ),
    "META_TIME": Reason("has times that contradict others", "compare the loggers' time zones and epochs"),
    "STUCK": Reason("repeated one sample", "restart the sensor; exclude that time"),
    "SATURATED": Reason("was at the end of its range", "set a larger range, or damp the mount"),
    "RANGE_LIMIT": Reason("was at the end of its range", "set a larger range"),
    "NAN": Reason("has invalid values", "find out what the driver writes for missing measurements"),
    "NOISE": Reason(
        "was noisier than usual", "check its mount, cable and power; reduce its weight in the fusion"
    ),
    "SPIKES": Reason("has outliers", "exclude the masked samples"),
    "BIAS": Reason("has a bias that moved", "calibrate at rest; check its temperature"),
    "UNIT": Reason("has numbers that cannot be in their unit", "correct the unit in the robot's description"),
    "DUST": Reason("saw a cloud", "drop the masked beams; a radar sees through it"),
    "SMOKE": Reason("saw a cloud", "drop the masked beams; a radar sees through it"),
    "OBSCURANT": Reason("saw a cloud", "drop the masked beams; a radar sees through it"),
    "NO_BASELINE": Reason(
        "may see dust or smoke, or bushes in the wind: its ranges in clear air are unknown",
        "transect check {paths} --reference CLEAR, a recording at the same place in clear air",
    ),
    "UNREADABLE": Reason(
        "has samples that cannot be read",
        "copy its files again; transect export {paths} -o {copy} skips and lists them",
    ),
    "RAIN": Reason("saw rain", "drop the masked beams; it stays usable"),
    "BLOCKED": Reason("is blocked in a sector", "clean or clear it; drop the masked beams"),
    "MULTIPATH": Reason("has multipath returns", "exclude returns from behind reflectors"),
    "BLUR": Reason("is blurred", "shorten the exposure; check the focus"),
    "DARK": Reason("is too dark", "lengthen the exposure; use light, or infrared"),
    "OVEREXPOSED": Reason("is overexposed", "shorten the exposure"),
    "HAZE": Reason("sees through haze", "use infrared or radar there"),
    "FROZEN_IMAGE": Reason("repeated one image", "restart the camera; exclude that time"),
    "POSITION_JUMP": Reason(
        "has positions that jump", "exclude them; look for multipath and for changes of the fix type"
    ),
    "DISAGREE": Reason("disagrees with a peer", "find out which of them is right; a third sensor decides"),
    "OBJECT_CONFIRMED": Reason("saw an object that a peer sees, too", "nothing: the object is real"),
    "EXTRINSIC": Reason("has moved on the robot", "calibrate again; check its mount"),
    "FIX_LOST": Reason("lost its fix", "use its declared standard deviations; bridge the time by odometry"),
    "SLIP": Reason("slipped", "use visual odometry there"),
    "NIS": Reason("does not fit its covariance", "correct the covariances"),
    "NEES": Reason("does not fit its covariance", "correct the covariances"),
    "GATE_INERT": Reason("has a gate that rejects nothing", "tighten the gate"),
    "COV_INVALID": Reason("has invalid covariances", "correct them before fusion"),
    "DIVERGED": Reason("diverged", "restart it with a better initial estimate"),
    "INLIERS": Reason("matched too few features", "do not trust its motion there"),
    "MATCH": Reason("matched features badly", "do not trust its motion there"),
    "ROUNDNESS": Reason("saw points from too narrow an angle", "widen the baseline"),
}
"""Reasons by code; checks of plug-ins may use other codes."""


def reason_of(code: str) -> Reason:
    """Return the meaning of a code; unknown codes are named as they are."""
    return REASONS.get(code, Reason(f"has {code}", "read the description of the check"))
