"""What lights a scene, and in which band a camera looks at it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Mask, Singles

from ._compiled import kernels
from .raycast import NOTHING, Hits, Scene, cast
from .terrain import Terrain

Colour = tuple[float, float, float]
WHITE: Colour = (1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Lamp:
    """A spot light that goes with the camera: a headlight."""

    # (3,) tuple, m, in the camera's frame (x right, y down, z forward)
    position: tuple[float, float, float] = (0.0, -0.3, 0.0)
    # (3,) tuple, In the camera's frame; need not be of unit length
    direction: tuple[float, float, float] = (0.0, 0.12, 1.0)
    # rad; half the brightness at this angle from the axis, none at twice the angle
    half_angle: float = 0.35
    power: float = 3.0  # irradiance at 1 m on the axis, on the scale of `Light.sun`


@dataclass(frozen=True)
class Light:
    """Sun, sky and lamps."""

    sun_elevation: float = 0.96  # rad above the horizon
    sun_azimuth: float = 2.4  # rad, clockwise from north, as almanacs have it
    sun: float = 1.0  # irradiance on a surface that faces the sun; 1 on a clear noon
    sky: float = 0.25  # irradiance from the sky on level ground, same scale
    # sun_colour, zenith, horizon: (3,) tuple, Linear red, green, blue; the sky goes from `horizon` to
    # `zenith`
    sun_colour: Colour = (1.0, 0.96, 0.9)
    zenith: Colour = (0.35, 0.52, 0.85)
    horizon: Colour = (0.75, 0.82, 0.9)
    clouds: float = 0.5  # contrast of the clouds, 0 to 1
    lamps: tuple[Lamp, ...] = ()  # what the robot carries
    thermal: bool = False  # the camera sees heat (infrared, 7 to 14 um) and not light

    @property
    def towards_sun(self) -> NDArray[np.float64]:
        """Unit vector (3,) in the world, from the ground to the sun."""
        up, clockwise = self.sun_elevation, self.sun_azimuth
        return np.array([np.cos(up) * np.sin(clockwise), np.cos(up) * np.cos(clockwise), np.sin(up)])


def day() -> Light:
    """Return the light of a clear day."""
    return Light()


def low_sun() -> Light:
    """Return the light of an hour before sunset: long shadows, warm sun."""
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
    """Return a night without moon: little but the sky's glow."""
    return Light(
        sun_elevation=-0.5,
        sun=0.0,
        sky=0.0015,
        zenith=(0.3, 0.35, 0.5),
        horizon=(0.6, 0.55, 0.5),
        clouds=0.2,
    )


def night_with_lights() -> Light:
    """Return a night in which the robot's two headlights are on."""
    left, right = Lamp((-0.4, -0.3, 0.0)), Lamp((0.4, -0.3, 0.0))
    dark = night()
    return Light(
        dark.sun_elevation, dark.sun_azimuth, dark.sun, dark.sky,
        zenith=dark.zenith, horizon=dark.horizon, clouds=dark.clouds, lamps=(left, right),
    )  # fmt: skip


def infrared() -> Light:
    """Return what a thermal camera sees by day: warm ground, cold sky."""
    return Light(thermal=True)


PRESETS = {
    "day": day,
    "low_sun": low_sun,
    "night": night,
    "night_with_lights": night_with_lights,
    "infrared": infrared,
}
"""Lights by the name that a world's condition ``light`` may have."""


MIDDLE = 0.18
"""Exposure that a middle grey should have."""
LIGHTS = 1.5
"""Exposure that the brightest fiftieth of a picture may have: the tone curve shows it at nine tenths."""
MOST_GAIN = 40.0
SHUTTER_GAIN = 4.0
"""Up to here a longer shutter does it; beyond, the amplifier, which is noisy."""
READ, SHOT = 0.003, 0.0002
"""Standard deviation of reading, and variance of photons per exposure, on the scale of 1 for white."""
TOP = 6.0
"""Exposure at which a pixel is full."""


def expose(
    picture: Singles, light: Light, exposure: Literal["auto"] | float, noise: np.random.Generator | None
) -> tuple[NDArray[np.uint8], float]:
    """Return pixels of linear radiance (h, w, c), or of temperatures in K, and the gain that made them."""
    if light.thermal and exposure == "auto":
        low, gain = thermal_range(picture)
        return develop(picture - np.float32(low), gain, noise, linear=True), gain
    gain = auto_gain(picture) if exposure == "auto" else float(exposure)
    return develop(picture, gain, noise, linear=light.thermal), gain


def auto_gain(radiance: Singles) -> float:
    """Return the gain that brings a picture (h, w, c) to a middle grey, or its lights to just below white."""
    some = np.maximum(radiance[::4, ::4].mean(axis=-1, dtype=np.float64), 1e-6)
    middle = float(np.sqrt(some).mean()) ** 2
    return min(MIDDLE / middle, LIGHTS / float(np.percentile(some, 98)), MOST_GAIN)


def thermal_range(heat: Singles) -> tuple[float, float]:
    """Return the temperature (K) that is shown black, and the gain (1/K): the warm part of a picture decides.

    A clear sky is 50 K colder than the ground, on which there would be nothing to see if both were to fit.
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
        No tone curve, as for a thermal camera; else a soft shoulder, which keeps the sky from saturating, a
        gamma of 2.2 and some contrast.
    """
    flat = np.ascontiguousarray(radiance.reshape(-1, radiance.shape[-1]))
    amplified = max(1.0, gain / SHUTTER_GAIN) if not linear else 1.0
    grain = np.zeros((0, 1), np.uint16)
    if noise is not None:
        grain = np.frombuffer(noise.bytes(2 * flat.size), np.uint16).reshape(flat.shape)
    pixels = np.empty(flat.shape, np.uint8)
    read, shot = np.float32((READ * amplified) ** 2), np.float32(SHOT * amplified)
    kernels("render").develop(
        flat, grain, _quantiles(), np.float32(gain), read, shot, _curve(linear), np.float32(TOP), pixels
    )
    return pixels.reshape(radiance.shape if radiance.shape[-1] > 1 else radiance.shape[:2])


@cache
def _quantiles() -> Singles:
    """Numbers (65536,) of a normal distribution; drawing one of them is the quickest way to noise."""
    from scipy.special import ndtri

    return ndtri((np.arange(65_536) + 0.5) / 65_536).astype(np.float32)


@cache
def _curve(linear: bool) -> NDArray[np.uint8]:
    """Pixels (4096,) at square roots of the exposure, from 0 to that of `TOP`."""
    exposure = np.linspace(0.0, np.sqrt(TOP), 4096) ** 2
    tone = exposure if linear else (1.0 - np.exp(-exposure)) ** (1 / 2.2)
    if not linear:
        tone = 0.4 * tone + 0.6 * tone * tone * (3.0 - 2.0 * tone)
    return np.clip(255.0 * tone + 0.5, 0, 255).astype(np.uint8)


NO_BALL = np.array([0.0, 0.0, 0.0, -1.0])
_TOLERANCE = 1e-6
"""m, and part of a slope: rounding shall not decide."""


def sunlit(scene: Scene, origin: Floats, rays: Floats, hits: Hits, towards_sun: Floats, t: float) -> Mask:
    """Return whether the sun shines on what rays met (n,): it faces the sun, and nothing is between.

    Parameters
    ----------
    origin : (3,)
        Of all rays, m, world.
    rays : (n, 3)
        Unit vectors, world.
    hits : Hits
        What they met.
    towards_sun : (3,)
        Unit vector.
    t : float
        Seconds since the day began.
    """
    loops, land, starts = kernels("render"), scene.terrain, np.empty_like(rays)
    loops.shadow_starts(origin, rays, hits.range, hits.normal, towards_sun, starts)
    ground = open_ground(land, tuple(towards_sun.tolist()))
    ball = NO_BALL if scene.solids is None else scene.solids.ball
    corner, doubtful = np.asarray(land.origin, np.float64), np.empty(len(rays), np.bool_)
    loops.choose_doubtful(ground, float(land.cell), corner, ball, towards_sun, starts, hits.kind, doubtful)
    lit = ~np.isnan(starts[:, 0])
    lit[doubtful] = cast(scene, starts[doubtful], towards_sun, t=t).kind == NOTHING
    return lit


@lru_cache(maxsize=4)
def open_ground(land: Terrain, towards_sun: tuple[float, float, float]) -> NDArray[np.bool_]:
    """Return the cells (rows - 1, columns - 1) of a terrain on which no ground casts a shadow, for sure.

    Cells that are steeper than 45 degrees, and their neighbours, are left out: a ray that starts a little off
    their surface may start below another's.
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
    low, top = corners.min(axis=0) - _TOLERANCE, corners.max(axis=0)
    shaded = np.zeros_like(rough)
    if level > _TOLERANCE:
        ahead, aside, rise = abs(ahead) / level, aside / level, z / level
        slope = (along * ahead).max(axis=0) + (across * aside).max(axis=0)
        steep = slope >= rise * (1 - _TOLERANCE) - _TOLERANCE
        shaded = low <= _shadow_tops(np.where(steep, top, -np.inf), rise * land.cell / ahead)
    # A cell that neither is steep nor has such a neighbour, and over which no shadow reaches.
    shaded |= _grow(_grow(rough).T).T
    shaded = shaded[flip] if back else shaded
    return np.ascontiguousarray(~(shaded.T if turn else shaded))


def _shadow_tops(casting: Floats, drop: float) -> Floats:
    """Return how high shadows reach over each cell, at most; the sun is towards larger columns.

    `casting` (rows, columns) has the tops of cells that cast shadows, -inf elsewhere; a shadow sinks by
    `drop` with each column. It passes from a row to the next at most once in a column.
    """
    tops = np.empty_like(casting)
    carried = np.full(len(casting), -np.inf)
    for column in range(casting.shape[1] - 1, -1, -1):
        own = casting[:, column]
        tops[:, column] = np.maximum(carried, _grow(own))
        carried = _grow(np.maximum(carried - drop, own))
    return tops


def _grow(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return the greatest of each row and its two neighbours."""
    grown = values.copy()
    np.maximum(grown[1:], values[:-1], out=grown[1:])
    np.maximum(grown[:-1], values[1:], out=grown[:-1])
    return grown
