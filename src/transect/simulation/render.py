"""Rendering of camera images with lens distortion, illumination, exposure and noise."""

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
from ._threads import RAYS_PER_BATCH, run_in_batches
from .light import Light, expose, sunlit
from .raycast import DEFAULT_MAX_RANGE_M, NO_HIT, Hits, Scene, cast
from .terrain import Terrain

Transmission = Callable[[Singles], Singles]
"""Takes distances (h, w) in metres to the transmission of light, 0 to 1."""

LUMINANCE_WEIGHTS = (0.2126, 0.7152, 0.0722)
SKY_RADIANCE_RATIO = 2.0
"""Radiance of the sky over its irradiance on the ground, where a white sheet has radiance 1."""
AIR_TEMPERATURE_K = np.float32(288.0)


@dataclass(frozen=True, eq=False)
class RenderedFrame:
    """A rendered image and the truth of each pixel."""

    image: NDArray[np.uint8]  # (h, w, 3) or (h, w) uint8, RGB or grey
    depth: Singles  # (h, w) m, along the optical axis at the pixel's centre; NaN for the sky
    kind: NDArray[np.int32]  # (h, w) int32, -1 nothing, 0 terrain, k >= 1 solid number k
    gain: float  # exposure: pixel value per radiance


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
    max_range: float = DEFAULT_MAX_RANGE_M,
) -> RenderedFrame:
    """Render the image of a camera.

    Parameters
    ----------
    camera : CameraModel
        With size; lens distortion is exact (pixel centres through `geometry.camera.unproject`).
    T_world_camera : (4, 4)
        Takes points of the camera (x right, y down, z forward) to the world (x east, y north, z up).
    t : float
        Seconds since the start of the day, for moving solids.
    exposure : "auto" or float
        Gain of the radiance (1 shows a white sheet in the noon sun as bright); "auto" sets the mean to middle
        grey, within the limits of the sensor.
    noise : Generator, optional
        Generator of the sensor noise, e.g. ``randomness.generator(seed, "MainCam", "noise", 17)``; None for
        no noise.
    colour : bool
        RGB, else grey.
    supersample : int
        Rays per pixel and axis, odd; the texture is filtered, so that 1 is usually enough.
    moved : (4, 4), optional
        ``T_world_camera`` when the shutter closes, for motion blur of each pixel.
    haze : callable, optional
        Takes distances (h, w) in m, inf for the sky, to the transmission of light, 0 to 1.
    max_range : float
        m.
    """
    if supersample < 1 or supersample % 2 == 0:
        raise UsageError(f"supersample must be odd, got {supersample}", hint="1 or 3")
    rays = CameraRays.through(_enlarge(camera, supersample), floats("T_world_camera", T_world_camera, (4, 4)))
    radiance, ranges, depth, kind = _trace(scene, rays, light, t, max_range)
    if haze is not None:
        transmission = haze(ranges.astype(np.float32).reshape(rays.shape)).reshape(-1, 1)
        radiance = _add_haze(radiance, transmission, light)
    if not colour:
        radiance = radiance @ np.array(LUMINANCE_WEIGHTS, np.float32)[:, None]
    picture = radiance.reshape(*rays.shape, -1)
    if moved is not None:
        picture = _blur(picture, rays.flow(ranges, floats("moved", moved, (4, 4))))
    picture = _average(picture, supersample)
    image, gain = expose(picture, light, exposure, noise)
    centre = slice(supersample // 2, None, supersample)
    depth, kind = depth.reshape(rays.shape), kind.reshape(rays.shape)
    return RenderedFrame(image, depth[centre, centre], kind[centre, centre], gain)


def _trace(
    scene: Scene, rays: CameraRays, light: Light, t: float, max_range: float
) -> tuple[Singles, Floats, Singles, NDArray[np.int32]]:
    """Return the radiance (n, 3) along rays, and range, depth and kind (n,) of their hits."""
    count, shade = len(rays.local), _heat if light.thermal else _radiance
    radiance, ranges = np.empty((count, 3), np.float32), np.empty(count)
    depth, kind = np.empty(count, np.float32), np.empty(count, np.int32)

    def trace_batch(begin: int, end: int) -> None:
        batch = rays.part(begin, end)
        hits = cast(scene, rays.origin, batch.rays, max_range, t)
        radiance[begin:end] = shade(scene, batch, hits, light, t)
        ranges[begin:end], kind[begin:end], depth[begin:end] = hits.range, hits.kind, batch.depth(hits)

    run_in_batches(trace_batch, count)
    return radiance, ranges, depth, kind


# Rays of pixels


@dataclass(frozen=True, eq=False)
class CameraRays:
    """The rays of a camera's pixels in the world."""

    camera: CameraModel
    pose: Floats  # (4, 4), ``T_world_camera``
    local: Floats  # (n, 3), unit rays in the camera, row by row; NaN outside the lens model

    @classmethod
    def through(cls, camera: CameraModel, pose: Floats) -> CameraRays:
        """Return the rays of a camera at a pose ``T_world_camera``."""
        return cls(camera, pose, pixel_rays(camera))

    def part(self, begin: int, end: int) -> CameraRays:
        """Return the rays of some pixels."""
        return replace(self, local=self.local[begin:end])

    @cached_property
    def rays(self) -> Floats:
        """(n, 3) unit rays in the world; NaN outside the lens model."""
        return self.local @ self.pose[:3, :3].T

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.camera.height, self.camera.width

    @property
    def origin(self) -> Floats:
        """Position (3,) of the camera in the world, m."""
        return np.ascontiguousarray(self.pose[:3, 3])

    @property
    def pixel(self) -> float:
        """Mean angle between neighbouring rays, rad."""
        return float(1.0 / np.sqrt(self.camera.K[0, 0] * self.camera.K[1, 1]))

    def depth(self, hits: Hits) -> Singles:
        """Depth (n,) along the optical axis, m; NaN without a hit."""
        z = hits.range * self.local[:, 2]
        return np.where(hits.kind == NO_HIT, np.nan, z).astype(np.float32)

    def flow(self, ranges: Floats, moved: Floats) -> Singles:
        """Optical flow (h, w, 2), px, while the camera moves to the pose `moved`.

        The lens is approximated by a pinhole for the small motion, which is enough for motion blur.
        """
        far = np.where(np.isfinite(ranges), ranges, 1e6)[:, None] * self.local
        then = se3.apply(se3.invert(moved) @ self.pose, far)
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = then[:, :2] / then[:, 2:] - self.local[:, :2] / self.local[:, 2:]
        focal = np.array([self.camera.K[0, 0], self.camera.K[1, 1]])
        return np.nan_to_num(shift * focal).reshape(*self.shape, 2).astype(np.float32)


def pixel_rays(camera: CameraModel) -> Floats:
    """Unit rays (height * width, 3) through pixel centres in the camera's frame; cached."""
    lens = camera.coefficients if camera.distortion != "none" else np.zeros(0)
    K = np.ascontiguousarray(camera.K, np.float64)
    fisheye = camera.distortion == "equidistant"
    return _pixel_rays(
        camera.width, camera.height, K.tobytes(), np.asarray(lens, np.float64).tobytes(), fisheye
    )


@lru_cache(maxsize=8)
def lens_covers(camera: CameraModel) -> Mask:
    """Return which pixels (height, width) are inside the lens model; cached."""
    covered = np.isfinite(pixel_rays(camera)[:, 0]).reshape(camera.height, camera.width)
    covered.setflags(write=False)
    return covered


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


# Radiance along rays


def _radiance(scene: Scene, rays: CameraRays, hits: Hits, light: Light, t: float) -> Singles:
    """Linear radiance (n, 3); 0 outside the lens model."""
    solids = np.zeros((0, 3)) if scene.solids is None else np.ascontiguousarray(scene.solids.albedo)
    appearance = textures.ground(scene.terrain.ground)
    lights = _sun_and_sky(light), _lamps(light, rays.pose), _sky(light, appearance)
    hit = hits.range, hits.kind, hits.normal, _sunlit(scene, rays, hits, light, t)
    out = np.empty((len(rays.rays), 3), np.float32)
    ground = _ground(scene.terrain, appearance)
    kernels("render").shade(ground, solids, lights, rays.origin, rays.rays, hit, rays.pixel, out)
    return np.nan_to_num(out, copy=False)


def _ground(land: Terrain, appearance: textures.GroundAppearance) -> tuple[Any, ...]:
    """Return the ground as an argument of the compiled loops."""
    tile = textures.tile(land.ground, land.texture)
    colours = np.array(
        [appearance.dark, appearance.light, appearance.patch, appearance.rock, appearance.plant]
    )
    corner = np.asarray(land.origin, np.float64)
    return (
        tile.texels, tile.first, textures.TEXEL_M, land.rock, land.openness, float(land.cell), corner, colours
    )  # fmt: skip


def _sunlit(scene: Scene, rays: CameraRays, hits: Hits, light: Light, t: float) -> Mask:
    if light.sun <= 0:
        return np.zeros(len(rays.rays), np.bool_)
    return sunlit(scene, rays.origin, rays.rays, hits, light.towards_sun, t)


def _sun_and_sky(light: Light) -> Floats:
    """(9,): direction to the sun, irradiance of the sun and of the sky (red, green, blue)."""
    sun = light.sun * np.array(light.sun_colour)
    tint = np.array(light.zenith) + np.array(light.horizon)
    return np.concatenate([light.towards_sun, sun, light.sky * tint / tint.mean()])


def _lamps(light: Light, pose: Floats) -> Floats:
    """Rows (k, 8): position and direction in the world, half angle and power."""
    rows = np.zeros((len(light.lamps), 8))
    for row, lamp in zip(rows, light.lamps, strict=True):
        axis = pose[:3, :3] @ np.array(lamp.direction)
        row[:3], row[3:6] = se3.apply(pose, np.array(lamp.position)), axis / np.linalg.norm(axis)
        row[6:] = lamp.half_angle, lamp.power
    return rows


def _sky(light: Light, appearance: textures.GroundAppearance) -> Floats:
    """Horizon, zenith, distant hills (3 each), clouds, direction to the sun (3), its glow."""
    bright = SKY_RADIANCE_RATIO * light.sky
    colour = 0.7 * np.array(appearance.dark) + 0.3 * np.array(appearance.light)
    hills = colour * (0.6 * light.sun + light.sky)
    sky = [bright * np.array(light.horizon), bright * np.array(light.zenith), hills]
    return np.concatenate([*sky, [light.clouds], light.towards_sun, [0.5 * light.sun]])


def _add_haze(radiance: Singles, transmission: Singles, light: Light) -> Singles:
    """Attenuate radiance by the transmission (n, 1), and add scattered daylight."""
    air = (
        AIR_TEMPERATURE_K
        if light.thermal
        else SKY_RADIANCE_RATIO * light.sky * np.array(light.horizon, np.float32)
    )
    return np.asarray(radiance * transmission + air * (1.0 - transmission), dtype=np.float32)


def _heat(scene: Scene, rays: CameraRays, hits: Hits, light: Light, t: float) -> Singles:
    """Temperatures (n, 3) in K, in three equal bands: ground heated by the sun, solids, a cold sky."""
    facing = np.maximum(hits.normal @ light.towards_sun, 0.0) * _sunlit(scene, rays, hits, light, t)
    visible = _radiance(scene, rays, hits, replace(light, sun=0.0, sky=1.0, lamps=()), t)
    ground = AIR_TEMPERATURE_K + light.sun * 14.0 * np.nan_to_num(facing) - 25.0 * visible[:, 1]
    sky = 262.0 - 38.0 * np.clip(rays.rays[:, 2], 0.0, 1.0) ** 0.5
    heat = np.where(hits.kind == NO_HIT, sky, ground)
    if scene.solids is not None and len(scene.solids):
        solid = hits.kind > 0
        heat[solid] = scene.solids.temperature[hits.kind[solid] - 1] + 4.0 * light.sun * facing[solid]
    return np.repeat(np.nan_to_num(heat, nan=0.0).astype(np.float32)[:, None], 3, axis=1)


def _blur(picture: Singles, flow: Singles) -> Singles:
    """Average the picture (h, w, c) along the optical flow of each pixel."""
    out, blur = np.empty_like(picture), kernels("render").blur_along_flow
    rows, columns, _ = picture.shape
    size = max(RAYS_PER_BATCH // columns, 1)
    run_in_batches(lambda begin, end: blur(begin, end, picture, flow, out), rows, size)
    return out


def _average(picture: Singles, factor: int) -> Singles:
    if factor == 1:
        return picture
    rows, columns, bands = picture.shape
    blocks = picture.reshape(rows // factor, factor, columns // factor, factor, bands)
    return blocks.mean(axis=(1, 3), dtype=np.float32)
