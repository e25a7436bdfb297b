"""Pose fusion: measurements, their noise, and the error-state Kalman filter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .context import FusionContext, PlainContext
    from .error_state import ProcessNoise, State
    from .error_state_filter import ErrorStateFilter
    from .gnss_sigma import deviation_of
    from .initialisation import Priors
    from .measurements import FusionInputs

__all__ = [
    "ErrorStateFilter",
    "FusionContext",
    "FusionInputs",
    "PlainContext",
    "Priors",
    "ProcessNoise",
    "State",
    "deviation_of",
]

__getattr__ = importer(
    __name__,
    {
        "context": (
            "FusionContext",
            "PlainContext",
        ),
        "error_state": (
            "ProcessNoise",
            "State",
        ),
        "error_state_filter": ("ErrorStateFilter",),
        "gnss_sigma": ("deviation_of",),
        "initialisation": ("Priors",),
        "measurements": ("FusionInputs",),
    },
)
