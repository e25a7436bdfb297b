"""The table a person wants to see of a recording: stream, type, samples, rate, span, longest gap."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from transect.base import clocks
from transect.base.tables import table_lines

if TYPE_CHECKING:
    from .recording import Recording
    from .stream import Stream

HEADINGS = ("stream", "type", "samples", "rate", "start", "duration", "longest gap", "role")
NUMBERS = frozenset({2, 3, 5, 6})
"""Columns of numbers, aligned to the right."""
ORDER = (0, 1, 2, 3, 5, 6, 7, 4)
"""Columns from the most to the least important."""


def duration_text(seconds: float) -> str:
    """Return a duration a person reads: `4.20 s`, `25:02`, `1:02:03`."""
    if math.isnan(seconds):
        return "-"
    if seconds < 100:
        return f"{seconds:.2f} s" if seconds >= 0.1 or seconds == 0 else f"{1000 * seconds:.2f} ms"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"


def rate_text(rate: float) -> str:
    """Return a rate a person reads: `99.8 Hz`, `1.2 kHz`, `-`."""
    if math.isnan(rate):
        return "-"
    return f"{rate / 1000:.3g} kHz" if rate >= 1000 else f"{rate:.3g} Hz"


def stream_row(stream: Stream) -> tuple[str, ...]:
    """Return one row of the table, as text."""
    timing = stream.timing
    timed = stream.clock != "index" and timing.start_ns is not None and timing.end_ns is not None
    start = clocks.text_from_ns(timing.start_ns or 0, stream.clock) if timed else "-"
    seconds = ((timing.end_ns or 0) - (timing.start_ns or 0)) / clocks.NS if timed else math.nan
    role = stream.role if not stream.tag else f"{stream.role} ({stream.tag})"
    return (
        stream.name,
        stream.type.__name__,
        f"{timing.count}",
        rate_text(timing.rate) if timed else "-",
        start,
        duration_text(seconds),
        duration_text(timing.gap_s) if timed else "-",
        role,
    )


def stream_facts(stream: Stream) -> dict[str, Any]:
    """Return everything the summary knows of a stream, as plain values for JSON."""
    timing = stream.timing

    def finite(value: float) -> float | None:
        return value if math.isfinite(value) else None

    return {
        "name": stream.name,
        "type": stream.type.__name__,
        "clock": stream.clock,
        "role": stream.role,
        "tag": stream.tag,
        "frame": stream.frame,
        "child": stream.child,
        "samples": timing.count,
        "start_ns": timing.start_ns,
        "end_ns": timing.end_ns,
        "rate_hz": finite(timing.rate),
        "longest_gap_s": finite(timing.gap_s),
        "longest_gap_at_ns": timing.gap_at_ns,
        "backwards": timing.backwards,
        "repeated": timing.repeated,
        "columns": stream.units,
        "losses": sum(loss.count for loss in stream.losses),
    }


def first_row(stream: Stream) -> str:
    """Return the first sample as it was understood: its time, and each column with its unit."""
    if not len(stream):
        return "no rows"
    row, units = stream[0].row, stream.units
    values = [
        f"{name} {_value_text(value)} {units[name]}".rstrip()
        for name, value in row.items()
        if name not in ("t_ns", "log_ns")
    ]
    if stream.clock == "index":
        return ", ".join(values)
    return ", ".join([f"at {clocks.text_from_ns(stream[0].t_ns, stream.clock)} ({stream.clock})", *values])


def _value_text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{len(value)} values" if isinstance(value, list) else str(value)


def headline(recording: Recording) -> str:
    """Return one line: name, format, robot, span."""
    parts = [recording.name]
    parts += [recording.format] if recording.format else []
    parts += [f"robot {recording.robot.name}"] if recording.robot else []
    for clock, (start, end) in recording.spans().items():
        if clock != "index":
            parts.append(
                f"{clocks.text_from_ns(start, clock)} + {duration_text((end - start) / clocks.NS)} ({clock})"
            )
    return " · ".join(parts)


def text_summary(recording: Recording) -> str:
    """Return the table as plain text."""
    rows = [HEADINGS, *(stream_row(s) for s in recording.streams)]
    table = table_lines(rows, NUMBERS) if recording.streams else []
    return "\n".join([headline(recording), *table, *camera_lines(recording), *footer_lines(recording)])


def camera_lines(recording: Recording) -> list[str]:
    """Return a line per camera where there are no streams: of a calibration file they are what matters."""
    if recording.streams:
        return []
    return [
        f"camera {name}: {c.width} x {c.height}, focal {c.K[0, 0]:.2f} {c.K[1, 1]:.2f}, "
        f"centre {c.K[0, 2]:.2f} {c.K[1, 2]:.2f}, {c.distortion} {c.coefficients.tolist()}"
        for name, c in recording.cameras.items()
    ]


def footer_lines(recording: Recording) -> list[str]:
    """Return what could not be read, and notes."""
    lost = recording.losses
    lines = [f"lost: {loss.where}: {loss.reason}{_times(loss.count)}" for loss in lost[:5]]
    lines += [f"... and {len(lost) - 5} more losses"] if len(lost) > 5 else []
    return lines + [f"note: {note}" for note in recording.all_notes]


def _times(count: int) -> str:
    return f" ({count} in all)" if count > 1 else ""


def html_summary(recording: Recording) -> str:
    """Return the table as HTML for a notebook."""
    import html

    def cells(row: tuple[str, ...], tag: str) -> str:
        return "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in row)

    body = "".join(f"<tr>{cells(stream_row(s), 'td')}</tr>" for s in recording.streams)
    foot = "".join(f"<div>{html.escape(line)}</div>" for line in footer_lines(recording))
    return (
        f"<div><b>{html.escape(headline(recording))}</b></div>"
        f"<table><thead><tr>{cells(HEADINGS, 'th')}</tr></thead><tbody>{body}</tbody></table>{foot}"
    )
