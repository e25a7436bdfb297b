"""Segments, relations, drift, consistency, association: hand-worked cases, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from transect.errors import GeometryError, ParseError, UsageError
from transect.evaluation import (
    AssociationError,
    Pairs,
    absolute_error,
    associate,
    consistency,
    drift_curve,
    load_trajectory,
    read_relations,
    relation_errors,
    relative_error,
    segment_errors,
)
from transect.geometry import rotations
from transect.recording import Recording
from transect.types import Trajectory

STRAIGHT = np.array([0.0, 0.0, 0.0, 1.0])


def line(n: int = 300, step: float = 1.0, yaw: float = 0.0, scale: float = 1.0) -> Trajectory:
    """A drive along x, a metre a pose, ten poses a second; the heading is off by `yaw` rad a pose."""
    positions = np.zeros((n, 3))
    positions[:, 0] = np.arange(n) * step * scale
    angles = yaw * np.arange(n)
    turned = rotations.quaternion_from_euler("z", angles[:, None])
    return Trajectory(np.arange(n) * 100_000_000, positions, turned)


def circle(n: int = 400, radius: float = 20.0) -> Trajectory:
    angle = np.linspace(0, 4 * np.pi, n)
    positions = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), 0.1 * np.sin(5 * angle)])
    turned = rotations.quaternion_from_euler("z", (angle + np.pi / 2)[:, None])
    return Trajectory(np.arange(n) * 100_000_000, positions, turned)


def moved(path: Trajectory, scale: float = 1.0) -> Trajectory:
    """The same path in another frame."""
    turn = rotations.normalise([0.1, -0.2, 0.3, 0.9])
    positions = scale * rotations.rotate(turn, path.positions) + np.array([5.0, -3.0, 2.0])
    return Trajectory(path.t_ns, positions, rotations.multiply(turn, path.orientations))


def test_a_path_in_another_frame_has_no_error_once_aligned():
    path = circle()
    assert absolute_error(associate(path, moved(path)), "se3").statistics.max < 1e-9
    assert absolute_error(associate(path, moved(path, 2.0)), "sim3").statistics.max < 1e-9
    assert absolute_error(associate(path, moved(path, 2.0)), "sim3").scale == pytest.approx(0.5)
    assert absolute_error(associate(path, moved(path)), "origin").statistics.max < 1e-9
    assert absolute_error(associate(path, moved(path)), "none").statistics.rmse > 1
    assert relative_error(associate(path, moved(path)), 2.0, "seconds").statistics.max < 1e-9


def test_percent_of_path_is_the_error_over_the_length_of_the_reference():
    path = line(101)
    shifted = Trajectory(path.t_ns, path.positions + np.array([0, 3.0, 0]), path.orientations)
    error = absolute_error(associate(path, shifted), "none")
    assert error.path == pytest.approx(100.0)
    assert error.percent == pytest.approx(3.0)


def test_kitti_segments_of_a_path_with_two_percent_too_much_scale_by_hand():
    """Every segment of length L ends at the first metre beyond L: the error is 2 % of L + 1 metres."""
    errors = segment_errors(associate(line(), line(scale=1.02)), lengths=(100.0, 200.0))
    starts_100, starts_200 = 20, 10  # poses 0, 10, ..., that have a pose more than 100 or 200 m further on
    assert {k: v[2] for k, v in errors.by_length().items()} == {100.0: starts_100, 200.0: starts_200}
    assert errors.by_length()[100.0][0] == pytest.approx(100 * 0.02 * 101 / 100)
    assert errors.by_length()[200.0][0] == pytest.approx(100 * 0.02 * 201 / 200)
    assert errors.degrees_per_metre == pytest.approx(0, abs=1e-9)
    turning = segment_errors(associate(line(), line(yaw=0.001)), lengths=(100.0,))
    assert turning.degrees_per_metre == pytest.approx(math.degrees(0.001 * 101 / 100))


def test_short_traverses_get_short_segments_and_too_short_ones_are_refused():
    assert set(segment_errors(associate(line(60), line(60))).by_length()) <= {5, 10, 15, 20, 25, 30, 40, 50}
    with pytest.raises(GeometryError, match="no segment of 100 m fits"):
        segment_errors(associate(line(60), line(60)), lengths=(100.0,))
    with pytest.raises(GeometryError, match="shorter than 1000 frames"):
        relative_error(associate(line(60), line(60)), 1000)


def test_the_drift_curve_of_a_scale_error_settles_at_it():
    curve = drift_curve(associate(line(), line(scale=1.03)))
    assert curve.settled == pytest.approx(3.0, abs=0.15)
    assert (curve.high >= curve.median - 1e-9).all()


def test_relations_are_read_and_judged(tmp_path: Path):
    (tmp_path / "rel.txt").write_text(
        "# t_i t_j x y z r p y\n1.0 3.0 20 0 0 0 0 0\n2.0 4.5 25 0 0 0 0 0\n99 100 1 0 0 0 0 0\n"
    )
    relations = read_relations(tmp_path / "rel.txt")
    errors = relation_errors(relations, line(100, scale=1.1), max_diff=0.01)
    assert errors.left_out == 1
    np.testing.assert_allclose(errors.translation, [2.0, 2.5], rtol=1e-9)
    assert errors.squared[0] == pytest.approx((4 + 6.25) / 2)
    (tmp_path / "bad.txt").write_text("1.0 3.0 20 0 0\n")
    with pytest.raises(ParseError) as caught:
        read_relations(tmp_path / "bad.txt")
    assert caught.value.where.endswith("bad.txt:1")


@pytest.mark.real
def test_the_relations_of_aces_are_read_whole(real_data: Path):
    path = real_data / "carmen_2dlaser" / "aces.relations"
    relations = read_relations(path)
    assert len(relations) == sum(1 for text in path.read_text().splitlines() if text.strip())
    assert relations.first_ns[0] == 90_239_599_000
    assert (np.linalg.norm(relations.motion[:, :3, 3], axis=1) < 60).all()


def kalman_run(rng: np.random.Generator, steps: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """A cart driven by white acceleration, its position measured: errors and covariances of its filter."""
    dt, push, seen = 0.5, 0.3, 0.8
    motion, gain = np.array([[1, dt], [0, 1]]), np.array([dt**2 / 2, dt])
    truth, estimate = rng.normal(scale=[2.0, 1.0]), np.zeros(2)
    covariance = np.diag([4.0, 1.0])
    errors, covariances = [], []
    for _ in range(steps):
        truth = motion @ truth + gain * rng.normal(scale=push)
        estimate = motion @ estimate
        covariance = motion @ covariance @ motion.T + np.outer(gain, gain) * push**2
        weight = covariance[:, 0] / (covariance[0, 0] + seen**2)
        estimate = estimate + weight * (truth[0] + rng.normal(scale=seen) - estimate[0])
        covariance = covariance - np.outer(weight, covariance[0])
        errors.append(estimate - truth)
        covariances.append(covariance)
    return np.array(errors), np.array(covariances)


def test_a_simulated_consistent_filter_is_inside_its_bounds_in_95_of_100_runs():
    rng = np.random.default_rng(5)
    inside = 0
    for _ in range(1000):
        errors, covariances = kalman_run(rng)
        found = consistency(errors[-1:], covariances[-1:])
        inside += found.inside == 1.0
    assert 930 <= inside <= 970


def test_the_mean_over_independent_runs_of_a_filter_is_inside_its_bounds():
    rng = np.random.default_rng(6)
    last = [tuple(part[-1] for part in kalman_run(rng)) for _ in range(400)]
    found = consistency(np.array([e for e, _ in last]), np.array([c for _, c in last]))
    assert found.mean_bounds[0] <= found.nees.mean() <= found.mean_bounds[1]


def test_a_filter_that_is_too_sure_of_itself_is_found_out():
    errors = np.random.default_rng(6).normal(size=(500, 2))
    sure = consistency(errors, np.broadcast_to(0.25 * np.eye(2), (500, 2, 2)).copy())
    assert sure.normalised_mean == pytest.approx(4, rel=0.15)
    assert sure.inside < 0.7
    with pytest.raises(GeometryError, match="positive definite"):
        consistency(errors, np.zeros((500, 2, 2)))


@pytest.mark.parametrize(
    ("change", "said", "hint"),
    [
        (lambda t: t + 3_600_000_000_000, "they do not overlap", "--offset -3600.000"),
        (lambda t: t // 1_000_000, "milli|micro", "convert"),
        (lambda t: t + 50_000_000, "apart", "--max-diff"),
    ],
)
def test_times_that_do_not_meet_say_why_and_what_to_try(change, said: str, hint: str):
    start = 1_600_000_000_000_000_000
    path = line(100)
    reference = Trajectory(path.t_ns + start, path.positions, path.orientations)
    estimate = Trajectory(change(reference.t_ns), path.positions, path.orientations)
    with pytest.raises(AssociationError) as caught:
        associate(reference, estimate)
    import re

    assert re.search(said, caught.value.why)
    assert hint in caught.value.hint
    assert "Hz" in caught.value.why


def test_an_offset_brings_shifted_times_together():
    path = line(100)
    late = Trajectory(path.t_ns + 2_500_000_000, path.positions, path.orientations)
    assert len(associate(path, late, offset=-2.5)) == 100


def test_the_reference_is_interpolated_to_the_estimates_times():
    path = line(100)
    between = Trajectory(
        path.t_ns[:-1] + 50_000_000, path.positions[:-1] + np.array([0.5, 0, 0]), path.orientations[:-1]
    )
    pairs = associate(path, between, by="interpolate", max_diff=0.06)
    assert len(pairs) == 99
    assert absolute_error(pairs, "none").statistics.max < 1e-9


def test_bad_trajectories_each_have_their_own_error():
    path = line(50)
    hole = path.positions.copy()
    hole[7, 1] = np.nan
    with pytest.raises(AssociationError, match="1 of 50 positions of the estimate are not numbers") as caught:
        associate(path, Trajectory(path.t_ns, hole, path.orientations))
    assert caught.value.where == "pose 7"
    with pytest.raises(AssociationError, match="do not have length 1"):
        associate(path, Trajectory(path.t_ns, path.positions, path.orientations * 2))
    with pytest.raises(AssociationError, match="no poses"):
        associate(path, Trajectory(np.zeros(0, np.int64), np.zeros((0, 3))))
    with pytest.raises(UsageError, match="no alignment 'horn'"):
        absolute_error(associate(path, path), "horn")
    with pytest.raises(GeometryError):
        absolute_error(associate(path, path), "se3")  # all on a line: not determined


def test_disorder_is_counted_and_positions_alone_are_enough():
    path = circle(100)
    times = path.t_ns.copy()
    times[10], times[11] = times[11], times[10]
    times[40] = times[39]
    pairs = associate(path, Trajectory(times, path.positions), least=0)
    assert pairs.notes == (
        "1 stamps of the estimate are earlier than the one before",
        "1 stamps of the estimate are given twice in a row",
    )
    error = absolute_error(pairs, "se3")
    assert error.rotation is None
    with pytest.raises(UsageError, match="needs attitudes"):
        relative_error(pairs)


def test_a_trajectory_without_stamps_is_paired_row_by_row():
    path = line(30)
    bare = Trajectory(np.arange(30), path.positions, path.orientations, clock="index")
    pairs = associate(path, bare)
    assert isinstance(pairs, Pairs)
    assert (pairs.by, len(pairs)) == ("rows", 30)
    with pytest.raises(AssociationError, match="30 poses and 20 poses"):
        associate(path, Trajectory(np.arange(20), path.positions[:20], clock="index"))


def test_a_recording_without_a_trajectory_is_refused():
    with pytest.raises(UsageError, match="has no trajectory"):
        load_trajectory(Recording("empty", ()))
