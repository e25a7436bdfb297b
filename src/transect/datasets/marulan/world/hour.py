"""What moves and goes wrong in an ordinary clear hour, though nothing is wrong: wind, visitors, real sensors.

A world in which nothing moves flatters whatever is judged on it. With `wind` breeze, leaves and grass sway.
With `human` visitors, two people come, walk about, stand and leave, and a car passes. With `sensors` real,
the beams of the lasers are as wide as in the maker's data, so that at edges they measure between two
surfaces; an idling engine shakes the vehicle; insects return some beams and some are lost; and scans are
stamped when the computer comes to it, as in real logs of such lasers. How much of all that there is, is
invented, except where it is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.geometry import rotations
from transect.simulation.randomness import generator
from transect.simulation.solids import STEP, Look, Solid, box, ellipsoid, human, walk_round
from transect.simulation.terrain import Terrain

from .lasers import NO_RETURN
from .places import PAINT, Place, put_on_ground

CLEAR_HOUR: Mapping[str, str] = {"wind": "breeze", "human": "visitors", "sensors": "real"}
"""Conditions under which false alarms are counted; `scene` and `light` may be any."""
GRASS = Look((0.35, 0.33, 0.16), 0.45, 0.03, 296.0)
SWAYS = 8
"""Ways to sway; leaves share them, as trees in one gust do."""
CLUMPS = 60
SHAKING = 0.0003
"""rad, one sigma about each axis from scan to scan: an idling engine."""
STRAY, LOST = 1.2e-6, 1e-5
"""Share of the beams that an insect returns (about one a minute and laser), and that get no answer."""
INSECTS = 2000
"""cm up to which an insect is seen."""
LATE = 0.001
"""s, one sigma of the delay of a stamp: real logs of such lasers (fr079, CSAIL) scatter by so much."""
BUSY, BUSY_S = 0.01, 0.010
"""Share of the scans that wait for a busy computer, and for how long at the most; of the same logs."""
APART_NS = 100_000
"""Two stamps are so far apart at the least."""
MISSING = 0.001
"""Share of the scans that are not in the log; fr079 misses eight times as many."""


# Wind


def sway(solids: Iterable[Solid], seed: int, steps: int) -> list[Solid]:
    """Return solids whose leaves sway, each by one of a few tracks of so many steps."""
    tracks = [_make_sway(seed, number, steps) for number in range(SWAYS)]
    pick = generator(seed, "marulan", "wind", "pick")
    return [
        s.moving(tracks[int(pick.integers(SWAYS))]) if np.isfinite(s.density) and s.track is None else s
        for s in solids
    ]


def _make_sway(seed: int, number: int, steps: int) -> Floats:
    """Return offsets (steps, 3): swinging at half a hertz to one and a half, in gusts of a minute or less."""
    draw = generator(seed, "marulan", "wind", number)
    t = STEP * np.arange(steps)
    gusts = (
        0.5 + 0.5 * sum(np.sin(2 * np.pi * t / p + draw.uniform(0, 6.3)) for p in draw.uniform(15, 60, 2)) / 2
    )
    size = draw.uniform(0.02, 0.06)
    swings = [np.sin(2 * np.pi * f * t + draw.uniform(0, 6.3)) for f in draw.uniform(0.4, 1.5, 3)]
    level = [size * gusts * (0.5 + swing) for swing in swings[:2]]
    return np.column_stack([*level, 0.2 * size * gusts * swings[2]])


def grow_grass(place: Place, seed: int) -> list[Solid]:
    """Return clumps of grass on the ground around the middle of a place, where no one drives."""
    draw = generator(seed, "marulan", "grass")
    near = np.array([draw.normal(0.0, 14.0, 2) for _ in range(4 * CLUMPS)])
    free = near[_measure_way(place, near) > 2.5][:CLUMPS]
    sizes = np.column_stack([draw.uniform(0.1, 0.4, (len(free), 2)), draw.uniform(0.12, 0.45, len(free))])
    clumps = [
        ellipsoid("grass", (*xy, 0.0), size, GRASS, density=6.0) for xy, size in zip(free, sizes, strict=True)
    ]
    return list(put_on_ground(place.terrain, clumps))


def _measure_way(place: Place, points: Floats) -> Floats:
    """Return (n,) how far points (n, 2) are from where the vehicle stands or drives, m."""
    if place.route is None:
        return np.linalg.norm(points - np.array([-1.9, 2.93]), axis=1)
    ends = np.roll(place.route, -1, axis=0)
    along = ends - place.route
    to = points[:, None] - place.route
    u = np.clip((to * along).sum(axis=2) / (along**2).sum(axis=1), 0.0, 1.0)
    return np.linalg.norm(to - u[..., None] * along, axis=2).min(axis=1)


# Visitors

REST = np.array([-24.0, -61.0])
"""Where visitors of the static scene wait: behind the trees."""
LANE = {True: -29.0, False: -47.0}
"""y of the way on which a car passes, m: where the vehicle stands, and where it drives."""
WALKING, DRIVING, STRIDE = 1.2, 6.0, 1.4
"""m/s, m/s, and m for two steps."""


def invite(place: Place, seed: int, steps: int) -> list[Solid]:
    """Return two people who come and go, and a car that passes."""
    ground = place.terrain.smooth(0.25)
    people = [part for number in range(2) for part in _make_visitor(place, ground, seed, number, steps)]
    return [*people, *_make_car(place, ground, seed, steps)]


def _make_visitor(place: Place, ground: Terrain, seed: int, number: int, steps: int) -> list[Solid]:
    draw = generator(seed, "marulan", "visitor", number)
    round_way, _ = walk_round(np.column_stack([place.walk, np.zeros(len(place.walk))]), WALKING)
    loop = np.roll(round_way[:, :2], -int(draw.integers(len(round_way))), axis=0)
    parts: list[Floats] = []
    while sum(len(part) for part in parts) < steps:
        parts += _make_visit(place, loop, draw)
    xy = np.concatenate(parts)[:steps]
    moved = np.diff(xy, axis=0, prepend=xy[:1])
    way = np.cumsum(np.linalg.norm(moved, axis=1))
    along = moved / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-9)
    feet = np.column_stack([xy, ground.at(xy)])
    return human(feet, np.column_stack([along, np.zeros(steps)]), 2 * np.pi * way / STRIDE)


def _make_visit(place: Place, loop: Floats, draw: np.random.Generator) -> list[Floats]:
    """Return the ways (k, 2) of one visit, a point every `STEP`: wait, come, walk, stand, walk on, leave.

    Where the vehicle drives, people stay on their round, which keeps clear of its way.
    """
    stop = int(draw.integers(1, len(loop)))
    stand = _stay(loop[stop], draw.uniform(5.0, 60.0))
    walk = [loop[:stop], stand, loop[stop:]]
    if place.route is not None:
        return walk
    wait = _stay(REST, draw.exponential(150.0))
    return [wait, _go(REST, loop[0], WALKING), *walk, _go(loop[-1], REST, WALKING)]


def _stay(at: Floats, seconds: float) -> Floats:
    return np.broadcast_to(at, (max(1, round(seconds / STEP)), 2))


def _go(start: Floats, end: Floats, speed: float) -> Floats:
    count = max(2, round(float(np.linalg.norm(end - start)) / (speed * STEP)))
    return start + np.linspace(0.0, 1.0, count)[:, None] * (end - start)


def _make_car(place: Place, ground: Terrain, seed: int, steps: int) -> list[Solid]:
    draw = generator(seed, "marulan", "car")
    ends = [np.array([x, LANE[place.route is None]]) for x in (-62.0, 62.0)]
    parts: list[Floats] = []
    while sum(len(part) for part in parts) < steps:
        parts += [_stay(ends[0], draw.exponential(240.0)), _go(ends[0], ends[1], DRIVING)]
        ends.reverse()
    xy = np.concatenate(parts)[:steps]
    track = np.column_stack([xy, ground.at(xy)])
    body = box("car", (-2.2, -0.9, 0.3), (2.2, 0.9, 1.0), PAINT)
    cabin = box("car", (-1.2, -0.8, 1.0), (1.0, 0.8, 1.5), PAINT)
    return [body.moving(track), cabin.moving(track)]


def count_steps(seconds: float) -> int:
    """Return how many points a track has that lasts for the whole day and a little longer."""
    return int(np.ceil((seconds + 1.0) / STEP))


def prolong(solids: Sequence[Solid], steps: int) -> list[Solid]:
    """Return solids whose tracks have so many points, those that were shorter over and over again."""
    longer = {id(s.track): np.resize(s.track, (steps, 3)) for s in solids if s.track is not None}
    return [s if s.track is None else s.moving(longer[id(s.track)]) for s in solids]


# Sensors


@dataclass(frozen=True, eq=False)
class Log:
    """The scans of a laser that are in the log.

    Attributes
    ----------
    number : (n,) int64 array
        Which scan of the laser each row is.
    stamps : (n,) int64 array
        ns.
    """

    number: Ints
    stamps: Ints


def log_scans(number: Ints, times: Ints, seed: int, name: str) -> Log:
    """Return which scans (n,) a busy computer logs, and when it stamps them; never out of order."""
    draw = generator(seed, name, "log")
    late = np.abs(draw.normal(0.0, LATE, len(number)))
    late += np.where(draw.random(len(number)) < BUSY, draw.uniform(0.0, BUSY_S, len(number)), 0.0)
    kept = draw.random(len(number)) >= MISSING
    kept[:1] = True
    one_by_one = APART_NS * np.arange(len(number))
    stamps = times + np.rint(late * 1e6).astype(np.int64) * 1000
    stamps = np.maximum.accumulate(stamps - one_by_one) + one_by_one
    return Log(number[kept], stamps[kept])


def disturb(centimetres: Ints, draw: np.random.Generator) -> Ints:
    """Return ranges (n, k) in cm with the returns of insects, and without some that were there."""
    seen = centimetres != NO_RETURN
    lost = seen & (draw.random(centimetres.shape) < LOST)
    stray = draw.random(centimetres.shape) < STRAY
    reach = np.minimum(np.where(seen, centimetres, INSECTS), INSECTS)
    near = np.maximum(np.rint(reach * draw.random(centimetres.shape)), 10).astype(np.int64)
    return np.where(stray, np.minimum(near, reach), np.where(lost, NO_RETURN, centimetres))


def shake(T: Floats, seed: int, name: str, block: int) -> Floats:
    """Return poses (n, 4, 4) of a sensor that is shaken anew for each scan."""
    by = SHAKING * generator(seed, name, "shaking", block).standard_normal((len(T), 3))
    result = np.array(T)
    result[:, :3, :3] = T[:, :3, :3] @ rotations.matrix_from_rotation_vector(by)
    return result
