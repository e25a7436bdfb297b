"""One height map laid on another of the same ground: search, least squares, covariance, and refusal."""

from .aligning import Alignment, align_maps
from .laying import lay_map
from .locating import Hypothesis, Localisation, locate_map

__all__ = ["Alignment", "Hypothesis", "Localisation", "align_maps", "lay_map", "locate_map"]
