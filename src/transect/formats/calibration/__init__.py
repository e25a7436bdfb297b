"""Camera calibration files: Kalibr, OpenCV, ROS CameraInfo, Matlab, KITTI, ORB-SLAM and others.

A calibration opens as a recording without streams that has cameras and frames. `read_calibration` and
`write_calibration` turn one dialect into another; `write` chooses the dialect by the name of the file:
`camchain*.yaml` is Kalibr, other `*.yaml` ROS, `*.yml` OpenCV, `*.m` Matlab, `*.txt` KITTI.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from transect.base import plugins
from transect.base.lazy import exporter

from ..shared.interface import Match, no

if TYPE_CHECKING:
    from transect.recording import Source

MAX_FILE_BYTES = 4_000_000
"""Larger files are not calibrations."""
_SIGNS: tuple[tuple[str, str], ...] = (
    ("kalibr", r"(?s)^cam\d+:.*?\bintrinsics:"),
    ("radiate", r"^left_cam_calib:"),
    ("orbslam", r"^Camera1?\.fx:"),
    ("euroc", r"(?s)\A(?=.*^T_BS:)(?=.*^intrinsics:)"),
    ("opencv", r"(?si)\A(?=.*opencv-matrix)(?=.*(camera_?matrix|intrinsic|^\s*<?(M|K|CM)1\b))"),
    ("ros", r"(?s)\A(?=.*^camera_matrix:)(?=.*^(distortion_model|projection_matrix|image_width):)"),
    ("matlab", r"^\s*fc(_left)?\s*=\s*\["),
    ("kitti", r"^(P0|K_00|P_rect_00|S_00):\s+[-+\d]"),
)
_SUFFIXES = (".yaml", ".yml", ".xml", ".txt", ".m", ".meta", "")


class Dialect(NamedTuple):
    """A text file with a calibration, as a plug-in offers it."""

    name: str
    # Regular expression, over several lines, that is found in its first bytes and in no other dialect
    sign: str
    reader: str  # Dotted string of a function that takes the text and returns a `Calibration`


def list_dialects() -> list[Dialect]:
    """Return the dialects that data sets and plug-ins offer."""
    return [each for group in plugins.strings("calibrations") for each in plugins.load("calibrations", group)]


def kind_of(head: bytes, name: str) -> str:
    """Return the dialect of a file from its first bytes and name, "" if it is not a calibration."""
    text = head.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    others = ((dialect.name, dialect.sign) for dialect in list_dialects())
    for kind, sign in (*_SIGNS, *others):
        if re.search(sign, text, re.MULTILINE):
            return kind
    base = name.rpartition("/")[2].lower()
    return "kitti" if "calib" in base and _is_projections(text) else ""


def _is_projections(text: str) -> bool:
    """Return whether every line is twelve numbers; trajectories are, too, so the name has to say calib."""
    rows = [line.split() for line in text.splitlines() if line.strip()]
    return len(rows) >= 2 and all(len(row) == 12 and re.fullmatch(r"[-+.\deE]+", row[0]) for row in rows[:20])


def recognises(source: Source) -> Match:
    """Recognise a single calibration file."""
    if len(source.names) != 1:
        return no("a calibration is one file")
    name = source.names[0]
    if Path(name).suffix.lower() not in _SUFFIXES or source.size(name) > MAX_FILE_BYTES:
        return no("not a .yaml, .yml, .xml, .m or .txt of calibration size")
    head = source.head(name)
    if kind := kind_of(head, name):
        return Match(0.8, f"a {kind} calibration")
    if b"opencv" in head:
        return no("an OpenCV file, but without a camera matrix")
    return no("no camera intrinsics in it")


__getattr__, __dir__ = exporter(__name__, {"files": ("read", "write")})
