"""Places through which beams go: a cloud is told from what is seen through it, standing and driving."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.integrity.lasers.returns import find_porous, find_repeated, sweep_poses
from transect.integrity.lasers.sweeps import Sweeps

SWEEP_COUNT, BEAM_COUNT = 12, 181
ANGLES = np.linspace(-0.4, 0.4, BEAM_COUNT)


def sweeps_of(ranges: Floats) -> Sweeps:
    """Return scans (s, d), one per sweep, 50 ms apart."""
    sweep, direction = np.divmod(np.arange(ranges.size), ranges.shape[1])
    measured = np.ones(ranges.shape, bool)
    return Sweeps(ranges, ANGLES, measured, sweep, direction, sweep, direction, ranges.shape, 0.05)


def drive(ahead: Floats) -> Floats:
    """Return poses (s, 4, 4) of a laser that goes along x."""
    poses = np.tile(np.eye(4), (len(ahead), 1, 1))
    poses[:, 0, 3] = ahead
    return poses


def wall_in_dust(ahead: Floats) -> tuple[Floats, Mask]:
    """Return ranges (s, d) to a wall 9 m from the origin, and which dust from 2 to 6 m returned."""
    rng = np.random.default_rng(5)
    wall = (9.0 - ahead[:, None]) / np.cos(ANGLES) + rng.normal(0, 0.01, (len(ahead), BEAM_COUNT))
    dust = rng.random(wall.shape) < 0.7
    return np.where(dust, rng.uniform(2.0, 6.0, wall.shape), wall), dust


def test_grains_of_dust_are_porous_and_a_wall_behind_them_is_not() -> None:
    for speed in (0.0, 1.5):
        ahead = np.linspace(0.0, speed * 0.05 * SWEEP_COUNT, SWEEP_COUNT)
        ranges, dust = wall_in_dust(ahead)
        porous, untold = find_porous(sweeps_of(ranges), drive(ahead))
        assert np.mean(porous[dust]) > 0.97
        assert np.mean((porous | untold)[~dust]) < 0.01


def test_where_the_laser_moves_and_nobody_says_so_a_wall_is_not_there_again() -> None:
    ahead = np.linspace(0.0, 5.5, SWEEP_COUNT)  # 10 m/s
    wall = sweeps_of((40.0 - ahead[:, None]) / np.cos(ANGLES))
    assert find_repeated(wall, drive(ahead))[:, 20:-20].all()
    assert not find_repeated(wall, sweep_poses(wall, None))[1:-1].any()


def test_of_a_beam_that_no_other_reaches_nothing_is_told() -> None:
    ranges = np.full((SWEEP_COUNT, BEAM_COUNT), 2.0)
    ranges[6, 90] = 8.0
    porous, untold = find_porous(sweeps_of(ranges), drive(np.zeros(SWEEP_COUNT)))
    assert np.argwhere(untold).tolist() == [[6, 90]]
    assert not porous[6, 90]
    beside = porous[1:11, 89:92]
    assert not beside.any()  # one beam of 32 went on
