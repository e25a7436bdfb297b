"""Where on Earth the frames of a run are: by the fixes of its recording, whatever the frames are called.

A track is laid on the fixes of the same times by a turn about the vertical and a shift. What an antenna is
away from the body is not taken off: places are good to a metre or two, which is what a search needs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transect.errors import TransectError

from .place import Place, Site, Xy

if TYPE_CHECKING:
    from transect.base.arrays import Floats, Ints
    from transect.recording import Recording, Stream

NORTHERLY = math.radians(1.0)
"""A frame that is turned by less from east and north is a site's own."""


@dataclass(frozen=True)
class Anchor:
    """Where a frame is: its origin, longitude and latitude in degrees, and its turn in rad, to the left.

    A point (x, y) of the frame is `turn` further left, seen from the origin, than in east and north.
    """

    longitude: float
    latitude: float
    turn: float

    @property
    def is_north_up(self) -> bool:
        """Whether x is east and y is north."""
        return abs(self.turn) < NORTHERLY

    def site(self, name: str) -> Site:
        """Return the site whose frame this is."""
        return Site(name, self.longitude, self.latitude)

    def locate(self, place: Place) -> Place:
        """Return a place of the frame in longitude and latitude."""
        import numpy as np

        from transect.geometry.geodesy import geodetic_from_local

        cosine, sine = math.cos(self.turn), math.sin(self.turn)
        turned = np.array(place.points) @ np.array([[cosine, sine], [-sine, cosine]])
        origin = (math.radians(self.latitude), math.radians(self.longitude), 0.0)
        found = np.degrees(geodetic_from_local(_lift(turned), origin)[:, :2]).tolist()
        points: list[Xy] = [(longitude, latitude) for latitude, longitude in found]
        return Place(place.shape, (*points[:-1], points[0]) if place.shape == "Polygon" else tuple(points))


def find_anchors(request: Mapping[str, Any], tracks: list[Path]) -> dict[str, Anchor]:
    """Return where frames of a run's trajectories are, by name; none where no fixes tell it.

    Parameters
    ----------
    request : mapping
        What the run was asked for, with the recording.
    tracks : list of Path
        Its trajectories (`.tum`).
    """
    try:
        fixes = _fixes_of(_open(request))
        if fixes is None:
            return {}
        from transect.formats import open as open_recording

        found = [stream for path in tracks for stream in open_recording(path, format="tum")]
        anchors = {
            stream.frame: lay_on_fixes(stream, *fixes) for stream in found if len(stream) and stream.frame
        }
    except (TransectError, OSError):
        return {}  # a recording that moved, a trajectory of nothing: kept, and nowhere on Earth
    return {frame: anchor for frame, anchor in anchors.items() if anchor is not None}


def _open(request: Mapping[str, Any]) -> Recording:
    from transect.formats import open as open_recording

    recorded = request["recording"]
    return open_recording(*recorded["paths"], format=recorded["format"] or None, **recorded["options"])


def _fixes_of(recording: Recording) -> tuple[Ints, Floats] | None:
    """Return times (n,) and geodetic positions (n, 3) in rad and m of the stream with most fixes."""
    import numpy as np

    from transect.types import NavFix

    streams = [s for s in recording if s.role == "measurement" and issubclass(s.type, NavFix) and len(s)]
    if not streams:
        return None
    most = max(streams, key=len)
    points = np.column_stack([most.array("lat", "lon"), np.zeros(len(most))])
    known = np.isfinite(points).all(axis=1)
    return most.t_ns[known], points[known]


def lay_on_fixes(track: Stream, t_ns: Ints, fixes: Floats) -> Anchor | None:
    """Return where the frame of a track is; None where the fixes do not tell."""
    from transect.geometry.georeferencing import find_earth_frame
    from transect.geometry.interpolation import Limits, interpolate_columns

    if not len(t_ns):
        return None
    limits = Limits(gap_ns=1_000_000_000, beyond_ns=0)
    passed = interpolate_columns(track.t_ns, track.array("x", "y"), t_ns, limits)
    found = find_earth_frame(_lift(passed), fixes)
    if found is None:
        return None
    return Anchor(math.degrees(found.longitude), math.degrees(found.latitude), found.turn)


def _lift(points: Floats) -> Floats:
    """Return points (n, 2) in the plane z = 0 (n, 3)."""
    import numpy as np

    return np.column_stack([points, np.zeros(len(points))])
