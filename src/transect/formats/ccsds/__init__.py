"""CCSDS packet files of the InSight IDA, APIDs 84 to 89: headers, order and gaps; payloads stay bytes.

Each APID is a stream, sorted by SCLK over all files. Packets that a pass missed come in the file of a later
one: they are put in their place and marked `late`; `missing_before` counts the packets that never came.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from .._base import Match, no
from .headers import header_at, is_chain

if TYPE_CHECKING:
    from pathlib import Path

    from transect.recording import Recording, Source

SUFFIXES = ("", ".ccsds", ".pkt", ".pkts", ".tlm", ".dat", ".bin", ".raw")
OWN_SUFFIXES = (".ccsds", ".pkt", ".pkts")
MOST_LOOKED_INTO = 20


def recognises(source: Source) -> Match:
    """Tell by two packet headers in a row, or one packet that is the whole file."""
    names = [name for name in source.names if PurePosixPath(name).suffix.lower() in SUFFIXES]
    if not names:
        return no("no file has a suffix that packet files have (.ccsds, .pkt, .dat, .bin, ...)")
    for name in names[:MOST_LOOKED_INTO]:
        head = source.head(name)
        if is_chain(head, 0, source.size(name)):
            return Match(0.9, f"{name} begins with space packets of APID 84 to 89")
        if header_at(head, 0) and name.lower().endswith(OWN_SUFFIXES):
            return Match(0.7, f"{name} begins with a header of APID 84 to 89")
    return no("no file begins with a space packet of APID 84 to 89 that another follows")


def read(source: Source) -> Recording:
    """Read packet files: the headers of all packets, and no payload."""
    from . import reading

    return reading.read(source)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write packet files into a new folder, packets sorted by SCLK; return what could not be carried."""
    from . import writing

    return writing.write(recording, path)
