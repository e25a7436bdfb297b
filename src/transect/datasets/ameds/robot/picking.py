"""The phases of picking a rock, told from the motion of the arm (section 5.2: pick it up, store it in front).

The data have no gripper, and joint angles at 1 Hz only. So this is an interpretation of how high the gripper
is and whether the arm moves: it goes down to the rock, stays low to grasp, lifts, comes down to the
container, and goes away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transect.base.arrays import Floats, Mask
from transect.base.clocks import NS
from transect.errors import GeometryError
from transect.geometry.array_checks import check_times_ns, floats

STILL, APPROACH, GRASP, LIFT, PLACE, RETURN = "still", "approach", "grasp", "lift", "place", "return"


@dataclass(frozen=True)
class Thresholds:
    """When the arm counts as moving, and how much height counts."""

    joint_rate: float = 0.01  # the fastest joint's, rad/s, from which the arm moves
    # metres: this near to the lowest point it is at the rock; differences in height below it do not count
    band: float = 0.03


def moving(t_ns: ArrayLike, angles: ArrayLike, joint_rate: float = 0.01) -> Mask:
    """Whether the arm moves to or from each sample (n,).

    Parameters
    ----------
    t_ns : (n,)
        Sorted.
    angles : (n, 7)
        Joint angles, rad.
    joint_rate : float
        The fastest joint's, rad/s, from which the arm moves.
    """
    times, q = check_times_ns("times", t_ns), floats("joint angles", angles, ("n", "joints"))
    if len(q) < 2:
        return np.zeros(len(q), dtype=np.bool_)
    seconds = np.maximum(np.diff(times), 1) / NS
    fast = np.abs(np.diff(q, axis=0)).max(axis=1) / seconds >= joint_rate
    return np.concatenate([[False], fast]) | np.concatenate([fast, [False]])


def phases(heights: ArrayLike, moves: ArrayLike, thresholds: Thresholds | None = None) -> NDArray[np.str_]:
    """Phase (n,) of each sample of one picking.

    Parameters
    ----------
    heights : (n,)
        Of the gripper, m, upwards, measured (no NaN).
    moves : (n,)
        Whether the arm moves.

    Returns
    -------
    (n,) of str
        `approach`, `grasp`, `lift`, `place`, `return`, in this order where they occur, and `still` wherever
        the arm rests outside grasp and place. An arm that never moves is `still` throughout.
    """
    limit = thresholds or Thresholds()
    height, mask = floats("heights", heights, ("n",)), np.asarray(moves, dtype=np.bool_)
    if mask.shape != height.shape or not np.isfinite(height).all():
        raise GeometryError(f"heights {height.shape} and moves {mask.shape} must be finite and of one length")
    names = np.full(len(height), STILL, dtype="<U8")
    if not mask.any():
        return names
    down, up = _grasp(height, limit.band)
    peak = _peak(height, up, limit.band)
    placed = _place(height, peak, mask, limit.band)
    names[:down] = np.where(mask[:down], APPROACH, STILL)
    names[down:up] = GRASP
    names[up:peak] = np.where(mask[up:peak], LIFT, STILL)
    names[peak:placed] = PLACE
    names[placed:] = np.where(mask[placed:], RETURN, STILL)
    return names


def _grasp(height: Floats, band: float) -> tuple[int, int]:
    """First and stop of the samples around the lowest one that are as low, within the band."""
    low = int(np.argmin(height))
    above = height > height[low] + band
    return low - _first(above[:low][::-1]), low + _first(above[low:])


def _peak(height: Floats, start: int, band: float) -> int:
    """Stop of the lift from `start`: after the highest sample before it sinks by more than the band."""
    rest = height[start:]
    sinks = _first(np.maximum.accumulate(rest) - rest > band)
    return start + (int(np.argmax(rest[:sinks])) + 1 if sinks < len(rest) else len(rest))


def _place(height: Floats, peak: int, mask: Mask, band: float) -> int:
    """Stop of the placing: when it rises again, or goes on after a rest below the peak; the earlier."""
    rest, moves = height[peak:], mask[peak:]
    rises = _first(rest - np.minimum.accumulate(rest) > band)
    rests = _first(~moves & (height[max(peak - 1, 0)] - rest > band))
    if rests >= rises:
        return peak + rises
    # The rest itself belongs to it, for the gripper opens, to the sample from which it goes on; but not
    # if nothing follows.
    wakes = rests + _first(moves[rests:])
    return peak + (wakes + 1 if wakes < len(rest) else rests)


def _first(mask: Mask) -> int:
    """Index of the first True, the length if there is none."""
    return int(np.argmax(mask)) if mask.any() else len(mask)
