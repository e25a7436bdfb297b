"""CCSDS packet files of the InSight IDA, APIDs 84 to 89: headers, order and gaps; payloads stay bytes.

Each APID is a stream, sorted by SCLK over all files. Packets that a pass missed come in the file of a later
one: they are put in their place and marked `late`; `missing_before` counts the packets that never came.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa

from transect import robots
from transect.base.clocks import decimal_from_ns
from transect.base.files import refuse_existing, write_bytes
from transect.errors import UnsupportedError
from transect.recording import Parsed, Recording, Source, Stream, arrow, cache
from transect.recording.arrow import PAYLOAD
from transect.recording.source import Buffer

from .._base import Match, no
from ..ida.names import APIDS, new_name, parse_name
from .packets import (
    HEADERS,
    MAX_PAYLOAD,
    SEQUENCES,
    header_at,
    is_chain,
    missing_before,
    order_of_packets,
    packet,
    scan_packets,
)

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
    """Sort files by when they came down: the time tag of the name, else the name itself."""
    parsed = parse_name(name)
    return (parsed.time_tag if parsed else "", name)


def _tables(source: Source, name: str) -> Mapping[str, Parsed]:
    parse = functools.partial(scan_packets, file=name)
    return cache.parsed_many(source, name, f"ccsds.packets/1/{name}", parse)


def _of_apid(tables: Mapping[str, Mapping[str, Parsed]], apid: str) -> list[tuple[str, pa.Table]]:
    return [(name, found[apid].table) for name, found in tables.items() if apid in found]


def _stream(source: Source, apid: int, parts: Sequence[tuple[str, pa.Table]]) -> Stream:
    build = functools.partial(_ordered, f"Packets/{APIDS[apid]}", parts)
    return Stream(
        f"Packets/{APIDS[apid]}",
        bytes,
        build,
        clock="sclk",
        loader=_payload_loader(source),
        meta={"apid": apid},
    )


def _ordered(name: str, parts: Sequence[tuple[str, pa.Table]]) -> Parsed:
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
    def buffer(name: str) -> Buffer:
        return source.buffer(name)

    def load(row: Mapping[str, Any]) -> bytes:
        start = row["byte"] + HEADERS
        return bytes(buffer(row[PAYLOAD])[start : start + row["size"]])

    return load


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write packet files into a new folder, packets sorted by SCLK; return what could not be carried."""
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
    left = [s.name for s in recording if s not in streams.values()]
    return (f"{', '.join(left)}: no packets",) if left else ()


def _packets(apid: int, stream: Stream) -> list[tuple[str, int, bytes]]:
    """Return file name, time and bytes of each packet of a stream."""
    new = str(new_name(apid, "packets.ccsds", (int(stream.t_ns.min()), int(stream.t_ns.max()))))
    made: list[tuple[str, int, bytes]] = []
    for number, sample in enumerate(stream):
        row, payload = sample.row, bytes(sample.payload)
        if len(payload) > MAX_PAYLOAD:
            raise UnsupportedError(
                f"a payload of {len(payload)} bytes does not fit in a packet",
                where=f"{stream.name}@{sample.t_ns}",
            )
        given = str(row.get(PAYLOAD) or "")
        safe = given and not PurePosixPath(given).is_absolute() and ".." not in PurePosixPath(given).parts
        data = packet(
            apid,
            sample.t_ns,
            row.get("sequence", number % SEQUENCES),
            payload,
            flags=row.get("sequence_flags", 3),
            command=bool(row.get("command", False)),
        )
        made.append((given if safe else new, sample.t_ns, data))
    return made
