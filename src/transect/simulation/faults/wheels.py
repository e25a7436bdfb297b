"""Wheels that turn without getting ahead."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.recording import Stream
from transect.types import Odometry, WheelState

from ._columns import change_of, flat_values, with_flat
from ._model import Change, Event, Fault

_SPEEDS = ("wheel_velocity", "vx")
_SUMS = ("drive_ticks", "x", "y", "z")
"""Columns that add up: what they gained too much while the wheels slipped, they keep."""


def slipping(stream: Stream, event: Event) -> Change:
    """Let wheels turn faster than the ground goes by: ``slip = 1 - v_ground / v_wheel``."""
    slip = event.severity * event.parameters["slip"]
    inside = event.inside(stream)
    scale = np.where(inside, 1.0 / (1.0 - slip), 1.0)
    table = stream.table
    speeds = [name for name in _SPEEDS if name in stream.columns]
    sums = [name for name in _SUMS if name in stream.columns]
    for name in speeds:
        values, row = flat_values(table, name)
        table = with_flat(table, name, values * scale[row])
    for name in sums:
        values, _ = flat_values(table, name)
        table = with_flat(table, name, _stretch(values.reshape(len(stream), -1), scale, inside).reshape(-1))
    return change_of(stream, table, [*speeds, *sums], np.where(inside, slip, 0.0))


def _stretch(sums: Floats, scale: Floats, inside: Mask) -> Floats:
    """Return sums (n, k) whose steps are longer inside the window; before it they stay to the bit."""
    extra = np.diff(sums, axis=0, prepend=sums[:1]) * (scale - 1.0)[:, None]
    gained = np.cumsum(np.nan_to_num(extra), axis=0)
    return np.where((np.cumsum(inside) > 0)[:, None], sums + gained, sums)


FAULTS = (
    Fault(
        "wheel_slip",
        "wheels turn more than the vehicle moves: speeds, ticks and odometry run ahead",
        "four fifths of the turning is slip",
        (WheelState, Odometry),
        slipping,
        parameters={"slip": 0.8},
    ),
)
