"""One track of several that know the same motion: each goes on where the one before it was left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS

from . import rotations, se3
from .interpolation import Limits, interpolate_poses

LIMITS = Limits(gap_ns=NS, beyond_ns=0)
"""Poses further apart than a second say nothing of what is between them."""


class Track(NamedTuple):
    """Times (n,) in ns, ascending, and poses (n, 4, 4) of a body in a frame of its own."""

    t_ns: Ints
    poses: Floats


class Change(NamedTuple):
    """From `from_ns` on the track with this number counts, laid on the one before it at `anchor_ns`."""

    from_ns: int
    anchor_ns: int
    number: int


class Spliced(NamedTuple):
    """Times (n,), poses (n, 4, 4) in the frame of the first track, and the number (n,) of each's track."""

    t_ns: Ints
    poses: Floats
    source: Ints


def splice(tracks: Sequence[Track], first: int, changes: Sequence[Change]) -> Spliced:
    """Return one track: at a change ``T_out = T_old(anchor) @ T_new(anchor)^-1 @ T_new``.

    Parameters
    ----------
    tracks : sequence of Track
        Of one body; frames differ.
    first : int
        Number of the track that counts before the first change.
    changes : sequence of Change
        In order of time. Where a track has no pose at an anchor, the last one before it counts at which both
        are known; where there is none, the new one begins at the last pose of the old one.
    """
    starts = [np.iinfo(np.int64).min, *(change.from_ns for change in changes)]
    numbers, lay = [first, *(change.number for change in changes)], [np.eye(4)]
    for change, old in zip(changes, numbers, strict=False):
        lay.append(lay[-1] @ _join(tracks[old], tracks[change.number], change.anchor_ns))
    parts = [
        _cut(tracks[number], lay[k], starts[k], starts[k + 1] if k + 1 < len(starts) else None)
        for k, number in enumerate(numbers)
    ]
    source = [np.full(len(part.t_ns), number, np.int64) for part, number in zip(parts, numbers, strict=True)]
    return Spliced(
        np.concatenate([part.t_ns for part in parts]),
        np.concatenate([part.poses for part in parts]),
        np.concatenate(source),
    )


def _cut(track: Track, T_out_track: Floats, start_ns: int, end_ns: int | None) -> Track:
    inside = (track.t_ns >= start_ns) & (track.t_ns < (np.iinfo(np.int64).max if end_ns is None else end_ns))
    return Track(track.t_ns[inside], T_out_track @ track.poses[inside])


def _join(old: Track, new: Track, anchor_ns: int) -> Floats:
    """Return T_old_new (4, 4): takes poses of the new track to the frame of the old one."""
    times = np.append(old.t_ns[old.t_ns < anchor_ns], anchor_ns)
    both = [_at(track, times) for track in (old, new)]
    known = np.flatnonzero(np.isfinite(both[0]).all((1, 2)) & np.isfinite(both[1]).all((1, 2)))
    if len(known):
        return both[0][known[-1]] @ se3.invert(both[1][known[-1]])
    if not len(new.t_ns) or not len(old.t_ns):
        return np.eye(4)
    last = old.poses[max(int(np.searchsorted(old.t_ns, anchor_ns, "right")) - 1, 0)]
    after = min(int(np.searchsorted(new.t_ns, anchor_ns)), len(new.t_ns) - 1)
    return last @ se3.invert(new.poses[after])


def _at(track: Track, t_ns: Ints) -> Floats:
    """Return the poses (m, 4, 4) at times (m,), NaN where they are not known."""
    result = np.full((len(t_ns), 4, 4), np.nan)
    if not len(track.t_ns):
        return result
    turned = rotations.quaternion_from_matrix(track.poses[:, :3, :3])
    places, attitudes = interpolate_poses(track.t_ns, track.poses[:, :3, 3], turned, t_ns, LIMITS)
    known = np.isfinite(places).all(axis=1)
    result[known] = se3.from_quaternion(attitudes[known], places[known])
    return result
