"""NMEA 0183 logs: positions (GGA, GST) and velocities (RMC), perhaps with a Unix time before each sentence.

Angles become radians, knots m/s; checksums are verified. Without a stamp in front, the date is that of RMC or
ZDA; a log that has neither is on the `device` clock, in seconds of the receiver's first day. With a stamp in
front, the stamp is the sample's time, since the other sensors of the same computer share that clock.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from transect.base.lazy import exporter

from ..shared.file_heads import is_packet_capture, mostly_text
from ..shared.interface import Match, no

if TYPE_CHECKING:
    from transect.recording import Source

_POSITION = re.compile(rb"\$[A-Z]{2}(GGA|RMC|GNS|GLL),")
_FRAME = re.compile(rb"\xb5\x62|\xd3[\x00-\x03]")
"""First bytes of binary frames: UBX and RTCM 3."""
_NONE = "no NMEA sentence near the start"
_ANY = re.compile(rb"\$[A-Z][A-Z0-9]{2,}(,[ -#%-~]*)?\*[0-9A-Fa-f]{2}")


def recognises(source: Source) -> Match:
    """Look for `$..GGA,` or another position near the start of the only file, or the only .nmea file."""
    name = only_log(source)
    if name is None:
        return no("not one file of NMEA sentences")
    head = source.head(name)
    if is_packet_capture(head):
        return no("it is a capture of network packets")
    if not mostly_text(_without_frames(head)):
        return no("it has NMEA sentences but most of it is binary") if _POSITION.search(head) else no(_NONE)
    if match := _POSITION.search(head):
        return Match(0.9, f"it has NMEA sentences such as {match[0].decode()}")
    if _ANY.search(head):
        return Match(0.3, "it has NMEA sentences, though no GGA or RMC near its start")
    if name.lower().endswith(".nmea"):
        return no(f"{name} is called .nmea but has no sentence with a checksum near its start")
    return no(_NONE)


def _without_frames(head: bytes) -> bytes:
    """Return the bytes outside of binary frames, using only their lengths."""
    parts: list[bytes] = []
    at = 0
    for match in _FRAME.finditer(head):
        start = match.start()
        if start < at:
            continue
        parts.append(head[at:start])
        if head[start] == 0xB5:
            at = start + 8 + int.from_bytes(head[start + 4 : start + 6], "little")
        else:
            at = start + 6 + (int.from_bytes(head[start + 1 : start + 3], "big") & 0x3FF)
    return b"".join([*parts, head[at:]])


def only_log(source: Source) -> str | None:
    """Return the only file, or the only .nmea file, or None."""
    names = source.names if len(source.names) == 1 else source.glob("*.nmea")
    return names[0] if len(names) == 1 else None


__getattr__, __dir__ = exporter(__name__, {"reading": ("read",), "writing": ("write",)})
