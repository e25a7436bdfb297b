"""What follows a fault: cooling down, counting, safing; and when the grapple is open."""

from __future__ import annotations

import numpy as np
import pytest

from transect.datasets.insight.robot.faults import (
    ALLOWANCES,
    ArmTelemetry,
    Cooldown,
    FaultEvent,
    count_faults,
    detect,
    find_cooldowns,
    is_fully_open,
    must_cool_down,
)
from transect.datasets.insight.robot.parameters import SETS, Parameters

PRINTED = Parameters.printed()
LOOP_NS = 100_000_000


def rotor(*temperatures: float, motor: list[int] | None = None) -> ArmTelemetry:
    n = len(temperatures)
    columns: dict[str, np.ndarray] = {"trotor": np.zeros((n, 4))}
    columns["trotor"][:, 1] = temperatures
    if motor is not None:
        columns["motor_on"] = np.column_stack([motor] * 4)
    return ArmTelemetry.of(np.arange(n) * LOOP_NS, **columns)


def test_a_rotor_cools_from_its_maximum_to_temp_cooldown() -> None:
    # temp_max_rotor 95, temp_cooldown 45 (SIS 5.1.3.29)
    telemetry = rotor(94.0, 95.0, 95.5, 90.0, np.nan, 45.1, 45.0, 60.0)
    assert must_cool_down(telemetry, PRINTED)[:, 1].tolist() == [
        False,
        False,
        True,
        True,
        True,
        True,
        False,
        False,
    ]
    assert not must_cool_down(telemetry, PRINTED)[:, [0, 2, 3]].any()
    assert find_cooldowns(telemetry, PRINTED) == [Cooldown(2, 2, 6, None)]


def test_a_case_cools_too() -> None:
    telemetry = ArmTelemetry.of(
        [0, LOOP_NS, 2 * LOOP_NS], tcase=[[76, 0, 0, 0], [46, 0, 0, 0], [45, 0, 0, 0]]
    )
    assert must_cool_down(telemetry, PRINTED)[:, 0].tolist() == [True, True, False]


def test_a_motor_turned_on_before_it_is_cool_is_told() -> None:
    telemetry = rotor(96, 90, 80, 70, 45, 45, motor=[1, 1, 0, 1, 1, 1])
    assert find_cooldowns(telemetry, PRINTED) == [Cooldown(2, 0, 4, 3)]


def test_a_motor_turned_on_when_cool_is_fine() -> None:
    telemetry = rotor(96, 90, 44, 44, motor=[1, 0, 0, 1])
    assert find_cooldowns(telemetry, PRINTED) == [Cooldown(2, 0, 2, None)]


def test_a_cooling_down_may_not_end() -> None:
    assert find_cooldowns(rotor(20, 99, 80), PRINTED) == [Cooldown(2, 1, None, None)]


def test_the_user_s_temperature_ends_the_cooling() -> None:
    warm = Parameters.over_printed({"RA_THERMAL": {"temp_cooldown": [45, 85, 45, 45]}})
    assert find_cooldowns(rotor(96, 86, 85, 80), warm) == [Cooldown(2, 0, 2, None)]


def test_the_fingers_are_open_on_the_second_reading_in_a_row() -> None:
    # limit_switch_persistence 2 (SIS 5.1.3.30)
    assert is_fully_open([0, 1, 0, 1, 1, 1, np.nan, 1], PRINTED).tolist() == [
        False, False, False, False, True, True, False, False,
    ]  # fmt: skip


def event(fault: str, t: int, part: str = "joint 1") -> FaultEvent:
    return FaultEvent(fault, part, t, t, t * LOOP_NS, t * LOOP_NS, 1, 1.0, 0.0, "")


def counted(*events: FaultEvent) -> dict[str, tuple[int | None, int | None]]:
    return {
        count.allowance.parameter.removeprefix("max_fault."): (
            count.counted,
            count.safed.declared if count.safed else None,
        )
        for count in count_faults(events, PRINTED)
    }


@pytest.mark.parametrize(
    ("fault", "counter", "allowed"),
    [
        ("impeded-torque", "motion_impeded", 4),
        ("impeded-current", "motion_impeded", 4),
        ("power-30v", "tv_power", 0),
        ("bus-30v", "tv_power", 0),
        ("stopped", "stopped", 3),
        ("stalled", "stalled", 3),
        ("rotor-overheat", "overheat", 3),
        ("case-overheat", "overheat", 3),
    ],
)
def test_the_fault_after_the_allowed_ones_safes_the_arm(fault: str, counter: str, allowed: int) -> None:
    # SIS 5.1.3.16
    events = [event(fault, 10 * (i + 1)) for i in range(allowed + 1)]
    assert counted(*events[:-1])[counter] == (allowed, None)
    assert counted(*events[::-1])[counter] == (allowed + 1, 10 * (allowed + 1))


def test_several_joints_at_one_time_are_one_fault() -> None:
    together = [event("stalled", 5, "joint 1"), event("stalled", 5, "joint 2"), event("stalled", 6)]
    assert counted(*together)["stalled"] == (2, None)


def test_what_only_the_flight_software_sees_is_not_counted() -> None:
    assert {name for name, (number, _) in counted().items() if number is None} == {
        "ace_reset", "file_io", "paci",
    }  # fmt: skip


def test_every_counter_of_the_sis_is_there() -> None:
    assert {a.parameter for a in ALLOWANCES} == {p.name for p in SETS["RA_MAX_FAULTS"]}


def test_four_overheated_moves_safe_the_arm() -> None:
    telemetry = rotor(96, 40, 96, 40, 96, 40, 96, 40)
    (overheat,) = [
        count
        for count in count_faults(detect(telemetry, PRINTED).events, PRINTED)
        if count.allowance.parameter == "max_fault.overheat"
    ]
    assert overheat.counted == 4
    assert overheat.safed is not None
    assert overheat.safed.declared == 6
