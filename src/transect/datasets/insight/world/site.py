"""Where the simulated lander stands: its tilt, the ground in front of it, and what is on its deck.

The SIS gives the tilt (gravity in the IDA frame) and where the payloads stand on the deck. That the deck is
0.92 m above the ground and that the arm reaches out to the south is invented here, as is the soil.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.geometry import se3
from transect.simulation.randomness import generator
from transect.simulation.terrain import Terrain
from transect.simulation.textures import spectral_noise

from .arm.contact import Soil
from .arm.model import Arm, Sets

DECK_HEIGHT = 0.92
"""m of the IDA frame's origin above the ground, along gravity."""
SIZE, CELL = 36.0, 0.03
"""m: side of the terrain, and its grid."""
RELIEF, ROUGHNESS = 0.015, 0.0015
"""m, of wavelengths up to 3 m and up to 0.3 m. The landing site was chosen because it is smooth."""
ROCKS = 700
CLEAR = 0.25
"""m around the spots that the arm uses in which no rock lies: operators would not have chosen them."""
SPOTS = ((0.95, -0.45), (0.98, -0.20), (1.00, 0.05), (0.80, -0.65), (1.02, -0.33), (0.92, 0.20))
"""x, y in the IDA frame (m) where the scoop works, one after the other."""
PLACES = {"seis": (1.42, -0.20), "wts": (1.42, -0.20), "hp3": (1.30, 0.55)}
"""x, y in the IDA frame (m) where the payloads are put; the shield goes over the seismometer."""


@dataclass(frozen=True, eq=False)
class Site:
    """Lander and ground."""

    arm: Arm
    sets: Sets  # parameter sets
    seed: int

    @cached_property
    def T_world_payload(self) -> Floats:
        """(4, 4): from the IDA frame to the world (x east, y north, z up), whose origin is on the ground."""
        down = self.arm.down
        south = np.array([1.0, 0.0, 0.0]) - down[0] * down
        south /= np.linalg.norm(south)
        west = np.cross(down, south)
        rotation = np.stack([-west, -south, -down])
        return se3.from_matrix(rotation, np.array([0.0, 0.0, DECK_HEIGHT]))

    @cached_property
    def terrain(self) -> Terrain:
        """The ground, with its rocks."""
        n, edge = round(SIZE / CELL) + 1, -SIZE / 2
        height, rock = np.zeros((n, n), dtype=np.float32), np.zeros((n, n), dtype=np.int16)
        for name, size, slope, longest in (("relief", RELIEF, 2.6, 3.0), ("roughness", ROUGHNESS, 1.2, 0.3)):
            height += size * spectral_noise(generator(self.seed, "site", name), (n, n), slope, longest / CELL)
        for number, (x, y, radius, tall) in enumerate(self._rocks(), start=1):
            columns, rows = (_near(at - edge, radius, n) for at in (x, y))
            apart = (CELL * rows + edge - y)[:, None] ** 2 + (CELL * columns + edge - x) ** 2
            bump = tall * np.sqrt(np.clip(1.0 - apart / radius**2, 0.0, None)).astype(np.float32)
            patch = np.ix_(rows, columns)
            height[patch] += bump
            rock[patch] = np.where(bump > 0.0, number, rock[patch])
        return Terrain(height, CELL, (edge, edge), rock, "regolith")

    def _rocks(self) -> list[tuple[float, float, float, float]]:
        """Return x, y, radius and height (m) of rocks in the world, none where the arm works."""
        rng = generator(self.seed, "site", "rocks")
        places = rng.uniform(-SIZE / 2, SIZE / 2, (ROCKS, 2))
        radius = np.minimum(0.03 * (1.0 + rng.pareto(2.0, ROCKS)), 0.25)
        tall = radius * rng.uniform(0.4, 0.9, ROCKS)
        used = np.array([self.world([*spot, DECK_HEIGHT])[:2] for spot in (*SPOTS, *PLACES.values())])
        apart = np.linalg.norm(places[:, None] - used, axis=-1).min(axis=1)
        chosen = apart > radius + CLEAR
        return [(float(p[0]), float(p[1]), float(r), float(t))
                for p, r, t in zip(places[chosen], radius[chosen], tall[chosen], strict=True)]  # fmt: skip

    def world(self, point: object) -> Floats:
        """Return a point (3,) of the IDA frame in the world."""
        return se3.apply(self.T_world_payload, np.asarray(point, dtype=np.float64))

    def level(self, x: float, y: float) -> float:
        """Where the ground under a point of the IDA frame lies along gravity, m."""
        return DECK_HEIGHT - float(self.terrain.at(self.world([x, y, DECK_HEIGHT])[:2]))

    def surface(self, x: float, y: float) -> float:
        """Height of the ground below (x, y) as z in the IDA frame, m."""
        down = self.arm.down
        return float((self.level(x, y) - down[0] * x - down[1] * y) / down[2])

    def soil(self, spot: int, drag: float = 0.0) -> Soil:
        """Return the soil at a spot: firmer here and softer there, and six times as stiff when let go.

        It is soft, so that presses stay under 25 N: with more, friction no longer exceeds what the motors
        have to hold while letting go, and the flight software cannot tell which way its friction acts.
        """
        x, y = SPOTS[spot % len(SPOTS)]
        stiffness = 900.0 * float(np.exp(0.1 * generator(self.seed, "soil", spot).standard_normal()))
        return Soil(f"spot {spot}", self.level(x, y), stiffness, 6.0 * stiffness, drag)


def _near(place: float, radius: float, corners: int) -> NDArray[np.intp]:
    """Corners of the grid within `radius` of a place along an axis, m from its first corner."""
    first, last = (round((place + side * radius) / CELL) for side in (-1.0, 1.0))
    return np.arange(max(first, 0), min(last, corners - 1) + 1)
