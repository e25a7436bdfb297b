"""PDS4 products: tables, images, arrays and text, as their labels describe them.

A label, or a folder of labels such as a collection or a bundle. Each table is a stream of records, each array
a stream of one image. A column of dates is the time of a table; without one, rows are counted (`index`).
Special constants become missing. Units stand in the metadata as the label spells them; nothing is converted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import exporter

from ..shared.interface import Match, no

if TYPE_CHECKING:
    from transect.recording import Source

LABELS = (".xml", ".lblx")
NAMESPACE = b"http://pds.nasa.gov/pds4/pds/v1"
MAX_INSPECTED_LABELS = 20


def recognises(source: Source) -> Match:
    """Tell by labels, which name the namespace of PDS4."""
    files = [name for name in source.names if name.lower().endswith(LABELS)]
    if not files:
        return no("no .xml or .lblx labels")
    found = sum(NAMESPACE in source.head(name) for name in files[:MAX_INSPECTED_LABELS])
    if not found:
        return no("its XML files are no PDS4 labels")
    return Match(0.8, f"{len(files)} PDS4 labels")


__getattr__, __dir__ = exporter(__name__, {"reading": ("read",)})
