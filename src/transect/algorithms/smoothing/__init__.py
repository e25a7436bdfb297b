"""Pose fusion by factor graphs (GTSAM), over a whole recording or over the last seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .batch import Smoothed, smooth
    from .factor_graph import SmootherNoise
    from .fixed_lag import FixedLagWindow
    from .observations import Evidence

__all__ = [
    "Evidence",
    "FixedLagWindow",
    "Smoothed",
    "SmootherNoise",
    "smooth",
]

__getattr__ = importer(
    __name__,
    {
        "batch": (
            "Smoothed",
            "smooth",
        ),
        "factor_graph": ("SmootherNoise",),
        "fixed_lag": ("FixedLagWindow",),
        "observations": ("Evidence",),
    },
)
