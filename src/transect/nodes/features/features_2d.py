"""Keypoints of images and their descriptors (CDFF's FeaturesExtraction2D and FeaturesDescription2D)."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.vision.features import (
    features_from_keypoints,
    grid_coverage,
    keypoints_from_features,
    order_by_cell,
    select_features,
)
from transect.algorithms.vision.image_conversion import gray_of, mask_of
from transect.engine import Node, outputs, param
from transect.types import Features2D, Image


@outputs
class ExtractedFeatures:
    """Features of an image and their coverage."""

    features: Features2D  # best first, or the best of each cell if `cell` is not 0; may include descriptors
    coverage: float  # ratio of the cells of the image, 6 rows by 8 columns, that contain a feature


class FeaturesExtraction2D(Node, interface=True):
    """Keypoints of an image of any mode."""

    count: int = param(1000, ge=1, doc="largest number of features per image")
    cell: int = param(
        64,
        ge=0,
        unit="px",
        doc="side length of the squares that share the features evenly; 0: the best of the whole image",
    )

    def process(self, frame: Image) -> ExtractedFeatures | None:
        found = self.detect(frame)
        if not len(found) or found.response is None:
            return self.ctx.skip("no keypoints: too dark, blurred or without texture")
        selected = select_features(
            found, order_by_cell(found.points, found.response, self.cell)[: self.count]
        )
        return ExtractedFeatures(selected, grid_coverage(selected.points, frame))

    def detect(self, frame: Image) -> Features2D:
        """Return all features of a frame with their response."""
        raise NotImplementedError


class HarrisDetector2D(FeaturesExtraction2D):
    """Corners of Harris and Stephens (1988) with subpixel refinement; without descriptors."""

    quality: float = param(
        0.01, gt=0, lt=1, doc="smallest corner response, relative to the best response in the image"
    )
    distance: float = param(5.0, ge=1, unit="px", doc="smallest distance between two features")
    block: int = param(
        3, ge=2, unit="px", doc="side length of the neighbourhood over which gradients are summed"
    )
    k: float = param(0.04, gt=0, lt=0.25, doc="free parameter k of the Harris response")

    def detect(self, frame: Image) -> Features2D:
        import cv2

        cv: Any = cv2  # its stubs know no mask of None
        gray = gray_of(frame)
        points, response = cv.goodFeaturesToTrackWithQuality(
            gray,
            0,
            self.quality,
            self.distance,
            mask_of(frame),
            blockSize=self.block,
            useHarrisDetector=True,
            k=self.k,
        )
        if points is None or not len(points):
            return features_from_keypoints((), None, frame)
        until = (cv.TERM_CRITERIA_EPS | cv.TERM_CRITERIA_MAX_ITER, 20, 0.01)
        window = (self.block + 1, self.block + 1)
        fine: NDArray[np.float32] = cv.cornerSubPix(gray, points.copy(), window, (-1, -1), until)
        # A corner that moved further than its window slid along an edge; its refinement is discarded.
        slid = np.abs(fine - points).max(axis=2, keepdims=True) > self.block + 1
        placed = np.where(slid, points, fine).reshape(-1, 2)
        return Features2D(
            placed,
            np.ravel(response).astype(np.float32),
            t_ns=frame.t_ns,
            frame=frame.frame,
            camera=frame.camera,
        )


class OrbDetectorDescriptor(FeaturesExtraction2D):
    """Oriented FAST corners with binary descriptors (Rublee et al. 2011)."""

    threshold: int = param(
        20,
        ge=1,
        le=255,
        doc="smallest difference in grey levels between a corner and the ring around it (FAST)",
    )
    levels: int = param(8, ge=1, doc="number of levels of the image pyramid")
    scale: float = param(1.2, gt=1, doc="scale factor from one level of the image pyramid to the next")

    def detect(self, frame: Image) -> Features2D:
        import cv2

        # Twice as many, so that every cell has a choice.
        orb = cv2.ORB.create(2 * self.count, self.scale, self.levels, fastThreshold=self.threshold)
        return _detect_with(orb, frame)


class SiftDetectorDescriptor(FeaturesExtraction2D):
    """Scale-invariant blobs with gradient histograms (Lowe 2004)."""

    contrast: float = param(0.04, gt=0, doc="smallest contrast of a feature")
    edge: float = param(
        10.0, gt=1, doc="largest ratio of the two principal curvatures of a feature; more is an edge"
    )

    def detect(self, frame: Image) -> Features2D:
        import cv2

        sift = cv2.SIFT.create(2 * self.count, contrastThreshold=self.contrast, edgeThreshold=self.edge)
        return _detect_with(sift, frame)


class AkazeDetectorDescriptor(FeaturesExtraction2D):
    """Blobs in a scale space that keeps edges, with binary descriptors (Alcantarilla et al. 2013)."""

    threshold: float = param(0.001, gt=0, doc="smallest response of a feature")

    def detect(self, frame: Image) -> Features2D:
        import cv2

        return _detect_with(cv2.xfeatures2d.AKAZE.create(threshold=self.threshold), frame)


def _detect_with(detector: Any, frame: Image) -> Features2D:
    keypoints, descriptors = detector.detectAndCompute(gray_of(frame), mask_of(frame))
    return features_from_keypoints(keypoints, descriptors, frame)


@outputs
class DescribedFeatures:
    """Features with descriptors."""

    features: Features2D  # in the order of the input, without those too near to the edge
    described: float  # ratio of the features that were described


class FeaturesDescription2D(Node, interface=True):
    """Computes descriptors of keypoints, for matching.

    Without an angle from the detector, descriptors are upright, which suits cameras that do not roll.
    """

    def process(self, frame: Image, features: Features2D) -> DescribedFeatures | None:
        kept = self.describe(frame, features)
        if kept is None:
            return self.ctx.skip("no features that can be described")
        return DescribedFeatures(kept, len(kept) / len(features))

    def describe(self, frame: Image, features: Features2D) -> Features2D | None:
        """Return the features that can be described, with descriptors, in their order; None if none can."""
        raise NotImplementedError


class OrbDescriptor(FeaturesDescription2D):
    """Binary comparisons along the direction of the feature (Rublee et al. 2011), 32 bytes."""

    patch: int = param(31, ge=5, unit="px", doc="side length of the square that is described")

    def describe(self, frame: Image, features: Features2D) -> Features2D | None:
        import cv2

        orb = cv2.ORB.create(nlevels=1, patchSize=self.patch, edgeThreshold=self.patch)
        return _describe_with(orb, frame, features, float(self.patch))


class SiftDescriptor(FeaturesDescription2D):
    """Histograms of gradients (Lowe 2004), 128 numbers."""

    diameter: float = param(
        6.0,
        gt=0,
        unit="px",
        doc="diameter of features without a size; the described area is six times as wide",
    )

    def describe(self, frame: Image, features: Features2D) -> Features2D | None:
        import cv2

        return _describe_with(cv2.SIFT.create(), frame, features, self.diameter)


def _describe_with(extractor: Any, frame: Image, features: Features2D, diameter: float) -> Features2D | None:
    """Describe features by an OpenCV extractor; `diameter` in pixels is used for those without a size."""
    keypoints, descriptors = extractor.compute(gray_of(frame), keypoints_from_features(features, diameter))
    if not len(keypoints):
        return None
    rows = np.array([keypoint.class_id for keypoint in keypoints], np.int64)
    order = np.argsort(rows, kind="stable")
    return dataclasses.replace(select_features(features, rows[order]), descriptors=descriptors[order])
