"""One page about recordings and runs: what was there, what broke, where the robot went, how well we know it.

`gather` collects the facts, `write_page` writes them down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .contents import Subject, gather
    from .extraction import Wanted
    from .facts import Report
    from .page import write_page

__all__ = ["Report", "Subject", "Wanted", "gather", "write_page"]

__getattr__ = importer(
    __name__,
    {
        "facts": ("Report",),
        "extraction": ("Wanted",),
        "page": ("write_page",),
        "contents": ("Subject", "gather"),
    },
)
