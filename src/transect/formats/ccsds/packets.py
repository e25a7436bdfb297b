"""CCSDS space packets: primary header, a secondary header with the spacecraft clock, payload.

The IDA's payload layout is not public, so payloads stay bytes. The secondary header is the time alone:
SIS 3.3.1 gives the SCLK as whole seconds and 1/65536 ticks, the CCSDS unsegmented time code of 4 + 2 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from transect.base.arrays import Ints
from transect.base.clocks import NS
from transect.recording import Loss, Parsed, arrow
from transect.recording.source import Buffer

from .headers import HEADERS, PRIMARY, TIME, Header, header_at, is_chain

TICKS = 65536
"""Ticks of the clock per second."""
SEQUENCES = 16384
"""Sequence counts before they begin again."""
MAX_PAYLOAD = 65536 - TIME.size
_START = re.compile(rb"[\x00\x08\x10\x18][\x54-\x59]")
"""First two bytes of a packet of APID 84 to 89: version 0, any type, with or without secondary header."""


def find_packets(data: Buffer, file: str, losses: list[Loss]) -> Iterator[Header]:
    """Yield the packets of a file; bytes that belong to none are entered in `losses`."""
    at, size = 0, len(data)
    while at < size:
        header = header_at(data, at)
        if header is None:
            nearest = _next_chain(data, at + 1, size)
            losses.append(Loss(file, "no packet begins here", byte=at, count=0))
            at = nearest
        elif (lied := _length_lies(data, header, size)) is not None:
            losses.append(Loss(file, "the packet is cut off or its length is wrong", byte=at))
            at = lied
        else:
            yield header
            at = header.end


def _next_chain(data: Buffer, at: int, end: int) -> int:
    """Return where the next packet begins that another follows, `end` if there is none."""
    for match in _START.finditer(data, at, end):
        if is_chain(data, match.start(), len(data)):
            return match.start()
    return end


def _length_lies(data: Buffer, header: Header, size: int) -> int | None:
    """Return where to go on if a packet's length cannot be right, None if it can.

    Where no packet follows, the length is wrong if the packet's successor is found inside it; else it is the
    next header that is damaged.
    """
    if header.end == size or (header.end < size and header_at(data, header.end)):
        return None
    at = header.at + PRIMARY.size
    while (at := _next_chain(data, at, min(header.end, size))) < min(header.end, size):
        found = header_at(data, at)
        if found and found.apid == header.apid and found.sequence == (header.sequence + 1) % SEQUENCES:
            return at
        at += 1
    return None if header.end < size else size


def scan_packets(data: Buffer, file: str) -> dict[str, Parsed]:
    """Return a table of the packets of each APID in a file, in the order in which they stand.

    Returns
    -------
    dict of str to Parsed
        By APID. Columns `byte` (where the packet begins), `size` (bytes of payload), `sequence`,
        `sequence_flags` and `command`; `t_ns` is the SCLK.
    """
    losses: list[Loss] = []
    rows: dict[int, list[tuple[int, ...]]] = {}
    for header in find_packets(data, file, losses):
        if not header.timed:
            losses.append(Loss(file, "a packet without secondary header has no time", byte=header.at))
            continue
        seconds, ticks = TIME.unpack(data[header.at + PRIMARY.size : header.at + HEADERS])
        described = (header.at, header.size - HEADERS, header.sequence, header.flags, header.command)
        rows.setdefault(header.apid, []).append((ns_from_sclk(seconds, ticks), *described))
    found = tuple(losses)
    return {str(apid): Parsed(_table(rows[apid]), found) for apid in sorted(rows)} or {
        "": Parsed(arrow.empty(), found)
    }


def _table(rows: list[tuple[int, ...]]) -> pa.Table:
    t_ns, at, size, sequence, flags, command = np.array(rows, dtype=np.int64).T
    columns = {
        "byte": at,
        "size": size,
        "sequence": sequence,
        "sequence_flags": flags,
        "command": command != 0,
    }
    return arrow.table(t_ns, columns, units={"byte": "byte", "size": "byte"})


def ns_from_sclk(seconds: int, ticks: int) -> int:
    """Return an SCLK of seconds and 1/65536 ticks in nanoseconds, truncated."""
    return seconds * NS + (ticks * NS >> 16)


def sclk_from_ns(t_ns: int) -> tuple[int, int]:
    """Return nanoseconds as seconds and the nearest of 65536 ticks; undoes `ns_from_sclk` exactly."""
    seconds, fraction = divmod(t_ns, NS)
    ticks = (fraction * TICKS + NS // 2) // NS
    return seconds + ticks // TICKS, ticks % TICKS


def packet(
    apid: int, t_ns: int, sequence: int, payload: bytes, flags: int = 3, command: bool = False
) -> bytes:
    """Return a packet with its headers."""
    first = (int(command) << 12) | 0x0800 | apid
    length = TIME.size + len(payload) - 1
    head = PRIMARY.pack(first, (flags << 14) | sequence % SEQUENCES, length)
    return head + TIME.pack(*sclk_from_ns(t_ns)) + payload


def order_of_packets(t_ns: Ints, sequence: Ints) -> Ints:
    """Return the indices that sort packets by SCLK, those of equal SCLK by sequence count, wrapped or not."""
    by_time = np.argsort(t_ns, kind="stable")
    times = t_ns[by_time]
    first = np.searchsorted(times, times)
    ahead = (sequence[by_time] - sequence[by_time][first] + SEQUENCES // 2) % SEQUENCES
    return by_time[np.lexsort((ahead, times))]


def missing_before(sequence: Ints) -> Ints:
    """Return how many packets lack before each of some in order: 0 for a repeated or restarted count."""
    jumps = np.diff(sequence, prepend=sequence[:1] - 1 if len(sequence) else 0) - 1
    jumps %= SEQUENCES
    return np.where(jumps < SEQUENCES // 2, jumps, 0)
