"""The story of a recording in a few plain sentences, each made from facts that the page shows in full."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from transect.base.clocks import text_from_ns
from transect.integrity.events import CLOUD
from transect.integrity.report import SensorProblem, reason_of, span_text
from transect.recording.summary import duration_text, rate_text

from .facts import RecordingFacts, Report, RunFacts, StreamFacts

NOUNS = {
    "Image": ("camera", "cameras"),
    "NavFix": ("GNSS receiver", "GNSS receivers"),
    "Imu": ("IMU", "IMUs"),
    "LaserScan": ("laser scanner", "laser scanners"),
    "PointCloud": ("source of point clouds", "sources of point clouds"),
    "RadarSpectrum": ("radar", "radars"),
    "RadarRange": ("radar's ranges", "radars' ranges"),
    "WheelState": ("set of wheels", "sets of wheels"),
    "Odometry": ("odometry", "odometries"),
    "Pose": ("stream of poses", "streams of poses"),
    "RigidBodyState": ("body state", "body states"),
    "JointState": ("set of joints", "sets of joints"),
    "Twist": ("stream of velocities", "streams of velocities"),
    "Wrench": ("force sensor", "force sensors"),
    "DepthMap": ("depth camera", "depth cameras"),
    "GridMap": ("map", "maps"),
    "Transform": ("stream of transforms", "streams of transforms"),
    "Trajectory": ("trajectory", "trajectories"),
}
"""What a stream of a type is called, one and several; others are records."""
PLACES = ("Pose", "RigidBodyState", "NavFix", "Odometry")
"""Types that say where something is."""
NUMBERS = [
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
NOT_TRUSTED = "Do not trust the run "
"""Begins the sentences on runs whose own conclusion is that their result is bad; they come first."""
MOST_KINDS, MOST_BAD, MOST_NAMES = 6, 3, 4


def summarise(report: Report) -> list[str]:
    """Return the sentences of the first screen."""
    said = [f"{NOT_TRUSTED}{run.label}: {text}." for run in report.runs for text in run.checked.failures]
    said += [as_sentence(run.checked.outdated) for run in report.runs if run.checked.changes]
    for recording in report.recordings:
        said += [sentence for sentence in _of_recording(recording) if sentence]
    for run in report.runs:
        said.append(_of_run(run))
        said += [f"The recording that {run.label} played is not there: {run.gone}."] if run.gone else []
    said += _compare(report.runs)
    return said


def as_sentence(text: str) -> str:
    """Return a remark with a capital letter and a full stop."""
    return f"{text[0].upper()}{text[1:]}."


def _of_recording(recording: RecordingFacts) -> Iterator[str]:
    yield _what(recording)
    yield _streams(recording)
    yield _losses(recording)
    yield _gaps(recording)
    yield from _verdicts(recording)
    yield _tell_drive(recording)


# What was there


def _what(recording: RecordingFacts) -> str:
    who = f", recorded by the {_bare(recording.robot)}" if recording.robot else ""
    said = f"{recording.name} is a recording in the {recording.format or 'unknown'} format{who}"
    axis = recording.axis
    if axis is None:
        return f"{said}; it has no times."
    start = text_from_ns(axis.start_ns, axis.clock)
    if axis.clock == "utc":
        start = f"{start[:10]} at {start[11:19]} UTC"
        return f"{said}. It begins on {start} and lasts {_duration(axis.duration_s)}."
    return f"{said}. It begins at {start} on the clock {axis.clock} and lasts {_duration(axis.duration_s)}."


def _bare(robot: str) -> str:
    return robot.removeprefix("The ").removeprefix("the ")


def _streams(recording: RecordingFacts) -> str:
    sensors = [s for s in recording.streams if s.role != "truth"]
    truths = [s for s in recording.streams if s.role == "truth"]
    if not recording.streams:
        calibrated = _count(len(recording.cameras), "camera calibration")
        return f"It holds no streams, but {calibrated}." if recording.cameras else "It holds no streams."
    if not sensors:
        return (
            f"It holds no measurements, only the truth to judge by: {list_names([s.name for s in truths])}."
        )
    empty = [s.name for s in sensors if not s.samples]
    groups: dict[str, list[StreamFacts]] = {}
    for stream in sensors:
        groups.setdefault(stream.type, []).append(stream)
    kinds = sorted(groups.items(), key=lambda group: (group[0] not in NOUNS, -len(group[1])))
    named = [_kind(name, streams) for name, streams in kinds[:MOST_KINDS]]
    named += [f"{_count(len(kinds) - MOST_KINDS, 'more kind')}"] if len(kinds) > MOST_KINDS else []
    said = f"It has {_count(len(sensors), 'stream')}{': ' + list_names(named) if named else ''}."
    said += f" {list_names(empty)} {'is' if len(empty) == 1 else 'are'} empty." if empty else ""
    if truths:
        said += f" The truth to judge by comes with it ({recording.truth or truths[0].name})."
    return said


def _kind(name: str, streams: Sequence[StreamFacts]) -> str:
    one, many = NOUNS.get(name, ("stream of records", "streams of records"))
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
        return "No stream has a gap of more than five of its usual steps."
    worst = max(with_gaps, key=lambda s: max(gap.end - gap.start for gap in s.gaps))
    gap = max(worst.gaps, key=lambda g: g.end - g.start)
    rest = len(with_gaps) - 1
    others = f"; {_count(rest, 'other stream')} {_has(rest)} gaps, too" if rest else ""
    return (
        f"The longest gap is {_duration(gap.end - gap.start)}, in {worst.name} at {_at(gap.start)}{others}."
    )


# What broke


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
        judged = "sensor" if any(s.role != "truth" for s in recording.streams) else "stream"
        yield f"No {judged} was bad{who}."
        return
    clouds = [event for event in recording.events if event.cause in CLOUD and event.sensors][:1]
    start = recording.axis.start_ns if recording.axis else 0
    yield from (event.sentence(start) for event in clouds)
    told = {sensor for event in clouds for sensor in event.sensors}
    rest = [report.problems[0] for report in bad if report.problems and report.sensor not in told]
    groups: dict[str, list[SensorProblem]] = {}
    for problem in sorted(rest, key=lambda each: -each.seconds):
        groups.setdefault(problem.reason, []).append(problem)
    for problems in list(groups.values())[:MOST_BAD]:
        yield _bad(problems, recording)
    left = [problem.sensor for problems in list(groups.values())[MOST_BAD:] for problem in problems]
    if left:
        yield f"{_list_some(left)} {_was(len(left))} bad for other reasons."


def _bad(problems: Sequence[SensorProblem], recording: RecordingFacts) -> str:
    """Return who was bad for one reason, and when the first of them was."""
    first = problems[0]
    start = recording.start_of(first.stream)
    times = [span_text(*span, start) for span in first.spans[:2]]
    times += [_count(len(first.spans) - 2, "more time")] if len(first.spans) > 2 else []
    names = _list_some(list(dict.fromkeys(problem.sensor for problem in problems)))
    words = reason_of(first.reason).words
    if len(problems) == 1:
        return f"{names} was bad: it {words} ({list_names(times)})."
    return f"{names} were bad: each {words} ({first.sensor}: {list_names(times)})."


# Where the robot went


def _tell_drive(recording: RecordingFacts) -> str:
    traverse = recording.traverse
    if traverse is None:
        known = any(s.role == "truth" and s.type in PLACES and s.samples for s in recording.streams)
        who = "Only what was kept as truth" if known else "Nothing in it"
        return f"{who} says where the robot was." if recording.streams else ""
    for_ = f" in {_duration(traverse.duration_s)}" if math.isfinite(traverse.duration_s) else ""
    speed = traverse.moving_speed
    at = f", at {speed:.2f} m/s while it moved" if math.isfinite(speed) and traverse.moving_m > 0 else ""
    if math.isnan(traverse.length_m):
        return f"How far the robot moved cannot be told from {traverse.source}."
    if traverse.length_m < 0.05:
        return f"By {traverse.source} the robot did not move."
    return f"By {traverse.source} the robot moved {_metres(traverse.length_m)}{for_}{at}."


# How well it is known


def _of_run(run: RunFacts) -> str:
    length = run.trajectory
    name = run.label
    if run.run.status != "complete":
        return f"The run {name} is not complete: it {run.run.status}."
    judged = run.judged
    if length is None or not len(length):
        made = [f"{output['samples']} of {port}" for port, output in run.document["outputs"].items()]
        return f"The run {name} gave no poses; it gave {list_names(made[:4]) or 'nothing'}."
    from transect.evaluation.positions.paths import facts_of

    path = _metres(facts_of(length)["length_m"])
    said = f"The path of {name} is {path} long ({_count(len(length), 'pose')})"
    if judged is None:
        failed = next((f"it cannot be judged: {r.failure}" for r in run.results if r.failure), "")
        return f"{said}; {failed or 'there is no truth to judge it by'}."
    ate = judged.metrics["ate"]
    percent = "" if ate["percent"] is None else f" ({ate['percent']:.2g} % of the path)"
    errors = ate["translation"]
    return (
        f"{said}; against {judged.reference} its error is {small_metres(errors['rmse'])} RMSE{percent}, "
        f"at worst {small_metres(errors['max'])}."
    )


def _compare(runs: Sequence[RunFacts]) -> list[str]:
    judged = [(run.judged.metrics["ate"]["translation"]["rmse"], run) for run in runs if run.judged]
    if len(judged) < 2 or len({run.judged.reference for _, run in judged if run.judged}) > 1:
        return []
    (best, first), (second, other) = sorted(judged, key=lambda each: each[0])[:2]
    if first.run.digest == other.run.digest:
        return [f"{first.label} and {other.label} gave the same bytes."]
    if not best or second / best < 1.05:
        return [f"{first.label} and {other.label} are about as near to the truth."]
    return [f"{first.label} is nearer to the truth than {other.label}, by a factor of {second / best:.2g}."]


# Words


def list_names(names: Sequence[str]) -> str:
    """Return names as a person lists them: `a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _list_some(names: Sequence[str]) -> str:
    """Return a few names, and how many more there are."""
    more = len(names) - MOST_NAMES
    return list_names(names) if more < 2 else list_names([*names[:MOST_NAMES], f"{_number(more)} more"])


def small_metres(value: float) -> str:
    """Return an error with a unit that suits it: `1.9 cm`, `12 m`."""
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
    return NUMBERS[count] if 0 <= count < len(NUMBERS) else f"{count}"


def _count(count: int, one: str, many: str = "") -> str:
    return f"{_number(count)} {one if count == 1 else many or f'{one}s'}"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def _has(count: int) -> str:
    return "has" if count == 1 else "have"
