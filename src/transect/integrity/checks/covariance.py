"""E02: can declared covariances and standard deviations be ones."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.integrity.checks._declared import Declaring, deviation_columns, matrix_columns
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.windows import Window
from transect.types import RigidBodyState

ASYMMETRY = 1e-3
"""Difference of two correlations that should be one: numbers are printed with a few digits."""
NEGATIVE = 1e-3
"""Eigenvalue of a matrix of correlations, below zero, that rounding explains."""


class Covariance(Check, id="E02", group="state", k_on=1, k_off=1, version=3):
    """Part of the samples whose covariance is none: finite, symmetric, ``min eig >= -1e-3``, not zero.

    Eigenvalues are those of the correlations: metres and radians count alike. Standard deviations must be
    positive. A covariance of zeros from the first sample on, one that begins with -1, or one of unknown
    type is not declared (ROS), but that of a navigation system must be. If even the smallest deviation of a
    sample is larger than `huge` nothing is meant by it; single numbers of 1e6 are a usual way to say that a
    component is not known.

    Motive: Document 004 has a covariance of 144 numbers in each line of Nav.
    """

    share = Limit(0.0, 0.01, "COV_INVALID", "", "part of the samples with an impossible covariance")
    huge = Limit(200.0, 1000.0, "COV_INVALID", "", "smallest deviation of a sample, in its own unit")

    def reset(self) -> None:
        """Nothing was declared yet."""
        self._declared = set[str]()

    def look(self, stream: Window[Declaring]) -> Finding | Unknown:
        """Judge every covariance and standard deviation of the window."""
        wrong, smallest = np.zeros(len(stream), np.bool_), np.full(len(stream), np.inf)
        is_declared, evidence = False, {"constant": 1.0}
        zero = issubclass(stream.stream.type, RigidBodyState)
        for name, size in matrix_columns(stream).items():
            matrices = stream.array(name).reshape(-1, size, size)
            said = ~np.isnan(matrices).all(axis=(1, 2)) & (matrices[:, 0, 0] != -1.0)
            if stream.has(f"{name}_type"):  # 0: of unknown type (ROS)
                said &= np.asarray(stream.column(f"{name}_type")) > 0
            if np.any(matrices[said]) or zero:
                self._declared.add(name)
            if name not in self._declared or not said.any():
                continue
            wrong |= said & _is_impossible(matrices)
            variances = np.diagonal(matrices, axis1=1, axis2=2)
            smallest[said] = np.minimum(smallest[said], np.sqrt(_least_positive(variances[said])))
            is_declared = True
            evidence["constant"] *= float((matrices[said] == matrices[said][0]).all())
        for name in deviation_columns(stream):
            sigma = stream.column(name).astype(np.float64)
            said = ~np.isnan(sigma)
            if said.any():
                wrong |= said & ~((sigma > 0) & np.isfinite(sigma))
                smallest[said] = np.minimum(smallest[said], _least_positive(sigma[said, None]))
                is_declared = True
                evidence["constant"] *= float((sigma[said] == sigma[said][0]).all())
        if not is_declared:
            return Unknown("NOT_DECLARED", "it does not say how uncertain it is", len(stream))
        known = smallest[np.isfinite(smallest)]
        least = float(np.median(known)) if known.size else np.nan
        return Finding({"share": float(wrong.mean()), "huge": least}, len(stream), evidence)


def _least_positive(values: Floats) -> Floats:
    """Return the smallest positive number of each row; infinite where there is none."""
    return np.min(np.where(values > 0, values, np.inf), axis=1)


def _is_impossible(matrices: Floats) -> Mask:
    """Return which matrices (n, k, k) are no covariances; rows and columns of NaN were not estimated."""
    variances = np.diagonal(matrices, axis1=1, axis2=2)
    absent = np.isnan(variances)
    outside = absent[:, :, None] | absent[:, None, :]
    kept = np.where(outside, 0.0, matrices)
    finite: Mask = np.asarray(np.isfinite(kept).all(axis=(1, 2)))
    kept = np.where(finite[:, None, None], kept, 0.0)
    variances = np.diagonal(kept, axis1=1, axis2=2)
    scale = np.sqrt(np.where(variances > 0, variances, 1.0))
    correlations = kept / scale[:, :, None] / scale[:, None, :]
    size = np.maximum(np.abs(correlations).max(axis=(1, 2)), 1.0)
    skew = np.abs(correlations - correlations.transpose(0, 2, 1)).max(axis=(1, 2)) > ASYMMETRY * size
    lowest = np.asarray(np.linalg.eigvalsh((correlations + correlations.transpose(0, 2, 1)) / 2))[:, 0]
    return ~finite | skew | (lowest < -NEGATIVE) | (variances < 0).any(axis=1) | ~np.any(kept, axis=(1, 2))
