"""What RADIATE says of its sensors: config.yaml (the radar) and default-calib.yaml (cameras, lidar).

Sensors are placed as the data set's own tools do it. `T` is in metres along the axes of a camera (x right, y
down, z forward) and `R` in degrees about those of the radar: a point of a sensor goes to the left camera by
``(axes Rx Ry Rz)' p + t``, with the differences of the two `R` as angles and of the two `T` as t.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.units import to_si
from transect.errors import ParseError, TransectError
from transect.geometry import rotations
from transect.recording import Loss, Source

from ..calibration.documents import documents
from ..calibration.model import Calibration, numbers, rigid
from ..calibration.radiate import read_radiate

CONFIGURATION = ("config.yaml", "default-calib.yaml")
BIN_WIDTH = 0.173611
"""Metres per range bin of the Navtech CTS350-X as RADIATE ran it, where no config.yaml says so."""
RADAR, LIDAR = "radar", "lidar"
_AXES = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])


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
        ("left", name, _from_sensor(content[f"{name}_calib"], content["left_cam_calib"]))
        for name in (RADAR, LIDAR)
        if f"{name}_calib" in content
    ]
    calibration = Calibration(stereo.cameras, (*stereo.frames, *placed), stereo.kind, stereo.notes)
    calibration.tree()  # raises where one of the transforms is not rigid
    return calibration


def _from_sensor(sensor: Mapping[str, Any], left: Mapping[str, Any]) -> NDArray[np.float64]:
    """Return T_left_sensor."""
    angles = numbers(sensor["R"], 3, what="R") - numbers(left["R"], 3, what="R")
    place = numbers(sensor["T"], 3, what="T") - numbers(left["T"], 3, what="T")
    turn = _AXES @ rotations.matrix_from_euler("XYZ", to_si(np.asarray(angles, np.float64), "deg"))
    return rigid(turn.T, place)
