"""How good is a trajectory, a map, a noise model: the numbers that papers print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import importer

if TYPE_CHECKING:
    from transect.evaluation.positions.streams import trajectory_of

    from .association import AssociationError, Pairs, associate
    from .clouds import CloudErrors, cloud_errors, cloud_map_errors
    from .comparisons import TrajectoryComparisons, judge_maps, judge_trajectories
    from .figures import draw_results
    from .height_maps import MapErrors, map_errors
    from .inputs import load_trajectory, open_input
    from .map_reports import evaluate_maps, open_map
    from .noise import AllanDeviation, NoiseModel, allan_deviation, noise_model
    from .relative_motions import (
        DriftCurve,
        RelationErrors,
        Relations,
        SegmentErrors,
        drift_curve,
        read_relations,
        relation_errors,
        segment_errors,
    )
    from .report import EvaluationSettings, evaluate
    from .result import Result, load_result, load_results, save_results
    from .runs import JudgedRun, judge_run
    from .static import ImuNoiseReport, analyse_imu
    from .tables import table_of, text_of
    from .trajectory_errors import (
        AbsoluteError,
        Consistency,
        RelativeError,
        Statistics,
        absolute_error,
        consistency,
        relative_error,
    )
    from .vision import match_quality, pose_quality, track_histogram, triangulate

__all__ = [
    "AbsoluteError",
    "AllanDeviation",
    "AssociationError",
    "CloudErrors",
    "Consistency",
    "DriftCurve",
    "EvaluationSettings",
    "ImuNoiseReport",
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
    "TrajectoryComparisons",
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
        "association": ("AssociationError", "Pairs", "associate"),
        "clouds": ("CloudErrors", "cloud_errors", "cloud_map_errors"),
        "comparisons": ("TrajectoryComparisons", "judge_maps", "judge_trajectories"),
        "figures": ("draw_results",),
        "height_maps": ("MapErrors", "map_errors"),
        "inputs": ("load_trajectory", "open_input"),
        "map_reports": ("evaluate_maps", "open_map"),
        "noise": ("AllanDeviation", "NoiseModel", "allan_deviation", "noise_model"),
        "positions.streams": ("trajectory_of",),
        "relative_motions": (
            "RelationErrors",
            "Relations",
            "read_relations",
            "relation_errors",
            "DriftCurve",
            "SegmentErrors",
            "drift_curve",
            "segment_errors",
        ),
        "report": ("EvaluationSettings", "evaluate"),
        "result": ("Result", "load_result", "load_results", "save_results"),
        "runs": ("JudgedRun", "judge_run"),
        "static": ("ImuNoiseReport", "analyse_imu"),
        "tables": ("table_of", "text_of"),
        "trajectory_errors": (
            "AbsoluteError",
            "absolute_error",
            "Consistency",
            "consistency",
            "RelativeError",
            "relative_error",
            "Statistics",
        ),
        "vision": ("match_quality", "pose_quality", "track_histogram", "triangulate"),
    },
)
