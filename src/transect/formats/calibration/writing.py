"""Writing camera calibrations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from transect.base.files import write_bytes
from transect.errors import UnsupportedError, did_you_mean
from transect.recording import Recording

from .kalibr import write_kalibr
from .kitti import write_kitti
from .matlab import write_matlab
from .model import Calibration, static_edges
from .opencv import write_opencv
from .ros import write_ros

_WRITERS: dict[str, Callable[[Calibration], bytes]] = {
    "kalibr": write_kalibr,
    "opencv": write_opencv,
    "ros": write_ros,
    "matlab": write_matlab,
    "kitti": write_kitti,
}


def write_calibration(calibration: Calibration, kind: str) -> bytes:
    """Return a calibration as a file of a dialect: kalibr, opencv, ros, matlab or kitti.

    Raises
    ------
    UnsupportedError
        Where the dialect cannot hold a camera's lens or skew.
    """
    if kind not in _WRITERS:
        raise UnsupportedError(
            f"calibrations cannot be written as {kind!r}", hint=did_you_mean(kind, _WRITERS)
        )
    return _WRITERS[kind](calibration)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write the cameras of a recording, and the static frames between them, as one calibration file."""
    if not recording.cameras:
        raise UnsupportedError(f"{recording.name} has no cameras to write")
    kind = _kind_by_name(path)
    edges = static_edges(recording.frames)
    calibration = Calibration(recording.cameras, edges, kind)
    write_bytes(path, write_calibration(calibration, kind))
    said = [f"{s.name} was not written: a calibration has no streams" for s in recording.streams]
    if kind in ("kalibr", "matlab", "kitti") and edges:
        said.append(f"a {kind} file holds only the transforms from camera to camera (and imu)")
    return tuple(said)


def _kind_by_name(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix == ".yaml":
        return "kalibr" if "camchain" in path.name else "ros"
    known = {".yml": "opencv", ".m": "matlab", ".txt": "kitti"}
    if suffix not in known:
        raise UnsupportedError(
            f"which dialect is {path.name}?",
            hint="camchain.yaml is Kalibr, .yml OpenCV, other .yaml ROS, .m Matlab, .txt KITTI",
        )
    return known[suffix]
