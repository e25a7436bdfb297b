"""Pose fusion by factor graphs (GTSAM), over a whole recording or over the last seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .batch import SmoothedPath, smooth
    from .factor_graph import SmootherNoise
    from .fixed_lag import FixedLagSettings, FixedLagWindow
    from .observations import Observations

__all__ = [
    "FixedLagSettings",
    "FixedLagWindow",
    "Observations",
    "SmoothedPath",
    "SmootherNoise",
    "smooth",
]

__getattr__ = importer(
    __name__,
    {
        "batch": ("SmoothedPath", "smooth"),
        "factor_graph": ("SmootherNoise",),
        "fixed_lag": ("FixedLagSettings", "FixedLagWindow"),
        "observations": ("Observations",),
    },
)
