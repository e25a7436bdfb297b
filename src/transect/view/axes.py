"""Time axes of a page: streams that are close in time share one."""

from __future__ import annotations

from dataclasses import dataclass

from transect.base.clocks import NS, text_from_ns
from transect.recording import Recording
from transect.recording.sessions import group_spans


@dataclass(frozen=True)
class TimeAxis:
    """A time interval on one clock."""

    key: str  # unique on the page
    clock: str
    # first and last plausible time of its streams
    start_ns: int
    end_ns: int

    @property
    def duration_s(self) -> float:
        """Seconds from start to end."""
        return (self.end_ns - self.start_ns) / NS

    @property
    def start_text(self) -> str:
        """The start as text."""
        return f"{text_from_ns(self.start_ns, self.clock)} ({self.clock})"

    @property
    def group(self) -> str:
        """Group of plots with a common cursor: all those over time, or those of this index axis."""
        return self.key if self.clock == "index" else "time"

    def seconds(self, t_ns: int) -> float:
        """Return the seconds from the start to a time."""
        return (t_ns - self.start_ns) / NS


def find_axes(recording: Recording, prefix: str) -> tuple[tuple[TimeAxis, ...], dict[str, TimeAxis]]:
    """Return the axes of a recording, the one of most streams first, and the axis of each stream by name.

    A stream far from all others in time has its own axis; a common one would compress the others to a line.
    Streams without times have none.
    """
    found: list[tuple[bool, int, str, int, int, list[str]]] = []
    main = recording.clock
    for clock in sorted(recording.spans()):
        streams = [s for s in recording if s.clock == clock and len(s) and not s.meta.get("timeless")]
        if clock == "index" or not streams:
            continue
        for group in group_spans(streams):
            names = [stream.name for *_, stream in group]
            span = min(a for a, _, _ in group), max(b for _, b, _ in group)
            found.append((clock != main, -len(names), clock, *span, names))
    axes: list[TimeAxis] = []
    of_stream: dict[str, TimeAxis] = {}
    for number, (*_, clock, start, end, names) in enumerate(sorted(found)):
        axes.append(TimeAxis(f"{prefix}{number}", clock, start, end))
        of_stream |= dict.fromkeys(names, axes[-1])
    return tuple(axes), of_stream
