"""How good a fusion was, in words: what fitted, what was refused, how long it was blind, how sure it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.errors import TransectError
from transect.types import Trajectory

from .context import FusionContext
from .error_state import HEADING
from .innovation_gate import USUAL
from .measurements import Inertial, Place

MOST = 0.5
"""A fusion that refused a larger share of one sensor cannot be trusted."""
MANY = 0.05
"""A larger share of refused measurements is worth a warning; by chance it is 0.001."""
LEAST = 5
"""Measurements; of fewer no share is told."""
FEW = 0.9
"""Share below the 95 % limit under which a large mean NIS is noise, not a few outliers."""
NIS_RANGE = 0.25, 2.0
"""Mean NIS per number beyond which the noise is not what was assumed; 1 is right."""

WRONG_GRAVITY = 2.0
"""m/s2 from gravity, as no accelerometer is in the mean."""
BIASES = 1.0, 0.2
"""m/s2 and rad/s: larger biases than those of the cheapest IMU that works."""


@dataclass(frozen=True)
class Tally:
    """What came of the measurements of one sensor.

    Attributes
    ----------
    count, below, refused : int
        Measurements, those whose NIS is below the 95 % limit, and those outside of the gate.
    nis : float
        Mean normalised innovation squared, divided by its degrees of freedom.
    """

    count: int
    below: int
    refused: int
    nis: float

    @property
    def is_bad(self) -> bool:
        """Whether most were refused."""
        return self.count >= LEAST and self.refused > MOST * self.count

    def __str__(self) -> str:
        share = f"{self.refused} of {self.count} refused ({100 * self.refused / self.count:.1f} %)"
        nis = f"NIS {self.nis:.2g} per number, {100 * self.below / self.count:.0f} % below its 95 % limit"
        return f"{share}; {nis}{self._meaning()}"

    def _meaning(self) -> str:
        low, high = NIS_RANGE
        if self.is_bad:
            return ". It contradicts the other sensors: do not trust this result"
        if self.count >= LEAST and self.refused > MANY * self.count:
            return ". Many were refused: look at this sensor"
        if self.count >= LEAST and self.nis > high and self.below < FEW * self.count:
            return f". It errs more than was assumed (1 is right, {100 * USUAL:.0f} % should be below)"
        if self.count >= LEAST and self.nis < low:
            return ". It errs less than was assumed: the covariances are too large rather than too small"
        return ""


def conclude(
    ctx: FusionContext,
    tallies: Mapping[str, Tally],
    used_ns: Sequence[int],
    trajectory: Trajectory,
    biases: Floats | None = None,
    notes: Iterable[str] = (),
    noise: Iterable[str] = (),
) -> None:
    """Say how good a fusion was.

    Parameters
    ----------
    tallies : mapping of str to Tally
        By sensor; those without measurements are left out.
    used_ns : sequence of int
        Times of the positions that were used.
    trajectory : Trajectory
        With its covariances.
    biases : (6,) array, optional
        Of accelerometers (m/s2) and gyroscopes (rad/s), as they were found.
    notes : iterable of str
        What was assumed.
    noise : iterable of str
        Which noise of the sensors was used.
    """
    for sentence in noise:
        ctx.report_noise(sentence)
    for note in notes:
        ctx.conclude(note)
    for name, tally in tallies.items():
        if tally.count:
            ctx.conclude(f"{name}: {tally}", bad=tally.is_bad)
    if biases is not None:
        _conclude_biases(ctx, biases)
    ctx.conclude(_blindness(used_ns, trajectory))
    if trajectory.covariances is not None and len(trajectory):
        heights = np.sqrt(trajectory.covariances[:, 2, 2])
        ctx.conclude(
            f"height: one sigma is {np.median(heights):.2g} m, at the worst time {np.max(heights):.3g} m"
        )
        degrees = np.degrees(np.sqrt(trajectory.covariances[:, HEADING, HEADING]))
        ctx.conclude(
            f"heading: one sigma is {np.median(degrees):.2g} deg, at the worst time {np.max(degrees):.3g} deg"
        )


def contradiction(error: TransectError, inertial: Sequence[Inertial], gravity: float) -> str:
    """Return in words that no motion fits what was measured, and what the reason may be."""
    text = f"{error.what}: {error.why}. The sensors contradict each other"
    return f"{text}{_weigh(inertial, gravity)}. There are no poses from then on: do not trust this result"


def describe_unaligned(inertial: Sequence[Inertial], places: Sequence[Place], gravity: float) -> str:
    """Return in words that a body with an IMU and positions alone never had a heading."""
    text = (
        f"there are no poses: neither accelerations nor the way told the heading{_weigh(inertial, gravity)}. "
        "It must drive, and speed up or turn, while its position is measured"
    )
    if not places:
        return text
    sigma = float(np.median([each.std[:2].max() for each in places]))
    return f"{text}; positions are taken to be right within {sigma:.2g} m, and worse ones tell less"


def _weigh(inertial: Sequence[Inertial], gravity: float) -> str:
    """Return, for the middle of a sentence, how much an IMU feels, and whether that can be."""
    if not inertial:
        return ""
    felt = float(np.linalg.norm(np.mean([each.force for each in inertial], axis=0)))
    text = f"; the IMU's mean acceleration is {felt:.3g} m/s2, where gravity is {gravity:.3g}"
    return text + (": its unit is wrong" if abs(felt - gravity) > WRONG_GRAVITY else "")


def _conclude_biases(ctx: FusionContext, biases: Floats) -> None:
    """Say what the biases of an IMU are, if no IMU has such."""
    for name, unit, bias, most in zip(
        ("accelerometers", "gyroscopes"), ("m/s2", "rad/s"), biases.reshape(2, 3), BIASES, strict=True
    ):
        size = float(np.linalg.norm(bias))
        if size > most:
            ctx.conclude(
                f"imu: a bias of {size:.3g} {unit} makes its {name} fit, and none has more than {most:g}. "
                "Its unit, its mount or `gravity` is wrong: do not trust this result",
                bad=True,
            )


def _blindness(used_ns: Sequence[int], trajectory: Trajectory) -> str:
    """Return the longest time of the trajectory without a position, and where its position is least sure."""
    if not len(trajectory):
        return "no poses"
    first, last = int(trajectory.t_ns[0]), int(trajectory.t_ns[-1])
    inside = [t for t in used_ns if first < t < last]
    edges = np.array([first, *sorted(inside), last], np.int64)
    longest = int(np.argmax(np.diff(edges)))
    since = (edges[longest] - first) / NS
    blind = (edges[longest + 1] - edges[longest]) / NS
    if not inside:
        gap = f"no position was used in {blind:.1f} s: place and heading drift from the start on"
    else:
        gap = f"longest time without a position: {blind:.1f} s, {since:.1f} s after the first pose"
    if trajectory.covariances is None:
        return gap
    worst = float(np.sqrt(np.linalg.eigvalsh(trajectory.covariances[:, :2, :2])[:, -1].max()))
    return f"{gap}; one sigma of the position is {worst:.2g} m at the worst time"
