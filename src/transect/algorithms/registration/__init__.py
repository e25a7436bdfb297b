"""Registration of point clouds and planar scans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .cloud_alignment import CloudAlignment, align_clouds
    from .coarse_to_fine import Quality
    from .gicp import VoxelMap
    from .scan_matching import LikelihoodField, ScanMatch, SearchWindow

__all__ = [
    "CloudAlignment",
    "LikelihoodField",
    "Quality",
    "ScanMatch",
    "SearchWindow",
    "VoxelMap",
    "align_clouds",
]

__getattr__ = importer(
    __name__,
    {
        "cloud_alignment": (
            "CloudAlignment",
            "align_clouds",
        ),
        "coarse_to_fine": ("Quality",),
        "gicp": ("VoxelMap",),
        "scan_matching": (
            "LikelihoodField",
            "ScanMatch",
            "SearchWindow",
        ),
    },
)
