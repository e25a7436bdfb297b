"""Places by stereo pairs: corners with depth and binary descriptors, their index, and what verifies a place.

- `views`: what is kept of a pair
- `index`: which views have descriptors like these (faiss)
- `verification`: the motion between two views, or that there is none
- `recogniser`: the three as a `Recogniser`
"""

from .recogniser import StereoRecogniser
from .views import median_depth, see, stereo_camera

__all__ = ["StereoRecogniser", "median_depth", "see", "stereo_camera"]
