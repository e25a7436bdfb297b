"""Information of one frame-to-frame step of a stereo pair on its remaining calibration errors.

With calibration errors, the points of one pair do not move rigidly to where the next pair sees them. The
errors are estimated as those with the smallest robust residual of rigid motion. The motion of each frame is
eliminated (variable projection, Golub and Pereyra 1973); what remains is information on the errors, which all
frames share.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from transect.base.arrays import Floats
from transect.errors import GeometryError
from transect.geometry import robust, rotations, se3
from transect.types import CameraModel


@dataclass(frozen=True)
class FrameSettings:
    """Settings of the information of a frame."""

    min_points: int = 12  # 6 unknowns of the motion, and as many again to detect outliers
    min_disparity_px: float = 1.0  # the noise of the depth of smaller disparities exceeds its signal
    max_iterations: int = 10  # of the motion
    tolerance: float = 1e-4  # m and rad, a smaller step ends the iteration
    min_row_noise_px: float = 0.1  # smallest standard deviation of the difference of rows
    # Relative eigenvalue of the information below which a combination of errors is unobserved.
    min_eigenvalue_ratio: float = 1e-10


SETTINGS = FrameSettings()
CALIBRATION_ERROR_SIGMAS = {
    "offset": 0.5, "row": 1.0, "k1": 0.05, "k2": 0.05, "left p1": 0.01, "left p2": 0.01,
    "right k1": 0.01, "right k2": 0.01, "right p1": 0.01, "right p2": 0.01,
    "roll": 0.01, "focal": 0.005, "column": 10.0, "principal row": 10.0,
}  # fmt: skip
"""Prior standard deviations of the errors of a rectified pair, in the order of their index.

Offset of all disparities and of all rows (px); radial distortion of both images; tangential distortion of the
left one; differences of the right one's distortion; its roll (rad); its focal length (ratio); its principal
point (px), with the rotation that keeps the centre of the image in place.
"""
LENS = slice(2, 4)
"""Index of k1 and k2 among the errors."""


@dataclass(frozen=True, eq=False)
class StereoTracks:
    """The same points in two consecutive rectified pairs: columns and rows in pixels, (n, 2) each.

    Row i of all four is one point of the world. Rows with NaN are left out.
    """

    before_left: Floats
    before_right: Floats
    now_left: Floats
    now_right: Floats


@dataclass(frozen=True)
class OffsetMeasurement:
    """The disparity offset that fits one frame best, and its information."""

    delta_px: float
    information: float  # 1/px^2


@dataclass(frozen=True, eq=False)
class FrameInformation:
    """Information of one frame on all calibration errors, with its own motion eliminated."""

    information: Floats  # (14, 14), in the order and units of CALIBRATION_ERROR_SIGMAS
    vector: Floats  # (14,), information times the errors that fit the frame best

    def measure_offset(self, errors: Floats) -> OffsetMeasurement | None:
        """Return the offset that fits best if the other errors (14,) are known; None if it is unobserved."""
        row = self.information[0]
        if not row[0] > 0:
            return None
        return OffsetMeasurement(float((self.vector[0] - row[1:] @ errors[1:]) / row[0]), float(row[0]))

    @cached_property
    def whitened(self) -> tuple[Floats, Floats]:
        """The frame as 14 measurements of unit noise, ``y = root @ x + noise``: root (14, 14) and y (14,).

        x are the errors in units of their prior standard deviations. The root is the symmetric one.
        """
        scale = np.array(list(CALIBRATION_ERROR_SIGMAS.values()))
        values, axes = np.linalg.eigh(self.information * np.outer(scale, scale))
        observed = values > SETTINGS.min_eigenvalue_ratio * max(float(values[-1]), 0.0)
        roots = np.sqrt(np.where(observed, values, 0.0))
        inverse = np.where(observed, 1 / np.where(observed, roots, 1.0), 0.0)
        return (axes * roots) @ axes.T, (axes * inverse) @ (axes.T @ (scale * self.vector))


@dataclass(frozen=True)
class Rig:
    """A rectified pair: focal lengths and principal point in pixels, baseline in metres."""

    fx: float
    fy: float
    cx: float
    cy: float
    baseline: float

    @classmethod
    def of(cls, camera: CameraModel) -> Rig:
        if camera.P is None or not camera.baseline > 0:
            raise GeometryError(
                f"the baseline of {camera.name or 'the camera'} is not known",
                why="its P has no -fx * baseline at row 0, column 3",
                hint="give the rectified right camera, or the camera of a disparity image",
            )
        p = camera.P
        return cls(float(p[0, 0]), float(p[1, 1]), float(p[0, 2]), float(p[1, 2]), camera.baseline)


@dataclass
class StereoStepMotion:
    """The pixels of one frame-to-frame step, and the estimate of its motion."""

    before: Floats  # (n, 4): left column and row, right column and row
    now: Floats  # (n, 4)
    motion: Floats  # (4, 4)


def frame_information(tracks: StereoTracks, camera: CameraModel, errors: Floats) -> FrameInformation | None:
    """Return the information of one frame on the calibration errors; None if there are too few points.

    It is linearised at `errors` (14,), the best estimate so far.
    """
    rig = Rig.of(camera)
    frame = estimate_initial_motion(tracks, rig)
    return None if frame is None else solve_motion(frame, rig, errors)


def offset_only(offset_px: float = 0.0) -> Floats:
    """Return calibration errors (14,) of a pair that has nothing but a disparity offset."""
    return np.array([offset_px, *[0.0] * (len(CALIBRATION_ERROR_SIGMAS) - 1)])


def long_run_covariance(errors: Floats) -> Floats:
    """Return the covariance (k, k) of a sum of correlated scores (n, k) (Newey and West 1987).

    Consecutive frames see the same points, so their errors are correlated.
    """
    max_lag = int(np.sqrt(len(errors)))
    covariance = errors.T @ errors
    for k in range(1, max_lag + 1):
        lagged = errors[k:].T @ errors[:-k]
        covariance += (1 - k / (max_lag + 1)) * (lagged + lagged.T)
    return covariance


def estimate_initial_motion(tracks: StereoTracks, rig: Rig) -> StereoStepMotion | None:
    """Return the pixels of a step and an initial estimate of its motion; None if there is none."""
    import cv2

    both = np.hstack([tracks.before_left, tracks.before_right, tracks.now_left, tracks.now_right])
    both = both[np.isfinite(both).all(axis=1)].astype(np.float64)
    before, now = both[:, :4], both[:, 4:]
    good = np.minimum(before[:, 0] - before[:, 2], now[:, 0] - now[:, 2]) > SETTINGS.min_disparity_px
    before, now = before[good], now[good]
    if len(before) < SETTINGS.min_points:
        return None
    points, _ = _points(before, rig)
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
    return StereoStepMotion(before, now, se3.from_matrix(cv2.Rodrigues(turn)[0], shift.ravel()))


def solve_motion(frame: StereoStepMotion, rig: Rig, errors: Floats) -> FrameInformation | None:
    """Estimate the motion of a frame at given errors, and return its information on them."""
    before, now = (undistort_pixels(pixels, rig, errors) for pixels in (frame.before, frame.now))
    undistorted = StereoStepMotion(before, now, frame.motion)
    for _ in range(SETTINGS.max_iterations):
        rows = _whitened_rows(undistorted, rig, by_errors=False)
        step = -np.linalg.lstsq(rows[:, 1:7], rows[:, 0])[0]
        undistorted.motion = frame.motion = se3.exp(step) @ frame.motion
        if np.abs(step).max() < SETTINGS.tolerance:
            break
    rows = _whitened_rows(undistorted, rig)
    residual, by_motion, by_errors = rows[:, 0], rows[:, 1:7], rows[:, 7:]
    # Derivatives by the errors, orthogonal to those by the motion.
    own = by_errors - by_motion @ np.linalg.lstsq(by_motion, by_errors)[0]
    variance = float(residual @ residual) / (residual.size - 6 - len(errors))
    if not variance > 0:
        return None
    information = own.T @ own / variance
    return FrameInformation(information, information @ errors - own.T @ residual / variance)


def _whitened_rows(undistorted: StereoStepMotion, rig: Rig, by_errors: bool = True) -> Floats:
    """Return residuals and derivatives in units of their noise, with Cauchy weights, one row each."""
    white = _residuals(undistorted, rig, by_errors)
    noise = np.repeat(max(float(robust.nmad(white[:, :3, 0])), 1e-6), white.shape[1])
    if by_errors:
        noise[3] = max(float(robust.nmad(white[:, 3, 0])), SETTINGS.min_row_noise_px)
    white /= noise[:, None]
    weight = robust.cauchy_weights(np.sqrt(np.mean(white[:, :3, 0] ** 2, axis=1)))
    return (white * np.sqrt(weight)[:, None, None]).reshape(-1, white.shape[2])


def _points(pixels: Floats, rig: Rig) -> tuple[Floats, Floats]:
    """Return points (n, 3) in metres of left columns, left rows and right columns, and disparities (n,)."""
    disparity = np.maximum(pixels[:, 0] - pixels[:, 2], SETTINGS.min_disparity_px / 2)
    depth = rig.fx * rig.baseline / disparity
    x = (pixels[:, 0] - rig.cx) * depth / rig.fx
    y = (pixels[:, 1] - rig.cy) * depth / rig.fy
    return np.stack([x, y, depth], axis=1), disparity


def _residuals(undistorted: StereoStepMotion, rig: Rig, by_errors: bool) -> Floats:
    """Return residuals in pixels and their derivatives by the motion (n, 3, 1 + 6) of undistorted pixels.

    With derivatives by the errors they are (n, 4, 1 + 6 + 14); the last residual is the row difference of a
    pair. The pixels of both pairs have equal noise. To first order a residual has the covariance I + J J^T,
    with J the derivative of the prediction by the pixels before; multiplied by the inverse of its Cholesky
    factor, the residuals are those of a bundle adjustment with free points.
    """
    before, now = undistorted.before, undistorted.now
    projected, by_point, by_before, moved = _predict(before, undistorted.motion, rig)
    residual_px = projected - now[:, :3]
    if by_errors:
        # Derivatives at the pixels that fit best are independent of the residuals; otherwise noise biases
        # the estimate of the lens.
        inner = np.eye(3) + by_before @ np.swapaxes(by_before, 1, 2)
        shift = -np.swapaxes(by_before, 1, 2) @ np.linalg.solve(inner, residual_px[..., None])
        before = np.hstack([before[:, :3] + shift[..., 0], before[:, 3:]])
        projected, by_point, by_before, moved = _predict(before, undistorted.motion, rig)
        residual_px = projected - now[:, :3] - (by_before @ shift)[..., 0]
    noise = np.linalg.cholesky(np.eye(3) + by_before @ np.swapaxes(by_before, 1, 2))
    parts = [residual_px[..., None], by_point, -by_point @ rotations.skew(moved)]
    if not by_errors:
        return np.asarray(np.linalg.solve(noise, np.concatenate(parts, axis=2)), dtype=np.float64)
    shifted_before, shifted_now = pixel_jacobian(before, rig), pixel_jacobian(projected[:, [0, 1, 2, 1]], rig)
    parts.append(shifted_now[:, :3] - by_before @ shifted_before[:, :3])
    whitened = np.linalg.solve(noise, np.concatenate(parts, axis=2))
    row_offset = np.zeros((len(now), 1, whitened.shape[2]))
    row_offset[:, 0, 0] = (now[:, 1] - now[:, 3]) / np.sqrt(2)
    row_offset[:, 0, 7:] = (shifted_now[:, 3] - shifted_now[:, 1]) / np.sqrt(2)
    return np.asarray(np.concatenate([whitened, row_offset], axis=1), dtype=np.float64)


def _predict(before: Floats, motion: Floats, rig: Rig) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the pixels after a motion (n, 3), their derivatives, and the moved points (n, 3).

    The derivatives (n, 3, 3) are by the moved points, and by the pixels before.
    """
    points, disparity = _points(before, rig)
    moved = se3.apply(motion, points)
    projected, by_point = _project(moved, rig)
    return projected, by_point, by_point @ motion[:3, :3] @ _point_jacobian(points, disparity, rig), moved


def undistort_pixels(pixels: Floats, rig: Rig, errors: Floats) -> Floats:
    """Return the pixels (n, 4) of a pair without these calibration errors."""
    undistorted = pixels
    for _ in range(3 if np.any(errors[2:]) else 1):
        undistorted = pixels - pixel_jacobian(undistorted, rig) @ errors
    return undistorted


def pixel_jacobian(pixels: Floats, rig: Rig) -> Floats:
    """Return the derivatives (n, 4, 14) of left column and row, right column and row by the errors."""
    x, y = (pixels[:, 0] - rig.cx) / rig.fx, (pixels[:, 1] - rig.cy) / rig.fy
    right, below = (pixels[:, 2] - rig.cx) / rig.fx, (pixels[:, 3] - rig.cy) / rig.fy
    square, right_square = x**2 + y**2, right**2 + below**2
    moved = np.zeros((len(pixels), 4, len(CALIBRATION_ERROR_SIGMAS)))
    moved[:, 2, 0] = moved[:, 3, 1] = -1.0
    moved[:, :2, 2:6] = rig.fx * _distortion_jacobian(x, y, square)
    moved[:, 2:, 6:10] = rig.fx * _distortion_jacobian(right, below, right_square)
    moved[:, 2:, 2:4] = moved[:, 2:, 6:8]
    moved[:, 2, 10], moved[:, 3, 10] = -rig.fx * below, rig.fx * right
    moved[:, 2, 11], moved[:, 3, 11] = rig.fx * right, rig.fx * below
    moved[:, 2, 12], moved[:, 3, 12] = -(right**2), -right * below
    moved[:, 2, 13], moved[:, 3, 13] = -right * below, -(below**2)
    return moved


def _distortion_jacobian(x: Floats, y: Floats, square: Floats) -> Floats:
    """Return the derivatives (n, 2, 4) of a distorted point by k1, k2, p1 and p2 (Brown 1966)."""
    across = [x * square, x * square**2, 2 * x * y, square + 2 * x**2]
    down = [y * square, y * square**2, square + 2 * y**2, 2 * x * y]
    return np.stack([np.stack(across, axis=1), np.stack(down, axis=1)], axis=1)


def _project(points: Floats, rig: Rig) -> tuple[Floats, Floats]:
    """Return the pixels (n, 3) of points (n, 3), and the derivatives (n, 3, 3)."""
    x, y, z = points.T
    left = rig.fx * x / z + rig.cx
    projected = np.stack([left, rig.fy * y / z + rig.cy, left - rig.fx * rig.baseline / z], axis=1)
    slopes = np.zeros((len(points), 3, 3))
    slopes[:, 0, 0] = slopes[:, 2, 0] = rig.fx / z
    slopes[:, 0, 2] = -rig.fx * x / z**2
    slopes[:, 1, 1], slopes[:, 1, 2] = rig.fy / z, -rig.fy * y / z**2
    slopes[:, 2, 2] = -rig.fx * (x - rig.baseline) / z**2
    return projected, slopes


def _point_jacobian(points: Floats, disparity: Floats, rig: Rig) -> Floats:
    """Return the derivatives (n, 3, 3) of points by left column, left row and right column."""
    slopes = np.zeros((len(points), 3, 3))
    slopes[:, :, 2] = points / disparity[:, None]
    slopes[:, :, 0] = -slopes[:, :, 2]
    slopes[:, 0, 0] += points[:, 2] / rig.fx
    slopes[:, 1, 1] = points[:, 2] / rig.fy
    return slopes
