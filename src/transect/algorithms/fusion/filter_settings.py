"""Settings of the error-state filter other than process noise and priors."""

from __future__ import annotations

from dataclasses import dataclass

from .imu_propagation import IMU, ImuSettings
from .innovation_gate import GATE, GateSettings
from .wheel_drift import WHEEL_DRIFT, WheelDriftSettings
from .wheel_starts import WHEEL_STARTS, WheelStartSettings


@dataclass(frozen=True)
class FilterSettings:
    """Start, gate, and adaptation of the filter."""

    max_wait_s: float = 3.0  # for a first position, before the filter starts without
    adaptation_gain: float = 0.1  # of the noise of each sensor, by its innovations; 0 for none
    patience: int = 3  # positions rejected in a row before the state is considered wrong
    gated: bool = True  # whether outliers are rejected or down-weighted
    gate: GateSettings = GATE
    imu: ImuSettings = IMU
    wheel_drift: WheelDriftSettings = WHEEL_DRIFT
    wheel_starts: WheelStartSettings = WHEEL_STARTS
    fast_adaptation_count: float = 10.0  # positions during which the gain is larger
    # White noise of the poses of a visual or lidar odometry without covariances, m and rad.
    motion_std_m: float = 0.02
    motion_std_rad: float = 2e-3
    fix_white_ratio: float = 0.5  # part of a fix's sigma that is white, if its errors are correlated
    min_velocity_interval_s: float = 0.1  # in a shorter time two positions do not determine a velocity
