"""Checks of the order of stamps, and of stamps against other times of a recording (T05, T09)."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from transect.base.clocks import NS
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window


@dataclass(frozen=True)
class StampOrderSettings:
    """Numbers of the count of repeated stamps."""

    recent_stamps: int = 200  # Stamps among which repeats are counted ...
    min_stamps: int = 20  # ... and at least, so that a single repeat is SUSPECT at most.


class StampOrder(Check, id="T05", group="timing", version=2, k_on=1, k_off=1):
    """Number of stamps that are earlier than their predecessor, and ratio of repeats in the newest 200.

    A window without a repeat is OK, regardless of the newest 200.

    Motive: SDI: "All files start with a time stamp"; one sample per line, in order.
    """

    settings = StampOrderSettings()

    backwards = Limit(0.0, 1.0, "BACKWARD", "", "stamps that are earlier than the one before")
    repeated = Limit(0.001, 0.01, "DUPLICATE", "", "fraction of the stamps that equal the one before")

    def reset(self) -> None:
        """Start without counts."""
        self._counts: deque[tuple[int, int]] = deque()

    def evaluate(self, stream: Window[Any]) -> Finding | Unknown:
        """Count negative intervals, and zeros among the newest ones."""
        steps = stream.steps_s
        known = int(np.isfinite(steps).sum())
        if not known:
            return Unknown("TOO_FEW", n=len(stream))
        back = steps[steps < 0]
        self._counts.append((known, int((steps == 0).sum())))
        while sum(n for n, _ in self._counts) - self._counts[0][0] >= self.settings.recent_stamps:
            self._counts.popleft()
        newest, repeats = (sum(each) for each in zip(*self._counts, strict=True))
        statistics = {"backwards": float(len(back))}
        if newest >= self.settings.min_stamps:
            statistics["repeated"] = repeats / newest if self._counts[-1][1] else 0.0
        evidence = {"furthest_s": float(-back.min(initial=0.0)), "repeats": float(repeats)}
        return Finding(statistics, known, evidence)


_NUMBER = re.compile(r"(?<![\d.])(\d{10})(?:[._](\d{1,9})|(\d{3}|\d{6}|\d{9}))?(?!\d)")
"""Unix seconds in the name of a file: `1225254120.25`, `1225254120_250000`, or ms, us, ns without a point."""
UNITS = {10**3: "us", 10**6: "ms", 10**9: "s"}


@dataclass(frozen=True)
class MetadataTimeSettings:
    """Numbers of the comparison of stamps with other times."""

    time_zone_step_s: int = 900  # Time zones differ by multiples of a quarter of an hour.
    earliest_unix_s: int = 946_684_800  # The year 2000; smaller numbers in names count frames.
    max_start_difference_s: float = 20.0  # Time between the first samples of streams that started together.
    max_relative_difference: float = 1e-4  # Two days, relative to the time since 1970.
    max_names: int = 20  # Names that are read per window.


class MetadataTime(Check, id="T09", group="timing", k_on=1, k_off=1):
    """Difference ``|t - t_name|`` of files named after their time, and time to the other streams.

    A name with few digits may be rounded or truncated: one unit of its last digit is not counted. A
    difference of whole quarters of an hour is a time zone, a factor of a thousand or a million another
    unit.

    Motive: 35 of 78 UTC times printed in SDI are a second late, and four local times two hours early.
    """

    settings = MetadataTimeSettings()

    name = Limit(0.01, 0.5, "META_TIME", "s", "between stamps and the times in names")
    apart = Limit(1.0, 30.0, "META_TIME", "s", "between this stream and the others, which overlap each other")

    def evaluate(self, stream: Window[Any]) -> Finding | Unknown:
        """Compare stamps with names, and the stream with its recording."""
        apart = stream.windowed.grid.apart_s
        names = stream.payload_names() if stream.stream.clock == "utc" else None
        differences = (
            []
            if names is None
            else _differences(
                names[: self.settings.max_names],
                stream.t_ns[: self.settings.max_names].tolist(),
                self.settings,
            )
        )
        if not differences and not apart:
            return Unknown("NO_METADATA", n=len(stream))
        worst = max(differences, key=abs, default=0.0)
        statistics = {"apart": apart, **({"name": abs(worst)} if differences else {})}
        note = ""
        if (
            abs(worst) >= self.settings.time_zone_step_s / 2
            and abs(worst - round(worst / self.settings.time_zone_step_s) * self.settings.time_zone_step_s)
            < 1.0
        ):
            note = f"names and stamps are {worst / 3600:+.2f} h apart: probably a time zone"
        note = note or (_explain(stream, self.settings) if apart else "")
        return Finding(
            statistics, len(stream), {"name_minus_stamp_s": worst} if differences else {}, note=note
        )


def _explain(stream: Window[Any], settings: MetadataTimeSettings) -> str:
    """Return why a stream may be apart from the others, and how to fix it; "" if unknown."""
    grid = stream.windowed.grid
    begin, main = int(grid.edges[0]), grid.main_ns
    for factor, unit in UNITS.items():
        if begin and abs(main / (begin * factor) - 1) < settings.max_relative_difference:
            return f"its stamps count {unit}, not ns; multiply them by {factor:g}"
    offset_s = (begin - main) / NS
    if abs(
        offset_s - round(offset_s / settings.time_zone_step_s) * settings.time_zone_step_s
    ) < settings.max_start_difference_s and round(offset_s / settings.time_zone_step_s):
        hours = round(offset_s / settings.time_zone_step_s) * settings.time_zone_step_s / 3600
        fix = f"take {hours:g} h from" if hours > 0 else f"add {-hours:g} h to"
        return f"it is {hours:+g} h off, probably another time zone; {fix} its stamps"
    return ""


def _differences(names: list[str], times: list[int], settings: MetadataTimeSettings) -> list[float]:
    """Return name minus stamp, s, for each name that is a time; 0 within the rounding of the name."""
    found: list[float] = []
    for name, t_ns in zip(names, times, strict=True):
        match = _NUMBER.search(name.rpartition("/")[2])
        if match is None or int(match[1]) < settings.earliest_unix_s:
            continue
        digits = match[2] or match[3] or ""
        named_ns = int(Decimal(f"{match[1]}.{digits or 0}") * NS)
        rounding = 10 ** (9 - len(digits))
        difference_ns = named_ns - t_ns
        found.append(0.0 if abs(difference_ns) <= rounding else difference_ns / NS)
    return found
