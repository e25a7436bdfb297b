"""A Rosario sequence as a bag: the topics, types and calibrations of the published ones (document 001, 6)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.highlevel import AnyReader
from tests.datasets.rosario import sample

import transect
from transect.formats import rosbag
from transect.recording import Recording

# data/README.md: "topics of the published bags"
PUBLISHED = {
    "/stereo/left/image_raw": "sensor_msgs/msg/Image",
    "/stereo/left/camera_info": "sensor_msgs/msg/CameraInfo",
    "/stereo/right/image_raw": "sensor_msgs/msg/Image",
    "/stereo/right/camera_info": "sensor_msgs/msg/CameraInfo",
    "/imu": "sensor_msgs/msg/Imu",
    "/gps/fix": "sensor_msgs/msg/NavSatFix",
    "/gps/vel": "geometry_msgs/msg/TwistStamped",
    "/odom": "nav_msgs/msg/Odometry",
    "/tf_static": "tf2_msgs/msg/TFMessage",
}
STAMPS = [1514301955465000000, 1514301955531250000]


def stamp_ns(message: Any) -> int:
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


@pytest.fixture(scope="module", params=["seq.bag", "seq"])
def bag(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, Path]:
    """Return a sequence, and the bag that it was written as."""
    folder = tmp_path_factory.mktemp("rosario")
    sample.write_scripts_layout(folder / "dataset")
    recording, path = sample.opened(folder / "dataset"), folder / request.param
    said = rosbag.write(recording, path)
    assert any("becomes odometry" in each for each in said)
    return recording, path


@pytest.fixture(scope="module")
def messages(bag: tuple[Recording, Path]) -> dict[str, list[Any]]:
    """Return all messages by topic, as rosbags reads them."""
    found: dict[str, list[Any]] = {}
    with AnyReader([bag[1]]) as reader:
        kinds = {c.topic: c.msgtype for c in reader.connections if c.topic in PUBLISHED}
        for connection, _, raw in reader.messages():
            message = reader.deserialize(raw, connection.msgtype)
            found.setdefault(connection.topic, []).append(message)
    assert kinds == PUBLISHED
    return found


def matrix(message: Any, name: str) -> np.ndarray:
    """ROS 1 spells K, R, P; ROS 2 k, r, p."""
    return np.asarray(getattr(message, name, getattr(message, name.lower(), None)))


@pytest.mark.parametrize("side", ["left", "right"])
def test_every_image_has_a_calibration_with_its_stamp_and_frame(
    side: str, messages: dict[str, list[Any]]
) -> None:
    images, infos = messages[f"/stereo/{side}/image_raw"], messages[f"/stereo/{side}/camera_info"]
    assert [stamp_ns(m) for m in images] == [stamp_ns(m) for m in infos] == STAMPS
    assert {m.header.frame_id for m in images + infos} == {f"{side}_camera"}
    assert {m.encoding for m in images} == {"bgr8"}
    frames = {t.child_frame_id for m in messages["/tf_static"] for t in m.transforms}
    assert {f"{side}_camera", "imu", "gps"} <= frames


def test_the_calibrations_are_those_of_a_rectified_pair(messages: dict[str, list[Any]]) -> None:
    left, right = (messages[f"/stereo/{side}/camera_info"][0] for side in ("left", "right"))
    assert matrix(left, "K").tolist() == [350.5, 0, 340.25, 0, 351.5, 188.75, 0, 0, 1]
    assert matrix(right, "D").tolist() == [-0.171, 0.028, -0.0001, -0.0001]
    P_left, P_right = matrix(left, "P").reshape(3, 4), matrix(right, "P").reshape(3, 4)
    assert np.array_equal(P_left[:, :3], P_right[:, :3])
    assert P_right[0, 3] == pytest.approx(-0.119 * P_right[0, 0])  # the baseline of T_cn_cnm1
    for message in (left, right):
        R = matrix(message, "R").reshape(3, 3)
        assert np.allclose(R @ R.T, np.eye(3), atol=1e-12)


def test_wheels_and_steering_become_odometry(messages: dict[str, list[Any]]) -> None:
    first = messages["/odom"][0]
    assert (first.header.frame_id, first.child_frame_id) == ("odom", "base_link")
    assert abs(first.twist.twist.linear.x) == pytest.approx(
        31 * sample.RIM_M_S_PER_RPM
    )  # the mean of 30 and 32 turns


def test_the_bag_opens_again_as_the_sequence_that_it_was(bag: tuple[Recording, Path]) -> None:
    recording, path = bag
    back = transect.open(path)
    assert {"Zed/Left", "Zed/Right", "Imu", "Gps/Fix", "Gps/Velocity"} <= {stream.name for stream in back}
    for side in ("Left", "Right"):
        image, known = back[f"Zed/{side}"][1].value, recording[f"Zed/{side}"][1].value
        assert np.array_equal(image.data, known.data)
        assert image.camera.same_as(known.camera)
    assert back["Imu"]["gyro_x"].tolist() == recording["Imu"]["gyro_x"].tolist()
