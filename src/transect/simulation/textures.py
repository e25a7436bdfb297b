"""GroundAppearance textures with features for matching at distances from half a metre to twenty metres.

Spectral noise alone has no corners. So a tile is the sum of spectral noise, thousands of pebbles (or straw,
or blades of grass) with Pareto-distributed sizes, and white noise. The renderer overlays it at three
incommensurate scales, which hides the repetition.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Singles
from transect.errors import UsageError, did_you_mean

from ._compiled import kernels
from .randomness import generator

Colour = tuple[float, float, float]
TILE_TEXELS = 2048
"""Texels along a side; a power of two."""
TEXEL_M = 0.004
"""Size of a texel: a tile is 8.2 m wide."""
MEAN_TEXEL_VALUE = 100.0
"""Stored value of a texel of mean brightness, 1."""


@dataclass(frozen=True)
class GroundAppearance:
    """Colours and texture of a kind of ground."""

    # Linear albedo of the darkest and the brightest texels, and of the patches between.
    dark: Colour
    light: Colour
    patch: Colour
    # Linear albedo of rocks and of plants.
    rock: Colour
    plant: Colour = (0.125, 0.165, 0.065)
    pebbles: int = 26_000  # on a tile
    smallest: float = 0.006  # m: half length of the smallest of them
    slender: tuple[float, float] = (0.45, 1.0)  # range of their width over their length
    contrast: float = 0.45  # of the pebbles' brightness
    clumps: float = 0.2  # contrast of the patches between them, from centimetres to metres


GROUNDS = {
    "basalt": GroundAppearance(
        (0.026, 0.025, 0.025), (0.19, 0.182, 0.175), (0.11, 0.094, 0.084), (0.10, 0.097, 0.095)
    ),
    "soil": GroundAppearance(
        (0.035, 0.022, 0.013), (0.27, 0.195, 0.13), (0.19, 0.15, 0.085), (0.20, 0.17, 0.13),
        pebbles=40_000, smallest=0.006, slender=(0.12, 0.9), contrast=0.6, clumps=0.28,
    ),
    "grass": GroundAppearance(
        (0.025, 0.030, 0.012), (0.27, 0.26, 0.13), (0.30, 0.25, 0.13), (0.25, 0.23, 0.21),
        plant=(0.12, 0.125, 0.04),
        pebbles=60_000, smallest=0.012, slender=(0.10, 0.35), contrast=0.8, clumps=0.34,
    ),
    "regolith": GroundAppearance(
        (0.10, 0.055, 0.03), (0.36, 0.21, 0.12), (0.27, 0.15, 0.085), (0.16, 0.11, 0.08),
        pebbles=9_000, smallest=0.005, contrast=0.35,
    ),
}  # fmt: skip
"""Kinds of ground by name."""


@dataclass(frozen=True, eq=False)
class Tile:
    """A periodic texture at full, half, quarter, ... size, in one array."""

    texels: NDArray[np.uint8]  # (n,) brightness; `MEAN_TEXEL_VALUE` is the mean
    first: NDArray[
        np.int64
    ]  # (levels,) first index of each level; level k is ``TILE_TEXELS >> k`` texels wide


def ground(name: str) -> GroundAppearance:
    """Return the ground of that name."""
    if name not in GROUNDS:
        raise UsageError(f"there is no ground {name!r}", hint=did_you_mean(name, GROUNDS))
    return GROUNDS[name]


@lru_cache(maxsize=4)
def tile(name: str, seed: int = 0) -> Tile:
    """Return the texture of a kind of ground, which is determined by name and seed."""
    kind, rng = ground(name), generator(seed, "texture", name)
    base = 1.0 + kind.clumps * spectral_noise(rng, (TILE_TEXELS, TILE_TEXELS), 1.5)
    base += 0.8 * kind.clumps * spectral_noise(rng, (TILE_TEXELS, TILE_TEXELS), 0.7)
    kernels("stamp").lay_pebbles(base, _pebbles(rng, kind))
    base += 0.15 * rng.standard_normal(base.shape, dtype=np.float32)
    return _mipmaps(base / base.mean())


def _pebbles(rng: np.random.Generator, kind: GroundAppearance) -> NDArray[np.float64]:
    """Return rows for `lay_pebbles`, sorted by size, so that the large ones are on top."""
    n = kind.pebbles
    size = np.sort(np.minimum(kind.smallest * (1.0 + rng.pareto(2.2, n)), 0.12)) / TEXEL_M
    bumps = np.zeros((n, 8))
    bumps[:, :2] = rng.uniform(0, TILE_TEXELS, (n, 2))
    bumps[:, 2] = size
    bumps[:, 3] = np.maximum(size * rng.uniform(*kind.slender, n), 0.6)
    bumps[:, 4] = rng.uniform(0, np.pi, n)
    bumps[:, 5] = rng.uniform(2.0, 3.5, n)
    bumps[:, 6] = np.clip(0.8 + kind.contrast * rng.standard_normal(n), 0.15, 2.0)
    bumps[:, 7] = 0.2
    return bumps


def _mipmaps(image: Singles) -> Tile:
    levels = [image]
    while levels[-1].size > 1:
        a = levels[-1]
        levels.append((a[::2, ::2] + a[1::2, ::2] + a[::2, 1::2] + a[1::2, 1::2]) * np.float32(0.25))
    texels = np.concatenate(
        [np.clip(a * MEAN_TEXEL_VALUE + 0.5, 0, 255).astype(np.uint8).ravel() for a in levels]
    )
    return Tile(texels, np.cumsum([0, *(a.size for a in levels[:-1])], dtype=np.int64))


def spectral_noise(
    rng: np.random.Generator, shape: tuple[int, int], exponent: float, longest: float = np.inf
) -> Singles:
    """Return periodic noise (rows, columns) with mean 0 and standard deviation 1.

    Parameters
    ----------
    shape : (rows, columns)
    exponent : float
        The amplitude falls with frequency as ``f ** -exponent``.
    longest : float
        Longest wavelength in cells.
    """
    from scipy import fft

    white: Any = fft.rfft2(rng.standard_normal(shape, dtype=np.float32))
    f = np.hypot(np.fft.fftfreq(shape[0])[:, None], np.fft.rfftfreq(shape[1])[None])
    f[0, 0] = np.inf
    weight = np.where(f * longest >= 1.0, f**-exponent, 0.0).astype(np.float32)
    noise: Any = fft.irfft2(white * weight, shape)
    return (noise / noise.std()).astype(np.float32)
