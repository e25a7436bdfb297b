"""Dust, smoke, rain or fog in the air of a day that begins and ends clear, as those of document 004 do (4.2).

Lasers, radar and cameras look through the same air: that of `simulation.faults`, which hangs before the
vehicle and goes with it where it drives. Rows and pictures are made when they are asked for, block by block
as those in clear air, and which of them the air touched is noted then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa

from transect.base.arrays import Floats, Ints, Mask
from transect.recording import Recording, Stream
from transect.recording.arrow import T_NS
from transect.simulation.faults import Change, Event, Fault, event_of, fault_named, labels_of
from transect.types import Image

from .argo import Blocks, SimulatedStream, simulate

AIR: Mapping[str, tuple[str, float]] = {
    "dust": ("dust", 1.0),
    "smoke": ("smoke", 1.0),
    "rain": ("rain", 1.0),
    "light_rain": ("rain", 0.5),
    "fog": ("fog", 1.0),
}
"""The fault that each kind of air is, and its severity."""
BEGINS, ENDS, SECONDS = 12.0, 32.0, 44.0
"""From when to when the air is not clear, and how long a day is of which nobody says it; s."""

Touched = tuple[Mask, Floats]
"""Which samples of a block were touched, and how much of each; see `Change`."""


@dataclass(frozen=True, eq=False)
class Weather:
    """Air that is not clear for a while.

    Attributes
    ----------
    fault : Fault
        What it does to sensors.
    event : Event
        When it does so, and to which recording of clear air.
    """

    fault: Fault
    event: Event
    _seen: dict[tuple[str, int], Touched] = field(default_factory=dict[tuple[str, int], Touched], repr=False)

    def touches(self, stream: Stream) -> bool:
        """Whether a sensor can tell such air from clear air."""
        return issubclass(stream.type, self.fault.types)

    def look(self, stream: Stream) -> Stream:
        """Return a stream of the clear recording as it is in such air."""
        if not self.touches(stream):
            return stream
        if isinstance(stream, SimulatedStream):
            return self._look_by_blocks(stream)
        numbers = {t: number for number, t in enumerate(stream.t_ns.tolist())}
        return stream.replace(loader=lambda row: self._picture(stream, numbers[row[T_NS]]))

    def _look_by_blocks(self, stream: SimulatedStream) -> Stream:
        clear = stream.blocks

        def make(number: Ints) -> pa.Table:
            rows = stream.replace(source=clear.make(number))
            return self._meet(rows, int(number[0]) // clear.rows).table

        attributes = {name: getattr(stream, name) for name in ("role", "tag", "frame")}
        return simulate(stream.name, stream.type, Blocks(clear.times, clear.rows, make), **attributes)

    def _picture(self, stream: Stream, number: int) -> Image:
        block = _block_of(stream, slice(number, number + 1))
        clear = lru_cache(maxsize=1)(lambda: block[0].payload)  # some are looked at twice
        return self._meet(block.replace(loader=lambda row: clear()), number)[0].payload

    def _meet(self, block: Stream, number: int) -> Stream:
        """Return a block of a stream as it is in such air, and note what was touched."""
        if self.fault.apply is None:
            return block
        # Random numbers depend on a stream's name and rows: each block has a name of its own.
        change = self.fault.apply(block.replace(name=f"{block.name} {number}"), self.event)
        self._seen[block.name, number] = change.touched, change.fraction
        return change.stream

    def list_touched(self, wanted: Callable[[str], bool]) -> pa.Table:
        """Return the labels of what the air touched in streams of wanted names, as `faults.inject` does."""
        clear = self.event.recording
        changes = {s.name: self._join(s) for s in clear if self.touches(s) and wanted(s.name)}
        return labels_of(clear, self.event, changes)

    def _join(self, stream: Stream) -> Change:
        """Return what became of a whole stream; blocks that nobody asked for are made now."""
        each = stream.blocks.rows if isinstance(stream, SimulatedStream) else 1
        inside = self.event.inside(stream)
        touched, fraction = np.zeros(len(stream), dtype=bool), np.zeros(len(stream))
        for number in np.unique(np.flatnonzero(inside) // each).tolist():
            rows = slice(number * each, (number + 1) * each)
            if (stream.name, number) not in self._seen:
                self._meet(_block_of(stream, rows), number)
            touched[rows], fraction[rows] = self._seen[stream.name, number]
        return Change(stream, touched, fraction)


def forecast(air: str, clear: Recording, seconds: float, seed: int) -> Weather | None:
    """Return the weather of a day of so many seconds; in a short one it comes and goes in proportion."""
    if air not in AIR:
        return None
    name, severity = AIR[air]
    pace = min(seconds / SECONDS, 1.0)
    fault, start, end = fault_named(name), f"+{BEGINS * pace:.3f}s", f"+{ENDS * pace:.3f}s"
    return Weather(fault, event_of(clear, fault, severity, seed, start, end))


def _block_of(stream: Stream, rows: slice) -> Stream:
    chosen = np.zeros(len(stream), dtype=bool)
    chosen[rows] = True
    return stream.take(chosen)
