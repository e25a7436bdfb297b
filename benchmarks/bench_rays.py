"""Rays into rough terrain and rendered frames, beside embree where it is installed, else a march in numpy."""

import importlib.util

import numpy as np

from benchmarks import _harness
from transect.geometry.camera import scale_intrinsics
from transect.simulation import light, randomness, terrain
from transect.simulation.raycast import Scene, cast
from transect.simulation.render import pixel_rays, render
from transect.types import CameraModel

WIDTH_PX, HEIGHT_PX, FOCAL_PX = 672, 376, 350.0
"""The ZED of Rosario."""
RAY_COUNT, STEP_M, MAX_RANGE_M = 2_000, 0.02, 40.0
"""How many rays the march casts, its step and its end, m."""


def zed(scale: float = 1.0) -> CameraModel:
    K = np.array([[FOCAL_PX, 0, (WIDTH_PX - 1) / 2], [0, FOCAL_PX, (HEIGHT_PX - 1) / 2], [0, 0, 1]])
    lens = np.array([-0.17, 0.03, 0.0, 0.0])
    size = round(WIDTH_PX * scale), round(HEIGHT_PX * scale)
    return CameraModel("zed", *size, scale_intrinsics(K, scale), "radtan", lens)


def pose(scene: Scene, down: float = 0.25) -> np.ndarray:
    """``T_world_camera`` 1.2 m over the ground, looking north and `down` rad."""
    forward, right = np.array([0.0, np.cos(down), -np.sin(down)]), np.array([1.0, 0.0, 0.0])
    T = np.eye(4)
    T[:3, :3] = np.column_stack([right, np.cross(forward, right), forward])
    T[:3, 3] = 0.0, -20.0, scene.terrain.at([0.0, -20.0]) + 1.2
    return T


def lidar() -> np.ndarray:
    """One turn of 32 beams, 1800 columns."""
    turn, up = np.meshgrid(
        np.linspace(0, 2 * np.pi, 1800, endpoint=False), np.radians(np.linspace(-30, 10, 32))
    )
    beams = np.stack([np.cos(up) * np.cos(turn), np.cos(up) * np.sin(turn), np.sin(up)], axis=-1)
    return beams.transpose(1, 0, 2).reshape(-1, 3)


def marched(scene: Scene, origin: np.ndarray, along: np.ndarray) -> np.ndarray:
    """Ranges (n,) by steps along all rays at once."""
    ranges = np.full(len(along), np.inf)
    for s in np.arange(STEP_M, MAX_RANGE_M, STEP_M):
        going = np.flatnonzero(np.isinf(ranges))
        points = origin + s * along[going]
        ranges[going[points[:, 2] <= scene.terrain.at(points[:, :2])]] = s
    return ranges


def embree(scene: Scene):
    """Return embree's first hits on two triangles a cell, or None where embreex is not installed."""
    if importlib.util.find_spec("embreex") is None:
        return None
    from embreex import rtcore_scene
    from embreex.mesh_construction import TriangleMesh

    height = scene.terrain.height
    rows, columns = height.shape
    west, south, east, north = scene.terrain.extent
    x, y = np.meshgrid(np.linspace(west, east, columns), np.linspace(south, north, rows))
    corners = np.stack([x, y, height], axis=-1).reshape(-1, 3).astype(np.float32)
    first = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    a, b, c, d = first, first + 1, first + columns, first + columns + 1
    mesh = rtcore_scene.EmbreeScene()
    TriangleMesh(
        mesh, corners, np.concatenate([np.stack([a, b, d], 1), np.stack([a, d, c], 1)]).astype(np.int32)
    )
    return lambda origins, along: mesh.run(origins.astype(np.float32), along.astype(np.float32))


def main() -> None:
    scene = Scene(terrain.rough(1))
    T, cam = pose(scene), zed()
    origin, peer = T[:3, 3], embree(scene)
    patterns = {"camera 672x376": pixel_rays(cam) @ T[:3, :3].T, "lidar 32x1800": lidar()}
    for name, along in patterns.items():
        cast(scene, origin, along)
        _harness.rate(f"rays, {name}", lambda along=along: cast(scene, origin, along), len(along), 4e6)
        some = along[:: len(along) // RAY_COUNT] if peer is None else along
        origins = np.repeat(origin[None], len(some), axis=0)
        _harness.compare(
            f"{len(some)} rays, {name} / {'numpy march' if peer is None else 'embree'}",
            lambda some=some: cast(scene, origin, some),
            (lambda some=some: marched(scene, origin, some))
            if peer is None
            else (lambda o=origins, some=some: peer(o, some)),
            repeat=2 if peer is None else 5,
        )

    def frame(seen: CameraModel) -> object:
        return render(scene, seen, T, light.day(), noise=randomness.generator(1, "zed", "noise", 0))

    for seen, target in ((cam, 0.15), (zed(0.25), None)):
        frame(seen)
        name = f"one frame {seen.width}x{seen.height}: texture, sun, shadow, noise"
        _harness.duration(name, lambda seen=seen: frame(seen), target=target, repeat=15)


if __name__ == "__main__":
    _harness.print_header()
    main()
