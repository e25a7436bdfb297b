"""Kalman's correction of a rigid body (CDFF's KFCorrection)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from transect.algorithms.fusion.innovation_gate import limit
from transect.algorithms.fusion.rigid_body import POSE_SIZE, SIZE, add_error, covariance_of, difference
from transect.base.arrays import Floats
from transect.engine import Node, outputs, param
from transect.types import RigidBodyState


@outputs
class Corrected:
    """The state after a measurement.

    Attributes
    ----------
    correctedState, stateCovariance : RigidBodyState
        With its covariance, 144 numbers; both ports carry the same (see `Predicted`).
    nis : float
        Normalised innovation squared.
    accepted : bool
        Whether the measurement was inside of the gate; if not, the state is the predicted one.
    """

    correctedState: RigidBodyState | None = None
    stateCovariance: RigidBodyState | None = None
    nis: float | None = None
    accepted: bool | None = None


class Innovation(NamedTuple):
    """How a measurement differs (k,) from the state, of which parts (k, 12), and its covariance (k, k)."""

    r: Floats
    H: Floats
    R: Floats


class KFCorrection(Node, interface=True):
    """What a measurement of pose, velocities or parts of them does to a predicted state."""

    def process(
        self,
        predictedState: RigidBodyState,
        measurement: RigidBodyState,
        predictedStateCovariance: RigidBodyState,
    ) -> Corrected | None:
        r = difference(measurement, predictedState)
        size = POSE_SIZE if measurement.covariance is not None and len(measurement.covariance) == 36 else SIZE
        seen = np.flatnonzero(np.isfinite(r[:size]))
        if not len(seen):
            return self.ctx.skip("nothing was measured")
        R = covariance_of(measurement, size)[np.ix_(seen, seen)]
        P = covariance_of(predictedStateCovariance)
        state, nis = self.correct(predictedState, P, Innovation(r[seen], np.eye(SIZE)[seen], R))
        if state is None:
            return Corrected(predictedState, predictedStateCovariance, nis, accepted=False)
        return Corrected(state, state, nis, accepted=True)

    def correct(
        self, state: RigidBodyState, P: Floats, innovation: Innovation
    ) -> tuple[RigidBodyState | None, float]:
        """Correct a state of covariance P (12, 12).

        Returns
        -------
        The new state, None if the measurement is not believed, and the normalised innovation squared.
        """
        raise NotImplementedError


class KalmanCorrector(KFCorrection):
    """The linear correction, the covariance in Joseph's form; what is NaN was not measured."""

    gate: float = param(0.999, gt=0, le=1, doc="share of correct measurements accepted; 1 accepts all")

    def correct(
        self, state: RigidBodyState, P: Floats, innovation: Innovation
    ) -> tuple[RigidBodyState | None, float]:
        r, H, R = innovation
        S = H @ P @ H.T + R
        nis = float(r @ np.linalg.solve(S, r))
        if self.gate < 1 and nis > limit(self.gate, len(r)):
            return None, nis
        K = np.linalg.solve(S, H @ P).T
        J = np.eye(SIZE) - K @ H
        return add_error(state, K @ r, J @ P @ J.T + K @ R @ K.T), nis
