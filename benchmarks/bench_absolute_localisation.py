"""Calibration of the probabilities of AbsoluteLocalisation: small maps of several kinds of terrain.

Each is looked for in an orbiter's map of cells of 4 m from a prior of 300 m. Both eyes have noise of their
own, white and alike over some cells, and holes; the small map leans and is turned. A part of the small maps
is of ground that the large one does not show, and a part is flat. Maps are moved by quintic splines, never by
what is tested. Stated probabilities beside the ratio of correct places.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates

import transect
from benchmarks._harness import quality
from benchmarks.bench_coregistration import place_error
from benchmarks.bench_lidar import DATA_DIR
from transect.algorithms.coregistration.localisation import locate_map
from transect.errors import GeometryError
from transect.geometry import rotations, se3
from transect.types import GridMap

SEED = 945287
PER_GROUND = 40
OTHER_GROUND_RATIO = 0.25
"""Ratio of the small maps that are not of the large one's ground."""
MAP_SIZE_M, CELL_SIZE_M, FINE_CELL_SIZE_M = 1024, 4.0, 2.0
"""Metres of the large map, of its cells, and of those of the ground and the small maps."""
PRIOR_RADIUS_M = 300.0
CORRECT_WITHIN_M = 2 * CELL_SIZE_M
PROBABILITY_BINS = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 0.999, 1.0)

Draw = np.random.Generator
Ground = Callable[[Draw], np.ndarray]


@dataclass(frozen=True)
class Outcome:
    """What was said of one small map: how probable each place is and whether it is right; or why none is."""

    ground: str
    inside: bool
    said: tuple[tuple[float, bool], ...] = ()
    refused: str = ""


def main() -> None:
    found = [
        look_for(name, ground, np.random.default_rng([SEED, k, number]))
        for k, (name, ground) in enumerate(list_grounds().items())
        for number in range(PER_GROUND)
    ]
    tell_grounds(found)
    tell_reliability(found)


def list_grounds() -> dict[str, Ground]:
    made: dict[str, Ground] = {
        "hills": lambda rng: scale_slopes(draw_fractal(rng, 1.6), 0.15),
        "gentle": lambda rng: scale_slopes(draw_fractal(rng, 1.4), 0.03),
        "dunes": draw_dunes,
        "craters": draw_craters,
        "furrows": draw_furrows,
        "flat": lambda rng: 0.02 * rng.normal(size=(cells(), cells())) + draw_plane(rng),
    }
    real = DATA_DIR / "dem_geotiff" / "pysheds_dem.tif"
    if real.is_file():
        grid = next(iter(transect.open(real)))[0].payload
        made["real"] = lambda rng: cut_real(np.asarray(grid.layers["elevation"], np.float64), rng)
    return made


def cells() -> int:
    return int(MAP_SIZE_M / FINE_CELL_SIZE_M)


def draw_fractal(rng: Draw, power: float) -> np.ndarray:
    """Heights whose amplitudes fall with the frequency to a power (2.5 to 4 of their squares)."""
    n = cells()
    frequency = np.hypot(*np.meshgrid(np.fft.rfftfreq(n), np.fft.fftfreq(n)))
    frequency[0, 0] = np.inf
    return np.fft.irfft2(np.fft.rfft2(rng.normal(size=(n, n))) / frequency**power, (n, n))


def scale_slopes(heights: np.ndarray, rise: float) -> np.ndarray:
    """Heights whose slopes over 4 m have a deviation of `rise`."""
    smooth = gaussian_filter(heights, 1.0)
    return heights * rise / (np.diff(smooth, axis=0).std() / FINE_CELL_SIZE_M)


def draw_dunes(rng: Draw) -> np.ndarray:
    """Ridges 60 m apart that are all but alike."""
    y, x = np.mgrid[: cells(), : cells()] * FINE_CELL_SIZE_M
    angle = rng.uniform(0, np.pi)
    along = np.cos(angle) * x + np.sin(angle) * y
    bend = 12 * gaussian_filter(rng.normal(size=x.shape), 60) / 0.0047
    phase = 2 * np.pi * (along + np.clip(bend, -15, 15)) / 60
    return 2 * np.sin(phase) + 0.7 * np.sin(2 * phase + 0.6) + scale_slopes(draw_fractal(rng, 1.5), 0.02)


def draw_craters(rng: Draw) -> np.ndarray:
    y, x = np.mgrid[: cells(), : cells()] * FINE_CELL_SIZE_M
    heights = scale_slopes(draw_fractal(rng, 1.5), 0.04)
    for _ in range(250):
        radius = 5 * (1 - rng.uniform(0, 0.97)) ** -0.6
        away = np.hypot(x - rng.uniform(0, MAP_SIZE_M), y - rng.uniform(0, MAP_SIZE_M)) / radius
        bowl = np.where(away < 1, away**2 - 1, 0.0) * 0.2 + 0.05 * np.exp(-(((away - 1) / 0.25) ** 2))
        heights += radius * bowl * rng.uniform(0.3, 1)
    return heights


def draw_furrows(rng: Draw) -> np.ndarray:
    """Rows 12 m apart and little else: a field."""
    y, x = np.mgrid[: cells(), : cells()] * FINE_CELL_SIZE_M
    angle = rng.uniform(0, np.pi)
    rows = 0.4 * np.sin(2 * np.pi * (np.cos(angle) * x + np.sin(angle) * y) / 12)
    return rows + scale_slopes(draw_fractal(rng, 1.5), 0.03)


def draw_plane(rng: Draw) -> np.ndarray:
    y, x = np.mgrid[: cells(), : cells()] * FINE_CELL_SIZE_M
    return rng.normal(0, 0.02) * x + rng.normal(0, 0.02) * y


def cut_real(heights: np.ndarray, rng: Draw) -> np.ndarray:
    """A real elevation model of 90 m, as one of 8 m: a third of its side, turned by quarters."""
    n = int(MAP_SIZE_M / 8) + 1
    i, j = (rng.integers(0, size - n) for size in heights.shape)
    part = np.rot90(heights[i : i + n, j : j + n], rng.integers(4))
    at = np.arange(cells()) * FINE_CELL_SIZE_M / 8
    return map_coordinates(part * (8 / 90) * 5, np.meshgrid(at, at, indexing="ij"), order=5, mode="nearest")


def look_for(name: str, ground: Ground, rng: Draw) -> Outcome:
    heights = ground(rng)
    inside = bool(rng.uniform() > OTHER_GROUND_RATIO) or name == "flat"
    seen = heights if inside else ground(rng)
    side = rng.uniform(50, 160)
    turn = np.radians(rng.choice([20.0, 180.0]))
    part, T = cut_part(seen, rng, side, turn)
    off = rng.uniform(0, 0.9 * PRIOR_RADIUS_M) * np.exp(1j * rng.uniform(-np.pi, np.pi))
    at = T[:2, 3] + (off.real, off.imag)
    try:
        found = locate_map(photograph(heights, rng), part, at=at, within=PRIOR_RADIUS_M, turn=turn)
    except GeometryError as refused:
        return Outcome(name, inside, refused=refused.what)
    said = [
        (each.probability, inside and np.linalg.norm(place_error(each.alignment, T)[:2]) < CORRECT_WITHIN_M)
        for each in found.hypotheses
    ]
    return Outcome(name, inside, tuple((float(p), bool(right)) for p, right in said))


def cut_part(heights: np.ndarray, rng: Draw, side: float, turn: float) -> tuple[GridMap, np.ndarray]:
    """What a rover sees of a place that is drawn, in its own frame; and T_ground_part."""
    n = int(side / FINE_CELL_SIZE_M)
    place = rng.uniform(0.2 * MAP_SIZE_M, 0.8 * MAP_SIZE_M, 2)
    attitude = rotations.matrix_from_rotation_vector(rng.normal(0, np.radians(1.0), 3) * (1, 1, 0))
    heading = rotations.matrix_from_euler("z", [rng.uniform(-turn, turn)])
    T = se3.from_matrix(heading @ attitude, [*place, 0.0])
    at = (np.arange(n) - (n - 1) / 2) * FINE_CELL_SIZE_M
    x, y = np.meshgrid(at, at[::-1])
    z = np.zeros(x.shape)
    for _ in range(10):
        world = se3.apply(T, np.stack([x, y, z], axis=-1).reshape(-1, 3)).reshape(n, n, 3)
        below = map_coordinates(
            heights, [world[..., 1] / FINE_CELL_SIZE_M, world[..., 0] / FINE_CELL_SIZE_M], order=5
        )
        z = z + below - world[..., 2]
    z = spoil(z, rng, white=0.1, alike=rng.uniform(0.02, 0.3), over=rng.uniform(1, 8))
    half = n * FINE_CELL_SIZE_M / 2
    return GridMap({"elevation": z}, (FINE_CELL_SIZE_M, 0, -half, 0, -FINE_CELL_SIZE_M, half)), T


def photograph(heights: np.ndarray, rng: Draw) -> GridMap:
    """What an orbiter makes of the ground: means over its cells, noise, holes."""
    k = int(CELL_SIZE_M / FINE_CELL_SIZE_M)
    n = cells() // k
    coarse = heights.reshape(n, k, n, k).mean(axis=(1, 3))
    coarse = spoil(coarse, rng, white=0.1, alike=rng.uniform(0.05, 0.5), over=rng.uniform(1, 4))
    # Centres of the fine cells are at whole multiples of their edge; north is up.
    corner = -FINE_CELL_SIZE_M / 2
    return GridMap(
        {"elevation": coarse[::-1]}, (CELL_SIZE_M, 0, corner, 0, -CELL_SIZE_M, corner + MAP_SIZE_M)
    )


def spoil(heights: np.ndarray, rng: Draw, white: float, alike: float, over: float) -> np.ndarray:
    """Heights with white noise, noise that is alike over some cells, and holes."""
    smooth = gaussian_filter(rng.normal(size=heights.shape), over)
    heights = heights + white * rng.normal(size=heights.shape) + alike * smooth / smooth.std()
    heights[rng.uniform(size=heights.shape) < rng.uniform(0, 0.2)] = np.nan
    holes = gaussian_filter(rng.normal(size=heights.shape), 3)
    heights[holes > rng.uniform(1.2, 3) * holes.std()] = np.nan
    return heights


def tell_grounds(found: list[Outcome]) -> None:
    print(f"    {'ground':<9}{'maps':>5}{'answered':>10}{'best right':>12}{'elsewhere':>11}{'answered':>10}")
    for name in dict.fromkeys(each.ground for each in found):
        there = [each for each in found if each.ground == name and each.inside]
        gone = [each for each in found if each.ground == name and not each.inside]
        told = [each for each in there if each.said]
        right = sum(each.said[0][1] for each in told)
        print(
            f"    {name:<9}{len(there):>5}{len(told):>10}{right:>12}{len(gone):>11}"
            f"{sum(bool(each.said) for each in gone):>10}"
        )


def tell_reliability(found: list[Outcome]) -> None:
    """Print said probabilities beside shares that were right, of all places of all maps with an answer."""
    pairs = np.array([pair for each in found for pair in each.said], np.float64).reshape(-1, 2)
    print(f"    {'said':<15}{'places':>7}{'mean said':>11}{'right':>8}")
    for low, high in pairwise(PROBABILITY_BINS):
        p, right = pairs[(pairs[:, 0] >= low) & ((pairs[:, 0] < high) | (high == 1.0))].T
        if len(p):
            print(f"    {f'{low:g} to {high:g}':<15}{len(p):>7}{p.mean():>11.3f}{right.mean():>8.3f}")
    best = np.array([each.said[0] for each in found if each.said], np.float64)
    sure = best[best[:, 0] >= 0.95]
    quality("said to be sure (0.95), wrong", 100 * float(np.mean(sure[:, 1] == 0)), "%", at_most=5.0)
    quality("mean probability of the best place", 100 * float(best[:, 0].mean()), "%")
    quality("best place right", 100 * float(best[:, 1].mean()), "%")
    flat = [each for each in found if each.ground == "flat"]
    quality("flat ground refused", 100 * float(np.mean([bool(each.refused) for each in flat])), "%")


if __name__ == "__main__":
    main()
