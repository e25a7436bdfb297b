"""What people look at: `report/` is one page about recordings and runs, `viewer/` one that plays them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .viewer.live_run import watch

__all__ = ["watch"]

__getattr__ = importer(__name__, {"viewer.live_run": ("watch",)})
