"""Places by stereo pairs: corners with depth and binary descriptors, their index, and what verifies a place.

- `views`: what is kept of a pair
- `index`: which views have descriptors like these (faiss)
- `consensus`: the motion that most of some pairs of points agree on
- `verification`: the motion between two places, or that there is none
- `recogniser`: all of them as a `Recogniser`
"""

from .recogniser import StereoRecogniser
from .views import median_depth, see, stereo_camera

__all__ = ["StereoRecogniser", "median_depth", "see", "stereo_camera"]
