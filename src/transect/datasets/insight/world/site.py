"""Parameter file and landing site of the simulated arm.

The parameters are those that the SIS prints. Values that are missing in its listings are invented: plausible,
not InSight's. They are listed in the parameter file, in a set that the SIS does not have, and in
``conditions["invented"]``.
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

from .arm.model import ElasticArm, Sets, SoilPatch

SIMULATION_SET = "SIMULATION"
"""Parameter set that lists the invented parameters."""
_BASE_COMPLIANCE = ((2.0e-8, 0.0, 0.0), (0.0, 2.0e-8, 0.0), (0.0, 0.0, 2.0e-8))


def parameter_sets() -> dict[str, dict[str, Any]]:
    """Return all 32 sets of SIS 5.1.3, complete, and one that lists the invented parameters."""
    constants = load("ida").constants
    sets: dict[str, dict[str, Any]] = {
        name: {key: _plain(value) for key, value in values.items()}
        for name, values in constants["parameters"].items()
    }
    sets["RA_ARM_PARAMS"]["x_wrist"] = _plain(constants["x_wrist"])  # by definition
    for name, values in _invent(sets, constants["fitted"]).items():
        sets.setdefault(name, {}).update(values)
    sets[SIMULATION_SET] = {"simulated": "1", "invented": "; ".join(invented_keys())}
    return sets


def invented_keys() -> tuple[str, ...]:
    """Return the parameters that no document gives, as `SET key`."""
    constants = load("ida").constants
    invented = _invent(constants["parameters"], constants["fitted"])
    return tuple(f"{name} {key}" for name, values in invented.items() for key in values)


def _invent(printed: Any, fitted: Any) -> dict[str, dict[str, Any]]:
    """Return the missing values; those that follow by reciprocity are computed from printed ones."""
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
            "vCf": _BASE_COMPLIANCE,
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
    """Convert lists of YAML to tuples, as the reader of parameter files returns them."""
    return tuple(_plain(item) for item in value) if isinstance(value, list | tuple) else value


def _transpose(matrix: Any) -> Any:
    return tuple(zip(*_plain(matrix), strict=True))


@dataclass(frozen=True)
class SiteSettings:
    """Shape of the ground; invented. The landing site was chosen because it is smooth."""

    deck_height_m: float = 0.92  # of the IDA frame's origin above the ground, along gravity
    size_m: float = 36.0  # side of the terrain
    cell_m: float = 0.03  # of its grid
    relief_m: float = 0.015  # standard deviation at wavelengths up to 3 m
    roughness_m: float = 0.0015  # standard deviation at wavelengths up to 0.3 m
    rock_count: int = 700
    # radius around the spots that the arm uses without rocks: operators would not choose spots near rocks
    rock_free_m: float = 0.25
    # Soil. It is soft, so that presses stay under 25 N: with more, the torque during unloading no longer
    # exceeds the friction of the motors, and the flight software cannot determine the sign of the friction.
    soil_stiffness: float = 900.0  # N/m, median of the spots
    soil_sigma: float = 0.1  # of its logarithm between the spots
    rebound_ratio: float = 6.0  # of unloading stiffness to loading stiffness


SITE = SiteSettings()
SOIL_SPOTS = ((0.95, -0.45), (0.98, -0.20), (1.00, 0.05), (0.80, -0.65), (1.02, -0.33), (0.92, 0.20))
"""x, y in the IDA frame (m) at which the scoop works, one after the other."""
PAYLOAD_POSITIONS = {"seis": (1.42, -0.20), "wts": (1.42, -0.20), "hp3": (1.30, 0.55)}
"""x, y in the IDA frame (m) of the deployed payloads; the shield covers the seismometer."""


@dataclass(frozen=True, eq=False)
class LandingSite:
    """Lander and ground."""

    arm: ElasticArm
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
        return se3.from_matrix(rotation, np.array([0.0, 0.0, SITE.deck_height_m]))

    @cached_property
    def terrain(self) -> Terrain:
        """The ground, with its rocks."""
        n, edge = round(SITE.size_m / SITE.cell_m) + 1, -SITE.size_m / 2
        height, rock = np.zeros((n, n), dtype=np.float32), np.zeros((n, n), dtype=np.int16)
        for name, sigma, slope, longest in (
            ("relief", SITE.relief_m, 2.6, 3.0),
            ("roughness", SITE.roughness_m, 1.2, 0.3),
        ):
            rng = generator(self.seed, "site", name)
            height += sigma * spectral_noise(rng, (n, n), slope, longest / SITE.cell_m)
        for number, (x, y, radius, rock_height) in enumerate(self._rocks(), start=1):
            columns, rows = (_grid_range(centre - edge, radius, n) for centre in (x, y))
            squared = (SITE.cell_m * rows + edge - y)[:, None] ** 2 + (SITE.cell_m * columns + edge - x) ** 2
            bump = rock_height * np.sqrt(np.clip(1.0 - squared / radius**2, 0.0, None)).astype(np.float32)
            patch = np.ix_(rows, columns)
            height[patch] += bump
            rock[patch] = np.where(bump > 0.0, number, rock[patch])
        return Terrain(height, SITE.cell_m, (edge, edge), rock, "regolith")

    def _rocks(self) -> list[tuple[float, float, float, float]]:
        """Return x, y, radius and height (m) of rocks in the world, none near the spots of the arm."""
        rng = generator(self.seed, "site", "rocks")
        centres = rng.uniform(-SITE.size_m / 2, SITE.size_m / 2, (SITE.rock_count, 2))
        radius = np.minimum(0.03 * (1.0 + rng.pareto(2.0, SITE.rock_count)), 0.25)
        height = radius * rng.uniform(0.4, 0.9, SITE.rock_count)
        spots = (*SOIL_SPOTS, *PAYLOAD_POSITIONS.values())
        used = np.array([self.world([*spot, SITE.deck_height_m])[:2] for spot in spots])
        distance = np.linalg.norm(centres[:, None] - used, axis=-1).min(axis=1)
        chosen = distance > radius + SITE.rock_free_m
        rocks = np.column_stack([centres, radius, height])[chosen]
        return [(x, y, r, h) for x, y, r, h in rocks.tolist()]

    def world(self, point: object) -> Floats:
        """Transform a point (3,) from the IDA frame to the world."""
        return se3.apply(self.T_world_payload, np.asarray(point, dtype=np.float64))

    def level(self, x: float, y: float) -> float:
        """Distance of the ground at (x, y) from the origin of the IDA frame along gravity, m."""
        return SITE.deck_height_m - float(self.terrain.at(self.world([x, y, SITE.deck_height_m])[:2]))

    def surface(self, x: float, y: float) -> float:
        """Z of the ground at (x, y) in the IDA frame, m."""
        down = self.arm.down
        return float((self.level(x, y) - down[0] * x - down[1] * y) / down[2])

    def soil(self, spot: int, drag: float = 0.0) -> SoilPatch:
        """Return the soil at a spot."""
        x, y = SOIL_SPOTS[spot % len(SOIL_SPOTS)]
        variation = SITE.soil_sigma * generator(self.seed, "soil", spot).standard_normal()
        stiffness = SITE.soil_stiffness * float(np.exp(variation))
        return SoilPatch(f"spot {spot}", self.level(x, y), stiffness, SITE.rebound_ratio * stiffness, drag)


def _grid_range(centre: float, radius: float, size: int) -> NDArray[np.intp]:
    """Grid indices within `radius` (m) of a coordinate along an axis, m from the first grid point."""
    first, last = (round((centre + side * radius) / SITE.cell_m) for side in (-1.0, 1.0))
    return np.arange(max(first, 0), min(last, size - 1) + 1)
