"""Reading NMEA logs."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from transect.base.clocks import Clock
from transect.errors import ParseError
from transect.recording import Parsed, Recording, Source, Stream, cache
from transect.recording.source import Buffer
from transect.types import NavFix, Twist

from . import only_log
from .tables import read_log

_PARSER = "nmea/1"


def read(source: Source) -> Recording:
    """Read a log; which clock it is on shows only in its content, so it is parsed at once (and cached)."""
    name = only_log(source)
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
