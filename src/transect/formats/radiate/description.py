"""What RADIATE says of its sensors: config.yaml (the radar) and default-calib.yaml (cameras, lidar).

`calibration.radiate` says how the sensors are placed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transect.errors import ParseError, TransectError
from transect.recording import Loss, Source

from ..calibration.documents import documents
from ..calibration.model import Calibration, numbers
from ..calibration.radiate import place_sensor, read_radiate

CONFIGURATION = ("config.yaml", "default-calib.yaml")
BIN_WIDTH = 0.173611
"""Metres per range bin of the Navtech CTS350-X as RADIATE ran it, where no config.yaml says so."""
RADAR, LIDAR = "radar", "lidar"


def read_description(source: Source) -> tuple[Calibration, float, list[Loss]]:
    """Return cameras and frames, the radar's bin width in metres, and what could not be read."""
    content: dict[str, Any] = {}
    losses: list[Loss] = []
    for name in (n for n in CONFIGURATION if n in source):
        source.touch(name)
        try:
            content |= documents(source.read(name), name)[0]
        except ParseError as error:
            losses.append(Loss(name, error.why or error.what))
    bin_width, calibration = BIN_WIDTH, Calibration({})
    try:
        if "radar_calib" in content:
            bin_width = float(numbers(content["radar_calib"]["range_res"], what="range_res"))
        if "left_cam_calib" in content:
            calibration = _calibration(content)
    except (TransectError, ValueError, TypeError, LookupError, OverflowError) as error:
        losses.append(Loss(CONFIGURATION[1], f"not a calibration: {error}"))
    return calibration, bin_width, losses


def _calibration(content: Mapping[str, Any]) -> Calibration:
    stereo = read_radiate({key: value for key, value in content.items() if key != "lidar_calib"})
    placed = [
        ("left", name, place_sensor(content[f"{name}_calib"], content["left_cam_calib"]))
        for name in (RADAR, LIDAR)
        if f"{name}_calib" in content
    ]
    calibration = Calibration(stereo.cameras, (*stereo.frames, *placed), stereo.kind, stereo.notes)
    calibration.tree()  # raises where one of the transforms is not rigid
    return calibration
