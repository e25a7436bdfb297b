"""Bundle adjustment: tracks of points, a first guess, factors, and factorisation."""

from .factorisation import factorise
from .factors import Adjusted, Covariances, Problem, adjust, covariances_of, residuals
from .first_guess import Guess, Poses, place_cameras
from .rig import Rig, rig_of
from .tracks import Tracks, tracks_of

__all__ = [
    "Adjusted",
    "Covariances",
    "Guess",
    "Poses",
    "Problem",
    "Rig",
    "Tracks",
    "adjust",
    "covariances_of",
    "factorise",
    "place_cameras",
    "residuals",
    "rig_of",
    "tracks_of",
]
