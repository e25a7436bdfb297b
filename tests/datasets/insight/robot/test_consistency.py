"""An archive against itself: a table worked out with `math` alone, whole and spoilt in one place."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.datasets.insight.robot import scihi_sample as sample

import transect
from transect.datasets.insight.robot.consistency import ColumnResidual, check_recording
from transect.datasets.insight.robot.science import ScienceRows
from transect.errors import StreamError
from transect.recording import Recording

Table = list[dict[str, float]]


def residuals(
    folder: Path, table: Table | None = None, parameters: str | None = sample.PARAMETERS
) -> dict[tuple[str, str], ColumnResidual]:
    """Residuals by column and tool."""
    recording = transect.open(sample.write(folder, table, parameters))
    return {(r.column, r.tool): r for r in check_recording(recording)["Arm/SciHi"]}


def bad(found: dict[tuple[str, str], ColumnResidual]) -> set[tuple[str, str]]:
    return {key for key, residual in found.items() if residual.verdict != "consistent"}


def test_a_table_worked_out_by_hand_is_consistent_in_every_column(tmp_path: Path) -> None:
    found = residuals(tmp_path)
    assert bad(found) == set()
    columns = {column for column, _ in found}
    derived = {name.partition("(")[0] for name in sample.HEADINGS} - {"#time", "tgrapple", "htr_cur"}
    raw = {f"{name}{j}" for name in ("enc", "tcase", "cur", "volt") for j in (1, 2, 3, 4)}
    codes = {"stat", "tool", "grapple_phase"}
    assert columns == derived - raw - codes | {"stat bits 20-31"}


def test_rows_are_grouped_by_tool_and_forces_without_power_are_left_out(tmp_path: Path) -> None:
    found = residuals(tmp_path)
    assert {tool for column, tool in found if column == "x_enc"} == {"Scoop", "Grapple"}
    assert found["x_enc", "Scoop"].rows == 20
    assert found["Fr", "Scoop"].rows == 16  # in every fifth row only joints 1 and 4 have power


def test_the_tolerance_is_half_a_digit_and_what_half_a_digit_of_the_angles_does(tmp_path: Path) -> None:
    table = sample.rows(2)
    found = residuals(tmp_path, table)["z_enc", "Scoop"]
    q = [round(table[0][f"enc{j}(rad)"], 4) for j in (1, 2, 3, 4)]
    moved = [
        abs(sample.poses(tuple(q[i] + 5e-5 * (i == j) for i in range(4)), 2)[0][2] - sample.poses(q, 2)[0][2])
        for j in range(4)
    ]
    assert found.tolerance == pytest.approx(5e-5 + sum(moved), rel=1e-4)


def test_the_statistics_are_those_of_printed_minus_recomputed(tmp_path: Path) -> None:
    table = sample.rows()
    for row in table:
        row["tau1(N-m)"] += 2.0
        row["tau1(N-m)"] += 1.0 if row is table[3] else 0.0
    found = residuals(tmp_path, table)["tau1", ""]
    assert found.outside == found.rows == 40
    assert found.max_abs == pytest.approx(3.0, abs=1e-3)
    assert found.bias == pytest.approx((39 * 2 + 3) / 40, abs=1e-3)
    assert found.rms == pytest.approx(np.sqrt((39 * 4 + 9) / 40), abs=1e-3)


@pytest.mark.parametrize(
    ("heading", "by", "column", "tool"),
    [
        ("x_enc(m)", 1e-3, "x_enc", "Scoop"),
        ("th_pot(m)", 1e-3, "th_pot", "Scoop"),
        ("z_enc_defl(m)", -1e-3, "z_enc_defl", "Scoop"),
        ("trotor3(C)", 0.01, "trotor3", ""),
        ("Fz(N)", 0.01, "Fz", "Scoop"),
        ("pot2(rad)", 0.2, "pot2", ""),
        ("elapsed_time(hr)", 0.001, "elapsed_time", ""),
    ],
)
def test_one_spoilt_number_is_found_in_its_column(
    tmp_path: Path, heading: str, by: float, column: str, tool: str
) -> None:
    table = sample.rows()
    table[7][heading] += by
    found = residuals(tmp_path, table)[column, tool]
    assert (found.verdict, found.outside) == ("disagrees", 1)
    scale = 3600.0 if column == "elapsed_time" else 1.0
    assert found.max_abs == pytest.approx(abs(by) * scale, rel=0.5)


def test_a_spoilt_tool_pose_leaves_all_other_columns_alone(tmp_path: Path) -> None:
    table = sample.rows()
    table[7]["y_enc(m)"] += 0.01
    assert bad(residuals(tmp_path, table)) == {("y_enc", "Scoop")}


@pytest.mark.parametrize("heading", ["v2(rad/s)", "tau4(N-m)"])
def test_columns_whose_equation_the_sis_does_not_give_cannot_be_refuted(tmp_path: Path, heading: str) -> None:
    table = sample.rows()
    table[8][heading] += 0.1
    found = residuals(tmp_path, table)[heading.partition("(")[0], ""]
    assert (found.verdict, found.basis, found.outside) == ("undecided", "assumed", 1)
    assert "SIS does not" in found.remark


def test_the_reading_that_fits_is_named(tmp_path: Path) -> None:
    assert "gravity added" in residuals(tmp_path / "a")["Fr", "Scoop"].remark
    assert "CM_r multiplies" in residuals(tmp_path / "a")["trotor1", ""].remark


def test_forces_computed_with_the_other_signs_are_consistent_and_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = sample.weight()
    monkeypatch.setattr(sample, "weight", lambda: tuple(-x for x in below))
    monkeypatch.setattr(sample, "poses", lambda q, tool, poses=sample.poses: (poses(q, tool)[0],) * 2)
    found = residuals(tmp_path)
    assert [found[name, "Scoop"].verdict for name in ("Fr", "Ft", "Fz")] == ["consistent"] * 3
    assert "gravity taken off" in found["Fz", "Scoop"].remark


def test_rotors_that_divide_by_cm_r_are_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def warmer(rotor: sample.Vector, current: sample.Vector, volt: sample.Vector, case: sample.Vector):
        once = type(rotor)(b - a for a, b in zip(rotor, multiplied(rotor, current, volt, case), strict=True))
        return tuple(t + d / 0.1014**2 for t, d in zip(rotor, once, strict=True))

    multiplied = sample.warmer
    monkeypatch.setattr(sample, "warmer", warmer)
    found = residuals(tmp_path)["trotor2", ""]
    assert found.verdict == "consistent"
    assert "CM_r divides" in found.remark


def test_without_a_parameter_file_the_scoop_is_not_computed_and_the_reason_is_given(tmp_path: Path) -> None:
    found = residuals(tmp_path, parameters=None)
    for column in ("x_enc", "th_pot_defl", "Fz"):
        assert found[column, "Scoop"].verdict == "not computed"
        assert found[column, "Scoop"].remark == "RA_ARM_PARAMS lacks x_scoop"
    assert found["x_enc", "Grapple"].remark == "RA_ARM_PARAMS lacks x_grapple_attach"
    assert found["trotor1", ""].verdict == "consistent"


def test_sag_computed_with_substitutes_is_undecided(tmp_path: Path) -> None:
    found = residuals(tmp_path, parameters=sample.PLACES)  # the links' numbers are those of the SIS, in part
    assert found["z_enc", "Scoop"].verdict == "consistent"
    assert found["z_enc_defl", "Scoop"].verdict == "undecided"
    assert "RA_DEFL_LINK_4_UNSTOWED" in found["z_enc_defl", "Scoop"].remark


def test_a_sag_that_is_off_by_less_than_the_model_is_confirmed_to_is_undecided(tmp_path: Path) -> None:
    table = sample.rows()
    table[7]["z_enc_defl(m)"] += 0.0002
    found = residuals(tmp_path, table)["z_enc_defl", "Scoop"]
    assert (found.verdict, found.outside) == ("undecided", 1)
    assert "0.3 mm" in found.remark


def test_rows_after_a_gap_are_reinitialised(tmp_path: Path) -> None:
    table = sample.rows()
    later = table[:15] + table[25:]
    found = residuals(tmp_path, later)
    assert found["trotor1", ""].rows == 30 - 2
    assert found["v1", ""].rows == 30 - 2
    assert bad(found) == set()


def test_rows_further_apart_than_the_control_loop_say_nothing_of_the_rotors(tmp_path: Path) -> None:
    found = residuals(tmp_path, sample.rows()[::10])
    assert found["trotor1", ""].verdict == "not computed"
    assert found["x_enc", "Scoop"].verdict == "consistent"


def test_spare_bits_have_no_meaning_and_are_noticed(tmp_path: Path) -> None:
    table = sample.rows()
    table[4]["stat"] = int(table[4]["stat"]) | 1 << 20
    found = residuals(tmp_path, table)["stat bits 20-31", ""]
    assert (found.verdict, found.outside) == ("undecided", 1)


def test_a_tool_that_the_sis_does_not_know_is_not_computed(tmp_path: Path) -> None:
    table = sample.rows()
    table[4]["tool"] = 12
    found = residuals(tmp_path, table)
    assert found["x_enc", "tool 12"].remark == "there is no tool 12"
    assert found["x_enc", "Scoop"].rows == 19


def test_a_table_without_elapsed_time_has_nothing_to_compare(tmp_path: Path) -> None:
    table = [{k: v for k, v in row.items() if k != "elapsed_time(hr)"} for row in sample.rows()]
    assert residuals(tmp_path, table)["elapsed_time", ""].verdict == "not computed"


def test_forces_marked_invalid_without_need_are_counted(tmp_path: Path) -> None:
    table = sample.rows()
    table[1]["Fr(N)"] = -99999.0
    found = residuals(tmp_path, table)["Fr", "Scoop"]
    assert found.rows == 15
    assert "1 rows are marked invalid" in found.remark


@pytest.mark.parametrize("decimals", [3, 4, 6])
def test_the_tolerance_follows_the_printed_digits(tmp_path: Path, decimals: int) -> None:
    folder = sample.write(tmp_path)
    (folder / sample.NAME).write_text(sample.text(sample.rows(), decimals))
    recording = transect.open(folder)
    assert ScienceRows.of(recording, "Arm/SciHi").half == pytest.approx(0.5 * 10**-decimals)
    found = {(r.column, r.tool): r for r in check_recording(recording)["Arm/SciHi"]}
    assert found["x_enc", "Scoop"].verdict == found["Fz", "Grapple"].verdict == "consistent"
    assert found["x_enc", "Scoop"].tolerance < 5 * 10**-decimals


@settings(max_examples=10)
@given(st.tuples(st.floats(-3.0, 1.0), st.floats(-1.8, 0.8), st.floats(0.3, 2.4), st.floats(0.0, 3.0)))
def test_rounding_alone_never_makes_a_pose_disagree(
    tmp_path_factory: pytest.TempPathFactory, start: tuple[float, ...]
) -> None:
    found = residuals(tmp_path_factory.mktemp("arm"), sample.rows(10, start))
    poses = {key: r.verdict for key, r in found.items() if key[0][0] in "xyzt" and "_" in key[0]}
    assert len(poses) == 32
    assert set(poses.values()) == {"consistent"}


def test_a_recording_of_another_robot_says_what_is_needed() -> None:
    with pytest.raises(StreamError) as raised:
        check_recording(Recording("etna", ()))
    assert "A0087" in raised.value.hint
