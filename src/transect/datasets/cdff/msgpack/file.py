"""Index of a CDFF MessagePack log: one map from ports to their samples."""

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

from .cursor import InvalidValue, MessagePackCursor, TruncatedValue, decode_numbers

META = ".meta"


@dataclass(frozen=True)
class LogLimits:
    """Limits of a log, against damaged and malicious files."""

    ports: int = 100_000
    samples: int = 2_000_000  # of one port in one file
    unpacked_bytes: int = 1 << 28  # of a compressed log; held in memory
    # compression ratio above which a file is refused, once it unpacks to more than `ratio_free_bytes`
    ratio: int = 200
    ratio_free_bytes: int = 1 << 25
    read_bytes: int = 1 << 16  # compressed bytes per read


LIMITS = LogLimits()
_FLATTENED = re.compile(r"(/?[^.]*\.[^/]+)/(.+)")


@dataclass(frozen=True)
class MapEntry:
    """Byte range of the value of a key; not `whole` if the file is truncated or damaged before its end."""

    start: int
    end: int
    whole: bool = True


@dataclass
class PortEntries:
    """Entries of a port: its samples in one list, or in one list per field (`--flatten`), and its times."""

    data: MapEntry | None = None
    meta: MapEntry | None = None
    fields: dict[str, MapEntry] = field(default_factory=dict[str, MapEntry])

    @property
    def has_samples(self) -> bool:
        """Whether it has samples, not only times."""
        return self.data is not None or bool(self.fields)


@dataclass(frozen=True)
class PortMeta:
    """Type and log times of a port; "" and None if missing in the log."""

    type: str = ""
    ticks: Ints | None = None


def unpack(view: Content, file: str) -> tuple[Content, tuple[Loss, ...]]:
    """Return the MessagePack bytes of a log, `.msg` or compressed `.msg.zz`."""
    if not file.lower().endswith(".zz"):
        return view, ()
    machine, content, reason = zlib.decompressobj(wbits=47), bytearray(), ""
    at = 0
    try:
        while at < len(view) and not machine.eof and len(content) <= LIMITS.unpacked_bytes:
            piece = view[at : at + LIMITS.read_bytes]
            content += machine.decompress(piece, LIMITS.unpacked_bytes + 1 - len(content))
            at += len(piece) - len(machine.unconsumed_tail)
            if len(content) > max(LIMITS.ratio_free_bytes, LIMITS.ratio * at):
                why = f"{at} bytes unpack to more than {len(content)}, which no log's do"
                raise ParseError(f"{file} is refused", where=file, why=why)
    except zlib.error as error:
        reason = f"it cannot be decompressed: {error}"
    if len(content) > LIMITS.unpacked_bytes:
        reason = f"it unpacks to more than {LIMITS.unpacked_bytes} bytes"
    elif not reason and not machine.eof:
        reason = "the compressed data are cut off"
    losses = (Loss(file, reason, byte=at, count=0),) if reason else ()
    return memoryview(content)[: LIMITS.unpacked_bytes], losses


def list_entries(view: Content, file: str) -> tuple[list[tuple[Any, MapEntry]], list[Loss]]:
    """List the keys of the log's map and the byte ranges of their values.

    Entries before a truncation or damage are listed; the value with the damage is not `whole`, and its losses
    are reported when it is read.
    """
    cursor = MessagePackCursor(view)
    try:
        count = cursor.map_length()
    except (TruncatedValue, InvalidValue) as error:
        why = str(error) or "it ends at once"
        raise ParseError(f"{file} is no MessagePack map", where=f"{file}@0", why=why) from error
    entries: list[tuple[Any, MapEntry]] = []
    for _ in range(min(count, LIMITS.ports)):
        at = cursor.at
        try:
            key = cursor.value()
            at = cursor.at
        except (TruncatedValue, InvalidValue) as error:
            return entries, [
                Loss(file, f"{_reason(error)}: {count - len(entries)} keys missing", byte=at, count=0)
            ]
        try:
            cursor.skip()
        except (TruncatedValue, InvalidValue) as error:
            entries.append((key, MapEntry(at, len(view), whole=False)))
            lost = count - len(entries)
            return entries, [Loss(file, f"{_reason(error)} in {key}", byte=at, count=0)] if lost else []
        entries.append((key, MapEntry(at, cursor.at)))
    if cursor.at < len(view):
        return entries, [Loss(file, f"{len(view) - cursor.at} bytes that belong to no port", byte=cursor.at)]
    return entries, []


def _reason(error: Exception) -> str:
    return "the file is cut off" if isinstance(error, TruncatedValue) else f"it cannot be read on ({error})"


def group_ports(
    entries: Sequence[tuple[Any, MapEntry]], file: str
) -> tuple[dict[str, PortEntries], list[Loss]]:
    """Group the keys of a log by port: `/task.port`, `/task.port.meta`, `/task.port/field/sub`."""
    ports: dict[str, PortEntries] = {}
    losses: list[Loss] = []
    texts = [(key, entry) for key, entry in entries if isinstance(key, str)]
    described = {key.removesuffix(META) for key, _ in texts if key.endswith(META)}
    for key, entry in texts:
        name, part = (key.removesuffix(META), META) if key.endswith(META) else _port_and_field(key, described)
        port = ports.setdefault(name, PortEntries())
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
    """Split the key of a flattened log; other keys are names of ports."""
    head = key
    while head not in described and "/" in head:
        head = head.rpartition("/")[0]
    if head in described:
        return head, key[len(head) + 1 :].replace("/", ".")
    match = _FLATTENED.fullmatch(key)
    return (match[1], match[2].replace("/", ".")) if match else (key, "")


def read_meta(view: Content, entry: MapEntry | None, file: str) -> tuple[PortMeta, list[Loss]]:
    """Read the available type and times of a port."""
    if entry is None:
        return PortMeta(), []
    kind, ticks, at = "", None, entry.start
    try:
        cursor = MessagePackCursor(view, at)
        for _ in range(cursor.map_length()):
            key = cursor.value()
            at = cursor.at
            if key == "timestamps":
                numbers, end, whole = decode_numbers(view, at, LIMITS.samples)
                ticks, at = numbers.astype("int64"), end
                if not whole:
                    full = len(ticks) == LIMITS.samples
                    raise InvalidValue(f"more than {LIMITS.samples} times") if full else TruncatedValue
                cursor = MessagePackCursor(view, end)
            elif key == "type":
                kind = str(cursor.value())
            else:
                cursor.skip()
    except (TruncatedValue, InvalidValue) as error:
        return PortMeta(kind, ticks), [
            Loss(file, f"{_reason(error)}: times of a port are lost", byte=at, count=0)
        ]
    return PortMeta(kind, ticks), []
