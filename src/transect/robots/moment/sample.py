"""A time of a recording, and what there is of a stream then; points and bearings in the vehicle's frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.errors import StreamError
from transect.geometry import se3
from transect.geometry.planar import points_from_polar
from transect.types import RadarRange, RadarSpectrum

from ..overlay import refuse_clock, sample_near, way_up

if TYPE_CHECKING:
    from transect.recording import Recording, Stream

FLIP = np.array([1.0, -1.0, -1.0])
"""From x forward, y right, z down to x forward, y left, z up."""
TURN_NS = NS
"""A radar's revolution is looked for so long before and after: slower radars give whole images."""


@dataclass(frozen=True)
class Choice:
    """What is drawn of each recording, when, and how.

    Attributes
    ----------
    streams : tuple of str
        Patterns of the names of streams, each with the view that it has by default.
    panels : tuple of str
        Panels in this order instead: ``STREAM[:VIEW]``, or ``STREAM+STREAM`` for both in one.
    times : tuple of str
        When; the start if there are none.
    start, end : str or None
        From when to when the views go that show a while.
    tolerance : float
        Largest time between a sample and the moment, s.
    row : float
        Which line of images, as a fraction of their height.
    sector, reach : float or None
        Largest bearing (degrees) and range (m) that are drawn.
    title : str or None
        Above the picture; the recordings and the time if None.
    columns : int or None
        Number of panels side by side.
    """

    streams: tuple[str, ...] = ()
    panels: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    start: str | None = None
    end: str | None = None
    tolerance: float = 0.5
    row: float = 0.5
    sector: float | None = None
    reach: float | None = None
    title: str | None = None
    columns: int | None = None


@dataclass(frozen=True, eq=False)
class Moment:
    """A time of a recording.

    Attributes
    ----------
    t_ns : int
        On `clock`.
    window : (int, int) or None
        From when to when, not included, the views go that show a while, ns.
    heading : str
        Text before the names of streams.
    first_ns : int
        From when seconds are counted.
    """

    recording: Recording
    clock: str
    t_ns: int
    choice: Choice = Choice()
    window: tuple[int, int] | None = None
    heading: str = ""
    first_ns: int = 0

    def title(self, stream: Stream, said: str = "") -> str:
        """Return the title of a panel."""
        return f"{self.heading}{stream.name}{', ' if said else ''}{said}"

    def sample(self, stream: Stream) -> tuple[Any, float | None]:
        """Return the value nearest to the moment, and by how many seconds it is later, if there are times."""
        found, dt = sample_near(stream, self.clock, self.t_ns, self.choice.tolerance)
        return found.value, None if self.clock == "index" else dt

    def part(self, stream: Stream, whole: bool = False) -> Stream:
        """Return the samples in the window; without one, all if `whole`, else one turn or sample."""
        if self.window is not None or whole:
            refuse_clock(stream, self.clock)
            part = stream.between(*self.window) if self.window else stream
            if not len(part):
                raise StreamError(f"{stream.name} has no samples in that time")
            return part
        nearest, _ = sample_near(stream, self.clock, self.t_ns, self.choice.tolerance)
        if stream.type in (RadarRange, RadarSpectrum):
            return revolution(stream, self.t_ns)
        return stream.between(nearest.t_ns, nearest.t_ns + 1)

    def seconds(self, stream: Stream) -> Floats:
        """Return the times (n,) of samples since the recording began, s."""
        return (stream.t_ns - self.first_ns) / NS

    def mounting(self, stream: Stream) -> tuple[Floats, str]:
        """Return T_body_sensor and the body's name: the sensor's own where the robot does not know it."""
        robot = self.recording.robot
        if robot is not None and stream.frame in robot.frames.frames:
            *_, body = way_up(robot.frames, stream.frame)
            return robot.frames.lookup(body, stream.frame, self.t_ns, tolerance=float("inf")), body
        return np.eye(4), stream.frame or stream.name

    def upright(self, T: Floats, points: Floats) -> Floats:
        """Return points (n, 3) x forward, y left, z up in the body."""
        robot = self.recording.robot
        return se3.apply(T, points) * (FLIP if robot is not None and robot.z_down else 1.0)

    def bearings(self, T: Floats, angles: Floats) -> Floats:
        """Return bearings in the body, rad to the left, of beams in the sensor's x-y plane."""
        ahead = self.upright(T, points_from_polar(1.0, angles)) - self.upright(T, np.zeros((1, 3)))
        return np.arctan2(ahead[:, 1], ahead[:, 0])


def revolution(stream: Stream, t_ns: int) -> Stream:
    """Return the lines of a turning sensor from half a turn before a time to half a turn after."""
    near = stream.between(t_ns - TURN_NS, t_ns + TURN_NS + 1)
    angle = np.unwrap(np.asarray(near.column("angle"), dtype=np.float64))
    middle = int(np.argmin(np.abs(near.t_ns - t_ns)))
    within = np.flatnonzero(np.abs(angle - angle[middle]) <= np.pi)
    return near.between(int(near.t_ns[within[0]]), int(near.t_ns[within[-1]]) + 1)
