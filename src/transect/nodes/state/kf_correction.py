"""Kalman update of a rigid body (CDFF's KFCorrection)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from transect.algorithms.fusion.innovation_gate import chi2_quantile
from transect.algorithms.fusion.rigid_body import (
    POSE_SIZE,
    STATE_SIZE,
    add_error,
    covariance_of,
    difference,
)
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
        Whether the measurement was inside the gate; if not, the state is the predicted one.
    """

    correctedState: RigidBodyState | None = None
    stateCovariance: RigidBodyState | None = None
    nis: float | None = None
    accepted: bool | None = None


class Innovation(NamedTuple):
    """Innovation of a measurement."""

    r: Floats  # (k,)
    H: Floats  # (k, 12)
    R: Floats  # (k, k), covariance of the measurement


class KFCorrection(Node, interface=True):
    """Update of a predicted state by a measurement of pose, velocities or parts of them."""

    def process(
        self,
        predictedState: RigidBodyState,
        measurement: RigidBodyState,
        predictedStateCovariance: RigidBodyState,
    ) -> Corrected | None:
        r = difference(measurement, predictedState)
        is_pose = measurement.covariance is not None and len(measurement.covariance) == POSE_SIZE**2
        size = POSE_SIZE if is_pose else STATE_SIZE
        measured = np.flatnonzero(np.isfinite(r[:size]))
        if not len(measured):
            return self.ctx.skip("nothing was measured")
        R = covariance_of(measurement, size)[np.ix_(measured, measured)]
        P = covariance_of(predictedStateCovariance)
        innovation = Innovation(r[measured], np.eye(STATE_SIZE)[measured], R)
        state, nis = self.correct(predictedState, P, innovation)
        if state is None:
            return Corrected(predictedState, predictedStateCovariance, nis, accepted=False)
        return Corrected(state, state, nis, accepted=True)

    def correct(
        self, state: RigidBodyState, P: Floats, innovation: Innovation
    ) -> tuple[RigidBodyState | None, float]:
        """Return the updated state, None if the measurement is rejected, and the NIS.

        `P` (12, 12) is the covariance of the predicted state.
        """
        raise NotImplementedError


class KalmanCorrector(KFCorrection):
    """Linear update, the covariance in Joseph's form; NaN was not measured."""

    gate: float = param(0.999, gt=0, le=1, doc="fraction of correct measurements accepted; 1 accepts all")

    def correct(
        self, state: RigidBodyState, P: Floats, innovation: Innovation
    ) -> tuple[RigidBodyState | None, float]:
        r, H, R = innovation
        S = H @ P @ H.T + R
        nis = float(r @ np.linalg.solve(S, r))
        if self.gate < 1 and nis > chi2_quantile(self.gate, len(r)):
            return None, nis
        K = np.linalg.solve(S, H @ P).T
        J = np.eye(STATE_SIZE) - K @ H
        return add_error(state, K @ r, J @ P @ J.T + K @ R @ K.T), nis
