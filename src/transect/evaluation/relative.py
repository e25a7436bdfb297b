"""Relative pose error: how much the estimate drifts over a step of frames, seconds or metres.

``E_ij = (Q_i^-1 Q_j)^-1 (P_i^-1 P_j)``, whatever the alignment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.errors import GeometryError, UsageError
from transect.geometry import kernels
from transect.types import Trajectory

from .association import Pairs
from .statistics import Statistics

Per = Literal["frames", "seconds", "metres"]


@dataclass(frozen=True)
class RelativeError:
    """The error of each step.

    Attributes
    ----------
    first, last : (n,) int64
        Pairs at which each step begins and ends.
    t_ns : (n,) int64
        Time at its end.
    translation, rotation : (n,) float64
        Metres and radians.
    distance : (n,) float64
        Metres of the reference's path in the step.
    """

    first: Ints
    last: Ints
    t_ns: Ints
    translation: Floats
    rotation: Floats
    distance: Floats
    step: float
    per: Per

    @property
    def statistics(self) -> Statistics:
        """Of the translation, in metres."""
        return Statistics.of(self.translation)

    @property
    def rotation_statistics(self) -> Statistics:
        """Of the rotation, in radians."""
        return Statistics.of(self.rotation)


def relative_error(
    pairs: Pairs, step: float = 1.0, per: Per = "frames", *, overlapping: bool = False
) -> RelativeError:
    """Return how much an estimate drifts over steps.

    Parameters
    ----------
    step : float
        Length of a step.
    per : {"frames", "seconds", "metres"}
        Its unit; metres are travelled by the reference.
    overlapping : bool
        Begin a step at every pose, not where the last one ended.

    Raises
    ------
    GeometryError
        If the trajectory is shorter than a step.
    """
    first, last = steps_of(pairs, step, per, overlapping)
    if not len(first):
        raise GeometryError(f"the trajectory is shorter than {step:g} {per}", hint="a shorter step")
    translation, rotation = relative_errors(pairs, first, last)
    travelled = travelled_distance(pairs.reference.positions)
    return RelativeError(
        first=first,
        last=last,
        t_ns=pairs.reference.t_ns[last],
        translation=translation,
        rotation=rotation,
        distance=travelled[last] - travelled[first],
        step=step,
        per=per,
    )


def relative_errors(pairs: Pairs, first: Ints, last: Ints) -> tuple[Floats, Floats]:
    """Return the translation (n,) in metres and the angle (n,) in radians of E for steps between pairs.

    The translation of E is the difference of the two motions, turned; its length is that of the difference.
    """
    translation, rotation = np.empty(len(first)), np.empty(len(first))
    true, said = _columns(pairs.reference), _columns(pairs.estimate)
    for block in kernels.blocks(len(first)):
        true_move, true_turn = _motions(*true, first[block], last[block])
        said_move, said_turn = _motions(*said, first[block], last[block])
        translation[block] = kernels.norm([b - a for a, b in zip(true_move, said_move, strict=True)])
        rotation[block] = kernels.angle_between(true_turn, said_turn)
    return translation, rotation


def _columns(trajectory: Trajectory) -> tuple[Floats, Floats]:
    """Return positions (3, n) and unit quaternions (4, n) of a trajectory."""
    if trajectory.orientations is None:
        raise UsageError("this needs attitudes, the trajectory has positions only")
    turns = np.empty((4, len(trajectory.orientations)))
    for block in kernels.blocks(turns.shape[1]):
        turns[:, block] = kernels.normalise(kernels.columns(trajectory.orientations[block]))
    return kernels.columns(trajectory.positions), turns


def _motions(places: Floats, turns: Floats, first: Ints, last: Ints) -> tuple[kernels.Parts, kernels.Parts]:
    """Return components of the translations and rotations between poses, in the frame of the first."""
    back = kernels.conjugate(turns.take(first, axis=1))
    way = places.take(last, axis=1) - places.take(first, axis=1)
    return kernels.rotate(back, way), kernels.multiply(back, turns.take(last, axis=1))


def travelled_distance(positions: Floats) -> Floats:
    """Return (n,) metres travelled up to each of (n, 3) positions."""
    return np.concatenate([[0.0], np.cumsum(kernels.norm(np.diff(positions.T)))])


def steps_of(pairs: Pairs, step: float, per: Per, overlapping: bool) -> tuple[Ints, Ints]:
    """Return the pairs at which steps begin and end."""
    if per not in get_args(Per):
        raise UsageError(f"steps are not counted in {per!r}", hint=", ".join(get_args(Per)))
    if not step > 0:
        raise UsageError(f"a step of {step:g} {per} leads nowhere")
    n = len(pairs)
    if per == "frames":
        length = round(step)
        first = np.arange(0, max(n - length, 0), 1 if overlapping else length)
        return first, first + length
    axis = travelled_distance(pairs.reference.positions)
    if per == "seconds":
        axis = (pairs.reference.t_ns - pairs.reference.t_ns[0]) / NS
    if overlapping:
        last = np.searchsorted(axis, axis + step)
        first = np.flatnonzero(last < n)
        return first, last[first]
    ends = _ends(axis, step)
    return ends[:-1], ends[1:]


def _ends(axis: Floats, step: float) -> Ints:
    """Return where steps end that follow each other; each is at least as long as asked for."""
    found, at = [0], 0
    while (at := int(np.searchsorted(axis, axis[at] + step))) < len(axis):
        found.append(at)
    return np.array(found, np.int64)
