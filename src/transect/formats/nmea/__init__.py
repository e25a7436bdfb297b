"""NMEA 0183 logs: positions (GGA, GST) and velocities (RMC), perhaps with a Unix time before each sentence.

Angles become radians, knots m/s; checksums are verified. Without a stamp in front, the date is that of RMC or
ZDA; a log that has neither is on the `device` clock, in seconds of the receiver's first day. With a stamp in
front, the stamp is the sample's time, since the other sensors of the same computer share that clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

from transect.base.clocks import Clock
from transect.base.files import write_bytes
from transect.errors import ParseError, UsageError
from transect.recording import Parsed, Recording, Source, Stream, cache
from transect.recording.source import Buffer
from transect.types import NavFix, Twist

from .._base import Match, no
from .._rows import new_file
from .tables import read_log
from .writing import log_text, not_carried

_PARSER = "nmea/1"
_POSITION = re.compile(rb"\$[A-Z]{2}(GGA|RMC),")
_ANY = re.compile(rb"\$[A-Z][A-Z0-9]{2,}(,[ -#%-~]*)?\*[0-9A-Fa-f]{2}")


def recognises(source: Source) -> Match:
    """Look for `$..GGA,` or `$..RMC,` at the beginning of the only file, or of a folder's only .nmea file."""
    name = _only(source)
    if name is None:
        return no("not one file of NMEA sentences")
    head = source.head(name)
    if match := _POSITION.search(head):
        return Match(0.9, f"it has NMEA sentences such as {match[0].decode()}")
    if _ANY.search(head):
        return Match(0.3, "it has NMEA sentences, though no GGA or RMC near its beginning")
    if name.lower().endswith(".nmea"):
        return no(f"{name} is called .nmea but has no sentence with a checksum near its beginning")
    return no("no NMEA sentence near the beginning")


def _only(source: Source) -> str | None:
    names = source.names if len(source.names) == 1 else source.glob("*.nmea")
    return names[0] if len(names) == 1 else None


def read(source: Source) -> Recording:
    """Read a log; which clock it is on shows only in its content, so it is parsed at once (and cached)."""
    name = _only(source)
    if name is None:
        raise ParseError("expected one file of NMEA sentences", where=str(source.path))
    parts = cache.parsed_many(source, name, _PARSER, lambda buffer: _parts(buffer, name))
    if not any(part.table.num_rows for part in parts.values()):
        raise _nothing(name, next(iter(parts.values())))
    streams: list[Stream] = []
    for key, part in parts.items():
        clock, _, kind = key.partition("/")
        if part.table.num_rows:
            streams.append(_stream(kind, part, clock))
    return Recording(name=source.stem, streams=tuple(streams), format="nmea", source=source)


def _parts(buffer: Buffer, name: str) -> dict[str, Parsed]:
    log = read_log(buffer, name)
    return {f"{log.clock}/fix": log.fix, f"{log.clock}/velocity": log.velocity}


def _stream(kind: str, part: Parsed | Callable[[], Parsed], clock: str) -> Stream:
    if kind == "fix":
        return Stream("Gps/Fix", NavFix, part, clock=cast(Clock, clock), frame="gps")
    return Stream("Gps/Velocity", Twist, part, clock=cast(Clock, clock), frame="NED")


def _nothing(name: str, part: Parsed) -> ParseError:
    lost = [f"{loss.where}: {loss.reason}" for loss in part.losses[:3]]
    return ParseError(
        f"{name} holds no GGA or RMC sentence with a time",
        where=part.losses[0].where if part.losses else name,
        why="; ".join([*lost, *part.notes]) or "it holds no sentence at all",
        hint="the receiver must send GGA (positions) or RMC (velocities)",
    )


def stamped_stream(source: Source, file: str, kind: str) -> Stream:
    """Return one stream of a log with a Unix time before each sentence, not parsed before it is asked for.

    Parameters
    ----------
    source, file
        The log.
    kind : {"fix", "velocity"}
    """

    def build(buffer: Buffer) -> dict[str, Parsed]:
        log = read_log(buffer, file, stamped=True)
        return {"fix": log.fix, "velocity": log.velocity}

    return _stream(kind, lambda: cache.parsed_many(source, file, f"{_PARSER} stamped", build)[kind], "utc")


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
    """Return the positions and velocities (in NED) that an NMEA log can carry, the first of each."""
    fits = [s for s in recording if s.clock in ("utc", "device") and s.role in ("measurement", "derived")]
    fix = next((s for s in fits if s.type is NavFix), None)
    moving = [s for s in fits if s.type is Twist and s.frame == "NED"]
    return fix, next((s for s in moving if fix is None or s.clock == fix.clock), None)
