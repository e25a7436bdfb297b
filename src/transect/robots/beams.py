"""Laser scans and radar ranges as single beams, each with its own time and bearing.

A beam at bearing a points along ``(cos a, sin a, 0)`` of its sensor's frame, from x towards y. For the lasers
y is starboard. The radar is mounted upside down and its y is port, so its bearings have the opposite
direction in Body; this follows from the frames without a change of sign here.

Assumptions that the report does not confirm: the time of a line is that of its first beam, beams are in the
order of their index, and the mirror rotates uniformly at the given rate. LaserHorizontal is mounted upside
down and its data are reversed on acquisition (footnote 3), so the order of its beams may be reversed: an
error of at most 7 ms, half a turn at 75 Hz.

Full laser sweeps are combined from interleaved scans (SDI, section 3.2.2): four successive 1-degree scans,
whose starts are 0.25 degree apart, form one 0.25-degree sweep. Beam j of scan k is beam ``4 j + k`` of the
sweep.
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

_CHUNK_POINTS = 1 << 17
"""Points that are transformed together: each needs a 4 x 4 matrix."""


@dataclass(frozen=True)
class Gate:
    """Range gate: above `minimum` and up to `maximum`, m."""

    minimum: float = 0.0
    maximum: float = np.inf

    @classmethod
    def of(cls, robot: Robot, sensor: str) -> Gate:
        """Return the gate of a robot's "laser" or "radar"."""
        limits = robot.constants[sensor]
        return cls(float(limits["minimum_range"]), float(limits["maximum_range"]))

    def passes(self, ranges: ArrayLike) -> Mask:
        """Whether ranges (...) in m were measured and are within the gate."""
        return find_returns(ranges, self.minimum, np.nextafter(self.maximum, np.inf))


@dataclass(frozen=True, eq=False)
class BeamSamples:
    """Single measurements of one sensor."""

    t_ns: Ints  # (n,)
    # angle, range: (n,), bearing in rad from the sensor's x axis towards its y axis, and m
    angle: Floats
    range: Floats
    intensity: Floats  # (n,), in the scale of the sensor; NaN if not measured

    def __len__(self) -> int:
        return len(self.t_ns)

    def where(self, keep: Mask) -> BeamSamples:
        """Return the beams where (n,) `keep` is true."""
        return BeamSamples(self.t_ns[keep], self.angle[keep], self.range[keep], self.intensity[keep])

    @property
    def points(self) -> Floats:
        """(n, 3) points in the sensor's frame, m."""
        return points_from_polar(self.range, self.angle)


def beams_from_scans(
    t_ns: Ints,
    ranges: Floats,
    offsets: Ints,
    start_angle: Floats,
    increment: Floats,
    *,
    end_ns: Ints | None = None,
    scans: int = 1,
    mirror_rate: float | None = None,
) -> BeamSamples:
    """Return the beams of n scans, or of n sweeps of interleaved scans.

    Parameters
    ----------
    t_ns : (n,) int64 array
        Time of the first beam.
    ranges, offsets : (k,) array, (n + 1,) int64 array
        Concatenated ranges, m, and offsets from 0: scan i is ``ranges[offsets[i]:offsets[i + 1]]``.
    start_angle, increment : (n,) array
        rad.
    end_ns : (n,) int64 array, optional
        For sweeps, the time of the first beam of the last of its `scans`; the others are equally spaced.
    scans : int
        Number of scans per row: beam j belongs to scan ``j % scans``.
    mirror_rate : float, optional
        Rotations per second. Default: all beams of a scan have its time.
    """
    row = np.repeat(np.arange(len(t_ns)), np.diff(offsets))
    beam = np.arange(len(row)) - offsets[row]
    step, scan = np.divmod(beam, scans)
    delay_ns = np.zeros(len(row))
    if end_ns is not None and scans > 1:
        delay_ns += scan * ((end_ns - t_ns) / (scans - 1))[row]
    if mirror_rate is not None:
        delay_ns += step * np.abs(scans * increment)[row] / (2 * np.pi * mirror_rate) * 1e9
    return BeamSamples(
        t_ns=t_ns[row] + np.rint(delay_ns).astype(np.int64),
        angle=start_angle[row] + beam * increment[row],
        range=ranges,
        intensity=np.full(len(row), np.nan),
    )


def transform_beams(
    beams: BeamSamples, frames: FrameTree, target: str, source: str, *, tolerance: float = 0.0
) -> Floats:
    """Return the end points (n, 3) of beams in another frame, each transformed at its own time.

    Parameters
    ----------
    target, source : str
        Target frame, and frame of the sensor.
    tolerance : float
        Seconds for which the first and last pose of a moving frame are extrapolated; other points are NaN.
    """
    result = np.empty((len(beams), 3))
    local = beams.points
    for begin in range(0, len(beams), _CHUNK_POINTS):
        part = slice(begin, begin + _CHUNK_POINTS)
        T = frames.lookup(target, source, beams.t_ns[part], tolerance=tolerance, missing="nan")
        result[part] = se3.apply(T, local[part])
    return result


SCANS_PER_SWEEP = 4


def assemble_sweeps(stream: Stream) -> Stream:
    """Return a laser's interleaved scans as full sweeps.

    Parameters
    ----------
    stream : Stream of LaserScan
        One scan per row, with starts a quarter of the increment apart.

    Returns
    -------
    Stream of LaserScan
        One sweep per row, at the time of its first scan; `end_ns` is that of its last. Incomplete groups of
        scans, at the ends and beside gaps, are omitted and counted in a note.
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
    split = np.isin(firsts[:, None] + np.arange(1, SCANS_PER_SWEEP), stream.seams).any(axis=1)
    firsts = firsts[~split]
    ranges, ends = interleave(flat, offsets, firsts)
    columns = {
        "ranges": arrow.ragged_from_offsets(ranges, ends),
        "start_angle": start_angle[firsts],
        "angle_increment": increment[firsts] / SCANS_PER_SWEEP,
        "end_ns": stream.t_ns[firsts + SCANS_PER_SWEEP - 1],
    }
    if "range_error" in stream.columns:
        errors, _ = interleave(*arrow.lists_of(stream.table, "range_error"), firsts)
        columns["range_error"] = arrow.ragged_from_offsets(errors.astype(np.uint16), ends)
    table = arrow.table(stream.t_ns[firsts], columns, units={**LaserScan.units(), "end_ns": "ns"})
    notes, unused = list(stream.parsed.notes), len(stream) - SCANS_PER_SWEEP * len(firsts)
    if unused:
        notes.append(
            f"{stream.name}: {unused} of {len(stream)} scans belong to no full sweep of {SCANS_PER_SWEEP}"
        )
    return Parsed(table, stream.losses, tuple(notes))


def sweep_starts(t_ns: Ints, start_angle: Floats, increment: Floats, lengths: Ints) -> Ints:
    """Return the first rows of four successive scans that form a full sweep.

    Parameters
    ----------
    t_ns : (n,) int64 array
    start_angle, increment : (n,) array
        Radians.
    lengths : (n,) int array
        Ranges in each scan; a later scan of a sweep may have one less than the first.
    """
    first = np.arange(max(len(t_ns) - SCANS_PER_SWEEP + 1, 0))
    valid = np.ones(len(first), dtype=bool)
    for k in range(1, SCANS_PER_SWEEP):
        with np.errstate(all="ignore"):
            steps = (start_angle[first + k] - start_angle[first]) / (increment[first] / SCANS_PER_SWEEP)
        # a tenth of a step is far above the rounding of angles, which have about six decimals
        valid &= (np.abs(steps - k) < 0.1) & (increment[first + k] == increment[first])
        valid &= lengths[first + k] <= lengths[first + k - 1]
    valid &= lengths[first + SCANS_PER_SWEEP - 1] >= lengths[first] - 1
    first = first[valid]
    return first[_is_contiguous(t_ns[first + SCANS_PER_SWEEP - 1] - t_ns[first])]


def _is_contiguous(duration: Ints) -> NDArray[np.bool_]:
    """Whether groups of four have the usual duration of 3 periods; with a missing sweep it is 7."""
    forward = duration[duration >= 0]
    return (duration >= 0) & (duration <= 2 * (np.quantile(forward, 0.25) if len(forward) else 0))


def interleave(flat: Floats, offsets: Ints, firsts: Ints) -> tuple[Floats, Ints]:
    """Return the concatenated ranges of all sweeps, and their (sweeps + 1,) offsets.

    Parameters
    ----------
    flat, offsets : (k,) array, (n + 1,) int64 array
        Ranges of the n scans, see `arrow.lists_of`.
    firsts : (sweeps,) int array
        The first scan of each sweep, see `sweep_starts`.
    """
    sizes = offsets[firsts + SCANS_PER_SWEEP] - offsets[firsts]
    ends = arrow.offsets_of(sizes)
    beam = np.arange(ends[-1]) - np.repeat(ends[:-1], sizes)
    scan = np.repeat(firsts, sizes) + beam % SCANS_PER_SWEEP
    return flat[offsets[scan] + beam // SCANS_PER_SWEEP], ends
