"""Kalman's prediction of a rigid body (CDFF's KFPrediction)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from transect.algorithms.fusion.rigid_body import (
    PARTS,
    SIZE,
    add_error,
    covariance_of,
    turning_of,
    velocity_of,
)
from transect.base.clocks import NS
from transect.engine import Node, outputs, param
from transect.types import RigidBodyState


@outputs
class Predicted:
    """The state at the asked time.

    Attributes
    ----------
    predictedState : RigidBodyState
        With its covariance, 144 numbers: position, rotation vector, velocity, angular velocity.
    predictedStateCovariance : RigidBodyState
        The same: CDFF gives its covariance a port of its own, of the state's type.
    """

    predictedState: RigidBodyState | None = None
    predictedStateCovariance: RigidBodyState | None = None


class KFPrediction(Node, interface=True):
    """Where a rigid body will be: `currentTime` is in ns, on the clock of the state."""

    def process(self, previousState: RigidBodyState, currentTime: int) -> Predicted | None:
        seconds = (currentTime - previousState.t_ns) / NS
        if seconds < 0:
            return self.ctx.skip("asked for a time before the state's")
        state = replace(self.predict(previousState, seconds), t_ns=currentTime)
        return Predicted(state, state)

    def predict(self, state: RigidBodyState, seconds: float) -> RigidBodyState:
        """Return a state, with its covariance, some seconds later."""
        raise NotImplementedError


class KalmanPredictor(KFPrediction):
    """Constant velocities, with white accelerations."""

    acceleration: float = param(0.5, gt=0, unit="m/s2/sqrt(Hz)", doc="white noise of the acceleration")
    turning: float = param(0.2, gt=0, unit="rad/s2/sqrt(Hz)", doc="white noise of the angular acceleration")

    def predict(self, state: RigidBodyState, seconds: float) -> RigidBodyState:
        F = np.eye(SIZE)
        F[PARTS[0], PARTS[2]] = F[PARTS[1], PARTS[3]] = np.eye(3) * seconds
        P = F @ covariance_of(state) @ F.T + self._noise(seconds)
        e = np.zeros(SIZE)
        e[PARTS[0]] = velocity_of(state) * seconds
        e[PARTS[1]] = turning_of(state) * seconds
        return add_error(state, e, P)

    def _noise(self, seconds: float) -> np.ndarray:
        """Covariance (12, 12) that white accelerations add: the integrals over the time."""
        Q = np.zeros((SIZE, SIZE))
        for place, rate, density in ((0, 2, self.acceleration), (1, 3, self.turning)):
            a, b, power = PARTS[place], PARTS[rate], density**2
            Q[a, a] = np.eye(3) * power * seconds**3 / 3
            Q[a, b] = Q[b, a] = np.eye(3) * power * seconds**2 / 2
            Q[b, b] = np.eye(3) * power * seconds
        return Q
