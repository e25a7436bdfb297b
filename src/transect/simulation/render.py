"""Renders what a camera sees: distorted as its lens does, lit, exposed and noisy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats, Mask, Singles
from transect.errors import UsageError
from transect.geometry import camera as lenses
from transect.geometry import se3
from transect.geometry.array_checks import floats
from transect.types import CameraModel

from . import textures
from ._compiled import kernels
from ._threads import PIECE, spread
from .light import Light, expose, sunlit
from .raycast import FAR, NOTHING, Hits, Scene, cast
from .terrain import Terrain

Transmission = Callable[[Singles], Singles]
"""From distances (h, w) in metres to the part of the light that comes through, 0 to 1."""

LUMINANCE = (0.2126, 0.7152, 0.0722)
SKY_RADIANCE = 2.0
"""Radiance of the sky over its irradiance on the ground, on the scale on which a white sheet has 1."""


@dataclass(frozen=True, eq=False)
class Frame:
    """One rendered picture and what is true of each pixel."""

    image: NDArray[np.uint8]  # (h, w, 3) or (h, w) uint8, RGB, or grey
    # (h, w) float32, Along the optical axis, m, at the pixel's centre; NaN where there is nothing (the sky)
    depth: Singles
    kind: NDArray[np.int32]  # (h, w) int32, -1 nothing, 0 terrain, k >= 1 solid number k
    gain: float  # what the radiance was multiplied with: the exposure that was chosen


def render(
    scene: Scene,
    camera: CameraModel,
    T_world_camera: ArrayLike,
    light: Light,
    *,
    t: float = 0.0,
    exposure: Literal["auto"] | float = "auto",
    noise: np.random.Generator | None = None,
    colour: bool = True,
    supersample: int = 1,
    moved: ArrayLike | None = None,
    haze: Transmission | None = None,
    max_range: float = FAR,
) -> Frame:
    """Return what a camera sees.

    Parameters
    ----------
    camera : CameraModel
        With size; lens distortion is exact (pixel centres through `geometry.camera.unproject`).
    T_world_camera : (4, 4)
        Takes points of the camera (x right, y down, z forward) to the world (x east, y north, z up).
    t : float
        Seconds since the day began: where the moving solids are.
    exposure : "auto" or float
        Gain on the radiance (1 shows a white sheet in the noon sun as bright); "auto" brings the picture to a
        middle grey, as far as the sensor can.
    noise : Generator, optional
        Of the sensor's noise, such as ``randomness.generator(seed, "MainCam", "noise", 17)``; none, no noise.
    colour : bool
        RGB, else grey.
    supersample : int
        Rays per pixel and axis, odd; the texture is filtered, so 1 is enough for most.
    moved : (4, 4), optional
        ``T_world_camera`` when the shutter closes: blurs along each pixel's own motion.
    haze : callable, optional
        Takes distances (h, w) in m, inf for the sky, to the part of light that comes through, 0 to 1.
    max_range : float
        m.
    """
    if supersample < 1 or supersample % 2 == 0:
        raise UsageError(f"supersample must be odd, got {supersample}", hint="1 or 3")
    view = View.through(_enlarge(camera, supersample), floats("T_world_camera", T_world_camera, (4, 4)))
    seen, ranges, depth, kind = _look(scene, view, light, t, max_range)
    if haze is not None:
        seen = _hazy(seen, haze(ranges.astype(np.float32).reshape(view.shape)).reshape(-1, 1), light)
    if not colour:
        seen = seen @ np.array(LUMINANCE, np.float32)[:, None]
    picture = seen.reshape(*view.shape, -1)
    if moved is not None:
        picture = _smear(picture, view.flow(ranges, floats("moved", moved, (4, 4))))
    picture = _average(picture, supersample)
    image, gain = expose(picture, light, exposure, noise)
    centre = slice(supersample // 2, None, supersample)
    depth, kind = depth.reshape(view.shape), kind.reshape(view.shape)
    return Frame(image, depth[centre, centre], kind[centre, centre], gain)


def _look(
    scene: Scene, view: View, light: Light, t: float, max_range: float
) -> tuple[Singles, Floats, Singles, NDArray[np.int32]]:
    """Return what comes along the rays (n, 3), from how far (n,), at which depth (n,) and from what (n,)."""
    count, look = len(view.local), _heat if light.thermal else _radiance
    seen, ranges = np.empty((count, 3), np.float32), np.empty(count)
    depth, kind = np.empty(count, np.float32), np.empty(count, np.int32)

    def see(begin: int, end: int) -> None:
        part = view.part(begin, end)
        hits = cast(scene, view.origin, part.rays, max_range, t)
        seen[begin:end] = look(scene, part, hits, light, t)
        ranges[begin:end], kind[begin:end], depth[begin:end] = hits.range, hits.kind, part.depth(hits)

    spread(see, count)
    return seen, ranges, depth, kind


# Where pixels look


@dataclass(frozen=True, eq=False)
class View:
    """The rays of a camera's pixels in the world."""

    camera: CameraModel
    pose: Floats  # (4, 4), ``T_world_camera``
    local: Floats  # (n, 3), unit rays in the camera, row by row; NaN where the lens has none

    @classmethod
    def through(cls, camera: CameraModel, pose: Floats) -> View:
        """Return the view of a camera at a pose ``T_world_camera``."""
        return cls(camera, pose, pixel_rays(camera))

    def part(self, begin: int, end: int) -> View:
        """Return the view of some pixels."""
        return replace(self, local=self.local[begin:end])

    @cached_property
    def rays(self) -> Floats:
        """(n, 3) unit rays in the world; NaN where the lens has none."""
        return self.local @ self.pose[:3, :3].T

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.camera.height, self.camera.width

    @property
    def origin(self) -> Floats:
        """(3,) of the camera in the world, m."""
        return np.ascontiguousarray(self.pose[:3, 3])

    @property
    def pixel(self) -> float:
        """Angle between neighbouring rays, rad, on average."""
        return float(1.0 / np.sqrt(self.camera.K[0, 0] * self.camera.K[1, 1]))

    def depth(self, hits: Hits) -> Singles:
        """(n,) m along the optical axis; NaN where there is nothing."""
        z = hits.range * self.local[:, 2]
        return np.where(hits.kind == NOTHING, np.nan, z).astype(np.float32)

    def flow(self, ranges: Floats, moved: Floats) -> Singles:
        """Pixels (h, w, 2) that things move by while the camera goes to the pose `moved`.

        The lens is taken as a pinhole for the small way, which is enough for a blur.
        """
        far = np.where(np.isfinite(ranges), ranges, 1e6)[:, None] * self.local
        then = se3.apply(se3.invert(moved) @ self.pose, far)
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = then[:, :2] / then[:, 2:] - self.local[:, :2] / self.local[:, 2:]
        focal = np.array([self.camera.K[0, 0], self.camera.K[1, 1]])
        return np.nan_to_num(shift * focal).reshape(*self.shape, 2).astype(np.float32)


def pixel_rays(camera: CameraModel) -> Floats:
    """Unit rays (height * width, 3) through pixel centres in the camera's frame; kept for the next call."""
    lens = camera.coefficients if camera.distortion != "none" else np.zeros(0)
    K = np.ascontiguousarray(camera.K, np.float64)
    fisheye = camera.distortion == "equidistant"
    return _pixel_rays(
        camera.width, camera.height, K.tobytes(), np.asarray(lens, np.float64).tobytes(), fisheye
    )


@lru_cache(maxsize=8)
def lens_covers(camera: CameraModel) -> Mask:
    """Return which pixels (height, width) the lens has rays for; kept for the next call."""
    seen = np.isfinite(pixel_rays(camera)[:, 0]).reshape(camera.height, camera.width)
    seen.setflags(write=False)
    return seen


@lru_cache(maxsize=8)
def _pixel_rays(width: int, height: int, K: bytes, lens: bytes, fisheye: bool) -> Floats:
    pixels = np.stack(np.meshgrid(np.arange(width), np.arange(height)), axis=-1).reshape(-1, 2)
    matrix, coefficients = np.frombuffer(K).reshape(3, 3), np.frombuffer(lens)
    rays = lenses.unproject(pixels, matrix, coefficients, "fisheye" if fisheye else "pinhole")
    rays.setflags(write=False)
    return rays


def _enlarge(camera: CameraModel, factor: int) -> CameraModel:
    if factor == 1:
        return camera
    K = lenses.scale_intrinsics(camera.K, factor)
    return replace(camera, width=camera.width * factor, height=camera.height * factor, K=K)


# What comes along the rays


def _radiance(scene: Scene, view: View, hits: Hits, light: Light, t: float) -> Singles:
    """Linear radiance (n, 3); 0 where the lens has no ray."""
    solids = np.zeros((0, 3)) if scene.solids is None else np.ascontiguousarray(scene.solids.albedo)
    look = textures.ground(scene.terrain.ground)
    lights = _outdoors(light), _lamps(light, view.pose), _sky(light, look)
    met = hits.range, hits.kind, hits.normal, _sunlit(scene, view, hits, light, t)
    out = np.empty((len(view.rays), 3), np.float32)
    ground = _ground(scene.terrain, look)
    kernels("render").shade(ground, solids, lights, view.origin, view.rays, met, view.pixel, out)
    return np.nan_to_num(out, copy=False)


def _ground(land: Terrain, look: textures.Ground) -> tuple[Any, ...]:
    """The ground as the compiled loops take it."""
    tile = textures.tile(land.ground, land.texture)
    colours = np.array([look.dark, look.light, look.patch, look.rock, look.plant])
    corner = np.asarray(land.origin, np.float64)
    return (
        tile.texels, tile.first, textures.TEXEL, land.rock, land.openness, float(land.cell), corner, colours
    )  # fmt: skip


def _sunlit(scene: Scene, view: View, hits: Hits, light: Light, t: float) -> Mask:
    if light.sun <= 0:
        return np.zeros(len(view.rays), np.bool_)
    return sunlit(scene, view.origin, view.rays, hits, light.towards_sun, t)


def _outdoors(light: Light) -> Floats:
    """(9,): towards the sun, irradiance of the sun and of the sky (red, green, blue)."""
    sun = light.sun * np.array(light.sun_colour)
    tint = np.array(light.zenith) + np.array(light.horizon)
    return np.concatenate([light.towards_sun, sun, light.sky * tint / tint.mean()])


def _lamps(light: Light, pose: Floats) -> Floats:
    """Rows (k, 8): place and direction in the world, half angle and power."""
    rows = np.zeros((len(light.lamps), 8))
    for row, lamp in zip(rows, light.lamps, strict=True):
        axis = pose[:3, :3] @ np.array(lamp.direction)
        row[:3], row[3:6] = se3.apply(pose, np.array(lamp.position)), axis / np.linalg.norm(axis)
        row[6:] = lamp.half_angle, lamp.power
    return rows


def _sky(light: Light, look: textures.Ground) -> Floats:
    """Horizon, zenith, far hills (3 each), clouds, towards the sun (3), its glow."""
    bright = SKY_RADIANCE * light.sky
    hills = (0.7 * np.array(look.dark) + 0.3 * np.array(look.light)) * (0.6 * light.sun + light.sky)
    sky = [bright * np.array(light.horizon), bright * np.array(light.zenith), hills]
    return np.concatenate([*sky, [light.clouds], light.towards_sun, [0.5 * light.sun]])


def _hazy(seen: Singles, through: Singles, light: Light) -> Singles:
    """Light that gets through, and daylight scattered into the rest; `through` (n, 1)."""
    air = SKY_RADIANCE * light.sky * np.array(light.horizon, np.float32) if not light.thermal else _AIR_HEAT
    return np.asarray(seen * through + air * (1.0 - through), dtype=np.float32)


_AIR_HEAT = np.float32(288.0)


def _heat(scene: Scene, view: View, hits: Hits, light: Light, t: float) -> Singles:
    """Temperatures (n, 3) in K, three times the same: ground warmed by the sun, solids, a cold sky."""
    facing = np.maximum(hits.normal @ light.towards_sun, 0.0) * _sunlit(scene, view, hits, light, t)
    visible = _radiance(scene, view, hits, replace(light, sun=0.0, sky=1.0, lamps=()), t)
    ground = _AIR_HEAT + light.sun * 14.0 * np.nan_to_num(facing) - 25.0 * visible[:, 1]
    sky = 262.0 - 38.0 * np.clip(view.rays[:, 2], 0.0, 1.0) ** 0.5
    heat = np.where(hits.kind == NOTHING, sky, ground)
    if scene.solids is not None and len(scene.solids):
        solid = hits.kind > 0
        heat[solid] = scene.solids.temperature[hits.kind[solid] - 1] + 4.0 * light.sun * facing[solid]
    return np.repeat(np.nan_to_num(heat, nan=0.0).astype(np.float32)[:, None], 3, axis=1)


def _smear(picture: Singles, flow: Singles) -> Singles:
    """Mean of the picture (h, w, c) along the way that each pixel's content moves."""
    out, smear = np.empty_like(picture), kernels("render").smear
    rows, columns, _ = picture.shape
    spread(lambda begin, end: smear(begin, end, picture, flow, out), rows, max(PIECE // columns, 1))
    return out


def _average(picture: Singles, factor: int) -> Singles:
    if factor == 1:
        return picture
    rows, columns, bands = picture.shape
    blocks = picture.reshape(rows // factor, factor, columns // factor, factor, bands)
    return blocks.mean(axis=(1, 3), dtype=np.float32)
