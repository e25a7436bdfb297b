"""What is said of heights and distances: spread, bias, and how much is right and how much is there."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.errors import GeometryError
from transect.geometry import robust


@dataclass(frozen=True)
class HeightStatistics:
    """Of height differences, estimate minus reference, in metres.

    Attributes
    ----------
    rmse, mae : float
        Root mean square and mean absolute difference.
    nmad : float
        Normalised median absolute deviation: the standard deviation of the good part.
    p95 : float
        Nineteen of twenty absolute differences are not larger.
    bias : float
        Mean difference.
    count : int
        Cells, or points.
    """

    rmse: float
    mae: float
    nmad: float
    p95: float
    bias: float
    count: int

    @staticmethod
    def of(differences: ArrayLike) -> HeightStatistics:
        """Summarise differences (...); NaN are left out."""
        values = np.asarray(differences, np.float64)
        dz = values[np.isfinite(values)]
        if not len(dz):
            raise GeometryError(
                "the two have no place in common", hint="check frames and reference systems; give the shift"
            )
        size = np.abs(dz)
        return HeightStatistics(
            rmse=float(np.sqrt(np.mean(dz**2))),
            mae=float(size.mean()),
            nmad=float(robust.nmad(dz)),
            p95=float(np.percentile(size, 95)),
            bias=float(dz.mean()),
            count=len(dz),
        )

    def to_dict(self) -> dict[str, float | int]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Score:
    """How much of the truth is there, and how much of the estimate is right, at one distance.

    Attributes
    ----------
    distance : float
        Metres.
    completeness : float
        Part of the truth that has the estimate within the distance.
    accuracy : float
        Part of the estimate that has the truth within the distance.
    """

    distance: float
    completeness: float
    accuracy: float

    @property
    def f_score(self) -> float:
        """Harmonic mean of the two; 0 where nothing meets."""
        total = self.completeness + self.accuracy
        return 2 * self.completeness * self.accuracy / total if total else 0.0


def score_at(distance: float, to_estimate: Floats, to_reference: Floats) -> Score:
    """Return the score at one distance.

    Parameters
    ----------
    to_estimate : (n,)
        Metres from each point of the truth to the estimate; inf where there is none.
    to_reference : (m,)
        Metres from each point of the estimate to the truth.
    """
    if not distance > 0:
        raise GeometryError(f"expected a distance greater than 0, got {distance:g}")
    return Score(distance, float(np.mean(to_estimate <= distance)), float(np.mean(to_reference <= distance)))
