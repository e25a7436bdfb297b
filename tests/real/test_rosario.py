"""Real tracks of Rosario sequences 01, 03 and 04, and of Flourish A."""

import re
from pathlib import Path

import numpy as np
import pytest
from tests.formats.recordings import assert_same, rewritten

import transect
from transect.errors import UsageError
from transect.recording import Recording, Stream


@pytest.fixture
def folder(real_data: Path) -> Path:
    return real_data / "rosario_gt_odom"


def length_2d(stream: Stream) -> float:
    return float(np.linalg.norm(np.diff(stream.array("x", "y"), axis=0), axis=1).sum())


def opened(folder: Path, sequence: str) -> Recording:
    recording = transect.open(folder, sequence=sequence)
    assert recording.losses == ()
    return recording


def test_the_folder_holds_four_sequences_and_asks_which(folder: Path):
    with pytest.raises(UsageError) as refused:
        transect.open(folder)
    assert refused.value.why == "found: 01, 03, 04, A"


def test_lengths_of_sequence_01_are_those_of_the_errata(folder: Path):
    # errata: "01 is 593.9 m against 607.7 m (2-D)"
    recording = opened(folder, "01")
    assert length_2d(recording["Odometry"]) == pytest.approx(593.9, abs=0.1)
    assert length_2d(recording["GroundTruth"]) == pytest.approx(607.7, abs=0.1)


@pytest.mark.parametrize("sequence", ["01", "03", "04"])
def test_lengths_and_durations_are_near_those_of_table_3(folder: Path, sequence: str):
    recording = opened(folder, sequence)
    truth = recording["GroundTruth"]
    minutes = (truth.t_ns[-1] - truth.t_ns[0]) / 60e9
    assert length_2d(truth) == pytest.approx(recording.conditions["length_m"], rel=0.035)
    assert minutes == pytest.approx(recording.conditions["duration_min"], abs=0.1)
    # Both were recorded at the same time: 10 Hz by the documentation.
    assert len(recording["Odometry"]) == pytest.approx(600 * minutes, rel=0.005)


def test_the_gap_in_sequence_04_is_found(folder: Path):
    timing = opened(folder, "04")["GroundTruth"].timing
    assert timing.gap_s == pytest.approx(4.0, abs=0.001)  # SOURCE.txt: "real gaps: seq04 4.0 s"
    assert timing.rate == pytest.approx(5, abs=0.5)


@pytest.mark.parametrize("sequence", ["01", "03", "04"])
def test_the_track_starts_at_the_origin_on_the_day_of_table_3(folder: Path, sequence: str):
    recording = opened(folder, sequence)
    truth = recording["GroundTruth"]
    np.testing.assert_allclose(truth.array("x", "y", "z")[0], 0, atol=1e-12)
    day = np.datetime64(int(truth.t_ns[0]), "ns").astype("datetime64[D]")
    assert str(day) == recording.conditions["identifier"][:10]
    assert recording.truth is truth


@pytest.mark.parametrize("sequence", ["01", "03", "04"])
def test_the_odometry_begins_less_than_half_a_second_from_the_first_fix(folder: Path, sequence: str):
    recording = opened(folder, sequence)
    odometry, truth = recording["Odometry"], recording["GroundTruth"]
    assert odometry.clock == truth.clock == "utc"
    # Both were recorded at the same time: both ends meet, though only the speeds were compared.
    assert np.abs(odometry.t_ns[[0, -1]] - truth.t_ns[[0, -1]]).max() < 0.5e9
    (found,) = re.findall(r"correlate best \(([\d.]+)\)", odometry.parsed.notes[0])
    assert float(found) > 0.9


def test_poses_are_fused_from_a_sequence_without_configuration(folder: Path):
    # 04 begins to move after about 11 s
    run = transect.run("PoseFusion/ErrorStateFilter", opened(folder, "04").slice("+8s", "+25s"))
    assert {name: wire["stream"] for name, wire in run.config["wiring"].items()} == {
        "odometry": "Odometry",
        "position": "Rtk",
    }
    assert not run.config["used_truth"]
    last, (ground,) = run["pose"].values[-1], run["ground"].values
    assert (last.frame, last.child, ground.frame) == ("world", "base_link", "world")
    assert len(ground) > 50


def test_the_sample_frames_are_zed_images(folder: Path):
    images = [sample.value for sample in opened(folder, "03")["Zed/Left"]]
    assert {image.data.shape[:2] for image in images} == {(376, 672)}
    assert len(images) == 4


def test_flourish_a_is_there_too(folder: Path):
    recording = opened(folder, "A")
    assert recording["GroundTruth"].timing.rate == pytest.approx(1.0)
    assert [len(recording[name]) for name in ("Odometry", "Odometry/Combined")] == [2000, 2000]


@pytest.mark.parametrize("sequence", ["01", "03", "04", "A"])
def test_written_tracks_open_the_same_to_the_last_bit(folder: Path, tmp_path: Path, sequence: str):
    recording = opened(folder, sequence)
    assert_same(recording, rewritten(recording, tmp_path / "again", "rosario_tracks"))
