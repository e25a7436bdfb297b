"""Odometry beside RTK, on a drive that is known in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from tests.datasets.rosario.robot.drives import FURROW_LENGTH_M, LEVER, RADIUS_M, antenna, base, turned, way

from transect.datasets.rosario.robot.comparison import (
    PlanarTrack,
    absolute_error,
    find_sample_times,
    turn_error,
    turns,
)
from transect.errors import GeometryError

START_NS = 1_514_301_955_465_000_000


def rtk(late: float = 0.0) -> PlanarTrack:
    """RTK at 5 Hz in a frame of its own, its first fix `late` seconds after the wheels' first sample."""
    t = late + np.arange(450) * 0.2
    return PlanarTrack(
        START_NS + np.round(t * 1e9).astype(np.int64), turned(antenna(t), 2.0, (7.0, -3.0, 100.0))
    )


def wheels() -> PlanarTrack:
    t = np.arange(950) * 0.1
    return PlanarTrack(START_NS + np.round(t * 1e9).astype(np.int64), *base(t))


def test_lengths_are_those_of_the_way() -> None:
    odometry = wheels()
    # chords of 0.1 m on a circle of 5 m: 1e-5 too short
    assert odometry.length() == pytest.approx(way(np.array([94.9]))[0] - way(np.array([0.0]))[0], rel=1e-4)
    climbing = PlanarTrack(odometry.t_ns[:2], np.array([[0.0, 0.0, 0.0], [3.0, 4.0, 12.0]]))
    assert (climbing.length(2), climbing.length(3)) == (5.0, 13.0)


def test_positions_that_were_not_measured_have_no_length() -> None:
    track = PlanarTrack(np.arange(3), np.array([[0.0, 0.0, 0.0], [np.nan] * 3, [2.0, 0.0, 0.0]]))
    assert track.length() == 2.0


@pytest.mark.parametrize("late", [-0.5, 0.0, 0.33, 2.0])
def test_the_times_of_an_odometry_without_any_are_found_by_its_speed(late: float) -> None:
    t_ns, found = find_sample_times(
        rtk(max(late, 0.0)), wheels().positions[round(max(-late, 0) * 10) :], rate=10.0
    )
    assert found.offset_ns * 1e-9 == pytest.approx(-late, abs=0.05)
    assert found.correlation > 0.98
    assert np.diff(t_ns).tolist() == [10**8] * (len(t_ns) - 1)


def test_a_jump_of_rtk_does_not_spoil_the_times() -> None:
    truth = rtk()
    truth.positions[200:] += (50.0, 0.0, 0.0)
    _, found = find_sample_times(truth, wheels().positions, rate=10.0)
    assert abs(found.offset_ns) < 5e7


def test_at_the_antenna_nothing_is_left_and_at_the_axle_the_swing_is() -> None:
    odometry, truth = wheels(), rtk()
    exact = absolute_error(odometry.shift(LEVER), truth)
    assert exact.rmse < 2e-3  # interpolated between samples on a circle
    assert (exact.pairs, exact.alignment) == (450, "Horn, SE(3)")
    # On the furrows the antenna is 1.8 m ahead, this way and that: an error that no alignment takes off.
    assert absolute_error(odometry, truth).rmse > 1.0


def test_the_one_turn_is_found_and_shows_the_lever_arm() -> None:
    odometry, truth = wheels(), rtk()
    ((begin, end),) = turns(odometry)
    middle = (FURROW_LENGTH_M + RADIUS_M * np.pi / 2) / 1.0  # at about 1 m/s
    assert (begin - START_NS) * 1e-9 - 2 < middle < (end - START_NS) * 1e-9 + 2
    assert turn_error(odometry.shift(LEVER), truth).rmse < 2e-3
    assert turn_error(odometry, truth).rmse > 0.5
    assert turn_error(odometry, truth).pieces == 1


def test_a_drive_without_turns_says_so() -> None:
    odometry, truth = wheels(), rtk()
    straight = PlanarTrack(odometry.t_ns[:350], odometry.positions[:350], np.zeros(350))
    left = turn_error(straight, truth)
    assert (left.pairs, left.pieces) == (0, 0)
    assert np.isnan(left.rmse)


def test_a_line_is_aligned_by_its_heading_and_says_so() -> None:
    odometry, truth = wheels(), rtk()
    inside = np.arange(350)
    straight = PlanarTrack(odometry.t_ns[inside], odometry.positions[inside], np.zeros(350))
    left = absolute_error(straight, PlanarTrack(truth.t_ns[:170], truth.positions[:170]))
    assert "line" in left.alignment
    assert left.rmse < 1e-6


def test_gaps_of_the_odometry_are_not_bridged() -> None:
    odometry, truth = wheels(), rtk()
    keep = np.r_[0:300, 330:950]
    gappy = PlanarTrack(odometry.t_ns[keep], odometry.positions[keep])
    assert absolute_error(gappy, truth).pairs == pytest.approx(450 - 15, abs=1)  # 3 s at 5 Hz


def test_a_track_without_headings_cannot_be_carried() -> None:
    with pytest.raises(GeometryError, match="without headings"):
        rtk().shift(LEVER)
