"""Rock log (pocolog, POCOSIM version 2): typed streams of Rock components, `<task>.<n>.log`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.formats.shared.interface import Match, no

from ..rock import log_files

if TYPE_CHECKING:
    from pathlib import Path

    from transect.recording import Recording, Source

MAGIC = b"POCOSIM"
SUFFIX = ".log"


def recognises(source: Source) -> Match:
    """Recognise files that begin with POCOSIM."""
    if len(source.names) == 1:
        good = source.head(source.names[0], 8).startswith(MAGIC)
        return Match(0.99, "it begins with POCOSIM") if good else no("it does not begin with POCOSIM")
    files = log_files(source, SUFFIX)
    good = next((f for f in files[:3] if source.head(f, 8).startswith(MAGIC)), None)
    if good is not None:
        return Match(0.9, f"{good} begins with POCOSIM")
    return no(f"{files[0]} is a .log but does not begin with POCOSIM" if files else "no file is named .log")


def read(source: Source) -> Recording:
    """Read a log file, or a folder of them; parts of one log are joined in order.

    `t_ns` is the time of a sample, or the logical time of its block if it has none; `log_ns` is real time.
    """
    from . import reading

    return reading.read(source)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write all streams as one log; a path without suffix gets `.0.log`.

    Real time is log time, logical time is sample time; both are microseconds.
    """
    from . import writing

    return writing.write(recording, path)
