"""CameraInfo messages as camera models, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .messages import fields_of, frame_name
from .topics import Topic

if TYPE_CHECKING:
    from transect.types import CameraModel

CAMERA_INFO = "sensor_msgs/msg/CameraInfo"
_MODELS = {
    "plumb_bob": "radtan",
    "rational_polynomial": "radtan",
    "equidistant": "equidistant",
    "fisheye": "equidistant",
}


def cameras_of(topics: Sequence[Topic]) -> tuple[dict[str, CameraModel], list[str]]:
    """Return the calibrated cameras by the name of their topics' folder, and notes on the others."""
    cameras: dict[str, CameraModel] = {}
    notes: list[str] = []
    for topic in topics:
        columns = topic.decode_first() if topic.channel.type == CAMERA_INFO else None
        if columns is None:
            continue
        name = topic.name.rpartition("/")[0].strip("/") or topic.name
        try:
            cameras[name] = camera_of(fields_of(columns), name)
        except (KeyError, ValueError, TypeError) as error:
            notes.append(f"{topic.name} is not a calibration: {error}")
    return cameras, notes


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


def camera_beside(topic: str, cameras: Mapping[str, CameraModel]) -> str:
    """Return the name of the camera in whose folder an image topic lies, the deepest; "" if there is none."""
    folder = topic.strip("/")
    known = [name for name in cameras if folder == name or folder.startswith(name + "/")]
    return max(known, key=len, default="")
