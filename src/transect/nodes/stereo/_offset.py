"""A constant error of all disparities, found without truth.

Rectification that is a little off adds the same number of pixels to every disparity, and a stereo odometry
then measures every step too long or too short by about the same percentage. The error shows itself: with a
wrong offset the points of one pair do not move rigidly to where the next pair sees them. So the offset is the
one that leaves the least robust residual of the motion. The motion of each frame is solved for a given
offset, what is left pulls on the offset that all frames share (variable projection), until it rests. That is
the minimum which a parabola through passes at -0.3, 0 and +0.3 px approximates, with its uncertainty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.errors import GeometryError
from transect.geometry import robust, rotations, se3
from transect.types import CameraModel

FEWEST_POINTS = 12
"""Of one frame: 6 unknowns of its motion, and as many again to see outliers by."""
LEAST_DISPARITY = 1.0
"""Pixels: nearer to infinity a depth is more noise than measurement."""
MOTION_STEPS, OFFSET_STEPS = 10, 6
TRACKING_BIAS = 0.03
"""Pixels: what following points between images may add alike to all disparities; no residual shows it."""
AT_REST, MOTION_AT_REST = 0.1, 1e-4
"""Standard deviations of the offset, and metres or radians: what moves less has been found."""


@dataclass(frozen=True, eq=False)
class StereoTracks:
    """The same points in two consecutive rectified pairs.

    Attributes
    ----------
    before_left, before_right, now_left, now_right : (n, 2) float array
        Column and row in pixels; row i of all four is one point of the world. NaN rows are left out.
    """

    before_left: Floats
    before_right: Floats
    now_left: Floats
    now_right: Floats


@dataclass(frozen=True)
class OffsetEstimate:
    """What is wrong with the disparities of a rectified pair.

    Attributes
    ----------
    delta_px : float
        Pixels that every measured disparity (column left - column right) has too many; 0 where not known.
    vertical_px : float
        Median of row left - row right; 0 where nothing is known.
    sigma_px : float
        Standard deviation of `delta_px`: the larger of what the residuals promise and of what the frames,
        each by itself, disagree; infinite where nothing is known.
    frames : int
        How many steps between frames were used.
    """

    delta_px: float = 0.0
    vertical_px: float = 0.0
    sigma_px: float = float("inf")
    frames: int = 0

    @property
    def trusted_px(self) -> float:
        """The offset as far as it is believed (`trusted`), pixels."""
        return shrink(self.delta_px, self.sigma_px)


@dataclass(frozen=True)
class Pull:
    """What one frame says about the offset, once its own motion is solved.

    Attributes
    ----------
    delta_px : float
        The offset that it would like best.
    information : float
        How strongly, 1/px^2.
    """

    delta_px: float
    information: float


@dataclass(frozen=True)
class _Rig:
    """A rectified pair: focal lengths and principal point in pixels, baseline in metres."""

    fx: float
    fy: float
    cx: float
    cy: float
    baseline: float

    @classmethod
    def of(cls, camera: CameraModel) -> _Rig:
        if camera.P is None or not camera.baseline > 0:
            raise GeometryError(
                f"the baseline of {camera.name or 'the camera'} is not known",
                why="its P has no -fx * baseline at row 0, column 3",
                hint="give the rectified right camera, or the camera of a disparity image",
            )
        p = camera.P
        return cls(float(p[0, 0]), float(p[1, 1]), float(p[0, 2]), float(p[1, 2]), camera.baseline)


@dataclass
class _Frame:
    """One step: left column, left row, right column (n, 3) before and now, and the motion (4, 4) so far."""

    before: Floats
    now: Floats
    motion: Floats


def disparity_offset(tracks: Sequence[StereoTracks], camera: CameraModel) -> OffsetEstimate:
    """Find the constant disparity offset that makes tracked points move most rigidly.

    Parameters
    ----------
    tracks : sequence of StereoTracks
        One for each step between consecutive pairs. Outliers may be among them; steps of under
        `FEWEST_POINTS` good points are left out. Without motion towards or past the points the offset cannot
        be seen, and `sigma_px` says so.
    camera : CameraModel
        Rectified; its `P` has the focal length, the principal point (of the left image) and the baseline.
    """
    rig, delta = _Rig.of(camera), 0.0
    frames = [frame for each in tracks if (frame := _frame(each, rig)) is not None]
    pulls = [pull for frame in frames if (pull := _pull(frame, rig, delta)) is not None]
    for _ in range(OFFSET_STEPS):
        last, (delta, sigma) = delta, combine(pulls)
        if abs(delta - last) <= AT_REST * sigma:
            break
        pulls = [pull for frame in frames if (pull := _pull(frame, rig, delta)) is not None]
    delta, sigma = combine(pulls)
    return OffsetEstimate(delta, vertical_offset(tracks), sigma, len(pulls))


def frame_pull(tracks: StereoTracks, camera: CameraModel, delta_px: float = 0.0) -> Pull | None:
    """Return what one step between frames says about the offset, seen from about `delta_px`; None if nothing.

    Put together by `combined` these are `disparity_offset` for a flow, in which each frame is seen once.
    """
    rig = _Rig.of(camera)
    frame = _frame(tracks, rig)
    return None if frame is None else _pull(frame, rig, delta_px)


def combine(pulls: Sequence[Pull]) -> tuple[float, float]:
    """Return the offset that many frames agree on, and its standard deviation, both in pixels."""
    if not pulls:
        return 0.0, float("inf")
    wanted, information = np.array([[pull.delta_px, pull.information] for pull in pulls]).T
    total = np.sum(information)
    delta = float(np.sum(information * wanted) / total)
    disagreed = np.sqrt(_long_run_variance(information * (wanted - delta) / total))
    return delta, float(max(1 / np.sqrt(total), disagreed))


def _long_run_variance(errors: Floats) -> float:
    """Return the variance of a sum of errors (n,) of which neighbours are alike (Newey and West 1987).

    Frames that follow each other see the same points: they err together, and are worth fewer.
    """
    reach = int(np.sqrt(len(errors)))
    alike = [float(errors[k:] @ errors[: len(errors) - k]) for k in range(reach + 1)]
    shares = 2 - 2 * np.arange(reach + 1) / (reach + 1)
    return max(alike[0], float(shares @ alike) - alike[0])


def shrink(delta_px: float, sigma_px: float) -> float:
    """Return an offset as far as it stands out of its uncertainty: 0 up to twice that, nearly all beyond.

    Between the two it grows smoothly (the garrote of Breiman 1995), so that what is found while a robot
    drives does not switch on and off.
    """
    doubt = 2 * float(np.hypot(sigma_px, TRACKING_BIAS))
    return delta_px * (1 - (doubt / delta_px) ** 2) if abs(delta_px) > doubt else 0.0


def vertical_offset(tracks: Sequence[StereoTracks]) -> float:
    """Return the median of row left - row right in pixels; 0 without any points."""
    rows = [each.now_left[:, 1] - each.now_right[:, 1] for each in tracks]
    middle = robust.median(np.concatenate(rows)) if rows else np.nan
    return float(np.nan_to_num(middle))


def _frame(tracks: StereoTracks, rig: _Rig) -> _Frame | None:
    """Return what is measured of a step, and about how the cameras moved; None where that cannot be told."""
    import cv2

    both = np.hstack([tracks.before_left, tracks.before_right, tracks.now_left, tracks.now_right])
    both = both[np.isfinite(both).all(axis=1)].astype(np.float64)
    before, now = both[:, [0, 1, 2]], both[:, [4, 5, 6]]
    good = np.minimum(before[:, 0] - before[:, 2], now[:, 0] - now[:, 2]) > LEAST_DISPARITY
    before, now = before[good], now[good]
    if len(before) < FEWEST_POINTS:
        return None
    points, _ = _points(before, rig, 0.0)
    intrinsics = np.array([[rig.fx, 0, rig.cx], [0, rig.fy, rig.cy], [0, 0, 1]])
    cv2.setRNGSeed(0)
    found, turn, shift, _ = cv2.solvePnPRansac(
        points,
        np.ascontiguousarray(now[:, :2]),
        intrinsics,
        None,
        reprojectionError=2.0,
        flags=cv2.SOLVEPNP_AP3P,
    )
    if not found:
        return None
    return _Frame(before, now, se3.from_matrix(cv2.Rodrigues(turn)[0], shift.ravel()))


def _pull(frame: _Frame, rig: _Rig, delta: float) -> Pull | None:
    """Solve the motion of a frame at an offset; what is left of the residual pulls on the offset."""
    for _ in range(MOTION_STEPS):
        residual, by_motion, by_delta = _weigh(frame, rig, delta)
        step = -np.linalg.lstsq(by_motion, residual)[0]
        frame.motion = se3.exp(step) @ frame.motion
        if np.abs(step).max() < MOTION_AT_REST:
            break
    residual, by_motion, by_delta = _weigh(frame, rig, delta)
    # What of the offset no motion can imitate.
    own = by_delta - by_motion @ np.linalg.lstsq(by_motion, by_delta)[0]
    curvature, slope = float(own @ own), float(own @ residual)
    variance = float(residual @ residual) / (residual.size - 7)
    return Pull(delta - slope / curvature, curvature / variance) if curvature * variance > 0 else None


def _weigh(frame: _Frame, rig: _Rig, delta: float) -> tuple[Floats, Floats, Floats]:
    """Return residuals (3n,) and their derivatives (3n, 6) and (3n,), wild ones held down."""
    white = _residuals(frame, rig, delta)
    size = np.sqrt(np.mean(white[..., 0] ** 2, axis=1))
    weight = robust.cauchy_weights(size / max(float(robust.nmad(white[..., 0])), 1e-6))
    rows = (white * np.sqrt(weight)[:, None, None]).reshape(-1, 8)
    return rows[:, 0], rows[:, 1:7], rows[:, 7]


def _points(pixels: Floats, rig: _Rig, delta: float) -> tuple[Floats, Floats]:
    """Return points (n, 3) in metres of pixels (n, 3), and their disparities (n,)."""
    disparity = pixels[:, 0] - pixels[:, 2] - delta
    depth = rig.fx * rig.baseline / disparity
    x = (pixels[:, 0] - rig.cx) * depth / rig.fx
    y = (pixels[:, 1] - rig.cy) * depth / rig.fy
    return np.stack([x, y, depth], axis=1), disparity


def _residuals(frame: _Frame, rig: _Rig, delta: float) -> Floats:
    """Return residuals in pixels and their derivatives by motion and offset: (n, 3, 1 + 6 + 1).

    The pixels of both pairs are equally noisy. To first order a residual has the covariance I + J J^T, with J
    the derivative of the prediction by the pixels before; multiplied by the inverse of its Cholesky factor
    the residuals are those of a bundle adjustment in which the points are free.
    """
    turn = frame.motion[:3, :3]
    points, disparity = _points(frame.before, rig, delta)
    moved = se3.apply(frame.motion, points)
    seen, by_point = _project(moved, rig, delta)
    by_turned = by_point @ turn
    by_delta = by_turned @ (points / disparity[:, None])[..., None] - np.array([[0.0], [0.0], [1.0]])
    by_before = by_turned @ _by_pixels(points, disparity, rig)
    noise = np.linalg.cholesky(np.eye(3) + by_before @ np.swapaxes(by_before, 1, 2))
    apart = (seen - frame.now)[..., None]
    whole = np.concatenate([apart, by_point, -by_point @ rotations.skew(moved), by_delta], axis=2)
    return np.asarray(np.linalg.solve(noise, whole), dtype=np.float64)


def _project(points: Floats, rig: _Rig, delta: float) -> tuple[Floats, Floats]:
    """Return the pixels (n, 3) of points (n, 3), and the derivatives (n, 3, 3)."""
    x, y, z = points.T
    left = rig.fx * x / z + rig.cx
    seen = np.stack([left, rig.fy * y / z + rig.cy, left - rig.fx * rig.baseline / z - delta], axis=1)
    slopes = np.zeros((len(points), 3, 3))
    slopes[:, 0, 0] = slopes[:, 2, 0] = rig.fx / z
    slopes[:, 0, 2] = -rig.fx * x / z**2
    slopes[:, 1, 1], slopes[:, 1, 2] = rig.fy / z, -rig.fy * y / z**2
    slopes[:, 2, 2] = -rig.fx * (x - rig.baseline) / z**2
    return seen, slopes


def _by_pixels(points: Floats, disparity: Floats, rig: _Rig) -> Floats:
    """Return the derivatives (n, 3, 3) of points by left column, left row and right column."""
    slopes = np.zeros((len(points), 3, 3))
    slopes[:, :, 2] = points / disparity[:, None]
    slopes[:, :, 0] = -slopes[:, :, 2]
    slopes[:, 0, 0] += points[:, 2] / rig.fx
    slopes[:, 1, 1] = points[:, 2] / rig.fy
    return slopes
