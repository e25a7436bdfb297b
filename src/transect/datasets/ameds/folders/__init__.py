"""ARCHES Mount Etna Dataset (AMEDS): traverses of ESA's rover Interact, a folder or zip of CSV, JPEG and PCD.

Every file of document 000, Table 7; its films need PyAV, see `films`. Exact headers are not in the document:
columns are matched by meaning, see `columns` and `plan`. At this border degrees per second become rad/s,
and gauss tesla.
The time of a sample is that of its first column, the middleware's. Only GnssPose has the device's own stamp
beside it: that is then the sample's time, and the first column its log time.
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
    # A zip with a top folder is better seen from that folder, whose name is the recording's.
    deeper = 0.05 if "/" in first else 0.0
    sure = 0.95 if len(found) > 1 else 0.9 if found.tables else 0.6
    return Match(sure - deeper, f"{len(found)} of the kinds of files in AMEDS Table 7, {first} among them")


def read(source: Source, *, columns: Mapping[str, Any] | None = None) -> Recording:
    """Read a recording.

    Parameters
    ----------
    columns : mapping, optional
        Headers that are not known, as in `ameds_columns.yaml`: ``{"GnssPose": {"lat": "Breite"}}``.
    """
    from . import reading

    return reading.read(source, columns=columns)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write a recording as the files of Table 7 to a new folder; return what they cannot carry."""
    from .writing import write_folder

    return write_folder(recording, path)
