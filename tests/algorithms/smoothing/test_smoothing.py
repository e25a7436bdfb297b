"""Smoothers on drives with analytic ground truth."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
import pytest

pytest.importorskip("gtsam")

from transect import run
from transect.algorithms.fusion.events import ImuSample, MeasuredPosition, OdometryStep
from transect.algorithms.smoothing.batch import SmoothedPath, smooth
from transect.algorithms.smoothing.factor_graph import SmootherNoise, build_graph, solve
from transect.algorithms.smoothing.fixed_lag import FixedLagSettings, FixedLagWindow
from transect.algorithms.smoothing.imu_preintegration import gyro_path
from transect.algorithms.smoothing.initial_values import HeadingUnobservableError, initial_poses
from transect.algorithms.smoothing.observations import Observations, keyframe_times
from transect.algorithms.smoothing.odometry_paths import PlanarPath, PosePath
from transect.algorithms.smoothing.position_factors import join_statistics, transform_points
from transect.algorithms.smoothing.wheel_cross_validation import estimate_wheel_factor
from transect.algorithms.smoothing.wheel_factors import WheelFactors, WheelNoise
from transect.engine import compound
from transect.errors import TimeError, TransectError, UsageError
from transect.geometry import planar, rotations, se3
from transect.nodes.state.batch_smoother import BatchSmoother, parse_suspect
from transect.nodes.state.fixed_lag_smoother import FixedLagSmoother
from transect.recording import FrameTree, Recording, Stream, arrow
from transect.types import Odometry, Pose

NS = 1_000_000_000
LEVER = np.array([1.0, -0.2, 0.5])
SIGMA_M = 0.02
SPEED_M_S = 1.0
STEADY = SmootherNoise(wheels=WheelNoise(start_slip=0.0))
EXACT = SmootherNoise(
    wheels=WheelNoise(
        start_slip=0.0,
        creep_speed=0.0,
        calibration_walk=(1e-6,) * 4,
        calibration_sigmas=(0.05, 1e-3, 0.02, 1e-4),
    ),
    tilt=1e-3,
)
"""Noise of `drive(noise=1.0)`."""


@dataclass(frozen=True)
class Drive:
    """A figure of eight: true poses (n, 3) at 10 Hz, and measurements."""

    t_ns: np.ndarray
    truth: np.ndarray
    observations: Observations
    withheld: np.ndarray

    def antenna(self) -> np.ndarray:
        return self.truth[:, :2] + planar.rotations_from_headings(self.truth[:, 2]) @ LEVER[:2]


def figure_of_eight(seconds: float, turn: float = 0.25) -> tuple[np.ndarray, np.ndarray]:
    """Return times (n,) and poses (n, 3) of sinusoidal heading at constant speed, integrated by 1 ms."""
    fine = np.arange(0, seconds + 5e-4, 1e-3)
    heading = 4 * turn * np.sin(fine / 4)
    moved = 1e-3 * SPEED_M_S * np.column_stack([np.cos(heading), np.sin(heading)])
    place = np.concatenate([np.zeros((1, 2)), np.cumsum((moved[1:] + moved[:-1]) / 2, axis=0)])
    every = slice(None, None, 100)
    return (NS * fine[every]).round().astype(np.int64), np.column_stack([place, heading])[every]


def step(motion: np.ndarray, start_ns: int, t_ns: int) -> OdometryStep:
    x, y, heading = motion
    turned = rotations.quaternion_from_euler("z", [heading])
    return OdometryStep("wheels", start_ns, t_ns, se3.from_quaternion(turned, [x, y, 0.0]), planar=True)


def drive(
    seconds: float = 40.0,
    *,
    seed: int = 0,
    scale: float = 1.0,
    curvature: float = 0.0,
    noise: float = 0.0,
    gap=(0, 0),
) -> Drive:
    """Simulate wheels with a scale and a curvature (rad/m), and positions at 5 Hz except in a gap."""
    rng = np.random.default_rng(seed)
    t_ns, truth = figure_of_eight(seconds)
    back = np.swapaxes(planar.rotations_from_headings(truth[:-1, 2]), -1, -2)
    motions = np.column_stack(
        [np.einsum("nij,nj->ni", back, np.diff(truth[:, :2], axis=0)), np.diff(truth[:, 2])]
    )
    distance = np.hypot(*motions[:, :2].T)
    motions[:, :2] *= scale
    motions[:, 2] += curvature * distance
    motions += noise * np.sqrt(distance)[:, None] * rng.normal(size=motions.shape) * [0.02, 0.02, 0.01]
    steps = [step(m, int(a), int(b)) for m, a, b in zip(motions, t_ns[:-1], t_ns[1:], strict=True)]
    withheld = (t_ns >= gap[0] * NS) & (t_ns < gap[1] * NS)
    made = Drive(t_ns, truth, Observations(wheels=steps), withheld)
    std = SIGMA_M * np.array([1.0, 1.0, 2.0])
    measured = np.column_stack([made.antenna(), np.full(len(t_ns), LEVER[2])]) + std * rng.normal(
        size=(len(t_ns), 3)
    )
    for i in np.flatnonzero(~withheld)[::2]:
        made.observations.positions.append(
            MeasuredPosition("position", int(t_ns[i]), measured[i], std, LEVER, white=True)
        )
    return made


def errors_in_gap(made: Drive, found: SmoothedPath) -> tuple[np.ndarray, np.ndarray]:
    """Return errors (k, 2) of the antenna in the gap, and their covariances (k, 2, 2)."""
    poses, covariances = found.at(made.t_ns[made.withheld])
    place, spread = transform_points(poses, covariances, np.tile(LEVER, (len(poses), 1)))
    return place[:, :2] - made.antenna()[made.withheld], spread[:, :2, :2]


# Paths


def test_correlations_of_a_path_have_the_same_sign_forwards_and_backwards():
    covariance = np.diag([4.0, 9.0, 1.0, 1.0, 1.0, 1.0]) * 1e-6
    covariance[1, 5] = covariance[5, 1] = -2e-6  # left translation with a right turn, as errors of cameras
    steps = [
        OdometryStep("motion", k * NS, (k + 1) * NS, np.eye(4), planar=False, covariance=covariance)
        for k in range(4)
    ]
    path, ends = PosePath.from_steps(steps, 0.02, 0.02), np.array([NS, 4 * NS])
    for found in (path.between(ends[:1], ends[1:])[1], path.between(ends[1:], ends[:1])[1]):
        np.testing.assert_allclose(found[0], 3 * covariance, atol=1e-18)


def test_motion_along_a_path_is_the_product_of_its_steps():
    made = drive(5.0)
    span = PlanarPath.from_steps(made.observations.wheels).between(made.t_ns[[3]], made.t_ns[[31]])
    composed = se3.compose(*(each.transform for each in made.observations.wheels[3:31]))
    heading = np.arctan2(composed[1, 0], composed[0, 0])
    np.testing.assert_allclose(span.motion[0], [*composed[:2, 3], heading], atol=1e-12)
    assert span.distance[0] == pytest.approx(2.8 * SPEED_M_S, rel=1e-3)


def test_calibration_jacobian_is_that_of_finite_differences():
    made, small = drive(6.0), 1e-6
    times = made.t_ns[[5]], made.t_ns[[50]]
    span = PlanarPath.from_steps(made.observations.wheels).between(*times)
    for column, wrong in enumerate(np.eye(4) * small):
        steps = []
        for each in made.observations.wheels:
            motion = se3.log(each.transform)[[0, 1, 5]]
            motion[2] += wrong[1] * motion[2] + wrong[2] * motion[0]
            motion[:2] *= 1 + wrong[0]
            motion[:2] += wrong[3] * motion[0] * np.array([0, 1]) - wrong[3] * motion[1] * np.array([1, 0])
            twist = np.array([motion[0], motion[1], 0, 0, 0, motion[2]])
            steps.append(replace(each, transform=se3.exp(twist)))
        moved = PlanarPath.from_steps(steps).between(*times).motion - span.motion
        np.testing.assert_allclose(span.calibration_jacobian[0, :, column], moved[0] / small, atol=2e-3)


def test_a_path_is_unknown_in_a_gap_of_its_steps():
    made = drive(4.0)
    steps = made.observations.wheels[:10] + made.observations.wheels[20:]
    span = PlanarPath.from_steps(steps).between(made.t_ns[[0, 5, 25]], made.t_ns[[8, 25, 30]])
    assert span.known.tolist() == [True, False, True]


def test_covariances_of_steps_add_up_along_a_path():
    turned = se3.exp([0.1, 0.0, 0.01, 0.02, 0.0, 0.1])
    steps = [
        OdometryStep("motion", i * NS, (i + 1) * NS, turned, False, (i + 1) * np.eye(6)) for i in range(5)
    ]
    moved, spread, known = PosePath.from_steps(steps, 0.02, 0.02).between(np.array([NS]), np.array([3 * NS]))
    np.testing.assert_allclose(moved[0], turned @ turned, atol=1e-12)
    np.testing.assert_allclose(spread[0], 5 * np.eye(6))
    assert known.all()


def test_jacobians_of_wheel_factors_are_those_of_finite_differences():
    made, rng = drive(4.0, scale=1.1), np.random.default_rng(1)
    times = made.t_ns[::10]
    span = PlanarPath.from_steps(made.observations.wheels).between(times[:-1], times[1:])
    factors = WheelFactors(span, np.ones((len(times) - 1, 6)), huber_sigmas=1e9)
    poses = se3.exp(rng.normal(scale=0.3, size=(len(times), 6)))
    wheels = rng.normal(scale=0.05, size=(len(times), 4))
    here = factors.linearise(poses, wheels)
    for part, size in (("by_first", 6), ("by_second", 6), ("by_calibration", 4)):
        for k in range(size):
            push = np.zeros(size)
            push[k] = 1e-6
            moved, shifted = poses.copy(), wheels.copy()
            if part == "by_calibration":
                shifted[0] += push
            else:
                at = 0 if part == "by_first" else 1
                # Rotation first, and the translation moved along the body's axes, as GTSAM does.
                moved[at] = poses[at] @ se3.from_matrix(
                    rotations.matrix_from_rotation_vector(push[:3]), push[3:]
                )
            change = (factors.linearise(moved, shifted).error[0] - here.error[0]) / 1e-6
            np.testing.assert_allclose(getattr(here, part)[0][:, k], change, atol=1e-4)


# Smoothing


def test_errors_in_a_gap_are_consistent_with_the_covariance_of_miscalibrated_wheels():
    made = drive(45.0, scale=1.04, curvature=0.02, noise=1.0, gap=(15, 30))
    found = smooth(made.observations, STEADY)
    off, spread = errors_in_gap(made, found)
    sigma = np.sqrt(np.trace(spread, axis1=1, axis2=2))
    assert sigma.max() < 0.3  # 15 m without a fix
    assert np.all(np.linalg.norm(off, axis=1) < 3 * sigma)
    lengths, _, curvature, _ = found.calibration[len(found.calibration) // 2]
    # Noise of 0.02 m and 0.01 rad after a metre leaves 0.005 and 0.0026 rad/m after 15 m: three of these.
    assert lengths == pytest.approx(1 / 1.04 - 1, abs=0.0155)
    assert curvature == pytest.approx(-0.02, abs=0.008)


def test_covariances_are_consistent_over_many_drives():
    """The sum of n squared Mahalanobis distances is chi-squared with 2 n degrees of freedom."""
    distances: list[float] = []
    for seed in range(16):
        rng = np.random.default_rng(1000 + seed)
        scale, curvature = 1 + 0.05 * rng.normal(), 0.02 * rng.normal()
        made = drive(12.0, seed=seed, scale=scale, curvature=curvature, noise=1.0, gap=(4, 8))
        off, spread = errors_in_gap(made, smooth(made.observations, EXACT, spacing=1.0))
        middle = len(off) // 2
        distances.append(off[middle] @ np.linalg.solve(spread[middle], off[middle]))
    # chi-square of 32 degrees of freedom, over 16: chance is outside of these bounds once in a thousand.
    assert 0.74 < np.mean(distances) < 4.07


def test_a_lag_longer_than_the_drive_gives_the_result_of_the_batch_smoother():
    made = drive(14.0, scale=1.03, noise=1.0, gap=(5, 9))
    events = sorted([*made.observations.wheels, *made.observations.positions], key=lambda each: each.t_ns)
    window = FixedLagWindow(STEADY, FixedLagSettings(0.5, lag=100.0, max_wait=1.0))
    for start in range(0, len(events), 15):
        window.advance(events[start : start + 15])
    keyframes, found = window.finish(), smooth(made.observations, STEADY)
    assert [each.t_ns for each in keyframes] == found.times.tolist()
    sigma = np.sqrt(found.covariances[:, [0, 1, 2], [0, 1, 2]]).min()
    np.testing.assert_allclose([each.pose for each in keyframes], found.poses, atol=sigma / 10)
    np.testing.assert_allclose(
        [each.covariance for each in keyframes], found.covariances, rtol=0.02, atol=1e-6
    )


def test_marginalised_keyframes_keep_their_information():
    made = drive(16.0, scale=1.03, noise=1.0, gap=(8, 12))
    events = sorted([*made.observations.wheels, *made.observations.positions], key=lambda each: each.t_ns)
    window = FixedLagWindow(STEADY, FixedLagSettings(0.5, lag=6.0, max_wait=1.0))
    for start in range(0, len(events), 15):
        window.advance(events[start : start + 15])
        assert len(window.times) <= 14
    now, truth = window.predict(int(made.t_ns[-1])), made.truth[-1]
    assert now is not None
    off = now.pose[:2, 3] - truth[:2]
    assert off @ np.linalg.solve(now.covariance[:2, :2], off) < 14
    keyframes = window.finish()
    times = np.array([each.t_ns for each in keyframes])
    assert (np.diff(times) > 0).all()
    assert times[0] == made.t_ns[0]
    assert times[-1] == made.t_ns[-1]


def test_an_outlier_is_rejected_and_the_detectable_error_is_reported():
    made = drive(20.0, noise=0.5)
    wrong = made.observations.positions[40]
    made.observations.positions[40] = replace(wrong, position=wrong.position + np.array([1.0, 0, 0]))
    statistics = smooth(made.observations, STEADY).statistics
    assert np.flatnonzero(~statistics.used).tolist() == [40]
    assert (statistics.detectable < 1.0).all()
    assert "1 rejected" in str(statistics)
    # 1 - 0.95 of 101 is 5: the binomial exceeds 14 once in ten thousand.
    assert np.count_nonzero(statistics.nis > 7.81) < 15


def test_an_imu_and_a_motion_without_positions_start_at_the_origin():
    t_ns, truth = figure_of_eight(8.0)
    rate = np.gradient(truth[:, 2], 0.1)
    velocity = np.gradient(truth[:, :2], 0.1, axis=0)
    turned = se3.from_quaternion(
        rotations.quaternion_from_euler("z", truth[:, 2:]),
        np.column_stack([truth[:, :2], np.zeros(len(truth))]),
    )
    steps = [
        OdometryStep("motion", int(a), int(b), moved, planar=False)
        for a, b, moved in zip(t_ns[:-1], t_ns[1:], se3.relative_motions(turned), strict=True)
    ]
    push = np.einsum(
        "nji,nj->ni", planar.rotations_from_headings(truth[:, 2]), np.gradient(velocity, 0.1, axis=0)
    )
    bias = 0.005
    inertial = [
        ImuSample(int(t), np.array([*a, 9.80665]), np.array([0.0, 0.0, w + bias]))
        for t, a, w in zip(t_ns, push, rate, strict=True)
    ]
    found = smooth(Observations(motion=steps, inertial=inertial))
    np.testing.assert_allclose(found.poses[-1][:3, 3], [*truth[-1, :2], 0.0], atol=0.05)
    assert np.linalg.eigvalsh(found.covariances[-1]).min() > 0
    assert len(found.calibration) == 0


def test_attitude_between_keyframes_is_that_of_the_gyroscopes():
    """The body pitches by 0.02 rad at 2 Hz, and is level at both keyframes; wheels do not measure it."""
    t_ns = np.arange(0, NS // 2 + 1, NS // 100)
    phase = 4 * np.pi * t_ns / NS
    up, rates = np.array([0.0, 0.0, 9.80665]), 0.08 * np.pi * np.cos(phase)
    samples = [ImuSample(int(t), up, np.array([0.0, w, 0.0])) for t, w in zip(t_ns, rates, strict=True)]
    path = PlanarPath.from_steps([step(np.array([0.5, 0.0, 0.0]), 0, NS // 2)])
    poses, spread = np.tile(np.eye(4), (2, 1, 1)), np.zeros((2, 6, 6))
    poses[1, 0, 3] = 0.5
    found = SmoothedPath(
        t_ns[[0, -1]], path, gyro_path(samples), poses, spread, np.zeros((2, 4)), (), join_statistics([])
    )
    poses, _ = found.at(t_ns)
    np.testing.assert_allclose(np.arcsin(-poses[:, 2, 0]), 0.02 * np.sin(phase), atol=1e-4)
    np.testing.assert_allclose(poses[:, 0, 3], t_ns / NS, atol=1e-9)


def test_distance_and_turn_of_wheels_are_uncertain_after_a_slow_start_and_in_a_jump():
    """They stand for two seconds, start slowly, and drive on; later they slow down, and jump."""
    kinds = [(0.1, 0.01)] * 20 + [(0.0, 0.0)] * 20 + [(0.02, 0.01)] * 10 + [(0.1, 0.01)] * 130
    kinds[160:169] = [(way, 0.01) for way in (0.08, 0.06, 0.04, 0.02, 0.02, 0.02, 0.04, 0.06, 0.08)]
    kinds[175] = (0.2, 0.01)
    steps = [
        step(np.array([way, 0.0, turn]), i * NS // 10, (i + 1) * NS // 10)
        for i, (way, turn) in enumerate(kinds)
    ]
    edges = NS * np.arange(19)
    span = PlanarPath.from_steps(steps).between(edges[:-1], edges[1:])
    sigmas, quiet = (WheelNoise(start_slip=each).sigmas(span) for each in (1.0, 0.0))
    assert sigmas[4, 2] == pytest.approx(0.1, rel=0.02)
    assert sigmas[4, 3] == pytest.approx(np.hypot(0.2, 0.8), rel=0.02)
    assert sigmas[17, 3] == pytest.approx(0.3, rel=0.02)  # a jump of 1 m/s lasts 0.3 s
    steady = [*range(4), *range(6, 17)]
    np.testing.assert_array_equal(sigmas[steady], quiet[steady])  # slower, without standing


@pytest.mark.parametrize("factor", [0.3, 2.0])
def test_the_noise_of_wheels_is_estimated_by_cross_validation(factor: float):
    """Errors of wheels are a factor times the specified noise; a path of 120 s determines it."""
    made = drive(120.0, seed=5, noise=factor)
    times = keyframe_times(*made.observations.path_interval, 0.5, made.observations.times)
    graph = build_graph(made.observations, times, EXACT)
    values = graph.values_from_poses(initial_poses(graph.path, times, graph.positions))
    found = estimate_wheel_factor(made.observations, EXACT, graph, solve(graph, values))
    assert factor**2 / 3 < found < 3 * factor**2


def test_smoothing_refuses_positions_of_another_time():
    made = drive(5.0)
    later = [replace(each, t_ns=each.t_ns + 100 * NS) for each in made.observations.positions]
    with pytest.raises(TimeError, match="no time in common"):
        smooth(Observations(wheels=made.observations.wheels, positions=later))


def test_smoothing_refuses_too_few_positions():
    made = drive(5.0)
    with pytest.raises(TransectError, match="too few positions") as refused:
        smooth(Observations(wheels=made.observations.wheels, positions=made.observations.positions[:2]))
    assert "2 of 2" in refused.value.why


def test_smoothing_refuses_positions_that_do_not_determine_the_heading():
    made = drive(5.0)
    standing = [step(np.zeros(3), each.start_ns, each.t_ns) for each in made.observations.wheels]
    there = [replace(each, position=np.zeros(3)) for each in made.observations.positions]
    with pytest.raises(HeadingUnobservableError, match="heading"):
        smooth(Observations(wheels=standing, positions=there))


@pytest.mark.parametrize("kind", [BatchSmoother, FixedLagSmoother])
def test_a_node_refuses_to_smooth_without_positions_or_anything_else_that_corrects(kind):
    node = kind(wait=0.0) if kind is FixedLagSmoother else kind()
    for i in range(5):
        node.ctx.time = i * NS
        odometry = [Odometry(np.array([0.1 * i, 0.0, 0.0]), np.array([0.0, 0.0, 0.0, 1.0]), t_ns=i * NS)]
        node(odometry=odometry)
    with pytest.raises(TransectError, match="without anything that corrects it"):
        node.finish()


# Nodes


@pytest.fixture(scope="module")
def recording() -> Recording:
    made = drive(12.0, scale=1.02, noise=1.0, gap=(5, 8))
    poses = [np.eye(4)]
    for each in made.observations.wheels:
        poses.append(poses[-1] @ each.transform)
    attitudes, positions = se3.to_quaternion(np.array(poses))
    names = ("x", "y", "z", "qx", "qy", "qz", "qw")
    track = dict(zip(names, np.column_stack([positions, attitudes]).T, strict=True))
    there = dict(
        zip(names, np.array([each.position for each in made.observations.positions]).T, strict=False)
    )
    at = np.array([each.t_ns for each in made.observations.positions])
    frames = FrameTree()
    frames.add_static("base_link", "gps", se3.from_matrix(np.eye(3), LEVER))
    streams = (
        Stream("Odometry", Odometry, arrow.table(made.t_ns, track), frame="odom", child="base_link"),
        Stream("Rtk", Pose, arrow.table(at, there), frame="world", child="gps"),
    )
    return Recording("eight", streams, frames=frames)


PORTS = ("pose", "covariance", "success", "innovations", "trajectory")


@pytest.mark.parametrize("kind", [BatchSmoother, FixedLagSmoother])
def test_results_are_reproducible_and_near_the_truth(kind, recording: Recording):
    wires = [f"{name} -> fusion.{name}" for name in ("odometry", "position")]
    wires += [f"fusion.{name} -> {name}" for name in PORTS]
    first, again = (run(compound("Smooth", {"fusion": kind}, wires), recording) for _ in range(2))
    assert first.digest == again.digest
    path = first["trajectory"].values[0]
    assert (path.frame, path.child) == ("world", "base_link")
    t_ns, truth = figure_of_eight(12.0)
    at = np.column_stack([np.interp(path.t_ns, t_ns, each) for each in truth[:, :2].T])
    off, sigma = path.positions[:, :2] - at, np.sqrt(np.trace(path.covariances[:, :2, :2], axis1=1, axis2=2))
    assert np.mean(np.linalg.norm(off, axis=1) < 3 * sigma) > 0.95
    assert all(first["success"].values[-20:])


def test_suspect_steps_have_no_influence(recording: Recording):
    odometry = recording["Odometry"]
    jumping = odometry.array("x").ravel() + 2.0 * ((odometry.t_ns > 3.2 * NS) & (odometry.t_ns < 4.8 * NS))
    table = odometry.table.set_column(odometry.table.column_names.index("x"), "x", [jumping])
    corrupted = recording.replace(streams=(odometry.replace(source=table), recording["Rtk"]))
    wires = ["odometry -> fusion.odometry", "position -> fusion.position", "fusion.trajectory -> trajectory"]
    smoother = compound("Smooth", {"fusion": BatchSmoother(suspect=f"odometry {3 * NS} {5 * NS}")}, wires)
    good, same = (run(smoother, each)["trajectory"].values[0] for each in (recording, corrupted))
    np.testing.assert_array_equal(good.positions, same.positions)
    bad = run(compound("Smooth", {"fusion": BatchSmoother}, wires), corrupted)["trajectory"].values[0]
    assert np.abs(bad.positions - good.positions).max() > 0.05


@pytest.mark.parametrize("text", ["fix 1 2", "wheels 1", "wheels a 2", "motion 1 2 3"])
def test_a_text_that_is_no_suspect_interval_is_refused(text: str):
    with pytest.raises(UsageError, match="no suspect interval"):
        parse_suspect(text)


def test_the_state_of_a_running_node_can_be_copied(recording: Recording):
    node = FixedLagSmoother(lag=3.0)
    node.ctx.frames = recording.frames
    odometry, positions = ([each.value for each in recording[name]] for name in ("Odometry", "Rtk"))
    outputs = []
    for k in range(1, 9):
        node.ctx.time = k * NS // 2
        part = [
            [e for e in s if node.ctx.time - NS // 2 < e.t_ns <= node.ctx.time] for s in (odometry, positions)
        ]
        if k == 8:
            before = deepcopy(node.freeze())
        outputs.append(node(odometry=part[0], position=part[1]))
    node.thaw(before)
    again = node(odometry=part[0], position=part[1])
    assert again.pose.t_ns == outputs[-1].pose.t_ns
    np.testing.assert_array_equal(again.pose.position, outputs[-1].pose.position)


def test_the_heading_is_observable_by_a_noisy_receiver_along_a_longer_path():
    made, rng = drive(60.0), np.random.default_rng(3)
    wide = 2.0 * np.array([1.0, 1.0, 2.0])
    made.observations.positions = [
        replace(each, position=each.position + wide * rng.normal(size=3), std=wide, white=False)
        for each in made.observations.positions
    ]
    found = smooth(made.observations, STEADY, 2.0)
    off = found.at(made.t_ns)[0][:, :2, 3] - made.truth[:, :2]
    assert np.sqrt(np.mean(np.sum(off**2, axis=1))) < 1.5


def test_a_silence_of_years_has_few_keyframes() -> None:
    years = 100 * 365 * 86400 * NS
    measured = np.concatenate([np.arange(0, 20 * NS, NS // 10), years + np.arange(0, 20 * NS, NS // 10)])
    first, last = int(measured[0]), int(measured[-1])
    times = keyframe_times(first, last, 0.5, measured)
    assert len(times) < 2000
    assert (np.diff(times) > 0).all()
    assert (times[:-1] % (NS // 2) == 0).all()
    dense = times[times >= years - NS // 2]
    assert np.diff(dense).max() == NS // 2
    assert int(times[-1]) == last
    short = np.arange(0, 20 * NS, NS // 10)
    np.testing.assert_array_equal(
        keyframe_times(0, int(short[-1]), 0.5, short), keyframe_times(0, int(short[-1]), 0.5, short[:1])
    )
