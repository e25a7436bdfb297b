"""The path of a robot as one stream of a recording or a run holds it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS, TimeLike, resolve, text_from_ns
from transect.errors import StreamError, UsageError
from transect.geometry.array_checks import measured_rows
from transect.geometry.ground import map_view
from transect.recording import Recording, Stream
from transect.types import NavFix, Trajectory

from .streams import MAX_COORDINATE_M, POSITION_TYPES, best_stream, geodetic_of, track_of

EARTH = "Earth"  # name of the space of latitudes and longitudes
DOWN_IS_Y = ("cam0_first",)  # world frames of a camera (KITTI's poses); in all others z is the vertical


def facts_of(trajectory: Trajectory) -> dict[str, Any]:
    """Return number, length (m, 3-D), height difference (m), duration (s) and map view of a trajectory."""
    timed = trajectory.clock != "index" and len(trajectory) > 0
    view = map_view(trajectory.positions, trajectory.orientations, trajectory.frame)
    heights = trajectory.positions[:, 1 if trajectory.frame in DOWN_IS_Y else 2]
    return {
        "poses": len(trajectory),
        "length_m": trajectory.length,
        "height_m": float(np.ptp(heights)) if len(trajectory) else float("nan"),
        "duration_s": float(np.ptp(trajectory.t_ns) / NS) if timed else float("nan"),
        "view": asdict(view),
    }


@dataclass(frozen=True, eq=False)
class RecordedPath:
    """A track as it was recorded."""

    name: str
    t_ns: Ints  # (n,) int64, on `clock`
    # (n, 3), latitude, longitude (rad) and height (m) where `frame` is the Earth, else metres; no NaN
    # in what a map shows
    places: Floats
    orientations: Floats | None  # (n, 4) or
    frame: str
    clock: str

    def between(self, start: TimeLike | None, end: TimeLike | None) -> RecordedPath:
        """Return the part in [start, end); `+60s` counts from its first position."""
        keep = np.ones(len(self.t_ns), dtype=bool)
        if start is not None:
            keep &= self.t_ns >= resolve(start, int(self.t_ns[0]), self.clock)
        if end is not None:
            keep &= self.t_ns < resolve(end, int(self.t_ns[0]), self.clock)
        if not keep.any():
            first, last = (text_from_ns(int(t), self.clock) for t in (self.t_ns.min(), self.t_ns.max()))
            why = f"it was recorded from {first} to {last} ({self.clock})"
            raise UsageError(f"{self.name} has no positions between these times", why=why)
        orientations = self.orientations
        return replace(
            self, t_ns=self.t_ns[keep], places=self.places[keep],
            orientations=None if orientations is None else orientations[keep],
        )  # fmt: skip

    def overlaps(self, other: RecordedPath) -> bool:
        """Return whether two tracks were recorded at the same time."""
        if self.clock != other.clock or "index" in (self.clock, other.clock):
            return False
        return bool(self.t_ns[0] <= other.t_ns[-1] and other.t_ns[0] <= self.t_ns[-1])


def paths_of(recording: Recording, name: str = "", patterns: Sequence[str] = ()) -> list[RecordedPath]:
    """Return the tracks of a recording that are meant.

    Parameters
    ----------
    name : str
        Of one stream.
    patterns : sequence of str
        Of names of streams; those without positions are left out. Without name and patterns satellite
        fixes are taken, else the best measurement, else the truth.
    """
    if name:
        return [path_of(recording[name], f"{recording.name} {recording[name].name}")]
    if patterns:
        fitting = [s for s in recording.select(*patterns) if s.type in POSITION_TYPES and len(s)]
        if not fitting:
            raise StreamError(
                f"no stream of {recording.name} that {', '.join(patterns)} chooses has positions"
            )
        single = len(fitting) == 1
        return [path_of(s, recording.name if single else f"{recording.name} {s.name}") for s in fitting]
    return [path_of(best_stream(recording), recording.name)]


def path_of(stream: Stream, name: str) -> RecordedPath:
    """Return the track of a stream of fixes, poses or odometry, in the order of time."""
    if stream.type not in POSITION_TYPES:
        raise StreamError(f"{stream.name} has no positions", why=f"its samples are {stream.type.__name__}")
    earth = stream.type is NavFix
    places = geodetic_of(stream) if earth else track_of(stream)
    heights = places[:, 2]
    usual = float(np.nanmedian(heights)) if np.isfinite(heights).any() else 0.0
    places = np.column_stack([places[:, :2], np.where(np.isfinite(heights), heights, usual)])
    has_attitude = {"qx", "qy", "qz", "qw"} <= set(stream.columns) and not earth
    orientations = stream.array("qx", "qy", "qz", "qw") if has_attitude else None
    return _sort(
        RecordedPath(name, stream.t_ns, places, orientations, EARTH if earth else stream.frame, stream.clock)
    )


def path_of_trajectory(trajectory: Trajectory, name: str) -> RecordedPath:
    """Return the track of a trajectory, such as a run's."""
    return _sort(
        RecordedPath(name, trajectory.t_ns, trajectory.positions, trajectory.orientations, trajectory.frame,
             trajectory.clock)
    )  # fmt: skip


def _sort(path: RecordedPath) -> RecordedPath:
    known = np.flatnonzero(measured_rows(path.places) & (np.abs(path.places) < MAX_COORDINATE_M).all(axis=1))
    if not len(known):
        raise StreamError(f"{path.name} has no positions", why="none was measured")
    order = known[np.argsort(path.t_ns[known], kind="stable")]
    orientations = path.orientations
    return replace(
        path, t_ns=path.t_ns[order], places=path.places[order],
        orientations=None if orientations is None else orientations[order],
    )  # fmt: skip


def guides_of(recording: Recording, frame: str) -> Iterator[RecordedPath]:
    """Yield the tracks of a recording in a frame, by which others can be brought there."""
    for stream in recording:
        stream_frame = EARTH if stream.type is NavFix else stream.frame
        if stream.type in POSITION_TYPES and stream_frame == frame and len(stream):
            try:
                yield path_of(stream, f"{recording.name} {stream.name}")
            except StreamError:  # none of its positions was measured, and it leads nowhere
                continue
