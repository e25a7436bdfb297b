"""A CDFF MessagePack log: one map from ports to their samples, indexed without building it."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from transect.base.arrays import Ints
from transect.base.file_bytes import Content
from transect.errors import ParseError
from transect.recording import Loss

from .cursor import Broken, Cursor, Cut, numbers_at

META = ".meta"
MAX_RATIO, FREE = 200, 1 << 25
"""A log larger than the second does not unpack to more than the first times its size."""
MAX_UNPACKED = 1 << 28
"""Bytes that a compressed log is unpacked to; they have to be held in memory."""
MAX_PORTS = 100_000
MAX_SAMPLES = 2_000_000
"""Samples of one port in one file."""
_PIECE = 1 << 16
_FLATTENED = re.compile(r"(/?[^.]*\.[^/]+)/(.+)")


@dataclass(frozen=True)
class Entry:
    """Where the value of a key is; not `whole` where the file ends, or cannot be read on, before its end."""

    start: int
    end: int
    whole: bool = True


@dataclass
class Port:
    """Where a port's samples are: in one list, or in one list per field (`--flatten`); and its times."""

    data: Entry | None = None
    meta: Entry | None = None
    fields: dict[str, Entry] = field(default_factory=dict[str, Entry])

    @property
    def has_samples(self) -> bool:
        """Whether there is anything but times."""
        return self.data is not None or bool(self.fields)


@dataclass(frozen=True)
class Meta:
    """Type and log times of a port; "" and None where the log has lost them."""

    type: str = ""
    ticks: Ints | None = None


def unpack(view: Content, file: str) -> tuple[Content, tuple[Loss, ...]]:
    """Return the MessagePack bytes of a log, be it `.msg` or `.msg.zz`."""
    if not file.lower().endswith(".zz"):
        return view, ()
    machine, content, reason = zlib.decompressobj(wbits=47), bytearray(), ""
    at = 0
    try:
        while at < len(view) and not machine.eof and len(content) <= MAX_UNPACKED:
            piece = view[at : at + _PIECE]
            content += machine.decompress(piece, MAX_UNPACKED + 1 - len(content))
            at += len(piece) - len(machine.unconsumed_tail)
            if len(content) > max(FREE, MAX_RATIO * at):
                why = f"{at} bytes unpack to more than {len(content)}, which no log's do"
                raise ParseError(f"{file} is refused", where=file, why=why)
    except zlib.error as error:
        reason = f"it cannot be decompressed: {error}"
    if len(content) > MAX_UNPACKED:
        reason = f"it unpacks to more than {MAX_UNPACKED} bytes"
    elif not reason and not machine.eof:
        reason = "the compressed data are cut off"
    losses = (Loss(file, reason, byte=at, count=0),) if reason else ()
    return memoryview(content)[:MAX_UNPACKED], losses


def entries_of(view: Content, file: str) -> tuple[list[tuple[Any, Entry]], list[Loss]]:
    """List the keys of the log's map and where their values are.

    Where the bytes end or cannot be read on, what comes before is listed; the value in which that happens is
    not `whole`, and what it lacks is reported when it is read.
    """
    cursor = Cursor(view)
    try:
        count = cursor.map_length()
    except (Cut, Broken) as error:
        why = str(error) or "it ends at once"
        raise ParseError(f"{file} is no MessagePack map", where=f"{file}@0", why=why) from error
    entries: list[tuple[Any, Entry]] = []
    for _ in range(min(count, MAX_PORTS)):
        at = cursor.at
        try:
            key = cursor.value()
            at = cursor.at
        except (Cut, Broken) as error:
            return entries, [
                Loss(file, f"{_reason(error)}: {count - len(entries)} keys missing", byte=at, count=0)
            ]
        try:
            cursor.skip()
        except (Cut, Broken) as error:
            entries.append((key, Entry(at, len(view), whole=False)))
            lost = count - len(entries)
            return entries, [Loss(file, f"{_reason(error)} in {key}", byte=at, count=0)] if lost else []
        entries.append((key, Entry(at, cursor.at)))
    if cursor.at < len(view):
        return entries, [Loss(file, f"{len(view) - cursor.at} bytes that belong to no port", byte=cursor.at)]
    return entries, []


def _reason(error: Exception) -> str:
    return "the file is cut off" if isinstance(error, Cut) else f"it cannot be read on ({error})"


def ports_of(entries: Sequence[tuple[Any, Entry]], file: str) -> tuple[dict[str, Port], list[Loss]]:
    """Sort the keys of a log by port: `/task.port`, `/task.port.meta`, `/task.port/field/sub`."""
    ports: dict[str, Port] = {}
    losses: list[Loss] = []
    texts = [(key, entry) for key, entry in entries if isinstance(key, str)]
    described = {key.removesuffix(META) for key, _ in texts if key.endswith(META)}
    for key, entry in texts:
        name, part = (key.removesuffix(META), META) if key.endswith(META) else _port_and_field(key, described)
        port = ports.setdefault(name, Port())
        known = {META: port.meta, "": port.data}.get(part, port.fields.get(part))
        if known is not None:
            losses.append(Loss(file, f"{key} is there twice: the first is kept", byte=entry.start))
        elif part == META:
            port.meta = entry
        elif part:
            port.fields[part] = entry
        else:
            port.data = entry
    for key, entry in entries:
        if not isinstance(key, str):
            losses.append(Loss(file, f"{key!r:.60} is no name of a port", byte=entry.start))
    return ports, losses


def _port_and_field(key: str, described: set[str]) -> tuple[str, str]:
    """Split the key of a flattened log; other keys are names of ports as they are."""
    head = key
    while head not in described and "/" in head:
        head = head.rpartition("/")[0]
    if head in described:
        return head, key[len(head) + 1 :].replace("/", ".")
    match = _FLATTENED.fullmatch(key)
    return (match[1], match[2].replace("/", ".")) if match else (key, "")


def meta_of(view: Content, entry: Entry | None, file: str) -> tuple[Meta, list[Loss]]:
    """Read type and times of a port, as far as they are there."""
    if entry is None:
        return Meta(), []
    kind, ticks, at = "", None, entry.start
    try:
        cursor = Cursor(view, at)
        for _ in range(cursor.map_length()):
            key = cursor.value()
            at = cursor.at
            if key == "timestamps":
                numbers, end, whole = numbers_at(view, at, MAX_SAMPLES)
                ticks, at = numbers.astype("int64"), end
                if not whole:
                    full = len(ticks) == MAX_SAMPLES
                    raise Broken(f"more than {MAX_SAMPLES} times") if full else Cut
                cursor = Cursor(view, end)
            elif key == "type":
                kind = str(cursor.value())
            else:
                cursor.skip()
    except (Cut, Broken) as error:
        return Meta(kind, ticks), [
            Loss(file, f"{_reason(error)}: times of a port are lost", byte=at, count=0)
        ]
    return Meta(kind, ticks), []
