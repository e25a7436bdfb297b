"""Georeferencing of a local frame, from a track in that frame and satellite fixes at the same times.

The frame is level: it differs from east and north by a rotation about the vertical and a translation. Both
are estimated by iteratively reweighted least squares with Cauchy weights (Holland and Welsch, Communications
in Statistics 6(9), 1977), which are robust against single wrong fixes.
"""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.geometry import geodesy, robust


@dataclass(frozen=True)
class EarthFrameSettings:
    """Settings of the robust fit of a track to satellite fixes."""

    min_fixes: int = 5
    min_extent_m: float = 1.0  # a shorter track does not determine the rotation
    # RMS residual over the length of the track above which track and fixes are not of the same motion.
    max_residual_ratio: float = 0.2
    cauchy_constant: float = 2.385  # 95 % efficiency for normally distributed residuals
    min_scale_m: float = 1e-4  # of the residuals: coordinates in degrees are rounded
    iterations: int = 30


@dataclass(frozen=True)
class EarthFrame:
    """A level local frame on the WGS 84 ellipsoid."""

    latitude: float  # of the origin, rad
    longitude: float  # rad
    height: float  # of z = 0 above the ellipsoid, m; NaN if the fixes have no heights
    turn: float  # angle from east to the x axis, counter-clockwise, rad
    residual: float  # RMS horizontal residual of the fixes, m
    sigma: float  # horizontal standard deviation at the middle of the track, m
    sigma_turn: float  # rad
    fixes: int

    def crs(self, name: str) -> str:
        """Return a coordinate reference system (WKT) whose x and y are those of the frame.

        It is an oblique Mercator projection centred at the origin, with its grid rotated by `turn`, and
        scaled from the ellipsoid to the height of the frame.
        """
        from pyproj import CRS

        azimuth = 45.0  # degrees, of the initial line: arbitrary, but 0 and 90 are singular
        height = self.height if math.isfinite(self.height) else 0.0
        described = CRS.from_dict(
            {
                "proj": "omerc",
                "lat_0": math.degrees(self.latitude),
                "lonc": math.degrees(self.longitude),
                "alpha": azimuth,
                "gamma": azimuth + math.degrees(self.turn),
                "k": 1 + height / _gaussian_radius(self.latitude),
                "x_0": 0,
                "y_0": 0,
                "datum": "WGS84",
                "units": "m",
            }
        ).to_json_dict()
        return CRS.from_json_dict({**described, "name": name}).to_wkt()


def find_earth_frame(
    track: Floats,
    fixes: Floats,
    sigmas: Floats | None = None,
    settings: EarthFrameSettings = EarthFrameSettings(),
) -> EarthFrame | None:
    """Estimate the position and heading of the frame of a track; None if the fixes do not determine them.

    Parameters
    ----------
    track : (n, 3)
        Positions of the antenna in the frame (m); rows with NaN are left out.
    fixes : (n, 3)
        The fixes at the same times: latitude and longitude (rad), height (m, may be NaN).
    sigmas : (n,), optional
        Horizontal standard deviations of the fixes (m); all fixes are weighted equally if one is not known.
    """
    known = np.isfinite(track).all(axis=1) & np.isfinite(fixes[:, :2]).all(axis=1)
    if known.sum() < settings.min_fixes:
        return None
    track, fixes = track[known], fixes[known]
    sigma = np.ones(len(track)) if sigmas is None else sigmas[known]
    if not (np.isfinite(sigma) & (sigma > 0)).all():
        sigma = np.ones(len(track))
    origin = np.array([*fixes[0, :2], 0.0])
    ground = np.column_stack([fixes[:, :2], np.zeros(len(fixes))])
    local = geodesy.local_from_geodetic(ground, origin)
    # Fixes were projected onto the ellipsoid, where distances are shorter than at their height.
    height = float(robust.median(fixes[:, 2] - track[:, 2]))
    scale = 1 + (height if math.isfinite(height) else 0.0) / _gaussian_radius(float(origin[0]))
    source, target = track[:, 0] + 1j * track[:, 1], scale * (local[:, 0] + 1j * local[:, 1])
    if max(np.ptp(target.real), np.ptp(target.imag)) < settings.min_extent_m:
        return None

    weights = base = 1 / sigma**2
    for _ in range(settings.iterations):
        middle_source, middle_target, turn = _fit(source, target, weights)
        residuals = target - middle_target - np.exp(1j * turn) * (source - middle_source)
        spread = np.abs(residuals) / sigma
        unit = max(
            float(robust.median(spread)) / math.sqrt(2 * math.log(2)),
            settings.min_scale_m / float(sigma.min()),
        )
        weights = base / (1 + (spread / (settings.cauchy_constant * unit)) ** 2)
    middle_source, middle_target, turn = _fit(source, target, weights)
    residuals = target - middle_target - np.exp(1j * turn) * (source - middle_source)
    residual = math.sqrt(float(np.average(np.abs(residuals) ** 2, weights=weights)))
    length = min(float(np.abs(np.diff(each)).sum()) for each in (source, target))
    if residual > settings.max_residual_ratio * length:
        return None

    per_axis = residual / math.sqrt(2 * _independent(residuals))
    extent = math.sqrt(float(np.average(np.abs(source - middle_source) ** 2, weights=weights)))
    at = (middle_target - cmath.rect(1.0, turn) * middle_source) / scale
    latitude, longitude, _ = geodesy.geodetic_from_local(np.array([at.real, at.imag, 0.0]), origin).tolist()
    return EarthFrame(
        latitude,
        longitude,
        height,
        turn,
        residual,
        per_axis * math.sqrt(2),
        per_axis / max(extent, 1e-9),
        len(track),
    )


def _fit(source: np.ndarray, target: np.ndarray, weights: Floats) -> tuple[complex, complex, float]:
    """Return the weighted centroids of complex points (n,), and the angle (rad) from source to target."""
    middles = [complex(np.average(each, weights=weights)) for each in (source, target)]
    cross = np.sum(weights * np.conj(source - middles[0]) * (target - middles[1]))
    return middles[0], middles[1], float(np.angle(cross))


def _independent(residuals: np.ndarray) -> float:
    """Return the number of independent samples in residuals (n,) of a first-order autoregressive process."""
    power = float(np.sum(np.abs(residuals) ** 2))
    shared = float(np.real(np.vdot(residuals[:-1], residuals[1:]))) / power if power > 0 else 0.0
    correlation = min(max(shared, 0.0), 1 - 1 / len(residuals))
    return max(len(residuals) * (1 - correlation) / (1 + correlation), 1.0)


def _gaussian_radius(latitude: float) -> float:
    """Return the Gaussian radius of curvature (m): the geometric mean of meridian and prime vertical."""
    squared = geodesy.WGS84.eccentricity_squared
    return geodesy.WGS84.semi_major * math.sqrt(1 - squared) / (1 - squared * math.sin(latitude) ** 2)
