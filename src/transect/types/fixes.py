"""Positions of satellite receivers."""

from __future__ import annotations

from dataclasses import dataclass

from transect.base.arrays import Floats

from ._fields import NOWHERE, FromColumns, columns

FIX_TYPES = ("none", "2d", "3d", "sbas", "differential", "ppp", "rtk float", "rtk fixed")
"""Fix types in the order of the Spatial Dual's codes 0-7 (AMEDS description, Table 7)."""


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
