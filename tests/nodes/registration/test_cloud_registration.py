"""The compound CloudRegistration: all implementations on one small room."""

from __future__ import annotations

import numpy as np
import pytest

import transect
from transect.geometry import se3
from transect.recording import Recording, Stream
from transect.recording.stream import stream_of_values
from transect.types import PointCloud

from .test_registration import LARGE_MOTION, SINK, room

FEW_POINTS = {"thin_source.points": 1000, "thin_sink.points": 1000}
SMALL_MOTION = se3.exp(np.array([0.05, -0.03, 0.02, 0.01, -0.01, 0.02]))


def single_cloud(tag: str, points: np.ndarray) -> Stream:
    cloud = PointCloud(points, frame=tag)
    return stream_of_values(
        tag, np.zeros(1, np.int64), {}, type=PointCloud, tag=tag, loader=lambda row: cloud
    )


def moved_room(T: np.ndarray) -> Recording:
    return Recording(
        "room", (single_cloud("source", se3.apply(T, room(1))), single_cloud("target", SINK.points))
    )


@pytest.mark.parametrize(
    ("variant", "motion"),
    [
        ("KissMatcherPlane", LARGE_MOTION),
        ("RansacGicp", LARGE_MOTION),
        ("Gicp", SMALL_MOTION),
        ("PointToPoint", SMALL_MOTION),
    ],
)
def test_a_room_is_registered_with_automatic_wiring(variant: str, motion: np.ndarray):
    run = transect.run(
        f"CloudRegistration/{variant}", moved_room(motion), set=FEW_POINTS if motion is LARGE_MOTION else {}
    )
    (pose,), (success,) = run["pose"].values, run["success"].values
    assert success
    np.testing.assert_allclose(pose.position, se3.invert(motion)[:3, 3], atol=0.03)
    assert (pose.frame, pose.child) == ("target", "source")


@pytest.mark.parametrize("variant", ["IssRansacGicp", "HarrisKissMatcherGicp"])
def test_failures_are_reported(variant: str):
    """A bare room has few corners, which are similar."""
    run = transect.run(f"CloudRegistration/{variant}", moved_room(LARGE_MOTION), set=FEW_POINTS)
    (success,) = run["success"].values
    poses = run["pose"].values
    assert len(poses) == success
    if success:
        np.testing.assert_allclose(poses[0].position, se3.invert(LARGE_MOTION)[:3, 3], atol=0.03)
