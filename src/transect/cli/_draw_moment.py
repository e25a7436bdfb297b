"""What `transect draw moment` shows: the samples of a recording's cameras and range sensors around a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from transect.draw.moment import FromAbove, Panel, Photo, Spectrum, moment_figure
from transect.errors import StreamError, TransectError
from transect.geometry import se3
from transect.geometry.planar import points_from_polar
from transect.recording import clocks
from transect.recording.clocks import NS
from transect.robots.colours import rgb_of
from transect.robots.overlay import ROLES, points_of
from transect.types import Image, LaserScan, PointCloud, RadarRange, RadarSpectrum

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from transect.recording import FrameTree, Recording, Stream

Floats = NDArray[np.float64]

KINDS = (Image, LaserScan, RadarSpectrum, RadarRange, PointCloud)
"""What has a picture, in the order of the pictures."""
FLIP = np.array([1.0, -1.0, -1.0])
"""From x forward, y right, z down to x forward, y left, z up."""
TURN_NS = NS
"""A radar's revolution is looked for so long before and after: slower radars give whole images."""


def moment_of(recording: Recording, time: str, patterns: Sequence[str], tolerance: float) -> Figure:
    """Return the figure of a moment, and say on stderr what is left out, and why."""
    chosen = recording.select(*patterns) if patterns else recording
    streams = [s for s in chosen.streams if s.type in KINDS and len(s) and (patterns or s.role in ROLES)]
    if not streams:
        raise StreamError(
            f"{recording.name} has no images, scans, radars or clouds to draw",
            why=f"none match {' or '.join(patterns)}" if patterns else "",
            hint="transect info PATH lists what there is",
        )
    clock = streams[0].clock
    t_ns = clocks.resolve(time, recording.spans()[clock][0], clock)
    moment = Moment(recording, clock, t_ns, tolerance)
    panels = list(_panels(moment, sorted(streams, key=lambda s: KINDS.index(s.type))))
    if not panels:
        raise StreamError(f"{recording.name} has nothing at {time}", hint="another --at, or more --tolerance")
    return moment_figure(panels, f"{recording.name} at {clocks.text_from_ns(t_ns, clock)}")


def _panels(moment: Moment, streams: Sequence[Stream]) -> list[Panel]:
    ranged = [s for s in streams if s.type is RadarRange]
    shown = {s.frame for s in streams if s.type is RadarSpectrum}
    panels: list[Panel] = []
    for stream in streams:
        if stream.type is RadarRange and stream.frame in shown:
            continue  # drawn into its spectrum
        try:
            found = [s for s in ranged if s.frame == stream.frame]
            panels.append(moment.panel(stream, found[0] if found else None))
        except TransectError as error:
            click.echo(f"left out: {stream.name}: {error.what}", err=True)
    return panels


@dataclass(frozen=True, eq=False)
class Moment:
    """A time of a recording, and how far from it a sample may be (s)."""

    recording: Recording
    clock: str
    t_ns: int
    tolerance: float

    def panel(self, stream: Stream, ranged: Stream | None = None) -> Panel:
        """Return what a stream saw; into a spectrum go the ranges that another stream found in it."""
        if stream.clock != self.clock:
            raise StreamError(f"it is on the {stream.clock} clock")
        dt = (stream.at(self.t_ns).t_ns - self.t_ns) / NS
        if abs(dt) > self.tolerance and self.clock != "index":
            raise StreamError(f"its nearest sample is {dt:+.3f} s away")
        if stream.type is RadarSpectrum:
            return self._spectrum(stream, ranged, dt)
        if stream.type is RadarRange:
            turn = revolution(stream, self.t_ns)
            return self._from_above(stream, points_from_polar(*turn.array("range", "angle").T), dt)
        value: Any = stream.at(self.t_ns).value
        if isinstance(value, Image):
            return Photo(stream.name, rgb_of(value), dt)
        return self._from_above(stream, points_of(self._returned(value)), dt)

    def _from_above(self, stream: Stream, points: Floats, dt: float) -> FromAbove:
        T, frame = self._placed(stream)
        by_height = stream.type is PointCloud
        return FromAbove(stream.name, self._upright(T, points), dt, by_height, frame)

    def _spectrum(self, stream: Stream, ranged: Stream | None, dt: float) -> Spectrum:
        value: RadarSpectrum = stream.at(self.t_ns).value
        T, frame = self._placed(stream)
        lines, angles = value.reflectivity, value.angle
        if lines.ndim == 1:
            turn = revolution(stream, self.t_ns)
            lines, angles = turn.column("reflectivity"), turn.column("angle")
        detected = None
        if ranged is not None and len(ranged):
            found = revolution(ranged, self.t_ns).array("angle", "range")
            detected = np.column_stack([self._bearings(T, found[:, 0]), found[:, 1]])
        bearings = self._bearings(T, np.atleast_1d(angles))
        return Spectrum(stream.name, np.atleast_2d(lines), bearings, value.ranges, dt, detected, frame)

    def _returned(self, value: Any) -> Any:
        """Return a scan without what is beyond its maximum: so SICK lasers say that nothing came back."""
        if not isinstance(value, LaserScan):
            return value
        robot = self.recording.robot
        laser = robot.constants.get("laser", {}) if robot is not None else {}
        limit = value.range_max or float(laser.get("maximum_range", np.inf))
        return dataclasses.replace(value, ranges=np.where(value.ranges < limit, value.ranges, np.nan))

    def _placed(self, stream: Stream) -> tuple[Floats, str]:
        """Return T_body_sensor and the body's name: the sensor's own where the robot does not know it."""
        robot = self.recording.robot
        if robot is not None and stream.frame in robot.frames.frames:
            body = _root(robot.frames, stream.frame)
            return robot.frames.lookup(body, stream.frame, self.t_ns, tolerance=float("inf")), body
        return np.eye(4), stream.frame or stream.name

    def _upright(self, T: Floats, points: Floats) -> Floats:
        """Return points x forward, y left, z up in the body."""
        robot = self.recording.robot
        return se3.apply(T, points) * (FLIP if robot is not None and robot.z_down else 1.0)

    def _bearings(self, T: Floats, angles: Floats) -> Floats:
        """Return bearings in the body, rad to the left, of beams in the sensor's x-y plane."""
        ahead = self._upright(T, points_from_polar(1.0, angles)) - self._upright(T, np.zeros((1, 3)))
        return np.arctan2(ahead[:, 1], ahead[:, 0])


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
