"""VisualSlamStereo as a person runs it, past a wall whose every pixel is known."""

import numpy as np
import pytest
from tests.nodes.stereo.drives import LEFT, RIGHT, SECOND, pair

from transect import run
from transect.geometry import se3
from transect.recording import Recording, Stream, arrow
from transect.recording.arrow import PAYLOAD, T_NS
from transect.types import Image

pytest.importorskip("gtsam")
pytest.importorskip("faiss")
STEP, STEPS = 0.12, 9
"""m to the right from pair to pair."""
SET = {
    "slam.keyframe_distance": 0.2,
    "slam.features": 300,
    "odometry.features": 200,
    "calibration.enabled": False,
}


def places(first, last, ahead=0.0):
    """Where the left camera is: along the wall, in steps."""
    return [se3.from_matrix(np.eye(3), [STEP * k, 0.0, ahead]) for k in range(first, last)]


def record(poses, starts=(0,), seed=0):
    """Pairs at poses, ten a second; `starts` are the numbers of those before which a minute went by."""
    gaps = np.cumsum([600 if k in starts and k else 1 for k in range(len(poses))])
    t_ns = gaps.astype(np.int64) * SECOND // 10
    pairs = [pair(T.tobytes(), int(t), seed) for T, t in zip(poses, t_ns, strict=True)]
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
    run("VisualSlamStereo", record(places(0, STEPS)), out=folder, set=SET)
    return folder


def along_the_wall(poses):
    """Metres to the right and ahead, of poses whose map has x ahead and y to the left."""
    return np.array([[-pose.position[1], pose.position[0]] for pose in poses])


def test_a_second_drive_is_found_in_the_map_of_the_first(kept):
    result = run("VisualSlamStereo", record(places(1, STEPS, ahead=0.1)), map=kept, set=SET)
    located, found = result["located"].values, result["pose"].values
    assert located == sorted(located)  # once found, never lost
    assert sum(located) >= STEPS - 3
    true = np.array([[STEP * k, 0.1] for k in range(STEPS - len(found), STEPS)])
    np.testing.assert_allclose(along_the_wall(found), true, atol=0.03)


def test_another_place_is_not_in_the_map(kept):
    result = run("VisualSlamStereo", record(places(0, STEPS), seed=1), map=kept, set=SET)
    assert not any(result["located"].values)
    assert [each.bad for each in result.conclusions if "LOST" in each.text] == [True]


def test_a_robot_that_was_carried_away_finds_itself_again(kept):
    carried = [*places(5, STEPS), *places(0, 4)]
    result = run("VisualSlamStereo", record(carried, starts=(4,)), map=kept, set=SET)
    assert result["located"].values[3]
    assert not result["located"].values[4]  # one look is not enough
    assert result["located"].values[-1]
    assert along_the_wall(result["pose"].values[-1:])[0] == pytest.approx([3 * STEP, 0.0], abs=0.03)


def test_a_gap_begins_a_session_and_loops_join_it():
    twice = record([*places(0, STEPS), *places(2, STEPS)], starts=(STEPS,))
    result = run("VisualSlamStereo", twice, set=SET)
    [made] = result["map"].values
    assert sorted(set(made.session.tolist())) == [0, 1]
    loops = [n for n, what in enumerate(made.edges.what) if what == "loop"]
    assert len(loops) >= 2
    assert made.poses[-1, :3, 3] == pytest.approx([0.0, -STEP * (STEPS - 1), 0.0], abs=0.05)


def test_the_same_recording_gives_the_same_digest_on_one_thread_and_on_two():
    recording = record(places(0, 4))
    one, two = (run("VisualSlamStereo", recording, set=SET, jobs=jobs).digest for jobs in (1, 2))
    assert one == two
