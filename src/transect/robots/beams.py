"""Laser scans and radar ranges as points: one beam after another, each with its own time and bearing.

A beam at bearing a points along ``(cos a, sin a, 0)`` of its sensor's frame, from x towards y. For the
lasers y is starboard. The radar hangs upside down, its y is port, so its bearings run the other way in
Body: the frames do that, no sign is changed here.

What the report does not tell is assumed: that a line's time is that of its first beam, that beams follow
in the order of their index, and that the mirror turns evenly at the rate given. LaserHorizontal is mounted
upside down and its data turned round on acquisition (footnote 3), so its beams may run backwards; within
half a turn of 75 Hz that is 7 ms at most.

Full laser sweeps come from interleaved scans (document 004, section 3.2.2): four successive 1-degree scans,
whose starts are 0.25 degree apart, make one 0.25-degree sweep. Beam j of scan k is beam ``4 j + k`` of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats, Ints, Mask
from transect.errors import StreamError
from transect.geometry import se3
from transect.geometry.planar import points_from_polar
from transect.recording import FrameTree, Parsed, Robot, Stream, arrow
from transect.types import LaserScan
from transect.types.returns import find_returns

_CHUNK = 1 << 17
"""Points placed together: their transforms are 16 numbers each."""


@dataclass(frozen=True)
class Gate:
    """Ranges that are wanted: above `minimum` and up to `maximum`, m."""

    minimum: float = 0.0
    maximum: float = np.inf

    @classmethod
    def of(cls, robot: Robot, sensor: str) -> Gate:
        """Return the gate of a robot's "laser" or "radar"."""
        limits = robot.constants[sensor]
        return cls(float(limits["minimum_range"]), float(limits["maximum_range"]))

    def passes(self, ranges: ArrayLike) -> Mask:
        """Return which of the ranges (...) in m were measured and are in the gate."""
        return find_returns(ranges, self.minimum, np.nextafter(self.maximum, np.inf))


@dataclass(frozen=True, eq=False)
class Beams:
    """Single measurements of one sensor."""

    t_ns: Ints  # (n,), when each was taken
    # angle, range: (n,), bearing in rad from the sensor's x axis towards its y axis, and m
    angle: Floats
    range: Floats
    intensity: Floats  # (n,), as the sensor scales it; NaN where it gives none

    def __len__(self) -> int:
        return len(self.t_ns)

    def where(self, keep: Mask) -> Beams:
        """Return the beams where (n,) `keep` is true."""
        return Beams(self.t_ns[keep], self.angle[keep], self.range[keep], self.intensity[keep])

    @property
    def points(self) -> Floats:
        """(n, 3) points in the sensor's frame, m."""
        return points_from_polar(self.range, self.angle)


def beams_of_scans(
    t_ns: Ints,
    ranges: Floats,
    offsets: Ints,
    start_angle: Floats,
    increment: Floats,
    *,
    end_ns: Ints | None = None,
    scans: int = 1,
    mirror_rate: float | None = None,
) -> Beams:
    """Return the beams of n scans, or of n sweeps of interleaved scans.

    Parameters
    ----------
    t_ns : (n,) int64 array
        Time of the first beam.
    ranges, offsets : (k,) array, (n + 1,) int64 array
        m, end to end, and offsets from 0: scan i is ``ranges[offsets[i]:offsets[i + 1]]``.
    start_angle, increment : (n,) array
        rad.
    end_ns : (n,) int64 array, optional
        For sweeps, the time of the first beam of the last of its `scans`; those between are evenly spaced.
    scans : int
        How many scans make a row: beam j belongs to number ``j % scans``.
    mirror_rate : float, optional
        Turns a second. Without it all beams of a scan have its time.
    """
    row = np.repeat(np.arange(len(t_ns)), np.diff(offsets))
    beam = np.arange(len(row)) - offsets[row]
    step, scan = np.divmod(beam, scans)
    later = np.zeros(len(row))
    if end_ns is not None and scans > 1:
        later += scan * ((end_ns - t_ns) / (scans - 1))[row]
    if mirror_rate is not None:
        later += step * np.abs(scans * increment)[row] / (2 * np.pi * mirror_rate) * 1e9
    return Beams(
        t_ns=t_ns[row] + np.rint(later).astype(np.int64),
        angle=start_angle[row] + beam * increment[row],
        range=ranges,
        intensity=np.full(len(row), np.nan),
    )


def place(beams: Beams, frames: FrameTree, target: str, source: str, *, tolerance: float = 0.0) -> Floats:
    """Return the beams' end points (n, 3) in another frame, each taken there at its own time.

    Parameters
    ----------
    target, source : str
        Where to, and the sensor's own frame.
    tolerance : float
        Seconds by which a moving frame holds its first and last pose; beyond that a point is NaN.
    """
    result = np.empty((len(beams), 3))
    local = beams.points
    for begin in range(0, len(beams), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        T = frames.lookup(target, source, beams.t_ns[part], tolerance=tolerance, missing="nan")
        result[part] = se3.apply(T, local[part])
    return result


SCANS = 4


def assemble_sweeps(stream: Stream) -> Stream:
    """Return a laser's interleaved scans as full sweeps.

    Parameters
    ----------
    stream : Stream of LaserScan
        As `transect.open` gives it: one scan a row, starts a quarter of the increment apart.

    Returns
    -------
    Stream of LaserScan
        One sweep a row, at the time of its first scan; `end_ns` is that of its last. Scans without their
        three partners, at the ends and beside gaps, are left out and counted in a note.
    """
    if stream.type is not LaserScan:
        raise StreamError(
            f"{stream.name} has no scans to assemble", why=f"it is a stream of {stream.type.__name__}"
        )
    return stream.replace(source=lambda: _assemble(stream), seams=())


def _assemble(stream: Stream) -> Parsed:
    flat, offsets = arrow.lists_of(stream.table, "ranges")
    start_angle, increment = stream["start_angle"], stream["angle_increment"]
    firsts = sweep_starts(stream.t_ns, start_angle, increment, np.diff(offsets))
    split = np.isin(firsts[:, None] + np.arange(1, SCANS), stream.seams).any(axis=1)
    firsts = firsts[~split]
    ranges, ends = interleave(flat, offsets, firsts)
    columns = {
        "ranges": arrow.ragged_from_offsets(ranges, ends),
        "start_angle": start_angle[firsts],
        "angle_increment": increment[firsts] / SCANS,
        "end_ns": stream.t_ns[firsts + SCANS - 1],
    }
    if "range_error" in stream.columns:
        errors, _ = interleave(*arrow.lists_of(stream.table, "range_error"), firsts)
        columns["range_error"] = arrow.ragged_from_offsets(errors.astype(np.uint16), ends)
    table = arrow.table(stream.t_ns[firsts], columns, units={**LaserScan.units(), "end_ns": "ns"})
    notes, alone = list(stream.parsed.notes), len(stream) - SCANS * len(firsts)
    if alone:
        notes.append(f"{stream.name}: {alone} of {len(stream)} scans belong to no full sweep of {SCANS}")
    return Parsed(table, stream.losses, tuple(notes))


def sweep_starts(t_ns: Ints, start_angle: Floats, increment: Floats, lengths: Ints) -> Ints:
    """Return the rows at which four successive scans begin that make a full sweep.

    Parameters
    ----------
    t_ns : (n,) int64 array
    start_angle, increment : (n,) array
        Radians.
    lengths : (n,) int array
        Ranges in each scan; a later scan of a sweep may have one less than the first.
    """
    first = np.arange(max(len(t_ns) - SCANS + 1, 0))
    good = np.ones(len(first), dtype=bool)
    for k in range(1, SCANS):
        with np.errstate(all="ignore"):
            steps = (start_angle[first + k] - start_angle[first]) / (increment[first] / SCANS)
        # Angles are printed with six decimals or so: a tenth of a step is far beyond their rounding.
        good &= (np.abs(steps - k) < 0.1) & (increment[first + k] == increment[first])
        good &= lengths[first + k] <= lengths[first + k - 1]
    good &= lengths[first + SCANS - 1] >= lengths[first] - 1
    first = first[good]
    return first[_in_time(t_ns[first + SCANS - 1] - t_ns[first])]


def _in_time(taken: Ints) -> NDArray[np.bool_]:
    """Return which groups of four took as long as most do, 3 periods: with a sweep missing inside it is 7."""
    forward = taken[taken >= 0]
    return (taken >= 0) & (taken <= 2 * (np.quantile(forward, 0.25) if len(forward) else 0))


def interleave(flat: Floats, offsets: Ints, firsts: Ints) -> tuple[Floats, Ints]:
    """Return the ranges of all sweeps end to end, and their (sweeps + 1,) offsets.

    Parameters
    ----------
    flat, offsets : (k,) array, (n + 1,) int64 array
        Ranges of the n scans, see `arrow.lists_of`.
    firsts : (sweeps,) int array
        The first scan of each sweep, see `sweep_starts`.
    """
    sizes = offsets[firsts + SCANS] - offsets[firsts]
    ends = arrow.offsets_of(sizes)
    beam = np.arange(ends[-1]) - np.repeat(ends[:-1], sizes)
    scan = np.repeat(firsts, sizes) + beam % SCANS
    return flat[offsets[scan] + beam // SCANS], ends
