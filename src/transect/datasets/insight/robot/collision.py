"""Keep-out check: how near the arm's links and tools come to the payloads on the deck.

PAYLOAD_COL_PARAMS (SIS 5.1.3.32) says where the boxes of SEIS, WTS and HP3 stand, not how large they are:
that is in the collision database (APID 84), which the SIS does not print. So sizes are the caller's, and so
are the radii of the links. The SIS gives the poses in the "lander frame", but their heights fit the payload
frame only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats, Mask
from transect.errors import GeometryError, TransectError
from transect.geometry import rotations, se3
from transect.geometry.array_checks import floats

from .arm import Arm
from .kinematics import joint_poses
from .parameters import Parameters

PAYLOADS = ("seis", "wts", "hp3")
COLLIDERS = ("blade_1", "blade_2", "rac", "scoop", "wrist", "grapple_attach", "grapple", *PAYLOADS)
"""What `fault_params.ignore_col_*` of RA_FAULT_PARAMS can leave out."""


@dataclass(frozen=True, eq=False)
class Box:
    """A solid that nothing may touch."""

    name: str
    pose: Floats  # (4, 4), ``T_Payload_centre``: its centre and its axes, in the payload frame
    half: Floats  # (3,), half of its edges along its own axes, m


def payload_boxes(
    parameters: Parameters, sizes: Mapping[str, ArrayLike], absent: Collection[str] = ()
) -> tuple[Box, ...]:
    """Boxes of the payloads that are on the deck.

    Parameters
    ----------
    sizes : mapping of str to (3,) or (2, 3)
        For each of `PAYLOADS` its edges (m), centred on its collision link frame, or the lowest and the
        highest corner in that frame.
    absent : collection of str
        Payloads that are not there any more. Those of which `fault_params.ignore_col_*` is set are left out,
        too.

    Raises
    ------
    TransectError
        If the size of a box is not given: the SIS has none.
    """
    wanted = [name for name in PAYLOADS if name not in {*absent, *list_ignored(parameters)}]
    if lost := [name for name in wanted if name not in sizes]:
        raise TransectError(
            f"the size of the collision box of {', '.join(lost)} is not known",
            why="PAYLOAD_COL_PARAMS says where the boxes stand; their sizes are in the collision database "
            "(APID 84), which the SIS does not print",
            hint=f"give sizes={{{lost[0]!r}: (dx, dy, dz)}} in metres, or absent=({lost[0]!r},)",
        )
    return tuple(_box(parameters, name, np.asarray(sizes[name], dtype=np.float64)) for name in wanted)


def _box(parameters: Parameters, name: str, size: Floats) -> Box:
    corners = np.stack([-size / 2, size / 2]) if size.ndim == 1 else size
    if corners.shape != (2, 3) or not (corners[0] <= corners[1]).all():
        raise GeometryError(
            f"size of {name}: expected three edges, or a lowest and a highest corner, got {size.tolist()}"
        )
    link = se3.from_quaternion(  # i, j, k, r: the scalar is last here
        rotations.normalise(parameters.numbers("PAYLOAD_COL_PARAMS", f"{name}_q")),
        parameters.numbers("PAYLOAD_COL_PARAMS", f"{name}_t"),
    )
    centre = se3.from_matrix(np.eye(3), corners.mean(axis=0))
    return Box(name, link @ centre, (corners[1] - corners[0]) / 2)


def list_ignored(parameters: Parameters) -> frozenset[str]:
    """Names among `COLLIDERS` that the flight software does not check (RA_FAULT_PARAMS)."""
    flags = {name: f"fault_params.ignore_col_{name}" for name in COLLIDERS}
    return frozenset(
        name
        for name, key in flags.items()
        if parameters.has("RA_FAULT_PARAMS", key) and parameters.number("RA_FAULT_PARAMS", key)
    )


@dataclass(frozen=True)
class Violation:
    """The first time that something came too near."""

    row: int
    part: str
    box: str
    distance: float


@dataclass(frozen=True, eq=False)
class Clearance:
    """How much room there was."""

    parts: tuple[str, ...]
    boxes: tuple[str, ...]
    # (rows, parts, boxes), from surface to surface, m; negative by at most a link's radius where its axis
    # is inside the box
    distance: Floats
    tolerance: float = 0.0  # least distance that is allowed, m

    @property
    def least(self) -> Floats:
        """Smallest distance (rows,) of any part to any box, m; infinite without boxes."""
        return self.distance.min(axis=(1, 2), initial=np.inf)

    @property
    def violated(self) -> Mask:
        """Rows (rows,) in which something is nearer than the tolerance."""
        return self.least < self.tolerance

    @property
    def first(self) -> Violation | None:
        """The nearest pair in the first row that violates the tolerance."""
        if not self.violated.any():
            return None
        row = int(self.violated.argmax())
        part, box = divmod(int(self.distance[row].argmin()), len(self.boxes))
        return Violation(row, self.parts[part], self.boxes[box], float(self.distance[row, part, box]))


@dataclass(frozen=True)
class Thickness:
    """Radii of what moves, m; one of the links 1 to 4 each, and of the tool points."""

    links: tuple[float, float, float, float]
    tools: Mapping[str, float] = field(default_factory=dict[str, float])


def clearance(
    arm: Arm,
    q: ArrayLike,
    boxes: Collection[Box],
    thickness: Thickness,
    tools: Mapping[str, ArrayLike] | None = None,
    tolerance: float | None = None,
) -> Clearance:
    """Distances of the arm to boxes.

    Parameters
    ----------
    q : (rows, 4)
        Joint angles, rad. The links are rigid here: `collision_mode` 1 of RA_FAULT_DETECT.
    boxes : collection of Box
        See `payload_boxes`.
    thickness : Thickness
        A link is everything within its radius of its offset d along the joint's axis and its length a.
    tools : mapping of str to (rows, 3), optional
        Points that move along, such as ``tool_pose(arm, q, "Scoop")[:, :3]``, m, in the IDA frame. Those
        named in `ignored` are left out.
    tolerance : float, optional
        m; default `lander_tol` of RA_FAULT_DETECT.
    """
    angles = floats("joint angles", q, ("rows", 4))
    skipped = list_ignored(arm.parameters)
    links = link_axes(arm, angles)
    ends = {f"link {i + 1}": links[:, i] for i in range(4)}
    radii = dict(zip(ends, thickness.links, strict=True))
    for name, points in (tools or {}).items():
        if name not in skipped:
            place = se3.apply(arm.mount, floats(f"points of {name}", points, ("rows", 3)))
            ends[name] = np.stack([place, place], axis=1)[:, None]
            radii[name] = thickness.tools.get(name, 0.0)
    distance = np.empty((len(angles), len(ends), len(boxes)))
    for k, box in enumerate(boxes):
        for i, (name, segments) in enumerate(ends.items()):
            reach = segment_distance(box, segments[:, :, 0], segments[:, :, 1])
            distance[:, i, k] = reach.min(axis=1) - radii[name]
    if tolerance is None:
        tolerance = arm.parameters.number("RA_FAULT_DETECT", "lander_tol")
    return Clearance(tuple(ends), tuple(box.name for box in boxes), distance, tolerance)


def link_axes(arm: Arm, q: ArrayLike) -> Floats:
    """Axes of the links at joint angles (rows, 4), as segments (rows, 4, 2, 2, 3) in m, payload frame.

    Each link has two, from its start to its end: the offset d along the joint's axis, then the length a.
    """
    poses = arm.mount @ joint_poses(arm, q)
    start, end = poses[:, :-1, :3, 3], poses[:, 1:, :3, 3]
    corner = start + arm.chain.d[:, None] * poses[:, :-1, :3, 2]
    return np.stack([np.stack([start, corner], axis=2), np.stack([corner, end], axis=2)], axis=2)


def segment_distance(box: Box, start: ArrayLike, end: ArrayLike) -> Floats:
    """Distance (...) in m of segments from a box, 0 where they touch it.

    Parameters
    ----------
    start, end : (..., 3)
        Ends of the segments, m, in the payload frame.

    Notes
    -----
    Along a segment the squared distance to a box is convex, and quadratic between the points where the
    segment crosses a plane of one of the box's sides. So its slope is piecewise linear, and exact where it
    is interpolated between these points.
    """
    inside = se3.invert(box.pose)
    p, way = se3.apply(inside, start), se3.apply(inside, end) - se3.apply(inside, start)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # along a side, or nearly
        crossings = np.concatenate([(-box.half - p) / way, (box.half - p) / way], axis=-1)
    ends = np.broadcast_to([0.0, 1.0], (*p.shape[:-1], 2))
    breaks = np.concatenate([np.clip(np.nan_to_num(crossings), 0.0, 1.0), ends], axis=-1)
    breaks = np.sort(breaks, axis=-1)
    slope = (_outside(box, p, way, breaks) * way[..., None, :]).sum(axis=-1)
    nearest = _zero(breaks, slope)
    return np.linalg.norm(_outside(box, p, way, nearest[..., None])[..., 0, :], axis=-1)


def _outside(box: Box, p: Floats, way: Floats, part: Floats) -> Floats:
    """Vectors (..., k, 3) from the box to the points at parts (..., k) of the way."""
    points = p[..., None, :] + part[..., None] * way[..., None, :]
    return points - np.clip(points, -box.half, box.half)


def _zero(x: Floats, y: Floats) -> Floats:
    """Where a rising piecewise linear function (..., k) crosses zero, else the end nearer to it (...)."""
    below = np.clip((y < 0).sum(axis=-1) - 1, 0, x.shape[-1] - 2)[..., None]
    x0, x1, y0, y1 = (
        np.take_along_axis(array, below + step, axis=-1)[..., 0] for array in (x, y) for step in (0, 1)
    )
    part = np.divide(-y0, y1 - y0, out=np.zeros_like(y0), where=y1 > y0)
    return x0 + np.clip(part, 0.0, 1.0) * (x1 - x0)
