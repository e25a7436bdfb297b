"""T09: do the times in names, and those of other streams, agree with the stamps."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from transect.base.clocks import NS
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window

_NUMBER = re.compile(r"(?<![\d.])(\d{10})(?:[._](\d{1,9})|(\d{3}|\d{6}|\d{9}))?(?!\d)")
"""Unix seconds in the name of a file: `1225254120.25`, `1225254120_250000`, or ms, us, ns without a point."""
ZONE_S = 900
"""Seconds: time zones differ by multiples of a quarter of an hour."""
EARLIEST_S = 946_684_800
"""The year 2000; smaller numbers count frames."""
STARTED_S = 20.0
"""Seconds between the first samples of streams that began together."""
UNITS = {10**3: "us", 10**6: "ms", 10**9: "s"}
SAME_DAY = 1e-4
"""Relative: of the time since 1970 it is two days."""
SAMPLES = 20
"""Names that are read in a window at most."""


class MetadataTime(Check, id="T09", group="timing", k_on=1, k_off=1):
    """``|t - t_name|`` for files whose name is their time, and how far the stream is from the others in time.

    A name with few digits may be rounded or cut off: one of its last digit does not count. A difference of
    whole quarters of an hour is a time zone, a factor of a thousand or a million another unit.

    Motive: 35 of 78 UTC times printed in document 004 are a second late, and four local times two hours
    early.
    """

    name = Limit(0.01, 0.5, "META_TIME", "s", "between stamps and the times in names")
    apart = Limit(1.0, 30.0, "META_TIME", "s", "between this stream and those that overlap each other")

    def look(self, stream: Window[Any]) -> Finding | Unknown:
        """Compare stamps with names, and the stream with its recording."""
        apart = stream.track.grid.apart_s
        names = stream.payload_names() if stream.stream.clock == "utc" else None
        off = [] if names is None else _differences(names[:SAMPLES], stream.t_ns[:SAMPLES].tolist())
        if not off and not apart:
            return Unknown("NO_METADATA", n=len(stream))
        worst = max(off, key=abs, default=0.0)
        statistics = {"apart": apart, **({"name": abs(worst)} if off else {})}
        note = ""
        if abs(worst) >= ZONE_S / 2 and abs(worst - round(worst / ZONE_S) * ZONE_S) < 1.0:
            note = f"names and stamps are {worst / 3600:+.2f} h apart: probably a time zone"
        note = note or (_explain(stream) if apart else "")
        return Finding(statistics, len(stream), {"name_minus_stamp_s": worst} if off else {}, note=note)


def _explain(stream: Window[Any]) -> str:
    """Return in words why a stream may be apart from the others, and the mend; "" if nothing fits."""
    grid = stream.track.grid
    begin, main = int(grid.edges[0]), grid.main_ns
    for factor, unit in UNITS.items():
        if begin and abs(main / (begin * factor) - 1) < SAME_DAY:
            return f"its stamps count {unit}, not ns; multiply them by {factor:g}"
    off = (begin - main) / NS
    if abs(off - round(off / ZONE_S) * ZONE_S) < STARTED_S and round(off / ZONE_S):
        hours = round(off / ZONE_S) * ZONE_S / 3600
        mend = f"take {hours:g} h from" if hours > 0 else f"add {-hours:g} h to"
        return f"it is {hours:+g} h off, probably another time zone; {mend} its stamps"
    return ""


def _differences(names: list[str], times: list[int]) -> list[float]:
    """Return name minus stamp in seconds, for each name that is a time; less what rounding explains."""
    found: list[float] = []
    for name, t_ns in zip(names, times, strict=True):
        match = _NUMBER.search(name.rpartition("/")[2])
        if match is None or int(match[1]) < EARLIEST_S:
            continue
        digits = match[2] or match[3] or ""
        named_ns = int(Decimal(f"{match[1]}.{digits or 0}") * NS)
        rounding = 10 ** (9 - len(digits))
        off = named_ns - t_ns
        found.append(0.0 if abs(off) <= rounding else off / NS)
    return found
