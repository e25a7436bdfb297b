"""Folders and files of an SDI dataset (document 004, sections 3.1 and 4.4), and the streams they become."""

from __future__ import annotations

from transect.types import Image, LaserScan, Pose, RadarRange, RadarSpectrum, RigidBodyState, Twist

from .payload import LINES, SENSORS
from .tables import NAV_COLUMNS

LASERS = ("LaserHorizontal", "LaserPort", "LaserStarboard", "LaserVertical")
CAMERAS = ("VideoIR", "VideoVisual")
NAV, PAYLOAD, RANGES, SPECTRUM = "Nav", "Payload", "RadarRangeBearing", "RadarSpectrum"
FOLDERS = (*LASERS, NAV, PAYLOAD, RANGES, SPECTRUM, *CAMERAS)
"""The ten folders of section 3.1."""

LOGS = {
    **dict.fromkeys((*LASERS, RANGES), "RangeBearingQAsciiData.txt"),
    NAV: "NavQAsciiData.txt",
    PAYLOAD: "PayloadData1.txt",
    SPECTRUM: "HSR_ScalarPoints1.txt",
    **dict.fromkeys(CAMERAS, "VideoLogAscii.txt"),
}
PAYLOAD_SPELLINGS = ("PayloadData1.txt", "PayloadDatal.txt")
"""The report's print does not tell the digit one from the letter l."""

CALIBRATION = "Calibration"
CALIBRATION_IMAGES = "Calibration/Images"
"""Both the folder and the stream of the images that a calibration was made from."""
CALIBRATION_RESULT = "Calibration/Calib_Results.m"

TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(LASERS, (LaserScan,)),
    NAV: (RigidBodyState, Pose),
    RANGES: (RadarRange,),
    SPECTRUM: (RadarSpectrum,),
    **dict.fromkeys((*CAMERAS, CALIBRATION_IMAGES), (Image,)),
    **{part.stream: (part.type,) for part in (*LINES, *SENSORS)},
}
"""Which types of stream can be written under each name."""

COLUMNS: dict[str, frozenset[str]] = {
    **dict.fromkeys(LASERS, frozenset({*LaserScan.units(), "end_angle", "range_unit"} - {"remission"})),
    NAV: frozenset({*RigidBodyState.units(), *NAV_COLUMNS}),
    RANGES: frozenset({*RadarRange.units(), "range_unit"}),
    SPECTRUM: frozenset(RadarSpectrum.units()),
    **{line.stream: frozenset(Twist.units() if line.type is Twist else line.columns) for line in LINES},
    **{sensor.stream: frozenset({sensor.column}) for sensor in SENSORS},
}
"""Columns that the lines of each stream can carry."""
