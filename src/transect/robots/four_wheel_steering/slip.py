"""Slip of each wheel: what its encoder says against what the platform's twist demands (Figure 8)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.geometry import planar
from transect.geometry.array_checks import floats

from .geometry import FourWheelGeometry
from .wheels import WHEELS, WheelVelocities, directions, positions

LEAST_SPEED = 0.02
"""m/s; below it neither ratio nor angle means anything."""


class Slip(NamedTuple):
    """Slip of each wheel, both (..., 4); NaN where it hardly moves."""

    # (..., 4), ``(|rim| - |ground|) / max(|rim|, |ground|)`` where both go the same way, forwards or
    # backwards: 1 spins on the spot, 0 rolls, -1 is dragged; up to 2 and -2 where rim and ground go
    # opposite ways
    ratio: Floats
    # (..., 4), of the wheel's velocity against the line along which it rolls, rad in [-pi/2, pi/2], to the
    # left positive
    angle: Floats


def slip(rim_speed: ArrayLike, ground: WheelVelocities, least_speed: float = LEAST_SPEED) -> Slip:
    """Slip from the measured rim speeds (..., 4) in m/s and the ground's, see `wheel_velocities`."""
    rim = floats("rim speeds", rim_speed, (..., WHEELS))
    largest = np.maximum(np.abs(rim), np.abs(ground.rolling))
    lost = (rim - ground.rolling) * np.where(rim + ground.rolling < 0, -1.0, 1.0)
    ratio = np.divide(lost, largest, out=np.full(largest.shape, np.nan), where=largest >= least_speed)
    # Driving backwards the wheel's own line is the same: only the size of the rolling speed counts.
    angle = np.arctan2(ground.lateral, np.abs(ground.rolling))
    moves = np.hypot(ground.rolling, ground.lateral) >= least_speed
    return Slip(ratio, np.where(moves, angle, np.nan))


class SlipSummary(NamedTuple):
    """How one wheel, or all four, slipped on a drive."""

    wheel: int  # from 1, front left and then against the clock; 0 for all four
    # rolled_m, ground_m: how far the rim went, and the wheel over the ground the same way, m; of all four
    # the means
    rolled_m: float
    ground_m: float
    lost: float  # share of the rim's way that was lost: ``1 - ground_m / rolled_m``
    # low, median, high: 5th, 50th and 95th percentile of the slip ratio
    low: float
    median: float
    high: float
    angle: float  # 95th percentile of the slip angle without its sign, rad


def summarise(
    seconds: ArrayLike, rim_speed: ArrayLike, ground_speed: ArrayLike, slipped: Slip
) -> list[SlipSummary]:
    """Summarise the slip of each wheel and, last, of all four.

    Parameters
    ----------
    seconds : (n,)
        That each sample stands for; NaN in gaps.
    rim_speed, ground_speed : (n, 4)
        m/s.
    slipped : Slip
        (n, 4) each.
    """
    step = floats("seconds", seconds, ("n",))[:, None]
    rim = floats("rim speeds", rim_speed, ("n", WHEELS))
    ground = floats("ground speeds", ground_speed, ("n", WHEELS))
    known = np.isfinite(rim + ground + step) & np.isfinite(slipped.ratio)
    rolled = np.where(known, np.abs(rim) * step, 0.0).sum(axis=0)
    went = np.where(known, np.sign(rim) * ground * step, 0.0).sum(axis=0)
    each = [
        _summarise(k + 1, float(rolled[k]), float(went[k]), slipped.ratio[:, k], slipped.angle[:, k])
        for k in range(WHEELS)
    ]
    return [*each, _summarise(0, float(rolled.mean()), float(went.mean()), slipped.ratio, slipped.angle)]


def _summarise(wheel: int, rolled: float, went: float, ratio: Floats, angle: Floats) -> SlipSummary:
    lost = 1 - went / rolled if rolled else np.nan
    low, median, high = _percentiles(ratio, (5, 50, 95))
    return SlipSummary(wheel, rolled, went, lost, low, median, high, _percentiles(np.abs(angle), (95,))[0])


def _percentiles(values: Floats, percents: tuple[int, ...]) -> list[float]:
    known = values[np.isfinite(values)]
    return [float(np.percentile(known, percent)) if known.size else np.nan for percent in percents]


class WheelTracks(NamedTuple):
    """Paths of the wheels in the Platform frame of the start, m: both (n, 4, 2), as in Figure 8."""

    odometry: Floats  # (n, 4, 2), each wheel rolls along its own direction as far as its encoder says
    inverse: Floats  # (n, 4, 2), each wheel is where the twist of the platform carries it


def wheel_tracks(
    seconds: ArrayLike,
    twist: ArrayLike,
    rim_speed: ArrayLike,
    steering: ArrayLike,
    geometry: FourWheelGeometry,
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
