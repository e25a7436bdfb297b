"""How good is a trajectory, a map, a noise model: the numbers that papers print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .absolute import AbsoluteError, absolute_error
    from .association import AssociationError, Pairs, associate
    from .clouds import CloudErrors, cloud_errors, cloud_map_errors
    from .loading import load_trajectory, trajectory_of
    from .maps import MapErrors, map_errors
    from .nees import Consistency, consistency
    from .noise import AllanDeviation, NoiseModel, allan_deviation, noise_model
    from .relations import RelationErrors, Relations, read_relations, relation_errors
    from .relative import RelativeError, relative_error
    from .result import Result, load_result
    from .segments import DriftCurve, SegmentErrors, drift_curve, segment_errors
    from .statistics import Statistics
    from .vision import match_quality, pose_quality, track_histogram, triangulate

__all__ = [
    "AbsoluteError",
    "AllanDeviation",
    "AssociationError",
    "CloudErrors",
    "Consistency",
    "DriftCurve",
    "MapErrors",
    "NoiseModel",
    "Pairs",
    "RelationErrors",
    "Relations",
    "RelativeError",
    "Result",
    "SegmentErrors",
    "Statistics",
    "absolute_error",
    "allan_deviation",
    "associate",
    "cloud_errors",
    "cloud_map_errors",
    "consistency",
    "drift_curve",
    "load_result",
    "load_trajectory",
    "map_errors",
    "match_quality",
    "noise_model",
    "pose_quality",
    "read_relations",
    "relation_errors",
    "relative_error",
    "segment_errors",
    "track_histogram",
    "trajectory_of",
    "triangulate",
]

_HOMES = {
    "absolute": ("AbsoluteError", "absolute_error"),
    "association": ("AssociationError", "Pairs", "associate"),
    "clouds": ("CloudErrors", "cloud_errors", "cloud_map_errors"),
    "loading": ("load_trajectory", "trajectory_of"),
    "maps": ("MapErrors", "map_errors"),
    "nees": ("Consistency", "consistency"),
    "noise": ("AllanDeviation", "NoiseModel", "allan_deviation", "noise_model"),
    "relations": ("RelationErrors", "Relations", "read_relations", "relation_errors"),
    "relative": ("RelativeError", "relative_error"),
    "result": ("Result", "load_result"),
    "segments": ("DriftCurve", "SegmentErrors", "drift_curve", "segment_errors"),
    "statistics": ("Statistics",),
    "vision": ("match_quality", "pose_quality", "track_histogram", "triangulate"),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: a command that judges a trajectory loads no maps."""
    import importlib

    home = next((module for module, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'transect.evaluation' has no attribute {name!r}")
    return getattr(importlib.import_module(f".{home}", __name__), name)
