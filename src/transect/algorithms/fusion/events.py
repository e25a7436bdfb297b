"""Measurements as filter and smoother use them: in the axes of the body (x forward, y left, z up)."""

from __future__ import annotations

from dataclasses import dataclass

from transect.base.arrays import Floats
from transect.base.clocks import NS

MOTION_SENSORS = ("wheels", "odometry", "motion")
"""Inputs that measure relative poses. `motion` is a visual or lidar odometry."""


@dataclass(frozen=True, eq=False)
class OdometryStep:
    """Relative pose of the body between two times, by one of `MOTION_SENSORS`."""

    sensor: str
    start_ns: int
    t_ns: int
    transform: Floats  # (4, 4), T_start_end
    planar: bool  # whether only x, y and heading were measured
    covariance: Floats | None = None  # (6, 6), m then rad, in the axes of the later pose; None: not declared
    trust: float = 1.0  # divides the sigmas, see `FusionContext.trust`

    @property
    def seconds(self) -> float:
        """Duration in s."""
        return (self.t_ns - self.start_ns) / NS

    @property
    def forward_m(self) -> float:
        """Translation along the body's x axis."""
        return float(self.transform[0, 3])


@dataclass(frozen=True, eq=False)
class ImuSample:
    """Specific force and angular velocity in the axes of the body."""

    t_ns: int
    force: Floats  # (3,), m/s2
    rate: Floats  # (3,), rad/s
    trust: float = 1.0


@dataclass(frozen=True, eq=False)
class YawRate:
    """Rate about the vertical, positive to the left, by an IMU whose mount is known from gravity only."""

    t_ns: int
    rate: float  # rad/s


@dataclass(frozen=True, eq=False)
class MeasuredPosition:
    """Position of a point of the body, by a GNSS fix (`fix`) or in a local frame (`position`)."""

    sensor: str
    t_ns: int
    position: Floats  # (3,), m: east, north, up from the first fix, or in the frame of the positions
    std: Floats  # (3,), m, already divided by `trust`
    lever_arm: Floats  # (3,), m, in the body
    white: bool  # whether errors of successive measurements are independent
    attitude: Floats | None = None  # (4,), of the body in that frame, if the receiver reports it
    has_height: bool = True  # if not, the height is 0 with a large sigma
    height_discrepancy: float = 0.0  # m, new discrepancy of this height with the ones before; 0: consistent
    trust: float = 1.0
    noise_class: str = ""  # key in `PositionNoise.classes`; "" if the noise is used as stated
    noise_factor: float = 1.0  # noise relative to that of its class (HDOP)
    correlated_std: Floats | None = None  # (3,), m, noise correlated over `CORRELATION_TIME_S`, if estimated


Event = OdometryStep | ImuSample | YawRate | MeasuredPosition
