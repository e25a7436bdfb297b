"""The calibration of a drive: where the sensors are, the rectified camera, and the offset of the radar."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath

from transect.base.arrays import Floats
from transect.errors import TransectError
from transect.geometry import se3
from transect.recording import FrameTree, Loss, Source
from transect.types import CameraModel

from ..calibration.documents import documents
from ..calibration.model import camera, numbers
from . import CALIB

CAMERA = "camera"
PLACES = (
    *("T_applanix_lidar.txt", "T_camera_lidar.txt", "T_radar_lidar.txt", "T_aeva_lidar.txt"),
    *("T_applanix_dmu.txt", "T_applanix_wheel.txt", "T_imu_aeva.txt"),
)
"""`T_a_b.txt` takes points of b to a; `imu` is the inertial unit in the Aeva lidar."""
PROJECTION, INTRINSICS, OTHERS = "P_camera.txt", "camera0_intrinsics.yaml", "misc_calibrations.yaml"


@dataclass
class Calibration:
    """What calib/ says.

    Attributes
    ----------
    frames : FrameTree
        Rooted at `applanix`: x to the right, y forward, z up.
    cameras : dict
        The rectified camera, if it is known.
    range_offset : float or None
        Metres; range of bin i of the radar, counted from 0, is ``i * bin_width + range_offset``.
    losses : list of Loss
    """

    frames: FrameTree = field(default_factory=FrameTree)
    cameras: dict[str, CameraModel] = field(default_factory=dict[str, CameraModel])
    range_offset: float | None = None
    losses: list[Loss] = field(default_factory=list[Loss])


def read_calibration(source: Source) -> Calibration:
    """Read the files that are there; a bad one is a loss."""
    found = Calibration()
    for file in (*PLACES, PROJECTION, OTHERS):
        name = f"{CALIB}/{file}"
        if name not in source:
            continue
        source.touch(name)
        try:
            _add(source, name, found)
        except (TransectError, ValueError, TypeError, LookupError, OverflowError) as error:
            reason = getattr(error, "why", "") or getattr(error, "what", "") or str(error)
            found.losses.append(Loss(name, reason))
    return found


def _add(source: Source, name: str, found: Calibration) -> None:
    """Add what one file says."""
    if name.endswith(PROJECTION):
        P = _matrix(source, name, 3)
        found.cameras[CAMERA] = camera(CAMERA, _image_size(source), P[:, :3].copy(), P=P)
    elif name.endswith(OTHERS):
        offset = documents(source.document(name), name)[0].get("radar_offset")
        found.range_offset = None if offset is None else float(numbers(offset, what="radar_offset"))
    else:
        _, parent, child = PurePosixPath(name).stem.split("_")
        _place(parent, child, _matrix(source, name, 4), name, found.frames)


def _place(parent: str, child: str, T_parent_child: Floats, name: str, frames: FrameTree) -> None:
    """Add an edge; one to a frame that has a parent already is turned round."""
    if child in frames and frames.parent_of(child) is not None:
        frames.add_static(child, parent, se3.invert(T_parent_child), source=name)
    else:
        frames.add_static(parent, child, T_parent_child, source=name)


def _matrix(source: Source, name: str, rows: int) -> Floats:
    """Return the first rows of a matrix of four columns."""
    words = source.text(name).split()
    if len(words) not in (12, 16) or len(words) < 4 * rows:
        raise ValueError(f"it does not hold {rows} x 4 numbers")
    return numbers([words[4 * i : 4 * i + 4] for i in range(rows)], rows, 4, what="the matrix")


def _image_size(source: Source) -> tuple[float, float]:
    """Return width and height, 0 where they are not known; rectifying an image does not change its size."""
    name = f"{CALIB}/{INTRINSICS}"
    if name not in source:
        return 0.0, 0.0
    source.touch(name)
    width, height = numbers(documents(source.document(name), name)[0].get("image_size"), 2, what="image_size")
    return float(width), float(height)
