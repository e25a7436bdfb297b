"""A rigid body's state as vectors and matrices: 12 numbers, and their covariance.

Position, rotation vector, velocity, angular velocity, three numbers each and all in the state's frame; the
rotation vector is that of a small turn of the attitude: ``R_true = exp(e) R``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from transect.base.arrays import Floats
from transect.errors import TransectError
from transect.geometry import rotations
from transect.types import RigidBodyState

SIZE, POSE_SIZE = 12, 6
PARTS = tuple(slice(i, i + 3) for i in range(0, SIZE, 3))
"""Position, rotation, velocity, angular velocity."""


def covariance_of(state: RigidBodyState, size: int = SIZE) -> Floats:
    """Return the covariance (size, size) of a state; that of a pose alone is 36 numbers, 144 are all."""
    if state.covariance is None:
        raise TransectError("a state has no covariance", hint="give it 36 (pose) or 144 numbers, row by row")
    given = np.asarray(state.covariance, dtype=np.float64).reshape(-1)
    side = round(len(given) ** 0.5)
    if side**2 != len(given) or side not in (POSE_SIZE, SIZE) or side < size:
        raise TransectError(f"a covariance has {len(given)} numbers", why=f"expected {size**2}, row by row")
    return given.reshape(side, side)[:size, :size]


def add_error(state: RigidBodyState, e: Floats, covariance: Floats) -> RigidBodyState:
    """Return a state with an error (12,) added, and its new covariance (12, 12)."""
    turned = rotations.multiply(rotations.quaternion_from_rotation_vector(e[PARTS[1]]), state.orientation)
    return replace(
        state,
        position=state.position + e[PARTS[0]],
        orientation=rotations.normalise(turned),
        velocity=velocity_of(state) + e[PARTS[2]],
        angular_velocity=turning_of(state) + e[PARTS[3]],
        covariance=((covariance + covariance.T) / 2).reshape(-1),
    )


def velocity_of(state: RigidBodyState) -> Floats:
    """Velocity (3,), 0 where it is not known."""
    return np.zeros(3) if state.velocity is None else np.nan_to_num(state.velocity)


def turning_of(state: RigidBodyState) -> Floats:
    """Angular velocity (3,), 0 where it is not known."""
    return np.zeros(3) if state.angular_velocity is None else np.nan_to_num(state.angular_velocity)


def difference(measured: RigidBodyState, state: RigidBodyState) -> Floats:
    """Return what has to be added (12,) to a state for a measurement; NaN where nothing was measured."""
    turned = rotations.multiply(measured.orientation, rotations.conjugate(state.orientation))
    velocity = np.full(3, np.nan) if measured.velocity is None else measured.velocity - velocity_of(state)
    turning = np.full(3, np.nan)
    if measured.angular_velocity is not None:
        turning = measured.angular_velocity - turning_of(state)
    rotation = np.full(3, np.nan)
    if np.isfinite(measured.orientation).all():
        rotation = rotations.rotation_vector_from_quaternion(turned)
    return np.concatenate([measured.position - state.position, rotation, velocity, turning])
