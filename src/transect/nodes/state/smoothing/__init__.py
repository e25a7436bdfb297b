"""Pose fusion by factor graphs (GTSAM), over a whole recording or over the last seconds.

- `evidence`: the events of a recording by kind, and the times of keyframes
- `motion`: dead reckoning as one path, with the covariance of every piece
- `wheels`, `inertial`, `places`: factors of each kind of measurement, and how well positions fit
- `graph`: the graph of a stretch of keyframes, its solution and covariances
- `start`: first values of all poses
- `batch`: everything at once
- `held_out`: the noise of the wheels, learnt from positions that are held out
- `lag`: the last seconds, again and again
"""

from .batch import Smoothed, smooth
from .evidence import Evidence
from .graph import Noise, noise_of
from .lag import Fit, Window
from .places import innovations, join, tallies

__all__ = [
    "Evidence",
    "Fit",
    "Noise",
    "Smoothed",
    "Window",
    "innovations",
    "join",
    "noise_of",
    "smooth",
    "tallies",
]
