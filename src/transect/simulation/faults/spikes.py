"""Single values that are far off, one sample at a time."""

from __future__ import annotations

import numpy as np

from transect.recording import Stream
from transect.types import LaserScan, NavFix, RadarRange

from ._columns import SIGNALS, change_of, flat_values, signals, with_flat
from ._model import Change, Event, Fault
from .signals import MEASURED, bias_of, has_signals

FAR = 20.0
"""Large biases of its unit by which a value is off at most."""


def throw_off(stream: Stream, event: Event) -> Change:
    """Throw all measured values of some samples off, up or down, each by its own luck."""
    rows = np.flatnonzero(event.inside(stream))
    hit = np.zeros(len(stream), dtype=bool)
    hit[rows[event.choose(len(rows), event.severity * event.parameters["share"], stream.name)]] = True
    table, names = stream.table, signals(stream)
    for name in names:
        values, row = flat_values(table, name)
        draw = event.generator(stream.name, name, "spikes")
        size = event.severity * FAR * bias_of(stream, name) * draw.uniform(0.5, 1.0, len(values))
        off = size * draw.choice([-1.0, 1.0], len(values))
        table = with_flat(table, name, np.where(hit[row], values + off, values))
    return change_of(stream, table, names)


FAULTS = (
    Fault(
        "spikes",
        "single samples are far off",
        "one sample in ten, by up to 10 m/s2, 1 rad/s, 10 m, 4 m/s, 1 rad, 100 N",
        tuple(kind for kind in SIGNALS if kind not in (LaserScan, RadarRange, NavFix)),
        throw_off,
        parameters={"share": 0.1},
        unit="share of the samples, and how far",
        reasons=("SPIKES",),
        able=has_signals,
        needs=MEASURED,
    ),
)
