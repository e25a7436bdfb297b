"""From light on the sensor to pixels: gain, tone curve, noise."""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Singles

from ._compiled import kernels
from .light import Light

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
