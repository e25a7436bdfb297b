"""The places of Marulan's dynamic tests (document 004, 4.3): open area, houses, dam.

The report says what stands where by words and photographs; the measures are invented.
"""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np

from transect.base.arrays import Floats
from transect.geometry import rotations

from ...randomness import generator
from ...solids import Look, Solid, box, cylinder, ellipsoid, tree, turned, turned_box
from ...terrain import Terrain, open_ground
from .places import PAINT, SHEET, STEEL, WOOD, Place, standing

WATER = Look((0.05, 0.08, 0.1), 0.01, 1e-4, 288.0)
ROCK = Look((0.42, 0.4, 0.36), 0.4, 0.5, 297.0)
TILES = Look((0.45, 0.3, 0.25), 0.4, 0.5, 302.0)
SIDE = 128.0
CELL = 0.125
"""m: length of the ground's sides, and of its cells."""


def open_area(seed: int) -> Place:
    """Return the Triangle: a shed with metal walls in the north, fences beside it and in the south-west."""
    ground = open_ground(seed, SIDE, CELL, relief=0.12, tufts=1200, ground="soil")
    car = np.array([[26.0, -6.0, 0.75], [-1.0, 0.1, -0.06]])
    things = [
        box("shed", (-4, 27, -0.5), (14, 36, 4.5), SHEET),
        *_fence([(14, 28), (52, 26)]),
        *_fence([(-46, 8), (-8, -42)]),
        *_parked_car(car),
        box("water tank", (14, 20, 0.2), (16, 21.4, 1.5), PAINT),
        box("compressor", (-16, 14, 0), (-14.6, 15.2, 1.1), PAINT),
    ]
    route = np.array([(-18.0, -8.0), (8.0, -20.0), (20.0, 10.0), (-6.0, 14.0)])
    walk = np.array([(-2.0, -4.0), (8.0, -6.0), (9.0, 5.0), (0.0, 6.0)])
    return Place(ground, standing(ground, things), route, walk, car)


def houses(seed: int) -> Place:
    """Return three wooden buildings, a long one in the south and two small ones in the north, and a fence."""
    ground = open_ground(seed, SIDE, CELL, relief=0.15, tufts=4000)
    things = [
        *_house((0.0, -16.0), (22.0, 6.0), 3.0),
        *_house((-11.0, 13.0), (7.0, 5.0), 2.8),
        *_house((10.0, 14.0), (8.0, 5.0), 2.8),
        *_fence([(-32, -28), (32, -28), (32, 30), (-32, 30), (-32, -28)]),
        *_parked_car(np.array([[-26.0, -20.0, 0.75], [0.3, 1.0, 0.0]])),
    ]
    route = np.array([(-22.0, -6.0), (21.0, -7.0), (21.0, 23.0), (-1.0, 22.0), (-1.0, 4.0), (-21.0, 4.0)])
    walk = np.array([(-14.0, -1.0), (14.0, -1.5), (14.0, 1.5), (-14.0, 1.0)])
    return Place(ground, standing(ground, things), route, walk)


def dam(seed: int) -> Place:
    """Return an area beside a lake, with a small eucalyptus forest in the south."""
    ground = _with_lake(open_ground(seed, SIDE, CELL, relief=0.25, slope=(0.01, -0.015), tufts=4000))
    rng = generator(seed, "marulan", "dam")
    feet = [(rng.uniform(-42, 42), rng.uniform(-42, -13)) for _ in range(44)]
    feet += [(-30.0, 4.0), (31.0, 2.0), (6.0, 1.5), (-9.0, 0.5)]
    trees = [
        part
        for x, y in feet
        for part in tree((x, y, -0.3), rng.uniform(5, 11), rng.uniform(1.2, 2.8), rng.uniform(0.1, 0.25), 0.7)
    ]
    stones = [
        ellipsoid("rock", (rng.uniform(-30, 30), rng.uniform(-12, 14), 0.0), rng.uniform(0.12, 0.5, 3), ROCK)
        for _ in range(25)
    ]
    water = box("water", (-60, 14, -3), (60, 62, _LAKE), WATER)
    route = np.array([(-22.0, -5.0), (18.0, -8.0), (23.0, 7.0), (-15.0, 9.0)])
    clear = [s for s in stones if _distance(s.centre[:2], route) > 2.0]
    walk = np.array([(-6.0, -2.0), (8.0, -3.0), (10.0, 3.0), (-5.0, 4.0)])
    return Place(ground, (*standing(ground, trees + clear), water), route, walk)


_LAKE = -1.6
"""m: height of the water."""


def _with_lake(terrain: Terrain) -> Terrain:
    """Return a terrain with a basin in the north, deeper than the water stands."""
    west, south, east, north = terrain.extent
    rows, columns = terrain.height.shape
    x, y = np.linspace(west, east, columns), np.linspace(south, north, rows)[:, None]
    ramp = np.clip((1.25 - np.hypot(x / 38.0, (y - 36.0) / 20.0)) / 0.35, 0.0, 1.0)
    depth = 3.0 * ramp**2 * (3 - 2 * ramp)
    return dataclasses.replace(terrain, height=(terrain.height - depth).astype(np.float32))


def _distance(point: Floats, route: Floats) -> float:
    """Return how far a point (2,) lies from a closed route (k, 2)."""
    a, b = route, np.roll(route, -1, axis=0)
    along = b - a
    u = np.clip(np.einsum("ij,ij->i", point - a, along) / np.einsum("ij,ij->i", along, along), 0.0, 1.0)
    return float(np.linalg.norm(a + u[:, None] * along - point, axis=1).min())


def _fence(corners: list[tuple[float, float]]) -> list[Solid]:
    """Return wooden posts, three metres apart; the barbed wire between them is too thin to be seen."""
    posts: list[Solid] = []
    for start, end in pairwise(corners):
        a, b = np.array(start, np.float64), np.array(end, np.float64)
        count = int(np.linalg.norm(b - a) // 3.0)
        places = a + (b - a) * (np.arange(count) / count)[:, None]
        posts += [cylinder("fence post", (x, y, -0.2), 0.07, 1.5, WOOD) for x, y in places]
    return posts


def _house(middle: tuple[float, float], lengths: tuple[float, float], height: float) -> list[Solid]:
    """Return a wooden building with a gable roof along x."""
    (x, y), (length, width) = middle, lengths
    walls = box("house", (x - length / 2, y - width / 2, -0.5), (x + length / 2, y + width / 2, height), WOOD)
    pitch, slab = np.radians(25.0), width / 2 / np.cos(np.radians(25.0)) + 0.3
    roofs = [
        turned_box(
            "roof",
            (x, y + side * width / 4, height + np.tan(pitch) * width / 4),
            (length + 0.6, slab, 0.12),
            rotations.matrix_from_rotation_vector(np.array([-side * pitch, 0.0, 0.0])),
            TILES,
        )
        for side in (-1.0, 1.0)
    ]
    return [walls, *roofs]


def _parked_car(lights: Floats) -> list[Solid]:
    """Return a car whose headlights (2, 3) are at a place and shine in a direction."""
    ahead = lights[1, :2] / np.linalg.norm(lights[1, :2])
    yaw = turned(float(np.arctan2(ahead[1], ahead[0])))
    body, cabin = lights[0, :2] - 2.25 * ahead, lights[0, :2] - 2.5 * ahead
    return [
        turned_box("car", (*body, 0.65), (4.4, 1.8, 0.7), yaw, PAINT),
        turned_box("car", (*cabin, 1.25), (2.2, 1.6, 0.5), yaw, STEEL),
    ]
