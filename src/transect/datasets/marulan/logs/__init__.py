"""ACFR Sensor Data Integrity (SDI) data sets: a folder per sensor with ASCII logs and images.

Ranges are converted to metres from any RangeUnitType, angles of radar spectra to radians, and the speeds of
engine and gearbox to rad/s. `transect.open(path, sweeps=True)` combines interleaved laser scans to sweeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transect.formats.shared.interface import Match, no

if TYPE_CHECKING:
    from pathlib import Path

    from transect.recording import Recording, Source

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
"""The print of the report does not distinguish the digit one from the letter l."""

CALIBRATION = "Calibration"
CALIBRATION_IMAGES = "Calibration/Images"
"""Folder and stream of the images of a calibration."""
CALIBRATION_FILE = "Calib_Results.m"
CALIBRATION_RESULT = f"{CALIBRATION}/{CALIBRATION_FILE}"


def recognises(source: Source) -> Match:
    """Return whether the source is an SDI data set, by the names of its logs."""
    logs = [log for folder in FOLDERS if (log := log_of(source, folder)) in source]
    if logs:
        return Match(0.97, f"it has {', '.join(logs[:3])}{' ...' if len(logs) > 3 else ''}")
    if pictured := [camera for camera in CAMERAS if f"{camera}/Images" in source.folders]:
        return Match(0.6, f"it has {pictured[0]}/Images")
    if empty := [folder for folder in FOLDERS if folder in source.folders]:
        return no(f"it has a folder {empty[0]} but not {log_of(source, empty[0])}")
    inside = sorted(d for d in source.folders if any(f"{d}/{folder}" in source.folders for folder in FOLDERS))
    if inside:
        return no(f"it has the datasets {', '.join(inside[:3])} but is not one itself: open one of them")
    if source.names and source.names[0].rpartition("/")[2] in LOGS.values():
        return no(f"it has {source.names[0]} but not in its folder: open the folder of the dataset")
    return no("it has none of the folders LaserHorizontal, Nav, RadarSpectrum, VideoVisual, ...")


def log_of(source: Source, folder: str) -> str:
    """Return the name of a folder's log."""
    spellings = PAYLOAD_SPELLINGS if folder == PAYLOAD else (LOGS[folder],)
    names = [f"{folder}/{spelling}" for spelling in spellings]
    return next((name for name in names if name in source), names[0])


def read(source: Source, *, sweeps: bool = False) -> Recording:
    """Read a data set.

    Parameters
    ----------
    source : Source
    sweeps : bool
        Assemble each four interleaved laser scans into one sweep of 0.25 degree, see `assemble_sweeps`.
    """
    from . import reading

    return reading.read(source, sweeps=sweeps)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write a recording as an SDI data set.

    Streams are selected by the names that the reader uses (`LaserPort`, `Nav`, `Payload/Engine`, ...).

    Returns
    -------
    tuple of str
        Sentences about data that the format cannot represent.
    """
    from .writing import write_dataset

    return write_dataset(recording, path)
