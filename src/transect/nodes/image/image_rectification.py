"""Images without the bending of the lens, turned as their calibration says."""

from __future__ import annotations

from transect.algorithms.vision.rectification import rectify, require_camera, straight
from transect.engine import Node
from transect.types import Image

from ._rectified_frames import add_rectified_frame


class ImageRectification(Node):
    """The image as a pinhole camera would have taken it, rectified by the `R` and `P` of its calibration.

    A calibration without `P`, as of a single camera, only undistorts. What is rectified already comes back as
    it was. `valid` of the result is False where the camera saw nothing. A rectifying rotation makes a frame
    of its own, `<frame>_rect`, which is put into the frames of the recording. Raises where there is no
    calibration, or one for another image size.
    """

    calibrated = ("originalImage",)

    out_name = "rectifiedImage"

    def process(self, originalImage: Image) -> Image:
        camera = require_camera(originalImage)
        if camera.P is None:
            return straight(originalImage)
        add_rectified_frame(camera, self.ctx.frames)
        return rectify(originalImage)
