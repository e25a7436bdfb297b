"""Headers of CCSDS space packets, and where packets of the IDA begin: the standard library only."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..ida.names import APIDS

if TYPE_CHECKING:
    from transect.recording.source import Buffer

PRIMARY = struct.Struct(">HHH")
TIME = struct.Struct(">IH")
HEADERS = PRIMARY.size + TIME.size


@dataclass(frozen=True)
class Header:
    """The primary header of a packet that begins at byte `at`.

    Attributes
    ----------
    command : bool
        Telecommand rather than telemetry.
    timed : bool
        Whether a secondary header follows.
    flags : int
        0 continuation, 1 first, 2 last segment, 3 unsegmented.
    sequence : int
        Sequence count, 0 to 16383.
    size : int
        Bytes of the whole packet.
    """

    at: int
    apid: int
    command: bool
    timed: bool
    flags: int
    sequence: int
    size: int

    @property
    def end(self) -> int:
        """First byte after the packet."""
        return self.at + self.size


def header_at(data: Buffer, at: int) -> Header | None:
    """Return the header at a byte, or None if no packet of the IDA can begin there."""
    if at + PRIMARY.size > len(data):
        return None
    first, second, length = PRIMARY.unpack(data[at : at + PRIMARY.size])
    header = Header(
        at=at,
        apid=first & 0x7FF,
        command=bool(first & 0x1000),
        timed=bool(first & 0x0800),
        flags=second >> 14,
        sequence=second & 0x3FFF,
        size=PRIMARY.size + length + 1,
    )
    plausible = first >> 13 == 0 and header.apid in APIDS
    return header if plausible and (not header.timed or header.size >= HEADERS) else None


def is_chain(data: Buffer, at: int, size: int) -> bool:
    """Tell whether a packet begins at a byte and ends where another begins, or after all `size` bytes."""
    header = header_at(data, at)
    return header is not None and (header.end == size or header_at(data, header.end) is not None)
