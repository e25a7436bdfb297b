"""State of a rigid body as a 12-vector and its covariance.

Position, rotation vector, velocity and angular velocity, each (3,) in the state's frame. The rotation vector
is an error of the attitude: ``R_true = exp(e) R``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from transect.base.arrays import Floats
from transect.errors import TransectError
from transect.geometry import rotations
from transect.types import RigidBodyState

STATE_SIZE, POSE_SIZE = 12, 6
POSITION, ROTATION, VELOCITY, ANGULAR_VELOCITY = (slice(i, i + 3) for i in range(0, STATE_SIZE, 3))


def covariance_of(state: RigidBodyState, size: int = STATE_SIZE) -> Floats:
    """Return the covariance (size, size) of a state, which has 36 (pose) or 144 numbers."""
    if state.covariance is None:
        raise TransectError("a state has no covariance", hint="give it 36 (pose) or 144 numbers, row by row")
    given = np.asarray(state.covariance, dtype=np.float64).reshape(-1)
    side = round(len(given) ** 0.5)
    if side**2 != len(given) or side not in (POSE_SIZE, STATE_SIZE) or side < size:
        raise TransectError(f"a covariance has {len(given)} numbers", why=f"expected {size**2}, row by row")
    return given.reshape(side, side)[:size, :size]


def add_error(state: RigidBodyState, e: Floats, covariance: Floats) -> RigidBodyState:
    """Return a state with an error (12,) added, and its new covariance (12, 12)."""
    correction = rotations.quaternion_from_rotation_vector(e[ROTATION])
    return replace(
        state,
        position=state.position + e[POSITION],
        orientation=rotations.normalise(rotations.multiply(correction, state.orientation)),
        velocity=velocity_of(state) + e[VELOCITY],
        angular_velocity=angular_velocity_of(state) + e[ANGULAR_VELOCITY],
        covariance=((covariance + covariance.T) / 2).reshape(-1),
    )


def velocity_of(state: RigidBodyState) -> Floats:
    """Return the velocity (3,), 0 if it is unknown."""
    return np.zeros(3) if state.velocity is None else np.nan_to_num(state.velocity)


def angular_velocity_of(state: RigidBodyState) -> Floats:
    """Return the angular velocity (3,), 0 if it is unknown."""
    return np.zeros(3) if state.angular_velocity is None else np.nan_to_num(state.angular_velocity)


def difference(measured: RigidBodyState, state: RigidBodyState) -> Floats:
    """Return the innovation (12,) of a measurement; NaN where nothing was measured."""
    velocity = np.full(3, np.nan) if measured.velocity is None else measured.velocity - velocity_of(state)
    angular_velocity = np.full(3, np.nan)
    if measured.angular_velocity is not None:
        angular_velocity = measured.angular_velocity - angular_velocity_of(state)
    rotation = np.full(3, np.nan)
    if np.isfinite(measured.orientation).all():
        turn = rotations.multiply(measured.orientation, rotations.conjugate(state.orientation))
        rotation = rotations.rotation_vector_from_quaternion(turn)
    return np.concatenate([measured.position - state.position, rotation, velocity, angular_velocity])
