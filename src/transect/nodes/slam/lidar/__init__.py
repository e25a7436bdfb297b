"""Places as a lidar sees them: clouds of some scans, their relief, and how one lies in another."""

from .recogniser import LidarRecogniser
from .scans import Passing

__all__ = ["LidarRecogniser", "Passing"]
