"""Residual radial distortion of both images of a rectified pair, estimated without ground truth.

Distortion that rectification left shortens turns. It is estimated jointly with the other calibration errors
of the pair (`CALIBRATION_ERROR_SIGMAS`), whose effects are similar on a straight road, by least squares in
information form: each frame adds its information on the errors, a Gaussian prior bounds them.

Feature tracking has errors that do not average out, because frames of a drive are similar. They
are a nuisance parameter: the 14 whitened measurements of every frame have a common bias b, estimated jointly
with the errors x,

    y_i = R_i x + b + noise,    b ~ N(0, bias_sigma^2)

with R_i R_i the information of frame i. Many similar frames determine R x + b, but not x; x is
determined by frames in which the motion excites it differently. Frames that do not observe x add
no information on it, and remove none.

Most pairs have few of these errors, and noise in the estimates of the others tilts the path. The prior is
therefore a spike and slab (George and McCulloch 1993): each of `ERROR_GROUPS` is present, with its Gaussian
prior, or exactly zero, either with a probability of one half. What is removed is the posterior mean over all
combinations (Bayesian model averaging, Hoeting et al. 1999): errors that the drive does not determine stay
zero, and those that were found are estimated without the noise of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product

import numpy as np

from transect.base.arrays import Floats
from transect.types import CameraModel, Image

from ..vision.rectification import RemapTables, make_remap_tables, remap
from .stereo_information import (
    CALIBRATION_ERROR_SIGMAS,
    LENS,
    FrameInformation,
    Rig,
    long_run_covariance,
    offset_only,
    pixel_jacobian,
)

ERROR_GROUPS = (
    ("k1", "k2"), ("left p1", "left p2"), ("right k1", "right k2"), ("right p1", "right p2"),
    ("roll",), ("focal",), ("column",), ("principal row",),
)  # fmt: skip
"""Errors with one cause, which are present together, that of radial distortion first; the offsets of
disparities and rows are always present."""


@dataclass(frozen=True)
class LensSettings:
    """Prior of the common bias, and the decision to remove radial distortion."""

    # Prior standard deviation of the common bias, in units of the noise of one frame. Estimates are
    # insensitive to it: between 0.5 and 5, those of KITTI 06 change by at most half a standard deviation.
    bias_sigma: float = 1.0
    min_probability: float = 0.5  # of radial distortion that is removed


DEFAULT_SETTINGS = LensSettings()


@dataclass(frozen=True, eq=False)
class LensEstimate:
    """Residual radial distortion of both images, with the other calibration errors of the pair."""

    errors: Floats  # (14,), to be removed: posterior mean, 0 where radial distortion is improbable
    coefficients: Floats  # (2,), k1 and k2 that fit best if all errors are present
    edge_px: float = 0.0  # their distortion at the left or right edge of the image, whichever is farther
    sigma_px: float = float("inf")  # its standard deviation
    removed_px: float = 0.0  # the part of it that is to be removed
    offset_sigma_px: float = float("inf")  # standard deviation of the disparity offset, all errors free
    probability: float = 0.0  # that there is radial distortion

    @property
    def removed(self) -> Floats:
        """k1 and k2 (2,) that are to be removed."""
        return self.errors[LENS]


def estimate_lens(
    frames: Sequence[FrameInformation], camera: CameraModel, settings: LensSettings = DEFAULT_SETTINGS
) -> LensEstimate:
    """Estimate the radial distortion from many frames, and its uncertainty."""
    if len(frames) < 2:
        return LensEstimate(offset_only(), np.zeros(2))
    scale = np.array(list(CALIBRATION_ERROR_SIGMAS.values()))
    information, vector = combine_information(frames, settings)
    covariance = np.linalg.inv(information + np.eye(len(scale)))
    estimate = covariance @ vector
    by_edge = edge_jacobian(camera) * scale
    errors, probabilities = average_models(information, vector)
    removed = scale * errors if probabilities[0] > settings.min_probability else offset_only()
    return LensEstimate(
        errors=removed,
        coefficients=(scale * estimate)[LENS],
        edge_px=float(by_edge @ estimate),
        sigma_px=float(np.sqrt(by_edge @ covariance @ by_edge)),
        removed_px=float(edge_jacobian(camera) @ removed),
        offset_sigma_px=float(scale[0] * np.sqrt(covariance[0, 0])),
        probability=float(probabilities[0]),
    )


def combine_information(
    frames: Sequence[FrameInformation], settings: LensSettings = DEFAULT_SETTINGS
) -> tuple[Floats, Floats]:
    """Return the information (14, 14) and its vector (14,) of many frames, with the common bias eliminated.

    Both are in units of the prior standard deviations. Consecutive frames see the same points, so their
    errors are correlated: both are divided by the mean ratio of the sandwich covariance to the one without
    correlation.
    """
    k = len(CALIBRATION_ERROR_SIGMAS)
    design = np.zeros((len(frames), k, 2 * k))  # of y by x and by b, both in units of their priors
    design[:, range(k), range(k, 2 * k)] = settings.bias_sigma
    measured = np.zeros((len(frames), k))
    for i, frame in enumerate(frames):
        design[i, :, :k], measured[i] = frame.whitened
    rows = design.reshape(-1, 2 * k)
    normal, right = rows.T @ rows, rows.T @ measured.ravel()
    covariance = np.linalg.inv(normal + np.eye(2 * k))
    scores = np.einsum("nij,ni->nj", design, measured - design @ (covariance @ right))
    sandwich = covariance @ (long_run_covariance(scores) + np.eye(2 * k)) @ covariance
    ratio = np.trace(np.linalg.solve(covariance[:k, :k], sandwich[:k, :k])) / k
    of_bias = np.linalg.solve(normal[k:, k:] + np.eye(k), np.column_stack([normal[k:, :k], right[k:]]))
    both = np.column_stack([normal[:k, :k], right[:k]]) - normal[:k, k:] @ of_bias
    both /= max(float(ratio), 1.0)
    return both[:, :k], both[:, k]


def average_models(information: Floats, vector: Floats) -> tuple[Floats, Floats]:
    """Return the posterior mean (14,) of the errors, and the probability of each of `ERROR_GROUPS`.

    Arguments and errors are in units of the prior standard deviations.
    """
    active, present = _models()
    normal = active[:, :, None] * information * active[:, None, :] + np.eye(len(vector))
    right = active * vector
    means = np.linalg.solve(normal, right[..., None])[..., 0]
    log_evidence = 0.5 * (np.sum(right * means, axis=1) - np.linalg.slogdet(normal)[1])
    weights = np.exp(log_evidence - log_evidence.max())
    weights /= weights.sum()
    return weights @ means, weights @ present


@cache
def _models() -> tuple[Floats, Floats]:
    """Return which errors (256, 14) and which groups (256, 8) are present in each combination of groups."""
    names = list(CALIBRATION_ERROR_SIGMAS)
    present = np.array(list(product((0.0, 1.0), repeat=len(ERROR_GROUPS))))
    active = np.ones((len(present), len(names)))
    for group, is_present in zip(ERROR_GROUPS, present.T, strict=True):
        active[:, [names.index(name) for name in group]] = is_present[:, None]
    return active, present


def edge_jacobian(camera: CameraModel) -> Floats:
    """Return the derivatives (14,) of the distortion at the edge of the image, in px, by the errors."""
    focal = float(camera.K[0, 0])
    radius = max(camera.K[0, 2], camera.width - camera.K[0, 2]) / focal
    jacobian = offset_only()
    jacobian[LENS] = focal * radius**3, focal * radius**5
    return jacobian


def undistort_pair(
    left: Image, right: Image, camera: CameraModel, shift: float, errors: Floats
) -> tuple[Image, Image]:
    """Return the images of a pair without the calibration errors (14,), except its offsets.

    Parameters
    ----------
    camera : CameraModel
        Of the disparity image.
    shift : float
        Distance in pixels by which the principal point of the right image is further left.
    """
    size = left.width, left.height
    tables = _remap_tables(Rig.of(camera), size, shift, tuple(errors.tolist()))
    return remap(left, tables[0]), remap(right, tables[1])


@lru_cache(maxsize=2)
def _remap_tables(
    rig: Rig, size: tuple[int, int], shift: float, errors: tuple[float, ...]
) -> list[RemapTables]:
    """Return the source coordinates of the pixels of the left and of the right image."""
    row, column = np.mgrid[: size[1], : size[0]].reshape(2, -1).astype(np.float64)
    pixels = np.stack([column, row, column + shift, row], axis=1)
    moved = pixel_jacobian(pixels, rig) @ [0.0, 0.0, *errors[2:]]
    across, down = (each.reshape(-1, size[1], size[0]) for each in (moved[:, ::2].T, moved[:, 1::2].T))
    column, row = column.reshape(size[::-1]), row.reshape(size[::-1])
    return [make_remap_tables(column + across[k], row + down[k]) for k in (0, 1)]


def describe_lens(lens: LensEstimate | None) -> str:
    """Return a sentence on what was found and what was done about it."""
    if lens is None or not np.isfinite(lens.sigma_px):
        return "lens: residual distortion is not observable from this drive; none removed"
    found = f"{lens.edge_px:.1f} px (+- {lens.sigma_px:.1f}) of distortion at the edge of the images"
    if not lens.removed.any():
        return f"lens: {found}, with a probability of {lens.probability:.0%}; none removed"
    k1, k2 = lens.removed
    return (
        f"lens: rectification had left {found}; {lens.removed_px:.1f} px removed (k1 = {k1:.4f}, "
        f"k2 = {k2:.4f}), with the other errors of the right camera"
    )
