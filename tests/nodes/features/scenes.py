"""Scenes with known cameras and points, projected by textbook formulas that the nodes do not use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter, shift
from scipy.spatial.transform import Rotation
from scipy.special import gammaincinv

from transect.types import CameraModel, Correspondences2D, Features2D, Image, PointCloud

FOCAL_PX, WIDTH_PX, HEIGHT_PX = 700.0, 800, 600
K = np.array([[FOCAL_PX, 0, 399.5], [0, FOCAL_PX, 299.5], [0, 0, 1.0]])
LENS = np.array([-0.28, 0.09, 1e-3, -5e-4])


def camera(name: str = "left", baseline: float | None = None, lens: np.ndarray | None = None) -> CameraModel:
    P = None if baseline is None else np.column_stack([K, [-FOCAL_PX * baseline, 0, 0]])
    bent = {} if lens is None else {"distortion": "radtan", "coefficients": lens}
    return CameraModel(name, WIDTH_PX, HEIGHT_PX, K, P=P, frame=name, **bent)


def project(points: np.ndarray, R: np.ndarray, p: np.ndarray, lens: np.ndarray | None = None) -> np.ndarray:
    """Pixels of points (n, 3) in a camera at p that R turns into the world; Brown's formula for the lens."""
    x, y, z = (R.T @ (points - p).T).astype(np.float64)
    assert (z > 0).all()
    x, y = x / z, y / z
    if lens is not None:
        k1, k2, p1, p2 = lens
        r = x * x + y * y
        bend = 1 + k1 * r + k2 * r * r
        x, y = (
            x * bend + 2 * p1 * x * y + p2 * (r + 2 * x * x),
            y * bend + p1 * (r + 2 * y * y) + 2 * p2 * x * y,
        )
    return np.column_stack([FOCAL_PX * x + K[0, 2], FOCAL_PX * y + K[1, 2]])


@dataclass
class TwoViews:
    """A camera at the origin and one at `p`, turned by `R`; `points` (n, 3) are seen by both."""

    points: np.ndarray
    R: np.ndarray
    p: np.ndarray
    matches: Correspondences2D

    @property
    def fundamental(self) -> np.ndarray:
        """By its definition: ``K^-T R' [p]x K^-1``, of norm 1."""
        x, y, z = self.p
        cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        inverse = np.linalg.inv(K)
        F = inverse.T @ self.R.T @ cross @ inverse
        return F / np.linalg.norm(F)


def spread_points(rng: np.random.Generator, n: int, near: float = 4.0, far: float = 12.0) -> np.ndarray:
    """Points in front of a camera at the origin, all over its image."""
    z = rng.uniform(near, far, n)
    return np.column_stack([rng.uniform(-0.45, 0.45, n) * z, rng.uniform(-0.35, 0.35, n) * z, z])


def two_views(
    seed: int = 0,
    n: int = 150,
    sigma: float = 0.5,
    outliers: int = 0,
    p: tuple[float, float, float] = (0.6, 0.05, 0.1),
    turn: tuple[float, float, float] = (0.01, -0.04, 0.02),
    lens: np.ndarray | None = None,
    points: np.ndarray | None = None,
) -> TwoViews:
    rng = np.random.default_rng(seed)
    points = spread_points(rng, n) if points is None else points
    R, place = Rotation.from_rotvec(turn).as_matrix(), np.array(p)
    source = project(points, np.eye(3), np.zeros(3), lens) + rng.normal(0, sigma, (n, 2))
    sink = project(points, R, place, lens) + rng.normal(0, sigma, (n, 2))
    if outliers:
        sink[-outliers:] = rng.uniform([0, 0], [WIDTH_PX, HEIGHT_PX], (outliers, 2))
    matches = Correspondences2D(
        source.astype(np.float32),
        sink.astype(np.float32),
        source_camera=camera("left", lens=lens),
        sink_camera=camera("right", lens=lens),
        t_ns=5,
    )
    return TwoViews(points, R, place, matches)


def resection(
    seed: int = 0,
    n: int = 80,
    sigma: float = 0.5,
    outliers: int = 0,
    lens: np.ndarray | None = None,
    points: np.ndarray | None = None,
) -> tuple[PointCloud, Features2D, np.ndarray, np.ndarray]:
    """Known points, where a camera at p, turned by R, saw them; and R and p."""
    rng = np.random.default_rng(seed)
    points = spread_points(rng, n) if points is None else points
    R, p = Rotation.from_rotvec([0.05, -0.1, 0.03]).as_matrix(), np.array([0.4, -0.2, 0.3])
    pixels = project(points, R, p, lens) + rng.normal(0, sigma, (n, 2))
    if outliers:
        pixels[-outliers:] = rng.uniform([0, 0], [WIDTH_PX, HEIGHT_PX], (outliers, 2))
    features = Features2D(pixels.astype(np.float32), t_ns=7, camera=camera(lens=lens))
    return PointCloud(points, frame="map"), features, R, p


def pose_error(position: np.ndarray, orientation: np.ndarray, R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Translation (m) and rotation vector (rad) by which a pose is off, both in the world: (6,)."""
    turn = (Rotation.from_quat(orientation) * Rotation.from_matrix(R).inv()).as_rotvec()
    return np.concatenate([position - p, turn])


def textured(seed: int = 0, moved: tuple[float, float] = (0.0, 0.0), noise: float = 0.0) -> Image:
    """Blurred noise, moved by (right, down) pixels."""
    rng = np.random.default_rng(seed)
    picture = gaussian_filter(rng.normal(size=(260, 340)), 2.0)
    picture = shift(picture, moved[::-1], order=3, mode="nearest")[30:230, 30:310]
    picture = 128 + 45 * picture / picture.std() + rng.normal(0, max(noise, 1e-9), picture.shape)
    return Image(np.clip(picture, 0, 255).astype(np.uint8), t_ns=3, frame="left", camera=camera())


def within_chi_square(squares: list[float], freedom: int) -> bool:
    """Return whether a sum of squared normalised errors is inside its 99.9 % bounds."""
    low, high = 2 * gammaincinv(freedom * len(squares) / 2, [0.0005, 0.9995])
    return bool(low < sum(squares) < high)
