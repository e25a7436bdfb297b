"""RADIATE: a car in bad weather with Navtech radar, Velodyne lidar, ZED stereo and GPS/IMU, a folder each.

`<sensor>.txt` lists ``Frame: 000001 Time: 1574859771.744660272`` and alone tells when `<sensor>/000001.*` was
taken. Radar, lidar and their images have x to the right, y forward and z up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.base.lazy import exporter

from ..shared.interface import Match, no

if TYPE_CHECKING:
    from transect.recording import Source

POLAR, CARTESIAN, LIDAR, GPS = "Navtech_Polar", "Navtech_Cartesian", "velo_lidar", "GPS_IMU_Twist"
CAMERAS = {"zed_left": "left", "zed_right": "right"}
"""Folders of images, and the cameras of the calibration that took them."""
SUFFIXES = {POLAR: ".png", CARTESIAN: ".png", LIDAR: ".csv", GPS: ".txt", **dict.fromkeys(CAMERAS, ".png")}


def recognises(source: Source) -> Match:
    """Recognise `Navtech_Polar.txt` and similar lists with their folders."""
    found = [sensor for sensor in SUFFIXES if f"{sensor}.txt" in source or sensor in source.folders]
    listed = [s for s in found if f"{s}.txt" in source and source.head(f"{s}.txt", 64).startswith(b"Frame:")]
    if listed:
        return Match(0.95, f"{', '.join(listed)} listed as `Frame: ... Time: ...`")
    if found:
        return no(f"it has {', '.join(found)} but no list of frames and times beside it")
    return no("no Navtech, velo_lidar or zed folder with a list of frames")


__getattr__, __dir__ = exporter(__name__, {"folders": ("read", "write")})
