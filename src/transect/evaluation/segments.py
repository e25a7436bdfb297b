"""Error per length travelled, by segments (Geiger et al., CVPR 2012), and how it settles with distance.

KITTI's definition: from every tenth pose, to the first pose at least a length further along the reference's
path; translation error per metre, rotation error per metre. Rovers drive less far: lengths are chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.errors import GeometryError
from transect.geometry import robust

from .association import Pairs
from .relative import relative_errors, travelled_distance

KITTI_LENGTHS = (100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0)
ROVER_LENGTHS = (5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0)
"""Metres, for traverses that are too short for KITTI's."""
KITTI_EVERY = 10


@dataclass(frozen=True)
class SegmentErrors:
    """One row per segment.

    Attributes
    ----------
    length : (n,) float64
        Metres asked for.
    first, last : (n,) int64
        Pairs at which it begins and ends.
    translation : (n,) float64
        Metres per metre.
    rotation : (n,) float64
        Radians per metre.
    """

    length: Floats
    first: Ints
    last: Ints
    translation: Floats
    rotation: Floats

    @property
    def percent(self) -> float:
        """Mean translation error in percent, over all segments."""
        return float(100 * self.translation.mean())

    @property
    def degrees_per_metre(self) -> float:
        """Mean rotation error, over all segments."""
        return float(np.degrees(self.rotation.mean()))

    def by_length(self) -> dict[float, tuple[float, float, int]]:
        """Return, by length: translation error (percent), rotation error (deg/m), number of segments."""
        found: dict[float, tuple[float, float, int]] = {}
        for length in sorted(set(self.length.tolist())):
            here = self.length == length
            turned = float(np.degrees(self.rotation[here].mean()))
            found[length] = (float(100 * self.translation[here].mean()), turned, int(here.sum()))
        return found


def segment_errors(
    pairs: Pairs, lengths: Sequence[float] | None = None, every: int = KITTI_EVERY
) -> SegmentErrors:
    """Return the errors of all segments.

    Parameters
    ----------
    lengths : sequence of float, optional
        Metres; KITTI's where the path is long enough for the shortest of them, else the rovers'.
    every : int
        Segments begin at every so many poses.
    """
    travelled = travelled_distance(pairs.reference.positions)
    if lengths is None:
        lengths = KITTI_LENGTHS if travelled[-1] >= KITTI_LENGTHS[0] else ROVER_LENGTHS
    starts = np.arange(0, len(pairs), every)
    first, last, asked = _segments(travelled, starts, np.asarray(lengths, np.float64))
    if not len(first):
        raise GeometryError(
            f"no segment of {min(lengths):g} m fits",
            why=f"the path is {travelled[-1]:.3g} m long",
            hint="shorter lengths",
        )
    moved, turned = relative_errors(pairs, first, last)
    return SegmentErrors(asked, first, last, moved / asked, turned / asked)


def _segments(travelled: Floats, starts: Ints, lengths: Floats) -> tuple[Ints, Ints, Floats]:
    """Return where segments begin and end, and their length; the end is the first pose *beyond* it."""
    ends = np.searchsorted(travelled, travelled[starts][:, None] + lengths, side="right")
    which, length = np.nonzero(ends < len(travelled))
    return starts[which], ends[which, length], lengths[length]


@dataclass(frozen=True)
class DriftCurve:
    """Relative position error against distance travelled (CDFF, Figures 6 and 10).

    Attributes
    ----------
    distance : (m,) float64
        Metres.
    median, high : (m,) float64
        Error in percent of the distance: its median, and what nine in ten stay below.
    settled : float
        The median at the far end, over the last quarter of the distances.
    """

    distance: Floats
    median: Floats
    high: Floats
    settled: float


def drift_curve(pairs: Pairs, points: int = 40) -> DriftCurve:
    """Return how the error per distance settles, from the shortest steps to half of the path."""
    travelled = travelled_distance(pairs.reference.positions)
    if travelled[-1] == 0:
        raise GeometryError("the reference does not move")
    step = float(robust.median(np.diff(travelled)[np.diff(travelled) > 0]))
    distances = np.linspace(max(4 * step, travelled[-1] / 200), travelled[-1] / 2, points)
    median, high = np.full(points, np.nan), np.full(points, np.nan)
    for k, distance in enumerate(distances):
        first, last, _ = _segments(travelled, np.arange(len(pairs)), np.array([distance]))
        if len(first):
            part = 100 * relative_errors(pairs, first, last)[0] / distance
            median[k], high[k] = robust.median(part), robust.percentile(part, 90)
    return DriftCurve(distances, median, high, float(np.nanmean(median[-points // 4 :])))
