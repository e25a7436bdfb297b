"""Each fault of the IDA on the sample where it must be declared, and not at its limit.

Limits are those that SIS 5.1.3 prints; sums of them are worked out beside each case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from transect.datasets.insight.robot.faults import FAULTS, ArmTelemetry, detect
from transect.datasets.insight.robot.parameters import Parameters

LOOP_NS = 100_000_000  # ns: loop_time 0.1 s (SIS 5.1.3.3)
GIVEN = {
    "RA_FAULT_DETECT": {
        "runaway_samples": 3,
        "ace_cal_samples": 2,
        "collision_mode": 1,
        "temp_delta": [20, 20, 20, 20, 20],
    }
}
"""Numbers that the SIS lost: invented."""


def joints(joint: int, value: float, others: float = 0.0) -> list[float]:
    return [value if i == joint else others for i in (1, 2, 3, 4)]


def ramp(step: float, n: int = 150) -> np.ndarray:
    """Counts (n, 4): joint 1 changes by `step` per sample, the others by 100."""
    return 1000 + np.arange(n)[:, None] * [step, 100, 100, 100]


def rising(by: float, joint: int, n: int = 125) -> np.ndarray:
    """Readings (n, 4) that rise after the first sample, by 100 in the other joints."""
    readings = np.full((n, 4), 2000.0)
    readings[1:] += joints(joint, by, 100.0)
    return readings


@dataclass(frozen=True)
class Case:
    """Columns, constant unless (n, k), that make one fault on sample `on`; `near` are those at its limit."""

    fault: str
    on: int
    value: float
    limit: float
    part: str
    columns: Mapping[str, Any]
    near: Mapping[str, Any]
    step: int = LOOP_NS
    n: int = 150
    first: int = 0
    given: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: GIVEN)

    @property
    def id(self) -> str:
        return f"{self.fault} {self.part}".strip()


OFF, ON = [0, 0, 0, 0], [1, 1, 1, 1]
REST = {"enc": [0.0] * 4, "motor_on": ON}
QUIET = {"motor_on": ON, "cur_raw": [2100] * 4}
CASES = [
    # enc_pot_delta 0.1, enc_pot_samples 2
    Case(
        "encoder-pot", 2, 0.1001, 0.1, "joint 2",
        {"enc": OFF, "pot": joints(2, 0.1001)},
        {"enc": OFF, "pot": joints(2, -0.1)},
    ),
    # runaway_joint_delta + path.joint_delta + eps_joint = 0.1745 + 0.085 + 0.03 = 0.2895, joint 4 0.3095
    Case(
        "runaway-joint", 3, 0.2896, 0.2895, "joint 1",
        {**REST, "commanded_q": joints(1, -0.2896)},
        {**REST, "commanded_q": joints(1, -0.2895)},
    ),
    Case(
        "runaway-joint", 3, 0.3096, 0.3095, "joint 4",
        {**REST, "commanded_q": joints(4, 0.3096)},
        {**REST, "commanded_q": joints(4, 0.3095)},
    ),
    # runaway_pos_delta + path.cart.delta = 0.15; |(0.09, 0.12, 0)| = 0.15
    Case(
        "runaway-position", 3, 0.151, 0.15, "",
        {"motor_on": ON, "pos": [1.09, 0.12, 0.5], "commanded_pos": [1.09, 0.12, 0.651]},
        {"motor_on": ON, "pos": [1.0, 0.0, 0.5], "commanded_pos": [1.09, 0.12, 0.5]},
    ),
    # runaway_ori_delta 3.14
    Case(
        "runaway-orientation", 3, 3.141, 3.14, "",
        {"motor_on": ON, "th": [-1.5], "commanded_th": [1.641]},
        {"motor_on": ON, "th": [-1.5], "commanded_th": [1.64]},
    ),
    # runaway_time_delta + path.time_delta = 10
    Case(
        "runaway-time", 3, 10.1, 10.0, "",
        {"motor_on": ON, "since_via": [10.1]},
        {"motor_on": ON, "since_via": [10.0]},
    ),
    # q_min + joint_delta = -3.5314 + 0.034 = -3.4974; q_max - joint_delta = 1.307 - 0.034 = 1.273
    Case(
        "kinematic", 2, 0.0339, 0.034, "joint 1",
        {"enc": joints(1, -3.4975), "motor_on": ON},
        {"enc": joints(1, -3.4974), "motor_on": ON},
    ),
    Case(
        "kinematic", 2, -0.001, 0.034, "joint 2",  # beyond the stop
        {"enc": joints(2, 1.308), "motor_on": ON},
        {"enc": joints(2, 1.273), "motor_on": ON},
    ),
    Case(
        "kinematic-command", 2, 0.0339, 0.034, "joint 4",  # q_max 3.5887
        {"commanded_q": joints(4, 3.5548)},
        {"commanded_q": joints(4, 3.5547)},
    ),
    # enc_delta 2, encoder_samples 20: changes begin on sample 1, the 21st is on sample 21
    Case(
        "encoder", 21, 1, 2, "joint 1",
        {"enc_raw": ramp(-1), "motor_on": ON},
        {"enc_raw": ramp(2), "motor_on": ON},
        first=1,
    ),
    # pot_delta 20, tau 10 29.2 17.2 3, pot_samples 20
    Case(
        "pot", 21, 19, 20, "joint 1",
        {"pot_raw": ramp(19), "tau": joints(1, -9.9), "motor_on": ON},
        {"pot_raw": ramp(20), "tau": joints(1, -9.9), "motor_on": ON},
        first=1,
    ),
    # vref_nominal 4.5 -4.5, vref_delta 0.03, vref_samples 3
    Case("vref", 3, 0.031, 0.03, "vref 1", {"vref": [4.531, -4.5]}, {"vref": [4.53, -4.5]}),
    Case("vref", 3, 0.031, 0.03, "vref 2", {"vref": [4.5, -4.469]}, {"vref": [4.5, -4.47]}),
    Case("calibration", 2, 0, 1, "", {"calib_ok": [0]}, {"calib_ok": [1]}),
    # current_epsilon 1, current.b 2048, motor_samples 100
    Case(
        "motor", 100, 0, 1, "joint 3",
        {"motor_on": ON, "cur_raw": joints(3, 2048, 2100)},
        {"motor_on": ON, "cur_raw": joints(3, 2047, 2100)},
    ),
    # stalled_samples 100
    Case(
        "stalled", 101, 1, 2, "joint 1",
        {**QUIET, "enc_raw": ramp(1)},
        {**QUIET, "enc_raw": ramp(2)},
        first=1,
    ),
    # curr_limit 172 (SIS 5.1.1), start_count 5, nonstart_count 1: samples 0 to 4 do not count, 5 is allowed
    Case(
        "over-current", 6, 0.1721, 0.172, "joint 1",
        {"motor_on": ON, "cur": joints(1, -0.1721), "curr_limit": [0.172, 0.325, 0.273, 0.190]},
        {"motor_on": ON, "cur": joints(1, -0.172), "curr_limit": [0.172, 0.325, 0.273, 0.190]},
        first=5,
    ),
    # htr_crnt 120 80 200 200 above 2048, heater_rtd_samples 3
    Case(
        "heater-current", 3, 79, 80, "joint 4",
        {"heater_on": [0, 0, 0, 1], "htr_raw": [2127]},
        {"heater_on": [0, 0, 0, 1], "htr_raw": [2128]},
    ),
    Case(
        "heater-current", 3, 119, 120, "joint 2",
        {"heater_on": [0, 1, 0, 0], "htr_raw": [2167]},
        {"heater_on": [0, 1, 0, 0], "htr_raw": [2168]},
    ),
    Case(
        "heater-current-grapple", 3, 199, 200, "grapple heater 1",  # grapple_heater 1
        {"grapple_heater_on": [1], "htr_raw": [2247]},
        {"grapple_heater_on": [1], "htr_raw": [2248]},
    ),
    # power_30v_samples 10: neither the motor nor the heater draws; at the limit the heater does
    Case(
        "power-30v", 10, 119 / 120, 1, "",
        {"motor_on": [0, 1, 0, 0], "cur_raw": [2048] * 4, "heater_on": [1, 0, 0, 0], "htr_raw": [2167]},
        {"motor_on": [0, 1, 0, 0], "cur_raw": [2048] * 4, "heater_on": [1, 0, 0, 0], "htr_raw": [2168]},
    ),
    Case("bus-30v", 10, 1, 0, "", {"bus30v_err": [1]}, {"bus30v_err": [0]}),
    # contact: thresh_c 35 120 65 10.5; speed_detent 0.018: faster, so without thresh_d; impeded_samples 2
    Case(
        "impeded-torque", 2, 35.1, 35, "joint 1",
        {"tau": joints(1, -35.1), "v": [0.018] * 4, "algo_code": [2], "motor_on": ON},
        {"tau": joints(1, -35.0), "v": [0.018] * 4, "algo_code": [2], "motor_on": ON},
    ),
    # free space: thresh_f 65 of joint 3, slower than 0.0158: + thresh_d 23.3 = 88.3
    Case(
        "impeded-torque", 2, 88.4, 88.3, "joint 3",
        {"tau": joints(3, 88.4), "v": [0.015] * 4, "algo_code": [3], "motor_on": ON},
        {"tau": joints(3, 88.3), "v": [0.015] * 4, "algo_code": [3], "motor_on": ON},
    ),
    Case("impeded-current", 2, 1, 0, "joint 4", {"over_current": [0, 0, 0, 1]}, {"over_current": OFF}),
    # eps_joint 0.03, joint 4 0.05; stopped_samples 100
    Case(
        "stopped", 100, 0.0501, 0.05, "joint 4",
        {"enc": OFF, "motor_on": OFF, "commanded_q": joints(4, 0.0501)},
        {"enc": OFF, "motor_on": OFF, "commanded_q": joints(4, 0.05)},
    ),
    # deflection_limit 0.5 = |(0.3, 0.4)|
    Case(
        "deflection", 0, 0.65, 0.5, "",  # |(0.39, 0.52)|
        {"undeflected": [1.0] * 4, "deflected": [1.39, 1.0, 0.48, 1.0]},
        {"undeflected": [1.0] * 4, "deflected": [1.3, 1.0, 0.6, 1.0]},
    ),
    Case("dvia", 0, 0.401, 0.4, "", {"dvia": [0.401]}, {"dvia": [0.4]}),
    Case("subtrench", 0, 3, 2, "", {"attempts": [3]}, {"attempts": [2]}),
    Case("collision", 0, 1, 0, "", {"collision": [1]}, {"collision": [0]}),
    # heater_time 1200 s, temp_delta 20, heater_rtd_samples 3: tested from sample 120 on, the fourth is 123
    Case(
        "heater-sensor", 123, 19, 20, "joint 2",
        {"heater_on": ON, "tcase_raw": rising(19, 2)},
        {"heater_on": ON, "tcase_raw": rising(20, 2)},
        step=100 * LOOP_NS, n=125, first=120,
    ),
    # heater_time of grapple heater 1: 180 s
    Case(
        "heater-sensor-grapple", 21, 0, 20, "grapple heater 1",
        {"grapple_heater_on": [1], "tgrapple_raw": [700]},
        {"grapple_heater_on": [1], "tgrapple_raw": np.minimum(700 + 2 * np.arange(125), 720)[:, None]},
        step=100 * LOOP_NS, n=125, first=18,
    ),
    # RA_THERMAL: 95 and 75; RA_GRAPPLE_PARAMS: 106, overheat_persistence 2
    Case("rotor-overheat", 0, 95.1, 95, "joint 3", {"trotor": joints(3, 95.1)}, {"trotor": joints(3, 95.0)}),
    Case("case-overheat", 0, 75.1, 75, "joint 1", {"tcase": joints(1, 75.1)}, {"tcase": joints(1, 75.0)}),
    Case("grapple-overheat", 1, 106.1, 106, "", {"tgrapple": [106.1]}, {"tgrapple": [106.0]}),
]  # fmt: skip
by_id = pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])


def telemetry(case: Case, columns: Mapping[str, Any], n: int) -> ArmTelemetry:
    full = {
        name: values[:n] if isinstance(values, np.ndarray) else np.tile(values, (n, 1))
        for name, values in columns.items()
    }
    return ArmTelemetry.of(np.arange(n) * case.step, **full)


def found(case: Case, columns: Mapping[str, Any], n: int) -> tuple[Any, ...]:
    (fault,) = [fault for fault in FAULTS if fault.name == case.fault]
    findings = detect(telemetry(case, columns, n), Parameters.over_printed(case.given), [fault])
    assert findings.checked == (case.fault,)
    return findings.events


@by_id
def test_a_fault_is_declared_on_its_sample(case: Case) -> None:
    (event,) = found(case, case.columns, case.n)
    assert (event.fault, event.part) == (case.fault, case.part)
    assert (event.first, event.declared, event.count) == (case.first, case.on, case.n - case.first)
    assert (event.first_ns, event.t_ns) == (case.first * case.step, case.on * case.step)
    assert (event.value, event.limit) == (pytest.approx(case.value), pytest.approx(case.limit))


@by_id
def test_a_fault_is_not_declared_one_sample_earlier(case: Case) -> None:
    assert found(case, case.columns, case.on) == ()


@by_id
def test_a_value_at_its_limit_is_no_fault(case: Case) -> None:
    assert found(case, case.near, case.n) == ()


@by_id
def test_what_was_not_measured_is_no_fault(case: Case) -> None:
    nothing = {name: np.full((case.n, np.shape(value)[-1]), np.nan) for name, value in case.columns.items()}
    assert found(case, nothing, case.n) == ()


def test_every_fault_has_a_case() -> None:
    assert {case.fault for case in CASES} == {fault.name for fault in FAULTS}


def events(parameters: Parameters | None = None, *, n: int, **columns: Any) -> list[tuple[str, str, int]]:
    full = {name: np.broadcast_to(value, (n, np.shape(value)[-1])) for name, value in columns.items()}
    findings = detect(
        ArmTelemetry.of(np.arange(n) * LOOP_NS, **full), parameters or Parameters.over_printed(GIVEN)
    )
    return [(event.fault, event.part, event.declared) for event in findings.events]


def test_a_joint_runs_away_only_while_the_arm_moves() -> None:
    far = {"enc": OFF, "commanded_q": joints(1, 0.5)}
    assert events(n=5, **far, motor_on=[0, 0, 1, 0]) == [("runaway-joint", "joint 1", 3)]
    assert events(n=5, **far, motor_on=OFF) == []


def test_the_controlling_sensor_says_where_the_joint_is() -> None:
    columns = {"enc": OFF, "pot": joints(2, 0.05), "commanded_q": joints(2, 0.30), "motor_on": ON}
    by_encoder = events(n=5, **columns)  # 0.30 > 0.2895
    by_pot = events(n=5, **columns, use_pots=ON)  # 0.30 - 0.05 = 0.25
    assert by_encoder == [("runaway-joint", "joint 2", 3)]
    assert by_pot == []


def test_the_shorter_way_round_is_the_turn() -> None:
    assert events(n=9, motor_on=ON, th=[-3.0], commanded_th=[3.0]) == []  # 0.28 rad apart, not 6


def test_a_resting_joint_near_its_stop_is_not_moving_there() -> None:
    assert events(n=9, enc=joints(1, -3.53), motor_on=OFF) == []


def test_a_motor_is_given_one_sample_to_start() -> None:
    on = np.zeros((40, 4))
    on[5:] = [1, 0, 0, 0]
    still = np.full((40, 4), 5000.0)
    assert events(n=40, enc_raw=still, motor_on=on) == [("encoder", "joint 1", 26)]  # 21 changes from 6 on


def test_a_pot_may_stand_still_under_torque() -> None:
    still = {"pot_raw": [2000] * 4, "motor_on": ON}
    assert events(n=30, **still, tau=[10, 29.2, 17.2, 3]) == []  # RA_FAULT_DETECT tau
    assert events(n=30, **still, tau=[10, 29.1, 17.2, 3]) == [("pot", "joint 2", 21)]


def test_a_motor_that_draws_nothing_is_no_stall() -> None:
    still = {"enc_raw": [5000] * 4, "motor_on": [1, 0, 0, 0]}
    names = [name for name, *_ in events(n=130, **still, cur_raw=[2048] * 4)]
    assert names == ["encoder", "motor"]


def test_the_limit_of_the_current_is_that_of_the_status_or_of_the_parameters() -> None:
    # SIS 5.1.1 prints curr_limit 325 mA for joint 2: current_limit 260 + 1000 * 37.28 / 574.79 = 324.86 mA.
    slow = {"motor_on": ON, "v": [0.0] * 4}
    assert events(n=9, **slow, cur=joints(2, 0.3248, 0.01)) == []
    assert events(n=9, **slow, cur=joints(2, 0.3250, 0.01)) == [("over-current", "joint 2", 4)]
    # Above speed_detent 0.0098 the detent does not count.
    fast = {"motor_on": ON, "v": [0.0098] * 4}
    assert events(n=9, **fast, cur=joints(2, 0.261, 0.01)) == [("over-current", "joint 2", 4)]


def test_a_count_of_ff_switches_the_current_monitor_off() -> None:
    off = Parameters.over_printed({"RA_JOINT_PARAMS": {"nonstart_count": [1, 255, 1, 1]}})
    columns = {"motor_on": ON, "cur": [0.5] * 4, "curr_limit": [0.2] * 4}
    assert events(off, n=9, **columns) == [
        ("over-current", "joint 3", 4),
        ("over-current", "joint 4", 4),
        ("over-current", "joint 1", 6),
    ]


def test_the_second_grapple_heater_has_its_own_limits() -> None:
    both = {"RA_GRAPPLE_PARAMS": {"grapple_heater": 3}, "RA_FAULT_DETECT": {"htr_crnt": [120, 80, 200, 150]}}
    columns = {"grapple_heater_on": [1], "htr_raw": [2048 + 149]}
    assert events(Parameters.over_printed(both), n=5, **columns) == [
        ("heater-current-grapple", "grapple heater 1", 3),
        ("heater-current-grapple", "grapple heater 2", 3),
    ]
    assert events(n=5, **columns) == [("heater-current-grapple", "grapple heater 1", 3)]


def test_a_heater_of_unknown_current_is_not_blamed_on_the_supply() -> None:
    idle = {"motor_on": [1, 0, 0, 0], "cur_raw": [2048] * 4}
    assert events(n=20, **idle, heater_on=OFF) == [("power-30v", "", 10)]
    assert events(n=20, **idle, heater_on=ON) == []


def test_a_heater_that_is_turned_on_again_starts_its_time_again() -> None:
    # heater_time of joint 4 is 1200 s; off for one sample after 1000 s, so it is not tested before 2210 s.
    on = np.zeros((250, 4))
    on[:, 3] = 1
    on[100] = 0
    t_ns = np.arange(250) * 100 * LOOP_NS
    steady = ArmTelemetry.of(t_ns, heater_on=on, tcase_raw=np.full((250, 4), 2000.0))
    assert [e.declared for e in detect(steady, Parameters.printed()).events] == [101 + 120 + 3]


def test_the_arm_gives_way_instead_of_being_impeded() -> None:
    assert events(n=9, tau=[200] * 4, v=[0.1] * 4, algo_code=[1], motor_on=ON) == []


def test_parameters_of_a_file_change_the_outcome() -> None:
    columns = {"enc": OFF, "pot": joints(2, 0.08)}
    tight = Parameters.over_printed({"RA_FAULT_DETECT": {"enc_pot_delta": [0.1, 0.05, 0.1, 0.1]}})
    quick = Parameters.over_printed(
        {"RA_FAULT_DETECT": {"enc_pot_delta": [0.1, 0.05, 0.1, 0.1], "enc_pot_samples": 0}}
    )
    assert events(n=5, **columns) == []
    assert events(tight, n=5, **columns) == [("encoder-pot", "joint 2", 2)]
    assert events(quick, n=5, **columns) == [("encoder-pot", "joint 2", 0)]


def test_a_mode_without_collisions_has_none() -> None:
    off = Parameters.over_printed({"RA_FAULT_DETECT": {"collision_mode": 0}})
    assert events(off, n=3, collision=[1]) == []
