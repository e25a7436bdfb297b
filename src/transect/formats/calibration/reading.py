"""Reading camera calibrations of any dialect."""

from __future__ import annotations

from transect.base import plugins
from transect.errors import ParseError
from transect.recording import Recording, Source

from . import LARGEST, kind_of, list_dialects
from .documents import documents
from .kalibr import read_euroc, read_kalibr
from .kitti import read_kitti
from .matlab import read_matlab
from .model import Calibration, refuse
from .opencv import read_opencv, read_orbslam
from .radiate import read_radiate
from .ros import read_ros


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
        raise refuse(name, kind, error) from error


def _read(kind: str, data: bytes, name: str) -> Calibration:
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
    source.touch(name)
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
