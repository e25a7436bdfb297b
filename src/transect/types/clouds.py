"""Points, scans, spectra and grids: what sees the shape of the world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Mask

from ._fields import NOWHERE, FromColumns, columns
from .returns import Errors, find_returns


def _no_fields() -> dict[str, NDArray[Any]]:
    return {}


@dataclass(frozen=True, eq=False)
class PointCloud:
    """Points in one frame.

    Attributes
    ----------
    points : (n, 3) float array
        x, y, z in metres, in `frame`; NaN rows are beams without a return.
    fields : mapping of str to (n,) or (n, k) array
        Whatever else the sensor gave: `intensity` (0-255 or 0-1 as recorded), `ring`, `rgb` (n, 3) uint8,
        `normal` (n, 3), `t_offset_ns` (int64, time of each point after `t_ns`), ...
    viewpoint : (7,) array or None
        Sensor pose x y z qx qy qz qw in `frame` at acquisition, where the file has one.
    """

    points: NDArray[Any]
    fields: Mapping[str, NDArray[Any]] = field(default_factory=_no_fields)
    t_ns: int = 0
    frame: str = NOWHERE
    viewpoint: Floats | None = None

    def __len__(self) -> int:
        return int(self.points.shape[0])


@dataclass(frozen=True, eq=False)
class LaserScan(FromColumns):
    """One sweep of a planar laser.

    Attributes
    ----------
    ranges : (n,) float array
        Metres; NaN where none was measured. Numbers may lie outside the limits: see `measured`, `returned`.
    start_angle, angle_increment : float
        Radians; beam i points at ``start_angle + i * angle_increment`` in the scan plane of `frame`,
        from its x axis towards its y axis.
    remission : (n,) float array or None
        Returned intensity as the sensor scales it.
    range_min, range_max : float or None
        Metres; limits of the sensor, where the log has them.
    time_increment : float or None
        Seconds from one beam to the next, where the log has it; `t_ns` is the time of the first beam.
    range_error : (n,) int array or None
        What the sensor said instead of a range, 0 where it measured one; see `types.returns`.
    """

    ranges: Floats = columns("ranges", unit="m", form="list")
    start_angle: float = columns("start_angle", unit="rad")
    angle_increment: float = columns("angle_increment", unit="rad")
    remission: Floats | None = columns("remission", optional=True, form="list")
    range_min: float | None = columns("range_min", unit="m", optional=True)
    range_max: float | None = columns("range_max", unit="m", optional=True)
    range_error: Errors | None = columns("range_error", optional=True, form="list")
    time_increment: float | None = columns("time_increment", unit="s", optional=True)
    t_ns: int = 0
    frame: str = NOWHERE

    @property
    def angles(self) -> Floats:
        """(n,) beam angles in radians."""
        return self.start_angle + self.angle_increment * np.arange(len(self.ranges), dtype=np.float64)

    def returned(self, nearest: float = 0.0, farthest: float = np.inf) -> Mask:
        """Return (n,) which beams came back: between the sensor's own limits and those that are given, m."""
        low, high = max(nearest, self.range_min or 0.0), min(farthest, self.range_max or np.inf)
        return find_returns(self.ranges, low, high)

    @property
    def measured(self) -> Floats:
        """(n,) ranges in metres, NaN for all beams that did not come back."""
        return np.where(self.returned(), self.ranges, np.nan)


@dataclass(frozen=True, eq=False)
class RadarSpectrum(FromColumns):
    """Reflectivity against range at one bearing, or a whole polar image.

    Attributes
    ----------
    reflectivity : (bins,) or (bearings, bins) array
        As the radar scales it (ACFR: dB per FFT bin; Navtech: 0-255).
    angle : float or (bearings,) array
        Bearing of the beam, radians.
    bin_width, range_offset : float
        Metres: range of bin i, counted from 1, is ``i * bin_width + range_offset`` (document 004, eq. 1).
    """

    reflectivity: NDArray[Any] = columns("reflectivity", form="numbers")
    angle: float | Floats = columns("angle", unit="rad", form="numbers")
    bin_width: float = columns("bin_width", unit="m")
    range_offset: float = columns("range_offset", unit="m")
    t_ns: int = 0
    frame: str = NOWHERE

    @property
    def ranges(self) -> Floats:
        """(bins,) range of each bin in metres."""
        bins = self.reflectivity.shape[-1]
        return np.arange(1, bins + 1) * self.bin_width + self.range_offset


@dataclass(frozen=True, eq=False)
class RadarRange(FromColumns):
    """The strongest target at one bearing.

    Attributes
    ----------
    range : float
        Metres.
    angle : float
        Bearing of the beam, radians.
    reflectivity : float
        As the radar scales it.
    """

    range: float = columns("range", unit="m")
    angle: float = columns("angle", unit="rad")
    reflectivity: float = columns("reflectivity")
    t_ns: int = 0
    frame: str = NOWHERE


@dataclass(frozen=True, eq=False)
class GridMap:
    """A raster over a plane: a height map (DEM) or any other layers.

    Attributes
    ----------
    layers : mapping of str to (rows, cols) array
        `elevation` in metres, and others; NaN where not measured.
    transform : (6,) tuple
        Affine a b c d e f of a cell's corner: ``x = a * col + b * row + c``, ``y = d * col + e * row + f``.
    crs : str
        Coordinate reference system ("EPSG:32633", WKT) or "" for a local frame.
    frame : str
        Frame of x, y, z for a local map. With a reference system too, x and y are the same in both.
    """

    layers: Mapping[str, NDArray[Any]]
    transform: tuple[float, float, float, float, float, float]
    crs: str = ""
    frame: str = NOWHERE
    t_ns: int = 0

    @property
    def resolution(self) -> tuple[float, float]:
        """Cell size along columns and rows, in units of the CRS."""
        a, b, _, d, e, _ = self.transform
        return float(np.hypot(a, d)), float(np.hypot(b, e))


DEM = GridMap
