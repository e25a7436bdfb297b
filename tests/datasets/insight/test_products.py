"""IDA products as printed in the SIS: read, written, read again, and damaged."""

import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.datasets.insight import sample

import transect
from transect import robots
from transect.base.clocks import NS
from transect.datasets.insight import products as ida
from transect.datasets.insight.products.columns import (
    COLUMNS,
    PHASES,
    STATUS_BITS,
    decode_status,
    encode_status,
    name_of_text,
    status_word,
)
from transect.datasets.insight.products.names import ProductName, kind_of_name, parse_name
from transect.datasets.insight.products.parameters import parameters_text, parse_parameters
from transect.datasets.insight.products.tables import parse_label
from transect.datasets.insight.robot.arm import TOOLS
from transect.datasets.insight.robot.parameters import ROWS, SETS, units
from transect.errors import ParseError, UnsupportedError, UsageError
from transect.formats import recognise
from transect.recording import Recording, Stream, arrow
from transect.recording.stream import stream_of_values
from transect.types import JointState, Record

FIELDS_58 = tuple(
    (c.name, "UTF8_String" if c.name == "stat" else "ASCII_Real", c.header_unit or "none") for c in COLUMNS
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return sample.write_sample(tmp_path / "ida")


@pytest.fixture
def recording(folder: Path) -> Recording:
    return transect.open(folder)


def open_text(tmp_path: Path, name: str, text: str | bytes, **options: bool) -> Recording:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return transect.open(path, **options)


def assert_same_streams(one: Recording, two: Recording) -> None:
    assert [s.name for s in one] == [s.name for s in two]
    for a, b in zip(one, two, strict=True):
        assert a.table.schema.equals(b.table.schema, check_metadata=True)
        assert a.clock == b.clock == "sclk"
        for name in a.table.column_names:
            x, y = a.column(name), b.column(name)
            if isinstance(x, list):
                assert x == y, (a.name, name)
            else:
                np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12, err_msg=f"{a.name} {name}")
                assert name != "t_ns" or np.array_equal(x, y)


# --- file names (SIS 4.1.3) ---


def test_the_name_of_table_8_has_the_fields_that_the_text_gives():
    name = parse_name(sample.ARM_NAME)
    assert name == ProductName(89, 62, 602047157, 602052923, "190129195008", "006_arm_float.txt")
    assert str(name) == sample.ARM_NAME
    # SIS 4.1.1, example of a product's LID
    assert name.identifier == "a0089_0062_602047157_602052923_190129195008_006_arm_float"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (sample.ARM_NAME, "status"),
        (sample.HISTORY_NAME, "history"),
        (sample.PARAMETER_NAME, "parameters"),
        (sample.SCIHI_NAME, "science"),
        (f"sol0209/{sample.SCILO_NAME}", "science"),
        (sample.LABEL_NAME, "label"),
        ("ida_sc_coordinates.csv", "coordinates"),
        ("A0087_0209_615088547_615088547_190629192905.csv", None),
        ("B0087_0209_615088547_615088547_190629192905_eu.csv", None),
        ("readme.txt", None),
    ],
)
def test_a_name_says_what_the_file_holds(name: str, kind: str | None):
    assert kind_of_name(name) == kind


@given(
    st.integers(84, 89),
    st.integers(0, 9999),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.from_regex(r"[0-9]{12}", fullmatch=True),
    st.sampled_from(["006_arm_float.txt", "000_system_float.txt", "012.txt", "eu.csv"]),
)
def test_a_name_that_was_written_is_read_back(
    apid: int, sol: int, start: int, end: int, tag: str, product: str
):
    name = ProductName(apid, sol, start, end, tag, product)
    assert parse_name(f"sol/{name}") == name


# --- status (SIS 5.1.1) ---


def test_the_arm_status_has_every_value_of_the_listing(recording: Recording):
    row = recording["Arm/Status"][0].row
    assert row["t_ns"] == 594733695_900000000
    assert [row[f"ace_{k}"] for k in ("calib_ok", "bus30v_err", "parity_err", "msg_err")] == [1, 0, 0, 0]
    assert (row["ace_load_box"], row["ace_self_test"]) == (0, 0)
    assert row["mtr_pwr_on"] == row["mtr_over_current"] == [0, 0, 0, 0]
    assert row["mtr_rotation"] == [0, 0, 1, 0]
    assert row["mtr_brake_on"] == [0, 0, 0, 1]
    assert row["mtr_current"] == [0.000, 0.001, 0.000, 0.001]
    assert row["jnt_temp"] == [26.512, 26.656, 28.098, 28.538]
    assert row["ref"] == [4.502, -4.498]
    assert (row["htr_crnt"], row["agnd"]) == (0.001, 0.002)
    assert row["file"] == f"sol0062/{sample.ARM_NAME}"


def test_joint_angles_of_a_status_are_joint_states(recording: Recording):
    encoders, pots = recording["Arm/Status/Encoders"], recording["Arm/Status/Potentiometers"]
    assert encoders.type is pots.type is JointState
    np.testing.assert_array_equal(encoders[0].value.position, [-0.100, -0.320, 1.010, 0.134])
    np.testing.assert_array_equal(pots[0].value.position, [-0.100, -0.321, 1.009, 0.134])
    assert encoders.units["position"] == "rad"


def test_the_system_status_has_every_value_of_the_listing(recording: Recording):
    row = recording["System/Status"][0].row
    assert row["t_ns"] == 602050014 * NS
    assert row["curr_limit"] == pytest.approx([0.172, 0.325, 0.273, 0.190])  # amperes
    assert row["mtr_volt"] == [21, 2, 1, 0]
    assert row["brake"] == row["use_pots"] == row["htr_on"] == row["mtr_volt_sign"] == [0, 0, 0, 0]
    assert (row["tool"], row["tool_text"], row["tool_name"]) == (5, "RA_GRAPPLE", "Grapple")
    assert row["fault_chk_mask"] == [0xF00F0F, 0x39FF7E7F]
    assert row["fault_status"] == [0, 0]
    assert (row["act_cmd"], row["act_cmd_text"], row["act_args"]) == (23, "RA_SEND_DATA", "220")
    assert (row["task_cmd"], row["task_cmd_text"], row["task_args"]) == (23, "RA_SEND_DATA", "220")
    assert row["target_q"] == [0.026, -0.389, 1.378, 0.125]
    assert row["target_x"] == [0.960, 0.218, -0.098, 0.992]
    assert row["via_q"] == [-0.829, -1.640, 0.230, 0.000]
    assert row["via_x"] == [0.210, 0.036, -1.580, 1.501]
    assert (row["via_step"], row["via_time_ns"]) == (7, 602049408_200000000)
    collisions = [row[f"col_status_{k}"] for k in ("has_collisions", "link1", "link2", "obj1", "obj2")]
    assert collisions == [0, -1, -1, -1, -1]
    assert row["rotation_cmd"] == [1, -1, 1, 1]
    assert row["delta_via_dq"] == row["delta_via_dx"] == row["tau"] == [0, 0, 0, 0]
    assert (row["delta_via_mag"], row["plane_angle"], row["delta_tau"]) == (0, 0.0097, 0)
    assert (row["algo_code"], row["algo_code_text"]) == (2, "RA_ALGO_CONTACT")
    assert (row["algo_code_override"], row["algo_code_override_text"]) == (0, "RA_ALGO_NO_OVERRIDE")
    assert (row["delta_via_code"], row["delta_via_code_text"]) == (3, "RA_DELTA_VIA_USER")
    assert (row["track_state"], row["track_state_text"]) == (0, "RA_NO_TRACKING")
    assert (row["energy_limit"], row["energy_value"], row["cool_down"]) == (0, 0, 0)
    assert (row["time_limit_ns"], row["grapple_exp_time_ns"]) == (602049206_700000000, 0)
    assert (row["grapple_state"], row["grapple_state_text"]) == (0, "Fingers-Open")
    assert row["grapple_temp"] == 99.5
    assert (row["grapple_phase"], row["grapple_phase_name"]) == (2, "OK-To-Open")
    assert row["actively_holding_position"] == 0


@pytest.mark.parametrize(
    ("text", "code", "name"),
    [
        ("RA_GRAPPLE", 5, "Grapple"),
        ("RA_RAC", 2, "IDC"),  # 5.1.1 counts blade 1, blade 2, IDC; Table 14 has the scoop there
        ("RA_SCOOP", 3, "Scoop"),
        ("RA_GRAPPLE_ATTACH", 6, "Grapple-Attach"),
        ("RA_BLADE_1", 0, "Blade 1"),
        ("", 7, "SEIS"),
        ("", None, ""),
        ("RA_DRILL", 1, ""),
    ],
)
def test_the_printed_name_of_a_tool_wins_over_its_number(text: str, code: int | None, name: str):
    assert name_of_text(text, code, TOOLS) == name


def test_the_printed_phase_has_the_name_of_table_15():
    assert [name_of_text(f"RA_{n.replace('-', '_').upper()}", None, PHASES) for n in PHASES] == list(PHASES)


def test_keys_with_blanks_and_without_equals_sign_are_understood(tmp_path: Path):
    text = sample.ARM_STATUS.replace("ra_status", "ra status").replace("pwr_on  ", "pwr on  ")
    text = text.replace("ra status.agnd             =", "ra status.agnd ").replace(
        "self_test    =", "self test "
    )
    rec = open_text(tmp_path, "status.txt", text)
    row = rec["Arm/Status"][0].row
    assert rec.losses == ()
    assert (row["agnd"], row["mtr_pwr_on"], row["ace_self_test"]) == (0.002, [0, 0, 0, 0], 0)


def test_a_file_of_several_statuses_has_a_row_for_each(tmp_path: Path):
    later = sample.SYSTEM_STATUS.replace("602050014.0", "602050014.1")
    rec = open_text(tmp_path, "status.txt", sample.ARM_STATUS + sample.SYSTEM_STATUS + later)
    assert rec["System/Status"].t_ns.tolist() == [602050014 * NS, 602050014 * NS + 10**8]
    assert len(rec["Arm/Status"]) == 1


def test_a_key_that_the_sis_does_not_know_is_kept_as_text(tmp_path: Path):
    rec = open_text(tmp_path, "status.txt", "ra_status.new.key = [ a 1 ]\n" + sample.ARM_STATUS)
    assert rec["Arm/Status"]["extra.new.key"] == ["[ a 1 ]"]
    assert any("ra_status.new.key" in note for note in rec.all_notes)
    ida.write(rec, tmp_path / "out")
    assert_same_streams(rec, transect.open(tmp_path / "out"))


def test_a_status_without_some_keys_has_nothing_there(tmp_path: Path):
    text = "ra_status.mtr.pwr_on = [ 1 0 0 0 ]\nra_status.time = 594733695.9\n" + sample.ARM_STATUS
    rec = open_text(tmp_path, "status.txt", text)
    assert np.isnan(rec["Arm/Status"]["mtr_rotation"][0]).all()
    assert np.isnan(rec["Arm/Status"]["agnd"]).tolist() == [True, False]
    assert np.isnan(rec["Arm/Status/Encoders"]["position"][0]).all()
    ida.write(rec, tmp_path / "out")
    assert_same_streams(rec, transect.open(tmp_path / "out"))


# --- history (SIS 5.1.2) ---


def test_a_history_is_300_points_oldest_first(tmp_path: Path):
    rec = open_text(tmp_path, sample.HISTORY_NAME, sample.history())
    arm = rec["History/Arm/Status"]
    assert arm["points_before_latest"].tolist() == list(range(299, -1, -1))
    assert arm["ring_index"][-1] == 295  # "0 points before latest (index = 295):"
    assert arm["ring_index"][:5].tolist() == [296, 297, 298, 299, 0]
    assert arm.t_ns[-1] == 602050000_500000000
    assert (np.diff(arm.t_ns) == NS).all()
    assert len(rec["History/System/Status"]) == len(rec["History/Arm/Status/Encoders"]) == 300
    assert rec.losses == ()


def test_points_in_another_order_are_sorted_and_missing_ones_noted(tmp_path: Path):
    points = re.split(r"^(?=\d+ points)", sample.history(5), flags=re.MULTILINE)[1:]
    turned = "\n".join([*points[3:], *points[:2]])
    rec = open_text(tmp_path, sample.HISTORY_NAME, turned)
    assert rec["History/Arm/Status"]["points_before_latest"].tolist() == [4, 3, 1, 0]
    assert any("1 history points are missing, the latest 2" in note for note in rec.all_notes)


# --- parameters (SIS 5.1.3) ---


def test_all_32_parameter_sets_are_read(recording: Recording):
    assert len(SETS) == 32
    assert recording.conditions["parameters"].keys() == SETS.keys()


def test_parameters_are_typed_and_in_si(recording: Recording):
    sets = recording.conditions["parameters"]
    assert sets["RA_ARM_PARAMS"]["dh.a"] == (0.029609, 0.976664007, 0.857989013, 0.0)
    assert sets["RA_ARM_PARAMS"]["x_rac"] == (-0.560000002, -0.055, -0.150000006, 1.570799947)
    assert sets["RA_JOINT_PARAMS"]["q_min"] == (-3.5314, -2.3953, -0.4324, -0.1742)
    assert sets["RA_JOINT_PARAMS"]["nonstart_count"] == (1, 1, 1, 1)
    assert sets["RA_JOINT_PARAMS"]["direction_delay"] == pytest.approx((0.05,) * 4)  # 50 ms
    assert sets["RA_TAU_PARAMS2"]["current_limit"] == pytest.approx(
        (0.11, 0.26, 0.21, 0.11)
    )  # mA in the file
    assert sets["RA_CTRL_PARAMS"]["paci_timeout"] == 1.0
    assert sets["RA_GRAVITY"]["gravity_params.grav_vect"] == (0.046825, -0.051123, 0.997594)
    assert sets["RA_TASK_DT"]["dig_trench.width"] == 0.073
    assert sets["RA_TASK_ALGO"][ROWS][3] == (22, 1, 2)
    assert len(sets["RA_TASK_ALGO"][ROWS]) == 12
    assert sets["RA_DEFL_LINK_2"]["wCm"][2] == (-4.01e-09, -2.21e-10, 3.51217e-04)  # "- 4.010000e-09"
    assert sets["RA_THERMAL"]["I_nl"] == (0.008,) * 4  # printed "l nl"
    assert sets["RA_COMPRESS_PARAMS"]["compress.wBlockSize"] == 16
    assert sets["PAYLOAD_COL_PARAMS"]["wts_q"] == (0.0, 0.0, 0.0, 1.0)  # printed with three numbers
    assert units("RA_TAU_PARAMS2")["current_limit"] == "A"
    assert units("RA_JOINT_PARAMS")["pot.m"] == "LSB/rad"


def test_compliances_are_symmetric_as_maxwell_wants():
    sets = parse_parameters(sample.PARAMETERS.encode(), "x").sets
    for name in ("RA_DEFL_LINK_1", "RA_DEFL_LINK_2", "RA_DEFL_LINK_3_UNSTOWED"):
        vCm, wCf = (np.array(sets[name][key]) for key in ("vCm", "wCf"))
        np.testing.assert_allclose(vCm, wCf.T, atol=2e-19)


def test_unknown_sets_and_keys_are_kept_as_text_and_noted():
    text = "Parameter Set: RA_NEW\na = [ 1 2 ]\nParameter Set: RA_GRAVITY\nmoon.g = 1.6 m/s2\n"
    read = parse_parameters(text.encode(), "012.txt")
    assert read.sets == {"RA_NEW": {"a": "[ 1 2 ]"}, "RA_GRAVITY": {"moon.g": "1.6 m/s2"}}
    assert len(read.notes) == 2
    assert read.losses == []
    assert parse_parameters(parameters_text(read.sets).encode(), "x").sets == read.sets


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("dh.a = [ 1 2 x 4 ]", "dh.a: 'x' is not a number"),
        ("dh.a = [ 1 2 3 ]", "dh.a has 3 numbers, expected 4"),
        ("nothing here", "not a key and a value"),
    ],
)
def test_a_parameter_that_does_not_fit_is_located(line: str, reason: str):
    read = parse_parameters(f"Parameter Set: RA_ARM_PARAMS\ndh.d = [ 1 2 3 4 ]\n{line}\n".encode(), "012.txt")
    assert [(loss.line, loss.reason) for loss in read.losses] == [(3, reason)]
    assert read.sets["RA_ARM_PARAMS"] == {"dh.d": (1, 2, 3, 4)}


def test_errors_of_a_parameter_file_are_reported_line_by_line():
    text = (
        "Parameter Set: RA_DEFL_LINK_2\n"
        "vCf = [ 1 2 3 4 5 6 7 8 ]\n"
        "vCfs = [ 1 2 3 4 5 6 7 8 9 ]\n"
        "mass = 1.2 kg\n"
        "Parameter Set: RA_GRAVTY\n"
        "gravity_params.acc_g = 3.711\n"
    )
    read = parse_parameters(text.encode(), "012.txt")
    assert [(loss.line, loss.reason) for loss in read.losses] == [
        (2, "vCf has 8 numbers, expected 9"),
        (4, "mass: 'kg' is not a number"),
    ]
    unknown_key, unknown_set = read.notes
    assert unknown_key.startswith("012.txt:3: the SIS does not know the parameter vcfs, nor so its unit")
    assert "'vCf'" in unknown_key
    assert unknown_set.startswith("012.txt:5: the SIS knows no parameter set RA_GRAVTY")
    assert "'RA_GRAVITY'" in unknown_set


def test_a_group_of_another_set_or_of_another_size_is_told_and_a_missing_value_noted():
    text = (
        "Parameter Set: RA_TASK_DT\ndig_trench.[depth width length] = [ 1 2 ]\ndig_trench.corner =\n"
        "Parameter Set: RA_GRAVITY\ndig_trench.[depth width length] = [ 1 2 3 ]\n"
    )
    read = parse_parameters(text.encode(), "012.txt")
    reasons = [(loss.line, loss.reason) for loss in read.losses]
    assert reasons == [(2, "dig_trench.[depth_width_length] has 2 numbers, expected 3")]
    assert read.notes[0] == "012.txt:3: dig_trench.corner has no value"
    assert read.notes[1].startswith("012.txt:5: the SIS does not know the parameter")


def test_start_count_ff_disables_the_monitoring():
    read = parse_parameters(b"Parameter Set: RA_JOINT_PARAMS\nstart_count = [ FF 3 3 3 ]\n", "x")
    assert read.sets["RA_JOINT_PARAMS"]["start_count"] == (255, 3, 3, 3)


@pytest.mark.parametrize("stamp", ["SCLK = 602049000.5", "602049000.5", "Time 602049000.5 (sol 62)"])
def test_the_time_stamp_of_a_parameter_file_is_found(stamp: str):
    assert (
        parse_parameters(f"{stamp}\nParameter Set: RA_GRAVITY\n".encode(), "x").time_ns == 602049000_500000000
    )


def test_of_several_parameter_files_the_latest_counts(tmp_path: Path):
    late = sample.PARAMETER_NAME.replace("602047157_602052923", "602057157_602062923")
    (tmp_path / sample.PARAMETER_NAME).write_text("SCLK = 602049000.5\n" + gravity("3.711"))
    (tmp_path / late).write_text("SCLK = 602059000.5\n" + gravity("3.72"))
    rec = transect.open(tmp_path)
    assert rec.conditions["parameters"]["RA_GRAVITY"]["gravity_params.acc_g"] == 3.72
    ida.write(rec, tmp_path / "out")
    assert transect.open(tmp_path / "out").conditions == rec.conditions


def gravity(value: str) -> str:
    return f"Parameter Set: RA_GRAVITY\ngravity_params.acc_g = {value}\n"


def test_a_changed_parameter_is_written(recording: Recording, tmp_path: Path):
    changed = {**recording.conditions["parameters"], "RA_GRAVITY": {"gravity_params.acc_g": 9.81}}
    ida.write(recording.replace(conditions={**recording.conditions, "parameters": changed}), tmp_path / "out")
    again = transect.open(tmp_path / "out").conditions["parameters"]
    assert again["RA_GRAVITY"] == {"gravity_params.acc_g": 9.81}
    assert again["RA_ARM_PARAMS"] == recording.conditions["parameters"]["RA_ARM_PARAMS"]


# --- SciHi and SciLo (SIS 5.1.5, Table 12) ---


def test_a_scihi_table_has_every_value_of_table_12(recording: Recording):
    main, tool, forces = (recording[f"Arm/SciHi{part}"] for part in ("", "/Tool", "/Forces"))
    encoders = recording["Arm/SciHi/Encoders"][0].value
    row = main[0].row
    assert row["t_ns"] == 615088547_800000000
    assert encoders.position.tolist() == [-2.84, -1.9231, 2.3173, -0.0007]
    assert encoders.velocity.tolist() == [0.0024, 0.0006, 0.001, 0.0025]
    assert encoders.effort.tolist() == [0, 14.5451, -41.0253, 0]
    pots = recording["Arm/SciHi/Potentiometers"][0].value
    assert pots.position.tolist() == [-2.8391, -1.9224, 2.3202, 0.0011]
    assert [row[f"trotor{j}"] for j in (1, 2, 3, 4)] == [-52.2227, -52.7207, -50.0872, -51.1683]
    assert row["tgrapple"] == -26.9399
    assert [row[f"cur{j}"] for j in (1, 2, 3, 4)] == pytest.approx([0, *[-0.3125e-3] * 3])
    assert [row[f"volt{j}"] for j in (1, 2, 3, 4)] == [0, 0, 0, 0]
    assert (row["stat"], row["tool"], row["tool_name"]) == (0, 5, "Grapple")
    pose = tool.array(*(f"{axis}_enc" for axis in ("x", "y", "z", "th")))[0]
    assert pose.tolist() == [1.3633, 0.0043, 0.4935, 1.5014]
    assert tool.array("x_pot_defl", "y_pot_defl", "z_pot_defl")[0].tolist() == [1.3571, 0.0016, 0.5068]
    assert forces.array("Fr", "Ft", "Fz")[0].tolist() == [-3.6661, -0.7414, -0.0603]
    assert row["htr_cur"] == 0.0015  # amperes, although the heading says mA
    assert (row["grapple_phase"], row["grapple_phase_name"]) == (2, "OK-To-Open")


def test_units_inside_are_si(recording: Recording):
    main, tool = recording["Arm/SciHi"].units, recording["Arm/SciHi/Tool"].units
    assert (main["cur1"], main["htr_cur"], main["tcase1"], main["volt4"]) == ("A", "A", "degC", "V")
    assert (tool["x_enc"], tool["th_enc"], tool["th_pot_defl"]) == ("m", "rad", "rad")
    assert recording["Arm/SciHi/Tool"].frame == "Payload"


def test_the_invalid_constant_is_not_a_force(recording: Recording):
    assert np.isnan(recording["Arm/SciHi/Forces"].array("Fr", "Ft", "Fz")[1]).all()


def test_the_status_word_is_decoded_as_table_13_says(recording: Recording):
    row = recording["Arm/SciHi"][1].row
    assert row["stat"] == 0x21321
    on = {name for name in STATUS_BITS if row[name]}
    named = {
        "motor_on_1",
        "rotation_negative_2",
        "over_current_1",
        "over_current_2",
        "brake_off_1",
        "heater_on_2",
    }
    assert on == named


@given(st.lists(st.integers(0, 2**20 - 1), min_size=1))
def test_status_bits_and_words_are_inverse(words: list[int]):
    array = np.array(words, dtype=np.uint32)
    assert encode_status(decode_status(array)).tolist() == words


@pytest.mark.parametrize(
    ("text", "word"),
    [("0", 0), ("0x0F", 15), ("0XFFFFFFFF", 2**32 - 1), ("17", 17), ("0x", None), ("-1", None)],
)
def test_status_words_are_decimal_or_hexadecimal(text: str, word: int | None):
    assert status_word(text) == word


def test_spare_bits_are_noted_and_kept(tmp_path: Path):
    rec = open_text(
        tmp_path, "eu.csv", sample.science(rows=(sample.MOVING.replace("0x21321", "0x80000001"),))
    )
    assert rec["Arm/SciHi"]["stat"].tolist() == [0x80000001]
    assert any("spare bits 20-31" in note for note in rec.all_notes)


def test_a_heater_current_that_no_heater_draws_in_amperes_is_milliamperes(tmp_path: Path):
    rec = open_text(tmp_path, "eu.csv", sample.science(rows=(sample.MOVING.replace("0.4701", "470.1"),)))
    assert rec["Arm/SciHi"]["htr_cur"].tolist() == pytest.approx([0.4701])


def test_the_58_columns_of_the_label_have_an_elapsed_time(tmp_path: Path):
    rows = tuple(sample.with_elapsed_time(row, "0.5000") for row in (sample.SNAPSHOT, sample.MOVING))
    text = sample.science(sample.with_elapsed_time(sample.HEADER, "elapsed_time(hr)"), rows)
    rec = open_text(tmp_path, sample.SCIHI_NAME, text)
    assert rec["Arm/SciHi"]["elapsed_time"].tolist() == [1800.0, 1800.0]  # seconds
    assert rec["Arm/SciHi/Encoders"][0].value.position[0] == -2.84
    ida.write(rec, tmp_path / "out")
    assert_same_streams(rec, transect.open(tmp_path / "out"))


@pytest.mark.parametrize("elapsed", [False, True])
def test_a_table_without_header_is_known_by_its_number_of_columns(tmp_path: Path, elapsed: bool):
    row = sample.with_elapsed_time(sample.SNAPSHOT, "1") if elapsed else sample.SNAPSHOT
    rec = open_text(tmp_path, sample.SCIHI_NAME, f"{row}\r\n")
    assert rec["Arm/SciHi/Encoders"]["position"].tolist() == [[-2.84, -1.9231, 2.3173, -0.0007]]
    assert ("elapsed_time" in rec["Arm/SciHi"].columns) == elapsed


def labelled(tmp_path: Path, label: str, text: str) -> Recording:
    (tmp_path / sample.SCIHI_NAME).write_bytes(text.encode())
    (tmp_path / sample.LABEL_NAME).write_text(label)
    return transect.open(tmp_path)


def test_the_names_of_the_label_win_over_the_header(tmp_path: Path):
    header = ",".join(["#t", *(f"column {i}" for i in range(57))])
    row = sample.with_elapsed_time(sample.SNAPSHOT, "1")
    rec = labelled(tmp_path, sample.label(FIELDS_58, 1), sample.science(header, (row,)))
    assert rec["Arm/SciHi/Forces"].array("Fr", "Ft", "Fz").tolist() == [[-3.6661, -0.7414, -0.0603]]
    assert rec.losses == ()
    assert len(rec.all_notes) == 1  # the rough UTC


def test_a_label_with_another_number_of_columns_is_ignored(tmp_path: Path):
    rec = labelled(tmp_path, sample.label(FIELDS_58), sample.science())
    assert rec["Arm/SciHi/Encoders"]["position"][0].tolist() == [-2.84, -1.9231, 2.3173, -0.0007]
    assert any("describes 58 columns, the file has 57" in note for note in rec.all_notes)


def test_a_label_that_promises_more_records_is_noted(tmp_path: Path):
    fields = tuple(field for field in FIELDS_58 if field[0] != "elapsed_time")
    rec = labelled(tmp_path, sample.label(fields, 927), sample.science())
    assert any("promises 927 records, 2 were read" in note for note in rec.all_notes)


ENTITY = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hostname">]><x>&e;</x>'


@pytest.mark.parametrize("label", [ENTITY, "<not closed", "<empty/>", ""])
def test_a_bad_label_is_a_loss_and_the_table_is_still_read(tmp_path: Path, label: str):
    rec = labelled(tmp_path, label, sample.science())
    assert len(rec["Arm/SciHi"]) == 2
    assert [loss.file for loss in rec.losses] == [sample.LABEL_NAME]


def test_a_label_with_entities_is_refused():
    with pytest.raises(ParseError, match="document type"):
        parse_label(b'<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>', "x.xml")


def test_times_far_from_the_name_are_kept_and_noted(tmp_path: Path):
    text = sample.science().replace("615088547.8", "42209.8").replace("615088548,", "42210,")  # Table 12
    rec = open_text(tmp_path, sample.SCIHI_NAME, text)
    assert rec["Arm/SciHi"].t_ns.tolist() == [42209_800000000, 42210_000000000]
    assert rec["Arm/SciHi"].clock == "sclk"
    assert any("far from the SCLK in its name" in note for note in rec.all_notes)


# --- the robot and its frames ---


def test_the_lander_frame_is_where_table_7_has_it():
    T = robots.load("ida").frames.lookup("Payload", "Lander")
    np.testing.assert_allclose(T[:3, 3], [-0.775084, -0.283360, -0.956056])
    np.testing.assert_allclose(T[:3, :3], np.diag([-1.0, -1.0, 1.0]), atol=1e-12)


def test_the_coordinates_file_moves_the_lander_frame(folder: Path):
    path = folder / "ida_sc_coordinates.csv"
    assert transect.open(folder).conditions["sc_coordinates"] == (-0.775084, -0.283360, -0.956056)
    path.write_text("x_coord(mm),y_coord(mm),z_coord(mm)\n-700.5,0,1\n")
    rec = transect.open(folder)
    np.testing.assert_allclose(rec.frames.lookup("Payload", "Lander")[:3, 3], [-0.7005, 0.0, 0.001])
    assert any("not where SIS Table 7 has it" in note for note in rec.notes)


def test_the_robot_has_the_parameters_that_survive_in_the_document():
    constants = robots.load("ida").constants["parameters"]
    for name, values in parse_parameters(sample.PARAMETERS.encode(), "x").sets.items():
        assert constants[name].keys() == values.keys()
        for key, value in values.items():
            np.testing.assert_array_equal(constants[name][key], value)
    assert "x_scoop" not in constants["RA_ARM_PARAMS"]
    assert "c_nl_4" not in constants["RA_TAU_PARAMS"]


def test_the_camera_sits_on_the_forearm_as_target_q_and_target_x_say():
    robot = robots.load("ida")
    arm = robot.constants["parameters"]["RA_ARM_PARAMS"]
    T = np.eye(4)
    for q, d, a, alpha in zip(
        [0.026, -0.389, 1.378], arm["dh.d"], arm["dh.a"], arm["dh.alpha"], strict=False
    ):
        c, s, ca, sa = np.cos(q), np.sin(q), np.cos(alpha), np.sin(alpha)
        T @= np.array(
            [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, d], [0, 0, 0, 1]]
        )
    T @= robot.frames.lookup("Forearm", "IDC")
    # SIS 5.1.1, sys_status.target.x: the camera selected; the rest is deflection and the rounded x_rac
    np.testing.assert_allclose(T[:3, 3], [0.960, 0.218, -0.098], atol=0.007)
    assert np.arcsin(T[2, 2]) == pytest.approx(0.992, abs=0.004)
    assert robot.cameras["IDC"].invented


def test_the_encoders_move_the_arm_from_its_base_to_the_wrist(recording: Recording):
    assert recording.frames.roots == ("Payload",)
    enc = recording["Arm/SciHi/Encoders"]
    T = recording.frames.lookup("Payload", "Wrist", int(enc.t_ns[0]))
    q1 = enc.column("position")[0, 0]
    reach = np.hypot(T[0, 3], T[1, 3])
    assert np.arctan2(T[1, 3], T[0, 3]) == pytest.approx(q1 + np.arcsin(0.140838 / reach), abs=1e-6)
    [edge] = [edge for edge in recording.frames.edges if edge.child == "Wrist"]
    assert (edge.clock, edge.source) == ("sclk", "Arm/SciHi/Encoders")


def test_a_parameter_file_of_another_arm_leaves_the_frames_and_says_so(folder: Path):
    for path in folder.rglob("A0086*"):
        path.write_text("Parameter Set: RA_ARM_PARAMS\ndh.alpha = [ 1 0 0 1 ]\n")
    rec = transect.open(folder)
    assert "Forearm" in rec.frames.roots
    assert any("stand as the SIS prints them: dh.alpha" in note for note in rec.notes)


# --- whole recordings ---


def test_a_folder_of_products_is_recognised_and_has_its_robot(folder: Path, recording: Recording):
    assert recognise(folder)[0][0] == "ida"
    assert recording.robot is not None
    assert recording.robot.name == "ida"
    assert recording.conditions["sols"] == (62, 209)
    assert recording.losses == ()
    assert {s.type for s in recording} == {Record, JointState}
    assert {s.role for s in recording if s.name.endswith(("Tool", "Forces"))} == {"derived"}


def test_a_recording_is_written_and_read_back_exactly(recording: Recording, tmp_path: Path):
    assert ida.write(recording, tmp_path / "out") == ()
    again = transect.open(tmp_path / "out")
    assert_same_streams(recording, again)
    assert again.conditions == recording.conditions
    assert again.losses == ()


def test_the_written_files_have_the_names_and_lines_of_the_documents(recording: Recording, tmp_path: Path):
    ida.write(recording, tmp_path / "out")
    science = (tmp_path / "out" / "sol0209" / sample.SCIHI_NAME).read_bytes()
    assert science.startswith(sample.HEADER.encode() + b"\r\n615088547.8,-2.8400,-1.9231,")
    assert science.endswith(b",-99999.0000,-99999.0000,-99999.0000,0.4701,5\r\n")
    arm = (tmp_path / "out" / "sol0062" / sample.ARM_NAME).read_text().splitlines()
    assert arm[9] == "ra_status.mtr.brake        = [ 0 0 0 1 ]"
    assert arm[-1] == "ra_status.time             = 594733695.9"
    history = (tmp_path / "out" / "sol0062" / sample.HISTORY_NAME).read_text()
    assert history.startswith("4 points before latest (index = 291):\n")
    parameters = (tmp_path / "out" / "sol0062" / sample.PARAMETER_NAME).read_text()
    assert "dig_trench.[depth width length] = [ 0.002 0.073 0.25 ]\n" in parameters
    assert "current_limit = [ 110 260 210 110 ]\n" in parameters
    assert (tmp_path / "out" / "ida_sc_coordinates.csv").read_bytes() == sample.COORDINATES.encode()


def test_a_zip_and_its_folder_are_alike(folder: Path, recording: Recording, tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "ida.zip", "w") as archive:
        for path in sorted(folder.rglob("*.*")):
            archive.write(path, path.relative_to(folder))
    assert_same_streams(recording, transect.open(tmp_path / "ida.zip"))


@pytest.mark.parametrize("name", [sample.ARM_NAME, sample.HISTORY_NAME, sample.PARAMETER_NAME])
def test_one_file_is_a_recording(folder: Path, name: str):
    rec = transect.open(folder / "sol0062" / name)
    assert rec.format == "ida"
    assert len(rec) or "RA_GRAVITY" in rec.conditions["parameters"]


def test_several_tables_are_one_stream_and_are_parted_again(tmp_path: Path):
    other = sample.SCIHI_NAME.replace("615088547_615088547", "615088600_615088600")
    rows = tuple(sample.with_elapsed_time(row.replace("6150885", "6150886"), "1") for row in (sample.MOVING,))
    header = sample.with_elapsed_time(sample.HEADER, "elapsed_time(hr)")
    (tmp_path / sample.SCIHI_NAME).write_bytes(sample.science().encode())
    (tmp_path / other).write_bytes(sample.science(header, rows).encode())
    rec = transect.open(tmp_path)
    assert len(rec["Arm/SciHi"]) == 3
    assert np.isnan(rec["Arm/SciHi"]["elapsed_time"]).tolist() == [True, True, False]
    ida.write(rec, tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {sample.SCIHI_NAME, other}
    assert_same_streams(rec, transect.open(tmp_path / "out"))


def test_a_cut_of_a_recording_keeps_its_format(recording: Recording, tmp_path: Path):
    cut = recording.select("Arm/SciHi*").slice("615088548", None)
    ida.write(cut.replace(conditions={}), tmp_path / "out")
    assert transect.open(tmp_path / "out")["Arm/SciHi"].t_ns.tolist() == [615088548 * NS]


def joints(name: str, **more: object) -> Stream:
    t_ns = np.array([600000000, 600000001], dtype=np.int64) * NS
    return stream_of_values(
        name, t_ns, {"position": np.arange(8.0).reshape(2, 4)}, type=JointState, clock="sclk", **more
    )


def test_streams_without_files_get_names_of_their_own(tmp_path: Path):
    rec = Recording("new", (joints("Arm/SciHi/Encoders"), joints("Arm/Status/Encoders")))
    said = ida.write(rec, tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    # 2019-06-29T13:56:40.7 less 174 days 15:15:46 (615088547 - 600000001 s): sol 39.6
    assert names == {
        "A0087_0039_600000000_600000001_190105224054_eu.csv",
        "A0089_0039_600000000_600000001_190105224054_006_arm_float.txt",
    }
    assert any("Forces" in sentence for sentence in said)
    again = transect.open(tmp_path / "out")
    assert again["Arm/SciHi/Encoders"]["position"].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert again["Arm/Status/Encoders"]["position"].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert np.isnan(again["Arm/SciHi/Forces"]["Fr"]).all()


def test_what_no_product_holds_is_said(recording: Recording, tmp_path: Path):
    more = recording.replace(streams=(*recording.streams, joints("Other/Arm")))
    assert ida.write(more, tmp_path / "out") == ("Other/Arm: no IDA product holds this",)
    with pytest.raises(UnsupportedError):
        ida.write(Recording("other", (joints("Other/Arm"),)), tmp_path / "none")


def test_a_folder_with_files_is_not_written_over(recording: Recording, folder: Path):
    with pytest.raises(UsageError):
        ida.write(recording, folder)


def test_a_file_name_that_leaves_the_folder_is_not_followed(recording: Recording, tmp_path: Path):
    table = recording["System/Status"].table
    index = table.column_names.index("file")
    table = table.set_column(index, "file", arrow.strings(["../../escape.txt"]))
    rec = recording.replace(streams=(recording["System/Status"].replace(source=table),), conditions={})
    ida.write(rec, tmp_path / "a" / "out")
    assert not list(tmp_path.rglob("escape.txt"))
    assert len(list((tmp_path / "a" / "out").iterdir())) == 1


# --- bad input ---


def cut(text: str, count: int) -> str:
    return text[:-count]


@pytest.mark.parametrize(
    ("name", "change", "stream", "kept", "line"),
    [
        (sample.SCIHI_NAME, lambda t: t.replace("-1.9231", "x"), "Arm/SciHi", 1, 2),
        (sample.SCIHI_NAME, lambda t: cut(t, 10), "Arm/SciHi", 1, 3),
        (sample.SCIHI_NAME, lambda t: t.replace(",9,", ",9.5,"), "Arm/SciHi", 1, 3),
        (sample.SCIHI_NAME, lambda t: t.replace("0x21321", "0xZZ"), "Arm/SciHi", 1, 3),
        (sample.SCIHI_NAME, lambda t: t + "615088549,1,2\r\n", "Arm/SciHi", 2, 4),
        (sample.ARM_NAME, lambda t: t.replace("26.512", "26..512"), "Arm/Status", 1, 14),
        (sample.ARM_NAME, lambda t: t.replace("self_test    = 0", "self_test    ="), "Arm/Status", 1, 6),
        (sample.ARM_NAME, lambda t: t.replace("0.002\n", "0.002\nnoise\n"), "Arm/Status", 1, 18),
        (sample.ARM_NAME, lambda t: t + sample.ARM_STATUS[:40], "Arm/Status", 1, 19),
        (sample.ARM_NAME, lambda t: t.replace("ra_status.time ", "ra_status.tame "), "Arm/Status", 0, 1),
        (sample.HISTORY_NAME, lambda t: t.replace("602049999.5", "late"), "History/Arm/Status", 4, None),
    ],
)
def test_bad_lines_are_left_out_and_located(
    tmp_path: Path, name: str, change: Callable[[str], str], stream: str, kept: int, line: int | None
):
    texts = {sample.SCIHI_NAME: sample.science(), sample.ARM_NAME: sample.ARM_STATUS}
    text = change(texts.get(name, sample.history(5)))
    rec = open_text(tmp_path, name, text)
    assert len(rec[stream]) == kept
    assert rec.losses
    assert line is None or rec.losses[0].line == line
    with pytest.raises(ParseError):
        transect.open(tmp_path / name, strict=True)


def test_empty_fields_and_nan_are_not_measured(tmp_path: Path):
    rec = open_text(tmp_path, "eu.csv", sample.science().replace("-26.9399", "nan", 1).replace("14.5451", ""))
    assert np.isnan(rec["Arm/SciHi"]["tgrapple"]).tolist() == [True, False]
    assert np.isnan(rec["Arm/SciHi/Encoders"]["effort"][0]).tolist() == [False, True, False, False]
    assert rec.losses == ()


def test_line_ends_do_not_matter(tmp_path: Path):
    for ends in ("\n", "\r\n"):
        text = (sample.ARM_STATUS + sample.SYSTEM_STATUS).replace("\n", ends)
        rec = open_text(tmp_path, "status.txt", text)
        assert (len(rec["Arm/Status"]), len(rec["System/Status"]), rec.losses) == (1, 1, ())
        rec = open_text(tmp_path, "eu.csv", sample.science().replace("\r\n", ends))
        assert (len(rec["Arm/SciHi"]), rec.losses) == (2, ())


def test_a_status_that_ends_without_newline_is_whole(tmp_path: Path):
    rec = open_text(tmp_path, sample.ARM_NAME, sample.ARM_STATUS.rstrip("\n"))
    assert (len(rec["Arm/Status"]), rec.losses) == (1, ())


def test_clocks_that_jump_back_and_repeat_are_kept_in_order(tmp_path: Path):
    rows = (sample.MOVING, sample.SNAPSHOT, sample.SNAPSHOT)
    rec = open_text(tmp_path, "eu.csv", sample.science(rows=rows))
    assert rec["Arm/SciHi"].timing.backwards == 1
    assert rec["Arm/SciHi"].timing.repeated == 1
    assert rec.losses == ()


def test_a_missing_sol_folder_leaves_the_rest(folder: Path):
    shutil.rmtree(folder / "sol0209")
    rec = transect.open(folder)
    assert "Arm/SciHi" not in rec
    assert "Arm/Status" in rec


def test_an_empty_product_and_one_of_another_kind_are_reported(folder: Path):
    (folder / "sol0209" / sample.SCIHI_NAME).write_bytes(b"")
    (folder / "sol0209" / sample.SCILO_NAME).write_bytes(b"a,b\n1,2\n")
    rec = transect.open(folder)
    assert {loss.file for loss in rec.losses} == {
        f"sol0209/{n}" for n in (sample.SCIHI_NAME, sample.SCILO_NAME)
    }
    assert len(rec["Arm/Status"]) == 1


def test_a_label_without_its_table_is_reported(tmp_path: Path):
    (tmp_path / sample.LABEL_NAME).write_text(sample.label(FIELDS_58))
    rec = transect.open(tmp_path, format="ida")
    assert [loss.reason for loss in rec.losses] == ["the file that this label describes is not here"]


def test_other_text_is_not_recognised(tmp_path: Path):
    (tmp_path / "log.txt").write_text("hello\n")
    match = dict(recognise(tmp_path))["ida"]
    assert not match
    assert "has no ra_status" in match.reason


Times = dict[str, list[int]]


def times_of(folder: Path, name: str, content: bytes) -> tuple[Times, Recording]:
    (folder / name).write_bytes(content)
    rec = transect.open(folder, format="ida")
    return {stream.name: stream.t_ns.tolist() for stream in rec}, rec


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[bytes, Times]]:
    """Content and times of each product that our writer made."""
    base = tmp_path_factory.mktemp("written")
    ida.write(transect.open(sample.write_sample(base / "in")), base / "out")
    files = sorted(path for path in (base / "out").rglob("*.*") if path.is_file())
    contents = {path.name: path.read_bytes() for path in files}
    return {n: (c, times_of(tmp_path_factory.mktemp("one"), n, c)[0]) for n, c in contents.items()}


@given(data=st.data())
def test_of_a_mutated_product_no_row_is_lost_in_silence(
    data: st.DataObject, written: dict[str, tuple[bytes, Times]], tmp_path_factory: pytest.TempPathFactory
):
    name = data.draw(st.sampled_from(sorted(written)))
    content, whole = bytearray(written[name][0]), written[name][1]
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    times, rec = times_of(tmp_path_factory.mktemp("mutated"), name, bytes(content))
    assert sum(map(len, times.values())) >= sum(map(len, whole.values())) or rec.losses
    assert repr(rec)


@given(data=st.data())
def test_a_product_that_is_cut_anywhere_keeps_what_stands_before(
    data: st.DataObject, written: dict[str, tuple[bytes, Times]], tmp_path_factory: pytest.TempPathFactory
):
    name = data.draw(st.sampled_from(sorted(written)))
    content, whole = written[name]
    end = data.draw(st.integers(0, len(content)))
    times, rec = times_of(tmp_path_factory.mktemp("cut"), name, content[:end])
    at_line_end = content[:end].endswith((b"\r", b"\n")) or content[end : end + 1] in (b"", b"\r", b"\n")
    assert at_line_end or rec.losses
    for stream, kept in times.items():
        assert kept == whole[stream][: len(kept)]
