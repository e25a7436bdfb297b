"""Patterns that identify the text calibrations of CDFF's data, and their readers, without heavy imports."""

from __future__ import annotations

from transect.formats.calibration import Dialect

_FILES = "transect.datasets.cdff.calibration_files"

DIALECTS = (
    Dialect("callab", r"^camera\.(\d+\.)?A\s*=", f"{_FILES}:read_callab"),
    Dialect("statements", r"CameraMatrix\.at<double>\(", f"{_FILES}:read_statements"),
    Dialect("sections", r"^\s+FocalLengthX:", f"{_FILES}:read_sections"),
    Dialect("rectified", r"(?s)^Focal Length:.*^ImageCenter", f"{_FILES}:read_rectified"),
    Dialect("meta", r"^\s*\.cameraMatrix:", f"{_FILES}:read_meta"),
)
