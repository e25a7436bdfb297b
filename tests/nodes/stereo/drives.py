"""Ray-traced images of a stereo pair that drives over textured ground towards a textured wall."""

from functools import cache

import cv2
import numpy as np

from transect.geometry import rotations, se3
from transect.types import CameraModel, Image

WIDTH_PX, HEIGHT_PX, FOCAL_PX, BASELINE_M = 320, 200, 200.0, 0.2
K = np.array([[FOCAL_PX, 0.0, WIDTH_PX / 2], [0.0, FOCAL_PX, HEIGHT_PX / 2], [0.0, 0.0, 1.0]])
LEFT = CameraModel("left", WIDTH_PX, HEIGHT_PX, K, P=np.hstack([K, np.zeros((3, 1))]), frame="left_camera")
RIGHT = CameraModel(
    "right",
    WIDTH_PX,
    HEIGHT_PX,
    K,
    P=np.hstack([K, [[-FOCAL_PX * BASELINE_M], [0], [0]]]),
    frame="right_camera",
)
CAMERA_HEIGHT_M, WALL_DISTANCE_M, PIXELS_PER_METRE, TEXTURE_PX = 1.0, 6.0, 40.0, 1024
"""Height of the camera and distance of the wall at the start, m; resolution and width of the texture."""
NS = 1_000_000_000


@cache
def texture(seed):
    """Return smooth gray values, which bilinear interpolation preserves."""
    noise = np.random.default_rng(seed).normal(size=(TEXTURE_PX, TEXTURE_PX)).astype(np.float32)
    smooth = cv2.GaussianBlur(noise, (0, 0), 2.0)
    return 128 + 45 * smooth / smooth.std()


def render_image(T_world_camera, seed=0):
    """Return the image of a camera; the world's axes are x right, y down, z forward, too."""
    v, u = np.mgrid[:HEIGHT_PX, :WIDTH_PX]
    rays = np.stack(
        [(u - WIDTH_PX / 2) / FOCAL_PX, (v - HEIGHT_PX / 2) / FOCAL_PX, np.ones(u.shape)], axis=-1
    )
    rays = rays @ T_world_camera[:3, :3].T
    _, y, z = T_world_camera[:3, 3]
    with np.errstate(divide="ignore"):
        to_ground = np.where(rays[..., 1] > 0, (CAMERA_HEIGHT_M - y) / rays[..., 1], np.inf)
        to_wall = (WALL_DISTANCE_M - z) / rays[..., 2]
    on_ground = to_ground < to_wall
    hit = T_world_camera[:3, 3] + np.minimum(to_ground, to_wall)[..., None] * rays
    across, along = hit[..., 0] + 12.0, np.where(on_ground, hit[..., 2], hit[..., 1] + 5.0)
    looked = [(each * PIXELS_PER_METRE).astype(np.float32) for each in (across, along)]
    values = cv2.remap(texture(seed), *looked, cv2.INTER_LINEAR)
    return np.clip(values, 0, 255).astype(np.uint8)


@cache
def render_pair(T_bytes, t_ns=0, seed=0):
    """Return the rectified images of a pair; `T_bytes` is ``T_world_camera`` of the left camera, as bytes."""
    T_world_left = np.frombuffer(T_bytes).reshape(4, 4)
    T_world_right = T_world_left @ se3.from_matrix(np.eye(3), [BASELINE_M, 0, 0])
    return (
        Image(render_image(T_world_left, seed), t_ns=t_ns, frame="left_camera", camera=LEFT),
        Image(render_image(T_world_right, seed), t_ns=t_ns, frame="right_camera", camera=RIGHT),
    )


def drive_poses(steps, ahead=0.06, turn=0.01):
    """Return poses (n, 4, 4) of a camera that moves ahead (m) and turns to the right (rad) in each step."""
    motion = se3.from_matrix(rotations.matrix_from_rotation_vector([0, turn, 0]), [0, 0, ahead])
    return [np.linalg.matrix_power(motion, k) for k in range(steps)]


def drive_pairs(steps, **motion):
    """Return pairs along a drive, 0.1 s apart."""
    return [render_pair(T.tobytes(), k * NS // 10) for k, T in enumerate(drive_poses(steps, **motion))]


def run_pairs(node, pairs):
    """Return the output of a node for each pair."""
    results = []
    for left, right in pairs:
        node.ctx.time = left.t_ns
        results.append(node(left, right))
    return results
