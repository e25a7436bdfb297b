"""The compound VisualSlamStereo on ray-traced drives along a wall."""

import numpy as np
import pytest
from tests.nodes.stereo.drives import LEFT, NS, RIGHT, render_pair

from transect import run
from transect.geometry import se3
from transect.recording import Recording, Stream, arrow
from transect.recording.arrow import PAYLOAD, T_NS
from transect.types import Image

pytest.importorskip("gtsam")
pytest.importorskip("faiss")
STEP_M, STEP_COUNT = 0.12, 9
"""Motion to the right between pairs, and number of pairs."""
SET = {
    "slam.keyframe_distance": 0.2,
    "slam.features": 300,
    "odometry.features": 200,
    "calibration.enabled": False,
}


def poses_along_wall(first, last, ahead=0.0):
    """Return poses of the left camera along the wall."""
    return [se3.from_matrix(np.eye(3), [STEP_M * k, 0.0, ahead]) for k in range(first, last)]


def record(poses, starts=(0,), seed=0):
    """Return pairs at poses with 10 Hz, and a gap of a minute before the pairs with numbers in `starts`."""
    gaps = np.cumsum([600 if k in starts and k else 1 for k in range(len(poses))])
    t_ns = gaps.astype(np.int64) * NS // 10
    pairs = [render_pair(T.tobytes(), int(t), seed) for T, t in zip(poses, t_ns, strict=True)]
    sides = [stream(side, [each[k] for each in pairs], t_ns) for k, side in enumerate(("left", "right"))]
    return Recording("wall", tuple(sides), cameras={"left": LEFT, "right": RIGHT})


def stream(side, images, t_ns):
    table = arrow.table(t_ns, {PAYLOAD: arrow.strings([f"{side}/{k}.png" for k in range(len(images))])})
    by_time = dict(zip(t_ns.tolist(), images, strict=True))
    return Stream(
        side, Image, table, tag=side, frame=f"{side}_camera", camera=side,
        loader=lambda row: by_time[int(row[T_NS])],
    )  # fmt: skip


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slam") / "map"
    run("VisualSlamStereo", record(poses_along_wall(0, STEP_COUNT)), out=folder, set=SET)
    return folder


def wall_coordinates(poses):
    """Return m to the right and ahead, of poses in a map with x ahead and y to the left."""
    return np.array([[-pose.position[1], pose.position[0]] for pose in poses])


def test_a_second_drive_is_localised_in_the_map_of_the_first(kept):
    result = run("VisualSlamStereo", record(poses_along_wall(1, STEP_COUNT, ahead=0.1)), map=kept, set=SET)
    located, found = result["located"].values, result["pose"].values
    assert located == sorted(located)  # once located, never lost
    assert sum(located) >= STEP_COUNT - 3
    true = np.array([[STEP_M * k, 0.1] for k in range(STEP_COUNT - len(found), STEP_COUNT)])
    np.testing.assert_allclose(wall_coordinates(found), true, atol=0.03)


def test_another_scene_is_not_recognised(kept):
    result = run("VisualSlamStereo", record(poses_along_wall(0, STEP_COUNT), seed=1), map=kept, set=SET)
    assert not any(result["located"].values)
    assert [each.bad for each in result.conclusions if "LOST" in each.text] == [True]


def test_a_kidnapped_robot_is_relocalised(kept):
    carried = [*poses_along_wall(5, STEP_COUNT), *poses_along_wall(0, 4)]
    result = run("VisualSlamStereo", record(carried, starts=(4,)), map=kept, set=SET)
    assert result["located"].values[3]
    assert not result["located"].values[4]  # a single match is not accepted
    assert result["located"].values[-1]
    assert wall_coordinates(result["pose"].values[-1:])[0] == pytest.approx([3 * STEP_M, 0.0], abs=0.03)


def test_a_gap_starts_a_session_that_loops_connect():
    twice = record([*poses_along_wall(0, STEP_COUNT), *poses_along_wall(2, STEP_COUNT)], starts=(STEP_COUNT,))
    result = run("VisualSlamStereo", twice, set=SET)
    [made] = result["map"].values
    assert sorted(set(made.session.tolist())) == [0, 1]
    loops = [n for n, what in enumerate(made.edges.what) if what == "loop"]
    assert len(loops) >= 2
    assert made.poses[-1, :3, 3] == pytest.approx([0.0, -STEP_M * (STEP_COUNT - 1), 0.0], abs=0.05)


def test_the_same_recording_gives_the_same_digest_on_one_thread_and_on_two():
    recording = record(poses_along_wall(0, 4))
    one, two = (run("VisualSlamStereo", recording, set=SET, jobs=jobs).digest for jobs in (1, 2))
    assert one == two
