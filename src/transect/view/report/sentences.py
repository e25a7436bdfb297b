"""The summary of a report in a few sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from transect.base.clocks import text_from_ns
from transect.integrity.events import CLOUD
from transect.integrity.report import SensorProblem, reason_of, span_text
from transect.recording.summary import duration_text, rate_text

from .facts import RecordingFacts, ReportFacts, RunFacts, StreamFacts

NOUNS = {
    "Image": ("camera", "cameras"),
    "NavFix": ("GNSS receiver", "GNSS receivers"),
    "Imu": ("IMU", "IMUs"),
    "LaserScan": ("laser scanner", "laser scanners"),
    "PointCloud": ("point cloud stream", "point cloud streams"),
    "RadarSpectrum": ("radar", "radars"),
    "RadarRange": ("radar range stream", "radar range streams"),
    "WheelState": ("wheel state", "wheel states"),
    "Odometry": ("odometry stream", "odometry streams"),
    "Pose": ("pose stream", "pose streams"),
    "RigidBodyState": ("body state", "body states"),
    "JointState": ("joint state", "joint states"),
    "Twist": ("velocity stream", "velocity streams"),
    "Wrench": ("force sensor", "force sensors"),
    "DepthMap": ("depth camera", "depth cameras"),
    "GridMap": ("map", "maps"),
    "Transform": ("transform stream", "transform streams"),
    "Trajectory": ("trajectory", "trajectories"),
}
"""Singular and plural for streams of a type; others are records."""
POSITION_TYPES = ("Pose", "RigidBodyState", "NavFix", "Odometry")
"""Types with positions."""
NUMBER_WORDS = [
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
UNTRUSTED = "Not trustworthy: run "
"""Start of the sentences on runs that report a bad result; they come first."""
MAX_KINDS, MAX_BAD_REASONS, MAX_NAMES = 6, 3, 4


def summarise(report: ReportFacts) -> list[str]:
    """Return the sentences of the overview."""
    sentences = [f"{UNTRUSTED}{run.label}: {text}." for run in report.runs for text in run.checked.failures]
    sentences += [as_sentence(run.checked.outdated) for run in report.runs if run.checked.changes]
    for recording in report.recordings:
        sentences += [sentence for sentence in _of_recording(recording) if sentence]
    for run in report.runs:
        sentences.append(_of_run(run))
        sentences += [f"The recording of {run.label} could not be opened: {run.gone}."] if run.gone else []
    sentences += _compare(report.runs)
    return sentences


def as_sentence(text: str) -> str:
    """Return a remark with a capital letter and a full stop."""
    return f"{text[0].upper()}{text[1:]}."


def _of_recording(recording: RecordingFacts) -> Iterator[str]:
    yield _what(recording)
    yield _streams(recording)
    yield _losses(recording)
    yield _gaps(recording)
    yield from _verdicts(recording)
    yield _distance(recording)


# Streams


def _what(recording: RecordingFacts) -> str:
    who = f", recorded by the {_bare(recording.robot)}" if recording.robot else ""
    text = f"{recording.name} is a recording in the {recording.format or 'unknown'} format{who}"
    axis = recording.axis
    if axis is None:
        return f"{text}; it has no timestamps."
    start = text_from_ns(axis.start_ns, axis.clock)
    if axis.clock == "utc":
        start = f"{start[:10]} at {start[11:19]} UTC"
        return f"{text}. It starts on {start} and lasts {_duration(axis.duration_s)}."
    return f"{text}. It starts at {start} on the clock {axis.clock} and lasts {_duration(axis.duration_s)}."


def _bare(robot: str) -> str:
    return robot.removeprefix("The ").removeprefix("the ")


def _streams(recording: RecordingFacts) -> str:
    sensors = [s for s in recording.streams if s.role != "truth"]
    truths = [s for s in recording.streams if s.role == "truth"]
    if not recording.streams:
        calibrated = _count(len(recording.cameras), "camera calibration")
        return f"It has no streams, but {calibrated}." if recording.cameras else "It has no streams."
    if not sensors:
        return f"It has no measurements, only ground truth: {list_names([s.name for s in truths])}."
    empty = [s.name for s in sensors if not s.samples]
    groups: dict[str, list[StreamFacts]] = {}
    for stream in sensors:
        groups.setdefault(stream.type, []).append(stream)
    kinds = sorted(groups.items(), key=lambda group: (group[0] not in NOUNS, -len(group[1])))
    named = [_kind(name, streams) for name, streams in kinds[:MAX_KINDS]]
    named += [f"{_count(len(kinds) - MAX_KINDS, 'more kind')}"] if len(kinds) > MAX_KINDS else []
    text = f"It has {_count(len(sensors), 'stream')}{': ' + list_names(named) if named else ''}."
    text += f" {list_names(empty)} {'is' if len(empty) == 1 else 'are'} empty." if empty else ""
    if truths:
        text += f" Ground truth is included ({recording.truth or truths[0].name})."
    return text


def _kind(name: str, streams: Sequence[StreamFacts]) -> str:
    one, many = NOUNS.get(name, ("record stream", "record streams"))
    rates = sorted({rate_text(s.rate_hz) for s in streams if math.isfinite(s.rate_hz)})
    at = f" at {rates[0]}" if len(rates) == 1 else ""
    if len(rates) > 1:
        known = [s.rate_hz for s in streams if math.isfinite(s.rate_hz)]
        at = f" at {rate_text(min(known))} to {rate_text(max(known))}"
    article = "an" if one[0] in "aeiouI" else "a"
    return f"{f'{article} {one}' if len(streams) == 1 else f'{_number(len(streams))} {many}'}{at}"


def _losses(recording: RecordingFacts) -> str:
    count = sum(loss[2] for loss in recording.losses)
    if not recording.losses:
        return ""
    where, reason, _ = recording.losses[0]
    many = _count(count, "line, message or file", "lines, messages or files") if count else "Some of it"
    return f"{_upper(many)} could not be read; the first is {where}: {reason}."


def _gaps(recording: RecordingFacts) -> str:
    with_gaps = [s for s in recording.streams if s.gap_count and s.role != "truth" and s.gaps]
    timed = [s for s in recording.streams if s.axis is not None and s.role != "truth" and s.samples > 2]
    if not timed:
        return ""
    if not with_gaps:
        return "No stream has a gap of more than five median steps."
    worst = max(with_gaps, key=lambda s: max(gap.end - gap.start for gap in s.gaps))
    gap = max(worst.gaps, key=lambda g: g.end - g.start)
    rest = len(with_gaps) - 1
    others = f"; {_count(rest, 'other stream')} {_has(rest)} gaps, too" if rest else ""
    return (
        f"The longest gap is {_duration(gap.end - gap.start)}, in {worst.name} at {_at(gap.start)}{others}."
    )


# Problems


def _verdicts(recording: RecordingFacts) -> Iterator[str]:
    reports = recording.reports
    if reports is None:
        yield "Its sensors were not checked."
        return
    if not reports:
        yield "None of its streams can be checked."
        return
    bad = [report for report in reports if report.state == "BAD"]
    suspect = [report.sensor for report in reports if report.state == "SUSPECT"]
    if not bad:
        who = f"; {_list_some(suspect)} {_was(len(suspect))} suspect for a while" if suspect else ""
        noun = "sensor" if any(s.role != "truth" for s in recording.streams) else "stream"
        yield f"No {noun} was bad{who}."
        return
    clouds = [event for event in recording.events if event.cause in CLOUD and event.sensors][:1]
    start = recording.axis.start_ns if recording.axis else 0
    yield from (event.sentence(start) for event in clouds)
    named = {sensor for event in clouds for sensor in event.sensors}
    rest = [report.problems[0] for report in bad if report.problems and report.sensor not in named]
    groups: dict[str, list[SensorProblem]] = {}
    for problem in sorted(rest, key=lambda each: -each.seconds):
        groups.setdefault(problem.reason, []).append(problem)
    for problems in list(groups.values())[:MAX_BAD_REASONS]:
        yield _bad(problems, recording)
    left = [problem.sensor for problems in list(groups.values())[MAX_BAD_REASONS:] for problem in problems]
    if left:
        yield f"{_list_some(left)} {_was(len(left))} bad for other reasons."


def _bad(problems: Sequence[SensorProblem], recording: RecordingFacts) -> str:
    """Return the sensors that were bad for one reason, and when the first of them was."""
    first = problems[0]
    start = recording.start_of(first.stream)
    times = [span_text(*span, start) for span in first.spans[:2]]
    times += [_count(len(first.spans) - 2, "more time")] if len(first.spans) > 2 else []
    names = _list_some(list(dict.fromkeys(problem.sensor for problem in problems)))
    words = reason_of(first.reason).words
    if len(problems) == 1:
        return f"{names} was bad: it {words} ({list_names(times)})."
    return f"{names} were bad: each {words} ({first.sensor}: {list_names(times)})."


# Trajectory


def _distance(recording: RecordingFacts) -> str:
    traverse = recording.traverse
    if traverse is None:
        known = any(s.role == "truth" and s.type in POSITION_TYPES and s.samples for s in recording.streams)
        text = "Only the ground truth has" if known else "No stream has"
        return f"{text} positions of the robot." if recording.streams else ""
    for_ = f" in {_duration(traverse.duration_s)}" if math.isfinite(traverse.duration_s) else ""
    speed = traverse.moving_speed
    at = f", at {speed:.2f} m/s while moving" if math.isfinite(speed) and traverse.moving_m > 0 else ""
    if math.isnan(traverse.length_m):
        return f"The distance travelled cannot be estimated from {traverse.source}."
    if traverse.length_m < 0.05:
        return f"According to {traverse.source} the robot did not move."
    return f"According to {traverse.source} the robot travelled {_metres(traverse.length_m)}{for_}{at}."


# Accuracy


def _of_run(run: RunFacts) -> str:
    length = run.trajectory
    name = run.label
    if run.run.status != "complete":
        return f"Run {name} is not complete: it {run.run.status}."
    judged = run.judged
    if length is None or not len(length):
        made = [f"{output['samples']} of {port}" for port, output in run.document["outputs"].items()]
        return f"Run {name} has no poses among its outputs: {list_names(made[:4]) or 'none'}."
    from transect.evaluation.positions.paths import facts_of

    path = _metres(facts_of(length)["length_m"])
    text = f"The trajectory of {name} has a length of {path} ({_count(len(length), 'pose')})"
    if judged is None:
        failed = next((f"it could not be evaluated: {r.failure}" for r in run.results if r.failure), "")
        return f"{text}; {failed or 'there is no ground truth to evaluate it against'}."
    ate = judged.metrics["ate"]
    percent = "" if ate["percent"] is None else f" ({ate['percent']:.2g} % of the path)"
    errors = ate["translation"]
    return (
        f"{text}; compared with {judged.reference}, its position RMSE is "
        f"{small_metres(errors['rmse'])}{percent}, the largest error {small_metres(errors['max'])}."
    )


def _compare(runs: Sequence[RunFacts]) -> list[str]:
    judged = [(run.judged.metrics["ate"]["translation"]["rmse"], run) for run in runs if run.judged]
    if len(judged) < 2 or len({run.judged.reference for _, run in judged if run.judged}) > 1:
        return []
    (best, first), (second, other) = sorted(judged, key=lambda each: each[0])[:2]
    if first.run.digest == other.run.digest:
        return [f"{first.label} and {other.label} have identical outputs."]
    if not best or second / best < 1.05:
        return [f"{first.label} and {other.label} are about equally accurate."]
    return [f"{first.label} is more accurate than {other.label} by a factor of {second / best:.2g} (RMSE)."]


# Text


def list_names(names: Sequence[str]) -> str:
    """Return a list of names: `a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _list_some(names: Sequence[str]) -> str:
    """Return a few names, and the number of others."""
    more = len(names) - MAX_NAMES
    return list_names(names) if more < 2 else list_names([*names[:MAX_NAMES], f"{_number(more)} more"])


def small_metres(value: float) -> str:
    """Return an error with a suitable unit: `1.9 cm`, `12 m`."""
    if value < 0.01:
        return f"{1e3 * value:.2g} mm"
    if value < 1:
        return f"{1e2 * value:.2g} cm"
    return f"{value:.3g} m" if value < 100 else f"{value:.0f} m"


def _metres(value: float) -> str:
    return (
        f"{value / 1000:.2f} km"
        if value >= 10_000
        else f"{value:.1f} m"
        if value >= 1
        else small_metres(value)
    )


def _duration(seconds: float) -> str:
    if seconds < 100:
        return duration_text(seconds) if seconds < 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _at(seconds: float) -> str:
    return f"+{seconds:.1f} s" if seconds < 100 else f"+{duration_text(seconds)}"


def _number(count: int) -> str:
    return NUMBER_WORDS[count] if 0 <= count < len(NUMBER_WORDS) else f"{count}"


def _count(count: int, one: str, many: str = "") -> str:
    return f"{_number(count)} {one if count == 1 else many or f'{one}s'}"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def _has(count: int) -> str:
    return "has" if count == 1 else "have"
