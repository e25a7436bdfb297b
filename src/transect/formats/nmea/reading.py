"""Positions and velocities from NMEA sentences, converted to radians, m/s and ns."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np

from transect.base.arrays import Ints
from transect.base.clocks import NS, Clock
from transect.base.units import to_si
from transect.errors import ParseError
from transect.recording import Parsed, Recording, Source, Stream, arrow, cache
from transect.recording.source import Buffer
from transect.types import NavFix, Twist

from . import only_log
from .sentences import POSITIONS, FoundSentences, Sentence, find_sentences

DAY_NS = 86_400 * NS
FIX_OF_QUALITY: dict[float, str] = {
    1: "3d",
    2: "differential",
    3: "3d",
    4: "rtk fixed",
    5: "rtk float",
    8: "3d",
    9: "sbas",
}
"""GGA quality to `FIX_TYPES`; 3 is PPS, 8 a simulator, 9 NovAtel's SBAS; 6 (reckoned), 7 (manual) none."""
FIX_OF_MODE = {"R": "rtk fixed", "F": "rtk float", "P": "3d", "D": "differential", "A": "3d", "S": "3d"}
"""Mode of RMC, GNS, GLL to `FIX_TYPES`, the best first; P is PPS, S a simulator; E (reckoned), M, N none."""
STD = ("std_north", "std_east", "std_down")
FIX = (
    *("lat", "lon", "alt", "fix", "quality", "satellites", "hdop", "geoid_separation", "age", "station"),
    "talker",
)
VELOCITY = ("speed", "course", "lat", "lon", "status", "mode", "talker")
UNITS = {
    **Twist.units(),
    **NavFix.units(),
    "geoid_separation": "m",
    "age": "s",
    "speed": "m/s",
    "course": "rad",
    "time_of_day": "s",
}
_TEXTS = ("fix", "station", "talker", "status", "mode")
_OF_DAY = re.compile(r"([01]\d|2[0-3])([0-5]\d)([0-5]\d|60)(?:\.(\d{0,9}))?")
_PLACE = re.compile(r",\d{4,5}(?:\.\d*)?,[NS],")
"""A latitude."""
_UNKNOWN_ID = -1
_MIN_FIELDS = 9
"""Fields up to the position of a GGA and the date of an RMC."""


@dataclass(frozen=True, eq=False)
class NmeaLog:
    """Content of an NMEA log."""

    clock: Clock  # `utc`, or `device` where no sentence gives a date: seconds of the receiver's first day
    # From GGA, with the standard deviations of GST: the columns `FIX`. `alt` is above mean sea level;
    # above the ellipsoid it is ``alt + geoid_separation``. Where no GGA has a position, from GNS, RMC
    # or GLL; the latter two have no heights.
    fix: Parsed
    # From RMC: vx north and vy east, and the columns `VELOCITY`; `course` is clockwise from true north
    velocity: Parsed


class _Event(NamedTuple):
    """Values of a sentence, its log time, the receiver's time of day (ns) and day (since 1970)."""

    kind: str
    log_ns: int | None
    of_day: int
    day: int
    values: tuple[Any, ...]


class _Chosen(NamedTuple):
    """The sentences of one kind, and the receiver's times (n,) in ns."""

    events: list[_Event]
    receiver_ns: Ints


def read_log(buffer: Buffer, file: str, stamped: bool | None = None) -> NmeaLog:
    """Read an NMEA log.

    Parameters
    ----------
    buffer : buffer
        The file's content.
    file : str
        For losses.
    stamped : bool, optional
        Whether a Unix time stands before every sentence. It then is the sample's time; the receiver's own is
        kept as `time_of_day`. Default: as in the first sentence.
    """
    found = find_sentences(buffer)
    source = _leave_one_kind(found)
    if stamped is None:
        stamped = bool(found.sentences) and found.sentences[0].log_ns is not None
    events = _events(found, stamped)
    receiver_ns, dated = _receiver_times(events)
    fix, velocity, std = (_choose(events, receiver_ns, kind, stamped) for kind in (source, "RMC", "GST"))
    if source == "RMC":
        fix = fix._replace(events=[event._replace(values=_position_of(event)) for event in fix.events])
    fixes = _table(fix, _columns(FIX, fix, stamped) | _std_columns(fix, std), stamped)
    velocities = _table(velocity, _with_vector(_columns(VELOCITY, velocity, stamped)), stamped)
    losses, notes = found.lost.losses(file, "line"), _notes(found, events, stamped, dated)
    if source != "GGA" and fix.events:
        heights = "" if source == "GNS" else ", which has no heights"
        notes = (*notes, f"no GGA has a position: positions are those of {source}{heights}")
    clock: Clock = "utc" if stamped or dated else "device"
    return NmeaLog(clock, Parsed(fixes, losses, notes), Parsed(velocities, losses, notes))


def _leave_one_kind(found: FoundSentences) -> str:
    """Return the most detailed kind of sentence with a position; others are counted as not read."""
    present = {sentence.kind for sentence in found.sentences if _PLACE.search(sentence.text)}
    source = next((kind for kind in POSITIONS if kind in present), "GGA")
    redundant = {"GNS", "GLL"} - {source}
    found.others.update(sentence.kind for sentence in found.sentences if sentence.kind in redundant)
    found.sentences = [sentence for sentence in found.sentences if sentence.kind not in redundant]
    return source


def _events(found: FoundSentences, stamped: bool) -> list[_Event]:
    events: list[_Event] = []
    for sentence in found.sentences:
        if stamped and sentence.log_ns is None:
            found.lost.add("no time stamp in front of the sentence", sentence.line)
            continue
        try:
            events.append(_event(sentence))
        except ValueError as error:
            found.lost.add(f"{sentence.kind}: {error}", sentence.line)
    return events


def _event(sentence: Sentence) -> _Event:
    import pynmea2

    try:
        message: Any = pynmea2.parse(sentence.text)
    except pynmea2.ParseError:
        raise ValueError("a sentence without fields") from None
    message.data += [""] * (_MIN_FIELDS - len(message.data))
    day = _day(message) if sentence.kind in ("RMC", "ZDA") else _UNKNOWN_ID
    values = _VALUES[sentence.kind](message)
    of_day = _of_day(message.data[4 if sentence.kind == "GLL" else 0])
    return _Event(sentence.kind, sentence.log_ns, of_day, day, values)


def _of_day(text: str) -> int:
    """Return hhmmss.sss as nanoseconds, by integer arithmetic."""
    if not text:
        return _UNKNOWN_ID
    match = _OF_DAY.fullmatch(text)
    if match is None:
        raise ValueError("the time is not hhmmss")
    seconds = int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3])
    return seconds * NS + int((match[4] or "").ljust(9, "0"))


def _day(message: Any) -> int:
    """Return the date of an RMC or ZDA as days since 1970."""
    if message.sentence_type == "RMC":
        return _day_of("".join(message.data[8:9]), "%d%m%y")
    return _day_of("".join(message.data[1:4]), "%d%m%Y")


@lru_cache(maxsize=16)
def _day_of(text: str, form: str) -> int:
    if not text:
        return _UNKNOWN_ID
    try:
        date = dt.datetime.strptime(text, form).replace(tzinfo=dt.UTC)
    except ValueError:
        raise ValueError("the date is not a date") from None
    return (date - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)).days


def _number(message: Any, name: str) -> float:
    value = getattr(message, name)
    if value is None or value == "":
        return math.nan
    try:
        number = float(value)
    except (ValueError, OverflowError):  # pynmea2 makes whole numbers of any size
        raise ValueError(f"{name} is not a number") from None
    if math.isinf(number):
        raise ValueError(f"{name} is infinite")
    return number


def _place(lat: str, north: str, lon: str, east: str) -> tuple[float, float]:
    """Return latitude and longitude in radians, NaN if the sentence has none."""
    from pynmea2.nmea_utils import dm_to_sd

    if not (lat and lon):
        return math.nan, math.nan
    if north not in ("N", "S") or east not in ("E", "W"):
        raise ValueError("the position has no hemisphere")
    try:
        latitude, longitude = dm_to_sd(lat), dm_to_sd(lon)
    except ValueError:
        raise ValueError("the position is not degrees and minutes") from None
    if latitude > 90 or longitude > 180:
        raise ValueError("the position is not on Earth")
    south, west = north == "S", east == "W"
    return to_si(-latitude if south else latitude, "deg"), to_si(-longitude if west else longitude, "deg")


def _fix_values(message: Any) -> tuple[Any, ...]:
    quality = _number(message, "gps_qual")
    return (
        *_place(*message.data[1:5]),
        _number(message, "altitude"),
        FIX_OF_QUALITY.get(quality, "none"),
        quality,
        _number(message, "num_sats"),
        _number(message, "horizontal_dil"),
        _number(message, "geo_sep"),
        _number(message, "age_gps_data"),
        message.ref_station_id,
        message.talker,
    )


def _general_values(message: Any) -> tuple[Any, ...]:
    """Return the columns `FIX` of a GNS, whose mode has a letter for each system of satellites."""
    return (
        *_place(*message.data[1:5]),
        _number(message, "altitude"),
        _fix_of_mode(message.mode_indicator),
        math.nan,
        _number(message, "num_sats"),
        _number(message, "hdop"),
        _number(message, "geo_sep"),
        _number(message, "age_gps_data"),
        message.diferential,  # so spelt by pynmea2
        message.talker,
    )


def _plain_values(message: Any) -> tuple[Any, ...]:
    """Return the columns `FIX` of a GLL."""
    return _plain_fix(*_place(*message.data[:4]), message.status, message.faa_mode, message.talker)


def _position_of(event: _Event) -> tuple[Any, ...]:
    """Return the columns `FIX` of an RMC."""
    _, _, lat, lon, status, mode, talker = event.values
    return _plain_fix(lat, lon, status, mode, talker)


def _plain_fix(lat: float, lon: float, status: str, mode: str | None, talker: str) -> tuple[Any, ...]:
    """Return the columns `FIX` of a position without further values; status V is a warning."""
    fix = "none" if status != "A" else _fix_of_mode(mode or "A")
    unknown = math.nan
    return lat, lon, unknown, fix, unknown, unknown, unknown, unknown, unknown, "", talker


def _fix_of_mode(letters: str | None) -> str:
    return next((fix for letter, fix in FIX_OF_MODE.items() if letter in (letters or "")), "none")


def _velocity_values(message: Any) -> tuple[Any, ...]:
    return (
        to_si(_number(message, "spd_over_grnd"), "kn"),
        to_si(_number(message, "true_course"), "deg"),
        *_place(*message.data[2:6]),
        message.status,
        message.mode_indicator,
        message.talker,
    )


def _std_values(message: Any) -> tuple[Any, ...]:
    return tuple(_number(message, f"std_dev_{axis}") for axis in ("latitude", "longitude", "altitude"))


_VALUES: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "GGA": _fix_values,
    "GNS": _general_values,
    "GLL": _plain_values,
    "RMC": _velocity_values,
    "GST": _std_values,
    "ZDA": lambda _: (),
}


def _receiver_times(events: Sequence[_Event]) -> tuple[Ints, bool]:
    """Return the receiver's times in ns, and whether they have a date.

    A sentence without a date takes that of the last one that had one (before the first, the first's), moved
    to the day that puts it within twelve hours. Without any date days are counted from the first sentence.
    """
    of_day = np.array([event.of_day for event in events], np.int64)
    day = np.array([event.day for event in events], np.int64)
    known = of_day != _UNKNOWN_ID
    dated = np.flatnonzero(known & (day != _UNKNOWN_ID))
    if not len(dated):
        steps = np.diff(of_day[known], prepend=of_day[known][:1])
        of_day[known] += DAY_NS * np.cumsum(_days_over(steps))
        return of_day, False
    last = np.searchsorted(dated, np.arange(len(of_day)), side="right") - 1
    at = dated[np.maximum(last, 0)]
    return (day[at] + _days_over(of_day - of_day[at])) * DAY_NS + of_day, True


def _days_over(steps_ns: Ints) -> Ints:
    """Return the days to add to steps between times of day so that they are within twelve hours."""
    return (steps_ns < -DAY_NS // 2).astype(np.int64) - (steps_ns > DAY_NS // 2)


def _choose(events: Sequence[_Event], receiver_ns: Ints, kind: str, stamped: bool) -> _Chosen:
    """Return the sentences of one kind that have a time."""
    index = [i for i, e in enumerate(events) if e.kind == kind and (stamped or e.of_day != _UNKNOWN_ID)]
    return _Chosen([events[i] for i in index], receiver_ns[np.array(index, np.int64)])


def _columns(names: Sequence[str], chosen: _Chosen, stamped: bool) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for number, name in enumerate(names):
        values = [event.values[number] for event in chosen.events]
        columns[name] = arrow.strings(values) if name in _TEXTS else np.array(values, np.float64)
    if stamped:
        seconds = [e.of_day / NS if e.of_day != _UNKNOWN_ID else math.nan for e in chosen.events]
        columns["time_of_day"] = np.array(seconds, np.float64)
    return columns


def _with_vector(columns: dict[str, Any]) -> dict[str, Any]:
    speed, course = columns["speed"], columns["course"]
    vector = {"vx": speed * np.cos(course), "vy": speed * np.sin(course), "vz": np.full(len(speed), np.nan)}
    return vector | columns


def _std_columns(fix: _Chosen, std: _Chosen) -> dict[str, Any]:
    """Return the standard deviations of GST at the times of the fixes; empty without GST."""
    if not std.events:
        return {}
    given = zip(std.receiver_ns.tolist(), std.events, strict=True)
    of_time = {t: event.values for t, event in given if event.of_day != _UNKNOWN_ID}
    none = (math.nan,) * 3
    values = np.array([of_time.get(t, none) for t in fix.receiver_ns.tolist()], np.float64).reshape(-1, 3)
    return {name: values[:, i] for i, name in enumerate(STD)}


def _table(chosen: _Chosen, columns: dict[str, Any], stamped: bool) -> Any:
    t_ns = np.array([e.log_ns for e in chosen.events], np.int64) if stamped else chosen.receiver_ns
    return arrow.table(t_ns, columns, units=UNITS)


def _notes(found: FoundSentences, events: Sequence[_Event], stamped: bool, dated: bool) -> tuple[str, ...]:
    untimed = sum(e.of_day == _UNKNOWN_ID and e.kind in POSITIONS for e in events)
    said = {
        f"sentences that were not read: {_count(found.others)}": bool(found.others),
        f"binary frames that were skipped: {_count(found.frames)}": bool(found.frames),
        f"{found.prefixed} sentences have text in front that is not a time; ignored": found.prefixed > 0,
        "the sentences carry no checksums: none could be verified": not found.summed and bool(events),
        f"{untimed} positions or velocities have no time and were left out": untimed > 0 and not stamped,
        "no date (RMC or ZDA) in it: times are seconds of the receiver's first day, on the device clock": (
            not (dated or stamped) and untimed < len(events)
        ),
    }
    return tuple(text for text, holds in said.items() if holds)


def _count(counts: Counter[str], most: int = 12) -> str:
    common = counts.most_common()
    shown = [f"{count} {kind}" for kind, count in sorted(common[:most])]
    return ", ".join(shown) + (f" and {len(common) - most} kinds more" if len(common) > most else "")


_PARSER = "nmea/2"


def read(source: Source) -> Recording:
    """Read a log; it is parsed at once (and cached), because its clock depends on its content."""
    name = only_log(source)
    if name is None:
        raise ParseError("expected one file of NMEA sentences", where=str(source.path))

    def build(buffer: Buffer) -> dict[str, Parsed]:
        log = read_log(buffer, name)
        return {f"{log.clock}/fix": log.fix, f"{log.clock}/velocity": log.velocity}

    parts = cache.parse_many(source, name, _PARSER, build)
    if not any(part.table.num_rows for part in parts.values()):
        raise _nothing(name, next(iter(parts.values())))
    found = [(*key.split("/"), part) for key, part in parts.items() if part.table.num_rows]
    streams = tuple(_stream(kind, part, clock) for clock, kind, part in found)
    return Recording(name=source.stem, streams=streams, format="nmea", source=source)


def _stream(kind: str, part: Parsed | Callable[[], Parsed], clock: str) -> Stream:
    if kind == "fix":
        return Stream("Gps/Fix", NavFix, part, clock=cast(Clock, clock), frame="gps")
    return Stream("Gps/Velocity", Twist, part, clock=cast(Clock, clock), frame="NED")


def _nothing(name: str, part: Parsed) -> ParseError:
    lost = [f"{loss.where}: {loss.reason}" for loss in part.losses[:3]]
    return ParseError(
        f"{name} holds no GGA or RMC sentence with a time, nor GNS or GLL",
        where=part.losses[0].where if part.losses else name,
        why="; ".join([*lost, *part.notes]) or "it holds no sentence at all",
        hint="the receiver must send GGA (positions) or RMC (positions without heights, and velocities)",
    )


def stamped_stream(source: Source, file: str, kind: str) -> Stream:
    """Return one stream of a log with a Unix time before each sentence, not parsed before it is asked for.

    Parameters
    ----------
    source, file
        The log.
    """

    def build(buffer: Buffer) -> dict[str, Parsed]:
        log = read_log(buffer, file, stamped=True)
        return {"fix": log.fix, "velocity": log.velocity}

    return _stream(kind, lambda: cache.parse_many(source, file, f"{_PARSER} stamped", build)[kind], "utc")
