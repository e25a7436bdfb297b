"""Injected faults of the simulated arm, and the samples that they affect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.errors import UsageError, did_you_mean
from transect.recording import arrow

from .story import ArmPlan, ArmStep

FAULT_NAMES = ("encoder-pot", "stalled", "grapple-overheat", "vref")
"""Names in the fault table of the flight software (SIS 5.1.3.11 and 5.1.3.30)."""


@dataclass(frozen=True)
class FaultSizes:
    """Sizes of the injected faults, each beyond the tolerance of the flight software."""

    # potentiometer that slips, joint 1 to 4, and its error; 0.1 rad are tolerated (enc_pot_delta)
    slip_joint: int = 3
    slip_rad: float = 0.15
    jam_s: float = 12.0  # joint 1 is blocked; a stall is declared after 100 loops (stalled_samples)
    overheat_s: float = 60.0  # the grapple is heated beyond its maximum temperature (max_temperature)
    vref_drift_volt: float = 0.06  # of the first reference; 0.03 V are tolerated (vref_delta)
    priority: int = 10  # of an act with a fault: a short recording starts with it


SIZES = FaultSizes()
AFFECTED_STREAMS = {
    "encoder-pot": ("Arm/SciHi/Potentiometers", "Arm/SciLo/Potentiometers", "Arm/Status/Potentiometers"),
    "stalled": ("Arm/SciHi", "Arm/SciHi/Encoders", "Arm/SciLo", "Arm/SciLo/Encoders", "Arm/Status"),
    "grapple-overheat": ("Arm/SciHi", "Arm/SciLo", "System/Status"),
    "vref": ("Arm/Status",),
}
"""Streams in which a fault is visible, also those of the history with the same names."""


def choose_faults(text: str) -> tuple[str, ...]:
    """Return the faults that a condition names, separated by commas."""
    names = tuple(word.strip() for word in text.split(",") if word.strip())
    for name in names:
        if name not in FAULT_NAMES:
            raise UsageError(f"the arm knows no fault {name!r}", hint=did_you_mean(name, FAULT_NAMES))
    return names


def insert_faults(steps: Sequence[ArmStep], names: Sequence[str]) -> list[ArmStep]:
    """Return the steps of the first round with the faults that change them."""
    changed = list(steps)
    if "stalled" in names:
        changed[0] = replace(changed[0], jam_s=SIZES.jam_s, priority=SIZES.priority)
    heated = next((n for n, step in enumerate(steps) if step.heat_grapple), None)
    if "grapple-overheat" in names:
        if heated is None:
            raise UsageError(
                "the grapple is not heated in this story",
                hint="--condition story=deploy, or --condition story=all",
            )
        longer = changed[heated].rest_s + SIZES.overheat_s
        changed[heated] = replace(changed[heated], rest_s=longer, priority=SIZES.priority, record_end=True)
    return changed


@dataclass(frozen=True, eq=False)
class SensorFaults:
    """Faults of the sensors."""

    slipped: Floats  # (n, 4), rad by which the potentiometers have slipped
    drift: Floats  # (n, 2), V by which the reference voltages have drifted

    @classmethod
    def of(cls, names: Sequence[str], plan: ArmPlan) -> SensorFaults:
        """Return faults that start in the middle of the recording and persist."""
        slipped, drift = np.zeros((len(plan), 4)), np.zeros((len(plan), 2))
        rows = np.flatnonzero(plan.recorded)
        since = int(rows[len(rows) // 2])
        if "encoder-pot" in names:
            slipped[since:, SIZES.slip_joint - 1] = SIZES.slip_rad
        if "vref" in names:
            drift[since:, 0] = SIZES.vref_drift_volt
        return cls(slipped, drift)


def fault_table(
    names: Sequence[str],
    plan: ArmPlan,
    faults: SensorFaults,
    hot: NDArray[np.bool_],
    streams: Sequence[tuple[str, Ints, Ints]],
) -> pa.Table:
    """Return the samples of each stream that a fault affects, with its severity.

    Parameters
    ----------
    hot : (n,) bool array
        Rows in which the grapple exceeds its maximum temperature.
    streams : sequence of (str, (k,) int array, (k,) int array)
        Name, rows of the plan and times of each recorded stream.
    """
    jammed = plan.timeline.on[:, 0] & (plan.timeline.via_step == 0)
    severity: dict[str, Floats] = {
        "encoder-pot": np.abs(faults.slipped).max(axis=1),
        "stalled": jammed.astype(np.float64),
        "grapple-overheat": hot.astype(np.float64),
        "vref": np.abs(faults.drift).max(axis=1),
    }
    found: list[tuple[str, int, int, str, float]] = []
    for name in names:
        for stream, rows, t_ns in streams:
            if stream.removeprefix("History/") in AFFECTED_STREAMS[name]:
                size = severity[name][rows]
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
