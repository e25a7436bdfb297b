"""Pose fusion: measurements, their noise, and the error-state Kalman filter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .context import FusionContext, PlainContext
    from .error_state import FilterState, ProcessNoise
    from .error_state_filter import ErrorStateFilter
    from .filter_settings import FilterSettings
    from .gnss_sigma import sigma_of_fix
    from .initialisation import Priors
    from .measurements import FusionInputs
    from .position_inputs import PositionInputSettings

__all__ = [
    "ErrorStateFilter",
    "FilterSettings",
    "FilterState",
    "FusionContext",
    "FusionInputs",
    "PlainContext",
    "PositionInputSettings",
    "Priors",
    "ProcessNoise",
    "sigma_of_fix",
]

__getattr__ = importer(
    __name__,
    {
        "context": ("FusionContext", "PlainContext"),
        "error_state": ("FilterState", "ProcessNoise"),
        "error_state_filter": ("ErrorStateFilter",),
        "filter_settings": ("FilterSettings",),
        "gnss_sigma": ("sigma_of_fix",),
        "initialisation": ("Priors",),
        "measurements": ("FusionInputs",),
        "position_inputs": ("PositionInputSettings",),
    },
)
