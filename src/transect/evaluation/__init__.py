"""How good is a trajectory, a map, a noise model: the numbers that papers print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from transect.evaluation.positions.streams import trajectory_of

    from .absolute import AbsoluteError, absolute_error
    from .association import AssociationError, Pairs, associate
    from .clouds import CloudErrors, cloud_errors, cloud_map_errors
    from .figures import draw_results
    from .inputs import load_trajectory, open_input
    from .judging import Judged, judge_maps, judge_trajectories
    from .maps import MapErrors, map_errors
    from .maps.report import evaluate_maps, open_map
    from .nees import Consistency, consistency
    from .noise import AllanDeviation, NoiseModel, allan_deviation, noise_model
    from .relations import RelationErrors, Relations, read_relations, relation_errors
    from .relative import RelativeError, relative_error
    from .report import Asked, evaluate
    from .result import Result, load_result, load_results, save_results
    from .runs import JudgedRun, judge_run
    from .segments import DriftCurve, SegmentErrors, drift_curve, segment_errors
    from .static import ImuNoise, analyse_imu
    from .statistics import Statistics
    from .tables import table_of, text_of
    from .vision import match_quality, pose_quality, track_histogram, triangulate

__all__ = [
    "AbsoluteError",
    "AllanDeviation",
    "Asked",
    "AssociationError",
    "CloudErrors",
    "Consistency",
    "DriftCurve",
    "ImuNoise",
    "Judged",
    "JudgedRun",
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
    "analyse_imu",
    "associate",
    "cloud_errors",
    "cloud_map_errors",
    "consistency",
    "draw_results",
    "drift_curve",
    "evaluate",
    "evaluate_maps",
    "judge_maps",
    "judge_run",
    "judge_trajectories",
    "load_result",
    "load_results",
    "load_trajectory",
    "map_errors",
    "match_quality",
    "noise_model",
    "open_input",
    "open_map",
    "pose_quality",
    "read_relations",
    "relation_errors",
    "relative_error",
    "save_results",
    "segment_errors",
    "table_of",
    "text_of",
    "track_histogram",
    "trajectory_of",
    "triangulate",
]

__getattr__ = importer(
    __name__,
    {
        "absolute": ("AbsoluteError", "absolute_error"),
        "association": ("AssociationError", "Pairs", "associate"),
        "clouds": ("CloudErrors", "cloud_errors", "cloud_map_errors"),
        "figures": ("draw_results",),
        "inputs": ("load_trajectory", "open_input"),
        "judging": ("Judged", "judge_maps", "judge_trajectories"),
        "maps": ("MapErrors", "map_errors"),
        "maps.report": ("evaluate_maps", "open_map"),
        "nees": ("Consistency", "consistency"),
        "noise": ("AllanDeviation", "NoiseModel", "allan_deviation", "noise_model"),
        "positions.streams": ("trajectory_of",),
        "relations": ("RelationErrors", "Relations", "read_relations", "relation_errors"),
        "relative": ("RelativeError", "relative_error"),
        "report": ("Asked", "evaluate"),
        "result": ("Result", "load_result", "load_results", "save_results"),
        "runs": ("JudgedRun", "judge_run"),
        "segments": ("DriftCurve", "SegmentErrors", "drift_curve", "segment_errors"),
        "static": ("ImuNoise", "analyse_imu"),
        "statistics": ("Statistics",),
        "tables": ("table_of", "text_of"),
        "vision": ("match_quality", "pose_quality", "track_histogram", "triangulate"),
    },
)
