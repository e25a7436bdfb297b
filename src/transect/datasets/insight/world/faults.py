"""What goes wrong with the simulated arm on purpose, and where the truth says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.errors import UsageError, did_you_mean
from transect.recording import arrow

from .story import Plan, Step

NAMES = ("encoder-pot", "stalled", "grapple-overheat", "vref")
"""As the fault table of the flight software calls them (SIS 5.1.3.11 and 5.1.3.30)."""
SLIP_JOINT, SLIP = 3, 0.15
"""Joint 1 to 4 whose potentiometer slips, and by how many rad; 0.1 rad are tolerated (enc_pot_delta)."""
JAM_SECONDS = 12.0
"""s for which joint 1 is held fast; a stall is declared after 100 loops (stalled_samples)."""
SOAK_SECONDS = 60.0
"""s for which the grapple is heated on and on, past its greatest temperature (max_temperature)."""
DRIFT = 0.06
"""V by which the first reference drifts; 0.03 V are tolerated (vref_delta)."""
SPOILS = {
    "encoder-pot": ("Arm/SciHi/Potentiometers", "Arm/SciLo/Potentiometers", "Arm/Status/Potentiometers"),
    "stalled": ("Arm/SciHi", "Arm/SciHi/Encoders", "Arm/SciLo", "Arm/SciLo/Encoders", "Arm/Status"),
    "grapple-overheat": ("Arm/SciHi", "Arm/SciLo", "System/Status"),
    "vref": ("Arm/Status",),
}
"""Streams in which a fault shows; those of the history go along."""
FIRST = 10
"""Value of an act with a fault: a short recording begins with it."""


def choose_faults(text: str) -> tuple[str, ...]:
    """Return the faults that a condition names, separated by commas."""
    names = tuple(word.strip() for word in text.split(",") if word.strip())
    for name in names:
        if name not in NAMES:
            raise UsageError(f"the arm knows no fault {name!r}", hint=did_you_mean(name, NAMES))
    return names


def insert_faults(steps: Sequence[Step], names: Sequence[str]) -> list[Step]:
    """Return the steps of the first round, with what the faults change of them."""
    changed = list(steps)
    if "stalled" in names:
        changed[0] = replace(changed[0], jam=JAM_SECONDS, value=FIRST)
    heated = next((n for n, step in enumerate(steps) if step.heat), None)
    if "grapple-overheat" in names:
        if heated is None:
            raise UsageError(
                "the grapple is not heated in this story",
                hint="--condition story=deploy, or --condition story=all",
            )
        longer = changed[heated].seconds + SOAK_SECONDS
        changed[heated] = replace(changed[heated], seconds=longer, value=FIRST, late=True)
    return changed


@dataclass(frozen=True, eq=False)
class Faults:
    """Faults that act on what is measured."""

    slipped: Floats  # (n, 4), rad by which the potentiometers have slipped
    drift: Floats  # (n, 2), V by which the reference voltages have drifted

    @classmethod
    def of(cls, names: Sequence[str], plan: Plan) -> Faults:
        """Return the faults that begin in the middle of what is recorded, and stay."""
        slipped, drift = np.zeros((len(plan), 4)), np.zeros((len(plan), 2))
        rows = np.flatnonzero(plan.recorded)
        since = int(rows[len(rows) // 2])
        if "encoder-pot" in names:
            slipped[since:, SLIP_JOINT - 1] = SLIP
        if "vref" in names:
            drift[since:, 0] = DRIFT
        return cls(slipped, drift)


def fault_table(
    names: Sequence[str],
    plan: Plan,
    faults: Faults,
    hot: NDArray[np.bool_],
    streams: Sequence[tuple[str, Ints, Ints]],
) -> pa.Table:
    """Return which samples of which streams a fault has spoilt, and how badly.

    Parameters
    ----------
    hot : (n,) bool array
        Rows in which the grapple is warmer than it may be.
    streams : sequence of (str, (k,) int array, (k,) int array)
        Name, rows of the plan and times of each stream that is recorded.
    """
    jammed = plan.timeline.on[:, 0] & (plan.timeline.via_step == 0)
    spoilt: dict[str, Floats] = {
        "encoder-pot": np.abs(faults.slipped).max(axis=1),
        "stalled": jammed.astype(np.float64),
        "grapple-overheat": hot.astype(np.float64),
        "vref": np.abs(faults.drift).max(axis=1),
    }
    found: list[tuple[str, int, int, str, float]] = []
    for name in names:
        for stream, rows, t_ns in streams:
            if stream.removeprefix("History/") in SPOILS[name]:
                size = spoilt[name][rows]
                bad = np.flatnonzero(size).tolist()
                found += [(stream, i, int(t_ns[i]), name, float(size[i])) for i in bad]
    return arrow.table(
        np.array([row[2] for row in found], dtype=np.int64),
        {
            "stream": arrow.strings([row[0] for row in found]),
            "index": np.array([row[1] for row in found], dtype=np.int64),
            "fault": arrow.strings([row[3] for row in found]),
            "severity": np.array([row[4] for row in found], dtype=np.float64),
        },
    )
