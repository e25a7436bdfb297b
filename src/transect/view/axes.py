"""The stretches of time that a page is drawn over: streams that belong together share one."""

from __future__ import annotations

from dataclasses import dataclass

from transect.base.clocks import NS, text_from_ns
from transect.recording import Recording
from transect.recording.sessions import group_spans


@dataclass(frozen=True)
class Axis:
    """A stretch of time on one clock."""

    key: str  # names it in the page
    clock: str
    # first and last believable time of its streams
    start_ns: int
    end_ns: int

    @property
    def duration_s(self) -> float:
        """Seconds from the first to the last time."""
        return (self.end_ns - self.start_ns) / NS

    @property
    def start_text(self) -> str:
        """What second zero is, as a person reads it."""
        return f"{text_from_ns(self.start_ns, self.clock)} ({self.clock})"

    @property
    def group(self) -> str:
        """Name of the plots that share a cursor: all those over time; numbers of samples tell no time."""
        return self.key if self.clock == "index" else "time"

    def seconds(self, t_ns: int) -> float:
        """Return how long after the start a time is, s."""
        return (t_ns - self.start_ns) / NS


def find_axes(recording: Recording, prefix: str) -> tuple[tuple[Axis, ...], dict[str, Axis]]:
    """Return the axes of a recording, the one of most streams first, and the axis of each stream by name.

    A stream far from all others in time has an axis of its own: on a common one it would push them together
    to a line. Streams without times have none.
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
    axes: list[Axis] = []
    of_stream: dict[str, Axis] = {}
    for number, (*_, clock, start, end, names) in enumerate(sorted(found)):
        axes.append(Axis(f"{prefix}{number}", clock, start, end))
        of_stream |= dict.fromkeys(names, axes[-1])
    return tuple(axes), of_stream
