"""How the two cameras of a pair stand to each other."""

from __future__ import annotations

import numpy as np

from transect.algorithms.vision.stereo_pairs import is_rectified_pair, pair_baseline
from transect.engine import Node
from transect.errors import TransectError
from transect.types import Correspondences2D, Pose

UNTURNED = np.array([0.0, 0.0, 0.0, 1.0])


class SceneEyes(Node):
    """The pose of the right camera of a rectified pair in the left one, by what their matches say of both."""

    out_name = "pose"

    def process(self, matches: Correspondences2D) -> Pose:
        left, right = matches.source_camera, matches.sink_camera
        if left is None or right is None or not is_rectified_pair(left, right):
            raise TransectError(
                "these matches are not those of a rectified pair",
                why="their cameras are not known, not rectified, or have no baseline in P",
                hint="put StereoRectification before the features",
            )
        apart = np.array([pair_baseline(left, right), 0.0, 0.0])
        return Pose(apart, UNTURNED, self.ctx.time, left.frame, right.frame)
