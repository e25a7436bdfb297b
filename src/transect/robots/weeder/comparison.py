"""Wheel odometry beside RTK: lengths, and what is left between the two tracks once they are aligned.

The published odometry has no times. Both were recorded at once, so the odometry's samples are put 0.1 s apart
(4.4.1: 10 Hz) and moved as a whole until its speed correlates best with that of RTK (`associate`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.errors import GeometryError
from transect.geometry import align, correlation, robust
from transect.geometry.align import Alignment
from transect.geometry.correlation import TimeOffset
from transect.geometry.interpolation import Limits, interpolate_columns

from .antenna import antenna_from_base
from .geometry import FASTEST

FARTHEST_NS = 10 * NS
"""How far the beginnings of two logs that were started together may be apart."""
GAP_NS = NS
"""Between odometry samples further apart than this the robot is nowhere known."""
TURN_NS = 30 * NS
"""A 180 degree turn with its manoeuvring takes about this long."""
TURNED = np.pi / 2
"""Rad; what turns further than this within `TURN_NS` is a turn."""


@dataclass(frozen=True)
class Track:
    """Positions over time.

    Attributes
    ----------
    t_ns : (n,) int64 array
        Sorted.
    positions : (n, 3) array
        Metres.
    headings : (n,) array or None
        Rad from x to y, unwrapped; of base_link.
    """

    t_ns: Ints
    positions: Floats
    headings: Floats | None = None

    def length(self, dimensions: int = 3) -> float:
        """Length of the path in metres, in 2 or 3 dimensions; gaps are bridged by straight lines."""
        known = self.positions[np.isfinite(self.positions).all(axis=1), :dimensions]
        return float(np.linalg.norm(np.diff(known, axis=0), axis=1).sum())

    def carried(self, lever: Floats) -> Track:
        """Return the track of a point fixed at `lever` (3,) in base_link; headings must be known."""
        if self.headings is None:
            raise GeometryError("a track without headings cannot be carried to another point")
        return Track(self.t_ns, antenna_from_base(self.positions, self.headings, lever), self.headings)


@dataclass(frozen=True)
class Residual:
    """What is left between an odometry and RTK.

    Attributes
    ----------
    rmse : float
        Root mean square distance of the pairs, metres; NaN without any.
    pairs : int
    pieces : int
        How many pieces were aligned, each by itself.
    alignment : str
        By which transform.
    """

    rmse: float
    pairs: int
    pieces: int
    alignment: str


def associate(truth: Track, odometry: Floats, rate: float) -> tuple[Ints, TimeOffset]:
    """Give times to the positions (m, 3) of an odometry that has none but its rate.

    Parameters
    ----------
    truth : Track
        RTK, recorded at the same time.
    rate : float
        Samples per second of the odometry.

    Returns
    -------
    t_ns : (m,) int64 array
        On RTK's clock.
    found : TimeOffset
        How long after RTK's first fix the odometry begins, and how well the speeds correlate then.
    """
    start = int(truth.t_ns[0])
    even = np.round(np.arange(len(odometry)) * (NS / rate)).astype(np.int64)
    fix_ns, fix_speed = _speeds(truth.t_ns - start, truth.positions)
    wheel_ns, wheel_speed = _speeds(even, odometry)
    found = correlation.time_offset(fix_ns, fix_speed, wheel_ns, wheel_speed, max_offset_ns=FARTHEST_NS)
    return start + even + found.offset_ns, found


def _speeds(t_ns: Ints, positions: Floats) -> tuple[Ints, Floats]:
    """Horizontal speed half-way between samples, in m/s; NaN where the position jumps."""
    step = np.linalg.norm(np.diff(positions[:, :2], axis=0), axis=1)
    dt = np.diff(t_ns)
    speed = np.divide(step * NS, dt, out=np.full(len(dt), np.nan), where=dt > 0)
    return t_ns[:-1] + dt // 2, np.where(speed <= FASTEST, speed, np.nan)


def absolute_error(odometry: Track, truth: Track) -> Residual:
    """ATE of Sturm et al. (2012): distances of the positions after Horn's alignment of the whole track."""
    pairs = _pairs(odometry, truth)
    try:
        fit, alignment = align.horn(*pairs), "Horn, SE(3)"
    except GeometryError:
        # Tracks along one line leave the roll about it open; a turn about the vertical is still fixed.
        fit, alignment = align.yaw(*pairs), "yaw and translation, since the track is a line"
    return Residual(fit.rmse, fit.pairs, 1, alignment)


def turn_error(odometry: Track, truth: Track) -> Residual:
    """Distances of the horizontal positions on the turns, each aligned by itself.

    On a turn the antenna swings out while the wheels do not, and within seconds odometry hardly drifts: this
    is where the lever arm shows.
    """
    flat = Track(truth.t_ns, truth.positions * (1.0, 1.0, 0.0))
    source, target = _pairs(odometry, flat)
    fits: list[Alignment] = []
    for begin, end in turns(odometry):
        inside = (truth.t_ns >= begin) & (truth.t_ns < end) & np.isfinite(source).all(axis=1)
        if np.count_nonzero(inside) >= 2:
            fits.append(align.yaw(source[inside] * (1.0, 1.0, 0.0), target[inside]))
    pairs = sum(fit.pairs for fit in fits)
    squares = sum(fit.pairs * fit.rmse**2 for fit in fits)
    rmse = float(np.sqrt(squares / pairs)) if pairs else float("nan")
    return Residual(rmse, pairs, len(fits), "yaw and translation in the plane, turn by turn")


def turns(odometry: Track) -> Ints:
    """Begin and end (k, 2) in ns of the 30 s in which an odometry with headings turns most, turn by turn."""
    if odometry.headings is None or not len(odometry.t_ns):
        return np.zeros((0, 2), np.int64)
    since = odometry.t_ns - odometry.t_ns[0]
    inside = since + TURN_NS <= since[-1]
    later = np.interp(since[inside] + TURN_NS, since, odometry.headings)
    turned = np.abs(later - odometry.headings[inside])
    peaks = [
        begin + int(np.argmax(turned[begin:end]))
        for begin, end in zip(*robust.runs(turned > TURNED), strict=True)
    ]
    begins = odometry.t_ns[np.array(peaks, dtype=np.int64)]
    return np.column_stack([begins, begins + TURN_NS])


def _pairs(odometry: Track, truth: Track) -> tuple[Floats, Floats]:
    """Odometry at the times of the truth, and the truth; NaN where the odometry has a gap or ends."""
    limits = Limits(gap_ns=GAP_NS)
    return interpolate_columns(odometry.t_ns, odometry.positions, truth.t_ns, limits), truth.positions
