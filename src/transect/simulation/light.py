"""Illumination of a scene, camera exposure and noise, and shadows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Mask, Singles

from ._compiled import kernels
from .raycast import NO_HIT, Hits, Scene, cast
from .terrain import Terrain

Colour = tuple[float, float, float]


@dataclass(frozen=True)
class Lamp:
    """A spot light mounted on the camera: a headlight."""

    position: tuple[float, float, float] = (0.0, -0.3, 0.0)  # m, in the camera (x right, y down, z forward)
    direction: tuple[float, float, float] = (0.0, 0.12, 1.0)  # in the camera; of any length
    # rad; half the brightness at this angle from the axis, none at twice the angle
    half_angle: float = 0.35
    power: float = 3.0  # irradiance at 1 m on the axis, on the scale of `Light.sun`


@dataclass(frozen=True)
class Light:
    """Sun, sky and lamps."""

    sun_elevation: float = 0.96  # rad above the horizon
    sun_azimuth: float = 2.4  # rad, clockwise from north
    sun: float = 1.0  # irradiance on a surface that faces the sun; 1 at noon with a clear sky
    sky: float = 0.25  # irradiance from the sky on level ground, same scale
    # Linear red, green, blue; the sky is interpolated from `horizon` to `zenith`.
    sun_colour: Colour = (1.0, 0.96, 0.9)
    zenith: Colour = (0.35, 0.52, 0.85)
    horizon: Colour = (0.75, 0.82, 0.9)
    clouds: float = 0.5  # contrast of the clouds, 0 to 1
    lamps: tuple[Lamp, ...] = ()  # on the robot
    thermal: bool = False  # a thermal camera (infrared, 7 to 14 um)

    @property
    def towards_sun(self) -> NDArray[np.float64]:
        """Unit vector (3,) in the world, from the ground to the sun."""
        up, clockwise = self.sun_elevation, self.sun_azimuth
        return np.array([np.cos(up) * np.sin(clockwise), np.cos(up) * np.cos(clockwise), np.sin(up)])


def day() -> Light:
    """Return the light of a clear day."""
    return Light()


def low_sun() -> Light:
    """Return the light an hour before sunset: long shadows, warm sun."""
    return Light(
        sun_elevation=0.16,
        sun_azimuth=4.7,
        sun=0.7,
        sky=0.16,
        sun_colour=(1.0, 0.74, 0.48),
        zenith=(0.33, 0.45, 0.72),
        horizon=(0.95, 0.75, 0.55),
    )


def night() -> Light:
    """Return the light of a moonless night: only the glow of the sky."""
    return Light(
        sun_elevation=-0.5,
        sun=0.0,
        sky=0.0015,
        zenith=(0.3, 0.35, 0.5),
        horizon=(0.6, 0.55, 0.5),
        clouds=0.2,
    )


def night_with_lights() -> Light:
    """Return the light of a night with the robot's two headlights on."""
    left, right = Lamp((-0.4, -0.3, 0.0)), Lamp((0.4, -0.3, 0.0))
    dark = night()
    return Light(
        dark.sun_elevation, dark.sun_azimuth, dark.sun, dark.sky,
        zenith=dark.zenith, horizon=dark.horizon, clouds=dark.clouds, lamps=(left, right),
    )  # fmt: skip


def infrared() -> Light:
    """Return the daytime light for a thermal camera: warm ground, cold sky."""
    return Light(thermal=True)


PRESETS = {
    "day": day,
    "low_sun": low_sun,
    "night": night,
    "night_with_lights": night_with_lights,
    "infrared": infrared,
}
"""Lights by the values of a world's condition ``light``."""


@dataclass(frozen=True)
class SensorSettings:
    """Automatic exposure and noise of the simulated camera; exposures relative to white = 1."""

    middle_grey: float = 0.18  # mean exposure
    max_highlight: float = 1.5  # exposure of the brightest 2 %, which the tone curve maps to 0.9
    max_gain: float = 40.0
    max_shutter_gain: float = 4.0  # more gain is by the amplifier, which increases the noise
    read_sigma: float = 0.003  # standard deviation of the read noise
    shot_variance: float = 0.0002  # variance of the shot noise per exposure
    full_well: float = 6.0  # exposure at which a pixel saturates


SENSOR = SensorSettings()


def expose(
    picture: Singles, light: Light, exposure: Literal["auto"] | float, noise: np.random.Generator | None
) -> tuple[NDArray[np.uint8], float]:
    """Return pixels of linear radiance (h, w, c), or of temperatures in K, and the gain used."""
    if light.thermal and exposure == "auto":
        low, gain = thermal_range(picture)
        return develop(picture - np.float32(low), gain, noise, linear=True), gain
    gain = auto_gain(picture) if exposure == "auto" else float(exposure)
    return develop(picture, gain, noise, linear=light.thermal), gain


def auto_gain(radiance: Singles) -> float:
    """Return the gain that exposes a picture (h, w, c) to middle grey, with highlights just below white."""
    sample = np.maximum(radiance[::4, ::4].mean(axis=-1, dtype=np.float64), 1e-6)
    mean = float(np.sqrt(sample).mean()) ** 2
    highlight = float(np.percentile(sample, 98))
    return min(SENSOR.middle_grey / mean, SENSOR.max_highlight / highlight, SENSOR.max_gain)


def thermal_range(heat: Singles) -> tuple[float, float]:
    """Return the temperature (K) that is shown black, and the gain (1/K), for the warm part of a picture.

    A clear sky is 50 K colder than the ground, which would have no contrast if both were in range.
    """
    coldest, warm, warmest = np.percentile(heat[::4, ::4], [1, 90, 99.5]).tolist()
    low = max(coldest, warm - 20.0)
    span = max(warmest - low, 8.0)
    return low - 0.1 * span, 0.8 / span


def develop(
    radiance: Singles, gain: float, noise: np.random.Generator | None = None, linear: bool = False
) -> NDArray[np.uint8]:
    """Return pixels (h, w, 3), or (h, w) for one band, of linear radiance (h, w, c).

    Parameters
    ----------
    radiance : (h, w, c) float32 array
    gain : float
        Exposure per radiance.
    noise : Generator, optional
        None for a sensor without noise.
    linear : bool
        Without tone curve, for a thermal camera; else a soft shoulder, which prevents a saturated sky, a
        gamma of 2.2 and more contrast.
    """
    flat = np.ascontiguousarray(radiance.reshape(-1, radiance.shape[-1]))
    amplified = max(1.0, gain / SENSOR.max_shutter_gain) if not linear else 1.0
    grain = np.zeros((0, 1), np.uint16)
    if noise is not None:
        grain = np.frombuffer(noise.bytes(2 * flat.size), np.uint16).reshape(flat.shape)
    pixels = np.empty(flat.shape, np.uint8)
    read = np.float32((SENSOR.read_sigma * amplified) ** 2)
    shot, top = np.float32(SENSOR.shot_variance * amplified), np.float32(SENSOR.full_well)
    kernels("render").develop(
        flat, grain, _quantiles(), np.float32(gain), read, shot, _curve(linear), top, pixels
    )
    return pixels.reshape(radiance.shape if radiance.shape[-1] > 1 else radiance.shape[:2])


@cache
def _quantiles() -> Singles:
    """Quantiles (65536,) of the normal distribution, a fast source of noise."""
    from scipy.special import ndtri

    return ndtri((np.arange(65_536) + 0.5) / 65_536).astype(np.float32)


@cache
def _curve(linear: bool) -> NDArray[np.uint8]:
    """Pixels (4096,) at square roots of the exposure, from 0 to that of a full well."""
    exposure = np.linspace(0.0, np.sqrt(SENSOR.full_well), 4096) ** 2
    tone = exposure if linear else (1.0 - np.exp(-exposure)) ** (1 / 2.2)
    if not linear:
        tone = 0.4 * tone + 0.6 * tone * tone * (3.0 - 2.0 * tone)
    return np.clip(255.0 * tone + 0.5, 0, 255).astype(np.uint8)


NO_BALL = np.array([0.0, 0.0, 0.0, -1.0])
_ROUNDING_TOLERANCE = 1e-6
"""m, and relative to slopes."""


def sunlit(scene: Scene, origin: Floats, rays: Floats, hits: Hits, towards_sun: Floats, t: float) -> Mask:
    """Return which hits (n,) are in the sun: they face the sun, and are not in shadow.

    Parameters
    ----------
    origin : (3,)
        Origin of all rays, m, world.
    rays : (n, 3)
        Unit vectors, world.
    hits : Hits
        Intersections of the rays.
    towards_sun : (3,)
        Unit vector.
    t : float
        Seconds since the start of the day.
    """
    loops, land, starts = kernels("render"), scene.terrain, np.empty_like(rays)
    loops.shadow_starts(origin, rays, hits.range, hits.normal, towards_sun, starts)
    ground = open_ground(land, tuple(towards_sun.tolist()))
    ball = NO_BALL if scene.solids is None else scene.solids.ball
    corner, possible = np.asarray(land.origin, np.float64), np.empty(len(rays), np.bool_)
    loops.find_possibly_shaded(
        ground, float(land.cell), corner, ball, towards_sun, starts, hits.kind, possible
    )
    lit = ~np.isnan(starts[:, 0])
    lit[possible] = cast(scene, starts[possible], towards_sun, t=t).kind == NO_HIT
    return lit


@lru_cache(maxsize=4)
def open_ground(land: Terrain, towards_sun: tuple[float, float, float]) -> NDArray[np.bool_]:
    """Return the cells (rows - 1, columns - 1) of a terrain that are certainly not shaded by the ground.

    Cells steeper than 45 degrees and their neighbours are excluded: a ray that starts just above their
    surface may start below that of a neighbour.
    """
    x, y, z = towards_sun
    level = float(np.hypot(x, y))
    ahead, aside, turn = (x, y, False) if abs(x) >= abs(y) else (y, x, True)
    height = np.asarray(land.height.T if turn else land.height, np.float64)
    back, flip = ahead < 0, np.s_[:, ::-1]
    height = height[flip] if back else height
    corners = np.stack([height[:-1, :-1], height[:-1, 1:], height[1:, :-1], height[1:, 1:]])
    a, b, c, d = corners
    along, across = np.stack([b - a, d - c]) / land.cell, np.stack([c - a, d - b]) / land.cell
    rough = np.abs(along).max(axis=0) + np.abs(across).max(axis=0) >= 1.0
    low, top = corners.min(axis=0) - _ROUNDING_TOLERANCE, corners.max(axis=0)
    shaded = np.zeros_like(rough)
    if level > _ROUNDING_TOLERANCE:
        ahead, aside, rise = abs(ahead) / level, aside / level, z / level
        slope = (along * ahead).max(axis=0) + (across * aside).max(axis=0)
        steep = slope >= rise * (1 - _ROUNDING_TOLERANCE) - _ROUNDING_TOLERANCE
        shaded = low <= _shadow_tops(np.where(steep, top, -np.inf), rise * land.cell / ahead)
    # Cells that are not steep, have no steep neighbour, and are not in shadow.
    shaded |= _grow(_grow(rough).T).T
    shaded = shaded[flip] if back else shaded
    return np.ascontiguousarray(~(shaded.T if turn else shaded))


def _shadow_tops(casting: Floats, drop: float) -> Floats:
    """Return an upper bound of the height of shadows above each cell; the sun is towards larger columns.

    `casting` (rows, columns) are the tops of cells that cast shadows, -inf elsewhere; a shadow descends by
    `drop` per column, and moves by at most one row per column.
    """
    tops = np.empty_like(casting)
    carried = np.full(len(casting), -np.inf)
    for column in range(casting.shape[1] - 1, -1, -1):
        own = casting[:, column]
        tops[:, column] = np.maximum(carried, _grow(own))
        carried = _grow(np.maximum(carried - drop, own))
    return tops


def _grow(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return the maximum of each row and its two neighbours."""
    grown = values.copy()
    np.maximum(grown[1:], values[:-1], out=grown[1:])
    np.maximum(grown[:-1], values[1:], out=grown[:-1])
    return grown
