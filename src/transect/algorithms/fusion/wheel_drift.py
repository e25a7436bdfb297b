"""How far wheels lead astray, learnt by looking back: what they alone would have said, held against places.

A shadow of the state is left behind at a place and moves on by the wheels alone. When it is held against a
later place, what it misses has the covariance ``A + s B``: A is what was uncertain when it was left behind
and the place's own noise, B what the wheels' noise has added since, and s the factor on the variances of that
noise, which is what one wants to know. Errors over seconds decide it, as they do in an outage; those from one
place to the next say little of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS

from . import error_state as ekf

WHEEL_NOISE = (
    "slip", "scale_walk", "steer_walk", "side_walk", "bend_walk", "along", "across", "heading", "skid",
    "speed_floor", "turn_floor",
)  # fmt: skip
"""Fields of the noise on which the factor is: not heights, which are the ground's."""
FACTORS = np.geomspace(1 / 256, 16, 49)
"""On the variances, among which the right one is looked for."""
USUAL, SPREAD = 0.12, 1.2
"""The factor before anything was seen, and one sigma of its logarithm: what was told is an upper bound."""
HORIZONS = (5.0, 10.0)
"""Seconds after which a shadow is held against a place; after the last it is given up."""
EVERY = 2.5
"""Seconds between shadows."""
KEPT = 0.97
"""Of what was learnt is kept at each comparison: soil and wheels change."""


@dataclass
class Shadow:
    """A state that takes no places since a time, by noise as it is taken now, and without any."""

    since_ns: int
    unsure: ekf.State
    sure: ekf.State
    compared: int = 0


class Foresight:
    """Follows the factor on the variances of the wheels' noise.

    Parameters
    ----------
    noise : Noise
        As it was told.
    learns : bool
        Whether it follows what is seen; else the factor stays 1.

    Attributes
    ----------
    scale : float
        The factor: its mean by all that is known, for that makes the covariance of a prediction right.
    noise : Noise
        With that factor.
    """

    def __init__(self, noise: ekf.ProcessNoise, *, learns: bool) -> None:
        self._told, self._learns = noise, learns
        self._none = scale_noise(noise, 0.0)
        self.likelihood = np.zeros(len(FACTORS))
        self.scale, self.noise = 1.0, noise
        self.shadows: list[Shadow] = []
        if learns:
            self._follow()

    def states(self, x: ekf.State) -> Iterator[tuple[ekf.State, ekf.ProcessNoise]]:
        """Yield all states that move by the wheels, and the noise of each: `x` first."""
        yield x, self.noise
        for shadow in self.shadows:
            yield shadow.unsure, self.noise
            yield shadow.sure, self._none

    def leave(self, x: ekf.State) -> None:
        """Leave a shadow behind, if it is time."""
        newest = self.shadows[-1].since_ns if self.shadows else -(2**62)
        if self._learns and x.t_ns - newest >= EVERY * NS:
            self.shadows.append(Shadow(x.t_ns, x.copy(), x.copy()))

    def forget(self) -> None:
        """Give all shadows up: something else than the wheels' usual noise will move them off."""
        self.shadows = []

    def compare(self, t_ns: int, position: Floats, variances: Floats, lever: Floats, alike: bool) -> None:
        """Hold shadows against a place, if it is time; see `place_residual` for the parameters."""
        level = slice(0, 2)
        for shadow in self.shadows:
            if (t_ns - shadow.since_ns) / NS < HORIZONS[shadow.compared]:
                continue
            unsure, sure = (
                ekf.place_residual(x, position, variances, lever, alike) for x in (shadow.unsure, shadow.sure)
            )
            A = sure.spread(shadow.sure)[level, level]
            B = (unsure.spread(shadow.unsure)[level, level] - A) / self.scale
            self.learn(unsure.r[level], A, B)
            shadow.compared += 1
        self.shadows = [each for each in self.shadows if each.compared < len(HORIZONS)]

    def learn(self, r: Floats, A: Floats, B: Floats) -> None:
        """Take what a shadow missed, (2,) in m, whose covariance is ``A + s B``, each (2, 2)."""
        S = A + FACTORS[:, None, None] * B
        squared = np.einsum("i,nij,j->n", r, np.linalg.inv(S), r)
        self.likelihood = KEPT * self.likelihood - (squared + np.linalg.slogdet(S)[1]) / 2
        self._follow()

    def _follow(self) -> None:
        prior = -((np.log(FACTORS / USUAL) / SPREAD) ** 2) / 2
        weights = np.exp(prior + self.likelihood - np.max(prior + self.likelihood))
        self.scale = float(weights @ FACTORS / weights.sum())
        self.noise = scale_noise(self._told, np.sqrt(self.scale))


def scale_noise(noise: ekf.ProcessNoise, factor: float) -> ekf.ProcessNoise:
    """Return the noise with that of the wheels larger by a factor."""
    return replace(noise, **{name: factor * getattr(noise, name) for name in WHEEL_NOISE})
