"""Descriptors of points of interest (CDFF's FeaturesDescription2D)."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from transect.algorithms.vision.gray_images import gray_of
from transect.algorithms.vision.keypoints import keypoints_of, take_features
from transect.engine import Node, outputs, param
from transect.types import Features2D, Image


@outputs
class Described:
    """Features with descriptors.

    Attributes
    ----------
    features : Features2D
        Those that came, in their order, without those too near to the edge to be described.
    described : float
        Part that was described.
    """

    features: Features2D
    described: float


class FeaturesDescription2D(Node, interface=True):
    """Describes the surroundings of points of interest, so that they can be matched.

    Where the detector gave no direction, the descriptor stands upright: it suits cameras that do not roll.
    """

    def process(self, frame: Image, features: Features2D) -> Described | None:
        kept = self.describe(frame, features)
        if kept is None:
            return self.ctx.skip("no features that can be described")
        return Described(kept, len(kept) / len(features))

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
    """Describe features by an extractor of OpenCV; those without a size have a diameter in pixels."""
    keypoints, descriptors = extractor.compute(gray_of(frame), keypoints_of(features, diameter))
    if not len(keypoints):
        return None
    rows = np.array([keypoint.class_id for keypoint in keypoints], np.int64)
    order = np.argsort(rows, kind="stable")
    return dataclasses.replace(take_features(features, rows[order]), descriptors=descriptors[order])
