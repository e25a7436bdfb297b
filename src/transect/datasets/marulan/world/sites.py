"""Sites of Marulan (SDI): the static scene of Table 1, open area, houses and dam (4.3).

The origin of Table 1 is the left front pole of the frame: X is to the right of the vehicle, Y ahead, in cm.
The vehicle faces south (4.2), so that X is west and Y is south. Heights are above the ground. Dimensions that
are not in Table 1 (thickness of poles, height of the frame, leaves of the branch, equipment) are invented,
and marked as such, as are those of the other sites, which SDI describes by words and photographs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from transect.base.arrays import Floats
from transect.geometry import rotations
from transect.simulation.randomness import generator
from transect.simulation.solids import (
    LEAVES,
    Solid,
    SurfaceMaterial,
    box,
    cylinder,
    ellipsoid,
    rod,
    rotation_about_z,
    tree,
    turned_box,
)
from transect.simulation.terrain import Terrain, open_ground

GROUND = SurfaceMaterial(near_infrared=0.3, backscatter=0.03)
STEEL = SurfaceMaterial((0.55, 0.56, 0.58), 0.55, 8.0, 294.0)
REFLECTIVE = SurfaceMaterial((0.85, 0.85, 0.8), 0.95, 0.3, 294.0)
PLASTIC = SurfaceMaterial((0.2, 0.35, 0.6), 0.5, 0.3, 296.0)
BRICK = SurfaceMaterial((0.5, 0.25, 0.18), 0.45, 0.8, 298.0)
RED_PLASTIC = SurfaceMaterial((0.6, 0.12, 0.1), 0.5, 0.3, 296.0)
WOOD = SurfaceMaterial((0.5, 0.42, 0.33), 0.55, 0.25, 295.0)
SHEET = SurfaceMaterial((0.62, 0.64, 0.62), 0.5, 2.0, 300.0)
PAINT = SurfaceMaterial((0.75, 0.76, 0.78), 0.5, 2.0, 297.0)

SENSOR_FRAME = np.array([190.0, -293.0, 185.0])
"""Table 1, object 1: centre of the Argo's sensor frame, cm."""


@dataclass(frozen=True, eq=False)
class Site:
    """Terrain, solids and routes of a simulated day."""

    terrain: Terrain
    solids: tuple[Solid, ...]  # on the ground
    route: Floats | None  # (k, 2) corners of the vehicle's loop, m; None if it stands
    walk: Floats  # (k, 2) corners of the loop that a person walks, m
    car: Floats | None = None  # (2, 3) position (m) and direction of the car's headlights in the world


def from_table_1(x: float, y: float, z: float = 0.0) -> Floats:
    """Return the position (3,) in the world, m, of coordinates of Table 1, cm; z is above the ground."""
    return np.array([-x, -y, z]) / 100


def put_on_ground(terrain: Terrain, solids: list[Solid]) -> tuple[Solid, ...]:
    """Return solids with heights above the ground, shifted by the terrain height at their centres."""
    smooth = terrain.smooth(0.25)
    raised = [s.centre + np.array([0.0, 0.0, float(smooth.at(s.centre[:2]))]) for s in solids]
    return tuple(dataclasses.replace(s, centre=centre) for s, centre in zip(solids, raised, strict=True))


def build_static(seed: int, reflectors: bool) -> Site:
    """Return the scene of the static tests; radar reflectors stood in datasets 22 to 24 (errata)."""
    ground = open_ground(seed, size_m=128.0, cell=0.125, relief=0.02, tufts=2500)
    objects = [
        *_build_frame(),
        *_build_objects(),
        *_build_equipment(),
        *_build_horizon(seed),
        *(_build_reflectors() if reflectors else []),
    ]
    walk = [(300, 60), (375, 300), (365, 690), (222, 700), (215, 420), (50, 440), (60, 150)]
    return Site(
        ground, put_on_ground(ground, objects), None, np.array([from_table_1(*corner)[:2] for corner in walk])
    )


def build_bare(seed: int) -> Site:
    """Return the ground of the static tests, with the equipment beside it and the trees far behind."""
    whole = build_static(seed, reflectors=False)
    kept = {"water tank", "trailer", "compressor", "trunk", "leaves"}
    near = -12.0  # m: the branch of Table 1 has leaves as well
    solids = tuple(
        s for s in whole.solids if s.kind in kept and not (s.kind == "leaves" and s.centre[1] > near)
    )
    return dataclasses.replace(whole, solids=solids)


def _build_table_box(
    kind: str, x: tuple[float, float], y: tuple[float, float], z: tuple[float, float], look: SurfaceMaterial
) -> Solid:
    """Return a box of Table 1, cm."""
    return box(kind, from_table_1(x[0], y[0], z[0]), from_table_1(x[1], y[1], z[1]), look)


def _build_pole(kind: str, x: float, y: float, radius: float, height: float, look: SurfaceMaterial) -> Solid:
    return cylinder(kind, from_table_1(x, y), radius, height, look)


def _build_frame() -> list[Solid]:
    """Return the sprinklers' frame: origin, 4 and 14; the fourth pole by the size 9.3 m by 4.3 m (4.1.3)."""
    high, thick = 2.5, 0.03  # both invented
    corners = [(0, 0), (431, 0), (431, 930), (0, 930)]
    poles = [_build_pole("supporting pole", x, y, thick, high, STEEL) for x, y in corners]
    tops = [from_table_1(x, y, 100 * high) for x, y in corners]
    return poles + [rod("frame", tops[i - 1], tops[i], thick, STEEL) for i in range(4)]


def _build_objects() -> list[Solid]:
    """Return objects 5, 6, 8 to 10, 12 and 13 of Table 1."""
    return [
        _build_pole("tree", 108, 252, 0.025, 1.0, STEEL),  # 5: a branch tied to a metal bar
        ellipsoid(
            "leaves", from_table_1(168, 252, 90), [0.6, 0.3, 0.28], LEAVES, density=3.0
        ),  # 1.2 m to the right
        _build_pole("laser pole", -23, 295, 0.045, 1.75, REFLECTIVE),
        _build_pole("laser pole", 440, 364, 0.045, 1.75, REFLECTIVE),
        _build_table_box("plastic box", (117, 187), (567, 609), (0, 33), PLASTIC),
        _build_table_box("plastic box", (117, 147), (578, 598), (33, 67), PLASTIC),
        _build_table_box("brick tower", (26, 51), (672, 695), (0, 100), BRICK),
        _build_table_box("canister", (315, 342), (758, 786), (0, 45), RED_PLASTIC),
        _build_table_box("table", (98, 190), (861, 864), (0, 122), WOOD),
    ]


def _build_reflectors() -> list[Solid]:
    """Return objects 7 and 11: one hangs from the top of a pole, one is on the ground."""
    hanging = _build_table_box("radar reflector", (78, 98), (311, 331), (94, 114), STEEL)
    lying = _build_table_box("radar reflector", (239, 259), (770, 790), (0, 29), STEEL)
    rcs_m2 = 100.0  # invented: a trihedral of 13 cm edges at 94 GHz
    return [
        _build_pole("reflector pole", 88, 321, 0.02, 0.94, WOOD),
        dataclasses.replace(hanging, rcs=rcs_m2),
        dataclasses.replace(lying, rcs=rcs_m2),
    ]


def _build_equipment() -> list[Solid]:
    """Return the water tank right of frame and vehicle (4.1.3) and the compressor; positions invented."""
    return [
        _build_table_box("water tank", (620, 820), (-180, -40), (30, 150), PAINT),
        _build_table_box("trailer", (610, 830), (-190, -30), (20, 45), STEEL),
        _build_table_box("compressor", (-520, -380), (-60, 60), (0, 110), PAINT),
    ]


def _build_horizon(seed: int) -> list[Solid]:
    """Return invented trees far behind the scene."""
    rng = generator(seed, "marulan", "horizon")
    positions = np.column_stack([rng.uniform(-45, 40, 14), rng.uniform(-58, -32, 14)])
    return [part for x, y in positions for part in tree((x, y, 0.0), rng.uniform(5, 9), rng.uniform(1.5, 3))]


WATER = SurfaceMaterial((0.05, 0.08, 0.1), 0.01, 1e-4, 288.0)
ROCK = SurfaceMaterial((0.42, 0.4, 0.36), 0.4, 0.5, 297.0)
TILES = SurfaceMaterial((0.45, 0.3, 0.25), 0.4, 0.5, 302.0)
GROUND_SIZE_M, GROUND_CELL_M = 128.0, 0.125


def build_open_area(seed: int) -> Site:
    """Return the Triangle: a shed with metal walls in the north, fences beside it and in the south-west."""
    ground = open_ground(seed, GROUND_SIZE_M, GROUND_CELL_M, relief=0.12, tufts=1200, ground="soil")
    car = np.array([[26.0, -6.0, 0.75], [-1.0, 0.1, -0.06]])
    objects = [
        box("shed", (-4, 27, -0.5), (14, 36, 4.5), SHEET),
        *_build_fence([(14, 28), (52, 26)]),
        *_build_fence([(-46, 8), (-8, -42)]),
        *_park_car(car),
        box("water tank", (14, 20, 0.2), (16, 21.4, 1.5), PAINT),
        box("compressor", (-16, 14, 0), (-14.6, 15.2, 1.1), PAINT),
    ]
    route = np.array([(-18.0, -8.0), (8.0, -20.0), (20.0, 10.0), (-6.0, 14.0)])
    walk = np.array([(-2.0, -4.0), (8.0, -6.0), (9.0, 5.0), (0.0, 6.0)])
    return Site(ground, put_on_ground(ground, objects), route, walk, car)


def build_houses(seed: int) -> Site:
    """Return three wooden buildings, a long one in the south and two small ones in the north, and a fence."""
    ground = open_ground(seed, GROUND_SIZE_M, GROUND_CELL_M, relief=0.15, tufts=4000)
    objects = [
        *_build_house((0.0, -16.0), (22.0, 6.0), 3.0),
        *_build_house((-11.0, 13.0), (7.0, 5.0), 2.8),
        *_build_house((10.0, 14.0), (8.0, 5.0), 2.8),
        *_build_fence([(-32, -28), (32, -28), (32, 30), (-32, 30), (-32, -28)]),
        *_park_car(np.array([[-26.0, -20.0, 0.75], [0.3, 1.0, 0.0]])),
    ]
    route = np.array([(-22.0, -6.0), (21.0, -7.0), (21.0, 23.0), (-1.0, 22.0), (-1.0, 4.0), (-21.0, 4.0)])
    walk = np.array([(-14.0, -1.0), (14.0, -1.5), (14.0, 1.5), (-14.0, 1.0)])
    return Site(ground, put_on_ground(ground, objects), route, walk)


def build_yard(seed: int) -> Site:
    """Return the same buildings, with a short loop around the small one in the north-west."""
    route = np.array([(-17.5, 6.5), (-4.5, 6.5), (-4.5, 19.5), (-17.5, 19.5)])
    return dataclasses.replace(build_houses(seed), route=route)


def build_row(seed: int) -> Site:
    """Return a street between equal houses at equal distances: a test of perceptual aliasing."""
    route = np.array([(-50.0, 0.0), (50.0, 0.0), (50.0, 20.0), (-61.0, 20.0), (-61.0, 0.0)])
    middles = [(x, side * 9.0) for x in np.arange(-54.0, 43.0, 12.0) for side in (-1.0, 1.0)]
    return _build_street(seed, middles, (7.0, 5.0), route)


def build_terrace(seed: int) -> Site:
    """Return a street of houses every 6 m, which is left until nothing is in range, and entered again."""
    route = np.array([(-33.0, 0.0), (36.0, 0.0), (36.0, 52.0), (-40.0, 52.0), (-40.0, 0.0)])
    middles = [(x, side * 8.0) for x in np.arange(-27.0, 28.0, 6.0) for side in (-1.0, 1.0)]
    return _build_street(seed, middles, (4.0, 5.0), route)


def _build_street(
    seed: int, middles: Sequence[tuple[float, float]], lengths: tuple[float, float], route: Floats
) -> Site:
    ground = open_ground(seed, GROUND_SIZE_M, GROUND_CELL_M, relief=0.05, tufts=0)
    objects = [part for middle in middles for part in _build_house(middle, lengths, 2.8)]
    walk = np.array([(-14.0, -1.0), (14.0, -1.5), (14.0, 1.5), (-14.0, 1.0)])
    return Site(ground, put_on_ground(ground, objects), route, walk)


def build_dam(seed: int) -> Site:
    """Return an area beside a lake, with a small eucalyptus forest in the south."""
    ground = _dig_lake(
        open_ground(seed, GROUND_SIZE_M, GROUND_CELL_M, relief=0.25, slope=(0.01, -0.015), tufts=4000)
    )
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
    water_level_m = -1.6
    water = box("water", (-60, 14, -3), (60, 62, water_level_m), WATER)
    route = np.array([(-22.0, -5.0), (18.0, -8.0), (23.0, 7.0), (-15.0, 9.0)])
    clear = [s for s in stones if _measure_distance(s.centre[:2], route) > 2.0]
    walk = np.array([(-6.0, -2.0), (8.0, -3.0), (10.0, 3.0), (-5.0, 4.0)])
    return Site(ground, (*put_on_ground(ground, trees + clear), water), route, walk)


def _dig_lake(terrain: Terrain) -> Terrain:
    """Return a terrain with a basin in the north, deeper than the water level."""
    west, south, east, north = terrain.extent
    rows, columns = terrain.height.shape
    x, y = np.linspace(west, east, columns), np.linspace(south, north, rows)[:, None]
    ramp = np.clip((1.25 - np.hypot(x / 38.0, (y - 36.0) / 20.0)) / 0.35, 0.0, 1.0)
    depth = 3.0 * ramp**2 * (3 - 2 * ramp)
    return dataclasses.replace(terrain, height=(terrain.height - depth).astype(np.float32))


def _measure_distance(point: Floats, route: Floats) -> float:
    """Return the distance of a point (2,) from a closed route (k, 2)."""
    a, b = route, np.roll(route, -1, axis=0)
    along = b - a
    u = np.clip(np.einsum("ij,ij->i", point - a, along) / np.einsum("ij,ij->i", along, along), 0.0, 1.0)
    return float(np.linalg.norm(a + u[:, None] * along - point, axis=1).min())


def _build_fence(corners: list[tuple[float, float]]) -> list[Solid]:
    """Return wooden posts, three metres apart, without the thin barbed wire between them."""
    posts: list[Solid] = []
    for start, end in pairwise(corners):
        a, b = np.array(start, np.float64), np.array(end, np.float64)
        count = int(np.linalg.norm(b - a) // 3.0)
        positions = a + (b - a) * (np.arange(count) / count)[:, None]
        posts += [cylinder("fence post", (x, y, -0.2), 0.07, 1.5, WOOD) for x, y in positions]
    return posts


def _build_house(middle: tuple[float, float], lengths: tuple[float, float], height: float) -> list[Solid]:
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


def _park_car(lights: Floats) -> list[Solid]:
    """Return a car with headlights (2, 3): position and direction."""
    ahead = lights[1, :2] / np.linalg.norm(lights[1, :2])
    yaw = rotation_about_z(float(np.arctan2(ahead[1], ahead[0])))
    body, cabin = lights[0, :2] - 2.25 * ahead, lights[0, :2] - 2.5 * ahead
    return [
        turned_box("car", (*body, 0.65), (4.4, 1.8, 0.7), yaw, PAINT),
        turned_box("car", (*cabin, 1.25), (2.2, 1.6, 0.5), yaw, STEEL),
    ]
