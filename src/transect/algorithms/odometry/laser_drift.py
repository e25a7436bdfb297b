"""Error model of the odometry that is fused with planar scans: scale, drift, and covariances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats

from ..registration.scan_matching import ScanMatch, lift_covariance
from .laser_scans import LASER_MAP, LaserMapSettings


@dataclass(frozen=True)
class OdometryErrorSettings:
    """Error model of the odometry that is fused with scans."""

    # Sigmas as fractions of the path: of an unknown scale, of slip in addition, of a constant velocity
    # without odometry.
    scale_sigma: float = 0.1
    slip_ratio: float = 0.03
    unmeasured_ratio: float = 0.5
    heading_drift: tuple[float, float] = (0.01, 0.1)  # sigma of the heading: rad/m, and fraction of the turn
    max_heading_sigma_rad: float = 1.0
    min_sigma: float = 1e-3  # of a motion by odometry alone: m and rad
    # Fraction of a match's sigma that consecutive matches do not share: the local map averages many scans.
    common_sigma_ratio: float = 0.3
    # Sigma of a match over its contradiction with wheels: a cloud of smoke also moves consistently.
    contradiction_factor: float = 3.0
    # Largest sigma that a rejected match adds, m, m and rad: one accidental fit must not make all uncertain.
    max_contradiction: tuple[float, float, float] = (1.0, 1.0, 0.05)
    scale_walk: float = 1e-3  # random walk of the scale per keyframe
    match_scatter_m: float = 0.01  # error of a match between keyframes in addition to its covariance
    max_chi2: float = 12.0  # scale updates with a larger innovation are slip or a wrong match
    keyframes: LaserMapSettings = LASER_MAP


ERRORS = OdometryErrorSettings()


@dataclass
class OdometryScale:
    """Motion of the body per unit of measured motion: wheels wear, and slip on the ground."""

    factor: float = 1.0
    variance: float = ERRORS.scale_sigma**2
    settings: OdometryErrorSettings = ERRORS

    @property
    def sigma_ratio(self) -> float:
        """Sigma of a measured distance, as a fraction of it."""
        return float(np.sqrt(self.variance + self.settings.slip_ratio**2))

    def update(self, measured_m: float, actual_m: float, variance: float) -> None:
        """Update the scale from a distance by odometry, m, and by scans, m with a variance.

        Matches that are less certain than the scale are not used: their errors along a corridor are
        correlated.
        """
        settings = self.settings
        if (
            measured_m < settings.keyframes.keyframe_distance_m / 2
            or variance > (settings.scale_sigma * measured_m) ** 2
        ):
            return
        error = actual_m / measured_m - self.factor
        noise = (variance + settings.match_scatter_m**2) / measured_m**2
        self.variance += settings.scale_walk**2
        if error**2 > settings.max_chi2 * (self.variance + noise):
            return
        gain = self.variance / (self.variance + noise)
        self.factor += gain * error
        self.variance *= 1.0 - gain


def match_covariance(
    match: ScanMatch, motion: Floats, added: Floats, settings: OdometryErrorSettings = ERRORS
) -> Floats:
    """Return the covariance (6, 6) of a motion (3,) that ends in a match.

    The error of a match spreads over the path to the next keyframe.

    Parameters
    ----------
    added : (3,)
        Variances added by odometry drift. They count along a wall on which the match can slide, and in the
        heading, as far as the match depends on odometry.
    """
    fraction = np.clip(
        np.hypot(*motion[:2]) / settings.keyframes.keyframe_distance_m
        + abs(motion[2]) / settings.keyframes.keyframe_angle_rad,
        1e-3,
        1.0,
    )
    contradiction = settings.contradiction_factor**2 * np.outer(
        match.rejected_odometry, match.rejected_odometry
    )
    axes, gains, _ = np.linalg.svd(match.odometry_gain[:2, :2])
    drift_covariance = np.zeros((3, 3))
    drift_covariance[:2, :2] = gains[0] ** 2 * added[0] * np.outer(axes[:, 0], axes[:, 0])
    drift_covariance[2, 2] = match.odometry_gain[2, 2] ** 2 * added[2]
    covariance = (
        match.covariance * fraction * settings.common_sigma_ratio**2 + contradiction + drift_covariance
    )
    return lift_covariance(covariance, float(match.pose[2]))


def odometry_covariance(motion: Floats, added: Floats, settings: OdometryErrorSettings = ERRORS) -> Floats:
    """Return the covariance (6, 6) of a motion (3,) by odometry alone, whose drift adds variances (3,)."""
    # The heading drifts linearly during the motion.
    lateral = (motion[0] ** 2 + motion[1] ** 2) * added[2] / 3.0
    return lift_covariance(np.diag(added + settings.min_sigma**2 + np.array([lateral, lateral, 0.0])), 0.0)


class OdometryDrift:
    """Accumulated drift of the odometry since scans last constrained the pose.

    Wheel errors are systematic: sigmas grow with the distance, independent of the number of samples.
    """

    def __init__(self, scale: OdometryScale) -> None:
        self.scale, self.settings = scale, scale.settings
        self.accumulated = np.zeros(3)  # m of path; m and rad over which odometry determined the heading
        self.contradiction = np.zeros(3)  # largest residual of rejected matches: m, m and rad

    def add(self, motion: Floats, measured: bool = True) -> Floats:
        """Add a motion (3,), measured or predicted; return the added variances (3,), m and rad."""
        ratio = self.scale.sigma_ratio if measured else self.settings.unmeasured_ratio
        before, distance_m = self._sigmas(ratio), np.hypot(*motion[:2])
        self.accumulated = self.accumulated + np.array([distance_m, distance_m, abs(motion[2])])
        return self._sigmas(ratio) ** 2 - before**2

    def add_contradiction(self, error: Floats) -> Floats:
        """Add the residual (3,) of a rejected match; return the added variances (3,)."""
        before = self.contradiction
        self.contradiction = np.maximum(
            self.contradiction, np.minimum(np.abs(error), self.settings.max_contradiction)
        )
        return self.contradiction**2 - before**2

    def reset_to_match(self, match: ScanMatch) -> None:
        """Keep the fraction of the drift that a match does not remove."""
        turn_gain = abs(match.odometry_gain[2, 2])
        self.accumulated = self.accumulated * (
            np.linalg.norm(match.odometry_gain[:2, :2], 2),
            turn_gain,
            turn_gain,
        )
        self.contradiction = np.zeros(3)

    def _sigmas(self, ratio: float) -> Floats:
        settings = self.settings
        distance_m, lateral, turn = self.accumulated
        ahead = ratio * distance_m
        return np.array(
            [
                ahead,
                ahead,
                min(
                    settings.heading_drift[0] * lateral + settings.heading_drift[1] * turn,
                    settings.max_heading_sigma_rad,
                ),
            ]
        )
