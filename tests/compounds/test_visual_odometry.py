"""VisualOdometry as a person runs it, on a drive whose every pixel is known."""

import numpy as np
import pytest
from tests.nodes.stereo.drives import LEFT, RIGHT, SECOND, drive, drive_pairs

from transect import run
from transect.engine import Compound
from transect.recording import Recording, Stream, arrow
from transect.recording.arrow import PAYLOAD, T_NS
from transect.types import Image

STEPS = 5
STEREO = ["KltKeyframes", "KltFrameToFrame", "DescriptorTracks"]


def stream(side, images):
    t_ns = np.arange(len(images), dtype=np.int64) * SECOND // 10
    table = arrow.table(t_ns, {PAYLOAD: arrow.strings([f"{side}/{k}.png" for k in range(len(images))])})
    return Stream(
        side, Image, table, tag=side, frame=f"{side}_camera", camera=side,
        loader=lambda row: images[int(row[T_NS]) * 10 // SECOND],
    )  # fmt: skip


@pytest.fixture(scope="module")
def recording():
    left, right = zip(*drive_pairs(STEPS), strict=True)
    cameras = {"left": LEFT, "right": RIGHT}
    return Recording("drive", (stream("left", left), stream("right", right)), cameras=cameras)


@pytest.mark.parametrize("implementation", STEREO)
def test_all_stereo_implementations_take_and_give_the_same(recording, implementation):
    features = {"odometry.features": 200}
    result = run(f"VisualOdometry/{implementation}", recording, set=features)
    assert result["success"].values == [True] * STEPS
    assert len(result["offset"].values) == STEPS
    ahead, left, _ = result["pose"].values[-1].position
    assert [ahead, -left] == pytest.approx(drive(STEPS)[-1][[2, 0], 3], abs=0.01)


def test_the_same_recording_gives_the_same_digest_on_one_thread_and_on_two(recording):
    one, again, two = (run("VisualOdometry", recording, jobs=jobs).digest for jobs in (1, 1, 2))
    assert one == again == two


def test_the_calibration_of_the_offset_can_be_switched_off(recording):
    result = run("VisualOdometry", recording, set={"calibration.enabled": False})
    assert result["offset"].values == [0.0] * STEPS


@pytest.mark.parametrize("implementation", ["Mono", "MonoIns"])
def test_one_camera_needs_lengths_from_elsewhere(implementation):
    graph = Compound.of(f"VisualOdometry/{implementation}").graph()
    lengths = {"Mono": "wheels", "MonoIns": "fix"}[implementation]
    assert graph.needed_inputs() == {"image", lengths}
