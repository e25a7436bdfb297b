"""Folders and files of an SDI dataset (document 004, sections 3.1 and 4.4)."""

from __future__ import annotations

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
