"""Reading CCSDS space packets: primary header, a secondary header with the spacecraft clock, payload.

The IDA's payload layout is not public, so payloads stay bytes. The secondary header is the time alone:
SIS 3.3.1 gives the SCLK as whole seconds and 1/65536 ticks, the CCSDS unsegmented time code of 4 + 2 bytes.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa

from transect import robots
from transect.base.arrays import Ints
from transect.base.clocks import NS, decimal_from_ns
from transect.base.file_bytes import Content
from transect.base.files import refuse_existing, write_bytes
from transect.datasets.insight.products.names import APIDS, TICKS_PER_SECOND, new_name, parse_name
from transect.errors import UnsupportedError
from transect.recording import Loss, Parsed, Recording, Source, Stream, arrow, cache
from transect.recording.arrow import PAYLOAD
from transect.recording.source import Buffer

from . import HEADERS_SIZE, OWN_SUFFIXES, PRIMARY, SUFFIXES, TIME, PacketHeader, header_at, is_chain

SEQUENCE_MODULUS = 16384
MAX_PAYLOAD_BYTES = 65536 - TIME.size
_START = re.compile(rb"[\x00\x08\x10\x18][\x54-\x59]")
"""First two bytes of a packet of APID 84 to 89: version 0, any type, with or without secondary header."""


def find_packets(data: Buffer, file: str, losses: list[Loss]) -> Iterator[PacketHeader]:
    """Yield the packets of a file; other bytes are added to `losses`."""
    at, size = 0, len(data)
    while at < size:
        header = header_at(data, at)
        if header is None:
            nearest = _next_chain(data, at + 1, size)
            losses.append(Loss(file, "no packet begins here", byte=at, count=0))
            at = nearest
        elif (resync := _find_after_wrong_length(data, header, size)) is not None:
            losses.append(Loss(file, "the packet is cut off or its length is wrong", byte=at))
            at = resync
        else:
            yield header
            at = header.end


def _next_chain(data: Buffer, at: int, end: int) -> int:
    """Return the start of the next packet that is followed by another, or `end`."""
    for match in _START.finditer(data, at, end):
        if is_chain(data, match.start(), len(data)):
            return match.start()
    return end


def _find_after_wrong_length(data: Buffer, header: PacketHeader, size: int) -> int | None:
    """Return the next packet if the length of this one is wrong, None if it can be right.

    If no packet follows, the length is wrong if the next packet of the sequence is found inside it; otherwise
    the next header is damaged.
    """
    if header.end == size or (header.end < size and header_at(data, header.end)):
        return None
    at = header.at + PRIMARY.size
    while (at := _next_chain(data, at, min(header.end, size))) < min(header.end, size):
        found = header_at(data, at)
        if found and found.apid == header.apid and found.sequence == (header.sequence + 1) % SEQUENCE_MODULUS:
            return at
        at += 1
    return None if header.end < size else size


def scan_packets(data: Buffer, file: str) -> dict[str, Parsed]:
    """Return a table of the packets of each APID in a file, in the order of the file.

    Returns
    -------
    dict of str to Parsed
        By APID. Columns `byte` (offset of the packet), `size` (bytes of payload), `sequence`,
        `sequence_flags` and `command`; `t_ns` is the SCLK.
    """
    losses: list[Loss] = []
    rows: dict[int, list[tuple[int, ...]]] = {}
    for header in find_packets(data, file, losses):
        if not header.timed:
            losses.append(Loss(file, "a packet without secondary header has no time", byte=header.at))
            continue
        seconds, ticks = TIME.unpack(data[header.at + PRIMARY.size : header.at + HEADERS_SIZE])
        described = (header.at, header.size - HEADERS_SIZE, header.sequence, header.flags, header.command)
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
    ticks = (fraction * TICKS_PER_SECOND + NS // 2) // NS
    return seconds + ticks // TICKS_PER_SECOND, ticks % TICKS_PER_SECOND


def packet(
    apid: int, t_ns: int, sequence: int, payload: bytes, flags: int = 3, command: bool = False
) -> bytes:
    """Return a packet with its headers."""
    first = (int(command) << 12) | 0x0800 | apid
    length = TIME.size + len(payload) - 1
    head = PRIMARY.pack(first, (flags << 14) | sequence % SEQUENCE_MODULUS, length)
    return head + TIME.pack(*sclk_from_ns(t_ns)) + payload


def order_of_packets(t_ns: Ints, sequence: Ints) -> Ints:
    """Return the indices that sort packets by SCLK, those of equal SCLK by sequence count, wrapped or not."""
    by_time = np.argsort(t_ns, kind="stable")
    times = t_ns[by_time]
    first = np.searchsorted(times, times)
    ahead = (sequence[by_time] - sequence[by_time][first] + SEQUENCE_MODULUS // 2) % SEQUENCE_MODULUS
    return by_time[np.lexsort((ahead, times))]


def missing_before(sequence: Ints) -> Ints:
    """Return the number of missing packets before each sorted one: 0 for a repeated or restarted count."""
    jumps = np.diff(sequence, prepend=sequence[:1] - 1 if len(sequence) else 0) - 1
    jumps %= SEQUENCE_MODULUS
    return np.where(jumps < SEQUENCE_MODULUS // 2, jumps, 0)


def read(source: Source) -> Recording:
    """Read packet files: the headers of all packets, and no payload."""
    files = [name for name in source.names if _is_packets(source, name)]
    tables = {name: _tables(source, name) for name in sorted(files, key=_arrival)}
    apids = sorted({apid for found in tables.values() for apid in found if apid})
    losses = dict.fromkeys(
        loss for found in tables.values() for part in found.values() for loss in part.losses
    )
    others = len(source.names) - len(files)
    return Recording(
        name=source.stem,
        streams=tuple(_stream(source, int(apid), _of_apid(tables, apid)) for apid in apids),
        robot=robots.load("ida"),
        format="ccsds",
        source=source,
        notes=(f"{others} files hold no packets of the IDA",) if others else (),
        reader_losses=tuple(losses),
    )


def _is_packets(source: Source, name: str) -> bool:
    if len(source.names) == 1 or name.lower().endswith(OWN_SUFFIXES):
        return True
    suffix = PurePosixPath(name).suffix.lower()
    return suffix in SUFFIXES and is_chain(source.head(name), 0, source.size(name))


def _arrival(name: str) -> tuple[str, str]:
    """Sort key of files by time of downlink: the time tag of the name, else the name."""
    parsed = parse_name(name)
    return (parsed.time_tag if parsed else "", name)


def _tables(source: Source, name: str) -> Mapping[str, Parsed]:
    parse = functools.partial(scan_packets, file=name)
    return cache.parse_many(source, name, f"ccsds.packets/1/{name}", parse, text=False)


def _of_apid(tables: Mapping[str, Mapping[str, Parsed]], apid: str) -> list[tuple[str, pa.Table]]:
    return [(name, found[apid].table) for name, found in tables.items() if apid in found]


def _stream(source: Source, apid: int, parts: Sequence[tuple[str, pa.Table]]) -> Stream:
    build = functools.partial(_order, f"Packets/{APIDS[apid]}", parts)
    return Stream(
        f"Packets/{APIDS[apid]}",
        bytes,
        build,
        clock="sclk",
        loader=_payload_loader(source),
        meta={"apid": apid},
    )


def _order(name: str, parts: Sequence[tuple[str, pa.Table]]) -> Parsed:
    """Sort the packets of all files by SCLK; mark the late ones and count the missing."""
    named = [table.append_column(PAYLOAD, arrow.strings([file] * table.num_rows)) for file, table in parts]
    arrived = pa.concat_tables(named)
    t_ns, sequence = arrow.numbers(arrived, "t_ns"), arrow.numbers(arrived, "sequence")
    late = t_ns < np.maximum.accumulate(t_ns)
    order = order_of_packets(t_ns, sequence)
    missing = missing_before(sequence[order])
    table = arrived.append_column("late", arrow.from_numpy(late)).take(arrow.from_numpy(order))
    table = table.append_column("missing_before", arrow.from_numpy(missing))
    return Parsed(table, (), tuple(_notes(name, t_ns[order], missing, int(late.sum()))))


def _notes(name: str, t_ns: Any, missing: Any, late: int) -> list[str]:
    notes = [f"{name}: {late} packets came late and were put in their place"] if late else []
    gaps = np.flatnonzero(missing)
    if len(gaps):
        where = decimal_from_ns(int(t_ns[gaps[0]]), 3)
        notes.append(
            f"{name}: {missing.sum()} packets are missing in {len(gaps)} gaps, the first before {where}"
        )
    return notes


def _payload_loader(source: Source) -> Callable[[Mapping[str, Any]], bytes]:
    @functools.lru_cache(maxsize=4)
    def content(name: str) -> Content:
        return source.content(name)

    def load(row: Mapping[str, Any]) -> bytes:
        start = row["byte"] + HEADERS_SIZE
        return bytes(content(row[PAYLOAD])[start : start + row["size"]])

    return load


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write a new folder of packet files sorted by SCLK; return a sentence for each lost content."""
    path = Path(path)
    refuse_existing(path, hint="name a new folder")
    codes = {f"Packets/{name}": apid for apid, name in APIDS.items()}
    streams = {codes[s.name]: s for s in recording if s.name in codes and s.loader and len(s)}
    if not streams:
        raise UnsupportedError(
            f"{recording.name} has no packets", hint=f"its streams are {', '.join(sorted(codes))}"
        )
    files: dict[str, list[tuple[int, bytes]]] = {}
    for apid, stream in streams.items():
        for name, t_ns, data in _packets(apid, stream):
            files.setdefault(name, []).append((t_ns, data))
    for name, packets in files.items():
        packets.sort(key=lambda item: item[0])
        write_bytes(path / name, b"".join(data for _, data in packets))
    unwritten = [s.name for s in recording if s not in streams.values()]
    return (f"{', '.join(unwritten)}: no packets",) if unwritten else ()


def _packets(apid: int, stream: Stream) -> list[tuple[str, int, bytes]]:
    """Return file name, time and bytes of each packet of a stream."""
    new = str(new_name(apid, "packets.ccsds", (int(stream.t_ns.min()), int(stream.t_ns.max()))))
    made: list[tuple[str, int, bytes]] = []
    for number, sample in enumerate(stream):
        row, payload = sample.row, bytes(sample.payload)
        if len(payload) > MAX_PAYLOAD_BYTES:
            raise UnsupportedError(
                f"a payload of {len(payload)} bytes does not fit in a packet",
                where=f"{stream.name}@{sample.t_ns}",
            )
        given = str(row.get(PAYLOAD) or "")
        safe = given and not PurePosixPath(given).is_absolute() and ".." not in PurePosixPath(given).parts
        data = packet(
            apid,
            sample.t_ns,
            row.get("sequence", number % SEQUENCE_MODULUS),
            payload,
            flags=row.get("sequence_flags", 3),
            command=bool(row.get("command", False)),
        )
        made.append((given if safe else new, sample.t_ns, data))
    return made
