"""Disturbances in clear air without a fault: wind, visitors, and imperfect lasers.

They make the simulation a realistic test for false alarms. With `wind` breeze, leaves and grass sway. With
`human` visitors, two people come, walk, stand and leave, and a car passes. With `sensors` real, laser beams
have the width of the data sheet, so that they measure between two surfaces at edges; an idling engine causes
vibration; insects cause returns, and some returns are lost; and stamps have the delays of a busy computer, as
in real logs of such lasers. The numbers are invented unless a source is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.geometry import rotations
from transect.simulation.randomness import generator
from transect.simulation.solids import (
    TRACK_STEP_S,
    Solid,
    SurfaceMaterial,
    box,
    ellipsoid,
    human,
    walk_around,
)
from transect.simulation.terrain import Terrain

from .lasers import NO_RETURN_CM
from .sites import PAINT, Site, put_on_ground

CLEAR_HOUR: Mapping[str, str] = {"wind": "breeze", "human": "visitors", "sensors": "real"}
"""Conditions for counting false alarms; `scene` and `light` may have any value."""
GRASS = SurfaceMaterial((0.35, 0.33, 0.16), 0.45, 0.03, 296.0)


@dataclass(frozen=True)
class DisturbanceSettings:
    """Sizes of the disturbances."""

    sway_tracks: int = 8  # Different motions of leaves, which share them as trees in one gust do.
    grass_clumps: int = 60
    grass_clearance_m: float = 2.5  # Distance of grass from the vehicle's path.
    walking_speed_m_s: float = 1.2
    stride_m: float = 1.4  # Length of two steps.
    car_speed_m_s: float = 6.0
    vibration_rad: float = 0.0003  # Sigma about each axis from scan to scan: an idling engine.
    insect_ratio: float = 1.2e-6  # Beams that hit an insect: about one a minute and laser.
    insect_range_cm: int = 2000  # Range up to which an insect is detected, ...
    min_insect_range_cm: int = 10  # ... and from which on.
    lost_ratio: float = 1e-5  # Returns that are lost.
    # Sigma of the delay of a stamp, and ratio and maximum of longer delays: real logs (fr079, CSAIL).
    stamp_sigma_s: float = 0.001
    busy_ratio: float = 0.01
    max_busy_s: float = 0.010
    min_stamp_interval_ns: int = 100_000
    missing_ratio: float = 0.001  # Scans that are not in the log; in fr079 it is eight times as high.


SETTINGS = DisturbanceSettings()


# Wind


def sway(solids: Iterable[Solid], seed: int, steps: int) -> list[Solid]:
    """Return solids with swaying leaves, each with one of a few tracks of `steps` positions."""
    tracks = [_make_sway(seed, number, steps) for number in range(SETTINGS.sway_tracks)]
    pick = generator(seed, "marulan", "wind", "pick")
    return [
        s.moving(tracks[int(pick.integers(SETTINGS.sway_tracks))])
        if np.isfinite(s.density) and s.track is None
        else s
        for s in solids
    ]


def _make_sway(seed: int, number: int, steps: int) -> Floats:
    """Return offsets (steps, 3): oscillations of 0.4 to 1.5 Hz, in gusts with periods of 15 to 60 s."""
    draw = generator(seed, "marulan", "wind", number)
    t = TRACK_STEP_S * np.arange(steps)
    gusts = (
        0.5 + 0.5 * sum(np.sin(2 * np.pi * t / p + draw.uniform(0, 6.3)) for p in draw.uniform(15, 60, 2)) / 2
    )
    size = draw.uniform(0.02, 0.06)
    swings = [np.sin(2 * np.pi * f * t + draw.uniform(0, 6.3)) for f in draw.uniform(0.4, 1.5, 3)]
    level = [size * gusts * (0.5 + swing) for swing in swings[:2]]
    return np.column_stack([*level, 0.2 * size * gusts * swings[2]])


def grow_grass(site: Site, seed: int) -> list[Solid]:
    """Return clumps of grass around the middle of a site, off the vehicle's path."""
    draw, count = generator(seed, "marulan", "grass"), SETTINGS.grass_clumps
    near = np.array([draw.normal(0.0, 14.0, 2) for _ in range(4 * count)])
    free = near[_distances_from_path(site, near) > SETTINGS.grass_clearance_m][:count]
    sizes = np.column_stack([draw.uniform(0.1, 0.4, (len(free), 2)), draw.uniform(0.12, 0.45, len(free))])
    clumps = [
        ellipsoid("grass", (*xy, 0.0), size, GRASS, density=6.0) for xy, size in zip(free, sizes, strict=True)
    ]
    return list(put_on_ground(site.terrain, clumps))


def _distances_from_path(site: Site, points: Floats) -> Floats:
    """Return the distances (n,) of points (n, 2) from the vehicle's position or path, m."""
    if site.route is None:
        return np.linalg.norm(points - np.array([-1.9, 2.93]), axis=1)
    ends = np.roll(site.route, -1, axis=0)
    along = ends - site.route
    to = points[:, None] - site.route
    u = np.clip((to * along).sum(axis=2) / (along**2).sum(axis=1), 0.0, 1.0)
    return np.linalg.norm(to - u[..., None] * along, axis=2).min(axis=1)


# Visitors

WAITING_POSITION = np.array([-24.0, -61.0])
"""Position of the waiting visitors of the static scene, m: behind the trees."""
LANE_Y_M = {"standing": -29.0, "driving": -47.0}
"""y of the lane on which a car passes while the vehicle stands or drives."""


def make_visitors(site: Site, seed: int, steps: int) -> list[Solid]:
    """Return two people who come and go, and a car that passes."""
    ground = site.terrain.smooth(0.25)
    people = [part for number in range(2) for part in _make_visitor(site, ground, seed, number, steps)]
    return [*people, *_make_car(site, ground, seed, steps)]


def _make_visitor(site: Site, ground: Terrain, seed: int, number: int, steps: int) -> list[Solid]:
    draw, speed = generator(seed, "marulan", "visitor", number), SETTINGS.walking_speed_m_s
    loop, _ = walk_around(np.column_stack([site.walk, np.zeros(len(site.walk))]), speed)
    loop = np.roll(loop[:, :2], -int(draw.integers(len(loop))), axis=0)
    parts: list[Floats] = []
    while sum(len(part) for part in parts) < steps:
        parts += _make_visit(site, loop, draw)
    xy = np.concatenate(parts)[:steps]
    moved = np.diff(xy, axis=0, prepend=xy[:1])
    distance = np.cumsum(np.linalg.norm(moved, axis=1))
    along = moved / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-9)
    feet = np.column_stack([xy, ground.at(xy)])
    return human(feet, np.column_stack([along, np.zeros(steps)]), 2 * np.pi * distance / SETTINGS.stride_m)


def _make_visit(site: Site, loop: Floats, draw: np.random.Generator) -> list[Floats]:
    """Return the paths (k, 2) of one visit, every `TRACK_STEP_S`: wait, come, walk, stand, walk on, leave.

    If the vehicle drives, people stay on their loop, which does not cross its path.
    """
    stop = int(draw.integers(1, len(loop)))
    stand = _stay(loop[stop], draw.uniform(5.0, 60.0))
    walk = [loop[:stop], stand, loop[stop:]]
    if site.route is not None:
        return walk
    wait, speed = _stay(WAITING_POSITION, draw.exponential(150.0)), SETTINGS.walking_speed_m_s
    return [wait, _go(WAITING_POSITION, loop[0], speed), *walk, _go(loop[-1], WAITING_POSITION, speed)]


def _stay(at: Floats, seconds: float) -> Floats:
    return np.broadcast_to(at, (max(1, round(seconds / TRACK_STEP_S)), 2))


def _go(start: Floats, end: Floats, speed: float) -> Floats:
    count = max(2, round(float(np.linalg.norm(end - start)) / (speed * TRACK_STEP_S)))
    return start + np.linspace(0.0, 1.0, count)[:, None] * (end - start)


def _make_car(site: Site, ground: Terrain, seed: int, steps: int) -> list[Solid]:
    draw = generator(seed, "marulan", "car")
    lane = LANE_Y_M["standing" if site.route is None else "driving"]
    ends = [np.array([x, lane]) for x in (-62.0, 62.0)]
    parts: list[Floats] = []
    while sum(len(part) for part in parts) < steps:
        parts += [
            _stay(ends[0], draw.exponential(240.0)),
            _go(ends[0], ends[1], SETTINGS.car_speed_m_s),
        ]
        ends.reverse()
    xy = np.concatenate(parts)[:steps]
    track = np.column_stack([xy, ground.at(xy)])
    body = box("car", (-2.2, -0.9, 0.3), (2.2, 0.9, 1.0), PAINT)
    cabin = box("car", (-1.2, -0.8, 1.0), (1.0, 0.8, 1.5), PAINT)
    return [body.moving(track), cabin.moving(track)]


def count_steps(seconds: float) -> int:
    """Return the number of points of a track for the whole day and one second more."""
    return int(np.ceil((seconds + 1.0) / TRACK_STEP_S))


def repeat_tracks(solids: Sequence[Solid], steps: int) -> list[Solid]:
    """Return solids whose tracks have `steps` points; shorter tracks are repeated."""
    longer = {id(s.track): np.resize(s.track, (steps, 3)) for s in solids if s.track is not None}
    return [s if s.track is None else s.moving(longer[id(s.track)]) for s in solids]


# Sensors


@dataclass(frozen=True, eq=False)
class ScanLog:
    """Scans of a laser that are in the log."""

    number: Ints  # (n,) number of each scan
    stamps: Ints  # (n,) ns


def log_scans(number: Ints, times: Ints, seed: int, name: str) -> ScanLog:
    """Return the scans (n,) that a busy computer logs, with increasing stamps."""
    draw, count = generator(seed, name, "log"), len(number)
    delay = np.abs(draw.normal(0.0, SETTINGS.stamp_sigma_s, count))
    is_busy = draw.random(count) < SETTINGS.busy_ratio
    delay += np.where(is_busy, draw.uniform(0.0, SETTINGS.max_busy_s, count), 0.0)
    kept = draw.random(count) >= SETTINGS.missing_ratio
    kept[:1] = True
    spacing = SETTINGS.min_stamp_interval_ns * np.arange(count)
    stamps = times + np.rint(delay * 1e6).astype(np.int64) * 1000
    stamps = np.maximum.accumulate(stamps - spacing) + spacing
    return ScanLog(number[kept], stamps[kept])


def disturb(centimetres: Ints, draw: np.random.Generator) -> Ints:
    """Return ranges (n, k) in cm with returns from insects, and without lost returns."""
    returned = centimetres != NO_RETURN_CM
    lost = returned & (draw.random(centimetres.shape) < SETTINGS.lost_ratio)
    insect = draw.random(centimetres.shape) < SETTINGS.insect_ratio
    limit = np.minimum(np.where(returned, centimetres, SETTINGS.insect_range_cm), SETTINGS.insect_range_cm)
    near = np.maximum(np.rint(limit * draw.random(centimetres.shape)), SETTINGS.min_insect_range_cm)
    near = np.minimum(near.astype(np.int64), limit)
    return np.where(insect, near, np.where(lost, NO_RETURN_CM, centimetres))


def shake(T: Floats, seed: int, name: str, block: int) -> Floats:
    """Return poses (n, 4, 4) of a sensor with random vibration of each scan."""
    vectors = generator(seed, name, "shaking", block).standard_normal((len(T), 3))
    result = np.array(T)
    result[:, :3, :3] = T[:, :3, :3] @ rotations.matrix_from_rotation_vector(SETTINGS.vibration_rad * vectors)
    return result
