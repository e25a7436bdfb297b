"""Camera calibrations of a bag from CameraInfo messages, and their images."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from transect.errors import FrameError, GeometryError
from transect.geometry.rectification import rectify_pair
from transect.recording import Recording, Stream
from transect.types import CameraModel, WheelState

from .ros_messages import fields_of, frame_name
from .topics import Topic

CAMERA_INFO = "sensor_msgs/msg/CameraInfo"
RECTIFICATION = "rectification"
"""Name of R and P in the list of unmeasured values; ROS requires them."""
_MODELS = {
    "plumb_bob": "radtan",
    "rational_polynomial": "radtan",
    "equidistant": "equidistant",
    "fisheye": "equidistant",
}


@dataclass(frozen=True)
class Cameras:
    """The calibrated cameras of a bag."""

    models: Mapping[str, CameraModel]  # By the name of the folder of their topic
    folders: Mapping[str, str]  # Name of the camera by the folder of its CameraInfo
    notes: tuple[str, ...] = ()  # On invalid calibrations

    def beside(self, topic: Topic) -> str:
        """Return the name of the camera in the deepest folder of an image topic; "" without one."""
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
    """Return the camera of a CameraInfo topic: `left` of /left/camera_info."""
    return topic.rpartition("/")[0].strip("/") or topic


def camera_of(fields: Mapping[str, Any], name: str) -> CameraModel:
    """Return the camera of a CameraInfo message; raise ValueError if it is not calibrated."""
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


def publish(recording: Recording) -> tuple[Recording, list[str]]:
    """Return the recording in the form that its robot publishes, and sentences on what is left out.

    Wheels and steering that have a topic of their own are integrated: ROS has no message for them.
    """
    topics = recording.robot.topics if recording.robot is not None else {}
    wheels = next((s for s in recording if s.type is WheelState and s.name in topics), None)
    if wheels is None:
        return recording, []
    from transect.robots.ackermann import wheel_odometry

    driven = wheel_odometry(recording).replace(name=wheels.name)
    streams = tuple(driven if stream is wheels else stream for stream in recording.streams)
    said = f"{wheels.name} becomes odometry, as in the published bags: no wheels, no steering"
    return recording.replace(streams=streams), [said]


def topic_of(stream: Stream, recording: Recording) -> str:
    """Return the topic under which a robot publishes a stream, or else its name."""
    return stream.name if recording.robot is None else recording.robot.topics.get(stream.name, stream.name)


def info_topic(image: str) -> str:
    """Return the topic of the calibration of an image topic, as in image_transport."""
    folder, _, last = image.rpartition("/")
    return f"{folder if folder and last.startswith('image') else image}/camera_info"


def rectify_cameras(recording: Recording) -> dict[str, CameraModel]:
    """Return the cameras with a `P` each: that of the rectified pair if possible, else from `K`."""
    cameras = {
        name: camera
        if camera.P is not None
        else dataclasses.replace(camera, P=np.column_stack([camera.K, np.zeros(3)]))
        for name, camera in recording.cameras.items()
    }
    left, right = (_camera_on(side, recording) for side in ("left", "right"))
    if left is None or right is None or left.P is not None or right.P is not None:
        return cameras
    try:
        pair = rectify_pair(left, right, recording.frames.lookup(right.frame, left.frame))
    except (FrameError, GeometryError):
        return cameras
    return cameras | {camera.name: camera for camera in pair}


def _camera_on(side: str, recording: Recording) -> CameraModel | None:
    def is_there(stream: Stream) -> bool:
        return stream.tag == side and stream.camera in recording.cameras

    found = next((stream for stream in recording if is_there(stream)), None)
    return None if found is None else recording.cameras[found.camera]
