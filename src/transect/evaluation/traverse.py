"""Length, height difference, duration and speed of a traverse: Table 6 of AMEDS, for any recording.

The paper's mean velocity is not its length divided by its duration, and it does not state how it was measured
(see errata). Here both means are given, and all lengths come from one smoothed track of the measurements
(`track`), never from truth:

- the length is that of the smoothed track in 3-D, without the time at rest;
- the moving length excludes stops, which are seconds below the stop speed;
- the sum of all steps from sample to sample is given, too, as in Table 3 of Rosario. At 100 Hz it is mostly
  receiver noise.

Nothing is measured across the seam of joined recordings.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from transect.base import plugins
from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.errors import GeometryError, StreamError
from transect.evaluation.positions.streams import (
    MIN_RTK_RATIO,
    drift_of,
    position_stream,
    receiver_of,
    rtk_fraction,
    track_of,
    velocities_of,
    velocity_stream,
)
from transect.geometry.array_checks import floats, measured_rows, times_ns
from transect.recording import Recording
from transect.types import NavFix

from .track import Positions, Velocities, filter_track, hold_at_rest

STOP_SPEED_MPS = 0.05
STRIDE_S = 1.0  # over which speed is averaged


# From arrays


@dataclass(frozen=True)
class TrackMeasures:
    """Lengths and times of a track."""

    length_m: float
    duration_s: float
    moving_m: float  # of the strides without stops
    moving_s: float
    std_m: float = 0.0  # standard deviation of the length due to measurement noise
    steps_m: float = 0.0  # sum of the steps from sample to sample, including noise
    heights: tuple[tuple[float, float], ...] = ()  # minimum and maximum of each part, m


def measure(
    t_ns: ArrayLike,
    positions: ArrayLike,
    seams: Sequence[int] = (),
    stop_speed: float = STOP_SPEED_MPS,
    stride: float = STRIDE_S,
    drift: ArrayLike = (0.0, 0.0, 0.0, 0.0),
    velocities: tuple[Ints, Floats, Floats] | None = None,
) -> TrackMeasures:
    """Measure a track.

    Parameters
    ----------
    t_ns : (n,)
        Sample times, ns; where they step back see `_in_order`.
    positions : (n, 3)
        m, in a fixed frame. Rows with NaN are ignored; gaps are interpolated linearly.
    seams : sequence of int
        Indices at which a new part begins.
    stop_speed : float
        m/s; a slower stride is a stop.
    stride : float
        Seconds over which speed is averaged; samples further apart are used one by one.
    drift : (n, 4) or (4,)
        Standard deviation (m) of the drifting error on each axis, and its correlation time (s).
    velocities : (times, (m, 3), (m, 3)), optional
        In the axes of the positions, with their standard deviations, m/s; NaN if unknown.
    """
    times, positions = times_ns("times", t_ns), floats("positions", positions, ("n", 3))
    if len(times) != len(positions):
        raise GeometryError(f"expected equally many times and positions, got {len(times)}, {len(positions)}")
    errors = np.broadcast_to(np.asarray(drift, dtype=np.float64), (len(times), 4))
    edges = [0, *(s for s in sorted(seams) if 0 < s < len(times)), len(times)]
    parts = [
        _measure_part(times[a:b], positions[a:b], errors[a:b], velocities, stop_speed, stride)
        for a, b in itertools.pairwise(edges)
    ]
    return TrackMeasures(
        length_m=sum(part.length_m for part in parts),
        duration_s=sum(part.duration_s for part in parts),
        moving_m=sum(part.moving_m for part in parts),
        moving_s=sum(part.moving_s for part in parts),
        std_m=math.hypot(*(part.std_m for part in parts)),
        steps_m=sum(part.steps_m for part in parts),
        heights=tuple(height for part in parts for height in part.heights),
    )


def _measure_part(
    times: Ints,
    positions: Floats,
    drift: Floats,
    velocities: tuple[Ints, Floats, Floats] | None,
    stop_speed: float,
    stride: float,
) -> TrackMeasures:
    known = np.flatnonzero(measured_rows(positions))
    if len(known) < 2:
        heights = tuple((float(z), float(z)) for z in positions[known, 2])
        return TrackMeasures(0.0, 0.0, 0.0, 0.0, heights=heights)
    order, t = _in_order(times[known], positions[known])
    y, error = positions[known][order], drift[known][order]
    seconds = (t - t[0]) / NS
    measured = Positions(seconds, y, error[:, :3], error[:, 3])
    speeds = velocities and Velocities((velocities[0] - t[0]) / NS, velocities[1], velocities[2])
    # Motion is tested over half a stride, so that stops are located precisely.
    track = hold_at_rest(filter_track(measured, speeds), stride / 2)
    metres = _along(track.positions)
    step_m, step_s = np.diff(metres), np.diff(track.seconds)
    moves = (_speeds(track.seconds, metres, stride) >= stop_speed) & (step_s > 0)
    return TrackMeasures(
        length_m=float(metres[-1]),
        duration_s=float(seconds[-1]),
        moving_m=float(step_m[moves].sum()),
        moving_s=float(step_s[moves].sum()),
        std_m=float(np.std([_along(track.positions + noise)[-1] for noise in track.noise])),
        steps_m=float(_along(y)[-1]),
        heights=((float(track.positions[:, 2].min()), float(track.positions[:, 2].max())),),
    )


def _in_order(times: Ints, positions: Floats) -> tuple[Ints, Ints]:
    """Return the order of a track and its times: by time, or as recorded if that path is shorter.

    Late samples are sorted by their times. After a clock was set back, times do not determine the order, and
    the samples are considered evenly spaced.
    """
    order = np.argsort(times, kind="stable")
    if _along(positions[order])[-1] <= _along(positions)[-1]:
        return order, times[order]
    steps = np.diff(times)
    step = int(np.median(steps[steps > 0])) if (steps > 0).any() else NS
    return np.arange(len(times)), times[0] + step * np.arange(len(times))


def _speeds(seconds: Floats, metres: Floats, stride: float) -> Floats:
    """Return speeds (n - 1,) between samples, m/s: means over a stride around each, or less at the ends."""
    middle = (seconds[1:] + seconds[:-1]) / 2
    edges = np.clip([middle - stride / 2, middle + stride / 2], seconds[0], seconds[-1])
    before, after = np.interp(edges, seconds, metres)
    return (after - before) / np.maximum(edges[1] - edges[0], 1e-9)


def _along(positions: Floats) -> Floats:
    """Return the distance (n,) along positions (n, 3), m."""
    return np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(positions, axis=0), axis=1))])


# From recordings


@dataclass(frozen=True)
class Traverse:
    """A row of Table 6; NaN or None if unknown."""

    name: str  # of the recording
    stream: str  # of the positions
    dimensions: int  # 3, or 2 without heights
    samples: int  # positions used
    parts: int  # joined recordings
    # See `TrackMeasures`; times are NaN on the index clock
    length_m: float
    duration_s: float
    moving_m: float
    moving_s: float
    height_m: float  # largest difference in height: of geodetic positions over all parts, else within a part
    rtk: float | None  # fraction of RTK fixes, fixed or float; None if the receiver does not report it
    stop_speed: float  # m/s
    velocities: str = ""  # the stream whose velocities were used, "" if there was none
    # See `TrackMeasures`
    std_m: float = 0.0
    steps_m: float = np.nan
    # Of the stream; truth is used only if it was named
    role: str = "measurement"
    type: str = ""

    @property
    def mean_speed(self) -> float:
        """Length over duration, m/s."""
        return self.length_m / self.duration_s if self.duration_s else np.nan

    @property
    def moving_speed(self) -> float:
        """Moving length over moving duration, m/s."""
        return self.moving_m / self.moving_s if self.moving_s else np.nan

    @property
    def source(self) -> str:
        """The streams that the track was filtered from."""
        return " and ".join(dict.fromkeys(filter(None, (self.stream, self.velocities))))

    @property
    def covered(self) -> bool | None:
        """Whether at least half of the fixes were RTK."""
        return None if self.rtk is None else self.rtk >= MIN_RTK_RATIO


def traverse_of(
    recording: Recording,
    stream: str | None = None,
    stop_speed: float = STOP_SPEED_MPS,
    stride: float = STRIDE_S,
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
    positions = track_of(source)
    flat = not np.isfinite(positions[:, 2]).any()
    if flat:
        positions = np.where(np.arange(3) < 2, positions, 0.0)
    used = int(measured_rows(positions).sum())
    if not used:
        raise StreamError(f"{source.name} of {recording.name} has no measured position")
    timeless = source.clock == "index"
    t_ns = NS * np.arange(len(source)) if timeless else source.t_ns
    speeds = None if stream or timeless else velocity_stream(recording, source)
    known = None if speeds is None else velocities_of(speeds, source)
    path = measure(t_ns, positions, source.seams, stop_speed, stride, drift_of(source), known)
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
        height_m=np.nan if flat else _height(path, together=source.type is NavFix),
        rtk=rtk_fraction(source if source.type is NavFix else receiver_of(recording)),
        stop_speed=stop_speed,
        velocities=speeds.name if speeds else "",
        std_m=path.std_m,
        steps_m=path.steps_m,
        role=source.role,
        type=source.type.__name__,
    )


def _height(path: TrackMeasures, together: bool) -> float:
    """Return the largest difference in height, of all parts together or within one."""
    low, high = np.array(path.heights).T
    return float(high.max() - low.min() if together else (high - low).max())


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
        std_m=float(np.sqrt(sum(t.std_m**2 for t in traverses))),
        steps_m=sum(t.steps_m for t in traverses),
    )


HEADINGS = (
    "traverse",
    "length [m]",
    "height [m]",
    "duration",
    "speed [m/s]",
    "moved [m]",
    "moved for",
    "moving [m/s]",
    "RTK",
    "positions from",
)


def find_published(recording: Recording) -> dict[str, Any] | None:
    """Return the published traverse of a recording from the catalogue of its data set, or None."""
    for name in plugins.names("catalogues"):
        find = getattr(plugins.load("catalogues", name), "find_published", None)
        if find is not None and (found := find(recording)):
            return found
    return None


def remarks_of(traverse: Traverse) -> list[str]:
    """Return caveats about the length of a traverse."""
    if traverse.role == "truth":
        return [f"{traverse.stream} is truth, not a measurement"]
    alone = traverse.rtk is not None and traverse.rtk < MIN_RTK_RATIO and not traverse.velocities
    if alone and traverse.type == "NavFix":
        return ["few RTK fixes and no velocities: the length may be off by a fifth"]
    if traverse.type == "Odometry":
        return [f"{traverse.stream} includes wheel slip"]
    return []


def row_of(traverse: Traverse) -> tuple[str, ...]:
    """Return the cells of a traverse, under `HEADINGS`."""
    rtk, covered = traverse.rtk, "yes" if traverse.covered else "no"
    return (
        traverse.name,
        _number(traverse.length_m, 1),
        _number(traverse.height_m, 1),
        _minutes(traverse.duration_s),
        _number(traverse.mean_speed, 2),
        _number(traverse.moving_m, 1),
        _minutes(traverse.moving_s),
        _number(traverse.moving_speed, 2),
        "-" if rtk is None else f"{covered} ({rtk:.0%})",
        traverse.source + (" (2-D)" if traverse.dimensions == 2 else ""),
    )


def published_row(table: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of what `find_published` found, under `HEADINGS`."""
    rtk = table.get("rtk")
    return (
        "  as published",
        _number(table["length_m"], 1),
        _number(table.get("height_m"), 1),
        _minutes(table["duration_s"]),
        "-",
        "-",
        "-",
        # It is not length / duration, so it stands where it probably belongs (see errata).
        _number(table.get("mean_velocity_m_s"), 2),
        "-" if rtk is None else "yes" if rtk else "no",
        table["table"],
    )


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def _minutes(seconds: float) -> str:
    """Return mm:ss, as the paper has it."""
    if math.isnan(seconds):
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:02d}:{rest:02d}"
