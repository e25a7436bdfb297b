"""How good is a trajectory, a map, a noise model: the numbers that papers print."""

from .absolute import AbsoluteError, absolute_error
from .association import AssociationError, Pairs, associate
from .consistency import Consistency, consistency
from .loading import load_trajectory, trajectory_of
from .noise import AllanDeviation, NoiseModel, allan_deviation, noise_model
from .relations import RelationErrors, Relations, read_relations, relation_errors
from .relative import RelativeError, relative_error
from .segments import DriftCurve, SegmentErrors, drift_curve, segment_errors
from .statistics import Statistics

__all__ = [
    "AbsoluteError",
    "AllanDeviation",
    "AssociationError",
    "Consistency",
    "DriftCurve",
    "NoiseModel",
    "Pairs",
    "RelationErrors",
    "Relations",
    "RelativeError",
    "SegmentErrors",
    "Statistics",
    "absolute_error",
    "allan_deviation",
    "associate",
    "consistency",
    "drift_curve",
    "load_trajectory",
    "noise_model",
    "read_relations",
    "relation_errors",
    "relative_error",
    "segment_errors",
    "trajectory_of",
]
