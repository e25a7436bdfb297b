"""Reading packet files: one stream per APID, packets in the order of their clock."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa

from transect import robots
from transect.base.clocks import decimal_from_ns
from transect.recording import Parsed, Recording, Source, Stream, arrow, cache
from transect.recording.arrow import PAYLOAD
from transect.recording.source import Buffer

from ..ida.names import APIDS, parse_name
from . import OWN_SUFFIXES, SUFFIXES
from .headers import HEADERS, is_chain
from .packets import missing_before, order_of_packets, scan_packets


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
    def buffer(name: str) -> Buffer:
        return source.buffer(name)

    def load(row: Mapping[str, Any]) -> bytes:
        start = row["byte"] + HEADERS
        return bytes(buffer(row[PAYLOAD])[start : start + row["size"]])

    return load
