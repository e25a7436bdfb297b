"""What a satellite receiver delivers."""

from __future__ import annotations

from dataclasses import dataclass

from transect.base.arrays import Floats

from ._fields import NOWHERE, FromColumns, columns

FIX_TYPES = ("none", "2d", "3d", "sbas", "differential", "ppp", "rtk float", "rtk fixed")
"""Fix types in the order of the Spatial Dual's codes 0-7 (document 000, Table 7)."""


@dataclass(frozen=True, eq=False)
class NavFix(FromColumns):
    """A satellite position, with the attitude where the receiver is also an inertial system.

    Attributes
    ----------
    latitude, longitude : float
        Radians, WGS84.
    altitude : float
        Metres above the ellipsoid (above mean sea level where the format says so, as NMEA does).
    std : (3,) array or None
        One sigma north, east, down in metres.
    attitude : (3,) array or None
        Roll, pitch, yaw in radians: ``R_ned_body = Rz(yaw) Ry(pitch) Rx(roll)``.
    fix : str or None
        One of `FIX_TYPES`.
    satellites : int or None
        Satellites that were used.
    hdop : float or None
        Horizontal dilution of precision.
    """

    latitude: float = columns("lat", unit="rad")
    longitude: float = columns("lon", unit="rad")
    altitude: float = columns("alt", unit="m")
    std: Floats | None = columns("std_north", "std_east", "std_down", unit="m", optional=True)
    attitude: Floats | None = columns("roll", "pitch", "yaw", unit="rad", optional=True)
    fix: str | None = columns("fix", optional=True, form="text")
    satellites: int | None = columns("satellites", optional=True)
    hdop: float | None = columns("hdop", optional=True)
    t_ns: int = 0
    frame: str = NOWHERE
