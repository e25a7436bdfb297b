"""Equal to evo: 100 random pairs with every disorder, and every file of the real trajectories."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transect.evaluation import Pairs, absolute_error, associate, load_trajectory, relative_error
from transect.types import Trajectory

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from evo.core import metrics, sync
    from evo.core.trajectory import PosePath3D, PoseTrajectory3D
    from evo.tools import file_interface


def evo_of(trajectory: Trajectory) -> Any:
    q = trajectory.orientations
    return PoseTrajectory3D(trajectory.positions, q[:, [3, 0, 1, 2]], trajectory.t_ns / 1e9)


def random_pair(seed: int) -> tuple[Trajectory, Trajectory]:
    """A walk and a noisy, turned, scaled copy: stamps dropped, jittered, doubled; some nearly straight."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 200))
    t = np.cumsum(rng.integers(40, 60, n)) * 1_000_000
    shape = np.array([[1, 1, 1], [1, 1, 1e-3], [1, 2e-2, 1e-2]][seed % 3])
    positions = np.cumsum(rng.normal(size=(n, 3)) * shape, axis=0)
    quaternions = rng.normal(size=(n, 4))
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    reference = Trajectory(t, positions, quaternions)
    kept = np.sort(rng.choice(n, size=max(12, int(n * rng.uniform(0.5, 1))), replace=False))
    if seed % 5 == 0:
        kept = np.sort(np.concatenate([kept, kept[:3]]))
    turn = rng.normal(size=4)
    turn /= np.linalg.norm(turn)
    from transect.geometry import rotations

    moved = rotations.rotate(turn, positions[kept] * rng.uniform(0.5, 2)) + rng.normal(size=3)
    noisy = moved + rng.normal(scale=0.05, size=moved.shape)
    turned = rotations.multiply(turn, quaternions[kept])
    jitter = rng.integers(-4, 5, len(kept)) * 1_000_000
    return reference, Trajectory(t[kept] + jitter, noisy, turned)


def synced(reference: Any, estimate: Any, max_diff: float = 0.01) -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sync.associate_trajectories(reference, estimate, max_diff=max_diff)


def check_absolute(pairs: Pairs, theirs: tuple[Any, Any]) -> None:
    import copy

    angle = metrics.APE(metrics.PoseRelation.rotation_angle_rad)
    for mode, options in (("none", None), ("se3", {}), ("sim3", {"correct_scale": True})):
        reference, estimate = theirs[0], copy.deepcopy(theirs[1])
        if options is not None:
            estimate.align(reference, **options)
        ape = metrics.APE(metrics.PoseRelation.translation_part)
        ape.process_data((reference, estimate))
        ours = absolute_error(pairs, mode)
        np.testing.assert_allclose(ours.translation, ape.error, atol=1e-9)
        for name, value in ape.get_all_statistics().items():
            assert getattr(ours.statistics, name) == pytest.approx(value, rel=1e-9, abs=1e-9)
        if mode != "sim3":  # a scale turns nothing: the angles of se3
            angle.process_data((reference, estimate))
        np.testing.assert_allclose(ours.rotation, angle.error, atol=1e-6)


STEPS = (
    (1, "frames", metrics.Unit.frames),
    (5, "frames", metrics.Unit.frames),
    (2.0, "metres", metrics.Unit.meters),
)


def check_relative(pairs: Pairs, theirs: tuple[Any, Any], steps: Any = STEPS) -> None:
    for step, per, unit in steps:
        rpe: Any = None
        for overlapping in (False, True):
            if overlapping and per == "metres":
                continue  # there evo takes the pairs within a tolerance of the distance, another question
            if rpe is None or step != 1:  # steps of one pose are the same pairs, overlapping or not
                rpe = metrics.RPE(
                    metrics.PoseRelation.translation_part,
                    step,
                    unit,
                    all_pairs=overlapping,
                    pairs_from_reference=True,
                )
                rpe.process_data(theirs)
            ours = relative_error(pairs, step, per, overlapping=overlapping)
            np.testing.assert_allclose(ours.translation, rpe.error, atol=1e-9)


@given(st.integers(0, 2**32 - 1))
@example(0)  # stamps doubled
@example(1)  # nearly flat
@example(2)  # nearly straight
def test_a_random_pair_has_evos_numbers(seed: int):
    reference, estimate = random_pair(seed)
    pairs = associate(reference, estimate, least=0)
    theirs = synced(evo_of(reference), evo_of(estimate))
    assert len(pairs) == theirs[0].num_poses
    check_absolute(pairs, theirs)
    check_relative(pairs, theirs)


REAL = {
    "fr2_desk_ORB.txt": "fr2_desk_groundtruth.txt",
    "fr2_desk_ORB_kf_mono.txt": "fr2_desk_groundtruth.txt",
    "freiburg1_xyz-ORB_kf_mono.txt": "freiburg1_xyz-groundtruth.txt",
    "freiburg1_xyz-rgbdslam.txt": "freiburg1_xyz-groundtruth.txt",
    "freiburg1_xyz-rgbdslam_drift.txt": "freiburg1_xyz-groundtruth.txt",
    "freiburg1_xyz-rgbdslam_drift_short.txt": "freiburg1_xyz-groundtruth.txt",
    "V102.txt": "V102_groundtruth.csv",
    "georeferenced.tum": "georeferenced.tum",
}
KITTI = {"KITTI_00_ORB.txt": 1.30345, "KITTI_00_SPTAM.txt": 3.73849}
"""RMSE [m] after alignment, as evo publishes it."""


def read_by_evo(path: Path) -> Any:
    readers = {".csv": file_interface.read_euroc_csv_trajectory}
    return readers.get(path.suffix, file_interface.read_tum_trajectory_file)(str(path))


@pytest.mark.real
def test_every_file_of_the_set_is_compared(real_data: Path):
    there = {path.name for path in (real_data / "trajectories_evo").iterdir()}
    no_poses = {"SOURCE.txt", "KITTI_00_gt_times.txt"}
    assert there - no_poses == {*REAL, *REAL.values(), *KITTI, "KITTI_00_gt.txt"}


@pytest.mark.real
@pytest.mark.parametrize(("estimate", "reference"), REAL.items())
def test_a_real_pair_has_evos_numbers(real_data: Path, estimate: str, reference: str):
    folder = real_data / "trajectories_evo"
    ours = load_trajectory(folder / reference), moved(load_trajectory(folder / estimate), estimate, reference)
    read = [read_by_evo(folder / name) for name in (reference, estimate)]
    if estimate == reference:
        read[1] = evo_of(ours[1])
    matched = synced(*read)
    pairs = associate(*ours, least=0)
    assert len(pairs) == matched[0].num_poses
    check_absolute(pairs, matched)


def moved(trajectory: Trajectory, estimate: str, reference: str) -> Trajectory:
    """Return an estimate; of a file that has none, itself with errors, far from the origin of its grid."""
    if estimate != reference:
        return trajectory
    noise = np.random.default_rng(1).normal(scale=0.3, size=trajectory.positions.shape)
    return replace(trajectory, positions=trajectory.positions + noise + [3.0, -2.0, 0.5])


def with_rotations(path: Any) -> Any:
    """Return a path of evo's with the nearest rotations: KITTI's files round their matrices, by 1e-6."""
    poses = np.array(path.poses_se3)
    left, _, right = np.linalg.svd(poses[:, :3, :3])
    poses[:, :3, :3] = left @ right
    return PosePath3D(poses_se3=list(poses))


def downsampled(pairs: Pairs, rows: slice) -> Pairs:
    return replace(pairs, reference=chosen(pairs.reference, rows), estimate=chosen(pairs.estimate, rows))


def chosen(trajectory: Trajectory, rows: slice) -> Trajectory:
    parts = (trajectory.t_ns, trajectory.positions, trajectory.orientations)
    return Trajectory(*(part[rows] for part in parts))


@pytest.mark.real
@pytest.mark.parametrize(("estimate", "published"), KITTI.items())
def test_kitti_00_has_evos_numbers_and_the_published_error(real_data: Path, estimate: str, published: float):
    folder = real_data / "trajectories_evo"
    names = ("KITTI_00_gt.txt", estimate)
    theirs = tuple(file_interface.read_kitti_poses_file(str(folder / name)) for name in names)
    pairs = associate(*(load_trajectory(folder / name) for name in names))
    assert len(pairs) == theirs[0].num_poses
    few = slice(None, None, 4)  # evo takes seconds for all
    some = tuple(PosePath3D(poses_se3=path.poses_se3[few]) for path in theirs)
    check_absolute(downsampled(pairs, few), some)
    check_relative(downsampled(pairs, few), tuple(map(with_rotations, some)), STEPS[1:2])
    assert absolute_error(pairs, "se3").statistics.rmse == pytest.approx(published, abs=5e-6)
