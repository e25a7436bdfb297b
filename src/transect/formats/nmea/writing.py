"""Sentences from streams: GGA and GST from positions, RMC from velocities."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Ints
from transect.base.clocks import NS, decimal_from_ns
from transect.base.files import write_bytes
from transect.base.units import from_si
from transect.errors import UsageError
from transect.recording import Recording, Stream
from transect.types import NavFix, Twist

from ..shared.rows import column_or_nan, new_file
from .reading import DAY_NS, FIX_OF_QUALITY, STD

_QUALITY_OF_FIX = {**{fix: quality for quality, fix in reversed(FIX_OF_QUALITY.items())}, "2d": 1, "ppp": 2}
_UNITS_PER_MINUTE = 10**8
"""Resolution of positions, per minute of arc."""
_MAX_DATE_AGE_NS = DAY_NS // 4
"""Positions later than this after the last date are preceded by a date."""
Lines = list[tuple[int, str]]


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write positions as GGA (and GST) and velocities as RMC, CRLF at the ends of lines.

    Positions are written to 1e-8 minutes (0.02 mm), lengths to 0.1 mm, times to the nanosecond if need be.
    """
    file = new_file(path, "gps.nmea")
    fix, velocity = satellite_streams(recording)
    if fix is None and velocity is None:
        raise UsageError(
            f"{recording.name} has no positions to write as NMEA", why="it has no stream of type NavFix"
        )
    write_bytes(file, log_text(fix, velocity))
    return not_carried(recording, fix, velocity)


def satellite_streams(recording: Recording) -> tuple[Stream | None, Stream | None]:
    """Return the first stream of positions and the first of velocities (in NED)."""
    fits = [s for s in recording if s.clock in ("utc", "device") and s.role in ("measurement", "derived")]
    fix = next((s for s in fits if s.type is NavFix), None)
    moving = [s for s in fits if s.type is Twist and s.frame == "NED"]
    return fix, next((s for s in moving if fix is None or s.clock == fix.clock), None)


def log_text(fix: Stream | None, velocity: Stream | None, stamped: bool | None = None) -> bytes:
    """Return a log of the two streams in time order, each keeping its own order.

    Parameters
    ----------
    fix, velocity : Stream or None
        Of types NavFix and Twist. Without velocities RMC carries the date of each position.
    stamped : bool, optional
        Whether the sample time is written before each sentence; default if the receiver's own is also known.
    """
    streams = [s for s in (velocity, fix) if s is not None]
    if stamped is None:
        stamped = any("time_of_day" in s.columns for s in streams)
    decimals = _decimals(np.concatenate([_receiver_ns(s) for s in streams]))
    velocities = _velocity_lines(velocity or _dates_of(fix, stamped), decimals)
    fixes = _fix_lines(fix, decimals) if fix is not None else []
    merged = _merge([velocities, fixes])
    if stamped:
        lines = [f"{decimal_from_ns(t, 9 if t % 1000 else 6)} {text}" for t, text in merged]
    else:
        lines = _insert_dates(merged, decimals) if streams[0].clock == "utc" else [text for _, text in merged]
    return "".join(f"{line}\r\n" for line in lines).encode()


def not_carried(recording: Recording, *carried: Stream | None) -> tuple[str, ...]:
    """Return sentences on what an NMEA log cannot represent."""
    names = {s.name for s in carried if s is not None}
    left = [f"{s.name} ({s.type.__name__}) has no NMEA sentence" for s in recording if s.name not in names]
    for stream in carried:
        if stream is not None and {"roll", "pitch", "yaw"} & set(stream.columns):
            left.append(f"the attitude of {stream.name} has no NMEA sentence")
        if stream is not None and "fix" in stream.columns and "quality" not in stream.columns:
            vague = sorted({"2d", "ppp"} & set(stream.column("fix")))
            left += [f"NMEA has no quality for the {word} fixes of {stream.name}" for word in vague]
    return tuple(left)


def _dates_of(fix: Stream | None, stamped: bool) -> Stream | None:
    """Return the positions as unknown velocities, if these are needed for the date."""
    return fix if fix is not None and fix.clock == "utc" and not stamped else None


def _fix_lines(stream: Stream, decimals: int) -> Lines:
    columns = zip(
        stream.t_ns.tolist(),
        _words(stream, "talker", "GN"),
        _times_of_day(stream, decimals),
        _places(stream),
        _qualities(stream),
        [f"{n:02.0f}" if n == n else "" for n in column_or_nan(stream, "satellites").tolist()],
        *(_texts(column_or_nan(stream, name), 4) for name in ("hdop", "alt", "geoid_separation", "age")),
        _words(stream, "station"),
        _std(stream),
        strict=True,
    )
    lines: Lines = []
    for t, talker, clock, place, quality, count, hdop, alt, above, age, station, std in columns:
        fields = (clock, *place, quality, count, hdop, alt, "M", above, "M", age, station)
        lines.append((t, _sentence(talker, "GGA", fields)))
        if std:
            lines.append((t, _sentence(talker, "GST", (clock, "", "", "", "", *std))))
    return lines


def _velocity_lines(stream: Stream | None, decimals: int) -> Lines:
    if stream is None:
        return []
    columns = zip(
        stream.t_ns.tolist(),
        _words(stream, "talker", "GN"),
        _times_of_day(stream, decimals),
        _words(stream, "status", "A"),
        _places(stream),
        *_polar(stream),
        [f"{_day(t):%d%m%y}" if stream.clock == "utc" else "" for t in _receiver_ns(stream).tolist()],
        _words(stream, "mode"),
        strict=True,
    )
    return [
        (t, _sentence(talker, "RMC", (clock, status, *place, speed, course, date, "", "", mode)))
        for t, talker, clock, status, place, speed, course, date, mode in columns
    ]


def _sentence(talker: str, kind: str, fields: Iterable[str]) -> str:
    import pynmea2

    return pynmea2.TalkerSentence(talker, kind, list(fields)).render()


def _merge(parts: Sequence[Lines]) -> Lines:
    """Interleave lines by time; a clock that jumps back does not change the order within a part."""
    keys = [np.maximum.accumulate(np.array([t for t, _ in part], np.int64)) for part in parts]
    every = [line for part in parts for line in part]
    return [every[i] for i in np.argsort(np.concatenate(keys), kind="stable").tolist()]


def _insert_dates(merged: Lines, decimals: int) -> list[str]:
    """Return the lines with a ZDA before every position that is far from the last sentence with a date."""
    lines: list[str] = []
    last: int | None = None
    for t, text in merged:
        dated = text[3:6] == "RMC"
        if not dated and (last is None or abs(t - last) > _MAX_DATE_AGE_NS):
            date = f"{_day(t):%d %m %Y}".split()
            lines.append(_sentence("GN", "ZDA", (_time_of_day(t % DAY_NS, decimals), *date, "", "")))
            dated = True
        last = t if dated else last
        lines.append(text)
    return lines


def _receiver_ns(stream: Stream) -> Ints:
    """Return (n,) the receiver's times: the sample times, unless a column has the receiver's time of day."""
    t_ns = stream.t_ns
    if "time_of_day" not in stream.columns:
        return t_ns
    seconds = column_or_nan(stream, "time_of_day")
    of_day = np.where(np.isnan(seconds), t_ns % DAY_NS, np.rint(np.nan_to_num(seconds) * NS)).astype(np.int64)
    apart = (of_day - t_ns % DAY_NS + DAY_NS // 2) % DAY_NS - DAY_NS // 2
    return t_ns + apart


def _times_of_day(stream: Stream, decimals: int) -> list[str]:
    texts = [_time_of_day(t, decimals) for t in (_receiver_ns(stream) % DAY_NS).tolist()]
    if "time_of_day" in stream.columns:
        unknown = np.isnan(column_or_nan(stream, "time_of_day")).tolist()
        texts = ["" if missing else text for text, missing in zip(texts, unknown, strict=True)]
    return texts


def _time_of_day(of_day_ns: int, decimals: int) -> str:
    seconds, fraction = divmod(of_day_ns, NS)
    return f"{seconds // 3600:02d}{seconds // 60 % 60:02d}{seconds % 60:02d}.{fraction:09d}"[: 7 + decimals]


def _day(t_ns: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(days=t_ns // DAY_NS)


def _decimals(times_ns: Ints) -> int:
    """Return the number of decimals of a second that all times need."""
    return next((n for n in (2, 3, 6) if not (times_ns % 10 ** (9 - n)).any()), 9)


def _places(stream: Stream) -> list[tuple[str, str, str, str]]:
    latitudes = _angles(column_or_nan(stream, "lat"), 2, "NS")
    longitudes = _angles(column_or_nan(stream, "lon"), 3, "EW")
    return [(*lat, *lon) for lat, lon in zip(latitudes, longitudes, strict=True)]


def _angles(radians: NDArray[np.float64], width: int, signs: str) -> list[tuple[str, str]]:
    """Return angles as degrees and minutes with their hemisphere."""
    known = np.where(np.abs(radians) <= 2 * np.pi, radians, np.nan)
    minutes = np.abs(from_si(known, "deg")) * 60 * _UNITS_PER_MINUTE
    result: list[tuple[str, str]] = []
    for value, negative in zip(minutes.tolist(), (radians < 0).tolist(), strict=True):
        if math.isnan(value):
            result.append(("", ""))
            continue
        whole, fraction = divmod(round(value), _UNITS_PER_MINUTE)
        result.append((f"{whole // 60:0{width}d}{whole % 60:02d}.{fraction:08d}", signs[negative]))
    return result


def _polar(stream: Stream) -> tuple[list[str], list[str]]:
    """Return speeds in knots and courses in degrees, from vx north and vy east if need be."""
    if "speed" in stream.columns:
        speed, course = column_or_nan(stream, "speed"), column_or_nan(stream, "course")
    else:
        north, east = column_or_nan(stream, "vx"), column_or_nan(stream, "vy")
        speed, course = np.hypot(north, east), np.arctan2(east, north) % (2 * np.pi)
    return _texts(from_si(speed, "kn"), 6), _texts(from_si(course, "deg"), 6)


def _qualities(stream: Stream) -> list[str]:
    if "quality" in stream.columns:
        return [f"{n:.0f}" if n == n else "" for n in column_or_nan(stream, "quality").tolist()]
    if "fix" in stream.columns:
        return [str(_QUALITY_OF_FIX.get(word, 0)) for word in stream.column("fix")]
    return ["0" if missing else "1" for missing in np.isnan(column_or_nan(stream, "lat")).tolist()]


def _std(stream: Stream) -> list[tuple[str, ...]]:
    """Return the standard deviations of each position as text, empty where there are none."""
    std = np.column_stack([column_or_nan(stream, name) for name in STD])
    known: list[bool] = np.any(~np.isnan(std), axis=1).tolist()
    texts = zip(*(_texts(column, 4) for column in std.T), strict=True)
    return [row if given else () for row, given in zip(texts, known, strict=True)]


def _texts(values: NDArray[np.float64], decimals: int) -> list[str]:
    return ["" if math.isnan(value) else f"{value:.{decimals}f}" for value in values.tolist()]


def _words(stream: Stream, name: str, default: str = "") -> list[str]:
    """Return a column as words; a numeric column of the same name has another meaning."""
    known = stream.column(name) if name in stream.columns else None
    return known if isinstance(known, list) else [default] * len(stream)
