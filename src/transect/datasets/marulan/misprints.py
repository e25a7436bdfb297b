"""Times that a catalogue prints twice, and that contradict each other: T09 for documents.

Document 004 prints start and end of its data sets as Unix time, UTC and local time (AEDT). Seconds of UTC
were rounded before the fraction was put behind them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from .catalogue import CATALOGUE

ZONES_H = {"aedt": 11}
"""Hours from UTC to the local times that are printed: Australian Eastern Daylight Time."""
_DAY = 86_400


@dataclass(frozen=True)
class Misprint:
    """A printed time that contradicts another one.

    Attributes
    ----------
    name, which : str
        The data set, and which of its times: `start` or `end`.
    column : str
        `utc` or `aedt`.
    printed, expected : str
    off_s : float
        Seconds by which it is late.
    why : str
    """

    name: str
    which: str
    column: str
    printed: str
    expected: str
    off_s: float
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


def find_misprints() -> list[Misprint]:
    """Return the printed times of the catalogue that contradict its Unix times, or its own UTC."""
    return [found for entry in CATALOGUE if entry.start for found in _misprints_of(entry)]


def _misprints_of(entry: Any) -> Iterator[Misprint]:
    hours = ZONES_H["aedt"]
    for which, unix, utc, local in zip(
        ("start", "end"), (entry.start, entry.end), entry.utc, entry.aedt, strict=True
    ):
        if off := _difference(_of_day(utc), Decimal(unix) % _DAY):
            rounded = off == 1 and Decimal(unix) % 1 >= Decimal("0.5")
            why = "its seconds were rounded, and the fraction put behind them" if rounded else ""
            yield Misprint(entry.name, which, "utc", utc, _clock(Decimal(unix)), float(off), why)
        expected = _of_day(utc) + 3600 * hours
        if off := _difference(_of_day(local), expected % _DAY):
            why = f"it is UTC + {hours + off / 3600:g} h, not UTC + {hours} h"
            yield Misprint(entry.name, which, "aedt", local, _clock(expected), float(off), why)


def _of_day(text: str) -> Decimal:
    hours, minutes, seconds = text.split(":")
    return Decimal(hours) * 3600 + Decimal(minutes) * 60 + Decimal(seconds)


def _difference(a: Decimal, b: Decimal) -> Decimal:
    """Return by how much a time of day is later than another, within half a day."""
    off = (a - b) % _DAY
    return off - _DAY if off > _DAY / 2 else off


def _clock(seconds: Decimal) -> str:
    whole, fraction = divmod(seconds % _DAY, 1)
    return f"{dt.timedelta(seconds=int(whole))!s:0>8}.{int(fraction * 1000):03d}"
