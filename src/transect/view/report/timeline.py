"""When each stream was there: a strip for each, with its gaps and how far it could be trusted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from transect.recording.summary import duration_text, rate_text

from ..axes import Axis
from .facts import RecordingFacts, Span, StreamFacts
from .markup import Markup, number, tag
from .svg import WIDTH, Sheet, axis_text, per_cent, short_numbers, stretched, time_ticks

HEIGHT = 22
"""Pixels of a strip."""
THICK = {"BAD": 22, "SUSPECT": 15, "OK": 9, "UNKNOWN": 4}
"""Pixels of a state: it is told by its height as well as by its colour."""
WORDS = {"OK": "trusted", "SUSPECT": "suspect", "BAD": "bad", "UNKNOWN": "could not be judged"}
LONG = 0.02
"""Share of the axis from which on it is shown that a stream was not there at its begin or end."""
LEAST = 1.6
"""Units that anything is wide at least, so that it is seen."""


def draw_timeline(sheet: Sheet, recording: RecordingFacts) -> Markup:
    """Draw the strips of a recording, those of one axis together; streams without times are listed."""
    parts = [_draw_axis(sheet, axis, recording, number == 0) for number, axis in enumerate(recording.axes)]
    timeless = [stream for stream in recording.streams if stream.axis is None]
    if timeless:
        rows = [_text_row(stream) for stream in timeless]
        parts.append(tag("div", tag("p", "Without times", class_="axis"), rows, class_="strips"))
    judged = any(stream.states for stream in recording.streams)
    return tag("div", parts, legend(judged) if recording.axes else None, class_="timeline")


def legend(judged: bool) -> Markup:
    """Return what the heights and colours of strips mean."""
    states = ("BAD", "SUSPECT", "OK", "UNKNOWN") if judged else ()
    keys = [tag("span", tag("i", class_=f"key state {state}"), WORDS[state]) for state in states]
    keys += [
        tag("span", tag("i", class_="key state there"), "recorded, not judged"),
        tag("span", tag("i", class_="key gap"), "not there, or a gap of more than five usual steps"),
    ]
    return tag("p", keys, class_="legend")


def _draw_axis(sheet: Sheet, axis: Axis, recording: RecordingFacts, first: bool) -> Markup:
    streams = [stream for stream in recording.streams if stream.axis == axis]
    apart = "" if first else " (far from the others in time: drawn from its own start)"
    rows = [_strip_row(sheet, stream, axis) for stream in streams]
    ticks = [
        tag("text", text, x=per_cent(t / (axis.duration_s or 1.0)), y=12, class_="tick",
            text_anchor="start" if t == 0 else "end" if t > 0.97 * axis.duration_s else "middle")
        for t, text in time_ticks(axis)
    ]  # fmt: skip
    scale = tag("div", tag("span", class_="name"), tag("svg", ticks, class_="ticks", height=16), class_="row")
    return tag("div", tag("p", f"{axis_text(axis)}{apart}", class_="axis"), rows, scale, class_="strips")


def _strip_row(sheet: Sheet, stream: StreamFacts, axis: Axis) -> Markup:
    key = sheet.key("strip")
    shapes = [*_presence(stream, axis), *_draw_states(stream, axis), *_gaps(stream, axis)]
    cursor = tag("line", class_="cursor", x1="0", x2="0", y1="0", y2=HEIGHT)
    strip = tag(
        "svg", stretched(HEIGHT, shapes), cursor, class_="strip", id=key, height=HEIGHT, role="img",
        data_group=axis.group, data_end=number(axis.duration_s, 6), aria_label=_describe(stream),
        tabindex="0",
    )  # fmt: skip
    sheet.values[key] = {"name": stream.name, "end": axis.duration_s, **_spans(stream)}
    return tag("div", _name(stream), strip, tag("span", _describe(stream), class_="rate"), class_="row")


def _spans(stream: StreamFacts) -> dict[str, object]:
    """Return what the script says of a strip at a time: the state there, or a gap."""
    there = [stream.span.start, stream.span.end] if stream.span else [0, -1]
    return {
        "there": short_numbers(there, 9),
        "states": [[*short_numbers([s.start, s.end], 9), WORDS[s.state]] for s in stream.states],
        "gaps": [short_numbers([gap.start, gap.end], 9) for gap in stream.gaps],
    }


def _name(stream: StreamFacts) -> Markup:
    role = "" if stream.role == "measurement" else stream.role
    small = ", ".join(filter(None, (stream.type, stream.tag, role)))
    return tag("span", tag("b", stream.name), tag("small", small), class_="name")


def _text_row(stream: StreamFacts) -> Markup:
    text = f"{stream.samples} sample{'s' * (stream.samples != 1)}"
    return tag("div", _name(stream), tag("span", text, class_="rate"), class_="row plain")


def _describe(stream: StreamFacts) -> str:
    """Return rate, number of samples, gaps and state of a stream in a few words."""
    said = [rate_text(stream.rate_hz)] if math.isfinite(stream.rate_hz) else []
    said.append(f"{stream.samples} samples" if stream.samples != 1 else "1 sample")
    if stream.gap_count:
        many = f"{stream.gap_count} gaps, longest" if stream.gap_count > 1 else "a gap of"
        said.append(f"{many} {duration_text(max(gap.end - gap.start for gap in stream.gaps))}")
    if stream.state in ("BAD", "SUSPECT"):
        said.append(WORDS[stream.state])
    return ", ".join(said)


def _presence(stream: StreamFacts, axis: Axis) -> Iterator[Markup]:
    if stream.span is not None and not stream.states:
        yield _bar(stream.span.start, stream.span.end, 7, "there", axis)


def _draw_states(stream: StreamFacts, axis: Axis) -> Iterator[Markup]:
    """Yield the states, the worst last: what is short and bad stays in sight."""
    order = ("UNKNOWN", "OK", "SUSPECT", "BAD")
    for judged in sorted(stream.states, key=lambda each: order.index(each.state)):
        yield _bar(judged.start, judged.end, THICK[judged.state], judged.state, axis)


def _gaps(stream: StreamFacts, axis: Axis) -> Iterator[Markup]:
    for gap in (*stream.gaps, *_absences(stream, axis)):
        yield _bar(gap.start, gap.end, 12, "gap", axis)


def _absences(stream: StreamFacts, axis: Axis) -> Iterator[Span]:
    """Yield the time before a stream began and after it ended, where checks judged that."""
    if stream.span is None or not stream.states:
        return
    least = LONG * axis.duration_s
    before, after = (stream.states[0].start, stream.span.start), (stream.span.end, stream.states[-1].end)
    yield from (Span(a, b) for a, b in (before, after) if b - a > least)


def _bar(start: float, end: float, thick: float, kind: str, axis: Axis) -> Markup:
    scale = WIDTH / (axis.duration_s or 1.0)
    width = max((end - start) * scale, LEAST)
    left = min(start * scale, WIDTH - width) if axis.duration_s else 0.0
    return tag(
        "rect", x=number(left), y=number((HEIGHT - thick) / 2), width=number(width), height=thick,
        class_=f"state {kind}" if kind != "gap" else "gap",
    )  # fmt: skip


def stream_rows(streams: Sequence[StreamFacts]) -> list[tuple[str, ...]]:
    """Return the cells of a table of streams, for who prefers numbers."""
    return [
        (
            s.name, s.type, s.tag, s.role, s.clock, str(s.samples),
            rate_text(s.rate_hz) if math.isfinite(s.rate_hz) else "-",
            "-" if s.span is None else duration_text(s.span.end - s.span.start),
            duration_text(s.longest_gap_s), str(s.gap_count), str(s.losses), s.state or "-",
        )
        for s in streams
    ]  # fmt: skip


STREAM_HEADINGS = (
    "stream", "type", "tag", "role", "clock", "samples", "rate", "duration", "longest gap", "gaps", "lost",
    "worst verdict",
)  # fmt: skip
STREAM_TEXTS = (0, 1, 2, 3, 4, 11)
"""Which of these columns are no numbers."""
