"""Pose fusion, measurement by measurement: what the nodes of the group take from here.

- `events`: the inputs of all nodes that fuse, as events in the order of time and in the axes of the body
- `heights`: whether measured heights can be those of the ground
- `lever`: what an IMU away from the body's origin measures of its turning
- `error_state`: state, covariance, prediction and correction of the error-state Kalman filter
- `wheels`: how steps of wheels move and correct that state, beside a gyroscope
- `gate`: limits of innovations, and noise that follows them
- `foresight`: how far wheels lead astray, learnt by looking back
- `start`: the first state, by gravity, by the way driven or by a measured attitude
- `alignment`: the same of a body with an IMU and positions alone, by its accelerations
- `filter`: all of it together, causal
- `judgement`: how good a fusion was, in words
"""

from .error_state import UP, Noise
from .events import Batches, Event, Inertial, Inputs, Place, Step, Turning
from .filter import Filter
from .gate import limit
from .judgement import Tally, conclude, contradiction
from .start import Priors

__all__ = [
    "UP",
    "Batches",
    "Event",
    "Filter",
    "Inertial",
    "Inputs",
    "Noise",
    "Place",
    "Priors",
    "Step",
    "Tally",
    "Turning",
    "conclude",
    "contradiction",
    "limit",
]
