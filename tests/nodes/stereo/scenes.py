"""Rectified pairs of a wall and tracks of points, made by formulas of their own."""

from __future__ import annotations

import cv2
import numpy as np

from transect.types import CameraModel, Image, StereoPair

FOCAL_PX, BASELINE_M = 200.0, 0.1
WIDTH_PX, HEIGHT_PX = 240, 120
K = np.array([[FOCAL_PX, 0.0, 118.0], [0.0, FOCAL_PX, 62.0], [0.0, 0.0, 1.0]])
LEFT = CameraModel("left", WIDTH_PX, HEIGHT_PX, K, P=np.hstack([K, np.zeros((3, 1))]), frame="left")
RIGHT = CameraModel(
    "right", WIDTH_PX, HEIGHT_PX, K, P=np.hstack([K, [[-FOCAL_PX * BASELINE_M], [0.0], [0.0]]]), frame="right"
)


def wall(disparity: float, sky: int = 0, noise: float = 1.5, seed: int = 0) -> StereoPair:
    """A textured wall square to the cameras, at the depth that has this disparity, below rows of sky."""
    rng = np.random.default_rng(seed)
    texture = cv2.GaussianBlur(rng.normal(size=(HEIGHT_PX, WIDTH_PX + 100)), (0, 0), 1.2)
    texture = (120 + 60 * texture / texture.std()).astype(np.float32)
    rows, columns = np.indices((HEIGHT_PX, WIDTH_PX), dtype=np.float32)
    images = []
    for camera, shift in ((LEFT, 0.0), (RIGHT, disparity)):
        pixels = cv2.remap(texture, columns + np.float32(shift), rows, cv2.INTER_CUBIC)
        pixels[:sky] = 180.0
        pixels += rng.normal(scale=noise, size=pixels.shape)
        data = np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
        images.append(Image(data, frame=camera.frame, camera=camera, t_ns=5))
    return StereoPair(images[0], images[1], 5)
