"""Encoding for the page: images as JPEG, the rest as little-endian float32; and the robot's geometry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.errors import TransectError
from transect.evaluation.positions.scene_frame import ScenePath
from transect.geometry import meshes, se3
from transect.geometry.colours import MAX_PIXEL_VALUE, displayed
from transect.geometry.decimation import Extremes
from transect.recording import FrameTree, Recording, Robot, Stream
from transect.recording.arrow import LazyColumns, block_ranges
from transect.robots.description import body_of, numbers_of
from transect.types import DepthMap, GridMap, Image, JointState, LaserScan, PointCloud

from .scene import ScalarColumn, ViewerScene

if TYPE_CHECKING:
    from transect.robots.urdf import Urdf, UrdfShape

    from .scene import ViewerScene

MAX_TRIANGLES = 20_000
"""Finer meshes are subsampled."""
T_WHEEL_CYLINDER = np.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
"""Rotates a cylinder about z so that it rolls along x."""


@dataclass(frozen=True, eq=False)
class RobotMesh:
    """A mesh of the robot."""

    frame: str  # that it is fixed to
    role: str
    triangles: Floats  # (n, 3, 3) in that frame, m

    def describe(self) -> dict[str, Any]:
        """Return the description for the page, which requests the triangles separately."""
        return {"frame": self.frame, "role": self.role}


def solids_of(scene: ViewerScene) -> tuple[RobotMesh, ...]:
    """Return the meshes of the recording's robot whose frames are known."""
    robot = scene.recording.robot
    if robot is None:
        return ()
    try:
        found = [*_solids_of_robot(robot)]
    except TransectError:  # a user's description may refer to missing parts
        return ()
    return tuple(solid for solid in found if solid.frame in scene.recording.frames)


def _solids_of_robot(robot: Robot) -> Iterator[RobotMesh]:
    body = body_of(robot)
    for box in body.boxes.values():
        yield RobotMesh(
            box.frame, "body", numbers_of(robot, box.xyz) + meshes.box(numbers_of(robot, box.size))
        )
    for wheel in body.wheels:
        diameter, width = numbers_of(robot, [wheel.diameter, wheel.width])
        rolling = se3.apply(T_WHEEL_CYLINDER, meshes.cylinder(diameter / 2, width).reshape(-1, 3)).reshape(
            -1, 3, 3
        )
        yield RobotMesh(wheel.frame, "wheel", numbers_of(robot, wheel.xyz) + rolling)


def apply_urdf(scene: ViewerScene, path: Path | str) -> tuple[ViewerScene, list[str]]:
    """Return a scene with the frames and meshes of a URDF, and warnings about parts that could not be read.

    Joints that a stream of joint states names move; the others are at zero. The URDF's root is the frame of
    that name; otherwise it is placed on the body with z up.
    """
    from transect.robots import urdf as urdfs

    urdf = urdfs.read(path)
    recording, body = scene.recording, scene.body
    tree = recording.frames.copy()
    for part in (*_moving_parts(urdf, recording), urdf.frames(dict.fromkeys(urdf.driven, 0.0))):
        tree = tree.complete(part)
    if body and urdf.root != body and urdf.root in tree and tree.parent_of(urdf.root) is None:
        tree.add_static(body, urdf.root, scene.stance, source=urdf.name)
    said = [f"{loss.file}:{loss.line}: {loss.reason}" for loss in urdf.losses]
    solids: list[RobotMesh] = []
    for link in urdf.links:
        for shape in link.shapes:
            if shape.use == "visual":
                triangles, why = _triangles_of(shape)
                said += [f"{link.name}: {why}"] if why else []
                solids += [RobotMesh(link.name, "body", triangles)] if len(triangles) else []
    return replace(scene, recording=recording.replace(frames=tree), solids=tuple(solids)), said


def _moving_parts(urdf: Urdf, recording: Recording) -> Iterator[FrameTree]:
    """Yield the joints that each stream of joint states moves, if it names all of them."""
    from transect.robots.urdf import joint_edges

    for stream in recording:
        if stream.type is not JointState or not len(stream):
            continue
        named = stream[0].value.names
        joints = [name for name in named or () if name in urdf.driven]
        if joints:
            yield joint_edges(urdf, stream, joints if len(joints) == len(named) else None)


def _triangles_of(shape: UrdfShape) -> tuple[Floats, str]:
    """Return the triangles (n, 3, 3) of a shape of a URDF in its link, and why there are none."""
    from transect.robots.urdf.reading import read_mesh

    made = np.zeros((0, 3, 3))
    if shape.kind == "box":
        made = meshes.box(shape.size)
    elif shape.kind == "sphere":
        made = meshes.sphere(shape.size[0])
    elif shape.kind in ("cylinder", "capsule"):
        made = meshes.cylinder(*shape.size)
    elif shape.file is not None:
        try:
            made = read_mesh(shape.file) * np.asarray(shape.size)
        except TransectError as error:
            return made, error.what
    made = made[:: max(1, -(-len(made) // MAX_TRIANGLES))]
    return se3.apply(shape.origin.matrix, made.reshape(-1, 3)).reshape(-1, 3, 3), ""


MAX_WIDTH_PX, MAX_HEIGHT_PX, JPEG_QUALITY = 960, 9600, 80
MAX_POINTS = 60_000
PLOT_BLOCKS = 800
"""Number of blocks of a plot whose extremes are kept."""
MAX_CELLS_PER_SIDE = 240
HEIGHT_COLOURS = np.array([[62, 78, 62], [112, 122, 78], [168, 148, 104], [204, 186, 152], [240, 234, 224]])
"""Red, green, blue from low to high."""
HEIGHT_PERCENTILES = (1.0, 99.0)
"""Heights of the lowest and the highest colour."""


def encode_picture(value: Image | DepthMap) -> bytes:
    """Return an image as JPEG, downscaled if it is large; see `geometry.colours.displayed`."""
    import cv2

    pixels = displayed(value.data, "gray" if isinstance(value, DepthMap) else value.mode)
    pixels = np.ascontiguousarray(pixels if pixels.ndim == 2 else pixels[..., ::-1])  # OpenCV uses BGR
    scale = min(1.0, MAX_WIDTH_PX / pixels.shape[1], MAX_HEIGHT_PX / pixels.shape[0])
    if scale < 1.0:
        height, width = (max(1, round(side * scale)) for side in pixels.shape[:2])
        pixels = cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA)
    return cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])[1].tobytes()


def as_float32(values: Floats) -> NDArray[np.float32]:
    """Return values as little-endian float32, clipped to its range; NaN and infinity are kept."""
    limit = float(np.finfo(np.float32).max)
    return np.where(np.isfinite(values), np.clip(values, -limit, limit), values).astype("<f4")


def encode_points(located: tuple[bool, Floats], value: LaserScan | PointCloud) -> bytes:
    """Return the frame (`encode_place`), then x, y, z and a value from 0 to 1 of each point."""
    points = scan_points(value) if isinstance(value, LaserScan) else cloud_points(value)
    points = points[:: max(1, -(-len(points) // MAX_POINTS))]
    return encode_place(located) + as_float32(points).tobytes()


def encode_place(located: tuple[bool, Floats]) -> bytes:
    """Return 17 numbers: 1 for a frame fixed to the scene, 0 to the robot; then its pose (4, 4) there."""
    fixed, place = located
    return as_float32(np.concatenate([[float(fixed)], place.ravel()])).tobytes()


def scan_points(scan: LaserScan) -> Floats:
    """Return (n, 4): the returns of a scan in its plane, with value 1."""
    hit = scan.returned()
    with np.errstate(invalid="ignore", over="ignore"):
        angles, ranges = scan.angles[hit], np.asarray(scan.ranges[hit], np.float64)
        across, along = ranges * np.cos(angles), ranges * np.sin(angles)
    points = np.column_stack([across, along, np.zeros(len(ranges)), np.ones(len(ranges))])
    return points[np.isfinite(points).all(axis=1)]


def cloud_points(cloud: PointCloud) -> Floats:
    """Return (n, 4): the finite points of a cloud, and their scaled intensity or height."""
    points = np.asarray(cloud.points, np.float64)
    known = np.isfinite(points).all(axis=1)
    value = np.asarray(cloud.fields.get("intensity", points[:, 2]), np.float64)[known]
    value = np.clip(np.nan_to_num(value), -MAX_PIXEL_VALUE, MAX_PIXEL_VALUE)
    low, high = np.percentile(value, (2, 98)) if len(value) else (0.0, 1.0)
    scaled = np.clip((value - low) / max(float(high - low), 1e-9), 0, 1)
    return np.column_stack([points[known], scaled])


def encode_surface(located: tuple[bool, Floats], grid: GridMap) -> bytes:
    """Return the frame of a map (`encode_place`), rows, columns, then x, y, z (NaN: unknown) and r, g, b, 1.

    Heights are those of the layer `elevation`; maps without one are flat at 0. Large maps are subsampled to
    `MAX_CELLS_PER_SIDE`.
    """
    layers, step = _subsample(grid)
    heights = layers.get("elevation", _only_layer(layers))
    first = next(iter(layers.values()))
    z = np.where(np.isfinite(first), 0.0, np.nan) if heights is None else heights
    row, column = (np.arange(n) * step + step // 2 + 0.5 for n in z.shape)
    a, b, c, d, e, f = grid.transform
    x = a * column[None, :] + b * row[:, None] + c
    y = d * column[None, :] + e * row[:, None] + f
    size = np.array(z.shape, "<f4").tobytes()
    places = as_float32(np.stack([x, y, z], axis=-1)).tobytes()
    return encode_place(located) + size + places + _colour_cells(layers, heights).tobytes()


def _subsample(grid: GridMap) -> tuple[dict[str, Floats], int]:
    """Return the layers of a map with only every n-th cell along both sides, and n."""
    step = max(1, -(-max(next(iter(grid.layers.values())).shape) // MAX_CELLS_PER_SIDE))
    chosen = slice(step // 2, None, step)
    layers = {name: np.asarray(each, np.float64)[chosen, chosen] for name, each in grid.layers.items()}
    return {
        name: np.where(np.abs(each) < MAX_PIXEL_VALUE, each, np.nan) for name, each in layers.items()
    }, step


def _only_layer(layers: dict[str, Floats]) -> Floats | None:
    """Return the only layer of a map, which is taken as height unless it is `occupancy`."""
    return next(iter(layers.values())) if len(layers) == 1 and "occupancy" not in layers else None


def _colour_cells(layers: dict[str, Floats], heights: Floats | None) -> NDArray[np.uint8]:
    """Return r, g, b, 1 of cells (rows, columns, 4): of a photo, occupancy in grey, or by height."""
    first, *others = layers.values()
    if heights is not None:
        low, high = (
            np.nanpercentile(heights, HEIGHT_PERCENTILES) if np.isfinite(heights).any() else (0.0, 1.0)
        )
        part = np.clip((heights - low) / max(float(high - low), 1e-9), 0, 1)
        places = np.linspace(0, 1, len(HEIGHT_COLOURS))
        colours = np.stack([np.interp(part, places, HEIGHT_COLOURS[:, k]) for k in range(3)], axis=-1)
    elif len(others) >= 2:
        colours = np.stack([first, *others[:2]], axis=-1)
    else:
        taken = np.clip(layers.get("occupancy", first) / 100.0, 0, 1)
        colours = np.repeat(235 - 200 * taken[..., None], 3, axis=-1)
    whole = np.concatenate([colours, np.full((*colours.shape[:2], 1), 255.0)], axis=-1)
    return np.clip(np.nan_to_num(whole), 0, 255).astype(np.uint8)


def encode_curve(scene: ViewerScene, stream: Stream, curve: ScalarColumn, start: float, end: float) -> bytes:
    """Return interleaved seconds and values of a curve in a time interval, with its extremes kept."""
    times, rows = scene.seconds(stream), LazyColumns(stream.table, curve.column)
    kept = Extremes(start, end, PLOT_BLOCKS)
    for a, b in block_ranges(0, len(stream), overlap=0):
        values = np.asarray(rows[a:b], np.float64)
        kept.add(times[a:b], values if curve.part is None else values[:, curve.part])
    return as_float32(np.column_stack(kept.curve())).tobytes()


def encode_path(path: ScenePath) -> bytes:
    """Return (n, 8): seconds, x, y, z and the quaternion x, y, z, w of each pose."""
    rows = np.column_stack([path.seconds, path.positions, path.orientations])
    return as_float32(rows[np.isfinite(rows).all(axis=1)]).tobytes()
