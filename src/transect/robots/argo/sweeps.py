"""Full laser sweeps from interleaved scans (document 004, section 3.2.2).

Four successive 1-degree scans, whose starts are 0.25 degree apart, make one 0.25-degree sweep: beam j of
scan k is beam ``4 j + k`` of the sweep.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.errors import StreamError
from transect.recording import Parsed, Stream, arrow
from transect.types import LaserScan

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
    ranges, ends = interleaved(flat, offsets, firsts)
    columns = {
        "ranges": arrow.ragged_from_offsets(ranges, ends),
        "start_angle": start_angle[firsts],
        "angle_increment": increment[firsts] / SCANS,
        "end_ns": stream.t_ns[firsts + SCANS - 1],
    }
    if "range_error" in stream.columns:
        errors, _ = interleaved(*arrow.lists_of(stream.table, "range_error"), firsts)
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


def interleaved(flat: Floats, offsets: Ints, firsts: Ints) -> tuple[Floats, Ints]:
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
