"""Camera calibration files: Kalibr, OpenCV, ROS CameraInfo, Matlab, KITTI, ORB-SLAM and others.

A calibration opens as a recording without streams that has cameras and frames. `read_calibration` and
`write_calibration` turn one dialect into another; `write` chooses the dialect by the name of the file:
`camchain*.yaml` is Kalibr, other `*.yaml` ROS, `*.yml` OpenCV, `*.m` Matlab, `*.txt` KITTI.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from transect.base.files import write_bytes
from transect.errors import ParseError, UnsupportedError, did_you_mean
from transect.recording import Recording, Source

from .._base import Match, no
from . import cdff as cdff
from . import text as texts
from .documents import documents
from .kalibr import read_euroc, read_kalibr, write_kalibr
from .model import LARGEST, Calibration, Edge, refuse
from .opencv import read_opencv, read_orbslam, write_opencv
from .radiate import read_radiate
from .ros import read_ros, write_ros

__all__ = ["Calibration", "kind_of", "read", "read_calibration", "recognises", "write", "write_calibration"]

_SIGNS: tuple[tuple[str, str], ...] = (
    ("kalibr", r"(?s)^cam\d+:.*?\bintrinsics:"),
    ("radiate", r"^left_cam_calib:"),
    ("orbslam", r"^Camera1?\.fx:"),
    ("euroc", r"(?s)\A(?=.*^T_BS:)(?=.*^intrinsics:)"),
    ("opencv", r"(?si)\A(?=.*opencv-matrix)(?=.*(camera_?matrix|intrinsic|^\s*<?(M|K|CM)1\b))"),
    ("ros", r"(?s)\A(?=.*^camera_matrix:)(?=.*^(distortion_model|projection_matrix|image_width):)"),
    ("matlab", r"^\s*fc(_left)?\s*=\s*\["),
    ("kitti", r"^(P0|K_00|P_rect_00|S_00):\s+[-+\d]"),
    ("callab", r"^camera\.(\d+\.)?A\s*="),
    ("statements", r"CameraMatrix\.at<double>\("),
    ("sections", r"^\s+FocalLengthX:"),
    ("rectified", r"(?s)^Focal Length:.*^ImageCenter"),
    ("meta", r"^\s*\.cameraMatrix:"),
)
_TEXTS: dict[str, Callable[[str], Calibration]] = {
    "kitti": texts.read_kitti,
    "callab": cdff.read_callab,
    "statements": cdff.read_statements,
    "sections": cdff.read_sections,
    "rectified": cdff.read_rectified,
    "meta": cdff.read_meta,
}
_WRITERS: dict[str, Callable[[Calibration], bytes]] = {
    "kalibr": write_kalibr,
    "opencv": write_opencv,
    "ros": write_ros,
    "matlab": texts.write_matlab,
    "kitti": texts.write_kitti,
}
_SUFFIXES = (".yaml", ".yml", ".xml", ".txt", ".m", ".meta", "")


def kind_of(head: bytes, name: str) -> str:
    """Return which dialect a file is, from its first bytes and its name; "" if it is none."""
    text = head.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    for kind, sign in _SIGNS:
        if re.search(sign, text, re.MULTILINE):
            return kind
    base = name.rpartition("/")[2].lower()
    return "kitti" if "calib" in base and _is_projections(text) else ""


def _is_projections(text: str) -> bool:
    """Tell whether every line is twelve numbers; trajectories are, too, so the name has to say calib."""
    rows = [line.split() for line in text.splitlines() if line.strip()]
    return len(rows) >= 2 and all(len(row) == 12 and re.fullmatch(r"[-+.\deE]+", row[0]) for row in rows[:20])


def recognises(source: Source) -> Match:
    """Say whether the one file is a calibration."""
    if len(source.names) != 1:
        return no("a calibration is one file")
    name = source.names[0]
    if Path(name).suffix.lower() not in _SUFFIXES or source.size(name) > LARGEST:
        return no("not a .yaml, .yml, .xml, .m or .txt of calibration size")
    head = source.head(name)
    if kind := kind_of(head, name):
        return Match(0.8, f"a {kind} calibration")
    if b"opencv" in head:
        return no("an OpenCV file, but without a camera matrix")
    return no("no camera intrinsics in it")


def read_calibration(data: bytes, name: str) -> Calibration:
    """Read a calibration file of any dialect.

    Parameters
    ----------
    data : bytes
        The file's content.
    name : str
        The file's name, for errors and as the default name of a camera.
    """
    kind = kind_of(data[:65_536], name)
    if not kind or len(data) > LARGEST:
        raise ParseError(f"{name} is no camera calibration that we know", where=name)
    try:
        return _read(kind, data, name)
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, AttributeError) as error:
        if isinstance(error, ParseError):
            raise
        raise refuse(name, kind, error) from error


def _read(kind: str, data: bytes, name: str) -> Calibration:
    text = data.decode("utf-8-sig", "replace")
    if kind in _TEXTS:
        return _TEXTS[kind](text)
    if kind == "matlab":
        return texts.read_matlab(text, name)
    contents = documents(data, name)
    if kind == "ros":
        return read_ros(contents, name)
    if kind == "euroc":
        return read_euroc(contents[0], name)
    readers = {"kalibr": read_kalibr, "radiate": read_radiate, "orbslam": read_orbslam, "opencv": read_opencv}
    return readers[kind](contents[0])


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


def read(source: Source) -> Recording:
    """Open a calibration as a recording that has cameras and frames and no streams."""
    name = source.names[0]
    source.touch(name)
    calibration = read_calibration(source.read(name), name)
    return Recording(
        name=source.stem,
        streams=(),
        frames=calibration.tree(name),
        cameras=dict(calibration.cameras),
        conditions={"calibration": calibration.kind},
        format="calibration",
        source=source,
        notes=calibration.notes,
    )


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write the cameras of a recording, and the static frames between them, as one calibration file."""
    if not recording.cameras:
        raise UnsupportedError(f"{recording.name} has no cameras to write")
    kind = _kind_by_name(path)
    edges: list[Edge] = [
        (e.parent, e.child, e.matrix) for e in recording.frames.edges if e.matrix is not None
    ]
    calibration = Calibration(recording.cameras, tuple(edges), kind)
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
