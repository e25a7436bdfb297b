"""What one step of a stereo pair says about the faults that rectification left in it.

With a fault the points of one pair do not move rigidly to where the next pair sees them. So the faults are
those that leave the least robust residual of the motion. The motion of each frame is solved at given faults,
and what is left pulls on the faults that all frames share (variable projection).
"""

from __future__ import annotations

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
MOTION_STEPS, MOTION_AT_REST = 10, 1e-4
"""Steps of the search for a motion; metres or radians: what moves less has been found."""
FAULTS = {
    "offset": 0.5, "row": 1.0, "k1": 0.05, "k2": 0.05, "left p1": 0.01, "left p2": 0.01,
    "right k1": 0.01, "right k2": 0.01, "right p1": 0.01, "right p2": 0.01,
    "roll": 0.01, "focal": 0.005, "column": 10.0, "principal row": 10.0,
}  # fmt: skip
"""What may be wrong with a rectified pair, and how much of it is usual (standard deviations).

Offset of all disparities and of all rows in pixels; radial distortion of both images; tangential distortion
of the left one; what the right one has more; its roll in radians; its focal length as a share; its principal
point in pixels, with the turn that keeps the centre of the image where it is.
"""
LENS = slice(2, 4)
"""Place of k1 and k2 among the faults."""
ROW_NOISE = 0.1
"""Pixels: least noise of the difference of rows."""


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


@dataclass(frozen=True, eq=False)
class Evidence:
    """What one frame says about all of `FAULTS`, once its own motion is solved: a parabola.

    Attributes
    ----------
    information : (14, 14)
        Its curvature.
    wanted : (14,)
        The information times what the frame would like best.
    """

    information: Floats
    wanted: Floats

    def pull(self, faults: Floats) -> Pull | None:
        """Return what it says about the offset alone if the other faults (14,) are known; None if nothing."""
        row = self.information[0]
        if not row[0] > 0:
            return None
        return Pull(float((self.wanted[0] - row[1:] @ faults[1:]) / row[0]), float(row[0]))


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
class Frame:
    """One step: columns and rows, left and right (n, 4), before and now, and the motion (4, 4) so far."""

    before: Floats
    now: Floats
    motion: Floats


def frame_evidence(tracks: StereoTracks, camera: CameraModel, faults: Floats) -> Evidence | None:
    """Return what one step between frames says about the faults of a pair; None if nothing.

    It is exact near `faults` (14,), as far as these are known already. Put together by `combine` these are
    `disparity_offset` for a flow, in which each frame is seen once.
    """
    rig = Rig.of(camera)
    frame = measure_frame(tracks, rig)
    return None if frame is None else solve_motion(frame, rig, faults)


def faults_of(offset_px: float = 0.0) -> Floats:
    """Return all of `FAULTS` (14,) where there is nothing but an offset."""
    return np.array([offset_px, *[0.0] * (len(FAULTS) - 1)])


def long_run_covariance(errors: Floats) -> Floats:
    """Return the covariance (k, k) of a sum of errors (n, k), neighbours alike (Newey and West 1987).

    Frames that follow each other see the same points: they err together, and are worth fewer.
    """
    reach = int(np.sqrt(len(errors)))
    whole = errors.T @ errors
    for k in range(1, reach + 1):
        alike = errors[k:].T @ errors[:-k]
        whole += (1 - k / (reach + 1)) * (alike + alike.T)
    return whole


def measure_frame(tracks: StereoTracks, rig: Rig) -> Frame | None:
    """Return what is measured of a step, and about how the cameras moved; None where that cannot be told."""
    import cv2

    both = np.hstack([tracks.before_left, tracks.before_right, tracks.now_left, tracks.now_right])
    both = both[np.isfinite(both).all(axis=1)].astype(np.float64)
    before, now = both[:, :4], both[:, 4:]
    good = np.minimum(before[:, 0] - before[:, 2], now[:, 0] - now[:, 2]) > LEAST_DISPARITY
    before, now = before[good], now[good]
    if len(before) < FEWEST_POINTS:
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
    return Frame(before, now, se3.from_matrix(cv2.Rodrigues(turn)[0], shift.ravel()))


def solve_motion(frame: Frame, rig: Rig, faults: Floats) -> Evidence | None:
    """Solve the motion of a frame at given faults; what is left of the residual pulls on them."""
    before, now = (straighten_pixels(pixels, rig, faults) for pixels in (frame.before, frame.now))
    straight = Frame(before, now, frame.motion)
    for _ in range(MOTION_STEPS):
        rows = _weigh(straight, rig, by_faults=False)
        step = -np.linalg.lstsq(rows[:, 1:7], rows[:, 0])[0]
        straight.motion = frame.motion = se3.exp(step) @ frame.motion
        if np.abs(step).max() < MOTION_AT_REST:
            break
    rows = _weigh(straight, rig)
    residual, by_motion, by_faults = rows[:, 0], rows[:, 1:7], rows[:, 7:]
    # What of the faults no motion can imitate.
    own = by_faults - by_motion @ np.linalg.lstsq(by_motion, by_faults)[0]
    variance = float(residual @ residual) / (residual.size - 6 - len(faults))
    if not variance > 0:
        return None
    information = own.T @ own / variance
    return Evidence(information, information @ faults - own.T @ residual / variance)


def _weigh(straight: Frame, rig: Rig, by_faults: bool = True) -> Floats:
    """Return residuals and derivatives in units of their noise, row by row, wild ones held down."""
    white = _residuals(straight, rig, by_faults)
    noise = np.repeat(max(float(robust.nmad(white[:, :3, 0])), 1e-6), white.shape[1])
    if by_faults:
        noise[3] = max(float(robust.nmad(white[:, 3, 0])), ROW_NOISE)
    white /= noise[:, None]
    weight = robust.cauchy_weights(np.sqrt(np.mean(white[:, :3, 0] ** 2, axis=1)))
    return (white * np.sqrt(weight)[:, None, None]).reshape(-1, white.shape[2])


def _points(pixels: Floats, rig: Rig) -> tuple[Floats, Floats]:
    """Return points (n, 3) in metres of left columns, left rows and right columns, and disparities (n,)."""
    disparity = np.maximum(pixels[:, 0] - pixels[:, 2], LEAST_DISPARITY / 2)
    depth = rig.fx * rig.baseline / disparity
    x = (pixels[:, 0] - rig.cx) * depth / rig.fx
    y = (pixels[:, 1] - rig.cy) * depth / rig.fy
    return np.stack([x, y, depth], axis=1), disparity


def _residuals(straight: Frame, rig: Rig, by_faults: bool) -> Floats:
    """Return residuals in pixels and their derivatives by the motion (n, 3, 1 + 6); no faults are left.

    With those by the faults they are (n, 4, 1 + 6 + 14): the last is by how much the rows of a pair differ.
    The pixels of both pairs are equally noisy. To first order a residual has the covariance I + J J^T, with J
    the derivative of the prediction by the pixels before; multiplied by the inverse of its Cholesky factor
    the residuals are those of a bundle adjustment in which the points are free.
    """
    before, now = straight.before, straight.now
    seen, by_point, by_before, moved = _predict(before, straight.motion, rig)
    apart = seen - now[:, :3]
    if by_faults:
        # At the pixels that fit best, derivatives err independently of residuals; else noise feigns a lens.
        inner = np.eye(3) + by_before @ np.swapaxes(by_before, 1, 2)
        shift = -np.swapaxes(by_before, 1, 2) @ np.linalg.solve(inner, apart[..., None])
        before = np.hstack([before[:, :3] + shift[..., 0], before[:, 3:]])
        seen, by_point, by_before, moved = _predict(before, straight.motion, rig)
        apart = seen - now[:, :3] - (by_before @ shift)[..., 0]
    noise = np.linalg.cholesky(np.eye(3) + by_before @ np.swapaxes(by_before, 1, 2))
    parts = [apart[..., None], by_point, -by_point @ rotations.skew(moved)]
    if not by_faults:
        return np.asarray(np.linalg.solve(noise, np.concatenate(parts, axis=2)), dtype=np.float64)
    bent_before, bent_now = bends(before, rig), bends(seen[:, [0, 1, 2, 1]], rig)
    parts.append(bent_now[:, :3] - by_before @ bent_before[:, :3])
    whole = np.linalg.solve(noise, np.concatenate(parts, axis=2))
    level = np.zeros((len(now), 1, whole.shape[2]))
    level[:, 0, 0] = (now[:, 1] - now[:, 3]) / np.sqrt(2)
    level[:, 0, 7:] = (bent_now[:, 3] - bent_now[:, 1]) / np.sqrt(2)
    return np.asarray(np.concatenate([whole, level], axis=1), dtype=np.float64)


def _predict(before: Floats, motion: Floats, rig: Rig) -> tuple[Floats, Floats, Floats, Floats]:
    """Return where points are seen after a motion (n, 3), and where they are then (n, 3).

    Between them stand the derivatives (n, 3, 3) of what is seen by those points, and by the pixels before.
    """
    points, disparity = _points(before, rig)
    moved = se3.apply(motion, points)
    seen, by_point = _project(moved, rig)
    return seen, by_point, by_point @ motion[:3, :3] @ _by_pixels(points, disparity, rig), moved


def straighten_pixels(pixels: Floats, rig: Rig, faults: Floats) -> Floats:
    """Return pixels (n, 4) as a pair without these faults would have seen them."""
    straight = pixels
    for _ in range(3 if np.any(faults[2:]) else 1):
        straight = pixels - bends(straight, rig) @ faults
    return straight


def bends(pixels: Floats, rig: Rig) -> Floats:
    """Return by how much each fault moves left column, left row, right column and right row: (n, 4, 14)."""
    x, y = (pixels[:, 0] - rig.cx) / rig.fx, (pixels[:, 1] - rig.cy) / rig.fy
    right, below = (pixels[:, 2] - rig.cx) / rig.fx, (pixels[:, 3] - rig.cy) / rig.fy
    square, right_square = x**2 + y**2, right**2 + below**2
    moved = np.zeros((len(pixels), 4, len(FAULTS)))
    moved[:, 2, 0] = moved[:, 3, 1] = -1.0
    moved[:, :2, 2:6] = rig.fx * _lens(x, y, square)
    moved[:, 2:, 6:10] = rig.fx * _lens(right, below, right_square)
    moved[:, 2:, 2:4] = moved[:, 2:, 6:8]
    moved[:, 2, 10], moved[:, 3, 10] = -rig.fx * below, rig.fx * right
    moved[:, 2, 11], moved[:, 3, 11] = rig.fx * right, rig.fx * below
    moved[:, 2, 12], moved[:, 3, 12] = -(right**2), -right * below
    moved[:, 2, 13], moved[:, 3, 13] = -right * below, -(below**2)
    return moved


def _lens(x: Floats, y: Floats, square: Floats) -> Floats:
    """Return the derivatives (n, 2, 4) of a bent point by k1, k2, p1 and p2 (Brown 1966)."""
    across = [x * square, x * square**2, 2 * x * y, square + 2 * x**2]
    down = [y * square, y * square**2, square + 2 * y**2, 2 * x * y]
    return np.stack([np.stack(across, axis=1), np.stack(down, axis=1)], axis=1)


def _project(points: Floats, rig: Rig) -> tuple[Floats, Floats]:
    """Return the pixels (n, 3) of points (n, 3), and the derivatives (n, 3, 3)."""
    x, y, z = points.T
    left = rig.fx * x / z + rig.cx
    seen = np.stack([left, rig.fy * y / z + rig.cy, left - rig.fx * rig.baseline / z], axis=1)
    slopes = np.zeros((len(points), 3, 3))
    slopes[:, 0, 0] = slopes[:, 2, 0] = rig.fx / z
    slopes[:, 0, 2] = -rig.fx * x / z**2
    slopes[:, 1, 1], slopes[:, 1, 2] = rig.fy / z, -rig.fy * y / z**2
    slopes[:, 2, 2] = -rig.fx * (x - rig.baseline) / z**2
    return seen, slopes


def _by_pixels(points: Floats, disparity: Floats, rig: Rig) -> Floats:
    """Return the derivatives (n, 3, 3) of points by left column, left row and right column."""
    slopes = np.zeros((len(points), 3, 3))
    slopes[:, :, 2] = points / disparity[:, None]
    slopes[:, :, 0] = -slopes[:, :, 2]
    slopes[:, 0, 0] += points[:, 2] / rig.fx
    slopes[:, 1, 1] = points[:, 2] / rig.fy
    return slopes
