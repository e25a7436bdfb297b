"""The HTML report on recordings and runs: streams, problems, trajectory, accuracy, provenance, citation.

`gather` collects the facts, `write_page` writes the page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .contents import Subject, gather
    from .extraction import ReportOptions
    from .facts import ReportFacts
    from .page import write_page

__all__ = ["ReportFacts", "ReportOptions", "Subject", "gather", "write_page"]

__getattr__ = importer(
    __name__,
    {
        "facts": ("ReportFacts",),
        "extraction": ("ReportOptions",),
        "page": ("write_page",),
        "contents": ("Subject", "gather"),
    },
)
