"""Updates of the error-state filter by positions: gate, correlated errors, recovery from a wrong state."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.geometry import align, se3

from . import error_state as ekf
from .events import MeasuredPosition
from .filter_settings import FilterSettings
from .gnss_noise import CORRELATION_TIME_S
from .initialisation import INITIALISATION
from .innovation_gate import InnovationStatistics
from .wheel_propagation import WheelPropagation

UNIFORM_HEADING_VARIANCE = np.pi**2 / 3
"""Variance of a completely unknown heading, rad2."""


class PositionUpdates:
    """Updates a state by positions.

    Parameters
    ----------
    tilt_sigma : float
        Of a body whose tilt nothing measures, rad.
    """

    def __init__(
        self,
        noise: ekf.ProcessNoise,
        tilt_sigma: float,
        settings: FilterSettings,
        statistics: InnovationStatistics,
        wheels: WheelPropagation,
    ) -> None:
        self.noise, self.tilt_sigma, self.settings = noise, tilt_sigma, settings
        self.statistics, self.wheels = statistics, wheels
        self.T_frame_positions: Floats | None = None  # None until they are aligned with the filter's frame
        self.used_ns: list[int] = []  # times of accepted positions
        self.waiting: list[MeasuredPosition] = []  # for the odometry step that covers their time
        self.untracked_variance = np.zeros(3)  # m2, of a correlated error that the state does not contain
        self._alignment_pairs: list[tuple[Floats, Floats]] = []
        self._last_gnss_error: tuple[int, Floats] | None = None  # time and variance

    def update(
        self, x: ekf.FilterState, measured: MeasuredPosition, start_ns: int, *, inertial: bool
    ) -> None:
        """Update a state by a position.

        Parameters
        ----------
        start_ns : int
            Time of the first state.
        inertial : bool
            Whether an IMU propagates the state.
        """
        position = self._to_filter_frame(x, measured)
        if position is None:
            return
        if measured.height_discrepancy:
            self._inflate_height(x, measured.height_discrepancy**2)
        sensor = self.statistics.sensor(measured.sensor)
        horizontal = np.array([1.0, 1.0, 0.0])
        variances = measured.std**2
        if not measured.has_height:
            full = ekf.position_measurement(x, position, variances, measured.lever_arm, with_gnss_error=False)
            ekf.update(x, full.rows([2]))
            variances = variances * horizontal
        is_correlated = not measured.white or measured.correlated_std is not None
        variances = self._propagate_correlated_error(x, measured, variances, inertial=inertial)
        if not inertial:
            variances = variances + (self.tilt_sigma * measured.lever_arm[2]) ** 2 * horizontal
        noise = variances * sensor.factor
        innovation = ekf.position_measurement(
            x, position, noise, measured.lever_arm, with_gnss_error=is_correlated
        )
        innovation = innovation if measured.has_height else innovation.rows([0, 1])
        S = innovation.innovation_covariance(x)
        nis = float(innovation.r @ np.linalg.solve(S, innovation.r))
        gain = self._gain(measured, sensor.count, inertial=inertial)
        inside = sensor.test(nis, S, gain, slice(0, 2)) or not self.settings.gated
        if not inside and sensor.rejected_in_row <= self.settings.patience:
            return
        if not inside:
            self._recover(x, float(innovation.r @ innovation.r), start_ns, inertial=inertial)
        if not inertial:
            noise = variances * sensor.factor
            self.wheels.drift.compare(
                measured.t_ns, position, noise, measured.lever_arm, with_gnss_error=is_correlated
            )
        ekf.update(x, innovation)
        if not inertial:
            self.wheels.drift.start_prediction(x)
            self.wheels.start_slip.compare(x)
        self.used_ns.append(measured.t_ns)
        self.wheels.distance_m = 0.0

    def _gain(self, measured: MeasuredPosition, count: int, *, inertial: bool) -> float:
        """Return the gain of the adaptation of the sensor's noise; untrusted positions do not adapt it."""
        gain = 2 * self.settings.adaptation_gain if measured.trust == 1.0 else 0.0
        if (
            gain and not inertial
        ):  # fast at first: the specified noise is rough, and the heading depends on it
            gain = max(gain, min(1.0, self.settings.fast_adaptation_count / (count + 1)))
        return gain

    def _propagate_correlated_error(
        self, x: ekf.FilterState, measured: MeasuredPosition, variances: Floats, *, inertial: bool
    ) -> Floats:
        """Propagate the correlated error of fixes in the state; return the variance (3,) of white noise."""
        if measured.correlated_std is not None:
            # Without an IMU a correlated error of heights cannot be separated from terrain: it is white.
            observed = np.array([1.0, 1.0, float(inertial)])
            tracked = observed * measured.correlated_std**2 * (variances > 0)
            self.untracked_variance = measured.correlated_std**2 - tracked
            variances = variances + self.untracked_variance * (variances > 0)
            self._propagate_gnss_error(x, measured.t_ns, tracked, CORRELATION_TIME_S)
        elif not measured.white:
            self._propagate_gnss_error(x, measured.t_ns, variances, self.noise.fix_correlation_time)
            variances = variances * self.settings.fix_white_ratio**2
        return variances

    def _propagate_gnss_error(
        self, x: ekf.FilterState, t_ns: int, variances: Floats, correlation_s: float
    ) -> None:
        if self._last_gnss_error is None:
            x.covariance[ekf.GNSS_ERROR, ekf.GNSS_ERROR] = np.diag(variances)
        else:
            for state, _ in self.wheels.drift.states(x):
                seconds = (t_ns - self._last_gnss_error[0]) / NS
                ekf.propagate_gnss_error(state, seconds, variances, correlation_s)
        self._last_gnss_error = t_ns, variances

    def _inflate_height(self, x: ekf.FilterState, variance: float) -> None:
        """Increase the variance (m2) of the height and of its error by fixes, after inconsistent heights."""
        for i in (ekf.ErrorIndex.POSITION_Z, ekf.ErrorIndex.GNSS_ERROR_Z):
            x.covariance[i, i] += variance

    def _recover(self, x: ekf.FilterState, squared: float, start_ns: int, *, inertial: bool) -> None:
        """Increase the uncertainty of a state that differs from many positions by a squared distance (m2).

        Wheels slipped or mistook a turn: then the heading is wrong, too. With an IMU the velocity is wrong: a
        corrected position alone would be wrong again at the next measurement.
        """
        ekf.add_variance(x, ekf.POSITION, squared)
        if inertial:
            last_ns = self.used_ns[-1] if self.used_ns else start_ns
            seconds = max((x.t_ns - last_ns) / NS, self.settings.min_velocity_interval_s)
            ekf.add_variance(x, ekf.VELOCITY, squared / seconds**2)
        else:
            distance = max(self.wheels.distance_m, INITIALISATION.min_path_m)
            x.covariance[ekf.ErrorIndex.HEADING, ekf.ErrorIndex.HEADING] += min(
                squared / distance**2, UNIFORM_HEADING_VARIANCE
            )

    def _to_filter_frame(self, x: ekf.FilterState, measured: MeasuredPosition) -> Floats | None:
        """Return a position in the filter's frame; None until both frames are aligned."""
        if self.T_frame_positions is None:
            self._alignment_pairs.append((measured.position, x.p + x.rotation @ measured.lever_arm))
            positions, path = (np.stack(each) for each in zip(*self._alignment_pairs, strict=True))
            extent = np.linalg.norm(positions[:, :2] - positions[0, :2], axis=1).max()
            if extent < INITIALISATION.min_path_m:
                return None
            found = align.yaw(positions, path)
            self.T_frame_positions = se3.from_matrix(found.rotation, found.translation)
        return se3.apply(self.T_frame_positions, measured.position)
