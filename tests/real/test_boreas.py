"""A real Boreas drive of 8 km: its poses, in the UTM of the first release, and a result of the benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests import commands

import transect
from transect.evaluation.association import Pairs
from transect.evaluation.body_frames import at_frame_of
from transect.evaluation.inputs import load_trajectory
from transect.evaluation.relative_motions import segment_errors
from transect.geometry import rotations
from transect.recording import Recording, Stream

DRIVE = "boreas-2021-08-05-13-34"
PUBLISHED_ERRORS = 1.1093740051895995, 0.004420958778842962
"""Percent and deg/m that pyboreas prints for this result (pyboreas/eval/odometry.md, "Local evaluation")."""


@pytest.fixture(scope="module")
def folder(real_data: Path) -> Path:
    return real_data / "boreas_traj"


@pytest.fixture(scope="module")
def drive(folder: Path) -> Recording:
    return transect.open(folder / "gt" / DRIVE)


@pytest.fixture(scope="module")
def kit(folder: Path) -> Recording:
    return transect.open(folder / "gt" / DRIVE, attitude="devkit")


def matrices(stream: Stream) -> np.ndarray:
    return rotations.matrix_from_quaternion(stream.array("qx", "qy", "qz", "qw"))


def courses(stream: Stream) -> np.ndarray:
    """Return the direction of the velocity in the sensor's frame, where the car is faster than 5 m/s."""
    velocity = stream.array("vx", "vy", "vz")
    speed = np.linalg.norm(velocity, axis=1)
    seen = np.einsum("nji,nj->ni", matrices(stream), velocity)
    return seen[speed > 5] / speed[speed > 5, None]


def test_every_time_is_that_of_the_file_in_us_or_ns(folder: Path, drive: Recording) -> None:
    for sensor, unit_ns in (("lidar", 1000), ("radar", 1)):
        lines = (folder / "gt" / DRIVE / "applanix" / f"{sensor}_poses.csv").read_text().splitlines()[1:]
        times = [int(line.partition(",")[0]) * unit_ns for line in lines]
        assert drive[f"applanix/{sensor}_poses"].t_ns.tolist() == times
    assert not drive.losses


def test_the_car_drives_where_it_points(drive: Recording, kit: Recording) -> None:
    """The lidar is turned against the car by T_applanix_lidar; in the car y is forward."""
    T_lidar_applanix = drive.frames.lookup("lidar", "applanix")
    found = courses(drive["applanix/lidar_poses"])
    np.testing.assert_allclose(found.mean(axis=0), T_lidar_applanix[:3, 1], atol=0.011)
    up_and_down = found[:, 2].std()
    assert up_and_down < 0.007
    slopes = drive["applanix/lidar_poses"]["vz"] / np.linalg.norm(
        drive["applanix/lidar_poses"].array("vx", "vy", "vz"), axis=1
    ).clip(5)
    assert up_and_down < 0.5 * slopes.std()
    assert courses(kit["applanix/lidar_poses"])[:, 2].std() > slopes.std()


def test_velocities_and_the_turn_about_the_vertical_are_those_of_the_poses(drive: Recording) -> None:
    for sensor, upright in (("lidar", 1), ("radar", -1)):
        poses = drive[f"applanix/{sensor}_poses"]
        seconds = np.diff(poses.t_ns) / 1e9
        moved = np.diff(poses.array("x", "y", "z"), axis=0) / seconds[:, None]
        between = (poses.array("vx", "vy", "vz")[1:] + poses.array("vx", "vy", "vz")[:-1]) / 2
        assert np.abs(moved - between).mean() < 0.01 * np.linalg.norm(between, axis=1).mean()
        turned = matrices(poses)
        turns = rotations.rotation_vector_from_matrix(turned[1:] @ turned[:-1].transpose(0, 2, 1))[:, 2]
        rates = (poses["wz"][1:] + poses["wz"][:-1]) / 2
        assert np.corrcoef(turns / seconds, rates)[0, 1] > 0.995
        assert np.sign(turned[:, 2, 2]).tolist() == [upright] * len(turned)


def test_lidar_and_radar_are_one_body(kit: Recording) -> None:
    """Both as the development kit reads them, since T_radar_lidar.txt is not among the files."""
    lidar, radar = kit["applanix/lidar_poses"], kit["applanix/radar_poses"]
    near = np.searchsorted(lidar.t_ns, radar.t_ns).clip(1, len(lidar) - 1)
    part = (radar.t_ns - lidar.t_ns[near - 1]) / (lidar.t_ns[near] - lidar.t_ns[near - 1])
    q = lidar.array("qx", "qy", "qz", "qw")
    turned = rotations.matrix_from_quaternion(rotations.slerp(q[near - 1], q[near], part.clip(0, 1)))
    relative = np.swapaxes(turned, 1, 2) @ matrices(radar)
    mean = rotations.nearest_rotation(relative.mean(axis=0))
    away = np.linalg.norm(rotations.rotation_vector_from_matrix(relative @ mean.T), axis=1)
    assert np.median(away) < 0.001
    np.testing.assert_allclose(mean[2], (0, 0, -1), atol=0.002)


def test_the_result_is_the_truth_with_white_noise(folder: Path, kit: Recording) -> None:
    """It was made of the truth by adding 0.1 m and 0.01 rad to each pose; `T_vehicle_world`, in us."""
    estimate = load_trajectory(folder / "pred_3d")
    framed = at_frame_of(load_trajectory(kit["applanix/lidar_poses"]), estimate, kit.frames).estimate
    truth = load_trajectory(kit["applanix/lidar_poses"])
    np.testing.assert_array_equal(framed.t_ns, truth.t_ns)
    errors = framed.positions - truth.positions
    np.testing.assert_allclose(errors.std(axis=0), 0.1, rtol=0.05)
    assert np.abs(errors.mean(axis=0)).max() < 0.004
    assert framed.orientations is not None
    assert truth.orientations is not None
    turns = rotations.multiply(framed.orientations, rotations.conjugate(truth.orientations))
    np.testing.assert_allclose(rotations.rotation_vector_from_quaternion(turns).std(axis=0), 0.01, rtol=0.05)


def test_drift_is_what_the_development_kit_prints(folder: Path, kit: Recording) -> None:
    estimate = load_trajectory(folder / "pred_3d")
    truth = at_frame_of(estimate, load_trajectory(kit["applanix/lidar_poses"]), kit.frames).estimate
    errors = segment_errors(Pairs(truth, estimate, len(truth), "rows"))
    assert (errors.percent, errors.degrees_per_metre) == pytest.approx(PUBLISHED_ERRORS, rel=2e-7)


def test_a_result_is_evaluated_against_the_drive(folder: Path) -> None:
    """Noise is 0.1 m in each axis; drift is more than by the kit, which has the same wrong tilt in both."""
    paths = folder / "gt" / DRIVE, folder / "pred_3d" / f"{DRIVE}.txt"
    done = commands.transect("eval", *paths, "--relation", "ate", "--relation", "segments", "--json")
    assert done.returncode == 0, done.stderr
    metrics = json.loads(done.stdout)["results"][0]["metrics"]
    assert metrics["ate"]["translation"]["rmse"] == pytest.approx(0.1 * 3**0.5, rel=0.02)
    assert PUBLISHED_ERRORS[0] < metrics["segments"]["percent"] < 3
    assert "moved from applanix to lidar" in done.stdout
