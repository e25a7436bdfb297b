"""Point clouds: deskewing, voxels, selection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .deskewing import deskew
    from .voxels import VoxelSums

__all__ = [
    "VoxelSums",
    "deskew",
]

__getattr__ = importer(
    __name__,
    {
        "deskewing": ("deskew",),
        "voxels": ("VoxelSums",),
    },
)
