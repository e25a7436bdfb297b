"""What is said of a set of errors."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from transect.geometry import robust


@dataclass(frozen=True)
class Statistics:
    """Of errors, in their unit; NaN where there are none.

    Attributes
    ----------
    sse : float
        Sum of squares.
    """

    rmse: float
    mean: float
    median: float
    std: float
    min: float
    max: float
    sse: float
    count: int

    @staticmethod
    def of(errors: NDArray[np.float64]) -> Statistics:
        """Summarise (n,) errors."""
        n = len(errors)
        if not n:
            nan = float("nan")
            return Statistics(nan, nan, nan, nan, nan, nan, 0.0, 0)
        squares = float(np.sum(np.square(errors)))
        return Statistics(
            rmse=float(np.sqrt(squares / n)),
            mean=float(np.mean(errors)),
            median=float(robust.median(errors)),
            std=float(np.std(errors)),
            min=float(np.min(errors)),
            max=float(np.max(errors)),
            sse=squares,
            count=n,
        )

    def to_dict(self) -> dict[str, float | int]:
        """Return plain values."""
        return asdict(self)
