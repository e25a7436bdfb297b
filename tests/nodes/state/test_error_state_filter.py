"""Error-state filter on a robot that is simulated here, independently of the filter's models.

The robot drives on a plane. Its odometry has errors of scale, turns, curvature and white noise, drawn from
the priors of the filter, so that covariances can be compared with errors (NEES).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from transect.errors import TransectError
from transect.nodes.state.error_state_filter import ErrorStateFilter
from transect.nodes.state.pose_fusion import FusedPose
from transect.types import Imu, Odometry, Pose

NS = 1_000_000_000
GRAVITY_M_S2 = 9.80665
RUN_COUNT = 16
SPEED_M_S, STEP_S, DURATION_S = 1.0, 0.2, 20.2
OUTAGE_S = 11.0
"""Time in s of the last position."""
MEASUREMENT_NOISE = {
    "scale": 0.02,
    "turn_scale": 0.05,
    "curvature": 0.005,
    "along_noise": 0.02,
    "across_noise": 0.02,
    "heading_noise": 0.005,
    "skid_noise": 0.02,
    "position_std": 0.03,
}
QUIET_NOISE = {
    "slip": 1e-6,
    "sideslip": 1e-6,
    "rest_position_noise": 1e-6,
    "rest_heading_noise": 1e-6,
    "start_slip": 0.0,
    "adaptation_gain": 0.0,
}
RANDOM_WALKS = dict.fromkeys(("scale_walk", "turn_scale_walk", "curvature_walk", "sideslip_walk"), 0.0)
SPECIFIED_NOISE: dict[str, Any] = MEASUREMENT_NOISE | QUIET_NOISE | RANDOM_WALKS


@dataclass
class Drive:
    """Times (s), true x, y, heading (n, 3), those of the odometry (n, 3), and measured positions."""

    times: np.ndarray
    true: np.ndarray
    odometry: np.ndarray
    positions: np.ndarray

    def samples(self, until: float = OUTAGE_S, jump: float = np.nan) -> dict[str, list[Any]]:
        """Return odometry at every step, and a position at every third, with an outlier of 5 m at `jump`."""
        seen = [k for k in range(0, len(self.times), 3) if self.times[k] <= until]
        error = [5.0 * (abs(self.times[k] - jump) < STEP_S / 2) for k in range(len(self.times))]
        return {
            "odometry": [
                Odometry(np.array([x, y, 0.0]), _quaternion(h), t_ns=_ns(t), frame="odom", child="base_link")
                for t, (x, y, h) in zip(self.times, self.odometry, strict=True)
            ],
            "position": [
                Pose(
                    self.positions[k] + [error[k], 0.0, 0.0],
                    np.full(4, np.nan),
                    _ns(self.times[k]),
                    "world",
                    "base_link",
                )
                for k in seen
            ],
        }


def _ns(seconds: float) -> int:
    return round(seconds * NS)


def _quaternion(heading: float) -> np.ndarray:
    return np.array([0.0, 0.0, np.sin(heading / 2), np.cos(heading / 2)])


def drive(seed: int) -> Drive:
    """Simulate a winding path: at every step forward first, then the turn."""
    rng = np.random.default_rng(seed)
    scale, steer, bend = rng.standard_normal(3) * [
        MEASUREMENT_NOISE[name] for name in ("scale", "turn_scale", "curvature")
    ]
    times = np.arange(0.0, DURATION_S, STEP_S)
    true, odometry = [np.array([0.0, 0.0, rng.uniform(-3, 3)])], [np.zeros(3)]
    for t in times[1:]:
        d, turned = SPEED_M_S * STEP_S, 0.3 * np.sin(0.5 * t) * STEP_S
        odometry.append(_moved(odometry[-1], d, 0.0, turned))
        e = (
            rng.standard_normal(3)
            * np.sqrt(d)
            * [
                MEASUREMENT_NOISE["along_noise"],
                MEASUREMENT_NOISE["across_noise"],
                MEASUREMENT_NOISE["heading_noise"],
            ]
        )
        skidded = MEASUREMENT_NOISE["skid_noise"] * np.sqrt(abs(turned)) * rng.standard_normal()
        turned = (1 + scale + steer) * turned + bend * d + e[2] + skidded
        true.append(_moved(true[-1], (1 + scale) * d + e[0], e[1], turned))
    return measured(times, true, odometry, rng)


def measured(times: np.ndarray, true: Any, odometry: Any, rng: np.random.Generator) -> Drive:
    """Return a drive with noisy positions."""
    path = np.stack(true)
    positions = np.column_stack([path[:, :2], np.zeros(len(path))])
    positions += MEASUREMENT_NOISE["position_std"] * rng.standard_normal(positions.shape) * [1.0, 1.0, 2.0]
    return Drive(times, path, np.stack(odometry), positions)


def drive_by_steps(steps: list[tuple[int, float, float, float, float]]) -> Drive:
    """Return a drive of steps: their number, then true forward and turn, then measured forward and turn."""
    true, odometry = [np.zeros(3)], [np.zeros(3)]
    for count, forward, turned, measured_forward, measured_turned in steps:
        for _ in range(count):
            true.append(_moved(true[-1], forward, 0.0, turned))
            odometry.append(_moved(odometry[-1], measured_forward, 0.0, measured_turned))
    return measured(STEP_S * np.arange(len(true)), true, odometry, np.random.default_rng(0))


def _moved(pose: np.ndarray, forward: float, aside: float, turned: float) -> np.ndarray:
    c, s = np.cos(pose[2]), np.sin(pose[2])
    return pose + np.array([c * forward - s * aside, s * forward + c * aside, turned])


def play(
    node: ErrorStateFilter, samples: dict[str, list[Any]], seconds: float = DURATION_S
) -> dict[float, FusedPose]:
    """Run a node at 5 Hz; return its outputs by the time in seconds."""
    outputs: dict[float, FusedPose] = {}
    last = min(max(each[-1].t_ns for each in samples.values()), _ns(seconds))
    before = -1
    for now in range(0, last + 1, NS // 5):
        node.ctx.time = now
        outputs[now / NS] = node(**{k: [s for s in v if before < s.t_ns <= now] for k, v in samples.items()})
        before = now
    return outputs


def error_of(outputs: FusedPose, true: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return errors (3,) in x, y and heading, and their covariance (3, 3)."""
    assert outputs.pose is not None
    assert outputs.covariance is not None
    heading = 2 * np.arctan2(outputs.pose.orientation[2], outputs.pose.orientation[3])
    error = np.array([*(outputs.pose.position[:2] - true[:2]), heading - true[2]])
    error[2] = (error[2] + np.pi) % (2 * np.pi) - np.pi
    return error, outputs.covariance[np.ix_([0, 1, 5], [0, 1, 5])]


@pytest.fixture(scope="module")
def fused() -> list[tuple[Drive, dict[float, FusedPose]]]:
    drives = [drive(seed) for seed in range(RUN_COUNT)]
    return [(each, play(ErrorStateFilter(**SPECIFIED_NOISE), each.samples())) for each in drives]


@pytest.mark.parametrize("t", [OUTAGE_S - 1.0, 20.0])
def test_errors_are_consistent_with_the_covariance_with_positions_and_in_an_outage(fused, t: float):
    nees = []
    for simulated, outputs in fused:
        e, C = error_of(outputs[t], simulated.true[round(t / STEP_S)])
        nees.append(e @ np.linalg.solve(C, e))
    low, high = chi2.ppf([0.025, 0.975], 3 * RUN_COUNT) / RUN_COUNT
    assert low < np.mean(nees) < high


def test_the_covariance_grows_in_an_outage(fused):
    for _, outputs in fused[:3]:
        sizes = [np.trace(outputs[t].covariance[:2, :2]) for t in (10.0, 15.0, 20.0)]
        assert sizes[0] < sizes[1] < sizes[2]


def test_scale_and_curvature_of_the_wheels_are_estimated(fused):
    """Estimates from 11 s of positions reduce the error in the outage."""
    adaptive, fixed = [], []
    for simulated, outputs in fused[:5]:
        without_calibration = ErrorStateFilter(**SPECIFIED_NOISE | {"scale": 1e-6, "curvature": 1e-6})
        for errors, each in ((adaptive, outputs), (fixed, play(without_calibration, simulated.samples()))):
            e, _ = error_of(each[20.0], simulated.true[100])
            errors.append(np.hypot(*e[:2]))
    assert np.sqrt(np.mean(np.square(adaptive))) < np.sqrt(np.mean(np.square(fixed)))


def test_an_outlier_of_five_metres_is_rejected_and_is_larger_than_the_detectable_error():
    simulated = drive(1)
    node = ErrorStateFilter(**SPECIFIED_NOISE)
    outputs = play(node, simulated.samples(jump=9.0), 9.2)
    e, _ = error_of(outputs[9.2], simulated.true[46])
    assert np.hypot(*e[:2]) < 0.3
    seen = outputs[9.0].innovations.values
    assert seen["position_refused"] == 1
    assert 0.05 < seen["position_detectable"] < 1.0
    assert node.filter.statistics.sensors["position"].rejected == 1


def test_the_state_is_corrected_after_several_rejected_positions():
    simulated = drive(2)
    moved = simulated.samples(until=DURATION_S)
    for k, pose in enumerate(moved["position"]):
        if pose.t_ns > 9 * NS:
            moved["position"][k] = Pose(
                pose.position + np.array([3.0, 0, 0]), pose.orientation, pose.t_ns, "world", "base_link"
            )
    outputs = play(ErrorStateFilter(**SPECIFIED_NOISE), moved)
    e, _ = error_of(outputs[20.0], simulated.true[100])
    assert e[0] == pytest.approx(3.0, abs=0.3)


def test_wheels_with_a_wrong_sign_after_a_start_are_within_the_covariance():
    """The robot stops, and reverses by a metre in the outage; its wheels measure forward motion."""
    simulated = drive_by_steps([(50, 0.2, 0.0, 0.2, 0.0), (5, 0.0, 0.0, 0.0, 0.0), (10, -0.1, 0.0, 0.1, 0.0)])
    for unsteady, covered in ((1.0, True), (0.0, False)):
        outputs = play(ErrorStateFilter(**SPECIFIED_NOISE | {"start_slip": unsteady}), simulated.samples())
        e, C = error_of(outputs[13.0], simulated.true[-1])
        assert e[0] == pytest.approx(2.0, abs=0.2)
        assert (e[:2] @ np.linalg.solve(C[:2, :2], e[:2]) < chi2.ppf(0.95, 2)) == covered
        assert C[0, 0] < 2.0**2


def test_a_wrong_heading_is_corrected_by_positions():
    """In an outage the robot turns by a right angle; its wheels measure straight motion."""
    straight = (0.2, 0.0, 0.2, 0.0)
    simulated = drive_by_steps(
        [(40, *straight), (15, 0.2, np.pi / 30, 0.2, 0.0), (10, *straight), (35, *straight)]
    )
    samples = simulated.samples(until=DURATION_S)
    samples["position"] = [each for each in samples["position"] if not 8 * NS < each.t_ns < 13 * NS]
    e, C = error_of(play(ErrorStateFilter(**SPECIFIED_NOISE), samples)[20.0], simulated.true[-1])
    assert abs(e[2]) < min(0.1, 3 * np.sqrt(C[2, 2]))


def test_results_are_reproducible():
    samples = drive(3).samples()
    first, second = (play(ErrorStateFilter(), samples, 9.0) for _ in range(2))
    for t, outputs in first.items():
        if outputs.pose is not None:
            assert outputs.pose.position.tobytes() == second[t].pose.position.tobytes()
            assert outputs.covariance.tobytes() == second[t].covariance.tobytes()


def test_before_the_heading_is_known_there_is_no_pose():
    outputs = play(ErrorStateFilter(), drive(4).samples(), 6.0)
    assert outputs[1.0].success is False
    assert outputs[1.0].pose is None
    assert outputs[6.0].success is True


def test_a_recording_without_observable_pose_is_refused():
    node = ErrorStateFilter()
    play(node, {"odometry": drive(5).samples()["odometry"][:20]})
    with pytest.raises(TransectError, match="anything that corrects it"):
        node.finish()
    with pytest.raises(TransectError, match="a dead reckoning"):
        ErrorStateFilter().finish()


def test_an_imu_keeps_the_heading_while_the_wheels_skid():
    """Wheels measure straight motion while the robot turns; the gyroscope measures the turn."""
    rate = 0.2
    times = np.arange(0.0, 6.0, 0.02)
    imu = [
        Imu(
            np.array([0.0, rate * SPEED_M_S, GRAVITY_M_S2]),
            np.array([0.0, 0.0, rate]),
            t_ns=_ns(t),
            frame="base_link",
        )
        for t in times
    ]
    wheels = [
        Odometry(
            velocity=np.array([SPEED_M_S, 0, 0]), angular_velocity=np.zeros(3), t_ns=_ns(t), child="base_link"
        )
        for t in times[::5]
    ]
    outputs = play(ErrorStateFilter(wait=0.5), {"odometry": wheels, "imu": imu})
    last = outputs[5.8].pose
    heading = 2 * np.arctan2(last.orientation[2], last.orientation[3])
    assert last.frame == "odom"
    assert heading == pytest.approx(rate * 5.8, abs=0.1)


def test_the_trajectory_has_all_poses_with_their_covariances():
    node = ErrorStateFilter(**SPECIFIED_NOISE)
    outputs = play(node, drive(6).samples(), 9.0)
    trajectory = node.finish().trajectory
    there = [each for each in outputs.values() if each.pose is not None]
    assert len(trajectory) == len(there)
    assert trajectory.frame == "world"
    np.testing.assert_array_equal(trajectory.covariances[-1], there[-1].covariance)
