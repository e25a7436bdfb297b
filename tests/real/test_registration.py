"""Real scans laid on each other without a guess, from a metre and twenty degrees away."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import transect
from transect.engine import Run
from transect.geometry import rotations, se3
from transect.recording import Recording, Stream
from transect.recording.stream import stream_of_values
from transect.types import PointCloud

AXIS, WAY = np.array([0.6, 0.0, 0.8]), np.array([0.6, -0.64, 0.48])
WRONG = se3.from_matrix(rotations.matrix_from_rotation_vector(np.radians(20) * AXIS), WAY)
"""What the source is moved by: 20 degrees about a slanted axis, and 1 m."""
ACCEPTED_ERRORS = {"small_gicp": (0.02, 0.2), "car": (0.06, 0.3)}
"""Metres and degrees to which the transforms that come with the data are true."""


@pytest.fixture(scope="module", params=["small_gicp", "car"])
def pair(request: pytest.FixtureRequest, real_data: Path) -> tuple[str, Recording, np.ndarray]:
    """Name, recording of two clouds with the source moved away, and ``T_sink_source`` before that."""
    if request.param == "small_gicp":
        clouds = transect.open(real_data / "lidar_small_gicp")
        source, sink = clouds["source"][0].payload, clouds["target"][0].payload
        truth = np.loadtxt(real_data / "lidar_small_gicp" / "T_target_source.txt")
    else:
        clouds = transect.open(real_data / "lidar_libpointmatcher")
        sink, source = (sample.payload for sample in clouds["data/car_cloud"])
        given = clouds["data/carCloudList"][1].value
        truth = se3.from_quaternion(given.orientation, given.position)
    moved = PointCloud(se3.apply(WRONG, source.points))
    return request.param, Recording("pair", (one("source", moved), one("target", sink))), truth


def one(tag: str, cloud: PointCloud) -> Stream:
    return stream_of_values(
        tag, np.zeros(1, np.int64), {}, type=PointCloud, tag=tag, loader=lambda row: cloud
    )


def error(run: Run, truth: np.ndarray) -> tuple[float, float]:
    """Metres and degrees between the pose that a run found and the truth."""
    (pose,) = run["pose"].values
    found = se3.from_quaternion(pose.orientation, pose.position) @ WRONG
    turn = rotations.rotation_vector_from_matrix(found[:3, :3].T @ truth[:3, :3])
    return float(np.linalg.norm(found[:3, 3] - truth[:3, 3])), float(np.degrees(np.linalg.norm(turn)))


def test_the_pair_is_registered_as_well_as_its_truth_is_known(pair: tuple[str, Recording, np.ndarray]):
    name, recording, truth = pair
    far, turned = error(transect.run("CloudRegistration/KissMatcherPlane", recording), truth)
    assert far < ACCEPTED_ERRORS[name][0]
    assert turned < ACCEPTED_ERRORS[name][1]
