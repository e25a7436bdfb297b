"""Paths and maps in the frame of a 3-D scene: metres, z up, from the start of the first path."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.errors import GeometryError, StreamError
from transect.geometry import align, geodesy, rotations, se3
from transect.geometry.ground import VIEWS, forward_axis
from transect.types import GridMap

from .common_frame import ground_of
from .paths import EARTH, RecordedPath

UP = np.array([0.0, 0.0, 1.0])
MAX_POSES = 20_000  # of a path that is sent to the page
CAMERA_BODY = np.array([0.5, -0.5, 0.5, 0.5])
"""Quaternion x, y, z, w that takes x forward, y left, z up to a camera's x right, y down, z forward."""
MIN_COMMON_TIMES = 3  # of two paths that are aligned
MIN_PATH_M = 1.0  # of a path whose heading is aligned
MAX_PAIRS = 500  # common times by which two paths are aligned


@dataclass(frozen=True)
class ScenePath:
    """A path in the scene."""

    # The kind is `truth`, `measured` or `run`
    name: str
    kind: str
    seconds: Floats  # (n,) array, after the start of the scene
    positions: Floats  # (n, 3) array, metres from the scene's origin
    orientations: Floats  # (n, 4) array; x, y, z, w; of a path that has none, as it moves
    turned: bool = True  # whether the orientations were measured
    # Whether the rotation about the vertical between its frame and the scene is known
    related: bool = True

    def pose(self, seconds: float) -> Floats:
        """Return T_scene_body (4, 4) at the pose nearest to a time."""
        k = int(np.clip(np.searchsorted(self.seconds, seconds), 0, len(self.seconds) - 1))
        return se3.from_quaternion(self.orientations[k], self.positions[k])

    def places(self, seconds: Floats) -> Floats:
        """Return where it was (n, 3) at times."""
        return np.column_stack([np.interp(seconds, self.seconds, self.positions[:, k]) for k in range(3)])


@dataclass(frozen=True)
class SceneFrame:
    """Where the frames lie that do not move."""

    frame: str = ""  # of the first path; "Earth" for latitudes and longitudes
    origin: Floats | None = None  # (3,) array, the place in that frame from which metres count
    level: Floats | None = None  # (3, 3) array, turns that frame's axes so that z is up
    start_ns: int = 0  # second 0
    z_down: bool = False  # whether z of the robot points down
    first: ScenePath | None = None  # by which frames without a known place are laid

    @property
    def is_north_up(self) -> bool:
        """Whether y is north and x is east."""
        return self.frame == EARTH or self.frame.upper() in VIEWS

    @property
    def matrix(self) -> Floats:
        """T_scene_frame (4, 4) of the first path's frame; as it is, without a path or on the Earth."""
        if self.origin is None or self.level is None or self.frame == EARTH:
            return np.eye(4)
        return se3.from_matrix(self.level, -self.level @ self.origin)

    def lay(self, path: RecordedPath, kind: str, mounted: bool = False) -> tuple[ScenePath, Floats]:
        """Return a path in the scene, and T_scene_frame (4, 4) of its frame.

        A camera whose place on the robot is not known (`mounted`) is taken for the robot, x forward and z up.
        """
        step = max(1, -(-len(path.t_ns) // MAX_POSES))
        seconds, places = (path.t_ns[::step] - self.start_ns) / NS, path.places[::step]
        orientations = None if path.orientations is None else path.orientations[::step]
        if path.frame == EARTH:
            origin = self.origin if self.frame == EARTH and self.origin is not None else path.places[0]
            places = geodesy.local_from_geodetic(places, origin)
        matrix, related = self._relate(path.frame, seconds, places, orientations)
        places = se3.apply(matrix, places)
        if orientations is None:
            return ScenePath(
                path.name, kind, seconds, places, head_along(places, self.z_down), False, related
            ), matrix
        turn = rotations.quaternion_from_matrix(matrix[:3, :3])
        orientations = orientations if mounted else stand_up(path.places[::step], orientations)
        orientations = rotations.multiply(np.broadcast_to(turn, orientations.shape), orientations)
        return ScenePath(path.name, kind, seconds, places, orientations, related=related), matrix

    def place(
        self, frame: str, seconds: Floats, places: Floats, orientations: Floats | None,
        mount: Floats | None = None,
    ) -> Floats:  # fmt: skip
        """Return T_scene_frame (4, 4) of a path's frame.

        A frame of its own is laid by the first path: so that the first common pose is the same where both
        have orientations, else turned about the vertical and moved at their common times, else from their
        start.

        Parameters
        ----------
        seconds, places, turned
            The path (n,), (n, 3), (n, 4) in that frame, or what there is of it so far.
        mount : (4, 4) array, optional
            T_body_child, where the path is that of a sensor.
        """
        return self._relate(frame, seconds, places, orientations, mount)[0]

    def _relate(
        self, frame: str, seconds: Floats, places: Floats, orientations: Floats | None,
        mount: Floats | None = None,
    ) -> tuple[Floats, bool]:  # fmt: skip
        """Return what `place` does, and whether something tells how the frame is turned."""
        if self.origin is not None and frame == self.frame:
            return self.matrix, True
        if self.first is None or not len(seconds):
            level = rotations.rotation_between(upward(places, orientations, frame), UP)
            return se3.from_matrix(level, (0.0, 0.0, 0.0)), True
        first = self.first
        common = np.flatnonzero((seconds >= first.seconds[0]) & (seconds <= first.seconds[-1]))
        if len(common) and orientations is not None and first.turned:
            begun = common[0]
            orientations = stand_up(places, orientations) if mount is None else orientations
            own = se3.from_quaternion(orientations[begun], places[begun])
            body = first.pose(float(seconds[begun])) @ (np.eye(4) if mount is None else mount)
            return body @ se3.invert(own), True
        named = self.is_north_up and (frame == EARTH or frame.upper() in VIEWS)
        matrix, fitted = _fit(first, frame, seconds, places, orientations, common)
        return matrix, named or fitted


def _fit(
    first: ScenePath, frame: str, seconds: Floats, places: Floats, orientations: Floats | None, common: Ints
) -> tuple[Floats, bool]:
    """Turn a path about the vertical and move it onto another one at their common times.

    Returns the matrix, and whether the path was turned: one that is too short can only be moved.
    """
    level = se3.from_matrix(
        rotations.rotation_between(upward(places, orientations, frame), UP), (0.0, 0.0, 0.0)
    )
    common = common[:: max(1, len(common) // MAX_PAIRS)]
    chosen = common if len(common) >= MIN_COMMON_TIMES else np.zeros(1, np.int64)
    own, other = se3.apply(level, places[chosen]), first.places(seconds[chosen])
    if (
        len(chosen) >= MIN_COMMON_TIMES
        and np.ptp(own[:, :2], axis=0).max() > MIN_PATH_M
        and frame.upper() not in VIEWS
    ):
        try:
            return align.yaw(own, other).matrix @ level, True
        except GeometryError:  # they do not move together: moved, and not turned
            pass
    return se3.from_matrix(np.eye(3), (other - own).mean(axis=0)) @ level, False


def stand_up(places: Floats, orientations: Floats) -> Floats:
    """Return orientations (n, 4) of what moves along its own z, as a camera does, with x forward and z up."""
    if forward_axis(places, orientations) != 2:
        return orientations
    return rotations.multiply(orientations, np.broadcast_to(CAMERA_BODY, orientations.shape))


def lay_first(
    path: RecordedPath, kind: str, mounted: bool, start_ns: int, z_down: bool
) -> tuple[SceneFrame, ScenePath]:
    """Return the layout that begins with a path, and that path in it."""
    origin = path.places[0]
    level = np.eye(3)
    if path.frame != EARTH:
        level = _north_up(path.frame)
        if level is None:
            up = upward(path.places, path.orientations, path.frame, z_down)
            level = rotations.rotation_between(up, UP)
    layout = SceneFrame(path.frame, origin, level, start_ns, z_down)
    laid, _ = layout.lay(path, kind, mounted)
    return replace(layout, first=laid), laid


def _north_up(frame: str) -> Floats | None:
    """Return what turns axes whose names are known to east, north, up (3, 3)."""
    known = {
        "ENU": np.eye(3),
        "NED": np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, -1]]),
        "NWU": np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]),
    }
    return known.get(frame.upper())


def centre_map(grid: GridMap) -> GridMap:
    """Return a map about its own middle and lowest cell."""
    layer = grid.layers.get("elevation", next(iter(grid.layers.values())))
    a, b, c, d, e, f = grid.transform
    rows, columns = layer.shape
    x, y = (a * columns + b * rows) / 2 + c, (d * columns + e * rows) / 2 + f
    low = float(np.min(layer[np.isfinite(layer)], initial=np.inf))
    low = low if math.isfinite(low) else 0.0
    return _raise(replace(grid, transform=(a, b, c - x, d, e, f - y), crs=""), -low)


def lay_map(grid: GridMap, layout: SceneFrame) -> GridMap:
    """Return a map of the Earth in metres of a layout that begins with a receiver's path."""
    from transect.draw.tracks import PlottedTrack

    assert layout.first is not None
    assert layout.origin is not None
    if layout.frame != EARTH:
        raise StreamError(
            "the map cannot be placed", why=f"it is of the Earth ({grid.crs[:60]}), and no path has fixes"
        )
    places = layout.first.positions
    ground = ground_of(grid, layout.origin, [PlottedTrack("", places[:, :2], None)])
    moved = replace(grid, transform=ground.transform, crs="")
    heights = _heights_at(moved, places)
    known = np.isfinite(heights)
    return _raise(moved, float(np.median((places[:, 2] - heights)[known])) if known.any() else 0.0)


def _heights_at(grid: GridMap, places: Floats) -> Floats:
    """Return the heights (n,) of a map below places (n, 3); NaN outside."""
    layer = np.asarray(grid.layers.get("elevation", next(iter(grid.layers.values()))), np.float64)
    a, b, c, d, e, f = grid.transform
    column, row = np.floor(np.linalg.solve([[a, b], [d, e]], (places[:, :2] - (c, f)).T)).astype(np.int64)
    inside = (row >= 0) & (row < layer.shape[0]) & (column >= 0) & (column < layer.shape[1])
    return np.where(inside, layer[np.where(inside, row, 0), np.where(inside, column, 0)], np.nan)


def _raise(grid: GridMap, metres: float) -> GridMap:
    """Return a map whose heights are larger by some metres."""
    if "elevation" not in grid.layers and len(grid.layers) > 1:
        return grid
    name = "elevation" if "elevation" in grid.layers else next(iter(grid.layers))
    if name == "occupancy":
        return grid
    heights = np.asarray(grid.layers[name], np.float64)
    raised = np.where(np.isfinite(heights), heights, np.nan) + metres
    return replace(grid, layers={**grid.layers, name: raised})


def upward(places: Floats, orientations: Floats | None, frame: str, z_down: bool = False) -> Floats:
    """Return the axis (3,) of a path's frame that points up, as the body that went along it stood."""
    if orientations is None or not len(orientations):
        return -UP if frame.upper() == "NED" else UP
    camera = forward_axis(places, orientations) == 2
    body = np.array([0.0, -1.0, 0.0]) if camera else -UP if z_down else UP
    mean = rotations.rotate(orientations, np.broadcast_to(body, places.shape)).mean(axis=0)
    axis = int(np.argmax(np.abs(mean)))
    return np.eye(3)[axis] * np.sign(mean[axis])


def head_along(places: Floats, z_down: bool = False) -> Floats:
    """Return orientations (n, 4) that look where a path goes next; where it stands, as it stood before."""
    step = np.gradient(places[:, :2], axis=0)
    moving = np.hypot(step[:, 0], step[:, 1]) > 1e-4
    last: Ints = np.maximum.accumulate(np.where(moving, np.arange(len(step)), 0))
    heading = np.arctan2(step[last, 1], step[last, 0])
    zeros, sine, cosine = np.zeros(len(heading)), np.sin(heading / 2), np.cos(heading / 2)
    return np.column_stack([cosine, sine, zeros, zeros] if z_down else [zeros, zeros, sine, cosine])
