"""Drives over painted ground towards a painted wall: every pixel by a ray of its own."""

from functools import cache

import cv2
import numpy as np

from transect.geometry import rotations, se3
from transect.types import CameraModel, Image

WIDTH, HEIGHT, FOCAL, BASELINE = 320, 200, 200.0, 0.2
K = np.array([[FOCAL, 0.0, WIDTH / 2], [0.0, FOCAL, HEIGHT / 2], [0.0, 0.0, 1.0]])
LEFT = CameraModel("left", WIDTH, HEIGHT, K, P=np.hstack([K, np.zeros((3, 1))]), frame="left_camera")
RIGHT = CameraModel(
    "right", WIDTH, HEIGHT, K, P=np.hstack([K, [[-FOCAL * BASELINE], [0], [0]]]), frame="right_camera"
)
DOWN, AHEAD, PER_METRE, SIZE = 1.0, 6.0, 40.0, 1024
"""m from the first camera to the ground and to the wall; pixels of paint per metre, and in all."""
SECOND = 1_000_000_000


@cache
def paint(seed):
    """Gray values without edges that a bilinear look-up would spoil."""
    noise = np.random.default_rng(seed).normal(size=(SIZE, SIZE)).astype(np.float32)
    smooth = cv2.GaussianBlur(noise, (0, 0), 2.0)
    return 128 + 45 * smooth / smooth.std()


def picture(T_world_camera, seed=0):
    """What a camera sees: x right, y down, z forward in the world too."""
    v, u = np.mgrid[:HEIGHT, :WIDTH]
    rays = np.stack([(u - WIDTH / 2) / FOCAL, (v - HEIGHT / 2) / FOCAL, np.ones(u.shape)], axis=-1)
    rays = rays @ T_world_camera[:3, :3].T
    _, y, z = T_world_camera[:3, 3]
    with np.errstate(divide="ignore"):
        to_ground = np.where(rays[..., 1] > 0, (DOWN - y) / rays[..., 1], np.inf)
        to_wall = (AHEAD - z) / rays[..., 2]
    on_ground = to_ground < to_wall
    hit = T_world_camera[:3, 3] + np.minimum(to_ground, to_wall)[..., None] * rays
    across, along = hit[..., 0] + 12.0, np.where(on_ground, hit[..., 2], hit[..., 1] + 5.0)
    looked = [(each * PER_METRE).astype(np.float32) for each in (across, along)]
    values = cv2.remap(paint(seed), *looked, cv2.INTER_LINEAR)
    return np.clip(values, 0, 255).astype(np.uint8)


@cache
def pair(T_bytes, t_ns=0, seed=0):
    """Rectified images of a pair whose left camera is at ``T_world_camera``, given as its bytes."""
    T_world_left = np.frombuffer(T_bytes).reshape(4, 4)
    T_world_right = T_world_left @ se3.from_matrix(np.eye(3), [BASELINE, 0, 0])
    return (
        Image(picture(T_world_left, seed), t_ns=t_ns, frame="left_camera", camera=LEFT),
        Image(picture(T_world_right, seed), t_ns=t_ns, frame="right_camera", camera=RIGHT),
    )


def drive(steps, ahead=0.06, turn=0.01):
    """Poses (n, 4, 4) of a camera that drives ahead and turns to the right, m and rad each step."""
    motion = se3.from_matrix(rotations.matrix_from_rotation_vector([0, turn, 0]), [0, 0, ahead])
    return [np.linalg.matrix_power(motion, k) for k in range(steps)]


def drive_pairs(steps, **how):
    """Pairs along a drive, a tenth of a second apart."""
    return [pair(T.tobytes(), k * SECOND // 10) for k, T in enumerate(drive(steps, **how))]


def played(node, pairs):
    """What a node says to each pair."""
    said = []
    for left, right in pairs:
        node.ctx.time = left.t_ns
        said.append(node(left, right))
    return said
