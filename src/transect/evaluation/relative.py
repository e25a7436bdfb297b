"""Relative pose error: how much the estimate drifts over a step of frames, seconds or metres.

``E_ij = (Q_i^-1 Q_j)^-1 (P_i^-1 P_j)``, whatever the alignment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from transect.errors import GeometryError, UsageError
from transect.geometry import se3
from transect.geometry.rotations import rotation_vector_from_matrix
from transect.recording.clocks import NS

from .absolute import matrices
from .association import Pairs
from .statistics import Statistics

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
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
    reference, estimate = matrices(pairs.reference), matrices(pairs.estimate)
    error = relative_transforms(reference, estimate, first, last)
    travelled = travelled_distance(pairs.reference.positions)
    return RelativeError(
        first=first,
        last=last,
        t_ns=pairs.reference.t_ns[last],
        translation=np.linalg.norm(error[:, :3, 3], axis=1),
        rotation=np.linalg.norm(rotation_vector_from_matrix(error[:, :3, :3]), axis=1),
        distance=travelled[last] - travelled[first],
        step=step,
        per=per,
    )


def relative_transforms(reference: Floats, estimate: Floats, first: Ints, last: Ints) -> Floats:
    """Return E (n, 4, 4) for steps between poses (m, 4, 4)."""
    true = se3.invert(reference[first]) @ reference[last]
    said = se3.invert(estimate[first]) @ estimate[last]
    return se3.invert(true) @ said


def travelled_distance(positions: Floats) -> Floats:
    """Return (n,) metres travelled up to each of (n, 3) positions."""
    return np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(positions, axis=0), axis=1))])


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
