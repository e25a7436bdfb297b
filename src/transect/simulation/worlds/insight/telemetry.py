"""What the simulated flight software reports, for every turn of the control loop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.formats.ida.columns import STATUS_GROUPS, encode_status

from ...arm.flight import Derived, Flight, Readings
from ...arm.sensors import Sensors
from .faults import Faults
from .plan import Plan
from .state import State

BUS_VOLT = 30.0


@dataclass(frozen=True, eq=False)
class Telemetry:
    """Rows of the control loop as the flight software sees them.

    Attributes
    ----------
    t_ns : (n,) int array
        Spacecraft clock.
    readings : Readings
    derived : Derived
    grapple : (n,) array
        degC.
    heaters : (n,) array
        Sum of the heater currents, A.
    references : (n, 2) array
        V.
    stat : (n,) uint32 array
        SIS Table 13.
    """

    t_ns: Ints
    readings: Readings
    derived: Derived
    grapple: Floats
    heaters: Floats
    references: Floats
    stat: NDArray[np.uint32]


def measure(plan: Plan, true: State, flight: Flight, seed: int, start_ns: int, faults: Faults) -> Telemetry:
    """Measure the state of the world and let the flight software make of it what it can."""
    sensors, timeline = Sensors(flight.sets, seed), plan.timeline
    n = len(plan)
    warm = sensors.temperatures(np.column_stack([true.motors.case, true.grapple.celsius]))
    readings = Readings(
        enc=sensors.encoders(timeline.q),
        pot=sensors.pots(timeline.q, faults.slipped),
        case=warm[:, :4],
        current=sensors.currents(true.motors.current),
        volt=sensors.volts(true.motors.volt),
        power=timeline.on,
        tool=plan.of_steps(lambda step: step.tool).astype(np.int64),
        phase=plan.of_steps(lambda step: step.phase).astype(np.int64),
    )
    watt = float(flight.sets["RA_JOINT_PARAMS"]["htr_power"][2])
    loop_ns = round(1e9 * float(flight.sets["RA_CTRL_PARAMS"]["loop_time"]))
    return Telemetry(
        t_ns=start_ns + loop_ns * np.arange(n, dtype=np.int64),
        readings=readings,
        derived=flight.derive(readings),
        grapple=warm[:, 4],
        heaters=sensors.heater_current(np.where(true.grapple.heated, watt / BUS_VOLT, 0.0)),
        references=sensors.references(n, faults.drift),
        stat=_status(plan, readings, flight),
    )


def _status(plan: Plan, readings: Readings, flight: Flight) -> NDArray[np.uint32]:
    """Status words (n,): brakes are off while their motors are on; the joints need no heater by day."""
    nothing = np.zeros(plan.timeline.on.shape, dtype=bool)
    groups = {
        "motor_on": plan.timeline.on,
        "rotation_negative": plan.timeline.sense < 0,
        "over_current": np.abs(readings.current) > flight.current_limits(),
        "brake_off": plan.timeline.on,
        "heater_on": nothing,
    }
    bits = {f"{group}_{joint + 1}": groups[group][:, joint] for group in STATUS_GROUPS for joint in range(4)}
    return encode_status(bits)
