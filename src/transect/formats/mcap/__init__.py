"""MCAP files without ROS: rows of JSON, Foxglove's schemas in protobuf or JSON, other protobuf as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import exporter

from ..shared.bags import MCAP_MAGIC
from ..shared.interface import Match, no

if TYPE_CHECKING:
    from transect.recording import Source


def recognises(source: Source) -> Match:
    """Recognise one MCAP file."""
    found = [name for name in source.names if name.lower().endswith(".mcap")]
    if len(source.names) != 1 or not found:
        return no("it is not one .mcap file")
    if source.head(found[0], len(MCAP_MAGIC)) != MCAP_MAGIC:
        return no(f"{found[0]} is named .mcap but does not begin like one")
    return Match(0.9, "an MCAP file")


__getattr__, __dir__ = exporter(__name__, {"reading": ("read",), "writing": ("write",)})
