"""A recording as its robot publishes it: under its topics, wheels as odometry, calibrations for ROS."""

from __future__ import annotations

import dataclasses

import numpy as np

from transect.errors import FrameError, GeometryError
from transect.geometry.rectification import rectify_pair
from transect.recording import Recording, Stream
from transect.types import CameraModel, WheelState


def publish(recording: Recording) -> tuple[Recording, list[str]]:
    """Return the recording as its robot publishes it, and sentences on what that leaves out.

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
    """Return where image_transport looks for the calibration of a topic of images."""
    folder, _, last = image.rpartition("/")
    return f"{folder if folder and last.startswith('image') else image}/camera_info"


def rectify_cameras(recording: Recording) -> dict[str, CameraModel]:
    """Return the cameras with a `P` each: that of their pair where the frames tell it, else their own `K`."""
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
