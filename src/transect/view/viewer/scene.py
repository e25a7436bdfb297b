"""What of a recording a viewer can show, and how the robot moved meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.errors import FrameError, StreamError, TransectError
from transect.evaluation.paths import EARTH, RecordedPath, best_stream, path_of
from transect.geometry import geodesy, rotations
from transect.geometry.ground import forward_axis
from transect.recording import Recording, Stream
from transect.recording.arrow import unit_of
from transect.types import DepthMap, GridMap, Image, LaserScan, PointCloud

from ..axes import Axis, find_axes

PICTURES, POINTS = (Image, DepthMap), (LaserScan, PointCloud)
UP = np.array([0.0, 0.0, 1.0])
MOST_POSES = 20_000
"""Of a path that is sent to the page."""
WIDEST = 4
"""Numbers of a list that are plotted, each by itself."""


@dataclass(frozen=True)
class Curve:
    """A column of numbers, or one number of a short list.

    Attributes
    ----------
    column : str
    part : int or None
        Which number of a list.
    unit : str
    """

    column: str
    part: int | None
    unit: str

    @property
    def label(self) -> str:
        return self.column if self.part is None else f"{self.column}[{self.part}]"


@dataclass(frozen=True)
class Path:
    """Where something went.

    Attributes
    ----------
    name, kind : str
        The kind is `truth`, `measured` or `run`.
    seconds : (n,) array
        After the start of the scene.
    positions : (n, 3) array
        Metres from the scene's origin.
    orientations : (n, 4) array
        x, y, z, w; of a path that has none, as it moves.
    """

    name: str
    kind: str
    seconds: Floats
    positions: Floats
    orientations: Floats


@dataclass(frozen=True)
class Scene:
    """A recording, and what runs made of it, over one stretch of time.

    Attributes
    ----------
    recording : Recording
    extra : tuple of RecordedPath
        Paths of runs.
    """

    recording: Recording
    extra: tuple[RecordedPath, ...] = ()

    @cached_property
    def axis(self) -> Axis:
        """The stretch of time of most streams; numbers of samples where nothing has a time."""
        axes, _ = find_axes(self.recording, "")
        if axes:
            return axes[0]
        most = max((len(stream) for stream in self.recording), default=0)
        if not most:
            raise StreamError(
                f"{self.recording.name} has nothing to show", why="none of its streams has samples"
            )
        return Axis("", "index", 0, max(1, most - 1) * NS)

    @cached_property
    def streams(self) -> tuple[Stream, ...]:
        """Streams on the axis, pictures and points first."""
        _, axis_of = find_axes(self.recording, "")
        there = [s for s in self.recording if axis_of.get(s.name, self.axis) == self.axis]
        shown = [s for s in there if s.type is not GridMap and len(s)]
        return tuple(sorted(shown, key=lambda s: s.type not in (*PICTURES, *POINTS)))

    def seconds(self, stream: Stream) -> Floats:
        """Return the times (n,) of a stream after the start, in the order recorded."""
        if stream.clock != self.axis.clock or self.axis.clock == "index":
            return np.arange(len(stream), dtype=np.float64)
        return (stream.t_ns - self.axis.start_ns) / NS

    @cached_property
    def curves(self) -> tuple[tuple[Curve, ...], ...]:
        """What can be plotted of each stream."""
        return tuple(_curves_of(stream) for stream in self.streams)

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """Where the robot went, by runs, by what measured it and by truth, all in the frame of the first.

        The robot is drawn on the first, which has orientations if any has.
        """
        found = [(path, "run") for path in self.extra]
        for stream in _position_streams(self.recording):
            kind = "truth" if stream.role == "truth" else "measured"
            found.append((path_of(stream, stream.name), kind))
        found.sort(key=lambda each: each[0].orientations is None)
        usable = [each for each in found if each[0].clock == self.axis.clock and len(each[0].t_ns) > 1]
        if not usable:
            return ()
        alike = [each for each in usable if each[0].frame == usable[0][0].frame]
        laid = [_lay(path, kind, self.axis, alike[0][0].places[0]) for path, kind in alike]
        up = _upward(laid[0], alike[0][0], self.z_down)
        return tuple(_level(path, rotations.rotation_between(up, UP)) for path in laid)

    @property
    def z_down(self) -> bool:
        """Whether z of the robot points down."""
        return self.recording.robot is not None and self.recording.robot.z_down

    @property
    def body(self) -> str:
        """The frame that moves along the first path."""
        tree = self.recording.frames
        moved = {s.child for s in _position_streams(self.recording) if s.child}
        known = [name for name in moved if name in tree.frames]
        return known[0] if known else next(iter(tree.roots), "")

    def mount(self, stream: Stream, t_ns: int) -> Floats:
        """Return T_body_sensor (4, 4); that of no rotation where the frames do not tell."""
        try:
            return self.recording.frames.lookup(self.body, stream.frame, t_ns, tolerance=1.0)
        except FrameError:
            return np.eye(4)

    def frames(self) -> list[tuple[str, Floats]]:
        """Return each frame that does not move on the robot, with T_body_frame (4, 4)."""
        tree, found = self.recording.frames, list[tuple[str, Floats]]()
        for name in tree.frames:
            try:
                found.append((name, tree.lookup(self.body, name)))
            except FrameError:
                continue  # it moves, or hangs on nothing
        return found


def _position_streams(recording: Recording) -> list[Stream]:
    try:
        best = best_stream(recording)
    except TransectError:
        return []
    truth = recording.truth
    both = [best] if truth is None or truth.name == best.name else [best, truth]
    return [stream for stream in both if len(stream) > 1]


def _curves_of(stream: Stream) -> tuple[Curve, ...]:
    found: list[Curve] = []
    for name in stream.columns:
        entry = stream.table.schema.field(name)
        listed = pa.types.is_fixed_size_list(entry.type)
        inner = entry.type.value_type if listed else entry.type
        if not (pa.types.is_floating(inner) or pa.types.is_integer(inner)):
            continue
        if not listed:
            found.append(Curve(name, None, unit_of(entry)))
        elif entry.type.list_size <= WIDEST:
            found += [Curve(name, part, unit_of(entry)) for part in range(entry.type.list_size)]
    return tuple(found)


def _lay(path: RecordedPath, kind: str, axis: Axis, origin: Floats) -> Path:
    """Return a path in metres from an origin, which is a place in the path's frame."""
    on_earth = path.frame == EARTH
    places = geodesy.local_from_geodetic(path.places, origin) if on_earth else path.places - origin
    step = max(1, -(-len(places) // MOST_POSES))
    places, t_ns = places[::step], path.t_ns[::step]
    turned = path.orientations[::step] if path.orientations is not None else _headings(places)
    return Path(path.name, kind, (t_ns - axis.start_ns) / NS, places, turned)


def _upward(path: Path, recorded: RecordedPath, z_down: bool) -> Floats:
    """Return the axis (3,) of a path's frame that points up, as the body that went along it stood."""
    if recorded.orientations is None:
        return -UP if recorded.frame == "NED" else UP
    camera = forward_axis(path.positions, path.orientations) == 2
    body = np.array([0.0, -1.0, 0.0]) if camera else -UP if z_down else UP
    mean = rotations.rotate(path.orientations, np.broadcast_to(body, path.positions.shape)).mean(axis=0)
    axis = int(np.argmax(np.abs(mean)))
    return np.eye(3)[axis] * np.sign(mean[axis])


def _level(path: Path, R: Floats) -> Path:
    turn = rotations.quaternion_from_matrix(R)
    turned = rotations.multiply(np.broadcast_to(turn, path.orientations.shape), path.orientations)
    return replace(path, positions=path.positions @ R.T, orientations=turned)


def _headings(places: Floats) -> Floats:
    """Return orientations (n, 4) that look where a path goes next; where it stands, as it stood before."""
    step = np.gradient(places[:, :2], axis=0)
    moving = np.hypot(step[:, 0], step[:, 1]) > 1e-4
    last: Ints = np.maximum.accumulate(np.where(moving, np.arange(len(step)), 0))
    heading = np.arctan2(step[last, 1], step[last, 0])
    zeros = np.zeros(len(heading))
    return np.column_stack([zeros, zeros, np.sin(heading / 2), np.cos(heading / 2)])


def describe(scene: Scene) -> dict[str, Any]:
    """Return what the page is told of a scene when it opens, as JSON can hold it."""
    axis = scene.axis
    return {
        "name": scene.recording.name,
        "robot": scene.recording.robot.title if scene.recording.robot else "",
        "start": axis.start_text,
        "duration": axis.duration_s,
        "timed": axis.clock != "index",
        "body": scene.body,
        "z_down": scene.z_down,
        "streams": [_describe_stream(scene, number) for number in range(len(scene.streams))],
        "paths": [{"name": path.name, "kind": path.kind} for path in scene.paths],
        "frames": [{"name": name, "matrix": place.ravel().tolist()} for name, place in scene.frames()],
    }


def _describe_stream(scene: Scene, number: int) -> dict[str, Any]:
    stream = scene.streams[number]
    seconds, rate = scene.seconds(stream), stream.timing.rate
    kinds = {"picture": PICTURES, "points": POINTS}
    return {
        "name": stream.name,
        "type": stream.type.__name__,
        "role": stream.role,
        "kind": next((name for name, types in kinds.items() if stream.type in types), "numbers"),
        "samples": len(stream),
        "rate": None if np.isnan(rate) else rate,
        "span": [float(seconds.min()), float(seconds.max())],
        "curves": [{"label": curve.label, "unit": curve.unit} for curve in scene.curves[number]],
    }
