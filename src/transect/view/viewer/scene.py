"""The content of a recording for the viewer, and the motion of the robot."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.errors import FrameError, StreamError, TransectError
from transect.evaluation.positions.paths import EARTH, RecordedPath, path_of
from transect.evaluation.positions.scene_frame import (
    CAMERA_BODY,
    SceneFrame,
    ScenePath,
    centre_map,
    lay_first,
    lay_map,
)
from transect.evaluation.positions.streams import best_stream
from transect.geometry import se3
from transect.geometry.ground import VIEWS, forward_axis
from transect.recording import Recording, Stream
from transect.recording.arrow import unit_of
from transect.types import DepthMap, GridMap, Image, LaserScan, PointCloud

from ..axes import TimeAxis, find_axes

if TYPE_CHECKING:
    from .encoding import RobotMesh

PICTURES, POINTS, SURFACES = (Image, DepthMap), (LaserScan, PointCloud), (GridMap,)
KINDS: dict[str, tuple[type, ...]] = {"picture": PICTURES, "points": POINTS, "surface": SURFACES}
MAX_LIST_SIZE = 4
"""Longer lists are not plotted."""


def kind_of(sample: type) -> str:
    """Return the kind of view of a type: `picture`, `points`, `surface`; "" for numbers."""
    return next((name for name, types in KINDS.items() if sample in types), "")


@dataclass(frozen=True)
class ScalarColumn:
    """A column of numbers, or one element of a column of short lists."""

    column: str
    part: int | None  # index in the list
    unit: str

    @property
    def label(self) -> str:
        return self.column if self.part is None else f"{self.column}[{self.part}]"


@dataclass(frozen=True)
class ViewerScene:
    """A recording and the outputs of runs, on one time axis."""

    recording: Recording
    extra: tuple[RecordedPath, ...] = ()  # trajectories of runs
    # geometry of the robot; by default from its description
    solids: tuple[RobotMesh, ...] | None = field(default=None, compare=False)
    failures: tuple[str, ...] = ()  # why the results of runs are not trustworthy
    warnings: tuple[str, ...] = ()  # further warnings on runs, such as changed inputs

    @cached_property
    def axis(self) -> TimeAxis:
        """The time axis of most streams; an index axis if no stream has times."""
        axes, _ = find_axes(self.recording, "")
        if axes:
            return axes[0]
        most = max((len(stream) for stream in self.recording), default=0)
        if not most:
            raise StreamError(
                f"{self.recording.name} has nothing to show", why="none of its streams has samples"
            )
        return TimeAxis("", "index", 0, max(1, most - 1) * NS)

    @cached_property
    def streams(self) -> tuple[Stream, ...]:
        """Streams on the axis; images, points and maps first."""
        _, axis_of = find_axes(self.recording, "")
        shown = [s for s in self.recording if axis_of.get(s.name, self.axis) == self.axis and len(s)]
        return tuple(sorted(shown, key=lambda s: not kind_of(s.type)))

    def seconds(self, stream: Stream) -> Floats:
        """Return the times (n,) of a stream from the start, in recorded order."""
        if stream.clock != self.axis.clock or self.axis.clock == "index" or stream.meta.get("timeless"):
            return np.arange(len(stream), dtype=np.float64)
        return (stream.t_ns - self.axis.start_ns) / NS

    @cached_property
    def curves(self) -> tuple[tuple[ScalarColumn, ...], ...]:
        """The columns of each stream that can be plotted."""
        return tuple(_curves_of(stream) for stream in self.streams)

    # Paths

    @cached_property
    def _laid(self) -> tuple[SceneFrame, tuple[ScenePath, ...], dict[str, Floats]]:
        """The layout, the paths in it, and T_scene_frame (4, 4) of their frames."""
        found = [(path, "run", False) for path in self.extra]
        for stream in _position_streams(self.recording):
            kind, mounted = (
                stream.role if stream.role == "truth" else "measured",
                self._is_known(stream.child),
            )
            with suppress(StreamError):  # a stream without any position
                found.append((path_of(stream, stream.name), kind, mounted))
        usable = [each for each in found if each[0].clock == self.axis.clock and len(each[0].t_ns) > 1]
        if not usable:
            return SceneFrame(start_ns=self.axis.start_ns, z_down=self.z_down), (), {}
        first, *others = sorted(usable, key=_rank)
        layout, laid = lay_first(*first, self.axis.start_ns, self.z_down)
        paths, fixed = [laid], {layout.frame: layout.matrix}
        for path, kind, mounted in others:
            laid, matrix = layout.lay(path, kind, mounted)
            paths.append(laid)
            fixed.setdefault(path.frame, matrix)
        return layout, tuple(paths), fixed

    def _is_known(self, frame: str) -> bool:
        return bool(frame) and frame in self.recording.frames

    @property
    def layout(self) -> SceneFrame:
        """The poses of static frames."""
        return self._laid[0]

    @property
    def paths(self) -> tuple[ScenePath, ...]:
        """The trajectories of runs, measurements and ground truth, in one frame."""
        return self._laid[1]

    @property
    def is_north_up(self) -> bool:
        """Whether y is north for the whole scene."""
        return self.layout.is_north_up and all(path.related for path in self.paths)

    @property
    def carrier(self) -> int:
        """Index of the path that the robot follows: one with orientations, of a run only if no other has."""
        ranked = sorted(range(len(self.paths)), key=lambda k: self.paths[k].kind == "run")
        return min(ranked, key=lambda k: not self.paths[k].turned, default=-1)

    # Frames

    @property
    def z_down(self) -> bool:
        """Whether z of the robot points down."""
        return self.recording.robot is not None and self.recording.robot.z_down

    @cached_property
    def body(self) -> str:
        """The frame that moves along the paths."""
        tree = self.recording.frames
        moved = {s.child for s in _position_streams(self.recording) if s.child}
        known = [name for name in moved if name in tree.frames]
        return known[0] if known else next(iter(tree.roots), "")

    @cached_property
    def stance(self) -> Floats:
        """T_body_upright (4, 4) of a frame with x forward and z up."""
        path = self.paths[self.carrier] if self.paths else None
        if path is not None and path.turned and forward_axis(path.positions, path.orientations) == 2:
            return se3.from_quaternion(CAMERA_BODY, (0.0, 0.0, 0.0))
        return np.diag([1.0, -1.0, -1.0, 1.0]) if self.z_down else np.eye(4)

    def mount(self, frame: str, t_ns: int) -> Floats | None:
        """Return T_body_frame (4, 4) at a time; None if it is not known."""
        try:
            return self.recording.frames.lookup(self.body, frame, t_ns, tolerance=1.0)
        except FrameError:
            return None

    def locate(self, frame: str, t_ns: int) -> tuple[bool, Floats]:
        """Return whether a frame is fixed to the scene, and its pose (4, 4) there or on the robot."""
        mount, fixed = self.mount(frame, t_ns), self._laid[2]
        if mount is None and frame in fixed:
            return True, fixed[frame]
        return False, np.eye(4) if mount is None else mount

    def place_map(self, grid: GridMap, t_ns: int) -> tuple[tuple[bool, Floats], GridMap]:
        """Return the pose of a map, as `locate` does, and the map in local coordinates.

        A georeferenced map is placed under the path of a GNSS receiver, with its heights shifted to it, as
        they may have another datum. Without any path or frame a map is centred.

        Raises
        ------
        StreamError
            If the pose of the map is not known.
        """
        if grid.frame:
            fixed, place = self.locate(grid.frame, t_ns)
            if fixed or self.mount(grid.frame, t_ns) is not None:
                return (fixed, place), grid
        if self.layout.first is None:
            if len(self.recording.frames):
                raise StreamError("the pose of the map is not known", why=f"its frame is {grid.frame!r}")
            return (True, np.eye(4)), centre_map(grid)
        return (True, self.layout.matrix), lay_map(grid, self.layout) if grid.crs else grid

    @cached_property
    def frames(self) -> dict[str, Floats]:
        """The frames that are fixed to the body, with T_body_frame (4, 4)."""
        tree, found = self.recording.frames, {self.body} if self.body in self.recording.frames else set[str]()
        fixed = [{edge.parent, edge.child} for edge in tree.edges if not edge.moving]
        while new := [pair for pair in fixed if len(pair & found) == 1]:
            found = found.union(*new)
        return {name: tree.lookup(self.body, name) for name in sorted(found)}

    @cached_property
    def moving(self) -> tuple[str, ...]:
        """Frames that move relative to the body, such as those of an arm."""
        tree = self.recording.frames
        outside = {self.layout.frame, *(s.frame for s in _position_streams(self.recording))}
        above = set(tree.ancestry(self.body)[1:]) if self.body in tree else set[str]()
        hanging = (f for f in tree.frames if self.body in tree and self.body in tree.ancestry(f))
        return tuple(f for f in hanging if f not in self.frames and f not in outside | above)

    def place_moving(self, t_ns: int) -> Floats:
        """Return T_body_frame (n, 4, 4) of the moving frames; NaN if not known at that time."""
        unknown = np.full((4, 4), np.nan)
        found = [self.mount(name, t_ns) for name in self.moving]
        return np.array([unknown if each is None else each for each in found]).reshape(-1, 4, 4)


def _rank(each: tuple[RecordedPath, str, bool]) -> tuple[bool, ...]:
    """Rank paths as reference of the scene: with orientation and known north first, then GNSS."""
    path, kind, _ = each
    oriented, north = path.orientations is not None, path.frame.upper() in VIEWS
    return (not (oriented and north), path.frame != EARTH, not oriented, kind == "run")


def _position_streams(recording: Recording) -> list[Stream]:
    try:
        best = best_stream(recording)
    except TransectError:
        return []
    truth = recording.truth
    both = [best] if truth is None or truth.name == best.name else [best, truth]
    return [stream for stream in both if len(stream) > 1]


def _curves_of(stream: Stream) -> tuple[ScalarColumn, ...]:
    found: list[ScalarColumn] = []
    for name in stream.columns:
        entry = stream.table.schema.field(name)
        listed = pa.types.is_fixed_size_list(entry.type)
        inner = entry.type.value_type if listed else entry.type
        if not (pa.types.is_floating(inner) or pa.types.is_integer(inner)):
            continue
        if not listed:
            found.append(ScalarColumn(name, None, unit_of(entry)))
        elif entry.type.list_size <= MAX_LIST_SIZE:
            found += [ScalarColumn(name, part, unit_of(entry)) for part in range(entry.type.list_size)]
    return tuple(found)


def describe(scene: ViewerScene, solids: tuple[RobotMesh, ...] = ()) -> dict[str, Any]:
    """Return the description of a scene for the page, in types of JSON."""
    axis, tree = scene.axis, scene.recording.frames
    return {
        "name": scene.recording.name,
        "failures": list(scene.failures),
        "warnings": list(scene.warnings),
        "robot": scene.recording.robot.title if scene.recording.robot else "",
        "start": axis.start_text,
        "duration": axis.duration_s,
        "timed": axis.clock != "index",
        "body": scene.body,
        "z_down": scene.z_down,
        "stance": scene.stance.ravel().tolist(),
        "north": scene.is_north_up,
        "streams": [_describe_stream(scene, number) for number in range(len(scene.streams))],
        "paths": [{"name": path.name, "kind": path.kind} for path in scene.paths],
        "carrier": scene.carrier,
        "frames": [
            {"name": name, "parent": tree.parent_of(name), "matrix": place.ravel().tolist()}
            for name, place in scene.frames.items()
        ],
        "moving": [{"name": name, "parent": tree.parent_of(name)} for name in scene.moving],
        "solids": [solid.describe() for solid in solids],
    }


def _describe_stream(scene: ViewerScene, number: int) -> dict[str, Any]:
    stream = scene.streams[number]
    seconds, rate = scene.seconds(stream), stream.timing.rate
    return {
        "name": stream.name,
        "type": stream.type.__name__,
        "role": stream.role,
        "kind": kind_of(stream.type) or "numbers",
        "samples": len(stream),
        "rate": None if np.isnan(rate) else rate,
        "span": [float(seconds.min()), float(seconds.max())],
        "curves": [{"label": curve.label, "unit": curve.unit} for curve in scene.curves[number]],
    }
