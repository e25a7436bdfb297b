"""Coregistration of height maps: search, least squares, covariance, and rejection of chance matches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .alignment import GridAlignment, align_maps, resample_aligned
    from .localisation import Hypothesis, Localisation, locate_map

__all__ = [
    "GridAlignment",
    "Hypothesis",
    "Localisation",
    "align_maps",
    "locate_map",
    "resample_aligned",
]

__getattr__ = importer(
    __name__,
    {
        "alignment": (
            "GridAlignment",
            "align_maps",
            "resample_aligned",
        ),
        "localisation": (
            "Hypothesis",
            "Localisation",
            "locate_map",
        ),
    },
)
