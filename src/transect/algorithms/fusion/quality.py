"""Assessment of a fusion result in words: consistency, outages, and uncertainty."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.errors import TransectError
from transect.types import Trajectory

from .context import FusionContext
from .error_state import ErrorIndex
from .events import ImuSample, MeasuredPosition
from .innovation_gate import SensorTally

MAX_GRAVITY_ERROR_M_S2 = 2.0
"""Difference of the mean specific force from gravity that indicates a wrong unit."""
MAX_BIASES = (1.0, 0.2)
"""m/s2 and rad/s; larger than the biases of low-cost MEMS sensors."""


def conclude(
    ctx: FusionContext,
    tallies: Mapping[str, SensorTally],
    used_ns: Sequence[int],
    trajectory: Trajectory,
    biases: Floats | None = None,
    notes: Iterable[str] = (),
    noise: Iterable[str] = (),
) -> None:
    """Record conclusions about a fusion.

    Parameters
    ----------
    used_ns : sequence of int
        Times of the positions that were used.
    trajectory : Trajectory
        With its covariances.
    biases : (6,) array, optional
        Estimated biases of accelerometers (m/s2) and gyroscopes (rad/s).
    notes : iterable of str
        Assumptions.
    noise : iterable of str
        Noise models of the sensors.
    """
    for sentence in noise:
        ctx.report_noise(sentence)
    for note in notes:
        ctx.conclude(note)
    for name, tally in tallies.items():
        if tally.count:
            ctx.conclude(f"{name}: {tally}", bad=tally.is_bad)
    if biases is not None:
        _conclude_biases(ctx, biases)
    ctx.conclude(_describe_outage(used_ns, trajectory))
    if trajectory.covariances is not None and len(trajectory):
        heights = np.sqrt(trajectory.covariances[:, 2, 2])
        ctx.conclude(f"height: sigma {np.median(heights):.2g} m (median), at worst {np.max(heights):.3g} m")
        degrees = np.degrees(np.sqrt(trajectory.covariances[:, ErrorIndex.HEADING, ErrorIndex.HEADING]))
        ctx.conclude(
            f"heading: sigma {np.median(degrees):.2g} deg (median), at worst {np.max(degrees):.3g} deg"
        )


def describe_contradiction(error: TransectError, inertial: Sequence[ImuSample], gravity: float) -> str:
    """Return a sentence on measurements that no motion fits, and the possible reason."""
    text = f"{error.what}: {error.why}. The sensors contradict each other"
    force = _describe_force(inertial, gravity)
    return f"{text}{force}. There are no poses from then on: do not trust this result"


def describe_unaligned(
    inertial: Sequence[ImuSample], positions: Sequence[MeasuredPosition], gravity: float
) -> str:
    """Return a sentence on an IMU and positions that never made the heading observable."""
    text = (
        "there are no poses: neither accelerations nor the path made the heading observable"
        f"{_describe_force(inertial, gravity)}. "
        "The robot must accelerate or turn while its position is measured"
    )
    if not positions:
        return text
    sigma = float(np.median([each.std[:2].max() for each in positions]))
    hint = "more accurate ones need less motion"
    return f"{text}; the sigma of the positions is {sigma:.2g} m, and {hint}"


def _describe_force(inertial: Sequence[ImuSample], gravity: float) -> str:
    """Return, for the middle of a sentence, the mean specific force of an IMU and whether it is plausible."""
    if not inertial:
        return ""
    force = float(np.linalg.norm(np.mean([each.force for each in inertial], axis=0)))
    text = f"; the IMU's mean acceleration is {force:.3g} m/s2, where gravity is {gravity:.3g}"
    return text + (": its unit is wrong" if abs(force - gravity) > MAX_GRAVITY_ERROR_M_S2 else "")


def _conclude_biases(ctx: FusionContext, biases: Floats) -> None:
    """Record biases that are too large for any IMU."""
    for name, unit, bias, max_bias in zip(
        ("accelerometers", "gyroscopes"), ("m/s2", "rad/s"), biases.reshape(2, 3), MAX_BIASES, strict=True
    ):
        size = float(np.linalg.norm(bias))
        if size > max_bias:
            ctx.conclude(
                f"imu: its {name} fit only with a bias of {size:.3g} {unit}; real ones have at most "
                f"{max_bias:g}. Its unit, its mount or `gravity` is wrong: do not trust this result",
                bad=True,
            )


def _describe_outage(used_ns: Sequence[int], trajectory: Trajectory) -> str:
    """Return the longest outage of positions, and the largest sigma of the position."""
    if not len(trajectory):
        return "no poses"
    first, last = int(trajectory.t_ns[0]), int(trajectory.t_ns[-1])
    inside = [t for t in used_ns if first < t < last]
    edges = np.array([first, *sorted(inside), last], np.int64)
    longest = int(np.argmax(np.diff(edges)))
    start_s = (edges[longest] - first) / NS
    outage_s = (edges[longest + 1] - edges[longest]) / NS
    if not inside:
        text = f"no position was used in {outage_s:.1f} s: position and heading drift from the start on"
    else:
        text = f"longest time without a position: {outage_s:.1f} s, {start_s:.1f} s after the first pose"
    if trajectory.covariances is None:
        return text
    worst = float(np.sqrt(np.linalg.eigvalsh(trajectory.covariances[:, :2, :2])[:, -1].max()))
    return f"{text}; sigma of the position is at worst {worst:.2g} m"
