"""How far, how high, how long and how fast a robot drove: Table 6 of document 000, for any recording.

The paper's mean velocity is not its length divided by its duration, and it says nothing of how it measured
(see errata). Here are both lengths and both means:

- the length is the plain sum of all steps from sample to sample, in 3-D (document 001's Table 3 has just
  that, to the last digit); at 100 Hz the noise of a standing receiver is in it;
- the length while moving is measured with a stride of one second: a stride slower than the stop speed is a
  stop and counts neither as way nor as time.

Nothing is measured across the seam of joined recordings.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.errors import GeometryError, StreamError
from transect.geometry import geodesy
from transect.geometry._arrays import floats, measured_rows, times_ns
from transect.recording import Recording, Stream
from transect.types import NavFix, Odometry, Pose, RigidBodyState

STOP_SPEED = 0.05
"""m/s."""
STRIDE = 1.0
"""Seconds over which speed is judged."""
COVERED = 0.5
"""Fraction of RTK fixes from which a traverse counts as covered; the paper prints only Yes and No."""
RTK = ("rtk float", "rtk fixed")


# From arrays


@dataclass(frozen=True)
class Path:
    """Measures of a track.

    Attributes
    ----------
    length_m, duration_s : float
        Of all that was recorded.
    moving_m, moving_s : float
        Of the strides that were no stops.
    """

    length_m: float
    duration_s: float
    moving_m: float
    moving_s: float


def measure(
    t_ns: ArrayLike,
    positions: ArrayLike,
    seams: Sequence[int] = (),
    stop_speed: float = STOP_SPEED,
    stride: float = STRIDE,
) -> Path:
    """Measure a track.

    Parameters
    ----------
    t_ns : (n,)
        Sample times, ns; where they step back see `_in_order`.
    positions : (n, 3)
        m, in a frame that does not move. Rows with a NaN are left out; gaps are bridged by a straight line.
    seams : sequence of int
        Indices at which another part begins.
    stop_speed : float
        m/s; a slower stride is a stop.
    stride : float
        Seconds over which speed is judged; samples further apart are judged one by one.
    """
    times, places = times_ns("times", t_ns), floats("positions", positions, ("n", 3))
    if len(times) != len(places):
        raise GeometryError(f"expected equally many times and positions, got {len(times)}, {len(places)}")
    edges = [0, *(s for s in sorted(seams) if 0 < s < len(times)), len(times)]
    parts = [_measure_part(times[a:b], places[a:b], stop_speed, stride) for a, b in itertools.pairwise(edges)]
    return Path(*(float(sum(values)) for values in zip(*parts, strict=True)))


def _measure_part(times: Ints, places: Floats, stop_speed: float, stride: float) -> tuple[float, ...]:
    known = measured_rows(places)
    t, p = _in_order(times[known], places[known])
    if len(t) < 2:
        return 0.0, 0.0, 0.0, 0.0
    nodes = _nodes(t, round(stride * NS))
    seconds, metres = np.diff(t[nodes]) / NS, _steps(p[nodes])
    moves = (metres >= stop_speed * seconds) & (seconds > 0)
    return float(_steps(p).sum()), float((t[-1] - t[0]) / NS), metres[moves].sum(), seconds[moves].sum()


def _in_order(times: Ints, places: Floats) -> tuple[Ints, Floats]:
    """Return a track by time, or as it was recorded where that makes the shorter way.

    Samples that come late belong where their times say; after a clock that was set back, times say nothing of
    the order, and the clock is taken to stand until it has caught up.
    """
    order = np.argsort(times, kind="stable")
    if _steps(places[order]).sum() <= _steps(places).sum():
        return times[order], places[order]
    return np.maximum.accumulate(times), places


def _nodes(t: Ints, stride_ns: int) -> Ints:
    """Indices of the first sample in each stride, and of the last of all in place of one just before it."""
    number = (t - t[0]) // stride_ns
    nodes = np.flatnonzero(np.diff(number, prepend=-1))
    short = len(nodes) > 1 and t[-1] - t[nodes[-1]] < stride_ns / 2
    return np.append(nodes[: len(nodes) - short], len(t) - 1)


def _steps(places: Floats) -> Floats:
    return np.linalg.norm(np.diff(places, axis=0), axis=1)


# From recordings


@dataclass(frozen=True)
class Traverse:
    """A row of Table 6; NaN or None where it cannot be told.

    Attributes
    ----------
    name, stream : str
        The recording, and the stream whose positions were measured.
    dimensions : int
        3, or 2 where the height was not measured.
    samples, parts : int
        Positions used, and how many recordings were joined.
    length_m, duration_s, moving_m, moving_s : float
        See `Path`; times are NaN on the index clock.
    height_m : float
        Largest difference in height: of geodetic positions over all parts, else within a part.
    rtk : float or None
        Fraction of the fixes that were RTK, fixed or float; None where the receiver did not say.
    stop_speed : float
        m/s.
    """

    name: str
    stream: str
    dimensions: int
    samples: int
    parts: int
    length_m: float
    duration_s: float
    moving_m: float
    moving_s: float
    height_m: float
    rtk: float | None
    stop_speed: float

    @property
    def mean_speed(self) -> float:
        """Length over duration, m/s."""
        return self.length_m / self.duration_s if self.duration_s else np.nan

    @property
    def moving_speed(self) -> float:
        """The same without the stops, m/s."""
        return self.moving_m / self.moving_s if self.moving_s else np.nan

    @property
    def covered(self) -> bool | None:
        """Whether at least half of the fixes were RTK."""
        return None if self.rtk is None else self.rtk >= COVERED


def traverse_of(
    recording: Recording, stream: str | None = None, stop_speed: float = STOP_SPEED, stride: float = STRIDE
) -> Traverse:
    """Measure the traverse of a recording, or of several that were joined.

    Parameters
    ----------
    recording : Recording
    stream : str, optional
        Whose positions; default see `position_stream`.
    stop_speed, stride : float
        See `measure`.
    """
    source = recording[stream] if stream else position_stream(recording)
    places, heights = track_of(source)
    flat = not np.isfinite(heights).any()
    if flat:
        places = np.where(np.arange(3) < 2, places, 0.0)
    used = int(measured_rows(places).sum())
    if not used:
        raise StreamError(f"{source.name} of {recording.name} has no position that was measured")
    path = measure(source.t_ns, places, source.seams, stop_speed, stride)
    timeless = source.clock == "index"
    return Traverse(
        name=recording.name,
        stream=source.name,
        dimensions=2 if flat else 3,
        samples=used,
        parts=1 + len(source.seams),
        length_m=path.length_m,
        duration_s=np.nan if timeless else path.duration_s,
        moving_m=np.nan if timeless else path.moving_m,
        moving_s=np.nan if timeless else path.moving_s,
        height_m=_height(heights, () if source.type is NavFix else source.seams),
        rtk=rtk_fraction(source if source.type is NavFix else _receiver(recording)),
        stop_speed=stop_speed,
    )


def position_stream(recording: Recording) -> Stream:
    """Return the stream that tells best where the robot was.

    The truth, else a satellite receiver, else a pose in a frame that is not on the robot (a camera's pose in
    the robot tells nothing), else odometry that was integrated. Of equals the one with most samples.
    """
    on_robot = set(recording.robot.frames.frames) if recording.robot else set[str]()
    kinds = (
        [s for s in recording if s.role == "truth" and s.type in (Pose, RigidBodyState, NavFix)],
        [s for s in recording if s.type is NavFix],
        [s for s in recording if s.type in (Pose, RigidBodyState) and s.frame not in on_robot],
        [s for s in recording if s.type is Odometry and "x" in s.columns],
    )
    found = next((streams for streams in kinds if any(map(len, streams))), None)
    if found is None:
        raise StreamError(
            f"{recording.name} has no positions",
            why="there is no NavFix, no pose of the robot, and no odometry with positions among its streams",
            hint="a stream can be named: --stream NAME",
        )
    return max(found, key=len)


def track_of(stream: Stream) -> tuple[Floats, Floats]:
    """Positions (n, 3) in m in a frame that does not move, and heights (n,) in m; NaN where not measured.

    Geodetic positions are put into a local frame at the first of them; their heights stay as they are.
    """
    if stream.type is not NavFix:
        if not {"x", "y"} <= set(stream.columns):
            raise StreamError(f"{stream.name} has no positions", why=f"it has {', '.join(stream.columns)}")
        z = stream.array("z")[:, 0] if "z" in stream.columns else np.full(len(stream), np.nan)
        return np.column_stack([stream.array("x", "y"), z]), z
    geodetic = stream.array("lat", "lon", "alt")
    # Receivers without a fix say 0, 0; a latitude beyond the pole was written in degrees.
    nowhere = (geodetic[:, :2] == 0).all(axis=1) | (np.abs(geodetic[:, 0]) > np.pi / 2)
    geodetic[nowhere | ~np.isfinite(geodetic[:, :2]).all(axis=1)] = np.nan
    heights = geodetic[:, 2].copy()
    if np.isnan(heights).all():
        geodetic[:, 2] = 0.0
    known = geodetic[measured_rows(geodetic)]
    places = geodesy.local_from_geodetic(geodetic, known[0], "ENU") if len(known) else geodetic
    return places, heights


def rtk_fraction(stream: Stream | None) -> float | None:
    """Fraction of the fixes of a receiver that were RTK; None where it did not, or could not, say."""
    # sensor_msgs/NavSatFix has no word for RTK: not to hear of it means nothing.
    if stream is None or "fix" not in stream.columns or "position_covariance_type" in stream.columns:
        return None
    said = np.array([fix for fix in stream.column("fix") if isinstance(fix, str) and fix], dtype=np.str_)
    return float(np.isin(said, RTK).mean()) if said.size else None


def _receiver(recording: Recording) -> Stream | None:
    return next((s for s in recording if s.type is NavFix and len(s)), None)


def _height(heights: Floats, seams: Sequence[int]) -> float:
    edges = [0, *(s for s in seams if 0 < s < len(heights)), len(heights)]
    parts = [heights[a:b][np.isfinite(heights[a:b])] for a, b in itertools.pairwise(edges)]
    return max((float(np.ptp(part)) for part in parts if part.size), default=np.nan)


def total(traverses: Sequence[Traverse], name: str = "total") -> Traverse:
    """Return the sum of several traverses; like the paper's, it has no height difference of its own."""
    if not traverses:
        raise GeometryError("there are no traverses to sum up")
    known = [(t.rtk, t.samples) for t in traverses if t.rtk is not None]
    count = sum(samples for _, samples in known)
    return Traverse(
        name=name,
        stream="",
        dimensions=min(t.dimensions for t in traverses),
        samples=sum(t.samples for t in traverses),
        parts=sum(t.parts for t in traverses),
        length_m=sum(t.length_m for t in traverses),
        duration_s=sum(t.duration_s for t in traverses),
        moving_m=sum(t.moving_m for t in traverses),
        moving_s=sum(t.moving_s for t in traverses),
        height_m=np.nan,
        rtk=sum(rtk * samples for rtk, samples in known) / count if count else None,
        stop_speed=traverses[0].stop_speed,
    )
