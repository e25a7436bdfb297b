"""Metrics as nodes."""

from __future__ import annotations

_NAMES = {
    "drift_percent": ("DriftPercent",),
    "map_error": ("MapError",),
    "match_ratio": ("MatchRatio",),
    "matchability": ("Matchability",),
    "pnp_inliers": ("PnpInliers",),
    "position_error": ("PositionError",),
    "trajectory_error": ("TrajectoryError",),
    "triangulation_covariance": ("TriangulationCovariance",),
}
NODES = {name: f"{__name__}.{module}:{name}" for module, names in _NAMES.items() for name in names}
"""Dotted strings of interfaces by name, and of implementations that have a module of their own."""
