"""CSV: a table of poses or positions with a header opens by itself; other tables by a recording.yaml.

Written is one file per stream, units in the header, with a recording.yaml by which the folder opens again.
Lists are written as numbers separated by blanks. Images and clouds lie in a folder per stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.units import is_unit
from transect.errors import UnsupportedError

from ..described.names import ROS_STAMP, ROS_TIME, is_time_name, meaning_of, split_titles, split_unit
from ..shared.interface import Match, no

if TYPE_CHECKING:
    from pathlib import Path

    from transect.recording import Recording, Source


def recognises(source: Source) -> Match:
    """Recognise one file with a header that names positions and a time; leave others to a recording.yaml."""
    if len(source.names) != 1 or not source.names[0].lower().endswith((".csv", ".tsv", ".txt")):
        return no("CSV files are opened by the recording.yaml beside them")
    header = source.head(source.names[0]).partition(b"\n")[0].decode("utf-8-sig", "replace")
    titles = split_titles(header.lstrip("#% "))
    if not any(map(is_time_name, titles)):
        return no("it is a CSV file but its header names no time: a recording.yaml can describe it")
    if ROS_STAMP in titles or (header.startswith(f"%{ROS_TIME},") and "field." in header):
        return Match(0.6, "messages of ROS, as rostopic echo -p prints them")
    names = set(map(_meaning, titles))
    found = next((pair for pair in (("lat", "lon"), ("x", "y")) if set(pair) <= names), None)
    if found is None:
        return no("it is a CSV file but its header names no positions: a recording.yaml can describe it")
    # A header that names a quaternion knows better than a TUM file, in which only the order counts.
    return Match(0.86 if {"qx", "qw"} <= names else 0.4, f"a table of positions with {' and '.join(found)}")


def _meaning(title: str) -> str:
    """Return what a title means, with or without a unit behind an underscore: `q_w`, `altitude_m`."""
    name = split_unit(title)[0]
    base, _, last = name.rpartition("_")
    return meaning_of(name) or (meaning_of(base) if is_unit(last) else "")


def read(source: Source) -> Recording:
    """Read a table of positions by guessing what its columns are; its notes say what was guessed."""
    if not (match := recognises(source)):
        raise UnsupportedError(
            "a CSV file alone does not say what its columns are",
            where=str(source.path),
            why=match.reason,
            hint=f"transect new recording {source.path}  writes a recording.yaml that does",
        )
    from ..described.guess import guess
    from ..described.model import parse
    from ..described.reading import recording_of

    text, said = guess(source)
    recording = recording_of(source, parse(text, f"the guess for {source.names[0]}"), source.names[0])
    keep = f"guessed; transect new recording {source.path} writes it down to be changed"
    return recording.replace(format="csv", notes=(*said, keep))


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write one CSV file per stream, and a recording.yaml; return what could not be carried."""
    from . import writing

    return writing.write(recording, path)
