"""Kalman prediction of a rigid body (CDFF's KFPrediction)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from transect.algorithms.fusion.rigid_body import (
    ANGULAR_VELOCITY,
    POSITION,
    ROTATION,
    STATE_SIZE,
    VELOCITY,
    add_error,
    angular_velocity_of,
    covariance_of,
    velocity_of,
)
from transect.base.clocks import NS
from transect.engine import Node, outputs, param
from transect.types import RigidBodyState


@outputs
class Predicted:
    """State at the requested time. CDFF has a second port, of the same type, for its covariance."""

    predictedState: RigidBodyState | None = None
    predictedStateCovariance: RigidBodyState | None = None


class KFPrediction(Node, interface=True):
    """Prediction of a rigid body's state; `currentTime` is in ns, on the clock of the state."""

    def process(self, previousState: RigidBodyState, currentTime: int) -> Predicted | None:
        seconds = (currentTime - previousState.t_ns) / NS
        if seconds < 0:
            return self.ctx.skip("requested time is before that of the state")
        state = replace(self.predict(previousState, seconds), t_ns=currentTime)
        return Predicted(state, state)

    def predict(self, state: RigidBodyState, seconds: float) -> RigidBodyState:
        """Return a state, with its covariance, some seconds later."""
        raise NotImplementedError


class KalmanPredictor(KFPrediction):
    """Constant velocities with white-noise accelerations."""

    acceleration: float = param(0.5, gt=0, unit="m/s2/sqrt(Hz)", doc="white noise of the acceleration")
    angular_acceleration: float = param(
        0.2, gt=0, unit="rad/s2/sqrt(Hz)", doc="white noise of the angular acceleration"
    )

    def predict(self, state: RigidBodyState, seconds: float) -> RigidBodyState:
        F = np.eye(STATE_SIZE)
        F[POSITION, VELOCITY] = F[ROTATION, ANGULAR_VELOCITY] = np.eye(3) * seconds
        P = F @ covariance_of(state) @ F.T + self._process_noise(seconds)
        e = np.zeros(STATE_SIZE)
        e[POSITION] = velocity_of(state) * seconds
        e[ROTATION] = angular_velocity_of(state) * seconds
        return add_error(state, e, P)

    def _process_noise(self, seconds: float) -> np.ndarray:
        """Return the covariance (12, 12) of integrated white-noise accelerations."""
        Q = np.zeros((STATE_SIZE, STATE_SIZE))
        densities = (
            (POSITION, VELOCITY, self.acceleration),
            (
                ROTATION,
                ANGULAR_VELOCITY,
                self.angular_acceleration,
            ),
        )
        for a, b, density in densities:
            power = density**2
            Q[a, a] = np.eye(3) * power * seconds**3 / 3
            Q[a, b] = Q[b, a] = np.eye(3) * power * seconds**2 / 2
            Q[b, b] = np.eye(3) * power * seconds
        return Q
