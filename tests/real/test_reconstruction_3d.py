"""Reconstruction3D on real images: the first pairs of KITTI 06, a street, 1.2 m from pair to pair."""

from pathlib import Path

import numpy as np
import pytest

import transect
from transect.evaluation.clouds import place_by_truth, pose_errors
from transect.geometry import se3


def test_the_first_pairs_of_a_street_become_a_model_of_it(real_data: Path):
    street = transect.open(real_data / "kitti_raw_06").slice("+0s", "+0.25s")
    run = transect.run("Reconstruction3D", street)
    assert run["success"].values == [True] * 3
    poses = run["pose"].values
    found = [se3.from_quaternion(pose.orientation, pose.position) for pose in poses]
    true = [place_by_truth(street, pose.child, pose.t_ns) for pose in poses]
    assert pose_errors(found, true).max() < 0.1
    model = run["pointCloud"].values[-1].points
    # The camera stands 1.65 m above the road (Geiger et al. 2013, figure 3); y is down: nothing is deeper.
    near = model[(model[:, 2] > 6) & (model[:, 2] < 10)]
    assert len(near) > 5000
    assert np.quantile(near[:, 1], 0.98) == pytest.approx(1.65, abs=0.2)
