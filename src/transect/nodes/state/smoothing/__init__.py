"""Pose fusion by factor graphs (GTSAM), over a whole recording or over the last seconds.

- `evidence`: the events of a recording by kind, and the times of keyframes
- `motion`: dead reckoning as one path, with the covariance of every piece
- `wheels`, `inertial`, `places`: factors of each kind of measurement, and how well positions fit
- `straying`: how an odometry in six degrees of freedom errs besides its drift
- `graph`: the graph of a stretch of keyframes, its solution and covariances
- `start`: first values of all poses
- `follower`: the same by a filter, where an IMU and positions are all that there is
- `batch`: everything at once
- `weighing`: the noise of all that tells the motion, learnt from how far it agrees
- `held_out`: the noise of the wheels, learnt from positions that are held out
- `lag`: the last seconds, again and again
"""

from .batch import Smoothed, smooth
from .evidence import Doubt, Evidence
from .follower import Follower
from .graph import Noise, UnsettledError, noise_of
from .lag import Fit, Keyframe, Window
from .places import innovations, join, tallies
from .start import HeadingUnknownError
from .weighing import WEIGHED, describe

__all__ = [
    "WEIGHED",
    "Doubt",
    "Evidence",
    "Fit",
    "Follower",
    "HeadingUnknownError",
    "Keyframe",
    "Noise",
    "Smoothed",
    "UnsettledError",
    "Window",
    "describe",
    "innovations",
    "join",
    "noise_of",
    "smooth",
    "tallies",
]
