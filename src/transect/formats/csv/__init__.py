"""CSV: a table of poses or positions with a header opens by itself; other tables by a recording.yaml.

Written is one file per stream, units in the header, with a recording.yaml by which the folder opens again.
Lists are written as numbers separated by blanks. Images and clouds lie in a folder per stream.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from transect.errors import UnsupportedError

from .._base import Match, no

if TYPE_CHECKING:
    from pathlib import Path

    from transect.recording import Recording, Source

_POSES = (
    ({"x", "y"}, "a table of positions: it has x and y"),
    ({"tx", "ty"}, "a table of positions: it has tx and ty"),
    ({"px", "py"}, "a table of positions: it has px and py"),
    ({"posx", "posy"}, "a table of positions: it has pos_x and pos_y"),
    ({"positionx", "positiony"}, "a table of positions: it has position x and y"),
    ({"easting", "northing"}, "a table of positions: it has easting and northing"),
    ({"lat", "lon"}, "a table of satellite fixes: it has lat and lon"),
    ({"latitude", "longitude"}, "a table of satellite fixes: it has latitude and longitude"),
)
_UNIT = re.compile(r"[\[(][^\])]*[\])]|_(?:m|deg|rad|s|ms|us|ns)$")


def recognises(source: Source) -> Match:
    """Recognise one file with a header that names positions and a time; leave others to a recording.yaml."""
    if len(source.names) != 1 or not source.names[0].lower().endswith((".csv", ".tsv")):
        return no("CSV files are opened by the recording.yaml beside them")
    header = source.head(source.names[0]).partition(b"\n")[0].decode("utf-8-sig", "replace")
    titles = re.split(r"[,;\t|]", header.lstrip("#% ").strip())
    names = {re.sub(r"[^a-z]", "", _UNIT.sub("", title.strip().lower())) for title in titles}
    if not any("time" in name or "stamp" in name or name in ("t", "sec", "millis") for name in names):
        return no("it is a CSV file but its header names no time: a recording.yaml can describe it")
    attitudes = sum(name.endswith(("qx", "qw", "orientationx", "orientationw")) for name in names) == 2
    for wanted, reason in _POSES:
        if wanted <= names:
            # A header that names a quaternion knows better than a TUM file, in which only the order counts.
            return Match(0.86 if attitudes else 0.4, reason)
    return no("it is a CSV file but its header names no positions: a recording.yaml can describe it")


def read(source: Source) -> Recording:
    """Read a table of positions by guessing what its columns are; its notes say what was guessed."""
    if not (match := recognises(source)):
        raise UnsupportedError(
            "a CSV file alone does not say what its columns are",
            where=str(source.path),
            why=match.reason,
            hint=f"transect new recording {source.path.parent}  writes a recording.yaml that does",
        )
    from ..described.guess import guess
    from ..described.model import parse
    from ..described.reading import recording_of

    text, said = guess(source)
    recording = recording_of(source, parse(text, f"the guess for {source.names[0]}"), source.names[0])
    keep = f"guessed; transect new recording {source.path.parent} writes it down to be changed"
    return recording.replace(format="csv", notes=(*said, keep))


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write one CSV file per stream, and a recording.yaml; return what could not be carried."""
    from . import writing

    return writing.write(recording, path)
