"""The weeding robot's models on real Rosario tracks and on its authors' own calibration."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tests.datasets.rosario.robot.published_calibration import (
    odometry_from_imu,
    straight_segments,
    truth_rotation,
)

import transect
from transect.base.clocks import NS
from transect.datasets.rosario.robot.comparison import OdometryComparison, compare
from transect.datasets.rosario.robot.geometry import (
    mean_direction,
    odometry_from_camera,
    path_headings,
    rotation_between,
)
from transect.geometry.interpolation import interpolate_columns

SEQUENCES = ("01", "03", "04")
SEGMENT = {"01": 2.5, "03": 123.7, "04": 22.0}
"""Seconds into the sequence at which S-PTAM's straight segment begins: lineas_rectas_secuencias."""
FRAME_RATE = 15
"""Hz of the stereo camera (Rosario, 3.2)."""


@pytest.fixture(scope="module")
def alignments(real_data: Path) -> Path:
    return real_data / "rosario_tools" / "trajectory_aligment" / "sptam_vectors_alignment"


def published(folder: Path, number: int) -> np.ndarray:
    """R(theta) and R^rc as the authors printed them: `R camara a eje Z`, `R camara a odom`; eight digits."""
    numbers = re.findall(r"-?\d+\.\d+", (folder / f"R{number}").read_text())
    return np.array(numbers, dtype=float).reshape(2, 3, 3)


def sptam(folder: Path, number: int) -> np.ndarray:
    return np.loadtxt(folder / f"sptam_seq{number}.log")


@pytest.mark.parametrize("number", range(1, 7))
def test_eq_1_gives_the_published_rotations(alignments: Path, number: int):
    positions = sptam(alignments, number)
    to_axis, to_odometry = published(alignments, number)
    # They are printed with eight decimals, so half a unit of the last; twice that for our own rounding.
    np.testing.assert_allclose(rotation_between(mean_direction(positions)), to_axis, atol=1e-8)
    np.testing.assert_allclose(odometry_from_camera(positions), to_odometry, atol=1e-8)


def test_eq_2_puts_the_cameras_where_eq_1_has_them(alignments: Path):
    weeder = transect.robots.load("weeder")
    R = odometry_from_camera(sptam(alignments, 1))
    T_odometry_imu = odometry_from_imu(R, (1.9, 0.0, 1.0), weeder.frames.lookup("left_camera", "imu"))
    frames = weeder.frames.copy()
    frames.add_static("base_link", "imu", T_odometry_imu)
    T = frames.lookup("rear_wheel_odometry", "left_camera")
    np.testing.assert_allclose(T[:3, :3], published(alignments, 1)[1], atol=1e-8)
    np.testing.assert_allclose(T[:3, 3], (1.9, 0.0, 1.0), atol=1e-12)


@pytest.fixture(scope="module")
def tracks(real_data: Path) -> dict[str, transect.Recording]:
    return {s: transect.open(real_data / "rosario_gt_odom", sequence=s) for s in SEQUENCES}


@pytest.fixture(scope="module")
def comparisons(tracks: dict[str, transect.Recording]) -> dict[str, OdometryComparison]:
    return {sequence: compare(recording) for sequence, recording in tracks.items()}


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_sptam_and_rtk_agree_on_the_segments_that_fixed_the_ground_truth(
    alignments: Path, tracks: dict[str, transect.Recording], sequence: str
):
    number = int(sequence)
    track = sptam(alignments, number) @ published(alignments, number)[1].T
    truth = tracks[sequence]["GroundTruth"]
    t_ns = truth.t_ns[0] + np.round((SEGMENT[sequence] + np.arange(1, len(track) + 1) / FRAME_RATE) * NS)
    rtk = interpolate_columns(truth.t_ns, truth.array("x", "y", "z"), t_ns.astype(np.int64))
    full, level = truth_rotation(track, rtk), truth_rotation(track, rtk, level=True)
    # 4.7: less than 10 m, approximately straight; RTK is good to centimetres, S-PTAM drifts by some percent.
    assert np.linalg.norm(track[-1]) < 10
    assert max(full.rmse, level.rmse) < 0.15
    # The direction of the segment is fixed by both; how the track is rolled about it only looks so.
    ahead = full.rotation.T[:, 0] @ level.rotation.T[:, 0]
    assert np.degrees(np.arccos(ahead)) < 1.5


def test_lengths_of_sequence_01_are_those_of_the_errata(comparisons: dict[str, OdometryComparison]):
    # errata: "01 is 593.9 m against 607.7 m (2-D)"
    assert f"{comparisons['01'].odometry_m:.1f}" == "593.9"
    assert f"{comparisons['01'].rtk_2d_m:.1f}" == "607.7"


@pytest.mark.parametrize(("sequence", "table_3"), [("01", 615.15), ("03", 169.45)])
def test_the_lengths_of_table_3_are_rtk_in_three_dimensions(
    comparisons: dict[str, OdometryComparison], sequence: str, table_3: float
):
    # Sequence 04 (152.32 m there, 148.24 m here) does not fit: it is reported by `transect table odometry`.
    assert comparisons[sequence].rtk_3d_m == pytest.approx(table_3, abs=0.005)


@pytest.mark.parametrize("sequence", ["01", "03"])
def test_the_ground_truth_is_the_antennas_track(comparisons: dict[str, OdometryComparison], sequence: str):
    # errata: on 01's turns 0.25 m with a lever of 1.8 to 2.0 m, 0.85 m without; 04 has no turns.
    found = comparisons[sequence]
    assert found.turning.pieces > 0
    assert found.turning.rmse < found.turning_at_base.rmse
    assert found.whole.rmse < found.whole_at_base.rmse


def test_the_turns_of_table_3_are_found(comparisons: dict[str, OdometryComparison]):
    # "3 x 180 degree turn" and "no turns"
    assert (comparisons["01"].turning.pieces, comparisons["04"].turning.pieces) == (3, 0)


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_the_odometry_gets_its_times_within_a_second_of_rtks(
    comparisons: dict[str, OdometryComparison], sequence: str
):
    (note,) = [n for n in comparisons[sequence].notes if "10 Hz" in n]
    match = re.search(r"starting ([+-][\d.]+) s .*\(([\d.]+)\)", note)
    assert match is not None
    assert abs(float(match[1])) < 1
    assert float(match[2]) > 0.9


def test_without_turns_the_path_of_sequence_04_is_straight(tracks: dict[str, transect.Recording]):
    rtk = tracks["04"]["GroundTruth"].array("x", "y")
    pieces = straight_segments(rtk)
    assert len(pieces) >= 10  # of the fourteen that its 147 m have
    headings = path_headings(tracks["04"]["Odometry"].array("x", "y"))
    assert np.abs(np.degrees(headings)).max() < 30  # it drifts, but never turns round
