"""Views of recordings and runs: `report/` writes an HTML report, `viewer/` is an interactive viewer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .viewer.live_run import watch

__all__ = ["watch"]

__getattr__ = importer(__name__, {"viewer.live_run": ("watch",)})
