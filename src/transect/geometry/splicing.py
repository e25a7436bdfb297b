"""Splicing of several pose tracks of the same body into one continuous track."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS

from . import rotations, se3
from .interpolation import Limits, interpolate_poses

LIMITS = Limits(gap_ns=NS, beyond_ns=0)
"""Poses are not interpolated across gaps longer than a second."""


class PoseTrack(NamedTuple):
    """Times (n,) in ns, ascending, and poses (n, 4, 4) of a body in the track's own frame."""

    t_ns: Ints
    poses: Floats


class TrackSwitch(NamedTuple):
    """Use track `number` from `from_ns` on, aligned with the previous track at `anchor_ns`."""

    from_ns: int
    anchor_ns: int
    number: int


class SplicedTrack(NamedTuple):
    """Times (n,), poses (n, 4, 4) in the frame of the first track, and numbers (n,) of the source tracks."""

    t_ns: Ints
    poses: Floats
    source: Ints


def splice(tracks: Sequence[PoseTrack], first: int, switches: Sequence[TrackSwitch]) -> SplicedTrack:
    """Return one track: at a switch ``T_out = T_old(anchor) @ T_new(anchor)^-1 @ T_new``.

    Parameters
    ----------
    tracks : sequence of PoseTrack
        Tracks of one body in different frames.
    first : int
        Number of the track used before the first switch.
    switches : sequence of TrackSwitch
        In order of time. If a track has no pose at an anchor, the last time before it is used at which both
        have one; if there is none, the new track starts at the last pose of the old one.
    """
    starts = [np.iinfo(np.int64).min, *(switch.from_ns for switch in switches)]
    numbers, transforms = [first, *(switch.number for switch in switches)], [np.eye(4)]
    for switch, old in zip(switches, numbers, strict=False):
        transforms.append(
            transforms[-1] @ _relate_tracks(tracks[old], tracks[switch.number], switch.anchor_ns)
        )
    parts = [
        _cut(tracks[number], transforms[k], starts[k], starts[k + 1] if k + 1 < len(starts) else None)
        for k, number in enumerate(numbers)
    ]
    source = [np.full(len(part.t_ns), number, np.int64) for part, number in zip(parts, numbers, strict=True)]
    return SplicedTrack(
        np.concatenate([part.t_ns for part in parts]),
        np.concatenate([part.poses for part in parts]),
        np.concatenate(source),
    )


def _cut(track: PoseTrack, T_out_track: Floats, start_ns: int, end_ns: int | None) -> PoseTrack:
    inside = (track.t_ns >= start_ns) & (track.t_ns < (np.iinfo(np.int64).max if end_ns is None else end_ns))
    return PoseTrack(track.t_ns[inside], T_out_track @ track.poses[inside])


def _relate_tracks(old: PoseTrack, new: PoseTrack, anchor_ns: int) -> Floats:
    """Return T_old_new (4, 4): takes poses of the new track to the frame of the old one."""
    times = np.append(old.t_ns[old.t_ns < anchor_ns], anchor_ns)
    both = [_interpolate(track, times) for track in (old, new)]
    known = np.flatnonzero(np.isfinite(both[0]).all((1, 2)) & np.isfinite(both[1]).all((1, 2)))
    if len(known):
        return both[0][known[-1]] @ se3.invert(both[1][known[-1]])
    if not len(new.t_ns) or not len(old.t_ns):
        return np.eye(4)
    last = old.poses[max(int(np.searchsorted(old.t_ns, anchor_ns, "right")) - 1, 0)]
    after = min(int(np.searchsorted(new.t_ns, anchor_ns)), len(new.t_ns) - 1)
    return last @ se3.invert(new.poses[after])


def _interpolate(track: PoseTrack, t_ns: Ints) -> Floats:
    """Return the poses (m, 4, 4) at times (m,), NaN where they are not known."""
    result = np.full((len(t_ns), 4, 4), np.nan)
    if not len(track.t_ns):
        return result
    quaternions = rotations.quaternion_from_matrix(track.poses[:, :3, :3])
    positions, attitudes = interpolate_poses(track.t_ns, track.poses[:, :3, 3], quaternions, t_ns, LIMITS)
    known = np.isfinite(positions).all(axis=1)
    result[known] = se3.from_quaternion(attitudes[known], positions[known])
    return result
