"""Point clouds, laser scans, radar spectra and grid maps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Mask

from ._fields import NOWHERE, FromColumns, columns


def _no_fields() -> dict[str, NDArray[Any]]:
    return {}


@dataclass(frozen=True, eq=False)
class PointCloud:
    """Points in one frame."""

    points: NDArray[Any]  # (n, 3) float: x, y, z in metres, in `frame`; NaN rows are beams without a return
    # Other values per point, (n,) or (n, k): `intensity` (0-255 or 0-1 as recorded), `ring`, `rgb` (n, 3)
    # uint8, `normal` (n, 3), `t_offset_ns` (int64, time of each point after `t_ns`), ...
    fields: Mapping[str, NDArray[Any]] = field(default_factory=_no_fields)
    t_ns: int = 0
    frame: str = NOWHERE
    # (7,) sensor pose x y z qx qy qz qw in `frame` at acquisition, if the file has one
    viewpoint: Floats | None = None

    def __len__(self) -> int:
        return int(self.points.shape[0])


@dataclass(frozen=True, eq=False)
class LaserScan(FromColumns):
    """One sweep of a planar laser.

    Beam i points at ``start_angle + i * angle_increment`` in the scan plane of `frame`, measured from its x
    axis towards its y axis. The time of the first beam is `t_ns`.
    """

    # (n,); NaN if nothing was measured. Values may exceed the limits: see `measured` and `returned`
    ranges: Floats = columns("ranges", unit="m", form="list")
    start_angle: float = columns("start_angle", unit="rad")  # Direction of the first beam
    angle_increment: float = columns("angle_increment", unit="rad")  # Angle between successive beams
    # (n,) returned intensity as the sensor scales it
    remission: Floats | None = columns("remission", optional=True, form="list")
    range_min: float | None = columns("range_min", unit="m", optional=True)  # Limit of the sensor, if logged
    range_max: float | None = columns("range_max", unit="m", optional=True)  # Limit of the sensor, if logged
    # (n,) error code of the sensor, 0 for a measured range; see `types.returns`
    range_error: NDArray[np.uint16] | None = columns("range_error", optional=True, form="list")
    # Time between successive beams, if logged
    time_increment: float | None = columns("time_increment", unit="s", optional=True)
    t_ns: int = 0
    frame: str = NOWHERE

    @property
    def angles(self) -> Floats:
        """(n,) beam angles in radians."""
        return self.start_angle + self.angle_increment * np.arange(len(self.ranges), dtype=np.float64)

    def returned(self, nearest: float = 0.0, farthest: float = np.inf) -> Mask:
        """Return (n,) which beams have a range inside both the sensor's limits and the given ones, in m."""
        low, high = max(nearest, self.range_min or 0.0), min(farthest, self.range_max or np.inf)
        from .returns import find_returns  # needed to tell returns apart, not to read scans

        return find_returns(self.ranges, low, high)

    @property
    def measured(self) -> Floats:
        """(n,) ranges in metres, NaN for all beams without a return."""
        return np.where(self.returned(), self.ranges, np.nan)


@dataclass(frozen=True, eq=False)
class RadarSpectrum(FromColumns):
    """Reflectivity against range at one bearing, or a whole polar image.

    The range of bin i, counted from 1, is ``i * bin_width + range_offset`` (Marulan description, eq. 1).
    """

    # (bins,) or (bearings, bins), as the radar scales it (ACFR: dB per FFT bin; Navtech: 0-255)
    reflectivity: NDArray[Any] = columns("reflectivity", form="numbers")
    angle: float | Floats = columns("angle", unit="rad", form="numbers")  # Bearing, or (bearings,)
    bin_width: float = columns("bin_width", unit="m")  # Range step between bins
    range_offset: float = columns("range_offset", unit="m")  # Added to every range
    t_ns: int = 0
    frame: str = NOWHERE

    @property
    def ranges(self) -> Floats:
        """(bins,) range of each bin in metres."""
        bins = self.reflectivity.shape[-1]
        return np.arange(1, bins + 1) * self.bin_width + self.range_offset


@dataclass(frozen=True, eq=False)
class RadarRange(FromColumns):
    """The strongest target at one bearing."""

    range: float = columns("range", unit="m")  # Distance of the target
    angle: float = columns("angle", unit="rad")  # Bearing of the beam
    reflectivity: float = columns("reflectivity")  # As the radar scales it
    t_ns: int = 0
    frame: str = NOWHERE


@dataclass(frozen=True, eq=False)
class GridMap:
    """A raster over a plane: a height map (DEM) or any other layers.

    The affine `transform` a b c d e f gives the corner of a cell: ``x = a * col + b * row + c`` and
    ``y = d * col + e * row + f``.
    """

    layers: Mapping[
        str, NDArray[Any]
    ]  # (rows, cols) each: `elevation` in metres, and others; NaN if not measured
    transform: tuple[float, float, float, float, float, float]  # Affine transform of columns and rows
    crs: str = ""  # Coordinate reference system ("EPSG:32633", WKT), "" for a local frame
    frame: str = NOWHERE  # Frame of x, y, z of a local map; if `crs` is given too, x and y are equal in both
    t_ns: int = 0

    @property
    def resolution(self) -> tuple[float, float]:
        """Cell size along columns and rows, in units of the CRS."""
        a, b, _, d, e, _ = self.transform
        return float(np.hypot(a, d)), float(np.hypot(b, e))


DEM = GridMap
