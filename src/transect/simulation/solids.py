"""Static and moving objects of a world: boxes, cylinders, ellipsoids and foliage, as plain arrays.

`Solids.arrays` is passed to compiled loops that find the first intersection of rays. Each solid has a
`SurfaceMaterial` with its properties for lasers, cameras, infra-red cameras and radars.
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

SHAPE_BOX, SHAPE_CYLINDER, SHAPE_ELLIPSOID = 0, 1, 2
TRACK_STEP_S = 0.05
"""Time between two points of a track."""


@dataclass(frozen=True)
class SurfaceMaterial:
    """Properties of a surface for sensors."""

    albedo: tuple[float, float, float] = (0.4, 0.4, 0.4)  # of red, green and blue light, 0 to 1
    near_infrared: float = 0.4  # albedo at 905 nm, the wavelength of the lasers; foliage is bright there
    # gamma of a rough surface at 94 GHz: sigma0 is gamma times the cosine of the incidence
    backscatter: float = 0.1
    temperature: float = 293.0  # K, for the infra-red camera


PLAIN = SurfaceMaterial()


@dataclass(frozen=True, eq=False)
class Solid:
    """One solid."""

    kind: str  # kind of object, which `hits` of a scan refer to
    shape: int
    centre: Floats  # (3,), in the world, m; relative to its track if it has one
    # (3,), half lengths along its own axes, m; a cylinder is along its z axis and circular
    size: Floats
    rotation: Floats  # (3, 3), takes vectors of the solid to the world
    material: SurfaceMaterial = PLAIN
    # 1/m: the mean free path of rays in foliage is 1/density; infinite for solid objects
    density: float = np.inf
    rcs: float = 0.0  # m2: radar cross-section of a point echo at its centre, e.g. a corner reflector
    # (k, 3) or None, offsets of `centre` at intervals of `TRACK_STEP_S`, repeated periodically
    track: Floats | None = None

    def moving(self, track: Floats) -> Solid:
        """Return the solid on a track of (k, 3) offsets."""
        return dataclasses.replace(self, track=track)


class SolidArrays(NamedTuple):
    """Arrays of all solids, for compiled loops; contiguous float64 and int64, see `Solid`.

    `ball_radius` (n,) and `ball_centre` (n, 3) are the bounding spheres of the solids over their whole
    tracks; `track` is a row of `tracks`, or -1. Group g contains the solids ``member[first[g]:first[g +
    1]]``, which are close together; `group_centre` (3, groups) and `group_radius` are its bounding sphere.
    """

    shape: Ints
    centre: Floats
    size: Floats
    rotation: Floats
    ball_centre: Floats
    ball_radius: Floats
    density: Floats
    track: Ints
    tracks: Floats
    track_step: float
    member: Ints
    first: Ints
    group_centre: Floats
    group_radius: Floats


@dataclass(frozen=True, eq=False)
class Solids:
    """Many solids."""

    arrays: SolidArrays  # their geometry
    kinds: tuple[str, ...]  # the different kinds, in order of appearance
    kind: Ints  # (n,), index into `kinds`
    albedo: Floats  # (n, 3)
    # near_infrared, backscatter, temperature, rcs: (n,), see `SurfaceMaterial` and `Solid`
    near_infrared: Floats
    backscatter: Floats
    temperature: Floats
    rcs: Floats
    # (4,), centre and radius, m, of the bounding sphere of all solids at all times; radius -1 for none
    ball: Floats

    def __len__(self) -> int:
        return len(self.kind)

    @classmethod
    def of(cls, solids: Iterable[Solid]) -> Solids:
        """Collect solids; their tracks must have equal lengths, and may be shared."""
        given = list(solids)
        kinds = tuple(dict.fromkeys(s.kind for s in given))
        tracks = list({id(s.track): s.track for s in given if s.track is not None}.values())
        materials = [s.material for s in given]
        arrays = _arrays(given, tracks)
        return cls(
            arrays=arrays,
            kinds=kinds,
            kind=np.array([kinds.index(s.kind) for s in given], dtype=np.int64),
            albedo=np.array([each.albedo for each in materials], dtype=np.float64).reshape(-1, 3),
            near_infrared=np.array([each.near_infrared for each in materials], dtype=np.float64),
            backscatter=np.array([each.backscatter for each in materials], dtype=np.float64),
            temperature=np.array([each.temperature for each in materials], dtype=np.float64),
            rcs=np.array([s.rcs for s in given], dtype=np.float64),
            ball=_enclose(arrays.ball_centre, arrays.ball_radius)
            if given
            else np.array([0.0, 0.0, 0.0, -1.0]),
        )

    def nearest(
        self, origins: Floats, directions: Floats, limit: Floats, t: float | Floats = 0.0
    ) -> tuple[Floats, NDArray[np.int32], Floats]:
        """Return the first solid on each ray, see `raycast.Obstacles.nearest`."""
        n = len(directions)
        rays = [np.asarray(origins, np.float64), np.asarray(directions, np.float64)]
        start, along = (np.ascontiguousarray(np.broadcast_to(v, (n, 3))) for v in rays)
        far, times = (np.ascontiguousarray(np.broadcast_to(np.asarray(v, np.float64), n)) for v in (limit, t))
        return kernels("solids").find_nearest_hits(self.arrays, start, along, far, times)

    def centres_at(self, t: float) -> Floats:
        """Return the centres (n, 3) in the world at t seconds."""
        a, offset_at = self.arrays, kernels("solids").offset_at
        offsets = [offset_at(track, a.tracks, a.track_step, float(t)) for track in a.track]
        return self.arrays.centre + np.array(offsets, dtype=np.float64).reshape(-1, 3)


def _arrays(solids: Sequence[Solid], tracks: Sequence[Floats]) -> SolidArrays:
    row = {id(track): number for number, track in enumerate(tracks)}
    centre = np.array([_bounding_sphere(s)[0] for s in solids], dtype=np.float64).reshape(-1, 3)
    radius = np.array([_bounding_sphere(s)[1] for s in solids], dtype=np.float64)
    groups = _group_solids(np.arange(len(solids)), centre)
    balls = np.array([_enclose(centre[group], radius[group]) for group in groups]).reshape(-1, 4)
    size = np.array([s.size for s in solids], dtype=np.float64).reshape(-1, 3)
    return SolidArrays(
        shape=np.array([s.shape for s in solids], dtype=np.int64),
        centre=np.array([s.centre for s in solids], dtype=np.float64).reshape(-1, 3),
        size=size,
        rotation=np.array([s.rotation for s in solids], dtype=np.float64).reshape(-1, 3, 3),
        ball_centre=centre,
        ball_radius=radius,
        density=np.array([s.density for s in solids], dtype=np.float64),
        track=np.array([row.get(id(s.track), -1) for s in solids], dtype=np.int64),
        tracks=np.array(tracks, dtype=np.float64) if tracks else np.zeros((0, 1, 3)),
        track_step=TRACK_STEP_S,
        member=np.concatenate([np.zeros(0, np.int64), *groups]),
        first=np.cumsum([0, *(len(group) for group in groups)], dtype=np.int64),
        group_centre=balls[:, :3].T.copy(),
        group_radius=balls[:, 3].copy(),
    )


def _group_solids(numbers: Ints, centres: Floats, max_size: int = 4) -> list[Ints]:
    """Group solids into a bounding volume hierarchy of one level, by median splits along the longest axis."""
    if len(numbers) <= max_size:
        return [numbers] if len(numbers) else []
    axis = int(np.ptp(centres[numbers], axis=0).argmax())
    ordered = numbers[np.argsort(centres[numbers, axis], kind="stable")]
    half = len(ordered) // 2
    return _group_solids(ordered[:half], centres) + _group_solids(ordered[half:], centres)


def _enclose(centres: Floats, radii: Floats) -> Floats:
    """Centre and radius (4,) of a sphere that encloses spheres with centres (n, 3), m."""
    middle = ((centres + radii[:, None]).max(axis=0) + (centres - radii[:, None]).min(axis=0)) / 2
    return np.array([*middle, (np.linalg.norm(centres - middle, axis=1) + radii).max() * (1 + 1e-9)])


def _bounding_sphere(solid: Solid) -> tuple[Floats, float]:
    """Centre (3,) and radius of the bounding sphere of a solid at all times, m."""
    x, y, z = solid.size
    radii = {
        SHAPE_BOX: np.hypot(np.hypot(x, y), z),
        SHAPE_CYLINDER: np.hypot(x, z),
        SHAPE_ELLIPSOID: max(x, y, z),
    }
    if solid.track is None:
        return solid.centre, float(radii[solid.shape])
    middle = (solid.track.max(axis=0) + solid.track.min(axis=0)) / 2
    track_radius = np.linalg.norm(solid.track - middle, axis=1).max()
    return solid.centre + middle, float(radii[solid.shape] + track_radius)


def rotation_about_z(yaw: float) -> Floats:
    """Rotation (3, 3) about the vertical by `yaw` rad, counter-clockwise seen from above."""
    return rotations.matrix_from_rotation_vector(np.array([0.0, 0.0, yaw]))


def box(kind: str, low: ArrayLike, high: ArrayLike, material: SurfaceMaterial = PLAIN) -> Solid:
    """Return a box between two corners (3,) of the world's axes."""
    a, b = np.asarray(low, np.float64), np.asarray(high, np.float64)
    return Solid(kind, SHAPE_BOX, (a + b) / 2, np.abs(b - a) / 2, np.eye(3), material)


def turned_box(
    kind: str, centre: ArrayLike, lengths: ArrayLike, rotation: Floats, material: SurfaceMaterial = PLAIN
) -> Solid:
    """Return a box of lengths (3,) along its own axes, m."""
    return Solid(
        kind,
        SHAPE_BOX,
        np.asarray(centre, np.float64),
        np.asarray(lengths, np.float64) / 2,
        rotation,
        material,
    )


def wall(
    kind: str,
    start: ArrayLike,
    end: ArrayLike,
    height: float,
    thickness: float,
    material: SurfaceMaterial = PLAIN,
) -> Solid:
    """Return a wall between two points (2,) on the ground, z = 0."""
    a, b = np.asarray(start, np.float64), np.asarray(end, np.float64)
    along = b - a
    centre = [*((a + b) / 2), height / 2]
    yaw = float(np.arctan2(along[1], along[0]))
    return turned_box(
        kind, centre, [float(np.hypot(*along)), thickness, height], rotation_about_z(yaw), material
    )


def cylinder(
    kind: str, foot: ArrayLike, radius: float, height: float, material: SurfaceMaterial = PLAIN
) -> Solid:
    """Return a vertical cylinder (a pole, a trunk) from its foot (3,) up."""
    centre = np.asarray(foot, np.float64) + np.array([0.0, 0.0, height / 2])
    return Solid(kind, SHAPE_CYLINDER, centre, np.array([radius, radius, height / 2]), np.eye(3), material)


def rod(
    kind: str, start: ArrayLike, end: ArrayLike, radius: float, material: SurfaceMaterial = PLAIN
) -> Solid:
    """Return a cylinder between two points (3,)."""
    a, b = np.asarray(start, np.float64), np.asarray(end, np.float64)
    length = float(np.linalg.norm(b - a))
    z = (b - a) / length
    x = np.cross(z, [1.0, 0.0, 0.0] if abs(z[0]) < 0.9 else [0.0, 1.0, 0.0])
    x /= np.linalg.norm(x)
    axes = np.column_stack([x, np.cross(z, x), z])
    return Solid(kind, SHAPE_CYLINDER, (a + b) / 2, np.array([radius, radius, length / 2]), axes, material)


def ellipsoid(
    kind: str,
    centre: ArrayLike,
    half_axes: ArrayLike,
    material: SurfaceMaterial = PLAIN,
    density: float = np.inf,
) -> Solid:
    """Return an ellipsoid along the world's axes; with a density (1/m) it is foliage."""
    half = np.broadcast_to(np.asarray(half_axes, np.float64), 3).copy()
    return Solid(
        kind, SHAPE_ELLIPSOID, np.asarray(centre, np.float64), half, np.eye(3), material, density=density
    )


def sphere(kind: str, centre: ArrayLike, radius: float, material: SurfaceMaterial = PLAIN) -> Solid:
    """Return a sphere."""
    return ellipsoid(kind, centre, radius, material)


BARK = SurfaceMaterial((0.36, 0.31, 0.27), 0.5, 0.12, 292.0)
LEAVES = SurfaceMaterial((0.13, 0.19, 0.09), 0.6, 0.05, 290.0)
CLOTHES = SurfaceMaterial((0.12, 0.16, 0.32), 0.5, 0.2, 303.0)
SKIN = SurfaceMaterial((0.55, 0.4, 0.33), 0.55, 0.2, 307.0)


def tree(
    foot: ArrayLike, height: float, crown: float, trunk: float = 0.15, density: float = 1.0
) -> list[Solid]:
    """Return a tree: a trunk, and a crown that some rays pass through.

    Parameters
    ----------
    foot : (3,)
    height : float
        Height of the top of the crown, m.
    crown, trunk : float
        Radii, m.
    density : float
        Density of the foliage, 1/m.
    """
    base = np.asarray(foot, np.float64)
    half = 0.35 * height
    top = base + np.array([0.0, 0.0, height - half])
    return [
        cylinder("trunk", base, trunk, height - half, BARK),
        ellipsoid("leaves", top, [crown, crown, half], LEAVES, density),
    ]


def walker(path: ArrayLike, speed: float = 1.2, stride: float = 1.4) -> list[Solid]:
    """Return a human who walks around a closed path.

    Parameters
    ----------
    path : (k, 3)
        Corners of the closed path on the ground, m.
    speed : float
        m/s.
    stride : float
        Length of a gait cycle of two steps, m.
    """
    position, direction = walk_around(np.asarray(path, np.float64), speed)
    distance = np.arange(len(position), dtype=np.float64) * (speed * TRACK_STEP_S)
    return human(position, direction, 2 * np.pi * distance / stride)


def human(position: Floats, direction: Floats, phase: Floats) -> list[Solid]:
    """Return a walking human.

    Parameters
    ----------
    position, direction : (k, 3) array
        Positions of the feet and walking directions, every `TRACK_STEP_S`.
    phase : (k,) array
        Phase of the gait cycle, rad; 2 pi is two steps.
    """
    swing = 0.22 * np.sin(phase)[:, None] * direction
    side = 0.1 * np.column_stack([-direction[:, 1], direction[:, 0], np.zeros(len(direction))])
    origin = np.zeros(3)
    torso = cylinder("human", [0.0, 0.0, 0.8], 0.19, 0.65, CLOTHES).moving(position)
    head = ellipsoid("human", [0.0, 0.0, 1.63], [0.1, 0.1, 0.14], SKIN).moving(position)
    legs = [
        cylinder("human", origin, 0.085, 0.85, CLOTHES).moving(position + side + swing),
        cylinder("human", origin, 0.085, 0.85, CLOTHES).moving(position - side - swing),
    ]
    return [torso, head, *legs]


def walk_around(corners: Floats, speed: float) -> tuple[Floats, Floats]:
    """Return positions (k, 3) every `TRACK_STEP_S` around a closed path, and walking directions (k, 3)."""
    closed = np.vstack([corners, corners[:1]])
    lengths = np.linalg.norm(np.diff(closed, axis=0), axis=1)
    distance = np.concatenate([[0.0], np.cumsum(lengths)])
    steps = max(round(distance[-1] / (speed * TRACK_STEP_S)), 1)
    at = np.arange(steps) * distance[-1] / steps
    position = np.column_stack([np.interp(at, distance, closed[:, k]) for k in range(3)])
    edge = np.clip(np.searchsorted(distance, at, side="right") - 1, 0, len(lengths) - 1)
    direction = np.diff(closed, axis=0)[edge] / lengths[edge, None]
    direction[:, 2] = 0.0
    return position, direction
