"""Sentences of an NMEA log with verified checksums and their time stamps; everything else is counted.

A log may also have UBX and RTCM 3 frames, comments and AIS sentences.
Frames are recognised by their checksums and removed first, so that a `$` in one is not a sentence.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

import numpy as np

from transect.base.clocks import NS
from transect.recording.source import Buffer

from ..shared.rows import LossCounter

POSITIONS = ("GGA", "GNS", "RMC", "GLL")
"""Sentences with a position, the most detailed first."""
WANTED = ("GGA", "RMC", "GST", "ZDA", "GNS", "GLL")
_STAMP = re.compile(rb"\s*(\d{1,10})(?:\.(\d{1,9}))?[\s,;]+")
_SENTENCE = re.compile(rb"([A-Za-z0-9]{3,}(?:,[^*]*)?)\*([0-9A-Fa-f]{2})\s*")
_UNSUMMED = re.compile(rb"([A-Za-z0-9]{3,}(?:,[^*]*)?)\s*()")
_SUMMED_END = re.compile(rb"\*[0-9A-Fa-f]{2}\s*$")
_FRAME = re.compile(rb"\xb5\x62|\xd3[\x00-\x03]")
_MIN_UNIX_S = 10**8
"""A smaller number before a sentence is not a Unix time."""


class Sentence(NamedTuple):
    """A sentence: its line, the stamp before it (or None), its kind, and its text."""

    line: int
    log_ns: int | None
    kind: str
    text: str


@dataclass
class FoundSentences:
    """Sentences and counts of a log."""

    summed: bool = True  # Whether the log has checksums
    sentences: list[Sentence] = field(default_factory=list[Sentence])  # Of the kinds `WANTED`, in file order
    # Good sentences of other kinds, and comments, by their first word
    others: Counter[str] = field(default_factory=Counter[str])
    frames: Counter[str] = field(default_factory=Counter[str])  # Binary frames by protocol
    prefixed: int = 0  # Lines with a prefix that is not a time
    lost: LossCounter = field(default_factory=LossCounter)  # Lines that cannot be read


def find_sentences(buffer: Buffer) -> FoundSentences:
    """Split a log into sentences and check them."""
    frames, data = _without_frames(bytes(buffer))
    found = FoundSentences(summed=b"*" in data, frames=frames)
    lines = data.split(b"\n")
    if not found.summed and lines[-1].strip():
        found.lost.add("the last line is cut off", len(lines))
        lines.pop()
    for number, line in enumerate(lines, 1):
        _split_line(line, number, found)
    return found


def _split_line(line: bytes, number: int, found: FoundSentences) -> None:
    before, *rest = line.split(b"$")
    if not rest:
        _count_other(before, number, found)
        return
    log_ns = _stamp_ns(before)
    if log_ns is None and before.strip():
        if _SUMMED_END.search(before):
            found.lost.add("not an NMEA sentence", number)
        else:
            found.prefixed += 1
    for text in rest:
        _check(text, number, log_ns, found)


def _count_other(line: bytes, number: int, found: FoundSentences) -> None:
    """Count a comment or an AIS sentence; anything else is a loss."""
    text = line.strip()
    if text[:1] in (b"#", b"!", b"%"):
        found.others[text.split(b",")[0][:12].decode("ascii", "replace")] += 1
    elif text:
        found.lost.add("not an NMEA sentence", number)


def _check(text: bytes, number: int, log_ns: int | None, found: FoundSentences) -> None:
    match = (_SENTENCE if found.summed else _UNSUMMED).fullmatch(text)
    if match is None:
        found.lost.add("no checksum" if b"*" not in text else "not an NMEA sentence", number)
        return
    if match[2] and reduce(operator.xor, match[1]) != int(match[2], 16):
        found.lost.add("the checksum does not match", number)
        return
    body = match[1].decode("latin-1")
    address = body.partition(",")[0]
    kind = address if address.startswith("P") else address[2:]
    if kind in WANTED:
        found.sentences.append(Sentence(number, log_ns, kind, body))
    else:
        found.others[kind] += 1


def _stamp_ns(before: bytes) -> int | None:
    """Return the Unix time before a sentence, or None."""
    match = _STAMP.fullmatch(before)
    if match is None or int(match[1]) < _MIN_UNIX_S:
        return None
    t_ns = int(match[1]) * NS + int((match[2] or b"").ljust(9, b"0"))
    return t_ns if t_ns < 2**63 else None


def _without_frames(data: bytes) -> tuple[Counter[str], bytes]:
    """Return the counts of binary frames, and the text without them, with unchanged line numbers."""
    counts: Counter[str] = Counter()
    parts: list[bytes] = []
    at = 0
    for match in _FRAME.finditer(data):
        start = match.start()
        size = 0 if start < at else _frame_size(data, start)
        if size:
            counts["UBX" if data[start] == 0xB5 else "RTCM 3"] += 1
            parts += [data[at:start], b"\n" * data.count(b"\n", start, start + size)]
            at = start + size
    return counts, b"".join([*parts, data[at:]])


def _frame_size(data: bytes, start: int) -> int:
    """Return the length of the frame at `start`, 0 if its checksum does not match."""
    if data[start] == 0xB5:
        end = start + 8 + int.from_bytes(data[start + 4 : start + 6], "little")
        good = end <= len(data) and _fletcher(data[start + 2 : end - 2]) == data[end - 2 : end]
    else:
        end = start + 6 + (int.from_bytes(data[start + 1 : start + 3], "big") & 0x3FF)
        good = end <= len(data) and _crc24q(data[start : end - 3]) == int.from_bytes(
            data[end - 3 : end], "big"
        )
    return end - start if good else 0


def _fletcher(body: bytes) -> bytes:
    """Return the two checksum bytes of a UBX frame (u-blox interface description)."""
    sums = np.cumsum(np.frombuffer(body, np.uint8), dtype=np.uint64)
    return bytes([int(sums[-1]) & 255, int(sums.sum()) & 255])


def _crc24q(body: bytes) -> int:
    """Return the CRC-24Q of an RTCM 3 frame (RTCM 10403, as in SBAS)."""
    crc = 0
    for byte in body:
        crc ^= byte << 16
        for _ in range(8):
            crc = (crc << 1) ^ (0x1864CFB if crc & 0x800000 else 0)
    return crc & 0xFFFFFF
