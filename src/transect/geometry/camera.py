"""Camera models: projection of points to pixels and back.

The camera frame is x right, y down, z forward. `intrinsics` is the (3, 3) matrix K in pixels; the centre of
the first pixel is (0, 0), as in OpenCV, so an image of width w extends from -0.5 to w - 0.5. `distortion`
holds the lens coefficients of one of two models:

- "pinhole": radial and tangential, OpenCV's order: none, (k1, k2, p1, p2), (..., k3) or (..., k4, k5, k6);
- "fisheye": equidistant, Kannala and Brandt 2006 with four coefficients: none or (k1, k2, k3, k4).

A distortion polynomial fitted to the image folds back far outside it, and would project points into the image
that the camera cannot see. So all functions return NaN beyond the radius up to which the model is one-to-one,
and behind a pinhole camera.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.polynomial import Polynomial
from numpy.polynomial.polynomial import polyder, polyval
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Mask
from transect.errors import GeometryError
from transect.geometry import se3
from transect.geometry.array_checks import floats, norms
from transect.types import CameraModel

Model = Literal["pinhole", "fisheye"]

MAX_RESIDUAL = 1e-10
"""Normalised coordinates, for the inverse distortion: 1e-7 of a pixel at a focal length of 1000 pixels."""


# Points and pixels


def project(
    points: ArrayLike, intrinsics: ArrayLike, distortion: ArrayLike = (), model: Model = "pinhole"
) -> Floats:
    """Pixels (..., 2) of points (..., 3) in the camera frame (m); NaN where the camera cannot see them."""
    p = floats("points", points, (..., 3))
    k, lens = _intrinsics(intrinsics), _lens(distortion, model)
    if model == "fisheye":
        return _pixels(_distort_fisheye(p, lens), k)
    plane = p[..., :2] / np.where(p[..., 2:] > 0, p[..., 2:], np.nan)
    return _pixels(_distort_pinhole(plane, lens), k)


def unproject(
    pixels: ArrayLike, intrinsics: ArrayLike, distortion: ArrayLike = (), model: Model = "pinhole"
) -> Floats:
    """Unit rays (..., 3) in the camera frame through pixels (..., 2); NaN where the lens model has no ray.

    The point at depth z along the optical axis is ``ray / ray[..., 2:] * z``.
    """
    k, lens = _intrinsics(intrinsics), _lens(distortion, model)
    plane = _normalise(floats("pixels", pixels, (..., 2)), k)
    if model == "fisheye":
        angle = _undistort_radius(norms(plane), lens)
        return np.concatenate([plane * _ratio(np.sin(angle), norms(plane)), np.cos(angle)], axis=-1)
    rays = _at_depth_1(_undistort_pinhole(plane, lens))
    return rays / norms(rays)


def project_points(points: ArrayLike, T_camera_frame: ArrayLike, camera: CameraModel) -> tuple[Floats, Mask]:
    """Pixels (..., k, 2) of points (k, 3) of a frame, and which (..., k) are inside the image.

    Parameters
    ----------
    points : (k, 3)
        m, in the frame.
    T_camera_frame : (..., 4, 4)
        Takes points of the frame to the camera (x right, y down, z forward).
    """
    T = floats("transforms", T_camera_frame, (..., 4, 4))
    seen = se3.apply(T[..., None, :, :], floats("points", points, ("k", 3)))
    model: Model = "fisheye" if camera.distortion == "equidistant" else "pinhole"
    lens = camera.coefficients if camera.distortion != "none" else ()
    pixels = project(seen, camera.K, lens, model)
    edge = np.array([camera.width, camera.height]) - 0.5
    return pixels, np.asarray(((pixels >= -0.5) & (pixels < edge)).all(axis=-1))


def distort(points: ArrayLike, distortion: ArrayLike, model: Model = "pinhole") -> Floats:
    """Distort points (..., 2) of the plane z = 1; normalised coordinates in and out."""
    plane, lens = floats("points", points, (..., 2)), _lens(distortion, model)
    return _distort_fisheye(_at_depth_1(plane), lens) if model == "fisheye" else _distort_pinhole(plane, lens)


def undistort(points: ArrayLike, distortion: ArrayLike, model: Model = "pinhole") -> Floats:
    """Inverse of `distort` on normalised points (..., 2); NaN where nothing is distorted to such a point.

    A fisheye point at 90 degrees or more from the axis does not project onto the plane z = 1 and is NaN too.
    """
    plane, lens = floats("points", points, (..., 2)), _lens(distortion, model)
    if model == "fisheye":
        angle = _undistort_radius(norms(plane), lens)
        return plane * _ratio(np.tan(np.where(angle < np.pi / 2, angle, np.nan)), norms(plane))
    return _undistort_pinhole(plane, lens)


# Intrinsics


def field_of_view(
    intrinsics: ArrayLike, size: tuple[int, int], distortion: ArrayLike = (), model: Model = "pinhole"
) -> tuple[float, float]:
    """Horizontal and vertical angle of view in radians, along the row and column of the principal point.

    Parameters
    ----------
    size : (width, height)
        Pixels; the angles are measured between the outer edges of the image.
    """
    k, (width, height) = _intrinsics(intrinsics), size
    cx, cy = k[0, 2], k[1, 2]
    edges = np.array([[-0.5, cy], [width - 0.5, cy], [cx, -0.5], [cx, height - 0.5]])
    x, y, z = np.moveaxis(unproject(edges, k, distortion, model), -1, 0)
    # Signed angles, so that a principal point outside the image, as after a crop, subtracts.
    across, down = np.arctan2(x, z), np.arctan2(y, z)
    return float(across[1] - across[0]), float(down[3] - down[2])


def scale_intrinsics(intrinsics: ArrayLike, x: float, y: float | None = None) -> Floats:
    """K (3, 3) of the image resized by the factors `x` and `y` (default `x`): 0.5 halves width and height."""
    k = _intrinsics(intrinsics)
    sx, sy = x, x if y is None else y
    if not (sx > 0 and sy > 0):
        raise GeometryError(f"expected a scale greater than 0, got {sx}, {sy}")
    # The corner (-0.5, -0.5) of the image is fixed under resizing, the pixel centres are not.
    return np.array([[sx, 0, (sx - 1) / 2], [0, sy, (sy - 1) / 2], [0, 0, 1]]) @ k


def crop_intrinsics(intrinsics: ArrayLike, left: float, top: float) -> Floats:
    """K (3, 3) of the image without its first `left` columns and `top` rows."""
    k = _intrinsics(intrinsics).copy()
    k[:2, 2] -= left, top
    return k


def _intrinsics(values: ArrayLike) -> Floats:
    k = floats("intrinsics", values, (3, 3))
    if not (k[0, 0] > 0 and k[1, 1] > 0 and k[1, 0] == 0 and np.array_equal(k[2], [0, 0, 1])):
        raise GeometryError(
            f"intrinsics: expected [[fx, s, cx], [0, fy, cy], [0, 0, 1]] with fx, fy > 0, got {k.tolist()}"
        )
    return k


def _pixels(plane: Floats, k: Floats) -> Floats:
    return plane @ k[:2, :2].T + k[:2, 2]


def _normalise(pixels: Floats, k: Floats) -> Floats:
    y = (pixels[..., 1] - k[1, 2]) / k[1, 1]
    return np.stack([(pixels[..., 0] - k[0, 2] - k[0, 1] * y) / k[0, 0], y], axis=-1)


# Lenses


class _Lens(NamedTuple):
    """``r * top(r^2) / bottom(r^2)``, p1, p2; r is tan of the off-axis angle, for a fisheye the angle."""

    top: Floats
    bottom: Floats
    p1: float
    p2: float
    limit: float  # r up to which the distorted radius increases


def _lens(distortion: ArrayLike, model: Model) -> _Lens:
    """Parse coefficients (c,) in OpenCV's order."""
    if model not in get_args(Model):
        raise GeometryError(f"unknown camera model {model!r}", hint="'pinhole' or 'fisheye'")
    given = floats("distortion", distortion, ("c",))
    known = (0, 4) if model == "fisheye" else (0, 4, 5, 8, 12, 14)
    if given.size not in known or np.any(given[8:]):
        raise GeometryError(
            f"{model} distortion: expected {', '.join(map(str, known))} coefficients, got {given.size}",
            why="thin prism and tilt (the ninth and later) must be 0" if given.size > 8 else "",
        )
    c = np.zeros(14)
    c[: given.size] = given
    if model == "fisheye":
        top, bottom = np.array([1.0, *c[:4]]), np.ones(1)
        return _Lens(top, bottom, 0.0, 0.0, min(_monotonic_limit(top, bottom), np.pi))
    top, bottom = np.array([1.0, c[0], c[1], c[4]]), np.array([1.0, *c[5:8]])
    # The bisection needs a finite bound; 1e6 is 6e-5 degrees from the image plane.
    return _Lens(top, bottom, float(c[2]), float(c[3]), min(_monotonic_limit(top, bottom), 1e6))


def _monotonic_limit(top: Floats, bottom: Floats) -> float:
    """Smallest r at which ``r * top(r^2) / bottom(r^2)`` stops increasing, or has a pole."""
    n, d, s = Polynomial(top), Polynomial(bottom), Polynomial([0.0, 1.0])
    slope = n * d + 2 * s * (n.deriv() * d - n * d.deriv())  # d/dr, times d^2, with s = r^2
    # Both polynomials are 1 at s = 0. The reversed ones have leading coefficient 1 and roots 1 / s, so that
    # no tiny coefficient is divided by.
    inverse = np.concatenate([Polynomial(each.coef[::-1]).roots() for each in (slope, d)])
    real = inverse.real[np.abs(inverse.imag) <= 1e-9 * np.abs(inverse)]
    largest = float(np.max(real, initial=0.0))
    return float(1 / np.sqrt(largest)) if largest > 0 else np.inf


def _factor(r: Floats, lens: _Lens) -> tuple[Floats, Floats]:
    """Radial factor at r, and its derivative by r^2."""
    s = r * r
    top, bottom = polyval(s, lens.top), polyval(s, lens.bottom)
    top_slope, bottom_slope = polyval(s, polyder(lens.top)), polyval(s, polyder(lens.bottom))
    return top / bottom, (top_slope * bottom - top * bottom_slope) / bottom**2


def _undistort_radius(distorted: Floats, lens: _Lens) -> Floats:
    """Undistorted radius below the limit, NaN if there is none, by Newton steps safeguarded by bisection."""
    low, high = np.zeros_like(distorted), np.full_like(distorted, lens.limit)
    r = np.minimum(distorted, lens.limit / 2)
    done = np.isnan(distorted)
    for _ in range(100):
        factor, slope = _factor(r, lens)
        error = r * factor - distorted
        low, high = np.where(error < 0, r, low), np.where(error > 0, r, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = r - error / (factor + 2 * r * r * slope)
        inside = (newton >= low) & (newton <= high)
        done |= np.abs(error) <= 4 * np.spacing(distorted)
        r = np.where(done, r, np.where(inside, newton, (low + high) / 2))
        if done.all():
            break
    return np.where(
        np.abs(r * _factor(r, lens)[0] - distorted) <= MAX_RESIDUAL * np.maximum(1, distorted), r, np.nan
    )


def _distort_fisheye(points: Floats, lens: _Lens) -> Floats:
    across = norms(points[..., :2])
    angle = np.arctan2(across, points[..., 2:])
    seen = (angle < lens.limit) & (norms(points) > 0)
    return points[..., :2] * np.where(seen, _ratio(angle * _factor(angle, lens)[0], across), np.nan)


def _distort_pinhole(plane: Floats, lens: _Lens) -> Floats:
    return np.where(norms(plane) < lens.limit, _distort_with_jacobian(plane, lens)[0], np.nan)


def _undistort_pinhole(plane: Floats, lens: _Lens) -> Floats:
    """Invert the radial part exactly, then the small tangential part by Newton steps in the plane."""
    distorted = norms(plane)
    undistorted = plane * _ratio(_undistort_radius(distorted, lens), distorted)
    if lens.p1 == 0 and lens.p2 == 0:
        return undistorted
    for _ in range(10):
        predicted, dxx, dxy, dyy = _distort_with_jacobian(undistorted, lens)
        ex, ey = predicted[..., 0] - plane[..., 0], predicted[..., 1] - plane[..., 1]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = np.stack([dyy * ex - dxy * ey, dxx * ey - dxy * ex], axis=-1)
            undistorted = undistorted - step / (dxx * dyy - dxy**2)[..., None]
    with np.errstate(invalid="ignore", over="ignore"):
        error = norms(_distort_pinhole(undistorted, lens) - plane)
    return np.where(error <= MAX_RESIDUAL * np.maximum(1, distorted), undistorted, np.nan)


def _distort_with_jacobian(plane: Floats, lens: _Lens) -> tuple[Floats, Floats, Floats, Floats]:
    """OpenCV's pinhole formula on (..., 2), and its derivatives dx'/dx, dx'/dy = dy'/dx, dy'/dy."""
    x, y = plane[..., 0], plane[..., 1]
    factor, slope = _factor(np.hypot(x, y), lens)
    p1, p2, square = lens.p1, lens.p2, x * x + y * y
    distorted_x = x * factor + 2 * p1 * x * y + p2 * (square + 2 * x * x)
    distorted_y = y * factor + p1 * (square + 2 * y * y) + 2 * p2 * x * y
    dxx = factor + 2 * x * x * slope + 2 * p1 * y + 6 * p2 * x
    dxy = 2 * (x * y * slope + p1 * x + p2 * y)
    dyy = factor + 2 * y * y * slope + 6 * p1 * y + 2 * p2 * x
    return np.stack([distorted_x, distorted_y], axis=-1), dxx, dxy, dyy


def _ratio(over: Floats, under: Floats) -> Floats:
    """`over` / `under`; 1 at the axis, where both vanish."""
    return np.divide(over, under, out=np.ones_like(under), where=under != 0)


def _at_depth_1(plane: Floats) -> Floats:
    return np.concatenate([plane, np.ones_like(plane[..., :1])], axis=-1)
