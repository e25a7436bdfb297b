"""The compound VisualOdometry on a ray-traced drive."""

import dataclasses

import numpy as np
import pymap3d
import pytest
from tests.nodes.stereo.drives import LEFT, NS, RIGHT, drive_pairs, drive_poses

from transect import run
from transect.engine import Compound
from transect.geometry import se3
from transect.recording import FrameTree, Recording, Stream, arrow
from transect.recording.arrow import PAYLOAD, T_NS
from transect.types import Image, NavFix

STEP_COUNT = 5
STEREO = ["KltKeyframes", "KltFrameToFrame", "DescriptorTracks"]


MONO_STEP_COUNT = 12
UNITS = {"Origin": [[0, 0, 1], [1, 0, 0], [0, 1, 0]], "imu": [[0, 0, 1], [-1, 0, 0], [0, -1, 0]]}
"""Rotation from the camera (x right, y down, z forward) to inertial units by frame; z is down in AMEDS."""


def stream(side, images):
    t_ns = np.arange(len(images), dtype=np.int64) * NS // 10
    table = arrow.table(t_ns, {PAYLOAD: arrow.strings([f"{side}/{k}.png" for k in range(len(images))])})
    return Stream(
        side, Image, table, tag=side, frame=f"{side}_camera", camera=side,
        loader=lambda row: images[int(row[T_NS]) * 10 // NS],
    )  # fmt: skip


@pytest.fixture(scope="module")
def recording():
    left, right = zip(*drive_pairs(STEP_COUNT), strict=True)
    cameras = {"left": LEFT, "right": RIGHT}
    return Recording("drive", (stream("left", left), stream("right", right)), cameras=cameras)


@pytest.mark.parametrize("implementation", STEREO)
def test_all_stereo_implementations_have_the_same_ports(recording, implementation):
    features = {"odometry.features": 200}
    result = run(f"VisualOdometry/{implementation}", recording, set=features)
    assert result["success"].values == [True] * STEP_COUNT
    assert len(result["offset"].values) == STEP_COUNT
    ahead, left, _ = result["pose"].values[-1].position
    assert [ahead, -left] == pytest.approx(drive_poses(STEP_COUNT)[-1][[2, 0], 3], abs=0.01)
    assert [cloud.frame for cloud in result["landmarks"].values] == ["odom"]


def test_the_same_recording_gives_the_same_digest_on_one_thread_and_on_two(recording):
    one, again, two = (run("VisualOdometry", recording, jobs=jobs).digest for jobs in (1, 1, 2))
    assert one == again == two


def test_the_calibration_of_the_offset_can_be_switched_off(recording):
    result = run("VisualOdometry", recording, set={"calibration.enabled": False})
    assert result["offset"].values == [0.0] * STEP_COUNT


@pytest.mark.parametrize("implementation", ["Mono", "MonoIns"])
def test_one_camera_needs_a_source_of_scale(implementation):
    graph = Compound.of(f"VisualOdometry/{implementation}").graph()
    lengths = {"Mono": "wheels", "MonoIns": "fix"}[implementation]
    assert graph.needed_inputs() == {"image", lengths}


def fixes(unit):
    """Return the fixes of an inertial unit at the camera on the drive, which starts northwards."""
    turned = np.arange(MONO_STEP_COUNT) * 0.01
    east, down, north = np.array(drive_poses(MONO_STEP_COUNT))[:, :3, 3].T
    lat, lon, alt = pymap3d.enu2geodetic(east, north, -down, 45.0, 8.0, 100.0)
    angles = {"roll": 0 * turned, "pitch": 0 * turned, "yaw": turned}
    columns = {"lat": np.radians(lat), "lon": np.radians(lon), "alt": alt, **angles}
    t_ns = np.arange(MONO_STEP_COUNT, dtype=np.int64) * NS // 10
    return Stream("fix", NavFix, arrow.table(t_ns, columns), frame="NED" if unit == "Origin" else unit)


@pytest.mark.parametrize("unit", list(UNITS))
def test_the_scale_is_that_of_the_inertial_unit(unit):
    frames = FrameTree()
    frames.add_static(unit, "left_camera", se3.from_matrix(UNITS[unit], np.zeros(3)))
    images = dataclasses.replace(
        stream("left", [left for left, _ in drive_pairs(MONO_STEP_COUNT)]), tag="main"
    )
    recording = Recording("ins", (images, fixes(unit)), cameras={"left": LEFT}, frames=frames)
    result = run(
        "VisualOdometry/MonoIns", recording, set={"odometry.parallax": 5.0, "odometry.features": 200}
    )
    poses, true = result["pose"].values, drive_poses(MONO_STEP_COUNT)
    began = poses[0].t_ns * 10 // NS
    assert {pose.child for pose in poses} == {unit}
    moved = np.linalg.norm(poses[-1].position - poses[0].position)
    assert moved == pytest.approx(np.linalg.norm(true[-1][:3, 3] - true[began][:3, 3]), rel=0.03)
    assert len(result["landmarks"].values[0]) >= 20


def test_odometry_that_mostly_fails_is_reported_as_bad(recording):
    """Three dark pairs of five are too many; one is not."""

    def darkened(count):
        def dark(stream):
            def load(row):
                image = stream.loader(row)
                lost = int(row[T_NS]) * 10 // NS >= STEP_COUNT - count
                return dataclasses.replace(image, data=np.zeros_like(image.data)) if lost else image

            return stream.replace(loader=load)

        return recording.replace(streams=tuple(dark(stream) for stream in recording.streams))

    features = {"odometry.features": 200}
    for count, bad in ((3, True), (1, False)):
        result = run("VisualOdometry/KltKeyframes", darkened(count), set=features)
        assert result["success"].values.count(False) == count
        assert [each.text for each in result.conclusions if each.bad] == (
            ["3 of 5 pairs of images have no pose: do not trust the path"] if bad else []
        )
