"""A spinning lidar: its beams, its clock, and deskewing of its points by the true motion."""

from dataclasses import replace

import numpy as np
import pytest

from transect.geometry import se3
from transect.simulation import lidar
from transect.simulation.driving import Chassis, course, drive, turn
from transect.simulation.lidar import VLP_32C, SpinningLidar, revolution
from transect.simulation.motion import Motion
from transect.simulation.randomness import generator
from transect.simulation.raycast import Hits, Scene
from transect.simulation.terrain import flat
from transect.types import PointCloud

SCENE = Scene(flat(size_m=60.0, cell=1.0))
MAST = se3.from_matrix(np.diag([-1.0, -1.0, 1.0]), [-0.5, 0.0, 1.5])
THIN = revolution(VLP_32C, every=20)


def turning() -> Motion:
    """As fast as a rover can: 0.8 m/s on a circle of 1 m."""
    wheels = np.array([[0.5, 0.5], [-0.5, 0.5], [-0.5, -0.5], [0.5, -0.5]])
    way = course([turn(3.0, 1.0, 0.8)], 4.0)
    return drive(way, Chassis(wheels, 0.3, shaking=0.002), lambda xy: np.zeros(xy.shape[:-1]))


MOTION = turning()


def scanned(
    begin_ns: int,
    seed: int = 0,
    motion: Motion = MOTION,
    device: SpinningLidar = VLP_32C,
    bias: np.ndarray | None = None,
) -> PointCloud:
    def half(places: np.ndarray, hits: Hits) -> np.ndarray:
        return np.full(len(places), 0.5)

    noise = generator(seed, "lidar", begin_ns)
    return lidar.scan(SCENE, motion, MAST, begin_ns, device, THIN, half, noise, bias=bias)


def test_a_revolution_is_that_of_table_1() -> None:
    # AMEDS Table 1: 32 channels, 360 x 40 degrees, 300 rpm.
    shots = revolution(VLP_32C)
    assert len(set(shots.ring.tolist())) == 32
    elevation = np.degrees(np.arcsin(shots.directions[:, 2]))
    assert np.ptp(elevation) == pytest.approx(40.0)
    assert shots.offset_ns.max() < 0.2e9
    assert shots.offset_ns.max() > 0.1999e9
    azimuth = np.sort(np.degrees(np.arctan2(*shots.directions[:, 1::-1].T)))
    assert np.diff(azimuth).max() < 0.11
    assert np.linalg.norm(shots.directions, axis=1) == pytest.approx(1.0)


def test_higher_rings_look_higher_and_the_head_turns_clockwise() -> None:
    shots = revolution(VLP_32C)
    elevation = [shots.directions[shots.ring == ring, 2].mean() for ring in range(32)]
    assert np.all(np.diff(elevation) > 0)
    one = shots.directions[shots.ring == 0]
    assert np.all(np.diff(np.unwrap(np.arctan2(one[:, 1], one[:, 0]))) < 0)


def test_points_are_in_the_sensor_at_their_own_time_and_truth_deskews_them() -> None:
    begin = 2_000_000_000
    cloud = scanned(begin)
    poses = MOTION.at(begin + cloud.fields["t_offset_ns"]).transforms @ MAST
    straight = se3.apply(poses, cloud.points.astype(np.float64))
    skewed = se3.apply(poses[0], cloud.points.astype(np.float64))
    down = np.abs(straight[:, 2] / np.linalg.norm(straight - poses[:, :3, 3], axis=1))
    sine = (poses[:, 2, 3] - straight[:, 2]) / np.linalg.norm(cloud.points, axis=1)
    assert down.max() < 0.2
    # Off the plane by 3 cm along the beam, that is times the sine of its angle to the ground: chi-square.
    scaled = straight[:, 2] / (sine * 0.03)
    n = len(scaled)
    assert n > 2000
    assert abs((scaled**2).sum() - n) < 4 * np.sqrt(2 * n)
    far = np.linalg.norm(cloud.points, axis=1) > 10
    assert np.linalg.norm(skewed - straight, axis=1)[far].max() > 0.5


def test_only_surfaces_in_range_have_returns() -> None:
    cloud = scanned(1_000_000_000)
    ranges = np.linalg.norm(cloud.points, axis=1)
    assert ranges.min() > 0.8
    assert ranges.max() < 45
    assert len(cloud) < len(THIN.ring)
    assert (cloud.points[:, 2] < 0.2).all()


def test_intensity_falls_with_the_incidence() -> None:
    cloud = scanned(1_000_000_000)
    near = np.linalg.norm(cloud.points, axis=1) < 5
    assert cloud.fields["intensity"].max() <= 50
    assert cloud.fields["intensity"][near].mean() > 2 * cloud.fields["intensity"][~near].mean()


def test_ground_that_returns_too_little_light_is_not_seen() -> None:
    # A mast of 1.5 m over the axles, 0.3 m high: light falls as 0.5 * 1.8 / r / r^2.
    faint = replace(VLP_32C, min_signal=0.5 * 1.8 / 20.0**3, range_std=0.0)
    ranges = np.linalg.norm(scanned(0, device=faint).points, axis=1)
    assert 18.0 < ranges.max() < 21.0
    assert np.linalg.norm(scanned(0).points, axis=1).max() > 28.0


def test_each_beam_keeps_its_own_bias() -> None:
    exact = replace(VLP_32C, range_std=0.0)
    bias = lidar.draw_bias(replace(exact, bias_std=0.02), seed=3)
    straight, off = scanned(0, device=exact), scanned(0, device=exact, bias=bias)
    longer = np.linalg.norm(off.points, axis=1) - np.linalg.norm(straight.points, axis=1)
    assert longer == pytest.approx(bias[off.fields["ring"]], abs=1e-5)
    assert 0.01 < bias.std() < 0.03


def test_the_same_seed_gives_the_same_cloud() -> None:
    one, again, other = scanned(1_000_000_000), scanned(1_000_000_000), scanned(1_000_000_000, seed=1)
    assert np.array_equal(one.points, again.points)
    assert not np.array_equal(one.points, other.points)
    assert np.array_equal(one.fields["ring"], other.fields["ring"])
