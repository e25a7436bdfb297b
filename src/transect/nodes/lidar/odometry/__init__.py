"""Odometry by scans: the odometer, the map that it aligns to, and how sure it is."""

from .odometer import LocalMap, Odometer, Scan, Settings, Step
from .submap import Submap
from .sweep import ASLANT, SLICES, Sweep

__all__ = ["ASLANT", "SLICES", "LocalMap", "Odometer", "Scan", "Settings", "Step", "Submap", "Sweep"]
