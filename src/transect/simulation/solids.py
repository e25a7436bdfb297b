"""Things that stand or walk in a world: boxes, cylinders, ellipsoids and leaves, as plain arrays.

`Solids.arrays` goes into compiled loops: `_solids_compiled.nearest` finds what one ray meets first. Each
solid says what a laser, a camera, an infra-red camera and a radar see of it (`Look`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats, Ints
from transect.geometry import rotations

from ._compiled import kernels

BOX, CYLINDER, ELLIPSOID = 0, 1, 2
STEP = 0.05
"""Seconds between two points of a track."""
TOGETHER = 4
"""Solids in a group: a ray that passes the group by is not tried on each of them."""


@dataclass(frozen=True)
class Look:
    """What sensors see of a surface."""

    albedo: tuple[float, float, float] = (0.4, 0.4, 0.4)  # (3,) tuple, Of red, green and blue light, 0 to 1
    near_infrared: float = 0.4  # albedo at 905 nm, where the lasers work; leaves are bright there
    # gamma of a rough surface at 94 GHz: sigma0 is gamma times the cosine of the incidence
    backscatter: float = 0.1
    temperature: float = 293.0  # K, for the infra-red camera


PLAIN = Look()


@dataclass(frozen=True, eq=False)
class Solid:
    """One solid."""

    kind: str  # what it is; `hits` of a scan name it
    shape: int
    centre: Floats  # (3,), in the world, m; relative to its track if it has one
    # (3,), half lengths along its own axes, m; a cylinder stands along its z axis and is round
    size: Floats
    rotation: Floats  # (3, 3), takes vectors of the solid to the world
    look: Look = PLAIN
    # 1/m: leaves stop a ray within 1/density on average; infinite for what is solid
    density: float = np.inf
    rcs: float = 0.0  # m2: radar cross-section of a point echo at its centre, such as a corner reflector's
    # (k, 3) or None, offsets of `centre`, `STEP` apart in time, over and over again
    track: Floats | None = None

    def moving(self, track: Floats) -> Solid:
        """Return the solid on a track of (k, 3) offsets."""
        return dataclasses.replace(self, track=track)


class Arrays(NamedTuple):
    """All solids side by side, for compiled loops; contiguous float64 and int64, see `Solid`.

    `reach` is the radius around `place` (n, 3) that holds the solid wherever its track leads it; `track` is a
    row of `tracks`, or -1. Group g is the solids ``member[first[g]:first[g + 1]]``, which are close together;
    `group_place` (3, groups) and `group_reach` are the ball that holds them all.
    """

    shape: Ints
    centre: Floats
    size: Floats
    rotation: Floats
    place: Floats
    reach: Floats
    density: Floats
    track: Ints
    tracks: Floats
    track_step: float
    member: Ints
    first: Ints
    group_place: Floats
    group_reach: Floats


@dataclass(frozen=True, eq=False)
class Solids:
    """Many solids."""

    arrays: Arrays  # their geometry
    kinds: tuple[str, ...]  # the different kinds, in order of appearance
    kind: Ints  # (n,), index into `kinds`
    albedo: Floats  # (n, 3)
    # near_infrared, backscatter, temperature, rcs: (n,), see `Look` and `Solid`
    near_infrared: Floats
    backscatter: Floats
    temperature: Floats
    rcs: Floats
    # (4,), middle and radius, m, of a ball that holds all solids at all times; radius -1 for none
    ball: Floats

    def __len__(self) -> int:
        return len(self.kind)

    @classmethod
    def of(cls, solids: Iterable[Solid]) -> Solids:
        """Return solids side by side; tracks must be equally long, and may be shared."""
        given = list(solids)
        kinds = tuple(dict.fromkeys(s.kind for s in given))
        tracks = list({id(s.track): s.track for s in given if s.track is not None}.values())
        looks = [s.look for s in given]
        arrays = _arrays(given, tracks)
        return cls(
            arrays=arrays,
            kinds=kinds,
            kind=np.array([kinds.index(s.kind) for s in given], dtype=np.int64),
            albedo=np.array([look.albedo for look in looks], dtype=np.float64).reshape(-1, 3),
            near_infrared=np.array([look.near_infrared for look in looks], dtype=np.float64),
            backscatter=np.array([look.backscatter for look in looks], dtype=np.float64),
            temperature=np.array([look.temperature for look in looks], dtype=np.float64),
            rcs=np.array([s.rcs for s in given], dtype=np.float64),
            ball=_ball_around(arrays.place, arrays.reach) if given else np.array([0.0, 0.0, 0.0, -1.0]),
        )

    def nearest(
        self, origins: Floats, directions: Floats, limit: Floats, t: float | Floats = 0.0
    ) -> tuple[Floats, NDArray[np.int32], Floats]:
        """Return the first solid that each ray meets; `raycast.Obstacles.nearest` says how."""
        n = len(directions)
        rays = [np.asarray(origins, np.float64), np.asarray(directions, np.float64)]
        start, along = (np.ascontiguousarray(np.broadcast_to(v, (n, 3))) for v in rays)
        far, times = (np.ascontiguousarray(np.broadcast_to(np.asarray(v, np.float64), n)) for v in (limit, t))
        return kernels("solids").nearest_of_rays(self.arrays, start, along, far, times)

    def centres_at(self, t: float) -> Floats:
        """Return where the centres (n, 3) are at t seconds, in the world."""
        a, offset_at = self.arrays, kernels("solids").offset_at
        offsets = [offset_at(track, a.tracks, a.track_step, float(t)) for track in a.track]
        return self.arrays.centre + np.array(offsets, dtype=np.float64).reshape(-1, 3)


def _arrays(solids: Sequence[Solid], tracks: Sequence[Floats]) -> Arrays:
    row = {id(track): number for number, track in enumerate(tracks)}
    place = np.array([_ball(s)[0] for s in solids], dtype=np.float64).reshape(-1, 3)
    reach = np.array([_ball(s)[1] for s in solids], dtype=np.float64)
    groups = _groups(np.arange(len(solids)), place)
    balls = np.array([_ball_around(place[group], reach[group]) for group in groups]).reshape(-1, 4)
    size = np.array([s.size for s in solids], dtype=np.float64).reshape(-1, 3)
    return Arrays(
        shape=np.array([s.shape for s in solids], dtype=np.int64),
        centre=np.array([s.centre for s in solids], dtype=np.float64).reshape(-1, 3),
        size=size,
        rotation=np.array([s.rotation for s in solids], dtype=np.float64).reshape(-1, 3, 3),
        place=place,
        reach=reach,
        density=np.array([s.density for s in solids], dtype=np.float64),
        track=np.array([row.get(id(s.track), -1) for s in solids], dtype=np.int64),
        tracks=np.array(tracks, dtype=np.float64) if tracks else np.zeros((0, 1, 3)),
        track_step=STEP,
        member=np.concatenate([np.zeros(0, np.int64), *groups]),
        first=np.cumsum([0, *(len(group) for group in groups)], dtype=np.int64),
        group_place=balls[:, :3].T.copy(),
        group_reach=balls[:, 3].copy(),
    )


def _groups(numbers: Ints, place: Floats) -> list[Ints]:
    """Solids by their numbers, in groups of at most `TOGETHER`: halved where they are furthest apart."""
    if len(numbers) <= TOGETHER:
        return [numbers] if len(numbers) else []
    axis = int(np.ptp(place[numbers], axis=0).argmax())
    ordered = numbers[np.argsort(place[numbers, axis], kind="stable")]
    half = len(ordered) // 2
    return _groups(ordered[:half], place) + _groups(ordered[half:], place)


def _ball_around(places: Floats, reaches: Floats) -> Floats:
    """Middle and radius (4,) of a ball that holds balls at places (n, 3), m."""
    middle = ((places + reaches[:, None]).max(axis=0) + (places - reaches[:, None]).min(axis=0)) / 2
    return np.array([*middle, (np.linalg.norm(places - middle, axis=1) + reaches).max() * (1 + 1e-9)])


def _ball(solid: Solid) -> tuple[Floats, float]:
    """Middle (3,) and radius of the ball that holds a solid at all times, m."""
    x, y, z = solid.size
    reaches = {BOX: np.hypot(np.hypot(x, y), z), CYLINDER: np.hypot(x, z), ELLIPSOID: max(x, y, z)}
    if solid.track is None:
        return solid.centre, float(reaches[solid.shape])
    middle = (solid.track.max(axis=0) + solid.track.min(axis=0)) / 2
    roams = np.linalg.norm(solid.track - middle, axis=1).max()
    return solid.centre + middle, float(reaches[solid.shape] + roams)


def turn_by(yaw: float) -> Floats:
    """Rotation (3, 3) about the vertical by `yaw` rad, counter-clockwise seen from above."""
    return rotations.matrix_from_rotation_vector(np.array([0.0, 0.0, yaw]))


def box(kind: str, low: ArrayLike, high: ArrayLike, look: Look = PLAIN) -> Solid:
    """Return a box between two corners (3,) of the world's axes."""
    a, b = np.asarray(low, np.float64), np.asarray(high, np.float64)
    return Solid(kind, BOX, (a + b) / 2, np.abs(b - a) / 2, np.eye(3), look)


def turned_box(
    kind: str, centre: ArrayLike, lengths: ArrayLike, rotation: Floats, look: Look = PLAIN
) -> Solid:
    """Return a box of lengths (3,) along its own axes, m."""
    return Solid(
        kind, BOX, np.asarray(centre, np.float64), np.asarray(lengths, np.float64) / 2, rotation, look
    )


def wall(
    kind: str, start: ArrayLike, end: ArrayLike, height: float, thickness: float, look: Look = PLAIN
) -> Solid:
    """Return a wall on the ground between two points (2,), its foot at z = 0."""
    a, b = np.asarray(start, np.float64), np.asarray(end, np.float64)
    along = b - a
    centre = [*((a + b) / 2), height / 2]
    yaw = float(np.arctan2(along[1], along[0]))
    return turned_box(kind, centre, [float(np.hypot(*along)), thickness, height], turn_by(yaw), look)


def cylinder(kind: str, foot: ArrayLike, radius: float, height: float, look: Look = PLAIN) -> Solid:
    """Return a vertical cylinder (a pole, a trunk) on its foot (3,)."""
    centre = np.asarray(foot, np.float64) + np.array([0.0, 0.0, height / 2])
    return Solid(kind, CYLINDER, centre, np.array([radius, radius, height / 2]), np.eye(3), look)


def rod(kind: str, start: ArrayLike, end: ArrayLike, radius: float, look: Look = PLAIN) -> Solid:
    """Return a round bar between two points (3,)."""
    a, b = np.asarray(start, np.float64), np.asarray(end, np.float64)
    length = float(np.linalg.norm(b - a))
    z = (b - a) / length
    x = np.cross(z, [1.0, 0.0, 0.0] if abs(z[0]) < 0.9 else [0.0, 1.0, 0.0])
    x /= np.linalg.norm(x)
    axes = np.column_stack([x, np.cross(z, x), z])
    return Solid(kind, CYLINDER, (a + b) / 2, np.array([radius, radius, length / 2]), axes, look)


def ellipsoid(
    kind: str, centre: ArrayLike, half_axes: ArrayLike, look: Look = PLAIN, density: float = np.inf
) -> Solid:
    """Return an ellipsoid along the world's axes; with a density (1/m) it is leaves."""
    half = np.broadcast_to(np.asarray(half_axes, np.float64), 3).copy()
    return Solid(kind, ELLIPSOID, np.asarray(centre, np.float64), half, np.eye(3), look, density=density)


def sphere(kind: str, centre: ArrayLike, radius: float, look: Look = PLAIN) -> Solid:
    """Return a ball."""
    return ellipsoid(kind, centre, radius, look)


BARK = Look((0.36, 0.31, 0.27), 0.5, 0.12, 292.0)
LEAVES = Look((0.13, 0.19, 0.09), 0.6, 0.05, 290.0)
CLOTHES = Look((0.12, 0.16, 0.32), 0.5, 0.2, 303.0)
SKIN = Look((0.55, 0.4, 0.33), 0.55, 0.2, 307.0)


def tree(
    foot: ArrayLike, height: float, crown: float, trunk: float = 0.15, density: float = 1.0
) -> list[Solid]:
    """Return a tree: a trunk, and a crown through which some rays pass.

    Parameters
    ----------
    foot : (3,)
    height : float
        To the top of the crown, m.
    crown, trunk : float
        Radii, m.
    density : float
        Of the leaves, 1/m.
    """
    base = np.asarray(foot, np.float64)
    half = 0.35 * height
    top = base + np.array([0.0, 0.0, height - half])
    return [
        cylinder("trunk", base, trunk, height - half, BARK),
        ellipsoid("leaves", top, [crown, crown, half], LEAVES, density),
    ]


def walker(path: ArrayLike, speed: float = 1.2, stride: float = 1.4) -> list[Solid]:
    """Return a human who walks round a closed path for ever.

    Parameters
    ----------
    path : (k, 3)
        Corners on the ground, m; from the last one the way leads to the first.
    speed : float
        m/s.
    stride : float
        m for two steps, after which the legs are where they were.
    """
    place, along = walk_round(np.asarray(path, np.float64), speed)
    way = np.arange(len(place), dtype=np.float64) * (speed * STEP)
    return human(place, along, 2 * np.pi * way / stride)


def human(place: Floats, along: Floats, phase: Floats) -> list[Solid]:
    """Return a human on the way.

    Parameters
    ----------
    place, along : (k, 3) array
        Where the feet are and which way leads on, every `STEP`.
    phase : (k,) array
        Of the legs, rad; 2 pi is two steps.
    """
    swing = 0.22 * np.sin(phase)[:, None] * along
    side = 0.1 * np.column_stack([-along[:, 1], along[:, 0], np.zeros(len(along))])
    origin = np.zeros(3)
    torso = cylinder("human", [0.0, 0.0, 0.8], 0.19, 0.65, CLOTHES).moving(place)
    head = ellipsoid("human", [0.0, 0.0, 1.63], [0.1, 0.1, 0.14], SKIN).moving(place)
    legs = [
        cylinder("human", origin, 0.085, 0.85, CLOTHES).moving(place + side + swing),
        cylinder("human", origin, 0.085, 0.85, CLOTHES).moving(place - side - swing),
    ]
    return [torso, head, *legs]


def walk_round(corners: Floats, speed: float) -> tuple[Floats, Floats]:
    """Return places (k, 3) every `STEP` round a closed path, and the directions (k, 3) of the walk."""
    closed = np.vstack([corners, corners[:1]])
    lengths = np.linalg.norm(np.diff(closed, axis=0), axis=1)
    way = np.concatenate([[0.0], np.cumsum(lengths)])
    steps = max(round(way[-1] / (speed * STEP)), 1)
    at = np.arange(steps) * way[-1] / steps
    place = np.column_stack([np.interp(at, way, closed[:, k]) for k in range(3)])
    piece = np.clip(np.searchsorted(way, at, side="right") - 1, 0, len(lengths) - 1)
    along = np.diff(closed, axis=0)[piece] / lengths[piece, None]
    along[:, 2] = 0.0
    return place, along
