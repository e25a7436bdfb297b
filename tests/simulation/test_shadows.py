"""Shadows are the same whether all shadow rays are cast or only those that may hit something."""

import numpy as np
import pytest

from transect.simulation import solids, terrain
from transect.simulation.light import open_ground, sunlit
from transect.simulation.raycast import NO_HIT, Scene, cast


@pytest.mark.parametrize("azimuth", [20.0, 110.0, 250.0, 290.0])
@pytest.mark.parametrize(("elevation", "open_part"), [(8.0, 0.05), (50.0, 0.5)])
def test_no_ground_is_called_open_on_which_a_shadow_falls(
    azimuth: float, elevation: float, open_part: float
) -> None:
    land = terrain.rough(5, size_m=9.6, cell=0.1)
    ball = solids.Solids.of([solids.sphere("ball", [1.0, 1.0, float(land.at([1.0, 1.0])) + 0.8], 0.4)])
    scene = Scene(land, ball)
    turn, up = np.radians([azimuth, elevation])
    sun = np.array([np.cos(turn) * np.cos(up), np.sin(turn) * np.cos(up), np.sin(up)])
    origin = np.array([0.0, 0.0, 30.0])
    places = np.random.default_rng(1).uniform(-4.5, 4.5, (20_000, 2))
    rays = np.column_stack([places, land.at(places)]) - origin
    rays /= np.linalg.norm(rays, axis=1)[:, None]
    hits = cast(scene, origin, rays)
    starts = origin + hits.range[:, None] * rays + 0.003 * hits.normal
    expected = (cast(scene, starts, sun).kind == NO_HIT) & (hits.normal @ sun > 0)
    found = sunlit(scene, origin, rays, hits, sun, 0.0)
    assert np.array_equal(found, expected)
    assert (~expected).any()
    assert open_ground(land, tuple(sun.tolist())).mean() > open_part
