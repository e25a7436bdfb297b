"""Clocks of InSight (SIS 3.3.1): the text of the spacecraft clock (SCLK), and the UTC and the sol of a count.

The SIS has `[p/]ddddddddd[-fffff]`: partition, whole seconds, and fractions of 1/65536 s. It prints one
pair of SCLK and UTC (appendix E). Here UTC counts from that pair at the rate of UTC: right to a second on
that day, and to 3 minutes in the mission, since the clock drifts and its SPICE kernel is not at hand. The SIS
counts sols from landing day, sol 0, and prints no local times.
"""

from __future__ import annotations

import re

from transect.base.clocks import NS, ns_from_iso
from transect.errors import TimeError

TICKS = 65_536
"""Of a second."""
PARTITION = 1
"""InSight's clock was not set back: all of its counts are in the first partition."""
PAIR_NS = (615_088_547 * NS, ns_from_iso("2019-06-29T13:56:40.702Z"))
"""SCLK and UTC of the label in SIS appendix E."""
SOL_0_NS = ns_from_iso("2018-11-26T05:10:50.336Z")
"""Midnight before the landing, in the mean solar time of the landing site (135.97 degrees east)."""
SOL_NS = 88_775_244_147_000
"""A mean solar day of Mars."""

_TEXT = re.compile(r"(?:(?P<partition>[1-9]\d*)/)?(?P<seconds>\d{9,10})(?:-(?P<ticks>\d{5}))?")


def sclk_text(t_ns: int, partition: int | None = PARTITION, *, whole: bool = False) -> str:
    """Return a count as the SIS spells it.

    Parameters
    ----------
    t_ns : int
        SCLK in nanoseconds, not negative; rounded to ticks of 1/65536 s.
    partition : int or None
        None leaves it out, as appendix E does; 3.3.1 then asks for it in an attribute of its own.
    whole : bool
        Leave the fraction out: whole seconds, begun ones not counted.
    """
    ticks = t_ns // NS * TICKS if whole else (2 * t_ns * TICKS + NS) // (2 * NS)
    prefix = "" if partition is None else f"{partition}/"
    return f"{prefix}{ticks // TICKS:09d}" + ("" if whole else f"-{ticks % TICKS:05d}")


def ns_from_sclk_text(text: str) -> tuple[int | None, int]:
    """Return the partition, None where there is none, and the SCLK in nanoseconds."""
    match = _TEXT.fullmatch(text.strip())
    ticks = int(match["ticks"] or 0) if match else TICKS
    if match is None or ticks >= TICKS:
        raise TimeError(
            f"{text!r} is no count of the spacecraft clock", hint="such as 1/615088547-32768 or 615088547"
        )
    partition = int(match["partition"]) if match["partition"] else None
    return partition, int(match["seconds"]) * NS + (2 * ticks * NS + TICKS) // (2 * TICKS)


def utc_from_sclk(t_ns: int) -> int:
    """Return UTC (ns since 1970) of an SCLK (ns), to a second on sol 209 and to 3 minutes in the mission."""
    sclk, utc = PAIR_NS
    return t_ns - sclk + utc


def sol_of_utc(utc_ns: int) -> int:
    """Return the sol of a time (ns since 1970) in local mean solar time; landing day is sol 0."""
    return (utc_ns - SOL_0_NS) // SOL_NS


def sol_of_sclk(t_ns: int) -> int:
    """Return the sol of an SCLK (ns); within 3 minutes of midnight it may be the sol beside."""
    return sol_of_utc(utc_from_sclk(t_ns))
