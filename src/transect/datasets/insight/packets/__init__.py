"""CCSDS packet files of the InSight IDA, APIDs 84 to 89: headers, order and gaps; payloads stay bytes.

Each APID is a stream, sorted by SCLK over all files. Packets that were missed in a pass are in the
file of a later one: they are sorted in and marked `late`; `missing_before` counts the packets that are lost.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from transect.datasets.insight.products.names import APIDS
from transect.formats.shared.interface import Match, no

if TYPE_CHECKING:
    from pathlib import Path

    from transect.recording import Recording, Source
    from transect.recording.source import Buffer

SUFFIXES = ("", ".ccsds", ".pkt", ".pkts", ".tlm", ".dat", ".bin", ".raw")
OWN_SUFFIXES = (".ccsds", ".pkt", ".pkts")
MAX_PROBED_FILES = 20
PRIMARY = struct.Struct(">HHH")
TIME = struct.Struct(">IH")
HEADERS_SIZE = PRIMARY.size + TIME.size


@dataclass(frozen=True)
class PacketHeader:
    """The primary header of a packet at byte `at`."""

    at: int
    apid: int
    command: bool  # telecommand rather than telemetry
    timed: bool  # whether a secondary header follows
    flags: int  # 0 continuation, 1 first, 2 last segment, 3 unsegmented
    sequence: int  # sequence count, 0 to 16383
    size: int  # bytes of the whole packet

    @property
    def end(self) -> int:
        """First byte after the packet."""
        return self.at + self.size


def header_at(data: Buffer, at: int) -> PacketHeader | None:
    """Return the header at a byte, or None if it is not a packet of the IDA."""
    if at + PRIMARY.size > len(data):
        return None
    first, second, length = PRIMARY.unpack(data[at : at + PRIMARY.size])
    header = PacketHeader(
        at=at,
        apid=first & 0x7FF,
        command=bool(first & 0x1000),
        timed=bool(first & 0x0800),
        flags=second >> 14,
        sequence=second & 0x3FFF,
        size=PRIMARY.size + length + 1,
    )
    plausible = first >> 13 == 0 and header.apid in APIDS
    return header if plausible and (not header.timed or header.size >= HEADERS_SIZE) else None


def is_chain(data: Buffer, at: int, size: int) -> bool:
    """Whether a packet starts at a byte and is followed by another, or by the end after `size` bytes."""
    header = header_at(data, at)
    return header is not None and (header.end == size or header_at(data, header.end) is not None)


def recognises(source: Source) -> Match:
    """Recognise two consecutive packet headers, or one packet that is the whole file."""
    names = [name for name in source.names if PurePosixPath(name).suffix.lower() in SUFFIXES]
    if not names:
        return no("no file has a suffix that packet files have (.ccsds, .pkt, .dat, .bin, ...)")
    for name in names[:MAX_PROBED_FILES]:
        head = source.head(name)
        if is_chain(head, 0, source.size(name)):
            return Match(0.9, f"{name} begins with space packets of APID 84 to 89")
        if header_at(head, 0) and name.lower().endswith(OWN_SUFFIXES):
            return Match(0.7, f"{name} begins with a header of APID 84 to 89")
    return no("no file begins with a space packet of APID 84 to 89 that another follows")


def read(source: Source) -> Recording:
    """Read packet files: the headers of all packets, and no payload."""
    from . import packet_files

    return packet_files.read(source)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write a new folder of packet files sorted by SCLK; return a sentence for each lost content."""
    from . import packet_files

    return packet_files.write(recording, path)
