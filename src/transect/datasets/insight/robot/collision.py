"""Clearance between the arm and the payloads on the deck.

PAYLOAD_COL_PARAMS (SIS 5.1.3.32) gives the poses of the boxes of SEIS, WTS and HP3, but not their sizes,
which are in the collision database (APID 84) that the SIS does not print. So the caller provides the sizes,
and the radii of the links. The SIS gives the poses in the "lander frame", but their heights are correct only
in the payload frame.
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

from .arm import DeploymentArm
from .kinematics import joint_poses
from .parameters import Parameters

PAYLOADS = ("seis", "wts", "hp3")
COLLIDERS = ("blade_1", "blade_2", "rac", "scoop", "wrist", "grapple_attach", "grapple", *PAYLOADS)
"""Names in `fault_params.ignore_col_*` of RA_FAULT_PARAMS."""


@dataclass(frozen=True, eq=False)
class KeepOutBox:
    """A keep-out volume."""

    name: str
    pose: Floats  # (4, 4), ``T_Payload_centre``: its centre and axes
    half: Floats  # (3,), half of its edge lengths, m


def payload_boxes(
    parameters: Parameters, sizes: Mapping[str, ArrayLike], absent: Collection[str] = ()
) -> tuple[KeepOutBox, ...]:
    """Keep-out boxes of the payloads on the deck.

    Parameters
    ----------
    sizes : mapping of str to (3,) or (2, 3)
        For each of `PAYLOADS` its edges (m), centred on its collision link frame, or the lowest and the
        highest corner in that frame.
    absent : collection of str
        Payloads that are no longer on the deck. Those with `fault_params.ignore_col_*` are omitted, too.

    Raises
    ------
    TransectError
        If the size of a box is not given.
    """
    wanted = [name for name in PAYLOADS if name not in {*absent, *list_ignored(parameters)}]
    if missing := [name for name in wanted if name not in sizes]:
        raise TransectError(
            f"the size of the collision box of {', '.join(missing)} is not known",
            why="PAYLOAD_COL_PARAMS gives the poses of the boxes; their sizes are in the collision database "
            "(APID 84), which the SIS does not print",
            hint=f"give sizes={{{missing[0]!r}: (dx, dy, dz)}} in metres, or absent=({missing[0]!r},)",
        )
    return tuple(_box(parameters, name, np.asarray(sizes[name], dtype=np.float64)) for name in wanted)


def _box(parameters: Parameters, name: str, size: Floats) -> KeepOutBox:
    corners = np.stack([-size / 2, size / 2]) if size.ndim == 1 else size
    if corners.shape != (2, 3) or not (corners[0] <= corners[1]).all():
        raise GeometryError(
            f"size of {name}: expected three edges, or a lowest and a highest corner, got {size.tolist()}"
        )
    link = se3.from_quaternion(  # i, j, k, r: scalar last
        rotations.normalise(parameters.numbers("PAYLOAD_COL_PARAMS", f"{name}_q")),
        parameters.numbers("PAYLOAD_COL_PARAMS", f"{name}_t"),
    )
    centre = se3.from_matrix(np.eye(3), corners.mean(axis=0))
    return KeepOutBox(name, link @ centre, (corners[1] - corners[0]) / 2)


def list_ignored(parameters: Parameters) -> frozenset[str]:
    """Names of `COLLIDERS` that the flight software does not check (RA_FAULT_PARAMS)."""
    flags = {name: f"fault_params.ignore_col_{name}" for name in COLLIDERS}
    return frozenset(
        name
        for name, key in flags.items()
        if parameters.has("RA_FAULT_PARAMS", key) and parameters.number("RA_FAULT_PARAMS", key)
    )


@dataclass(frozen=True)
class Violation:
    """The first violation of the tolerance."""

    row: int
    part: str
    box: str
    distance: float


@dataclass(frozen=True, eq=False)
class Clearance:
    """Distances between the parts of the arm and the boxes."""

    parts: tuple[str, ...]
    boxes: tuple[str, ...]
    # (rows, parts, boxes), between surfaces, m; negative by at most the radius of a link whose axis is inside
    # the box
    distance: Floats
    tolerance: float = 0.0  # minimum distance, m

    @property
    def minimum(self) -> Floats:
        """Smallest distance (rows,) of any part to any box, m; infinite without boxes."""
        return self.distance.min(axis=(1, 2), initial=np.inf)

    @property
    def violated(self) -> Mask:
        """Rows (rows,) with a distance below the tolerance."""
        return self.minimum < self.tolerance

    @property
    def first(self) -> Violation | None:
        """The closest pair in the first row that violates the tolerance."""
        if not self.violated.any():
            return None
        row = int(self.violated.argmax())
        part, box = divmod(int(self.distance[row].argmin()), len(self.boxes))
        return Violation(row, self.parts[part], self.boxes[box], float(self.distance[row, part, box]))


@dataclass(frozen=True)
class Thickness:
    """Radii of the links 1 to 4 and of the tool points, m."""

    links: tuple[float, float, float, float]
    tools: Mapping[str, float] = field(default_factory=dict[str, float])


def clearance(
    arm: DeploymentArm,
    q: ArrayLike,
    boxes: Collection[KeepOutBox],
    thickness: Thickness,
    tools: Mapping[str, ArrayLike] | None = None,
    tolerance: float | None = None,
) -> Clearance:
    """Compute the distances of the arm to boxes.

    Parameters
    ----------
    q : (rows, 4)
        Joint angles, rad. The links are rigid (`collision_mode` 1 of RA_FAULT_DETECT).
    boxes : collection of Box
        See `payload_boxes`.
    thickness : Thickness
        A link is a capsule around its offset d along the joint axis, and another around its length a.
    tools : mapping of str to (rows, 3), optional
        Tool points, such as ``tool_pose(arm, q, "Scoop")[:, :3]``, m, in the IDA frame. Those of
        `list_ignored` are omitted.
    tolerance : float, optional
        m; default `lander_tol` of RA_FAULT_DETECT.
    """
    angles = floats("joint angles", q, ("rows", 4))
    ignored = list_ignored(arm.parameters)
    links = link_axes(arm, angles)
    ends = {f"link {i + 1}": links[:, i] for i in range(4)}
    radii = dict(zip(ends, thickness.links, strict=True))
    for name, points in (tools or {}).items():
        if name not in ignored:
            position = se3.apply(arm.mount, floats(f"points of {name}", points, ("rows", 3)))
            ends[name] = np.stack([position, position], axis=1)[:, None]
            radii[name] = thickness.tools.get(name, 0.0)
    distance = np.empty((len(angles), len(ends), len(boxes)))
    for k, box in enumerate(boxes):
        for i, (name, segments) in enumerate(ends.items()):
            separation = segment_distance(box, segments[:, :, 0], segments[:, :, 1])
            distance[:, i, k] = separation.min(axis=1) - radii[name]
    if tolerance is None:
        tolerance = arm.parameters.number("RA_FAULT_DETECT", "lander_tol")
    return Clearance(tuple(ends), tuple(box.name for box in boxes), distance, tolerance)


def link_axes(arm: DeploymentArm, q: ArrayLike) -> Floats:
    """Axes of the links at joint angles (rows, 4), as segments (rows, 4, 2, 2, 3) in m, payload frame.

    Each link has two, from its start to its end: the offset d along the joint axis, then the length a.
    """
    poses = arm.mount @ joint_poses(arm, q)
    start, end = poses[:, :-1, :3, 3], poses[:, 1:, :3, 3]
    corner = start + arm.chain.d[:, None] * poses[:, :-1, :3, 2]
    return np.stack([np.stack([start, corner], axis=2), np.stack([corner, end], axis=2)], axis=2)


def segment_distance(box: KeepOutBox, start: ArrayLike, end: ArrayLike) -> Floats:
    """Distance (...) in m of segments from a box, 0 if they intersect.

    Parameters
    ----------
    start, end : (..., 3)
        Ends of the segments, m, in the payload frame.

    Notes
    -----
    Along a segment the squared distance to a box is convex, and quadratic between the points where the
    segment crosses the planes of the faces. So its derivative is piecewise linear between these points, and
    its zero follows by linear interpolation.
    """
    inside = se3.invert(box.pose)
    p, direction = se3.apply(inside, start), se3.apply(inside, end) - se3.apply(inside, start)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # parallel to a face
        crossings = np.concatenate([(-box.half - p) / direction, (box.half - p) / direction], axis=-1)
    ends = np.broadcast_to([0.0, 1.0], (*p.shape[:-1], 2))
    breaks = np.concatenate([np.clip(np.nan_to_num(crossings), 0.0, 1.0), ends], axis=-1)
    breaks = np.sort(breaks, axis=-1)
    derivative = (_outside(box, p, direction, breaks) * direction[..., None, :]).sum(axis=-1)
    nearest = _find_zero(breaks, derivative)
    return np.linalg.norm(_outside(box, p, direction, nearest[..., None])[..., 0, :], axis=-1)


def _outside(box: KeepOutBox, p: Floats, direction: Floats, fraction: Floats) -> Floats:
    """Vectors (..., k, 3) from the box to the points at fractions (..., k) of the segments."""
    points = p[..., None, :] + fraction[..., None] * direction[..., None, :]
    return points - np.clip(points, -box.half, box.half)


def _find_zero(x: Floats, y: Floats) -> Floats:
    """Zero (...) of an increasing piecewise linear function (..., k), else the end closest to it."""
    below = np.clip((y < 0).sum(axis=-1) - 1, 0, x.shape[-1] - 2)[..., None]
    x0, x1, y0, y1 = (
        np.take_along_axis(array, below + step, axis=-1)[..., 0] for array in (x, y) for step in (0, 1)
    )
    fraction = np.divide(-y0, y1 - y0, out=np.zeros_like(y0), where=y1 > y0)
    return x0 + np.clip(fraction, 0.0, 1.0) * (x1 - x0)
