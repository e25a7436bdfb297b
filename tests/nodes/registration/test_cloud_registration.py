"""The compound CloudRegistration: all of its implementations on one small room."""

from __future__ import annotations

import numpy as np
import pytest

import transect
from transect.geometry import se3
from transect.recording import Recording, Stream
from transect.recording.stream import stream_of_values
from transect.types import PointCloud

from .test_registration import SINK, WRONG, room

FEW = {"thin_source.points": 1000, "thin_sink.points": 1000}
NEAR = se3.exp(np.array([0.05, -0.03, 0.02, 0.01, -0.01, 0.02]))


def one(tag: str, points: np.ndarray) -> Stream:
    cloud = PointCloud(points, frame=tag)
    return stream_of_values(
        tag, np.zeros(1, np.int64), {}, type=PointCloud, tag=tag, loader=lambda row: cloud
    )


def moved_by(T: np.ndarray) -> Recording:
    return Recording("room", (one("source", se3.apply(T, room(1))), one("target", SINK.points)))


@pytest.mark.parametrize(
    ("variant", "moved"),
    [("KissMatcherPlane", WRONG), ("RansacGicp", WRONG), ("Gicp", NEAR), ("PointToPoint", NEAR)],
)
def test_a_room_is_found_in_itself_and_the_wiring_needs_no_help(variant: str, moved: np.ndarray):
    run = transect.run(f"CloudRegistration/{variant}", moved_by(moved), set=FEW if moved is WRONG else {})
    (pose,), (success,) = run["pose"].values, run["success"].values
    assert success
    np.testing.assert_allclose(pose.position, se3.invert(moved)[:3, 3], atol=0.03)
    assert (pose.frame, pose.child) == ("target", "source")


@pytest.mark.parametrize("variant", ["IssRansacGicp", "HarrisKissMatcherGicp"])
def test_what_does_not_find_it_says_so(variant: str):
    """Corners of a bare room are few and alike."""
    run = transect.run(f"CloudRegistration/{variant}", moved_by(WRONG), set=FEW)
    (success,) = run["success"].values
    poses = run["pose"].values
    assert len(poses) == success
    if success:
        np.testing.assert_allclose(poses[0].position, se3.invert(WRONG)[:3, 3], atol=0.03)
