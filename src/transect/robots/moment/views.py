"""Views of streams in `transect draw moment`, with their data from a recording."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.base.arrays import Bytes, Floats
from transect.base.clocks import NS
from transect.draw.moment import (
    CombinedPointPanel,
    CurvePanel,
    FieldPanel,
    ImagePanel,
    Panel,
    PixelRowPanel,
    PointPanel,
    RangePanel,
    SpectrumPanel,
    WaterfallPanel,
)
from transect.errors import StreamError, UsageError
from transect.geometry import se3
from transect.geometry.colours import rgb_of
from transect.geometry.planar import points_from_polar
from transect.recording import arrow
from transect.types import GridMap, Image, LaserScan, PointCloud, RadarRange, RadarSpectrum, Record

from ..overlay import points_of, refuse_clock, sample_near

if TYPE_CHECKING:
    from transect.recording import Recording, Stream

COMBINABLE_VIEWS = ("above", "side", "dots", "lines")
"""Views of several streams."""
MAX_VERTICAL_ASPECT = 0.05
"""Largest ratio of width to length, seen from above, of a scan in a vertical plane."""
LANDMARK_COLUMNS = ("kind", "x", "y", "z", "size")
"""Columns of a table of landmarks: kind, position in the world, and half of the extents, m."""
MAX_LANDMARK_DISTANCE_M = 0.15
"""Between a return and the surface of its landmark."""


def make_panel(moment: Moment, streams: Sequence[Stream], view: str) -> Panel:
    """Return the panel of streams; the view is one of the first stream, or a column `Y`, or `Y~X`."""
    first = streams[0]
    views = VIEWS.get(first.type, {})
    if view in views or (not view and views):
        chosen = view or next(iter(views))
        if len(streams) > 1 and chosen not in COMBINABLE_VIEWS:
            raise UsageError(f"--panel cannot draw several streams as {chosen}", hint="one --panel for each")
        return views[chosen](moment, *streams)
    y, _, x = view.partition("~")
    if y and all(name in stream.columns for stream in streams for name in (y, x) if name):
        return plot_columns(moment, streams, y, x)
    there = [*views, *(name for name in first.columns if not name.startswith("_"))]
    raise UsageError(
        f"{first.name} has no view {view!r}" if view else f"{first.name} needs a view",
        hint=f"--panel {first.name}:VIEW, where VIEW is one of {', '.join(there)}",
    )


def show_image(moment: Moment, stream: Stream, marked: bool = False) -> ImagePanel:
    """Return the image, optionally with a mark at the pixel row of other views."""
    value, dt = moment.sample(stream)
    rgb = rgb_of(value)
    return ImagePanel(moment.title(stream), rgb, _row_index(moment, rgb) if marked else None, dt=dt)


def show_row(moment: Moment, stream: Stream) -> PixelRowPanel:
    """Return red, green and blue along a row of all images."""
    part = moment.part(stream)
    said = f"{len(part)} images" if len(part) > 1 else ""
    return PixelRowPanel(moment.title(stream, said), _rows(moment, part))


def show_rows_over_time(moment: Moment, stream: Stream) -> WaterfallPanel:
    """Return a row of all images over time."""
    part = moment.part(stream, whole=True)
    rows = _rows(moment, part)
    pixels = np.arange(rows.shape[1], dtype=np.float64)
    return WaterfallPanel(moment.title(stream), rows, moment.seconds(part), pixels, "pixel")


def _row_index(moment: Moment, rgb: Bytes) -> int:
    return min(int(moment.choice.row * len(rgb)), len(rgb) - 1)


def _rows(moment: Moment, part: Stream) -> Bytes:
    """Return the same row of all images, (k, w, 3); only one image is in memory at a time."""
    images = (rgb_of(sample.value) for sample in part)
    found = [rgb[_row_index(moment, rgb)].copy() for rgb in images]
    if len({len(row) for row in found}) > 1:
        raise StreamError(f"{part.name} has images of different sizes")
    return np.stack(found)


def show_map(moment: Moment, stream: Stream) -> FieldPanel:
    """Return the first layer of a map, or of a depth image."""
    value: GridMap
    value, dt = (stream[0].value, None) if len(stream) == 1 else moment.sample(stream)
    layer, raster = next(iter(value.layers.items()))
    name, values = moment.title(stream), np.asarray(raster, np.float64)
    a, b, x, d, e, y = value.transform
    if (a, b, x, d, e, y) == (1, 0, 0, 0, 1, 0):
        return FieldPanel(name, values, "depth [m]", dt=dt)
    h, w = values.shape
    return FieldPanel(name, values, f"{layer} [m]", (x, x + a * w, y + e * h, y), dt=dt)


def plot_columns(moment: Moment, streams: Sequence[Stream], y: str, x: str = "") -> CurvePanel:
    """Return a column over time, or over another column."""

    def label(name: str) -> str:
        unit = streams[0].units.get(name, "")
        return f"{name} [{unit}]" if unit else name

    parts = [moment.part(stream, whole=True) for stream in streams]
    curves = tuple(
        (part.name, part.array(x)[:, 0] if x else moment.seconds(part), part.array(y)[:, 0]) for part in parts
    )
    said = f"{y} over {x}" if x else y
    name = moment.title(streams[0], said) if len(streams) == 1 else f"{moment.heading}{said}"
    return CurvePanel(name, curves, label(x) if x else "time [s]", label(y))


def show_points(
    moment: Moment, *streams: Stream, side: bool | None = None
) -> PointPanel | CombinedPointPanel:
    """Return the points from above or from the right side; None: only vertical scans from the side."""
    parts = [_points(moment, stream, side) for stream in streams if stream.type is not Record]
    if len(streams) == 1:
        return parts[0]
    landmarks = _find_landmarks(moment, streams, np.concatenate([part.points for part in parts]))
    said = "returns and landmarks (+)" if landmarks else "returns"
    return CombinedPointPanel(f"{moment.heading}{said}", tuple(parts), landmarks)


def _points(moment: Moment, stream: Stream, side: bool | None) -> PointPanel:
    T, frame = moment.mounting(stream)
    is_cloud = stream.type is PointCloud
    if not is_cloud and stream.type not in (LaserScan, RadarRange):
        raise StreamError(f"{stream.name} has no points")
    value, dt = moment.sample(stream) if is_cloud or not moment.window else (None, None)
    points = moment.upright(T, points_of(value) if is_cloud else _cartesian(_polar(moment, stream)))
    if side is None:
        valid = points[np.isfinite(points).all(axis=1)]
        length, width, height = np.ptp(valid, axis=0) if len(valid) else np.zeros(3)
        side = stream.type is LaserScan and bool(width < MAX_VERTICAL_ASPECT * max(length, height))
    on_body = moment.is_mounted(stream)
    return PointPanel(moment.title(stream), points, is_cloud, frame, side, on_body, dt=dt)


def _polar(moment: Moment, stream: Stream) -> list[Floats]:
    """Return angle and range (n, 2) of each scan or turn; the range is NaN for beams without return."""
    part = moment.part(stream)
    if stream.type is RadarRange:
        found = part.array("angle", "range")
        return np.split(found, np.flatnonzero(np.abs(np.diff(found[:, 0])) > np.pi) + 1)
    scans: list[LaserScan] = [sample.value for sample in part]
    return [np.column_stack([scan.angles, scan.measured]) for scan in scans]


def _cartesian(polar: Sequence[Floats]) -> Floats:
    angles, ranges = np.concatenate(polar).T
    return points_from_polar(ranges, angles)


def _find_landmarks(
    moment: Moment, streams: Sequence[Stream], points: Floats
) -> tuple[tuple[str, Floats], ...]:
    """Return names and positions (3,) in the body of landmarks near the points (n, 3)."""
    found: list[tuple[str, Floats]] = []
    for stream in streams:
        if stream.type is not Record:
            continue
        if not {*LANDMARK_COLUMNS} <= {*stream.columns} or moment.recording.truth is None:
            raise StreamError(
                f"{stream.name} has no {', '.join(LANDMARK_COLUMNS)}, or there is no true trajectory"
            )
        true = moment.recording.truth.at(moment.t_ns).value
        T_body_world = se3.invert(se3.from_quaternion(true.orientation, true.position))
        positions = se3.apply(T_body_world, stream.array("x", "y", "z"))
        wide = np.asarray(stream.column("size"), dtype=np.float64)[:, :2].max(axis=1)
        for name, position, half in zip(arrow.texts(stream.table, "kind"), positions, wide, strict=True):
            if (np.hypot(*(points - position)[:, :2].T) <= MAX_LANDMARK_DISTANCE_M + half).any():
                found.append((name, position))
    return tuple(found)


def show_ranges(moment: Moment, stream: Stream, *others: Stream, lines: bool = False) -> RangePanel:
    """Return ranges over bearing as dots or as lines, which leave the axes at beams without return.

    One of the others may be a laser or a radar, whose returns are drawn relative to the first sensor.
    """
    peers = [other for other in others if other.type is not Record]
    if len(peers) > 1:
        names = ", ".join(peer.name for peer in peers)
        raise UsageError(f"{names} cannot all be drawn into {stream.name}", hint="one --panel for each")
    T, frame = moment.mounting(stream)
    polar = _polar(moment, stream)
    scans = [np.column_stack([moment.bearings(T, each[:, 0]), each[:, 1]]) for each in polar]
    word = "turn" if stream.type is RadarRange else "scan"
    said = f"{len(scans)} {word}{'s' if len(scans) > 1 else ''}"
    landmarks = _find_landmarks(moment, others, moment.upright(T, _cartesian(polar)))
    origin = moment.upright(T, np.zeros((1, 3)))[0]
    at = tuple((name, _polar_from(origin, position[None])[0]) for name, position in landmarks)
    name, rings = "", None
    for peer in peers:
        name = peer.name
        rings = _polar_from(origin, _points(moment, peer, side=False).points)
    return RangePanel(moment.title(stream, said), scans, lines, frame, at, peer=name, rings=rings)


def _polar_from(origin: Floats, points: Floats) -> Floats:
    """Return bearing (rad to the left) and horizontal distance (n, 2) of points (n, 3) in the body."""
    x, y = (points - origin)[:, :2].T
    return np.column_stack([np.arctan2(y, x), np.hypot(x, y)])


def show_scans_over_time(moment: Moment, stream: Stream) -> WaterfallPanel:
    """Return the range of each beam over time; the nearest beam for interleaved scans."""
    part = moment.part(stream, whole=True)
    T, _ = moment.mounting(stream)
    scans: list[LaserScan] = [sample.value for sample in part]
    grid = max((scan.angles for scan in scans), key=len)
    nearest = [np.abs(scan.angles - grid[:, None]).argmin(axis=1) for scan in scans]
    ranges = np.stack([scan.measured[at] for scan, at in zip(scans, nearest, strict=True)])
    bearings = moment.bearings(T, grid)
    order = np.argsort(-bearings, kind="stable")
    name, seconds = moment.title(stream), moment.seconds(part)
    return WaterfallPanel(name, ranges[:, order], seconds, bearings[order], "bearing", "range [m]")


def show_spectrum(moment: Moment, stream: Stream) -> SpectrumPanel:
    """Return a revolution of a radar with the detections of the vehicle's software."""
    value, dt = moment.sample(stream)
    T, frame = moment.mounting(stream)
    rows, angles = value.reflectivity, value.angle
    if rows.ndim == 1:
        turn = revolution(stream, moment.t_ns)
        rows, angles = turn.column("reflectivity"), turn.column("angle")
    bearings = moment.bearings(T, np.atleast_1d(angles))
    detected = None
    found = [s for s in moment.recording.streams if s.type is RadarRange and s.frame == stream.frame]
    if found := [s for s in found if len(s)]:
        angle, distance = revolution(found[0], moment.t_ns).array("angle", "range").T
        detected = np.column_stack([moment.bearings(T, angle), distance])
    name = moment.title(stream)
    return SpectrumPanel(name, np.atleast_2d(rows), bearings, value.ranges, detected, frame, dt=dt)


def show_spectra_over_time(moment: Moment, stream: Stream) -> WaterfallPanel:
    """Return the spectra of all bearings over time."""
    part = moment.part(stream, whole=True)
    value: RadarSpectrum = part[0].value
    if value.reflectivity.ndim > 1:
        raise StreamError(f"{stream.name} has whole turns, whose lines have no times")
    rows = np.stack([sample.value.reflectivity for sample in part])
    name = moment.title(stream)
    return WaterfallPanel(name, rows, moment.seconds(part), value.ranges, "range", "reflectivity")


POINTS = {"above": show_points, "side": partial(show_points, side=True)}
RANGES = {"dots": show_ranges, "lines": partial(show_ranges, lines=True)}
VIEWS: Mapping[type, Mapping[str, Callable[..., Panel]]] = {
    Image: {
        "image": show_image,
        "marked": partial(show_image, marked=True),
        "row": show_row,
        "time": show_rows_over_time,
    },
    LaserScan: {**POINTS, **RANGES, "time": show_scans_over_time},
    RadarRange: {"above": show_points, **RANGES},
    RadarSpectrum: {"spectrum": show_spectrum, "time": show_spectra_over_time},
    PointCloud: POINTS,
    GridMap: {"map": show_map},
}
"""The first view of each type is the default."""


FLIP = np.array([1.0, -1.0, -1.0])
"""From x forward, y right, z down to x forward, y left, z up."""
MAX_REVOLUTION_NS = NS
"""Of a radar with single lines; slower radars have whole images."""


@dataclass(frozen=True)
class MomentOptions:
    """Selection of streams, times and views of each recording."""

    # patterns of stream names, each with its default view
    streams: tuple[str, ...] = ()
    # panels in this order instead: ``STREAM[:VIEW]``, or ``STREAM+STREAM`` for both in one
    panels: tuple[str, ...] = ()
    times: tuple[str, ...] = ()  # default: the start
    # start, end: time window of views over time
    start: str | None = None
    end: str | None = None
    tolerance: float = 0.5  # largest time between a sample and the moment, s
    row: float = 0.5  # of images, as a fraction of their height
    # sector, reach: largest drawn bearing (degrees) and range (m)
    sector: float | None = None
    reach: float | None = None
    title: str | None = None  # default: the recordings and the time
    columns: int | None = None  # number of panels side by side


@dataclass(frozen=True, eq=False)
class Moment:
    """A time of a recording."""

    recording: Recording
    clock: str
    t_ns: int  # on `clock`
    choice: MomentOptions = MomentOptions()
    # (int, int) or None, start and exclusive end of the time window, ns
    window: tuple[int, int] | None = None
    heading: str = ""  # text before the names of streams
    first_ns: int = 0  # origin of the time axis

    def title(self, stream: Stream, said: str = "") -> str:
        """Return the title of a panel."""
        return f"{self.heading}{stream.name}{', ' if said else ''}{said}"

    def sample(self, stream: Stream) -> tuple[Any, float | None]:
        """Return the value nearest to the moment, and its time difference in s, None without times."""
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
        """Return the times (n,) of samples since the start of the recording, s."""
        return (stream.t_ns - self.first_ns) / NS

    def is_mounted(self, stream: Stream) -> bool:
        """Whether the mounting of the sensor on the robot, and so the forward direction, is known."""
        robot = self.recording.robot
        return robot is not None and stream.frame in robot.frames.frames

    def mounting(self, stream: Stream) -> tuple[Floats, str]:
        """Return T_body_sensor and the name of the body, or identity and the sensor frame if unknown."""
        robot = self.recording.robot
        if robot is not None and self.is_mounted(stream):
            body = robot.frames.ancestry(stream.frame)[-1]
            return robot.frames.lookup(body, stream.frame, self.t_ns, tolerance=float("inf")), body
        return np.eye(4), stream.frame or stream.name

    def is_level(self, stream: Stream) -> bool:
        """Whether the scan plane of a sensor is closer to horizontal than to vertical."""
        T, _ = self.mounting(stream)
        return abs(float(T[2, 2])) > np.sqrt(0.5)

    def upright(self, T: Floats, points: Floats) -> Floats:
        """Return points (n, 3) x forward, y left, z up in the body."""
        robot = self.recording.robot
        points = np.where(np.isfinite(points), points, np.nan)
        return se3.apply(T, points) * (FLIP if robot is not None and robot.z_down else 1.0)

    def bearings(self, T: Floats, angles: Floats) -> Floats:
        """Return bearings in the body, rad to the left, of beams in the sensor's x-y plane."""
        ahead = self.upright(T, points_from_polar(1.0, angles)) - self.upright(T, np.zeros((1, 3)))
        return np.arctan2(ahead[:, 1], ahead[:, 0])


def revolution(stream: Stream, t_ns: int) -> Stream:
    """Return the lines of a rotating sensor from half a turn before to half a turn after a time."""
    near = stream.between(t_ns - MAX_REVOLUTION_NS, t_ns + MAX_REVOLUTION_NS + 1)
    angle = np.unwrap(np.asarray(near.column("angle"), dtype=np.float64))
    middle = int(np.argmin(np.abs(near.t_ns - t_ns)))
    within = np.flatnonzero(np.abs(angle - angle[middle]) <= np.pi)
    return near.between(int(near.t_ns[within[0]]), int(near.t_ns[within[-1]]) + 1)
