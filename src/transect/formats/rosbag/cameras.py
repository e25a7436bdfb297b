"""The calibrations of a bag: its CameraInfo messages, and the images that they are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .messages import fields_of, frame_name
from .topics import Topic

if TYPE_CHECKING:
    from transect.types import CameraModel

CAMERA_INFO = "sensor_msgs/msg/CameraInfo"
RECTIFICATION = "rectification"
"""What our own writer calls the R and P of a camera that had none: ROS wants them filled."""
_MODELS = {
    "plumb_bob": "radtan",
    "rational_polynomial": "radtan",
    "equidistant": "equidistant",
    "fisheye": "equidistant",
}


@dataclass(frozen=True)
class Cameras:
    """The calibrated cameras of a bag.

    Attributes
    ----------
    models : mapping of str to CameraModel
        By the name of the folder of their topic.
    folders : mapping of str to str
        The name of the camera whose CameraInfo lies in a folder, as the bag has it.
    notes : tuple of str
        On calibrations that are none.
    """

    models: Mapping[str, CameraModel]
    folders: Mapping[str, str]
    notes: tuple[str, ...] = ()

    def beside(self, topic: Topic) -> str:
        """Return the name of the camera in whose folder an image topic lies, the deepest; "" without one."""
        image = topic.channel.topic.strip("/")
        found = [folder for folder in self.folders if image == folder or image.startswith(folder + "/")]
        return self.folders[max(found, key=len)] if found else ""


def cameras_of(topics: Sequence[Topic]) -> Cameras:
    """Return the calibrated cameras of topics."""
    models: dict[str, CameraModel] = {}
    folders: dict[str, str] = {}
    notes: list[str] = []
    for topic in topics:
        columns = topic.decode_first() if topic.channel.type == CAMERA_INFO else None
        if columns is None:
            continue
        name = folder_of(topic.name)
        try:
            model = camera_of(fields_of(columns), name)
            models[name] = replace(model, R=np.eye(3), P=None) if RECTIFICATION in topic.unmeasured else model
            folders[folder_of(topic.channel.topic)] = name
        except (KeyError, ValueError, TypeError) as error:
            notes.append(f"{topic.name} is not a calibration: {error}")
    return Cameras(models, folders, tuple(notes))


def folder_of(topic: str) -> str:
    """Return what a CameraInfo topic is about: `left` of /left/camera_info."""
    return topic.rpartition("/")[0].strip("/") or topic


def camera_of(fields: Mapping[str, Any], name: str) -> CameraModel:
    """Return the camera of a CameraInfo message; ValueError where it says that it is not calibrated."""
    from transect.types import CameraModel

    def values(small: str) -> np.ndarray:
        """ROS 1 writes K, D, R, P; ROS 2 k, d, r, p."""
        found = fields.get(small, fields.get(small.upper()))
        return np.asarray(found, dtype=np.float64)

    K, P, R = values("k").reshape(3, 3), values("p").reshape(3, 4), values("r").reshape(3, 3)
    if K[0, 0] == 0.0:
        raise ValueError("it has no focal length")
    coefficients = values("d")
    model = _MODELS.get(str(fields["distortion_model"]), "radtan" if len(coefficients) else "none")
    return CameraModel(
        name=name,
        width=int(fields["width"]),
        height=int(fields["height"]),
        K=K,
        distortion=model if np.any(coefficients) else "none",
        coefficients=coefficients if np.any(coefficients) else np.zeros(0),
        R=R if np.any(R) else np.eye(3),
        P=P if P[0, 0] != 0.0 else None,
        frame=frame_name(str(fields["header.frame_id"])),
    )
