"""Image geometry: keypoints, two and more views, stereo matching, rectification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from .disparity_clouds import CloudLimits, cloud_covariances, cloud_from_disparity
    from .pose_estimation import solve_pnp_ransac
    from .rectification import rectify
    from .stereo_matching import StereoSearch, match_stereo
    from .triangulation import TriangulatedPoints, triangulate

__all__ = [
    "CloudLimits",
    "StereoSearch",
    "TriangulatedPoints",
    "cloud_covariances",
    "cloud_from_disparity",
    "match_stereo",
    "rectify",
    "solve_pnp_ransac",
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
        "pose_estimation": ("solve_pnp_ransac",),
        "rectification": ("rectify",),
        "stereo_matching": (
            "StereoSearch",
            "match_stereo",
        ),
        "triangulation": (
            "TriangulatedPoints",
            "triangulate",
        ),
    },
)
