"""Estimates at the body frame of the truth, e.g. an antenna instead of a camera.

``T_world_truth = T_world_estimate @ T_estimate_truth``, where the last is the static transform between the
two bodies in the frame tree. Columns in the wrong order are detected: mirrored positions, or quaternions with
w first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from transect.base.arrays import Floats
from transect.errors import FrameError
from transect.geometry import rotations, se3
from transect.recording import FrameTree
from transect.types import Trajectory

from .association import AssociationError, Pairs
from .trajectory_errors import matrices

ASSUMED = "frames assumed equal"
W_FIRST = [1, 2, 3, 0]
"""Reorders columns w, x, y, z that were read as x, y, z, w."""


@dataclass(frozen=True)
class BodyAxesSettings:
    """Comparison of the attitudes of two bodies; scatter is 1 - the largest eigenvalue of their mean."""

    max_scatter: float = 0.05  # larger for quaternions in the wrong order; 0.05 is about 25 degrees
    max_constant_scatter: float = 0.005  # the bodies differ by one constant rotation; about 8 degrees
    min_rotation_rad: float = math.radians(10)  # smaller constant rotations are errors of attitude
    min_bend_ratio: float = 1e-3  # of squared extents; a straighter path does not determine the rotation
    max_error_ratio: float = 0.1  # of the error with exchanged columns to that as read
    max_pairs: int = 2000  # that are evaluated


AXES = BodyAxesSettings()


class Framed(NamedTuple):
    """An estimate that was transformed to the body of the reference."""

    estimate: Trajectory
    # (4, 4), from the body frame of the reference to that of the estimate; None if unknown
    T_estimate_reference: Floats | None
    note: str  # the transform, or `frames assumed equal` and why


def at_frame_of(reference: Trajectory, estimate: Trajectory, *trees: FrameTree) -> Framed:
    """Return the estimate as poses of the reference's body.

    Parameters
    ----------
    trees : FrameTree
        Searched in this order for a static transform between the two bodies.
    """
    body, wanted = estimate.child, reference.child
    why = f"no path from {body or 'a body without a name'} to {wanted or 'one without a name'} is known"
    if body == wanted:
        why = f"both are called {body}" if body else "neither names its body"
    for tree in trees:
        try:
            T_estimate_reference = np.array(tree.lookup(body, wanted))
        except FrameError as error:
            why = error.what if body in tree and wanted in tree else why
            continue
        return _move(estimate, wanted, T_estimate_reference)
    return Framed(estimate, None, f"{ASSUMED}: {why}")


def _move(estimate: Trajectory, wanted: str, T_estimate_reference: Floats) -> Framed:
    if np.array_equal(T_estimate_reference, np.eye(4)):
        same = f"both are poses of {wanted}" if wanted == estimate.child else f"{wanted} is {estimate.child}"
        return Framed(replace(estimate, child=wanted), T_estimate_reference, same)
    arm = float(np.linalg.norm(T_estimate_reference[:3, 3]))
    if estimate.orientations is None:
        note = f"{ASSUMED}: the estimate has no attitudes to rotate a lever arm of {arm:.3g} m"
        return Framed(estimate, None, note)
    orientations, positions = se3.to_quaternion(matrices(estimate) @ T_estimate_reference)
    shift = positions - estimate.positions
    moved = replace(
        estimate,
        positions=positions,
        orientations=orientations,
        covariances=_covariances_at(shift, estimate.covariances),
        child=wanted,
    )
    angle = np.linalg.norm(rotations.rotation_vector_from_matrix(T_estimate_reference[:3, :3]))
    by = f"lever arm {arm:.3g} m, turned by {np.degrees(angle):.3g} deg"
    note = f"moved from {estimate.child} to {wanted}: {by}"
    return Framed(moved, T_estimate_reference, note)


def _covariances_at(lever_arms: Floats, covariances: Floats | None) -> Floats | None:
    """Return the (n, 6, 6) covariances at the ends of lever arms (n, 3), all in the world's axes."""
    if covariances is None:
        return None
    jacobian = np.tile(np.eye(6), (len(lever_arms), 1, 1))
    jacobian[:, :3, 3:] = -rotations.skew(lever_arms)
    return jacobian @ covariances @ jacobian.transpose(0, 2, 1)


# Axes of bodies without a transform between them


def are_unrelated(reference: Trajectory, estimate: Trajectory, *trees: FrameTree) -> bool:
    """Return whether two trajectories are of named bodies that no static transform connects."""
    named = bool(reference.child and estimate.child) and reference.child != estimate.child
    return named and at_frame_of(reference, estimate, *trees).T_estimate_reference is None


def turn_bodies(pairs: Pairs, framed: Framed, align: str) -> tuple[Pairs, str]:
    """Return pairs whose attitudes refer to the same axes, and a note about the rotation.

    An IMU has x forward, a camera z. If no transform connects two named bodies, and their attitudes differ by
    a constant rotation, that rotation is removed: it is not an error of attitude, and motions in different
    axes cannot be compared. A straight path does not determine it: attitudes are then ignored, unless the
    first of them is needed to `align`.
    """
    reference, estimate = pairs.reference, pairs.estimate
    if framed.T_estimate_reference is not None or not are_unrelated(reference, estimate):
        return pairs, framed.note
    if reference.orientations is None or estimate.orientations is None:
        return pairs, framed.note
    few = slice(None, None, max(1, len(pairs) // AXES.max_pairs))
    a, b = (each.positions[few] - each.positions[few].mean(axis=0) for each in (estimate, reference))
    strength = np.linalg.svd(b.T @ a, compute_uv=False)
    if len(a) < 4 or strength[1] < AXES.min_bend_ratio * strength[0]:
        if align == "origin":
            return pairs, framed.note
        why = framed.note.removeprefix(f"{ASSUMED}: ")
        note = (
            f"attitudes are not compared: {why}, and the path is too straight to determine their rotation; "
            "motions are compared in the aligned frame"
        )
        return replace(pairs, estimate=replace(estimate, orientations=None)), note
    world = rotations.quaternion_from_matrix(rotations.nearest_rotation(b.T @ a))
    between = _between(reference.orientations[few], estimate.orientations[few], world)
    spread = np.linalg.eigh(between.T @ between / len(between))
    if 1 - spread.eigenvalues[-1] > AXES.max_constant_scatter:
        return pairs, framed.note
    mean = spread.eigenvectors[:, -1]
    angle = float(np.linalg.norm(rotations.rotation_vector_from_quaternion(mean)))
    angle = min(angle, 2 * np.pi - angle)
    if angle < AXES.min_rotation_rad:
        return pairs, framed.note
    attitudes = rotations.multiply(estimate.orientations, rotations.conjugate(mean))
    why, degrees = framed.note.removeprefix(f"{ASSUMED}: "), f"{np.degrees(angle):.3g} deg"
    note = (
        f"{why}: {estimate.child} is rotated by {degrees} onto the axes of {reference.child}, as estimated "
        "from the attitudes of both; a lever arm is not removed"
    )
    return replace(pairs, estimate=replace(estimate, orientations=attitudes)), note


# Columns in the wrong order


def refuse_swapped(pairs: Pairs) -> None:
    """Raise if the estimate fits with two of its columns exchanged, but not as it is.

    Raises
    ------
    AssociationError
        For mirrored positions, and for quaternions whose w is the first column and not the last.
    """
    few = slice(None, None, max(1, len(pairs) // AXES.max_pairs))
    ref, est = pairs.reference.positions[few], pairs.estimate.positions[few]
    if len(ref) < 4:
        return
    a, b = est - est.mean(axis=0), ref - ref.mean(axis=0)
    strength = np.linalg.svd(b.T @ a, compute_uv=False).astype(np.float64)
    _refuse_mirrored(a, b, strength, float(np.linalg.det(b.T @ a)))
    _refuse_w_first(pairs.reference, pairs.estimate, few, rotations.nearest_rotation(b.T @ a))


def _refuse_mirrored(a: Floats, b: Floats, strength: Floats, sign: float) -> None:
    if sign > 0 or strength[2] < 1e-4 * strength[0]:
        return
    scale = np.sqrt(np.sum(b**2) / np.sum(a**2))
    total = np.sum(b**2) + scale**2 * np.sum(a**2)
    mirrored = total - 2 * scale * strength.sum()
    proper = total - 2 * scale * (strength[0] + strength[1] - strength[2])
    if mirrored < AXES.max_error_ratio**2 * proper:
        raise AssociationError(
            "the positions of the estimate are mirrored",
            why="mirrored, they fit ten times better: two columns may be swapped, or one has the wrong sign",
            hint="check the columns x, y, z of both files",
        )


def _refuse_w_first(reference: Trajectory, estimate: Trajectory, few: slice, turn: Floats) -> None:
    if reference.orientations is None or estimate.orientations is None:
        return
    truth, given = reference.orientations[few], estimate.orientations[few]
    world = rotations.quaternion_from_matrix(turn)
    as_read = _scatter(truth, given, world)
    if as_read < AXES.max_scatter:
        return
    other = {"estimate": (truth, given[:, W_FIRST]), "reference": (truth[:, W_FIRST], given)}
    fitting = [
        name for name, both in other.items() if _scatter(*both, world) < AXES.max_error_ratio * as_read
    ]
    if fitting:
        raise AssociationError(
            f"the quaternions of the {' or of the '.join(fitting)} have w first",
            why="read as w, x, y, z the attitudes fit, as x, y, z, w they do not",
            hint="write them in the order x, y, z, w",
        )


def _scatter(truth: Floats, given: Floats, world: Floats) -> float:
    """Return the scatter of the rotations ``truth^-1 world given``: 0 if constant, at most 3/4."""
    between = _between(truth, given, world)
    return float(1 - np.linalg.eigvalsh(between.T @ between / len(between))[-1])


def _between(truth: Floats, given: Floats, world: Floats) -> Floats:
    """Return the rotations ``truth^-1 world given`` (n, 4)."""
    return rotations.multiply(rotations.conjugate(truth), rotations.multiply(world, given))
