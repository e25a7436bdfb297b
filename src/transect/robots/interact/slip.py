"""Slip of each wheel: what its encoder says against what the platform's twist demands (Figure 8)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.geometry import planar
from transect.geometry._arrays import floats

from .geometry import Geometry
from .velocities import WheelVelocities
from .wheels import WHEELS, directions, positions

LEAST_SPEED = 0.02
"""m/s; below it neither ratio nor angle means anything."""


class Slip(NamedTuple):
    """Slip of each wheel, both (..., 4); NaN where it hardly moves.

    Attributes
    ----------
    ratio : (..., 4)
        ``(rim - ground) / max(|rim|, |ground|)``: 1 spins on the spot, 0 rolls, -1 is dragged; 2 and -2 where
        rim and ground go opposite ways at equal speed.
    angle : (..., 4)
        Of the wheel's velocity against the line along which it rolls, rad in [-pi/2, pi/2], to the left
        positive.
    """

    ratio: Floats
    angle: Floats


def slip(rim_speed: ArrayLike, ground: WheelVelocities, least_speed: float = LEAST_SPEED) -> Slip:
    """Slip from the measured rim speeds (..., 4) in m/s and the ground's, see `wheel_velocities`."""
    rim = floats("rim speeds", rim_speed, (..., WHEELS))
    largest = np.maximum(np.abs(rim), np.abs(ground.rolling))
    ratio = np.divide(
        rim - ground.rolling, largest, out=np.full(largest.shape, np.nan), where=largest >= least_speed
    )
    # Driving backwards the wheel's own line is the same: only the size of the rolling speed counts.
    angle = np.arctan2(ground.lateral, np.abs(ground.rolling))
    moves = np.hypot(ground.rolling, ground.lateral) >= least_speed
    return Slip(ratio, np.where(moves, angle, np.nan))


class WheelTracks(NamedTuple):
    """Paths of the wheels in the Platform frame of the start, m: both (n, 4, 2), as in Figure 8.

    Attributes
    ----------
    odometry : (n, 4, 2)
        Each wheel rolls along its own direction as far as its encoder says.
    inverse : (n, 4, 2)
        Each wheel is where the twist of the platform carries it.
    """

    odometry: Floats
    inverse: Floats


def wheel_tracks(
    seconds: ArrayLike, twist: ArrayLike, rim_speed: ArrayLike, steering: ArrayLike, geometry: Geometry
) -> WheelTracks:
    """Both paths of each wheel; their difference is what slipped.

    Parameters
    ----------
    seconds : (n - 1,)
        From each sample to the next.
    twist : (n, 3)
        Of Platform: vx, vy, wz.
    rim_speed, steering : (n, 4)
        m/s and rad.
    """
    step = floats("seconds", seconds, ("n",))[:, None]
    body, rim = floats("twist", twist, ("n", 3)), floats("rim speeds", rim_speed, ("n", WHEELS))
    pose = planar.integrate(np.nan_to_num(step * (body[1:] + body[:-1]) / 2))
    places = positions(steering, geometry)[..., :2]
    turn = planar.rotations_from_headings(pose[:, 2])
    inverse = pose[:, None, :2] + np.einsum("nij,nwj->nwi", turn, places)
    along = np.einsum("nij,nwj->nwi", turn, directions(steering)[0]) * rim[..., None]
    rolled = np.cumsum(step[..., None] * (along[1:] + along[:-1]) / 2, axis=0)
    odometry = places[0] + np.concatenate([np.zeros((1, WHEELS, 2)), rolled])
    return WheelTracks(odometry, inverse)
