"""Positions of satellite receivers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from transect.base.arrays import Floats

from ._fields import NOWHERE, FromColumns, columns

FIX_TYPES = ("none", "2d", "3d", "sbas", "differential", "ppp", "rtk float", "rtk fixed")
"""Fix types in the order of the Spatial Dual's codes 0-7 (AMEDS description, Table 7)."""


@dataclass(frozen=True)
class TypicalFixError:
    """Typical error of fixes of one type, for receivers that state none."""

    horizontal_std: float  # m per axis at an HDOP of 1
    correlation_s: float  # correlation time (first-order Gauss-Markov); 0 is white noise
    vertical_ratio: float = 2.0  # of the vertical to the horizontal standard deviation


TYPICAL_FIX_ERRORS: Mapping[str, TypicalFixError] = {
    "2d": TypicalFixError(5.0, 60.0),
    "3d": TypicalFixError(2.5, 60.0),  # single frequency: data sheets state 2.5 m (CEP)
    "sbas": TypicalFixError(1.0, 60.0),
    "differential": TypicalFixError(0.7, 60.0),
    "ppp": TypicalFixError(0.2, 60.0),
    "rtk float": TypicalFixError(0.2, 30.0),
    "rtk fixed": TypicalFixError(0.02, 0.0),
}
"""By fix type; a fix of unknown type has the error of `3d`."""


@dataclass(frozen=True, eq=False)
class NavFix(FromColumns):
    """A satellite position, with the attitude if the receiver is also an inertial system."""

    latitude: float = columns("lat", unit="rad")  # WGS84
    longitude: float = columns("lon", unit="rad")  # WGS84
    # Height above the ellipsoid (above mean sea level where the format specifies it, as NMEA does)
    altitude: float = columns("alt", unit="m")
    # (3,) standard deviations north, east, down
    std: Floats | None = columns("std_north", "std_east", "std_down", unit="m", optional=True)
    # (3,) roll, pitch, yaw: ``R_ned_body = Rz(yaw) Ry(pitch) Rx(roll)``
    attitude: Floats | None = columns("roll", "pitch", "yaw", unit="rad", optional=True)
    fix: str | None = columns("fix", optional=True, form="text")  # One of `FIX_TYPES`
    satellites: int | None = columns("satellites", optional=True)  # Number of satellites used
    hdop: float | None = columns("hdop", optional=True)  # Horizontal dilution of precision
    t_ns: int = 0
    frame: str = NOWHERE
