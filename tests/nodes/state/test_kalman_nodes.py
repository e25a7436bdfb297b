"""Kalman prediction and update of rigid bodies, and the weighting of poses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from transect.errors import TransectError
from transect.geometry import rotations
from transect.nodes.state.kf_correction import KalmanCorrector
from transect.nodes.state.kf_prediction import KalmanPredictor
from transect.nodes.state.pose_weighting import KalmanFilter
from transect.types import RigidBodyState, Trajectory

NS = 1_000_000_000
LEVEL = np.array([0.0, 0.0, 0.0, 1.0])


def body(x: float, t_ns: int, covariance: np.ndarray, velocity: float = 0.0) -> RigidBodyState:
    return RigidBodyState(
        np.array([x, 0.0, 0.0]),
        LEVEL,
        np.array([velocity, 0.0, 0.0]),
        np.zeros(3),
        covariance.reshape(-1),
        t_ns,
    )


def seen_at(x: float, t_ns: int, std: float) -> RigidBodyState:
    """A measurement of position alone."""
    R = np.eye(6) * std**2
    return RigidBodyState(np.array([x, 0.0, 0.0]), np.full(4, np.nan), covariance=R.reshape(-1), t_ns=t_ns)


def test_filtering_a_line_gives_the_least_squares_line():
    """Without process noise the filter's last state is the batch solution: position and speed of a line."""
    times, places = np.array([1.0, 2.0, 3.0, 5.0]), np.array([1.1, 1.9, 3.2, 4.8])
    predict, correct = (
        KalmanPredictor(acceleration=1e-9, angular_acceleration=1e-9),
        KalmanCorrector(gate=1.0),
    )
    state = body(0.0, 0, np.diag([1e6] * 3 + [1e-6] * 3 + [1e6] * 3 + [1e-6] * 3))
    for t, x in zip(times, places, strict=True):
        ahead = predict(state, int(t * NS))
        told = correct(ahead.predictedState, seen_at(x, int(t * NS), 0.1), ahead.predictedStateCovariance)
        state = told.correctedState
    design = np.stack([np.ones(4), times - times[-1]], axis=1)
    wanted = np.linalg.lstsq(design, places, rcond=None)[0]
    spread = np.linalg.inv(design.T @ design) * 0.1**2
    assert state.velocity is not None
    assert state.covariance is not None
    np.testing.assert_allclose([state.position[0], state.velocity[0]], wanted, atol=1e-4)
    found = state.covariance.reshape(12, 12)[np.ix_([0, 6], [0, 6])]
    np.testing.assert_allclose(found, spread, rtol=1e-3)


def test_a_prediction_moves_and_turns_by_the_velocities():
    state = replace(
        body(1.0, 0, np.eye(12) * 1e-4, velocity=2.0), angular_velocity=np.array([0.0, 0.0, np.pi / 4])
    )
    ahead = KalmanPredictor()(state, 2 * NS).predictedState
    np.testing.assert_allclose(ahead.position, [5.0, 0.0, 0.0])
    np.testing.assert_allclose(rotations.euler_from_quaternion("rpy", ahead.orientation)[2], np.pi / 2)
    assert ahead.t_ns == 2 * NS
    assert np.trace(ahead.covariance.reshape(12, 12)) > 12e-4


def test_a_time_before_the_state_is_skipped():
    assert KalmanPredictor()(body(0.0, NS, np.eye(12)), 0) is None


def test_a_jump_is_rejected_by_the_gate():
    state = body(0.0, 0, np.eye(12) * 0.01)
    told = KalmanCorrector()(state, seen_at(5.0, 0, 0.1), state)
    assert not told.accepted
    assert told.nis == pytest.approx(25 / 0.02)
    assert told.correctedState is state


def test_an_attitude_is_corrected_towards_the_measured_one():
    state = body(0.0, 0, np.eye(12) * 0.01)
    turned = rotations.quaternion_from_euler("Z", [0.1])
    seen = RigidBodyState(np.full(3, np.nan), turned, covariance=np.eye(6).reshape(-1) * 0.01)
    found = KalmanCorrector()(state, seen, state).correctedState.orientation
    assert rotations.euler_from_quaternion("rpy", found)[2] == pytest.approx(0.05)


def test_a_state_without_covariance_is_refused():
    state = RigidBodyState(np.zeros(3), LEVEL)
    with pytest.raises(TransectError, match="no covariance"):
        KalmanPredictor()(state, NS)


def poses(places: list[float], variances: list[float], t_ns: int = 0) -> Trajectory:
    n = len(places)
    return Trajectory(
        np.full(n, t_ns),
        np.stack([[x, 0.0, 0.0] for x in places]),
        np.tile(LEVEL, (n, 1)),
        np.stack([np.eye(6) * v for v in variances]),
    )


def test_poses_are_weighted_by_the_inverse_of_their_variances():
    told = KalmanFilter(gate=1.0)(poses([0.0, 3.0], [1.0, 2.0]))
    assert told.pose.position[0] == pytest.approx(1.0)
    assert told.covariance[0, 0] == pytest.approx(2 / 3)
    assert told.used == 2


def test_a_prediction_far_from_the_others_is_not_used():
    told = KalmanFilter()(poses([0.0, 0.02, 4.0], [1e-3] * 3))
    assert told.used == 2
    assert told.pose.position[0] == pytest.approx(0.01)


def test_the_weight_of_past_predictions_decreases_with_their_age():
    node = KalmanFilter(position_walk=1.0, gate=1.0)
    node(poses([0.0], [1.0]))
    told = node(poses([3.0], [2.0], t_ns=NS))
    assert told.pose.position[0] == pytest.approx(1.5)
