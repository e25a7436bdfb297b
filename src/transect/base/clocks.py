"""Times: int64 nanoseconds on a named clock, parsed with integer arithmetic only."""

from __future__ import annotations

import datetime as dt
import numbers
import re
from decimal import Decimal
from typing import Literal

from transect.errors import TimeError

Clock = Literal["utc", "device", "sclk", "index"]
CLOCKS: tuple[Clock, ...] = ("utc", "device", "sclk", "index")
NS = 1_000_000_000
_DAY_NS = 86_400 * NS
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": NS, "min": 60 * NS, "m": 60 * NS, "h": 3600 * NS}
_RELATIVE = re.compile(r"\+\s*(\d+(?:\.\d*)?|\.\d+)\s*(ns|us|ms|s|min|m|h)?$")
_OF_DAY = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(\.\d*)?)?$")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]|$)")

_MAX_EXPONENT = 30
"""Largest decimal exponent of a time: as an integer, `1e999999` would exhaust the memory."""

TimeLike = int | str | dt.datetime


def ns_from_decimal(text: str, unit_ns: int = NS) -> int:
    """Return decimal text (`1657.123456`, `1.5e9`) times a unit as whole nanoseconds, truncated."""
    try:
        value = Decimal(text.strip())
        if value and abs(value.adjusted()) > _MAX_EXPONENT:
            raise ValueError
        return int(value * unit_ns)
    except (ArithmeticError, ValueError):
        raise TimeError(f"{text!r} is not a time", hint="decimal seconds are expected") from None


def in_64_bits(t_ns: int) -> int:
    """Return nanoseconds; raise a TimeError if they exceed an int64."""
    if not -(2**63) < t_ns < 2**63:
        raise TimeError(
            f"{decimal_from_ns(t_ns, 0)} s exceeds the range of nanoseconds in 64 bits (292 years)"
        )
    return t_ns


def decimal_from_ns(t_ns: int, digits: int = 9) -> str:
    """Return nanoseconds as decimal seconds with a fixed number of digits, exactly (truncated)."""
    sign, t_ns = ("-", -t_ns) if t_ns < 0 else ("", t_ns)
    seconds, fraction = divmod(int(t_ns), NS)
    return (
        f"{sign}{seconds}.{fraction:09d}"[: len(f"{sign}{seconds}") + 1 + digits]
        if digits
        else f"{sign}{seconds}"
    )


def ns_from_iso(text: str) -> int:
    """Return an ISO date and time (UTC unless it names a zone) as nanoseconds since the Unix epoch."""
    head, _, fraction = text.strip().removesuffix("Z").replace(",", ".").partition(".")
    digits = re.match(r"\d*", fraction)
    kept = digits.group() if digits else ""
    zone = fraction[len(kept) :]
    try:
        moment = dt.datetime.fromisoformat(head + zone)
    except ValueError:
        raise TimeError(f"{text!r} is not a date and time", hint="2022-07-01T12:04:31.2 is one") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    seconds = (moment - _EPOCH) // dt.timedelta(seconds=1)
    return seconds * NS + int((kept + "0" * 9)[:9])


def iso_from_ns(t_ns: int, digits: int = 3) -> str:
    """Return nanoseconds since the Unix epoch as `2022-07-01T12:04:31.200`."""
    seconds, fraction = divmod(int(t_ns), NS)
    try:
        moment = _EPOCH + dt.timedelta(seconds=seconds)
    except OverflowError:
        return f"{seconds} s"
    text = moment.isoformat(timespec="seconds").removesuffix("+00:00")
    return f"{text}.{fraction:09d}"[: len(text) + 1 + digits] if digits else text


def text_from_ns(t_ns: int, clock: str) -> str:
    """Return a time on a clock as readable text."""
    return iso_from_ns(t_ns) if clock == "utc" else decimal_from_ns(t_ns, 0 if clock == "index" else 3)


def resolve(time: TimeLike, first_ns: int, clock: str = "utc") -> int:
    """Return a user's time as nanoseconds on `clock`.

    Parameters
    ----------
    time : int, str or datetime
        Nanoseconds; `+60s` after the first sample; `12:04:31.2` UTC on the first day; an ISO date and
        time; or decimal seconds on the clock.
    first_ns : int
        The recording's first sample on that clock.
    """
    return in_64_bits(_resolve(time, first_ns, clock))


def _resolve(time: TimeLike, first_ns: int, clock: str) -> int:
    if isinstance(time, dt.datetime):
        return ns_from_iso(time.isoformat())
    if isinstance(time, numbers.Real) and not isinstance(time, numbers.Integral):
        raise TimeError(
            f"{time!r} is a float, which cannot hold a time to the nanosecond",
            hint=f"'+{time:g}s' after the start, '{time:g}' as decimal seconds, or int nanoseconds",
        )
    if not isinstance(time, str):
        return int(time)
    text = time.strip()
    if match := _RELATIVE.match(text):
        return first_ns + ns_from_decimal(match[1], _UNITS[match[2] or "s"])
    if match := _OF_DAY.match(text):
        _only_utc(text, clock)
        if int(match[1]) > 23 or int(match[2]) > 59 or int(match[3] or 0) > 60:
            raise TimeError(
                f"{text!r} is not a time of day", hint="00:00 to 23:59:59, or +60s after the start"
            )
        of_day = (int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3] or 0)) * NS
        return first_ns - first_ns % _DAY_NS + of_day + ns_from_decimal("0" + (match[4] or ".0"))
    if _DATE.match(text):
        _only_utc(text, clock)
        return ns_from_iso(text)
    try:
        return ns_from_decimal(text)
    except TimeError:
        meant = f"did you mean +{text}? Valid are " if _RELATIVE.match(f"+{text}") else ""
        raise TimeError(
            f"cannot read {time!r} as a time",
            hint=f"{meant}+60s, 12:04:31.2, 2022-07-01T12:04:31.2, or decimal seconds on the clock",
        ) from None


def _only_utc(text: str, clock: str) -> None:
    if clock != "utc":
        raise TimeError(
            f"{text!r} is a time of day, but the stream runs on the {clock} clock",
            why=f"a {clock} clock has no date",
            hint="use +60s, or decimal seconds on that clock",
        )
