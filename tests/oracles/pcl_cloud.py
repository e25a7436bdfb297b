"""The cloud that PCL was asked about (`pcl_descriptors.cpp`): a rough surface with a step, and its normals.

`python tests/oracles/pcl_cloud.py [POINTS]` prints it as that program reads it.
"""

import sys
from pathlib import Path

import numpy as np

POINT_COUNT, SUPPORT_RADIUS, CORNER_SIZE, KEYPOINT_COUNT, SEARCH_RADIUS = 500, 0.28, 0.2, 30, 0.3


def cloud(count: int = POINT_COUNT) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, 3) and normals (n, 3) of float32: waves, a step along x, and noise of both."""
    rng = np.random.default_rng(352)
    x, y = rng.uniform(-1, 1, (2, count)) * np.sqrt(count / POINT_COUNT)  # as dense, however many
    z = 0.2 * np.sin(3 * x) * np.cos(2 * y) + 0.15 * np.tanh(12 * (x - 0.2 * y))
    slope = 0.15 * 12 / np.cosh(12 * (x - 0.2 * y)) ** 2
    dx = 0.6 * np.cos(3 * x) * np.cos(2 * y) + slope
    dy = -0.4 * np.sin(3 * x) * np.sin(2 * y) - 0.2 * slope
    normals = np.column_stack([-dx, -dy, np.ones(count)]) + rng.normal(0, 0.05, (count, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    points = np.column_stack([x, y, z + rng.normal(0, 0.01, count)])
    return points.astype(np.float32), normals.astype(np.float32)


def rows(count: int = POINT_COUNT, keypoints: int = KEYPOINT_COUNT) -> np.ndarray:
    """Rows of the keypoints."""
    return np.arange(keypoints) * count // keypoints


def moved() -> np.ndarray:
    """``T`` (4, 4) by which the cloud is moved before ICP brings it back."""
    c, s = np.cos(0.05), np.sin(0.05)
    return np.array([[c, -s, 0, 0.06], [s, c, 0, -0.04], [0, 0, 1, 0.05], [0, 0, 0, 1]])


def answers(what: str) -> tuple[list[int], np.ndarray]:
    """PCL's answers: the numbers of the lines that begin with this word, and their values (k, d)."""
    lines = Path(__file__).with_name("pcl_descriptors.txt").read_text().splitlines()
    words = [line.split() for line in lines if line.startswith(f"{what} ")]
    return [int(each[1]) for each in words], np.array([each[2:] for each in words], np.float64)


def main(count: int) -> None:
    points, normals = cloud(count)
    print(count, SUPPORT_RADIUS, CORNER_SIZE, KEYPOINT_COUNT, SEARCH_RADIUS)
    np.savetxt(sys.stdout, np.hstack([points, normals]), fmt="%.9g")
    np.savetxt(sys.stdout, moved()[:3], fmt="%.9g")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else POINT_COUNT)
