"""Faults in recordings: IDA products as the SIS prints them, some with the fault written in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.datasets.insight import sample

import transect
from transect.datasets.insight.robot.faults import FAULTS, detect, streams_of, telemetry_of
from transect.datasets.insight.robot.parameters import Parameters
from transect.errors import StreamError
from transect.recording import Recording


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    return transect.open(sample.write_sample(tmp_path / "ida"))


def history(points: int, *changes: tuple[str, str]) -> str:
    text = sample.history(points)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def open_history(tmp_path: Path, *changes: tuple[str, str], points: int = 6) -> Recording:
    path = tmp_path / sample.HISTORY_NAME
    path.write_text(history(points, *changes))
    return transect.open(path)


def test_all_streams_of_samples_are_offered(recording: Recording) -> None:
    assert streams_of(recording) == (
        "Arm/SciHi",
        "Arm/SciLo",
        "History/Arm/Status",
        "Arm/Status",
        "History/System/Status",
        "System/Status",
    )


def test_a_science_row_fills_the_columns(recording: Recording) -> None:
    telemetry = telemetry_of(recording)
    assert telemetry.t_ns.tolist() == [615088547_800_000_000, 615088548_000_000_000]
    # SIS Table 12
    assert telemetry["enc"][0].tolist() == [-2.84, -1.9231, 2.3173, -0.0007]
    assert telemetry["pot"][0, :2].tolist() == [-2.8391, -1.9224]
    assert telemetry["cur"][0].tolist() == pytest.approx([0, -0.0003125, -0.0003125, -0.0003125])
    assert telemetry["trotor"][0, 0] == -52.2227
    assert telemetry["tau"][0].tolist() == [0, 14.5451, -41.0253, 0]
    assert telemetry["pos"][0].tolist() == [1.3633, 0.0043, 0.4935]
    # 0x21321: motor 1 on, over-current of joints 1 and 2, heater 2 on (Table 13)
    assert telemetry["motor_on"].tolist() == [[0, 0, 0, 0], [1, 0, 0, 0]]
    assert telemetry["over_current"][1].tolist() == [1, 1, 0, 0]
    assert telemetry["heater_on"][1].tolist() == [0, 1, 0, 0]


def test_a_status_five_months_before_says_nothing_of_a_science_row(recording: Recording) -> None:
    assert "commanded_q" not in telemetry_of(recording)


def test_a_history_point_has_the_arm_and_what_the_system_commands(recording: Recording) -> None:
    telemetry = telemetry_of(recording, "History/Arm/Status")
    assert len(telemetry) == 5
    assert telemetry["vref"][0].tolist() == [4.502, -4.498]  # SIS 5.1.1
    assert telemetry["calib_ok"].tolist() == [[1]] * 5
    assert telemetry["tcase"][0].tolist() == [26.512, 26.656, 28.098, 28.538]
    # Arm samples are half a second before their system status, so the first has no command.
    assert np.isnan(telemetry["commanded_q"][0]).all()
    assert telemetry["commanded_q"][1].tolist() == [-0.829, -1.640, 0.230, 0.0]
    assert telemetry["commanded_pos"][1].tolist() == [0.210, 0.036, -1.580]
    assert telemetry["commanded_th"][1].tolist() == [1.501]
    assert telemetry["curr_limit"][1].tolist() == pytest.approx([0.172, 0.325, 0.273, 0.190])
    assert telemetry["algo_code"][1].tolist() == [2]  # RA_ALGO_CONTACT, not overridden
    assert telemetry["grapple_heater_on"][1].tolist() == [0]  # grapple_exp_time 0
    assert "fingers_open" not in telemetry


def test_the_system_status_reads_the_grapple(recording: Recording) -> None:
    telemetry = telemetry_of(recording, "System/Status")
    assert telemetry["tgrapple"].tolist() == [[99.5]]
    assert telemetry["fingers_open"].tolist() == [[1]]  # "0 Fingers-Open"


def test_the_documents_own_status_is_free_of_faults(recording: Recording) -> None:
    for name in streams_of(recording)[2:]:
        assert detect(telemetry_of(recording, name), Parameters.printed()).events == (), name


def test_every_fault_of_a_recording_is_checked_or_says_why_not(recording: Recording) -> None:
    findings = detect(telemetry_of(recording), Parameters.of(recording))
    assert len(findings.checked) + len(findings.unchecked) == len(FAULTS)
    assert {"encoder-pot", "encoder", "pot", "motor", "stalled", "over-current"} <= set(findings.checked)
    reasons = {entry.fault: entry.reason for entry in findings.unchecked}
    assert "no slope" in reasons["heater-current"]
    assert "no product" in reasons["deflection"]


def test_a_reference_voltage_that_drifts_in_the_history_is_found(tmp_path: Path) -> None:
    recording = open_history(tmp_path, ("[ 4.502 -4.498 ]", "[ 4.502 -4.469 ]"))
    (event,) = detect(telemetry_of(recording), Parameters.of(recording)).events
    assert (event.fault, event.part, event.declared, event.count) == ("vref", "vref 2", 3, 6)
    assert event.t_ns == 602049998_500_000_000  # the fourth of six points, one a second


def test_a_parameter_file_beside_the_history_decides(tmp_path: Path) -> None:
    (tmp_path / sample.PARAMETER_NAME).write_text(
        "SCLK = 602049000.5\n\nParameter Set: RA_FAULT_DETECT\nvref_delta = [ 0.03 0.05 ]\n"
    )
    (tmp_path / sample.HISTORY_NAME).write_text(history(6, ("[ 4.502 -4.498 ]", "[ 4.502 -4.469 ]")))
    recording = transect.open(tmp_path)
    assert detect(telemetry_of(recording), Parameters.of(recording)).events == ()


def test_an_accommodation_that_goes_too_far_is_found(tmp_path: Path) -> None:
    recording = open_history(
        tmp_path, ("sys_status.delta_via.mag    = 0.0000", "sys_status.delta_via.mag    = 0.4100")
    )
    (event,) = detect(telemetry_of(recording, "History/System/Status"), Parameters.printed()).events
    assert (event.fault, event.value, event.limit) == ("dvia", 0.41, 0.4)


def test_an_override_of_the_algorithm_is_in_force(tmp_path: Path) -> None:
    recording = open_history(
        tmp_path, ("algo_code_override = 0 RA_ALGO_NO_OVERRIDE", "algo_code_override = 3 RA_ALGO_FREE")
    )
    assert telemetry_of(recording, "History/System/Status")["algo_code"].tolist() == [[3]] * 6


def test_a_grapple_that_heats_is_heated_until_its_time(tmp_path: Path) -> None:
    recording = open_history(tmp_path, ("grapple_exp_time = 0.000000", "grapple_exp_time = 602049999.000000"))
    telemetry = telemetry_of(recording, "History/System/Status")  # 602049996 to 602050001
    assert telemetry["grapple_heater_on"][:, 0].tolist() == [1, 1, 1, 0, 0, 0]


def test_samples_are_put_in_order(tmp_path: Path) -> None:
    later, earlier = sample.SNAPSHOT.replace("615088547.8", "615088549.5"), sample.MOVING
    path = tmp_path / sample.SCIHI_NAME
    path.write_bytes(sample.science(rows=(later, earlier)).encode())
    telemetry = telemetry_of(transect.open(path))
    assert np.diff(telemetry.t_ns).tolist() == [1_500_000_000]
    assert telemetry["enc"][:, 0].tolist() == [-2.83, -2.84]


def test_a_recording_without_the_arm_is_refused(recording: Recording) -> None:
    with pytest.raises(StreamError, match="no stream Arm/Nothing") as error:
        telemetry_of(recording, "Arm/Nothing")
    assert "Arm/SciHi" in error.value.hint
    with pytest.raises(StreamError, match="of the arm"):
        telemetry_of(recording.replace(streams=()))
