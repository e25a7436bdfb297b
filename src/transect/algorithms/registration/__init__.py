"""Registration of point clouds and planar scans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .cloud_alignment import CloudAlignment, RegistrationQuality, align_clouds
    from .gicp import VoxelMap
    from .scan_matching import LikelihoodField, ScanMatch, SearchWindow

__all__ = [
    "CloudAlignment",
    "LikelihoodField",
    "RegistrationQuality",
    "ScanMatch",
    "SearchWindow",
    "VoxelMap",
    "align_clouds",
]

__getattr__ = importer(
    __name__,
    {
        "cloud_alignment": ("CloudAlignment", "RegistrationQuality", "align_clouds"),
        "gicp": ("VoxelMap",),
        "scan_matching": ("LikelihoodField", "ScanMatch", "SearchWindow"),
    },
)
