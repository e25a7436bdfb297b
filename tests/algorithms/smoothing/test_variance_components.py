"""Noise of wheels and an odometry by their agreement with each other and an IMU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("gtsam")

from transect.algorithms.fusion.events import ImuSample, OdometryStep
from transect.algorithms.smoothing.batch import SmoothedPath, smooth
from transect.algorithms.smoothing.factor_graph import (
    SUSPECT_VARIANCE_FACTOR,
    ConvergenceError,
    SmootherNoise,
    build_graph,
    marginal_covariances,
    solve,
    whitening_matrix,
)
from transect.algorithms.smoothing.initial_values import initial_poses
from transect.algorithms.smoothing.observations import Observations, SuspectInterval, keyframe_times
from transect.algorithms.smoothing.odometry_noise import offset_jacobians, pose_offsets
from transect.algorithms.smoothing.variance_components import (
    describe_factors,
    linear_constraints,
    neighbour_covariances,
)
from transect.algorithms.smoothing.wheel_factors import WheelNoise
from transect.geometry import rotations, se3

NS = 1_000_000_000
NOISE = SmootherNoise(wheels=WheelNoise(start_slip=0.0, creep_speed=0.0))
ON_MAP = replace(NOISE, map_radius=30.0)
SIGMAS = np.array([2e-3, 2e-3, 2e-3, 1e-4, 1e-4, 1e-4])
"""Sigmas of a step of the odometry, m and rad."""


def truth_at(t_ns: np.ndarray) -> np.ndarray:
    """Return poses (n, 4, 4) of a body with sinusoidal heading at 1 m/s."""
    fine = np.arange(0, t_ns[-1] * 1e-9 + 5e-4, 1e-3)
    heading = np.sin(fine / 4)
    moved = 1e-3 * np.column_stack([np.cos(heading), np.sin(heading), 0 * heading])
    place = np.concatenate([np.zeros((1, 3)), np.cumsum((moved[1:] + moved[:-1]) / 2, axis=0)])
    at = np.round(t_ns * 1e-6).astype(int)
    return se3.from_quaternion(rotations.quaternion_from_euler("z", heading[at, None]), place[at])


def drive(*, declared: float = 1.0, seconds: float = 30.0, seed: int = 0) -> Observations:
    """Return the measurements of a drive; the odometry declares `declared` times its true sigmas."""
    rng = np.random.default_rng(seed)
    t_ns = np.arange(0, seconds * NS + 1, NS // 10, dtype=np.int64)
    steps = se3.relative_motions(truth_at(t_ns))
    erring = steps @ se3.exp(SIGMAS * rng.normal(size=(len(steps), 6)))
    motion = [
        OdometryStep("motion", int(a), int(b), T, planar=False, covariance=np.diag((declared * SIGMAS) ** 2))
        for a, b, T in zip(t_ns[:-1], t_ns[1:], erring, strict=True)
    ]
    slipping = steps @ se3.exp(rng.normal(size=(len(steps), 6)) * [5e-3, 1e-3, 0, 0, 0, 1e-3])
    wheels = [
        OdometryStep("wheels", int(a), int(b), T, planar=True)
        for a, b, T in zip(t_ns[:-1], t_ns[1:], slipping, strict=True)
    ]
    fine = np.arange(0, seconds * NS + 1, NS // 100, dtype=np.int64)
    rate = np.cos(fine * 1e-9 / 4) / 4
    noise = rng.normal(size=(len(fine), 6)) * [0.02, 0.02, 0.02, 1e-3, 1e-3, 1e-3]
    inertial = [
        ImuSample(int(t), np.array([0.0, w, 9.80665]) + n[:3], np.array([0.0, 0.0, w]) + n[3:])
        for t, w, n in zip(fine, rate, noise, strict=True)
    ]
    return Observations(wheels=wheels, motion=motion, inertial=inertial)


def scale_motion(steps: list[OdometryStep], t0: float, t1: float, factor: float) -> list[OdometryStep]:
    """Return steps with their motion multiplied by a factor in an interval."""
    return [
        replace(each, transform=se3.exp(factor * se3.log(each.transform)))
        if t0 * NS <= each.start_ns < t1 * NS
        else each
        for each in steps
    ]


def error_of(found: SmoothedPath) -> float:
    t_ns = np.arange(found.times[0], found.times[-1] + 1, NS // 10)
    truth, poses = truth_at(t_ns), found.at(t_ns)[0]
    off = (se3.invert(truth[0]) @ truth)[:, :3, 3] - (se3.invert(poses[0]) @ poses)[:, :3, 3]
    return float(np.sqrt(np.mean(np.sum(off**2, axis=1))))


@pytest.mark.parametrize("declared", [0.3, 3.0])
def test_wrong_declared_sigmas_are_estimated_without_ground_truth(declared: float):
    found = smooth(drive(declared=declared), NOISE, learn=True)
    for name in ("motion: translation", "motion: rotation"):
        assert declared * np.sqrt(found.factors[name]) == pytest.approx(1.0, rel=0.5)
    # 16 mm/sqrt(s) is 16 mm/sqrt(m) at 1 m/s.
    assert 0.02 * np.sqrt(found.factors["wheels: along"]) == pytest.approx(5e-3 * np.sqrt(10), rel=0.5)


def test_consistent_suspect_seconds_are_used_and_inconsistent_ones_are_not():
    clean = drive()
    suspect = [SuspectInterval("wheels", 8 * NS, 14 * NS), SuspectInterval("motion", 18 * NS, 24 * NS)]
    wheels, motion = scale_motion(clean.wheels, 9.0, 12.0, 5.0), scale_motion(clean.motion, 20.0, 22.0, 0.0)
    observations = replace(clean, suspect=suspect, wheels=wheels, motion=motion)
    found = smooth(observations, NOISE, learn=True)
    slip = [np.sqrt(found.factors[f"suspect wheels {t * NS}: along"]) for t in range(8, 14)]
    assert min(slip[1:4]) > 10
    assert max(slip[0], *slip[4:]) < 3
    frozen = [np.sqrt(found.factors[f"suspect motion {t * NS}: translation"]) for t in range(18, 24)]
    assert min(frozen[2:4]) > 10
    assert max(*frozen[:2], *frozen[4:]) < 3
    assert error_of(found) < 1.5 * error_of(smooth(clean, NOISE, learn=True))
    assert error_of(smooth(replace(observations, suspect=[]), NOISE)) > 2 * error_of(found)
    declared = describe_factors(found.factors)
    assert "wheels is consistent in 3 of 6 suspect seconds" in declared[2]
    assert "motion is consistent in 4 of 6 suspect seconds" in declared[1]


def test_a_single_wrong_pose_of_an_odometry_has_little_influence():
    """As of a lidar in dust: a pose has an error of 0.3 m, and the next one is right again."""
    clean = drive()
    aside, back = se3.exp([0.0, 0.3, 0.0, 0.0, 0.0, 0.0]), se3.exp([0.0, -0.3, 0.0, 0.0, 0.0, 0.0])
    motion = list(clean.motion)
    motion[99] = replace(motion[99], transform=motion[99].transform @ aside)
    motion[100] = replace(motion[100], transform=back @ motion[100].transform)
    found = smooth(replace(clean, motion=motion), NOISE, learn=True)
    assert error_of(found) < 1.2 * error_of(smooth(clean, NOISE, learn=True))


def with_map_errors(observations: Observations, seed: int = 0) -> Observations:
    """Return evidence with an odometry of bounded error: 30 mm, correlated over 0.7 m."""
    t_ns = np.array([0, *(each.t_ns for each in observations.motion)], np.int64)
    truth, rng = truth_at(t_ns), np.random.default_rng(seed)
    off, kept = np.zeros((len(t_ns), 6)), np.exp(-0.1 / 0.7)
    for i in range(1, len(off)):
        new = rng.normal(size=6) * np.repeat([0.03, 1e-4], 3)
        off[i] = kept * off[i - 1] + np.sqrt(1 - kept**2) * new
    steps = se3.relative_motions(truth @ se3.exp(off))
    motion = [
        replace(each, transform=T, covariance=None)
        for each, T in zip(observations.motion, steps, strict=True)
    ]
    return replace(observations, motion=motion)


def drive_on_map(seed: int) -> Observations:
    """Return a drive with such an odometry, and wheels whose slip changes every few metres."""
    clean = drive(seed=seed)
    slip = 1.02 + 0.05 * np.sin(np.arange(len(clean.wheels)) / 40)
    wheels = [
        replace(each, transform=se3.exp(factor * se3.log(each.transform)))
        for each, factor in zip(clean.wheels, slip, strict=True)
    ]
    return with_map_errors(replace(clean, wheels=wheels), seed)


@pytest.mark.parametrize("seed", [0, 1])
def test_an_odometry_on_its_own_map_has_a_bounded_error(seed: int):
    observations = drive_on_map(seed)
    found = smooth(observations, ON_MAP, learn=True)
    assert 0.02 * np.sqrt(found.factors["motion: map error of position"]) == pytest.approx(0.03, rel=0.5)
    assert error_of(found) < 0.7 * error_of(smooth(observations, NOISE, learn=True))


def test_a_suspect_odometry_on_its_own_map_has_a_bounded_error():
    observations = drive_on_map(0)
    suspect = replace(observations, suspect=[SuspectInterval("motion", 10 * NS, 24 * NS)])
    found = smooth(suspect, ON_MAP, learn=True)
    assert error_of(found) < 1.2 * error_of(smooth(observations, ON_MAP, learn=True))
    assert any(
        "motion is consistent in 14 of 14 suspect seconds" in each for each in describe_factors(found.factors)
    )


def test_a_lasting_jump_of_a_suspect_odometry_on_a_map_is_rejected():
    observations = drive_on_map(0)
    motion = list(observations.motion)
    motion[150] = replace(motion[150], transform=motion[150].transform @ se3.exp([0, 0.5, 0, 0, 0, 0]))
    jumped = replace(observations, motion=motion, suspect=[SuspectInterval("motion", 14 * NS, 17 * NS)])
    assert error_of(smooth(jumped, ON_MAP, learn=True)) < 0.1


def test_jacobians_of_pose_offsets_are_those_of_finite_differences():
    rng = np.random.default_rng(0)
    bodies, poses = se3.exp(rng.normal(size=(5, 6))), se3.exp(rng.normal(size=(5, 6)))
    off = pose_offsets(bodies, poses)
    to_body, to_pose = offset_jacobians(bodies, poses, off)
    for k in range(6):
        moved = se3.exp(1e-6 * np.eye(6)[(k + 3) % 6])  # se3 has the translation first
        np.testing.assert_allclose(
            (pose_offsets(bodies @ moved, poses) - off) / 1e-6, to_body[:, :, k], atol=1e-4
        )
        np.testing.assert_allclose(
            (pose_offsets(bodies, poses @ moved) - off) / 1e-6, to_pose[:, :, k], atol=1e-4
        )


def test_with_two_sources_suspect_steps_are_left_out():
    clean = drive(seconds=10.0)
    suspect = [SuspectInterval("wheels", 3 * NS, 6 * NS)]
    pair = replace(clean, motion=[], suspect=suspect)
    bad = replace(pair, wheels=scale_motion(clean.wheels, 3.5, 5.5, 5.0))
    good, same = (smooth(each, NOISE, learn=True) for each in (pair, bad))
    np.testing.assert_array_equal(good.poses, same.poses)
    assert good.factors == {}


def test_without_convergence_the_specified_noise_is_used(monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise ConvergenceError("the smoother did not settle")

    monkeypatch.setattr("transect.algorithms.smoothing.batch.estimate_variance_components", fail)
    observations = replace(drive(seconds=6.0), suspect=[SuspectInterval("motion", NS, 3 * NS)])
    found, declared = (smooth(observations, NOISE, learn=learn) for learn in (True, False))
    np.testing.assert_array_equal(found.poses, declared.poses)
    assert found.factors == {}


def test_selected_inversion_gives_the_marginal_covariances():
    observations = replace(drive(seconds=4.0), suspect=[SuspectInterval("motion", NS, 2 * NS)])
    noise, times = replace(NOISE, has_components=True), keyframe_times(0, 4 * NS, 0.5, np.zeros(0, np.int64))
    graph = build_graph(observations, times, noise)
    values = solve(graph, graph.values_from_poses(initial_poses(graph.path, times, graph.positions)))
    rows = list(linear_constraints(graph, values, observations))
    found = neighbour_covariances(rows, len(times))
    whole = marginal_covariances(graph, values)
    R = truth_at(times)[3, :3, :3]
    turned = np.kron(np.eye(2), R) @ found[3][:6, :6] @ np.kron(np.eye(2), R).T
    np.testing.assert_allclose(turned[3:, 3:], whole[3][:3, :3], rtol=0.05, atol=1e-8)
    assert {name for each in rows for name in each.components if "suspect" in name} == {
        f"suspect motion {NS}: rotation", f"suspect motion {NS}: translation"
    }  # fmt: skip


def test_a_factor_on_translation_keeps_its_correlation_with_rotation():
    covariance = np.diag([4.0, 9.0, 1.0, 1.0, 1.0, 1.0]) * 1e-6
    covariance[1, 5] = covariance[5, 1] = -2.5e-6
    rotation_first = np.r_[3:6, 0:3]
    same = whitening_matrix(covariance, 1.0, 1.0)
    expected = np.linalg.inv(covariance[np.ix_(rotation_first, rotation_first)])
    np.testing.assert_allclose(same.T @ same, expected, rtol=1e-5, atol=1e3)
    for way in (1.0, 10.0):
        W = whitening_matrix(covariance, way, 1.0)
        left = W @ np.array([0, 0, 1e-3, 0, -2.5e-3, 0])  # a rotation with its correlated translation
        np.testing.assert_allclose(left, [0, 0, 1, 0, 0, 0], atol=1e-4)


def test_suspect_components_start_with_a_large_variance():
    names = ["suspect motion 0: translation", "motion: translation", ""]
    np.testing.assert_allclose(NOISE.sigma_factors(names), [np.sqrt(SUSPECT_VARIANCE_FACTOR), 1.0, 1.0])
