"""Metrics as nodes."""

from __future__ import annotations

_NAMES = {
    "trajectories": ("DriftPercent", "MapError", "PositionError", "TrajectoryError"),
    "vision": ("Matchability", "MatchRatio", "PnpInliers", "TriangulationCovariance"),
}
NODES = {name: f"{__name__}.{module}:{name}" for module, names in _NAMES.items() for name in names}
"""Dotted strings of interfaces by name, and of implementations that have a module of their own."""
