"""Coregistration of height maps: search, least squares, covariance, and rejection of chance matches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .alignment import Alignment, align_maps, lay_map
    from .localisation import Hypothesis, Localisation, locate_map

__all__ = [
    "Alignment",
    "Hypothesis",
    "Localisation",
    "align_maps",
    "lay_map",
    "locate_map",
]

__getattr__ = importer(
    __name__,
    {
        "alignment": (
            "Alignment",
            "align_maps",
            "lay_map",
        ),
        "localisation": (
            "Hypothesis",
            "Localisation",
            "locate_map",
        ),
    },
)
