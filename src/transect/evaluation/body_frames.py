"""The estimate at the point that the truth tracks: an antenna is not a camera.

``T_world_truth = T_world_estimate @ T_estimate_truth``, where the last is what the frame tree says of the
two bodies: a lever arm and a rotation that do not change. Columns in the wrong order make a frame that is
plausible, and wrong: a mirrored one, or quaternions with w first.
"""

from __future__ import annotations

from dataclasses import replace
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
"""Takes columns that were read as x, y, z, w, and are w, x, y, z, to where they belong."""
SCATTERED = 0.05
"""Attitudes that scatter more than this do not belong to the same body; 0.05 is about 25 degrees."""
STEADY, TURNED = 0.005, np.radians(10)
"""Axes of two bodies are turned against each other if their attitudes scatter about one rotation by less than
this (about 8 degrees), and that rotation is larger than this, rad."""
STRAIGHT = 1e-3
"""Ratio of squared extents below which a path is too straight to tell how the world is turned."""
CLEARLY = 0.1
"""The other order must leave less than this part of the error."""
MOST = 2000
"""Pairs that are looked at."""


class Framed(NamedTuple):
    """An estimate that can be compared.

    Attributes
    ----------
    estimate : Trajectory
        Of the reference's body.
    T_estimate_reference : (4, 4) float64 or None
        Takes points of the reference's body to the estimate's; None where it is not known.
    note : str
        What was done, or `frames assumed equal` and why.
    """

    estimate: Trajectory
    T_estimate_reference: Floats | None
    note: str


def at_frame_of(reference: Trajectory, estimate: Trajectory, *trees: FrameTree) -> Framed:
    """Return the estimate as poses of the reference's body.

    Parameters
    ----------
    trees : FrameTree
        Asked one after the other for a path between the two bodies on which nothing moves.
    """
    body, wanted = estimate.child, reference.child
    why = f"no path from {body or 'a body without a name'} to {wanted or 'one without a name'} is known"
    if body == wanted:
        why = f"both are called {body}" if body else "neither says what it is the pose of"
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
        note = f"{ASSUMED}: the estimate has no attitudes to turn a lever arm of {arm:.3g} m by"
        return Framed(estimate, None, note)
    turned, positions = se3.to_quaternion(matrices(estimate) @ T_estimate_reference)
    shift = positions - estimate.positions
    moved = replace(
        estimate,
        positions=positions,
        orientations=turned,
        covariances=_at_the_end_of(shift, estimate.covariances),
        child=wanted,
    )
    angle = np.linalg.norm(rotations.rotation_vector_from_matrix(T_estimate_reference[:3, :3]))
    by = f"lever arm {arm:.3g} m, turned by {np.degrees(angle):.3g} deg"
    note = f"moved from {estimate.child} to {wanted}: {by}"
    return Framed(moved, T_estimate_reference, note)


def _at_the_end_of(arms: Floats, covariances: Floats | None) -> Floats | None:
    """Return the (n, 6, 6) covariances at the ends of lever arms (n, 3), all in the world's axes."""
    if covariances is None:
        return None
    jacobian = np.tile(np.eye(6), (len(arms), 1, 1))
    jacobian[:, :3, 3:] = -rotations.skew(arms)
    return jacobian @ covariances @ jacobian.transpose(0, 2, 1)


# Axes of bodies that no frames connect


def are_unrelated(reference: Trajectory, estimate: Trajectory, *trees: FrameTree) -> bool:
    """Tell whether two trajectories are of bodies with names that no frames connect."""
    named = bool(reference.child and estimate.child) and reference.child != estimate.child
    return named and at_frame_of(reference, estimate, *trees).T_estimate_reference is None


def turn_bodies(pairs: Pairs, framed: Framed, align: str) -> tuple[Pairs, str]:
    """Return pairs whose attitudes are of axes that look alike, and what to say of it.

    An IMU looks along x, a camera along z. Where no frames connect two bodies that have names, and their
    attitudes differ by one rotation all the way, that rotation is taken out: it is no error of attitude, and
    motions in axes that differ cannot be compared. A straight path does not tell it: attitudes are then left
    out, unless the first of them is needed to `align`.
    """
    reference, estimate = pairs.reference, pairs.estimate
    if framed.T_estimate_reference is not None or not are_unrelated(reference, estimate):
        return pairs, framed.note
    if reference.orientations is None or estimate.orientations is None:
        return pairs, framed.note
    few = slice(None, None, max(1, len(pairs) // MOST))
    a, b = (each.positions[few] - each.positions[few].mean(axis=0) for each in (estimate, reference))
    strength = np.linalg.svd(b.T @ a, compute_uv=False)
    if len(a) < 4 or strength[1] < STRAIGHT * strength[0]:
        if align == "origin":
            return pairs, framed.note
        why = framed.note.removeprefix(f"{ASSUMED}: ")
        note = (
            f"attitudes are not compared: {why}, and the path is too straight to find how they are turned; "
            "motions are compared in the aligned frame"
        )
        return replace(pairs, estimate=replace(estimate, orientations=None)), note
    world = rotations.quaternion_from_matrix(rotations.nearest_rotation(b.T @ a))
    between = _between(reference.orientations[few], estimate.orientations[few], world)
    spread = np.linalg.eigh(between.T @ between / len(between))
    if 1 - spread.eigenvalues[-1] > STEADY:
        return pairs, framed.note
    mean = spread.eigenvectors[:, -1]
    angle = float(np.linalg.norm(rotations.rotation_vector_from_quaternion(mean)))
    angle = min(angle, 2 * np.pi - angle)
    if angle < TURNED:
        return pairs, framed.note
    attitudes = rotations.multiply(estimate.orientations, rotations.conjugate(mean))
    why, degrees = framed.note.removeprefix(f"{ASSUMED}: "), f"{np.degrees(angle):.3g} deg"
    note = (
        f"{why}: {estimate.child} is turned by {degrees} onto the axes of {reference.child}, as the "
        "attitudes of both tell; a lever arm is not taken off"
    )
    return replace(pairs, estimate=replace(estimate, orientations=attitudes)), note


# Columns in the wrong order


def refuse_swapped(pairs: Pairs) -> None:
    """Raise if the estimate would fit with two of its columns exchanged, and does not as it is.

    Raises
    ------
    AssociationError
        For mirrored positions, and for quaternions whose w is the first column and not the last.
    """
    few = slice(None, None, max(1, len(pairs) // MOST))
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
    if mirrored < CLEARLY**2 * proper:
        raise AssociationError(
            "the positions of the estimate are those of the reference in a mirror",
            why="mirrored, they fit ten times better: two columns may be swapped, or one has the wrong sign",
            hint="check the columns x, y, z of both files",
        )


def _refuse_w_first(reference: Trajectory, estimate: Trajectory, few: slice, turn: Floats) -> None:
    if reference.orientations is None or estimate.orientations is None:
        return
    truth, said = reference.orientations[few], estimate.orientations[few]
    world = rotations.quaternion_from_matrix(turn)
    as_read = _scatter(truth, said, world)
    if as_read < SCATTERED:
        return
    other = {"estimate": (truth, said[:, W_FIRST]), "reference": (truth[:, W_FIRST], said)}
    fitting = [name for name, both in other.items() if _scatter(*both, world) < CLEARLY * as_read]
    if fitting:
        raise AssociationError(
            f"the quaternions of the {' or of the '.join(fitting)} have w first",
            why="read as w, x, y, z the attitudes fit, as x, y, z, w they do not",
            hint="write them in the order x, y, z, w",
        )


def _scatter(truth: Floats, said: Floats, world: Floats) -> float:
    """Return how far ``truth^-1 world said`` is from one rotation: 0 for a constant one, up to 3/4."""
    between = _between(truth, said, world)
    return float(1 - np.linalg.eigvalsh(between.T @ between / len(between))[-1])


def _between(truth: Floats, said: Floats, world: Floats) -> Floats:
    """Return the rotations ``truth^-1 world said`` (n, 4)."""
    return rotations.multiply(rotations.conjugate(truth), rotations.multiply(world, said))
