"""The parameter file of the simulated arm: what the SIS prints, and what had to be invented.

The SIS lost some values (spec, 4.14 and 4.4). Those below are plausible, not InSight's; they are named in the
parameter file itself, in a set that the SIS does not have, and in ``conditions["invented"]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.geometry import se3
from transect.robots import load
from transect.simulation.randomness import generator
from transect.simulation.terrain import Terrain
from transect.simulation.textures import spectral_noise

from .arm.model import Arm, Sets, Soil

NOTE = "SIMULATION"
"""Name of the parameter set that says what is simulated."""
_NO_FORCE = ((2.0e-8, 0.0, 0.0), (0.0, 2.0e-8, 0.0), (0.0, 0.0, 2.0e-8))


def parameter_sets() -> dict[str, dict[str, Any]]:
    """Return all 32 sets of SIS 5.1.3, complete, and one that names what is invented."""
    constants = load("ida").constants
    sets: dict[str, dict[str, Any]] = {
        name: {key: _plain(value) for key, value in values.items()}
        for name, values in constants["parameters"].items()
    }
    sets["RA_ARM_PARAMS"]["x_wrist"] = _plain(constants["x_wrist"])  # by definition
    for name, values in _invent(sets, constants["fitted"]).items():
        sets.setdefault(name, {}).update(values)
    sets[NOTE] = {"simulated": "1", "invented": "; ".join(invented_keys())}
    return sets


def invented_keys() -> tuple[str, ...]:
    """Return what no document gives, as `SET key`."""
    constants = load("ida").constants
    invented = _invent(constants["parameters"], constants["fitted"])
    return tuple(f"{name} {key}" for name, values in invented.items() for key in values)


def _invent(printed: Any, fitted: Any) -> dict[str, dict[str, Any]]:
    """Return the values that the SIS lost; what reciprocity gives is taken from what is printed."""
    base, forearm = printed["RA_DEFL_LINK_0"], printed["RA_DEFL_LINK_3_UNSTOWED"]
    wrist = printed["RA_DEFL_LINK_4_STOWED"]
    return {
        "RA_ARM_PARAMS": {
            "x_scoop": (0.005, 0.0, 0.12, 0.0),
            "x_grapple_attach": _plain(fitted["x_grapple_attach"]),
            "dist_grapple": _plain(fitted["dist_grapple"]),
            "dist_seis": (0.0, 0.0, 0.309),  # the hook is 1 cm below the fingers (SIS 2.6.2.2: 5 cm less 4)
            "dist_wts": (0.0, 0.0, 0.309),
            "dist_hp3": (0.0, 0.0, 0.309),
        },
        "RA_CTRL_PARAMS": {"loop_time_thermostat": 1.0, "power_on_time_delay": 2, "off_count": 3},
        "RA_TAU_PARAMS": {"c_nl_4": (0.0, 0.0, 0.0, 0.0)},
        "RA_FAULT_DETECT": {"runaway_samples": 3, "ace_cal_samples": 4, "collision_mode": 2},
        "RA_DEFL_LINK_0": {
            "mass": 1.2,
            "cm_x": 0.0,
            "cm_y": 0.0,
            "cm_z": -0.03,
            "vCf": _NO_FORCE,
            "wCf": _transpose(base["vCm"]),
        },
        "RA_DEFL_LINK_3_STOWED": {
            "mass": 1.95,  # the grapple is folded to the forearm
            "cm_x": 0.545,
            "cm_y": 0.038,
            "cm_z": -0.019,
            "vCf": _plain(forearm["vCf"]),
            "wCf": _plain(forearm["wCf"]),
        },
        "RA_DEFL_LINK_4_UNSTOWED": {
            "mass": 0.6,  # the grapple hangs from the wrist
            "cm_x": 0.003,
            "cm_y": -0.021,
            "cm_z": -0.031,
            **{key: _plain(wrist[key]) for key in ("vCf", "wCf", "vCm", "wCm")},
        },
    }


def _plain(value: Any) -> Any:
    """Tuples where YAML makes lists, as the reader of parameter files has them."""
    return tuple(_plain(item) for item in value) if isinstance(value, list | tuple) else value


def _transpose(matrix: Any) -> Any:
    return tuple(zip(*_plain(matrix), strict=True))


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
