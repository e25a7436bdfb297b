"""How far, how high, how long and how fast a robot drove: Table 6 of document 000, for any recording.

The paper's mean velocity is not its length divided by its duration, and it says nothing of how it measured
(see errata). Here both means are given, and all lengths come from one filtered track of what was measured
(`track`); the truth of a simulated day is never looked at:

- the length is that of the filtered track, in 3-D; where it rests it has none;
- the length while moving is that of the seconds that were no stops: a second slower than the stop speed is a
  stop and counts neither as way nor as time;
- the plain sum of all steps from sample to sample is kept beside them: document 001's Table 3 has just that.
  At 100 Hz it is mostly the receiver's noise.

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
    COVERED,
    position_stream,
    receiver_of,
    rtk_fraction,
    track_of,
    velocities_of,
    velocity_stream,
    wander_of,
)
from transect.geometry.array_checks import floats, measured_rows, times_ns
from transect.recording import Recording
from transect.types import NavFix

from .track import Positions, Velocities, filter_track, hold_at_rest

STOP_SPEED = 0.05
"""m/s."""
STRIDE = 1.0
"""Seconds over which speed is judged."""


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
    std_m : float
        Deviation of the length by the noise of the measurements alone.
    steps_m : float
        Plain sum of the steps from sample to sample, noise and all.
    heights : tuple of (float, float)
        Lowest and highest place of each part, m.
    """

    length_m: float
    duration_s: float
    moving_m: float
    moving_s: float
    std_m: float = 0.0
    steps_m: float = 0.0
    heights: tuple[tuple[float, float], ...] = ()


def measure(
    t_ns: ArrayLike,
    positions: ArrayLike,
    seams: Sequence[int] = (),
    stop_speed: float = STOP_SPEED,
    stride: float = STRIDE,
    wander: ArrayLike = (0.0, 0.0, 0.0, 0.0),
    velocities: tuple[Ints, Floats, Floats] | None = None,
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
    wander : (n, 4) or (4,)
        Deviation of an error that wanders, m, on each axis, and after how many seconds it is another one.
    velocities : (times, (m, 3), (m, 3)), optional
        Measured in the axes of the positions, with their deviations, m/s; NaN where not known.
    """
    times, places = times_ns("times", t_ns), floats("positions", positions, ("n", 3))
    if len(times) != len(places):
        raise GeometryError(f"expected equally many times and positions, got {len(times)}, {len(places)}")
    errors = np.broadcast_to(np.asarray(wander, dtype=np.float64), (len(times), 4))
    edges = [0, *(s for s in sorted(seams) if 0 < s < len(times)), len(times)]
    parts = [
        _measure_part(times[a:b], places[a:b], errors[a:b], velocities, stop_speed, stride)
        for a, b in itertools.pairwise(edges)
    ]
    return Path(
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
    places: Floats,
    wander: Floats,
    velocities: tuple[Ints, Floats, Floats] | None,
    stop_speed: float,
    stride: float,
) -> Path:
    known = np.flatnonzero(measured_rows(places))
    if len(known) < 2:
        heights = tuple((float(z), float(z)) for z in places[known, 2])
        return Path(0.0, 0.0, 0.0, 0.0, heights=heights)
    order, t = _in_order(times[known], places[known])
    y, error = places[known][order], wander[known][order]
    seconds = (t - t[0]) / NS
    measured = Positions(seconds, y, error[:, :3], error[:, 3])
    speeds = velocities and Velocities((velocities[0] - t[0]) / NS, velocities[1], velocities[2])
    # A motion is looked for in half a stride, so that stops begin and end where they do.
    track = hold_at_rest(filter_track(measured, speeds), stride / 2)
    metres = _along(track.places)
    way, spent = np.diff(metres), np.diff(track.seconds)
    moves = (_speeds(track.seconds, metres, stride) >= stop_speed) & (spent > 0)
    return Path(
        length_m=float(metres[-1]),
        duration_s=float(seconds[-1]),
        moving_m=float(way[moves].sum()),
        moving_s=float(spent[moves].sum()),
        std_m=float(np.std([_along(track.places + noise)[-1] for noise in track.noise])),
        steps_m=float(_along(y)[-1]),
        heights=((float(track.places[:, 2].min()), float(track.places[:, 2].max())),),
    )


def _in_order(times: Ints, places: Floats) -> tuple[Ints, Ints]:
    """Return the order of a track and its times: by time, or as recorded where that makes the shorter way.

    Samples that come late belong where their times say; after a clock that was set back, times say nothing of
    the order, and the samples are taken to be evenly spaced.
    """
    order = np.argsort(times, kind="stable")
    if _along(places[order])[-1] <= _along(places)[-1]:
        return order, times[order]
    steps = np.diff(times)
    step = int(np.median(steps[steps > 0])) if (steps > 0).any() else NS
    return np.arange(len(times)), times[0] + step * np.arange(len(times))


def _speeds(seconds: Floats, metres: Floats, stride: float) -> Floats:
    """Speeds (n - 1,) between samples, m/s: means over a stride around each, or over the time there is."""
    middle = (seconds[1:] + seconds[:-1]) / 2
    edges = np.clip([middle - stride / 2, middle + stride / 2], seconds[0], seconds[-1])
    before, after = np.interp(edges, seconds, metres)
    return (after - before) / np.maximum(edges[1] - edges[0], 1e-9)


def _along(places: Floats) -> Floats:
    """Metres (n,) from the first of places (n, 3) to each."""
    return np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(places, axis=0), axis=1))])


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
    velocities : str
        The stream whose velocities were used beside the positions, "" if there was none.
    std_m, steps_m : float
        See `Path`.
    role, type : str
        Of the stream; truth is used only where it was named.
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
    velocities: str = ""
    std_m: float = 0.0
    steps_m: float = np.nan
    role: str = "measurement"
    type: str = ""

    @property
    def mean_speed(self) -> float:
        """Length over duration, m/s."""
        return self.length_m / self.duration_s if self.duration_s else np.nan

    @property
    def moving_speed(self) -> float:
        """The same without the stops, m/s."""
        return self.moving_m / self.moving_s if self.moving_s else np.nan

    @property
    def source(self) -> str:
        """The streams that the track was filtered from."""
        return " and ".join(dict.fromkeys(filter(None, (self.stream, self.velocities))))

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
    places = track_of(source)
    flat = not np.isfinite(places[:, 2]).any()
    if flat:
        places = np.where(np.arange(3) < 2, places, 0.0)
    used = int(measured_rows(places).sum())
    if not used:
        raise StreamError(f"{source.name} of {recording.name} has no position that was measured")
    timeless = source.clock == "index"
    t_ns = NS * np.arange(len(source)) if timeless else source.t_ns
    speeds = None if stream or timeless else velocity_stream(recording, source)
    known = None if speeds is None else velocities_of(speeds, source)
    path = measure(t_ns, places, source.seams, stop_speed, stride, wander_of(source), known)
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


def _height(path: Path, together: bool) -> float:
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
    """Return what the catalogue of a recording's data set says of its traverse, or None."""
    for name in plugins.names("catalogues"):
        find = getattr(plugins.load("catalogues", name), "find_published", None)
        if find is not None and (found := find(recording)):
            return found
    return None


def remarks_of(traverse: Traverse) -> list[str]:
    """Return what a reader should know of a length before believing it."""
    if traverse.role == "truth":
        return [f"{traverse.stream} is truth, not a measurement"]
    alone = traverse.rtk is not None and traverse.rtk < COVERED and not traverse.velocities
    if alone and traverse.type == "NavFix":
        return ["few RTK fixes and no velocities: the length may be off by a fifth"]
    if traverse.type == "Odometry":
        return [f"{traverse.stream} counts slip as way"]
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
