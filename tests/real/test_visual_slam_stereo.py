"""VisualSlamStereo on a real street (KITTI 06) that was driven twice, 87 s apart."""

from pathlib import Path

import numpy as np
import pytest

import transect
from transect.evaluation.positions.streams import trajectory_of
from transect.geometry import se3
from transect.recording.place_maps import read_map
from transect.types import Pose

pytest.importorskip("gtsam")
pytest.importorskip("faiss")
SECONDS = "+2.6s"
"""Of both drives: 25 pairs, 30 m."""


@pytest.fixture(scope="module")
def street(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("slam") / "street"
    transect.run("VisualSlamStereo", real_data / "kitti_raw_06", end=SECONDS, out=folder)
    return folder


def true_poses(path: Path, t_ns: np.ndarray) -> np.ndarray:
    """Poses (n, 4, 4) of the left camera at the times of images."""
    truth = trajectory_of(transect.open(path).truth)
    rows = np.searchsorted(truth.t_ns, t_ns)
    np.testing.assert_array_equal(truth.t_ns[rows], t_ns)
    assert truth.orientations is not None
    return se3.from_quaternion(truth.orientations[rows], truth.positions[rows])


def test_the_street_driven_again_is_found_in_its_map(real_data: Path, street: Path):
    """To 0.3 m and 1 deg, seen from the map's keyframe that is nearest in truth."""
    again = real_data / "kitti_06_revisit"
    run = transect.run("VisualSlamStereo", again, end=SECONDS, map=street)
    found: list[Pose] = run["pose"].values
    assert len(found) >= len(run["located"].values) - 2  # two looks that agree, then never lost
    places = read_map(street)
    keyframes = true_poses(real_data / "kitti_raw_06", places.t_ns)
    true = true_poses(again / "gt_poses_06_frames833-885.tum", np.array([pose.t_ns for pose in found]))
    for pose, T in zip(found, true, strict=True):
        k = int(np.argmin(np.linalg.norm(keyframes[:, :3, 3] - T[:3, 3], axis=1)))
        said = se3.invert(places.poses[k]) @ se3.from_quaternion(pose.orientation, pose.position)
        off = se3.log(se3.invert(se3.invert(keyframes[k]) @ T) @ said)
        assert np.linalg.norm(off[:3]) < 0.3
        assert np.degrees(np.linalg.norm(off[3:])) < 1.0


def test_a_turn_elsewhere_is_not_found_in_the_map_of_the_street(real_data: Path, street: Path):
    run = transect.run("VisualSlamStereo", real_data / "kitti_06_turn", end="+1.5s", map=street)
    assert not any(run["located"].values)
    assert any(each.bad and "LOST" in each.text for each in run.conclusions)
