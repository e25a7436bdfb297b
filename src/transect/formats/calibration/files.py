"""Reading camera calibrations of any dialect."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from transect.base import plugins
from transect.base.files import write_bytes
from transect.errors import ParseError, UnsupportedError, did_you_mean
from transect.recording import Recording, Source

from . import MAX_FILE_BYTES, kind_of, list_dialects
from .model import CalibrationFile, documents, refuse, static_edges
from .opencv import read_opencv, read_orbslam, write_opencv
from .text_dialects import read_kitti, read_matlab, write_kitti, write_matlab
from .yaml_dialects import read_euroc, read_kalibr, read_radiate, read_ros, write_kalibr, write_ros


def read_calibration(data: bytes, name: str) -> CalibrationFile:
    """Read a calibration file of any dialect.

    Parameters
    ----------
    data : bytes
        The file's content.
    name : str
        The file's name, for errors and as the default name of a camera.
    """
    kind = kind_of(data[:65_536], name)
    if not kind or len(data) > MAX_FILE_BYTES:
        raise ParseError(f"{name} is no camera calibration that we know", where=name)
    try:
        return _read(kind, data, name)
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise refuse(name, kind, error) from error


def _read(kind: str, data: bytes, name: str) -> CalibrationFile:
    text = data.decode("utf-8-sig", "replace")
    if reader := next((each.reader for each in list_dialects() if each.name == kind), ""):
        return plugins.load_dotted(reader)(text)
    if kind == "kitti":
        return read_kitti(text)
    if kind == "matlab":
        return read_matlab(text, name)
    contents = documents(data, name)
    if kind == "ros":
        return read_ros(contents, name)
    if kind == "euroc":
        return read_euroc(contents[0], name)
    readers = {"kalibr": read_kalibr, "radiate": read_radiate, "orbslam": read_orbslam, "opencv": read_opencv}
    return readers[kind](contents[0])


def read(source: Source) -> Recording:
    """Open a calibration as a recording that has cameras and frames and no streams."""
    name = source.names[0]
    source.record_read(name)
    calibration = read_calibration(source.document(name), name)
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


_WRITERS: dict[str, Callable[[CalibrationFile], bytes]] = {
    "kalibr": write_kalibr,
    "opencv": write_opencv,
    "ros": write_ros,
    "matlab": write_matlab,
    "kitti": write_kitti,
}


def write_calibration(calibration: CalibrationFile, kind: str) -> bytes:
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
    calibration = CalibrationFile(recording.cameras, edges, kind)
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
