"""Radial distortion that rectification left in both images, found without truth.

A lens that rectification did not straighten makes turns too short. It shows itself as an offset does, but
much else in a pair can be wrong and looks alike on a straight street, where a pixel always sees the same
depth. So the lens is what remains when the other faults of the right camera (`FAULTS`) may be what they like;
the rows of the right image, which must agree with those of the left one, tell most of them. It is believed
only where that leaves it known to a pixel at the edge of the image: turns tell it, a straight street does
not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from transect.base.arrays import Floats
from transect.nodes.image._lens import Tables, tables_from, warp
from transect.types import CameraModel, Image

from .evidence import FAULTS, LENS, Evidence, Rig, bends, faults_of, long_run_covariance

RADII = np.linspace(0.2, 1.0, 9)
"""Of the distance from the centre to the edge: where a lens is judged."""
LENS_KNOWN, LENS_BIAS = 1.0, 0.5
"""Pixels at the edge: standard deviation up to which a lens is believed; what tracking may feign of one."""
ALIKE = 0.2
"""Of the error of one frame: what all frames have in common. Rows of plants feigned a lens of 5 px in ninety
frames of which none could tell it; no number of frames takes that out."""


@dataclass(frozen=True, eq=False)
class LensEstimate:
    """Radial distortion that rectification left in both images, and what else is wrong with the pair.

    Attributes
    ----------
    faults : (14,)
        All of `FAULTS`, as far as they are believed; 0 where the lens is not.
    found : (2,)
        k1 and k2 that fit best.
    edge_px, sigma_px : float
        By how many pixels that bends the image at its left and right edge, and the standard deviation;
        infinite where nothing is known.
    offset_sigma_px : float
        Standard deviation of the offset if all other faults are free, pixels.
    """

    faults: Floats
    found: Floats
    edge_px: float = 0.0
    sigma_px: float = float("inf")
    offset_sigma_px: float = float("inf")

    @property
    def coefficients(self) -> Floats:
        """k1 and k2 (2,) as far as they are believed."""
        return self.faults[LENS]


def estimate_lens(evidence: Sequence[Evidence], camera: CameraModel) -> LensEstimate:
    """Return the radial distortion that many frames agree on, and how far it is believed."""
    if len(evidence) < 2:
        return LensEstimate(faults_of(), np.zeros(2))
    usual = np.diag(np.array(list(FAULTS.values())) ** -2.0)
    information = np.sum([each.information for each in evidence], axis=0) + usual
    covariance = np.linalg.inv(information)
    faults = covariance @ np.sum([each.wanted for each in evidence], axis=0)
    scores = np.array([each.wanted - each.information @ faults for each in evidence])
    spread = covariance @ (long_run_covariance(scores) + usual) @ covariance
    return _believe(faults, np.stack([covariance, spread]), camera, 1 + len(evidence) * ALIKE**2)


def _believe(faults: Floats, covariances: Floats, camera: CameraModel, wider: float) -> LensEstimate:
    """Judge k1 and k2 by what they do to pixels; the larger of the covariances (n, 14, 14) counts.

    `wider` is how many times larger the variance of the lens is than if frames erred by themselves. The other
    faults are believed as far as the lens: a drive that tells the lens apart tells them too.
    """
    lens, of_lens = faults[LENS], covariances[:, LENS, LENS]
    focal = float(camera.K[0, 0])
    radius = RADII * max(camera.K[0, 2], camera.width - camera.K[0, 2]) / focal
    bent_by = focal * np.stack([radius**3, radius**5], axis=1)
    bent, sigma = bent_by @ lens, float(np.sqrt(wider * (bent_by[-1] @ of_lens @ bent_by[-1]).max()))
    most, doubt = float(np.abs(bent).max()), 2 * float(np.hypot(sigma, LENS_BIAS))
    share = 1 - (doubt / most) ** 2 if most > doubt and sigma <= LENS_KNOWN else 0.0
    offset_sigma = float(np.sqrt(covariances[:, 0, 0].max()))
    return LensEstimate(share * faults, lens, float(bent[-1]), sigma, offset_sigma)


def straighten_pair(
    left: Image, right: Image, camera: CameraModel, shift: float, faults: Floats
) -> tuple[Image, Image]:
    """Return the images of a pair without `faults` (14,); an offset of columns and rows is left in.

    Parameters
    ----------
    camera : CameraModel
        Of the disparity image.
    shift : float
        Pixels by which the principal point of the right image is further left.
    """
    size = left.width, left.height
    tables = _tables(Rig.of(camera), size, shift, tuple(faults.tolist()))
    return warp(left, tables[0]), warp(right, tables[1])


@lru_cache(maxsize=2)
def _tables(rig: Rig, size: tuple[int, int], shift: float, faults: tuple[float, ...]) -> list[Tables]:
    """Return where the pixels of the left and of the right image come from."""
    row, column = np.mgrid[: size[1], : size[0]].reshape(2, -1).astype(np.float64)
    moved = bends(np.stack([column, row, column + shift, row], axis=1), rig) @ [0.0, 0.0, *faults[2:]]
    across, down = (each.reshape(-1, size[1], size[0]) for each in (moved[:, ::2].T, moved[:, 1::2].T))
    column, row = column.reshape(size[::-1]), row.reshape(size[::-1])
    return [tables_from(column + across[k], row + down[k]) for k in (0, 1)]


def describe_lens(lens: LensEstimate | None) -> str:
    """Say what was done about a lens, and why."""
    if lens is None or lens.sigma_px > LENS_KNOWN:
        known = "" if lens is None else f": known to {lens.sigma_px:.1f} px at the edge of the image"
        return f"lens: the drive cannot tell whether rectification left any distortion{known}; none removed"
    if not lens.coefficients.any():
        return f"lens: the images are straight to {max(abs(lens.edge_px), lens.sigma_px):.1f} px"
    k1, k2 = lens.coefficients
    return (
        f"lens: rectification had left {lens.edge_px:.1f} px (+- {lens.sigma_px:.1f}) of distortion at the "
        f"edge of the images; k1 = {k1:.4f}, k2 = {k2:.4f} removed, and what the right camera has besides"
    )
