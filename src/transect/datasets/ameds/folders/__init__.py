"""ARCHES Mount Etna Dataset (AMEDS): traverses of ESA's rover Interact, a folder or zip of CSV, JPEG and PCD.

All files of Table 7 are supported; films need PyAV. AMEDS does not define exact headers: columns are matched
by meaning, see `columns` and `plan`. Degrees per second are converted to rad/s, gauss to tesla.
The time of a sample is that of the middleware, in the first column. GnssPose also has the stamp of the
device, which is then the time of the sample, and the first column its log time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.formats.shared.interface import Match, no

from .files import find, has_unix_time

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

    from transect.recording import Recording, Source


def recognises(source: Source) -> Match:
    """Recognise files that are called as in Table 7."""
    found = find(source)
    first = found.first
    if first is None:
        return no("no GnssPose.csv, MainCam_<unix seconds>.jpg or any other file of AMEDS Table 7")
    if len(found) == 1 and found.tables and not has_unix_time(source, first):
        return no(f"it has {first} but no unix time in its first column")
    # A top folder in a zip matches better itself, as its name is that of the recording.
    penalty = 0.05 if "/" in first else 0.0
    confidence = 0.95 if len(found) > 1 else 0.9 if found.tables else 0.6
    return Match(
        confidence - penalty, f"{len(found)} of the kinds of files in AMEDS Table 7, {first} among them"
    )


def read(source: Source, *, columns: Mapping[str, Any] | None = None) -> Recording:
    """Read a recording.

    Parameters
    ----------
    columns : mapping, optional
        Unknown headers, as in `ameds_columns.yaml`: ``{"GnssPose": {"lat": "Breite"}}``.
    """
    from . import reading

    return reading.read(source, columns=columns)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write a recording as the files of Table 7 to a new folder; return sentences about losses."""
    from .writing import write_folder

    return write_folder(recording, path)
