"""Satellite positions that are wrong: single ones far off, or a fix that is no longer fixed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from transect.base.arrays import Floats
from transect.recording import Stream
from transect.types import FIX_TYPES, NavFix

from ._columns import EARTH, change_of, flat_values, with_flat, with_texts
from ._model import Change, Event, Fault

_STD = ("std_north", "std_east", "std_down")
_FLOAT = FIX_TYPES.index("rtk float")


def moved(stream: Stream, table: pa.Table, north: Floats, east: Floats, up: Floats) -> pa.Table:
    """Return positions that are off by (n,) metres."""
    latitude = np.asarray(stream["lat"], dtype=np.float64)
    offsets = {"lat": north / EARTH, "lon": east / (EARTH * np.cos(latitude)), "alt": up}
    for name, offset in offsets.items():
        if name in stream.columns:
            values, _ = flat_values(table, name)
            table = with_flat(table, name, np.where(offset != 0.0, values + offset, values))
    return table


def spiking(stream: Stream, event: Event) -> Change:
    """Throw single positions far off; the receiver does not notice, so its deviations stay."""
    draw = event.generator(stream.name, "spikes")
    luck, heading, size = (
        draw.random(len(stream)),
        draw.uniform(-np.pi, np.pi, len(stream)),
        draw.random(len(stream)),
    )
    inside = event.inside(stream)
    chance = event.severity * event.parameters["share"]
    hit = inside & (luck <= max(chance, luck[inside].min(initial=1.0)))  # one at the least
    far = np.where(hit, event.severity * event.parameters["metres"] * (0.5 + 0.5 * size), 0.0)
    table = moved(stream, stream.table, far * np.cos(heading), far * np.sin(heading), 0.5 * far)
    return change_of(stream, table, ["lat", "lon", "alt"])


def floating(stream: Stream, event: Event) -> Change:
    """Lose the fixed ambiguities: positions wander, deviations grow, RTK fixed becomes float."""
    inside = event.inside(stream)
    size = event.severity * event.parameters["metres"]
    draw = event.generator("wander")
    phase, period = draw.uniform(0, 2 * np.pi, (3, 3)), draw.uniform(15.0, 60.0, (3, 3))
    seconds = event.seconds(stream)[:, None, None]
    wander = np.cos(2 * np.pi * seconds / period + phase).mean(axis=2) * np.where(inside, size, 0.0)[:, None]
    table = moved(stream, stream.table, *wander.T)
    deviations = [name for name in _STD if name in stream.columns]
    for name in deviations:
        values, _ = flat_values(table, name)
        table = with_flat(table, name, np.where(inside, np.fmax(values, size), values))
    names = ["lat", "lon", "alt", *deviations]
    if "fix" in stream.columns and isinstance(texts := stream["fix"], list):
        table = with_texts(table, "fix", [_float(t) if i else t for t, i in zip(texts, inside, strict=True)])
        names.append("fix")
    return change_of(stream, table, names)


def _float(fix: str) -> str:
    return FIX_TYPES[_FLOAT] if fix in FIX_TYPES and FIX_TYPES.index(fix) > _FLOAT else fix


FAULTS = (
    Fault(
        "gnss_spike",
        "single positions are far off, and their deviations do not say so",
        "one in ten is up to 50 m off",
        (NavFix,),
        spiking,
        parameters={"share": 0.1, "metres": 50.0},
    ),
    Fault(
        "gnss_float",
        "RTK loses its fix: positions wander, deviations grow, fixed becomes float",
        "by about 1 m",
        (NavFix,),
        floating,
        parameters={"metres": 1.0},
    ),
)
