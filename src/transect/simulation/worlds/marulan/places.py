"""Marulan's static scene, object by object from Table 1 of document 004, and what all its places share.

Table 1 counts from the left front pole of the frame: X to the right of the vehicle, Y ahead of it, cm. The
vehicle faces south (4.2), so X is west and Y is south. Heights are above the ground. What Table 1 does not
print (thickness of poles, height of the frame, leaves of the branch, equipment) is invented and says so.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats

from ...randomness import generator
from ...solids import LEAVES, Look, Solid, box, cylinder, ellipsoid, rod, tree
from ...terrain import Terrain, open_ground

GROUND = Look(near_infrared=0.3, backscatter=0.03)
STEEL = Look((0.55, 0.56, 0.58), 0.55, 8.0, 294.0)
REFLECTIVE = Look((0.85, 0.85, 0.8), 0.95, 0.3, 294.0)
PLASTIC = Look((0.2, 0.35, 0.6), 0.5, 0.3, 296.0)
BRICK = Look((0.5, 0.25, 0.18), 0.45, 0.8, 298.0)
RED_PLASTIC = Look((0.6, 0.12, 0.1), 0.5, 0.3, 296.0)
WOOD = Look((0.5, 0.42, 0.33), 0.55, 0.25, 295.0)
SHEET = Look((0.62, 0.64, 0.62), 0.5, 2.0, 300.0)
PAINT = Look((0.75, 0.76, 0.78), 0.5, 2.0, 297.0)

SENSOR_FRAME = np.array([190.0, -293.0, 185.0])
"""Table 1, object 1: centre of the Argo's sensor frame, cm."""
REFLECTOR_RCS = 100.0
"""m2, invented: a trihedral of 13 cm edges at 94 GHz."""


@dataclass(frozen=True, eq=False)
class Place:
    """Where a day happens.

    Attributes
    ----------
    terrain : Terrain
    solids : tuple of Solid
        Standing on the ground.
    route : (k, 2) array or None
        Corners of the round that the vehicle drives, m; None where it stands.
    walk : (k, 2) array
        Corners of the round that a human walks, m.
    car : (2, 3) array or None
        Position of the car's headlights in the world, m, and the direction they shine to.
    """

    terrain: Terrain
    solids: tuple[Solid, ...]
    route: Floats | None
    walk: Floats
    car: Floats | None = None


def spot(x: float, y: float, z: float = 0.0) -> Floats:
    """Return a spot of Table 1 (cm) in the world (m), z above the ground."""
    return np.array([-x, -y, z]) / 100


def standing(terrain: Terrain, solids: list[Solid]) -> tuple[Solid, ...]:
    """Return solids, given as if the ground were at 0, on the ground below their centres."""
    smooth = terrain.smoothed(0.25)
    raised = [s.centre + np.array([0.0, 0.0, float(smooth.at(s.centre[:2]))]) for s in solids]
    return tuple(dataclasses.replace(s, centre=centre) for s, centre in zip(solids, raised, strict=True))


def static(seed: int, reflectors: bool) -> Place:
    """Return the scene of the static tests; radar reflectors stood in datasets 22 to 24 (errata)."""
    ground = open_ground(seed, size_m=128.0, cell=0.125, relief=0.02, tufts=2500)
    things = [*_frame(), *_objects(), *_equipment(), *_horizon(seed), *(_reflectors() if reflectors else [])]
    walk = [(300, 60), (375, 300), (365, 690), (222, 700), (215, 420), (50, 440), (60, 150)]
    return Place(ground, standing(ground, things), None, np.array([spot(*corner)[:2] for corner in walk]))


def table_box(
    kind: str, x: tuple[float, float], y: tuple[float, float], z: tuple[float, float], look: Look
) -> Solid:
    """Return a box of Table 1, cm."""
    return box(kind, spot(x[0], y[0], z[0]), spot(x[1], y[1], z[1]), look)


def _pole(kind: str, x: float, y: float, radius: float, height: float, look: Look) -> Solid:
    return cylinder(kind, spot(x, y), radius, height, look)


def _frame() -> list[Solid]:
    """Return the sprinklers' frame: origin, 4 and 14; the fourth pole follows from 9.3 m by 4.3 m (4.1.3)."""
    high, thick = 2.5, 0.03  # both invented
    corners = [(0, 0), (431, 0), (431, 930), (0, 930)]
    poles = [_pole("supporting pole", x, y, thick, high, STEEL) for x, y in corners]
    tops = [spot(x, y, 100 * high) for x, y in corners]
    return poles + [rod("frame", tops[i - 1], tops[i], thick, STEEL) for i in range(4)]


def _objects() -> list[Solid]:
    """Return objects 5, 6, 8 to 10, 12 and 13 of Table 1."""
    return [
        _pole("tree", 108, 252, 0.025, 1.0, STEEL),  # 5: a branch tied to a metal bar
        ellipsoid("leaves", spot(168, 252, 90), [0.6, 0.3, 0.28], LEAVES, density=3.0),  # 1.2 m to the right
        _pole("laser pole", -23, 295, 0.045, 1.75, REFLECTIVE),
        _pole("laser pole", 440, 364, 0.045, 1.75, REFLECTIVE),
        table_box("plastic box", (117, 187), (567, 609), (0, 33), PLASTIC),
        table_box("plastic box", (117, 147), (578, 598), (33, 67), PLASTIC),
        table_box("brick tower", (26, 51), (672, 695), (0, 100), BRICK),
        table_box("canister", (315, 342), (758, 786), (0, 45), RED_PLASTIC),
        table_box("table", (98, 190), (861, 864), (0, 122), WOOD),
    ]


def _reflectors() -> list[Solid]:
    """Return objects 7 and 11: one hangs from the top of a pole, one stands on the ground."""
    hanging = table_box("radar reflector", (78, 98), (311, 331), (94, 114), STEEL)
    lying = table_box("radar reflector", (239, 259), (770, 790), (0, 29), STEEL)
    shiny: dict[str, Any] = {"rcs": REFLECTOR_RCS}
    return [
        _pole("reflector pole", 88, 321, 0.02, 0.94, WOOD),
        dataclasses.replace(hanging, **shiny),
        dataclasses.replace(lying, **shiny),
    ]


def _equipment() -> list[Solid]:
    """Return the water tank to the right of frame and vehicle (4.1.3) and the compressor; places invented."""
    return [
        table_box("water tank", (620, 820), (-180, -40), (30, 150), PAINT),
        table_box("trailer", (610, 830), (-190, -30), (20, 45), STEEL),
        table_box("compressor", (-520, -380), (-60, 60), (0, 110), PAINT),
    ]


def _horizon(seed: int) -> list[Solid]:
    """Return trees far behind the scene, invented."""
    rng = generator(seed, "marulan", "horizon")
    places = np.column_stack([rng.uniform(-45, 40, 14), rng.uniform(-58, -32, 14)])
    return [part for x, y in places for part in tree((x, y, 0.0), rng.uniform(5, 9), rng.uniform(1.5, 3))]
