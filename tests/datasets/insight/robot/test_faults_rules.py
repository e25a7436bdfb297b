"""How runs of anomalies become faults, and what cannot be checked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.datasets.insight.robot.faults import (
    COLUMNS,
    FAULTS,
    ArmTelemetry,
    Measure,
    consecutive,
    detect,
    table_of_faults,
)
from transect.datasets.insight.robot.parameters import SETS, Parameters
from transect.errors import GeometryError
from transect.geometry.robust import run_lengths

PRINTED = Parameters.printed()
SECOND_NS = 1_000_000_000


def naive(flags: list[bool], limit: int, breaks: list[bool]) -> list[bool]:
    run, over = 0, []
    for flag, starts in zip(flags, breaks, strict=True):
        run = (0 if starts else run) + 1 if flag else 0
        over.append(run > limit)
    return over


@given(
    rows=st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=40),
    limits=st.tuples(st.integers(0, 5), st.integers(0, 5)),
)
def test_consecutive_is_what_a_loop_counts(
    rows: list[tuple[bool, bool, bool]], limits: tuple[int, int]
) -> None:
    table = np.array(rows, dtype=bool).reshape(-1, 3)
    over = consecutive(table[:, :2], limits, table[:, 2])
    for j in (0, 1):
        assert over[:, j].tolist() == naive(table[:, j].tolist(), limits[j], table[:, 2].tolist())


def test_the_anomaly_after_the_allowed_ones_is_the_fault() -> None:
    assert consecutive([1, 1, 1, 1, 0, 1, 1], 2).tolist() == [False, False, True, True, False, False, False]


def test_runs_are_counted_up_to_each_sample() -> None:
    assert run_lengths([1, 1, 0, 1, 1, 1]).tolist() == [1, 2, 0, 1, 2, 3]
    assert run_lengths([1, 1, 1, 1], [False, False, True, False]).tolist() == [1, 2, 1, 2]


def test_nothing_is_above_or_below_what_was_not_measured() -> None:
    for side in ("above", "below"):
        measure = Measure(np.array([[np.nan], [5.0]]), np.array(3.0), side)
        assert measure.anomalies().tolist() == [[False], [side == "above"]]


def pots(*apart: float, times: list[float] | None = None) -> ArmTelemetry:
    """Telemetry whose joint 1 has these differences between encoder and pot."""
    n = len(apart)
    pot = np.zeros((n, 4))
    pot[:, 0] = apart
    seconds = times or [0.1 * i for i in range(n)]
    return ArmTelemetry.of(np.array([round(s * SECOND_NS) for s in seconds]), enc=np.zeros((n, 4)), pot=pot)


def declared(telemetry: ArmTelemetry) -> list[int]:
    return [event.declared for event in detect(telemetry, PRINTED).events]


def test_a_good_sample_ends_a_run() -> None:
    assert declared(pots(0.2, 0.2, 0.0, 0.2, 0.2)) == []  # enc_pot_samples 2
    assert declared(pots(0.2, 0.2, 0.0, 0.2, 0.2, 0.2)) == [5]


def test_a_sample_that_was_not_measured_ends_a_run() -> None:
    assert declared(pots(0.2, 0.2, np.nan, 0.2, 0.2)) == []


def test_a_long_run_is_one_fault_and_a_second_run_another() -> None:
    telemetry = pots(0.2, 0.2, 0.2, 0.3, 0.2, 0.0, 0.2, 0.2, 0.2)
    first, second = detect(telemetry, PRINTED).events
    assert (first.first, first.declared, first.count) == (0, 2, 5)
    assert (second.first, second.declared, second.count) == (6, 8, 3)


def test_a_run_does_not_bridge_a_gap_or_a_step_back() -> None:
    assert declared(pots(0.2, 0.2, 0.2, times=[0.0, 0.1, 10.1])) == [2]
    assert declared(pots(0.2, 0.2, 0.2, times=[0.0, 0.1, 10.2])) == []
    assert declared(pots(0.2, 0.2, 0.2, times=[5.0, 5.1, 1.0])) == []


def test_joints_are_counted_apart() -> None:
    pot = np.zeros((4, 4))
    pot[[0, 2], 0] = 0.2  # alternating
    pot[[1, 3], 1] = 0.2
    pot[1:, 2] = 0.2
    telemetry = ArmTelemetry.of(np.arange(4) * SECOND_NS // 10, enc=np.zeros((4, 4)), pot=pot)
    assert [(e.part, e.declared) for e in detect(telemetry, PRINTED).events] == [("joint 3", 3)]


def test_events_come_by_time() -> None:
    n = 5
    pot = np.zeros((n, 4))
    pot[:, 0] = 0.2
    hot = np.zeros((n, 4))
    hot[1, 3] = hot[4, 2] = 96.0
    telemetry = ArmTelemetry.of(np.arange(n) * SECOND_NS // 10, enc=np.zeros((n, 4)), pot=pot, trotor=hot)
    assert [(e.fault, e.declared) for e in detect(telemetry, PRINTED).events] == [
        ("rotor-overheat", 1),
        ("encoder-pot", 2),
        ("rotor-overheat", 4),
    ]


def test_every_fault_is_either_checked_or_says_why_not() -> None:
    findings = detect(pots(0.0), PRINTED)
    assert findings.checked == ("encoder-pot",)
    reasons = {entry.fault: entry.reason for entry in findings.unchecked}
    assert {*findings.checked, *reasons} == {fault.name for fault in FAULTS}
    assert reasons["vref"] == "no vref (reference voltages)"


@pytest.mark.parametrize(
    ("fault", "lost"),
    [
        ("runaway-joint", "runaway_samples"),
        ("runaway-position", "runaway_samples"),
        ("runaway-orientation", "runaway_samples"),
        ("runaway-time", "runaway_samples"),
        ("calibration", "ace_cal_samples"),
        ("collision", "collision_mode"),
        ("heater-sensor-grapple", "temp_delta has 4 numbers"),
    ],
)
def test_what_the_print_of_the_sis_lost_is_named(fault: str, lost: str) -> None:
    everything = {name: np.zeros((3, column.width)) for name, column in COLUMNS.items()}
    findings = detect(ArmTelemetry.of(np.arange(3) * SECOND_NS, **everything), PRINTED)
    (reason,) = [entry.reason for entry in findings.unchecked if entry.fault == fault]
    assert lost in reason
    assert len(findings.unchecked) == 7


def test_a_raw_number_that_cannot_be_made_says_why() -> None:
    broken = Parameters.over_printed({"RA_JOINT_PARAMS": {"gear_ratio": [0, 16000, 10000, 4000]}})
    telemetry = ArmTelemetry.of(np.arange(3) * SECOND_NS, enc=np.zeros((3, 4)), motor_on=np.ones((3, 4)))
    reasons = {entry.fault: entry.reason for entry in detect(telemetry, broken).unchecked}
    assert "channel 1 of the encoders cannot be converted" in reasons["encoder"]


def test_no_samples_have_no_faults() -> None:
    nothing = {name: np.zeros((0, column.width)) for name, column in COLUMNS.items()}
    given = {"RA_FAULT_DETECT": {"runaway_samples": 1, "ace_cal_samples": 1, "collision_mode": 1}}
    findings = detect(ArmTelemetry.of(np.zeros(0, np.int64), **nothing), Parameters.over_printed(given))
    assert findings.events == ()
    assert len(findings.checked) == len(FAULTS) - 1


def test_counts_are_recovered_from_angles_printed_to_four_digits() -> None:
    # Joint 2 (SIS 5.1.3.2): rad_per_enc 3.1416, gear_ratio 16000, enc_offset 0.824948013; 0.2 mrad a count.
    counts = np.arange(22)
    printed = np.round(3.1416 * ((5000 + counts) / 16000 - 0.824948013), 4)
    enc = np.zeros((22, 4))
    enc[:, 1] = printed
    on = np.tile([0, 1, 0, 0], (22, 1))
    telemetry = ArmTelemetry.of(counts * SECOND_NS // 10, enc=enc, motor_on=on)
    events = detect(telemetry, PRINTED).events  # one count a sample is less than enc_delta
    assert [(event.fault, event.part, event.declared) for event in events] == [("encoder", "joint 2", 21)]
    assert telemetry.with_raw(PRINTED)["enc_raw"][:, 1].tolist() == (5000 + counts).tolist()


def test_a_current_of_one_printed_lsb_is_not_zero() -> None:
    # SIS Table 12 prints -0.3125 mA, one LSB; current.m is 0.32143 mA (5.1.3.2).
    telemetry = ArmTelemetry.of([0], cur=[[0.0, -0.0003125, 0.0, 0.0]])
    assert telemetry.with_raw(PRINTED)["cur_raw"].tolist() == [[2048, 2047, 2048, 2048]]


def test_raw_numbers_that_are_given_stay() -> None:
    telemetry = ArmTelemetry.of([0], enc=[[0.0] * 4], enc_raw=[[7.0] * 4])
    assert telemetry.with_raw(PRINTED)["enc_raw"].tolist() == [[7.0] * 4]


def test_one_number_a_sample_may_be_a_plain_list() -> None:
    assert ArmTelemetry.of([0, 1], dvia=[0.1, 0.5])["dvia"].tolist() == [[0.1], [0.5]]


def test_telemetry_that_does_not_fit_is_refused() -> None:
    with pytest.raises(GeometryError, match="no telemetry 'encc'") as error:
        ArmTelemetry.of([0], encc=[[0.0] * 4])
    assert "enc" in error.value.hint
    with pytest.raises(GeometryError, match="expected shape"):
        ArmTelemetry.of([0], enc=[[0.0] * 3])
    with pytest.raises(GeometryError, match="the same number of rows"):
        ArmTelemetry.of([0, 1], enc=[[0.0] * 4])


def test_the_table_names_parameters_that_exist_and_columns_that_exist() -> None:
    for fault in FAULTS:
        for set_name, key in (*fault.parameters, *([fault.samples] if fault.samples else ())):
            assert key in {parameter.name for parameter in SETS[set_name]}, fault.name
        assert set(fault.needs) <= set(COLUMNS), fault.name
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_every_number_of_samples_of_the_sis_has_a_fault() -> None:
    counts = {p.name for p in SETS["RA_FAULT_DETECT"] if p.name.endswith("_samples")}
    assert counts == {f.samples[1] for f in FAULTS if f.samples and f.samples[0] == "RA_FAULT_DETECT"}


def test_the_listing_has_values_units_and_rules() -> None:
    rows = {row.name: row for row in table_of_faults(PRINTED)}
    assert rows["encoder-pot"].parameters == "RA_FAULT_DETECT enc_pot_delta = 0.1 rad"
    assert rows["encoder-pot"].declared == "on number 3 in a row (more than enc_pot_samples)"
    assert rows["grapple-overheat"].declared == "on number 2 in a row (at least overheat_persistence)"
    assert rows["runaway-joint"].declared == "after runaway_samples in a row: not given"
    assert "eps_joint = 0.03 0.03 0.03 0.05 rad" in rows["runaway-joint"].parameters
    assert rows["collision"].parameters == "RA_FAULT_DETECT collision_mode: not given"
    assert rows["rotor-overheat"][3:5] == ("at once", "5.1.3.29")
    assert rows["max_fault.motion_impeded"].declared == "on fault number 5"
