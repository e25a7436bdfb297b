"""Disparities of a rectified pair, and the points that they mean."""

from .clouds import Limits, cloud_from_disparity
from .matching import METHODS, Method, Search, coverage, match

__all__ = ["METHODS", "Limits", "Method", "Search", "cloud_from_disparity", "coverage", "match"]
