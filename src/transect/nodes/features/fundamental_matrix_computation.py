"""The fundamental matrix of two images (CDFF's FundamentalMatrixComputation)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.vision.epipolar import (
    epipolar_distances,
    fundamental_by_sampling,
    off_plane,
    refit_fundamental,
)
from transect.algorithms.vision.keypoints import take_matches
from transect.algorithms.vision.triangulation import straighten
from transect.base.arrays import Floats
from transect.engine import Node, Shape, Unit, outputs, param
from transect.types import Correspondences2D


@outputs
class Fundamental:
    """The geometry that matches agree on.

    Attributes
    ----------
    fundamentalMatrix : (3, 3)
        ``x_sink' F x_source = 0`` for pixels (x, y, 1) without lens distortion, of norm 1.
    success : bool
        Without it there are no other outputs.
    inlierMatches : Correspondences2D
        Those that agree, as they came.
    inlierRatio : float
        Their part of all.
    error : float
        Root mean square distance of the inliers from their epipolar lines (Sampson's).
    offPlane : float
        Part of the inliers that a flat scene, or a camera that only turned, does not explain.
    """

    fundamentalMatrix: Annotated[np.ndarray, Shape(3, 3)] | None = None
    success: bool = False
    inlierMatches: Correspondences2D | None = None
    inlierRatio: float | None = None
    error: Annotated[float, Unit("px")] | None = None
    offPlane: float | None = None


class FundamentalMatrixComputation(Node, interface=True):
    """Finds the epipolar geometry of two images from matches, wrong ones among them.

    It fails on too few inliers, and on matches that do not determine the matrix: those of a flat or far
    scene, or of a camera that only turned.
    """

    threshold: float = param(
        1.5,
        gt=0,
        unit="px",
        doc="largest distance of an inlier from its epipolar line: three deviations of 0.5 px",
    )
    least: int = param(15, ge=8, doc="smallest number of inliers")
    share: float = param(0.3, ge=0, le=1, doc="smallest share of the matches that must be inliers")
    off_plane: float = param(
        0.05, ge=0, lt=1, doc="smallest share of the inliers that must lie off any one plane"
    )

    def process(self, matches: Correspondences2D) -> Fundamental:
        seen, source, sink = _pixels(matches)
        if len(seen) < self.least:
            return self._refuse("too few matches")
        matrix = self.compute(source, sink)
        if matrix is None:
            return self._refuse("no fundamental matrix was found")
        distances = np.abs(epipolar_distances(matrix, source, sink))
        rows = np.flatnonzero(distances <= self.threshold)
        ratio = len(rows) / len(matches)
        if len(rows) < self.least or ratio < self.share:
            return self._refuse("too few inliers")
        apart = off_plane(source[rows], sink[rows], self.threshold)
        if apart < self.off_plane or apart * len(rows) < 8:
            return self._refuse("a flat or far scene, or only a turn: the matrix is not determined")
        error = float(np.sqrt(np.mean(distances[rows] ** 2)))
        return Fundamental(
            matrix / np.linalg.norm(matrix), True, take_matches(matches, seen[rows]), ratio, error, apart
        )

    def compute(self, source: Floats, sink: Floats) -> Floats | None:
        """Return the matrix (3, 3) of matched pixels (n, 2) without distortion; None if there is none."""
        raise NotImplementedError

    def _refuse(self, reason: str) -> Fundamental:
        self.ctx.skip(reason)
        return Fundamental()


class FundamentalMatrixRansac(FundamentalMatrixComputation):
    """Samples of seven (Fischler and Bolles 1981), then least squares over all that agree."""

    def compute(self, source: Floats, sink: Floats) -> Floats | None:
        import cv2

        matrix = fundamental_by_sampling(source, sink, cv2.FM_RANSAC, self.threshold)
        return None if matrix is None else refit_fundamental(matrix, source, sink, self.threshold)


class FundamentalMatrixMagsac(FundamentalMatrixComputation):
    """MAGSAC++ (Barath et al. 2020): weighs over all thresholds up to the given one."""

    def compute(self, source: Floats, sink: Floats) -> Floats | None:
        import cv2

        return fundamental_by_sampling(source, sink, cv2.USAC_MAGSAC, self.threshold)


def _pixels(matches: Correspondences2D) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Return the rows that the lenses can have seen, and their pixels without distortion."""
    source = straighten(matches.source, matches.source_camera)
    sink = straighten(matches.sink, matches.sink_camera)
    seen = np.flatnonzero(np.isfinite(np.concatenate([source, sink], axis=1)).all(axis=1))
    return seen, source[seen], sink[seen]
