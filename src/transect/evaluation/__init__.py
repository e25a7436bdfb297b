"""How good is a trajectory, a map, a noise model: the numbers that papers print."""

from .absolute import AbsoluteError, absolute_error
from .association import AssociationError, Pairs, associate
from .loading import load_trajectory, trajectory_of
from .noise import AllanDeviation, NoiseModel, allan_deviation, noise_model
from .relative import RelativeError, relative_error

__all__ = [
    "AbsoluteError",
    "AllanDeviation",
    "AssociationError",
    "NoiseModel",
    "Pairs",
    "RelativeError",
    "absolute_error",
    "allan_deviation",
    "associate",
    "load_trajectory",
    "noise_model",
    "relative_error",
    "trajectory_of",
]
