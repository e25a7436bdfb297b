"""Planar lasers and a radar on a vehicle, assembled in a fixed frame."""

from __future__ import annotations

import numpy as np
import pytest

from transect import robots
from transect.algorithms.clouds.voxels import VoxelSums
from transect.errors import UsageError
from transect.nodes.lidar.laser_assembly import NavStates, RecordedFrames, _beams_of_spectra
from transect.recording import FrameTree
from transect.robots.beams import Gate
from transect.types import LaserScan, RadarSpectrum, RigidBodyState

FIRST_NS = 1_200_000_000_000_000_000
NORTHING_M = 6_000_000.0  # m, as UTM northings
WALL_EAST_M = 10.0  # m east of the vehicle's path
LEVEL = np.array([0.0, 0.0, 0.0, 1.0])


def position(t_ns: int) -> np.ndarray:
    """Return the position of a vehicle that drives north at 2 m/s."""
    return np.array([NORTHING_M + 2.0 * (t_ns - FIRST_NS) / 1e9, 0.0, 0.0])


def wall_scan(t_ns: int) -> LaserScan:
    """Return 181 beams over the right half, of a wall 10 m to the east; longer ranges are codes."""
    angles = np.radians(np.arange(181))
    with np.errstate(divide="ignore"):
        ranges = WALL_EAST_M / np.sin(angles)
    return LaserScan(np.where(ranges < 40, ranges, 81.91), 0.0, np.radians(1.0), t_ns=t_ns, frame="Laser")


def spectrum(t_ns: int) -> RadarSpectrum:
    reflectivity = np.full(256, 10.0)
    reflectivity[39:42] = 40, 60, 40
    return RadarSpectrum(reflectivity, np.pi / 2, 0.25, 0.0, t_ns=t_ns, frame="Laser")


@pytest.fixture
def frames() -> FrameTree:
    return moving_frames()


def moving_frames() -> FrameTree:
    times = FIRST_NS + np.arange(30) * 50_000_000
    tree = FrameTree()
    tree.add_static("Body", "Laser", np.eye(4))
    places = [position(t) for t in times.tolist()]
    tree.add_moving("Navigation", "Body", times, places, np.tile(LEVEL, (30, 1)))
    return tree


def run_assembly(node: RecordedFrames | NavStates, frames: FrameTree):
    """Run the node on a second of driving, in ticks of 0.1 s; the codes are those of Argo's lasers."""
    node.ctx.frames, node.ctx.robot = frames, robots.load("argo")
    for tick in range(1, 12):
        now = FIRST_NS + tick * 100_000_000
        node.ctx.time = now
        times = [now - 100_000_000 + k * 20_000_000 for k in range(5)]
        states = [RigidBodyState(position(t), LEVEL, t_ns=t, frame="Navigation", child="Body") for t in times]
        node(port=[wall_scan(t) for t in times], spectrum=[spectrum(t) for t in times], nav=states)
    return node.finish()


@pytest.mark.parametrize("kind", [RecordedFrames, NavStates])
def test_a_passed_wall_is_straight(kind, frames: FrameTree):
    cloud = run_assembly(kind(), frames).map
    assert cloud.frame == "Navigation"
    assert len(cloud) > 100
    np.testing.assert_allclose(cloud.points[:, 1], WALL_EAST_M, atol=1e-6)
    assert np.ptp(cloud.points[:, 0]) > 40


@pytest.mark.parametrize("kind", [RecordedFrames, NavStates])
def test_the_strongest_radar_peak_is_placed_with_its_intensity(kind, frames: FrameTree):
    cloud = run_assembly(kind(), frames).radar
    # Bin 41, counted from 1, of 0.25 m: SDI, eq. 1.
    np.testing.assert_allclose(cloud.points[:, 1], 41 * 0.25, atol=1e-9)
    np.testing.assert_allclose(cloud.fields["intensity"], 60, atol=1e-6)


def test_without_measurements_there_is_no_map():
    found = RecordedFrames().finish()
    assert found.map is None
    assert found.radar is None


def test_voxel_sums_do_not_depend_on_the_order_of_points():
    rng = np.random.default_rng(1)
    points = rng.uniform(-5, 5, (2000, 3)) + np.array([NORTHING_M, 0, 0])
    values = rng.uniform(size=(2000, 1))
    at_once, in_parts = VoxelSums(0.5), VoxelSums(0.5)
    at_once.add(points, values)
    for part in np.array_split(np.arange(2000), 7):
        in_parts.add(points[part], values[part])
        in_parts.sums()
    np.testing.assert_array_equal(at_once.sums()[0], in_parts.sums()[0])
    np.testing.assert_allclose(at_once.sums()[1], in_parts.sums()[1], rtol=1e-12)
    voxels, sums = at_once.sums()
    assert sums[:, 0].sum() == 2000
    np.testing.assert_array_equal(np.floor(sums[:, 1:4] / sums[:, :1] / 0.5), voxels)


def test_a_map_is_made_by_the_scheduled_sensors(frames: FrameTree):
    half_ns = FIRST_NS + 500_000_000
    alternating = run_assembly(RecordedFrames(use=f"laser; {half_ns} radar"), frames).map
    lasers, radar = (alternating.points[alternating.fields["source"] == number] for number in (0, 1))
    beam_reach_m = 40.0  # to the north, of the outermost beams
    assert lasers[:, 0].min() < NORTHING_M + 1.0 < lasers[:, 0].max() <= NORTHING_M + 1.0 + beam_reach_m
    assert np.all(np.abs(radar[:, 0] - (NORTHING_M + 1.6)) <= 0.61)
    assert len(alternating) == len(lasers) + len(radar)
    both = run_assembly(RecordedFrames(use="laser+radar"), frames).map
    alone = run_assembly(RecordedFrames(), frames)
    assert len(both) == len(alone.map) + len(alone.radar)
    assert "source" not in alone.map.fields


def test_an_unknown_sensor_is_refused():
    with pytest.raises(UsageError, match="sonar"):
        RecordedFrames(use="laser; 5 sonar").reset()


@pytest.mark.parametrize("false_alarm", [0.5, 0.05])
def test_the_false_alarm_rate_of_radar_echoes(false_alarm: float):
    rng = np.random.default_rng(3)
    noise = 10 * np.log10(rng.exponential(100.0, (4000, 256)))
    spectra = [RadarSpectrum(row, 0.0, 0.25, 0.0, t_ns=k, frame="Laser") for k, row in enumerate(noise)]
    fraction = len(_beams_of_spectra(spectra, Gate(), false_alarm)) / len(spectra)
    assert fraction == pytest.approx(false_alarm, rel=0.2)
    assert len(_beams_of_spectra(spectra, Gate(), 1.0)) == len(spectra)
