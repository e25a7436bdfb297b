"""Exact motion of a body: pose, velocity and acceleration at any time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints
from transect.errors import TimeError
from transect.geometry import rotations, se3

WORLD = "SimulatedWorld"
"""The frame of true motions and maps; formats have world frames of their own, with other origins."""
SAMPLES_PER_BATCH = 50_000
"""Samples of a long motion that are processed at a time, to limit the memory."""


@dataclass(frozen=True, eq=False)
class Motion:
    """Motion of a body in the world, sampled densely enough for interpolation to be exact."""

    t_ns: Ints  # (n,), increasing
    position: Floats  # (n, 3), of the body's origin in the world, m
    quaternion: Floats  # (n, 4), x, y, z, w; takes vectors of the body to the world
    # velocity, acceleration: (n, 3), in the world, m/s and m/s2; gravity is not part of the acceleration
    velocity: Floats
    acceleration: Floats
    angular_velocity: Floats  # (n, 3), in the body, rad/s

    def __len__(self) -> int:
        return len(self.t_ns)

    @property
    def transforms(self) -> Floats:
        """``T_world_body`` (n, 4, 4)."""
        return se3.from_quaternion(self.quaternion, self.position)

    def in_axes(self, quaternion: ArrayLike) -> Motion:
        """Return the motion in other body axes; `quaternion` (4,) takes vectors of the new to the old."""
        rotation = np.asarray(quaternion, dtype=np.float64)
        return replace(
            self,
            quaternion=rotations.multiply(self.quaternion, rotation),
            angular_velocity=rotations.rotate(rotations.conjugate(rotation), self.angular_velocity),
        )

    def at(self, t_ns: ArrayLike) -> Motion:
        """Interpolate the motion at times (m,): cubic positions, linear rates, slerp of attitudes.

        Raises
        ------
        TimeError
            If a time is outside the motion.
        """
        query = np.asarray(t_ns, dtype=np.int64)
        if len(query) and not (self.t_ns[0] <= query.min() and query.max() <= self.t_ns[-1]):
            raise TimeError(
                "the motion is not known at that time",
                why=f"it is known from {self.t_ns[0]} to {self.t_ns[-1]} ns",
            )
        right = np.clip(np.searchsorted(self.t_ns, query, side="right"), 1, len(self) - 1)
        left = right - 1
        step = (self.t_ns[right] - self.t_ns[left]).astype(np.float64) * 1e-9
        u = (query - self.t_ns[left]).astype(np.float64) * 1e-9 / step
        return Motion(
            query,
            _cubic(self.position, self.velocity, left, right, u, step),
            rotations.slerp(self.quaternion[left], self.quaternion[right], u),
            _linear(self.velocity, left, right, u),
            _linear(self.acceleration, left, right, u),
            _linear(self.angular_velocity, left, right, u),
        )

    @classmethod
    def through(cls, t_ns: Ints, position: Floats, quaternion: Floats) -> Motion:
        """Return the motion through evenly spaced poses (n >= 3), with rates by central differences."""
        step = float(np.diff(t_ns[:2])[0]) * 1e-9
        velocity = np.asarray(np.gradient(position, step, axis=0, edge_order=2), dtype=np.float64)
        acceleration = np.asarray(np.gradient(velocity, step, axis=0, edge_order=2), dtype=np.float64)
        row, last = np.arange(len(t_ns)), len(t_ns) - 1
        before, after = np.maximum(row - 1, 0), np.minimum(row + 1, last)
        relative = rotations.multiply(rotations.conjugate(quaternion[before]), quaternion[after])
        angular = rotations.rotation_vector_from_quaternion(relative) / ((after - before) * step)[:, None]
        return cls(t_ns, position, quaternion, velocity, acceleration, angular)


def derivatives(values: Floats, step: float, overlap: int = 64) -> tuple[Floats, Floats]:
    """First and second derivative (n, ...) by time, of the quintic spline through samples (n, ...).

    The spline is computed in batches, to limit the memory for hours of motion. The influence of a sample
    falls by 0.43 from one knot to the next: after `overlap` knots it is less than rounding.

    Parameters
    ----------
    values : (n, ...) array
        At least six.
    step : float
        Time between samples, s.
    overlap : int
        Samples of the neighbouring batches that are included.
    """
    first, second = np.empty(values.shape), np.empty(values.shape)
    for begin in range(0, len(values), SAMPLES_PER_BATCH):
        end = min(begin + SAMPLES_PER_BATCH, len(values))
        low, high = max(begin - overlap, 0), min(end + overlap, len(values))
        first[begin:end], second[begin:end] = _spline_rates(values[low:high], step, begin - low, end - low)
    return first, second


def _spline_rates(values: Floats, step: float, begin: int, end: int) -> tuple[Floats, Floats]:
    """Return the derivatives of the spline through all values, at the samples from `begin` to `end`."""
    from scipy.interpolate import make_interp_spline

    elapsed = np.arange(len(values)) * step
    spline = make_interp_spline(elapsed, values, k=5)
    return spline(elapsed[begin:end], 1), spline(elapsed[begin:end], 2)


def _linear(values: Floats, left: Ints, right: Ints, u: Floats) -> Floats:
    return values[left] + u[:, None] * (values[right] - values[left])


def _cubic(position: Floats, velocity: Floats, left: Ints, right: Ints, u: Floats, step: Floats) -> Floats:
    """Cubic Hermite interpolation of positions (n, 3) with velocities."""
    u, h = u[:, None], step[:, None]
    return (
        (1 + 2 * u) * (1 - u) ** 2 * position[left]
        + u * (1 - u) ** 2 * h * velocity[left]
        + u**2 * (3 - 2 * u) * position[right]
        + u**2 * (u - 1) * h * velocity[right]
    )
