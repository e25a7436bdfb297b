"""Image geometry: keypoints, two and more views, stereo matching, rectification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .disparity_clouds import CloudLimits, cloud_covariances, cloud_from_disparity
    from .pnp import pose_of_most
    from .rectification import rectify
    from .stereo_matching import StereoSearch, match_stereo
    from .triangulation import Triangulated, triangulate

__all__ = [
    "CloudLimits",
    "StereoSearch",
    "Triangulated",
    "cloud_covariances",
    "cloud_from_disparity",
    "match_stereo",
    "pose_of_most",
    "rectify",
    "triangulate",
]

__getattr__ = importer(
    __name__,
    {
        "disparity_clouds": (
            "CloudLimits",
            "cloud_from_disparity",
            "cloud_covariances",
        ),
        "pnp": ("pose_of_most",),
        "rectification": ("rectify",),
        "stereo_matching": (
            "StereoSearch",
            "match_stereo",
        ),
        "triangulation": (
            "Triangulated",
            "triangulate",
        ),
    },
)
