"""A time of a recording, and what there is of a stream then; points and bearings as the vehicle has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.base import clocks
from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.errors import StreamError
from transect.geometry import se3
from transect.geometry.planar import points_from_polar
from transect.types import RadarRange, RadarSpectrum

if TYPE_CHECKING:
    from transect.recording import FrameTree, Recording, Stream


FLIP = np.array([1.0, -1.0, -1.0])
"""From x forward, y right, z down to x forward, y left, z up."""
TURN_NS = NS
"""A radar's revolution is looked for so long before and after: slower radars give whole images."""


@dataclass(frozen=True, eq=False)
class Moment:
    """A time of a recording.

    Attributes
    ----------
    recording : Recording
    clock : str
    t_ns : int
        On that clock.
    tolerance : float
        How far from it a sample may be, s.
    window : (int, int) or None
        From when to when, not included, views that show a while go, ns.
    row : float
        Which line of images, as a share of their height.
    heading : str
        What stands before the names of streams.
    first_ns : int
        From when seconds are counted.
    """

    recording: Recording
    clock: str
    t_ns: int
    tolerance: float = 0.5
    window: tuple[int, int] | None = None
    row: float = 0.5
    heading: str = ""
    first_ns: int = 0

    @property
    def time(self) -> str:
        return clocks.text_from_ns(self.t_ns, self.clock)

    def name(self, stream: Stream, said: str = "") -> str:
        """Return the title of a picture."""
        return f"{self.heading}{stream.name}{', ' if said else ''}{said}"

    def sample(self, stream: Stream) -> tuple[Any, float | None]:
        """Return the value nearest to the moment, and by how many seconds it is later, if there are times."""
        self._refuse_clock(stream)
        found = stream.at(self.t_ns)
        if self.clock == "index":
            return found.value, None
        dt = (found.t_ns - self.t_ns) / NS
        if abs(dt) > self.tolerance:
            raise StreamError(f"its nearest sample is {dt:+.3f} s away")
        return found.value, dt

    def during(self, stream: Stream) -> Stream:
        """Return the samples of the window; without one, a turn of a radar, or the nearest sample."""
        self._refuse_clock(stream)
        if self.window is not None:
            part = stream.between(*self.window)
            if not len(part):
                raise StreamError(f"{stream.name} has no samples in that time")
            return part
        self.sample(stream)
        if stream.type in (RadarRange, RadarSpectrum):
            return revolution(stream, self.t_ns)
        t_ns = stream.at(self.t_ns).t_ns
        return stream.between(t_ns, t_ns + 1)

    def throughout(self, stream: Stream) -> Stream:
        """Return the samples of the window; without one, all."""
        self._refuse_clock(stream)
        return stream if self.window is None else self.during(stream)

    def seconds(self, stream: Stream) -> Floats:
        """Return the times (n,) of samples since the recording began, s."""
        return (stream.t_ns - self.first_ns) / NS

    def placed(self, stream: Stream) -> tuple[Floats, str]:
        """Return T_body_sensor and the body's name: the sensor's own where the robot does not know it."""
        robot = self.recording.robot
        if robot is not None and stream.frame in robot.frames.frames:
            body = _root(robot.frames, stream.frame)
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

    def _refuse_clock(self, stream: Stream) -> None:
        if stream.clock != self.clock:
            raise StreamError(f"it is on the {stream.clock} clock")


def _root(frames: FrameTree, frame: str) -> str:
    """Return the frame at the top of those that a frame hangs on."""
    above = frames.parent_of(frame)
    return frame if above is None else _root(frames, above)


def revolution(stream: Stream, t_ns: int) -> Stream:
    """Return the lines of a turning sensor from half a turn before a time to half a turn after."""
    near = stream.between(t_ns - TURN_NS, t_ns + TURN_NS + 1)
    angle = np.unwrap(np.asarray(near.column("angle"), dtype=np.float64))
    middle = int(np.argmin(np.abs(near.t_ns - t_ns)))
    within = np.flatnonzero(np.abs(angle - angle[middle]) <= np.pi)
    return near.between(int(near.t_ns[within[0]]), int(near.t_ns[within[-1]]) + 1)
