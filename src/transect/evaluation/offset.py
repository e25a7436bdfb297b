"""The time offset between an estimate and its reference, from what both show of the same motion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.errors import GeometryError, TransectError
from transect.geometry import rotations
from transect.geometry.correlation import TimeOffset, time_offset
from transect.types import Trajectory

LEAST_CORRELATION = 0.5
"""Below this two signals do not show the same motion."""


class OffsetError(TransectError):
    """Two trajectories whose offset cannot be told from their motion."""


@dataclass(frozen=True)
class FoundOffset:
    """An offset that was found.

    Attributes
    ----------
    seconds : float
        To add to the estimate's times.
    signal : str
        What was correlated.
    correlation : float
        Of the two signals at the offset.
    confidence : float
        In [0, 1]: how far that peak stands above the next.
    """

    seconds: float
    signal: str
    correlation: float
    confidence: float

    def __str__(self) -> str:
        return (
            f"offset {self.seconds:+.4f} s by {self.signal}: correlation {self.correlation:.2f}, "
            f"confidence {self.confidence:.2f}"
        )


def find_offset(reference: Trajectory, estimate: Trajectory, max_offset: float | None = None) -> FoundOffset:
    """Return what to add to the times of an estimate, by the signal that both show best.

    Parameters
    ----------
    max_offset : float, optional
        Seconds to search up to; everything at which they overlap, if None.

    Raises
    ------
    OffsetError
        If no signal tells: one of them stands still, moves periodically, or it is another drive.
    """
    limit = None if max_offset is None else round(max_offset * NS)
    found: list[FoundOffset] = []
    why = list[str]()
    theirs = signals_of(estimate)
    for name, (t_ns, values) in signals_of(reference).items():
        if name not in theirs:
            continue
        try:
            best = time_offset(t_ns, values, *theirs[name], max_offset_ns=limit)
        except GeometryError as error:
            why.append(f"{name}: {error.what}")
            continue
        if best.correlation >= LEAST_CORRELATION and best.confidence > 0:
            found.append(FoundOffset(best.offset_ns / NS, name, best.correlation, best.confidence))
        why.append(_say(name, best))
    if not found:
        raise OffsetError(
            "no time offset can be told from the motion", why="; ".join(why), hint="--offset SECONDS"
        )
    return max(found, key=lambda each: each.confidence)


def signals_of(trajectory: Trajectory) -> dict[str, tuple[Ints, Floats]]:
    """Return the sizes of motion that a trajectory shows: `rate of turn` (rad/s), `speed` (m/s).

    Each as sorted times in ns, half-way between poses, and values.
    """
    t_ns, order = np.unique(trajectory.t_ns, return_index=True)
    steps = np.diff(t_ns)
    times = t_ns[:-1] + steps // 2
    found: dict[str, tuple[Ints, Floats]] = {}
    if trajectory.orientations is not None:
        turned = trajectory.orientations[order]
        found["rate of turn"] = times, rotations.angle_between(turned[1:], turned[:-1]) * NS / steps
    moved = np.linalg.norm(np.diff(trajectory.positions[order], axis=0), axis=1)
    found["speed"] = times, moved * NS / steps
    return found


def _say(name: str, best: TimeOffset) -> str:
    return f"{name}: best correlation {best.correlation:.2f}, confidence {best.confidence:.2f}"
