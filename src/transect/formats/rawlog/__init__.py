"""MRPT rawlog: planar laser, odometry and IMU as objects one after the other, packed by gzip (`.rawlog`)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from transect.base.lazy import exporter

from ..shared.compression import GZIP, unpack_head
from ..shared.interface import Match, no

if TYPE_CHECKING:
    from transect.recording import Source

_OBJECT = re.compile(rb"[\x80-\xff](?:mrpt::obs::)?(C(?:Observation|Action|SensoryFrame)\w*)")


def recognises(source: Source) -> Match:
    """Recognise one file that begins with the name of a class of MRPT's observations or actions."""
    if len(source.names) != 1:
        return no("a rawlog is one file")
    head = source.head(source.names[0])
    if head.startswith(GZIP):
        head = unpack_head(head, ".gz")
    if found := _OBJECT.match(head):
        return Match(0.95, f"it begins with an object of MRPT's class {found[1].decode()}")
    return no("it does not begin with an object of MRPT's")


__getattr__, __dir__ = exporter(__name__, {"reading": ("read",)})
