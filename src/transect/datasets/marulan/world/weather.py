"""Dust, smoke, rain or fog during a day that starts and ends in clear air, as the data sets of SDI (4.2).

Lasers, radar and cameras observe the same obscurant: that of `simulation.faults`, in front of the vehicle,
which moves with it. Rows and images are computed on access, in the same blocks as in clear air; the affected
samples are recorded for the labels.
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

from .argo import LazyBlocks, SimulatedStream, simulate

AIR: Mapping[str, tuple[str, float]] = {
    "dust": ("dust", 1.0),
    "smoke": ("smoke", 1.0),
    "rain": ("rain", 1.0),
    "light_rain": ("rain", 0.5),
    "fog": ("fog", 1.0),
}
"""Fault and severity of each weather."""


@dataclass(frozen=True)
class WeatherSettings:
    """Times of the weather on a day with weather, which are scaled down for a shorter day."""

    start_s: float = 12.0
    end_s: float = 32.0
    day_s: float = 44.0  # default length of the day


SETTINGS = WeatherSettings()
Effect = tuple[Mask, Floats]
"""Affected samples of a block, and the affected fraction of each; see `Change`."""


@dataclass(frozen=True, eq=False)
class Weather:
    """An obscurant during a part of a day."""

    fault: Fault  # its effect on sensors
    event: Event  # its time span, and the recording in clear air
    _effects: dict[tuple[str, int], Effect] = field(default_factory=dict[tuple[str, int], Effect], repr=False)

    def affects(self, stream: Stream) -> bool:
        """Return whether the obscurant affects the type of a stream."""
        return issubclass(stream.type, self.fault.types)

    def obscure(self, stream: Stream) -> Stream:
        """Return a stream of the clear recording with the effect of the obscurant."""
        if not self.affects(stream):
            return stream
        if isinstance(stream, SimulatedStream):
            return self._obscure_blocks(stream)
        numbers = {t: number for number, t in enumerate(stream.t_ns.tolist())}
        return stream.replace(loader=lambda row: self._obscure_image(stream, numbers[row[T_NS]]))

    def _obscure_blocks(self, stream: SimulatedStream) -> Stream:
        clear = stream.blocks

        def make(number: Ints) -> pa.Table:
            rows = stream.replace(source=clear.make(number))
            return self._obscure_block(rows, int(number[0]) // clear.rows).table

        attributes = {name: getattr(stream, name) for name in ("role", "tag", "frame")}
        return simulate(stream.name, stream.type, LazyBlocks(clear.times, clear.rows, make), **attributes)

    def _obscure_image(self, stream: Stream, number: int) -> Image:
        block = _block_of(stream, slice(number, number + 1))
        clear = lru_cache(maxsize=1)(lambda: block[0].payload)  # some images are used twice
        return self._obscure_block(block.replace(loader=lambda row: clear()), number)[0].payload

    def _obscure_block(self, block: Stream, number: int) -> Stream:
        """Return a block of a stream with the effect of the obscurant, which is recorded for the labels."""
        if self.fault.apply is None:
            return block
        # Random numbers depend on the name and the rows of a stream: each block has its own name.
        change = self.fault.apply(block.replace(name=f"{block.name} {number}"), self.event)
        self._effects[block.name, number] = change.touched, change.fraction
        return change.stream

    def label_samples(self, wanted: Callable[[str], bool]) -> pa.Table:
        """Return labels of the affected samples of the wanted streams, as `faults.inject` does."""
        clear = self.event.recording
        changes = {s.name: self._join(s) for s in clear if self.affects(s) and wanted(s.name)}
        return labels_of(clear, self.event, changes)

    def _join(self, stream: Stream) -> Change:
        """Return the effect on a whole stream; missing blocks are computed."""
        each = stream.blocks.rows if isinstance(stream, SimulatedStream) else 1
        inside = self.event.inside(stream)
        touched, fraction = np.zeros(len(stream), dtype=bool), np.zeros(len(stream))
        for number in np.unique(np.flatnonzero(inside) // each).tolist():
            rows = slice(number * each, (number + 1) * each)
            if (stream.name, number) not in self._effects:
                self._obscure_block(_block_of(stream, rows), number)
            touched[rows], fraction[rows] = self._effects[stream.name, number]
        return Change(stream, touched, fraction)


def forecast(air: str, clear: Recording, seconds: float, seed: int) -> Weather | None:
    """Return the weather of a day of this length; None for clear air."""
    if air not in AIR:
        return None
    name, severity = AIR[air]
    scale = min(seconds / SETTINGS.day_s, 1.0)
    start, end = f"+{SETTINGS.start_s * scale:.3f}s", f"+{SETTINGS.end_s * scale:.3f}s"
    fault = fault_named(name)
    return Weather(fault, event_of(clear, fault, severity, seed, start, end))


def _block_of(stream: Stream, rows: slice) -> Stream:
    chosen = np.zeros(len(stream), dtype=bool)
    chosen[rows] = True
    return stream.take(chosen)
