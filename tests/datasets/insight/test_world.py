"""The InSight world: its archive opens, is consistent, and agrees with the ground truth.

The simulator does not call `robot/`, so that it is an independent test of it.
"""

import dataclasses
import hashlib
from pathlib import Path

import numpy as np
import pytest
from tests.commands import transect as command_line

import transect
from transect.datasets.insight.robot.consistency import check_recording, check_rows
from transect.datasets.insight.robot.faults import OPERATOR_FAULTS, detect, telemetry_of
from transect.datasets.insight.robot.parameters import SETS, Parameters
from transect.datasets.insight.robot.science import ScienceRows, phases_of
from transect.datasets.insight.robot.soil import SETTINGS as SOIL_SETTINGS
from transect.datasets.insight.robot.soil import indentations_of
from transect.errors import UsageError
from transect.recording import Recording
from transect.simulation.day import Day, WorldOptions, simulate, write_day

TELEMETRY = ("Arm/*", "System/*", "History/*")
LONG_MOVES = "pot"
"""As printed in the SIS, this fault occurs in every long move at low torque (`robot/faults`)."""


def a_day(story: str, seconds: float, **conditions: str) -> Day:
    options = WorldOptions(seconds, seed=1, streams=TELEMETRY, conditions={"story": story, **conditions})
    return simulate("insight", options)


@pytest.fixture(scope="module")
def soil_day() -> Day:
    """A minute of soil mechanics."""
    return a_day("soil", 60.0)


@pytest.fixture(scope="module")
def soil(soil_day: Day, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """The same, written and opened again."""
    folder = tmp_path_factory.mktemp("insight") / "day"
    write_day(soil_day, folder)
    return transect.open(folder)


@pytest.fixture(scope="module")
def broken() -> Day:
    """An arm with all faults that a story without deployment can have."""
    return a_day("imaging", 30.0, fault="encoder-pot, stalled, vref")


# The archive


def test_a_written_day_opens_without_loss(soil: Recording) -> None:
    assert soil.format == "ida"
    assert not [loss for stream in soil for loss in stream.losses]
    assert len(soil["Arm/SciHi"]) == 600
    assert len(soil["History/Arm/Status"]) == len(soil["History/System/Status"]) == 300  # SIS 5.1.2
    assert {"truth/joints", "truth/contact", "truth/sag", "truth/temperatures"} <= {s.name for s in soil}


def test_the_parameter_file_is_complete_and_says_what_is_invented(soil: Recording) -> None:
    sets = soil.conditions["parameters"]
    missing = [
        f"{name} {p.name}"
        for name, parameters in SETS.items()
        for p in parameters
        if p.name not in sets[name]
    ]
    assert missing == []
    said = sets["SIMULATION"]["invented"]
    assert "RA_ARM_PARAMS x_scoop" in said
    assert "RA_ARM_PARAMS dh.a" not in said


def test_the_recording_in_memory_is_the_one_on_disk(soil_day: Day, soil: Recording) -> None:
    memory = soil_day.recording
    assert memory.conditions["simulated"] is True
    for name in ("Arm/SciHi/Tool", "Arm/SciHi/Forces", "Arm/SciLo/Encoders"):
        for column in memory[name].columns:
            if column != "file":
                ours, read = np.asarray(memory[name].column(column)), np.asarray(soil[name].column(column))
                assert np.array_equal(ours, read, equal_nan=True), column


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    digests: list[str] = []
    for seed in (7, 7):
        folder = tmp_path / str(len(digests))
        options = WorldOptions(4.0, seed=seed, streams=TELEMETRY, conditions={"story": "imaging"})
        write_day(simulate("insight", options), folder)
        content = b"".join(f.name.encode() + f.read_bytes() for f in sorted(folder.rglob("*.*")))
        digests.append(hashlib.sha256(content).hexdigest())
    assert digests[0] == digests[1]


def test_another_seed_is_another_day(soil_day: Day) -> None:
    other = simulate("insight", WorldOptions(60.0, seed=2, streams=TELEMETRY, conditions={"story": "soil"}))
    contact = other.truth.tables["contact"], soil_day.truth.tables["contact"]
    assert not contact[0].equals(contact[1])


def test_a_condition_that_it_does_not_know_is_refused() -> None:
    with pytest.raises(UsageError, match="has no condition"):
        simulate("insight", WorldOptions(1.0, conditions={"weather": "dust"}))
    with pytest.raises(UsageError, match="story cannot be"):
        simulate("insight", WorldOptions(1.0, conditions={"story": "sleep"}))
    with pytest.raises(UsageError, match="no fault"):
        simulate("insight", WorldOptions(1.0, conditions={"fault": "rust"}))


# Is it true?


def test_sensors_agree_with_the_truth_to_their_resolution(soil: Recording) -> None:
    q = soil["truth/joints"].array("q1", "q2", "q3", "q4")
    count = 3.1416 / np.array([12500, 16000, 10000, 4000])  # rad_per_enc / gear_ratio, SIS 5.1.3.2
    assert (np.abs(soil["Arm/SciHi/Encoders"].column("position") - q) <= count / 2 + 5e-5).all()
    assert np.abs(soil["Arm/SciHi/Potentiometers"].column("position") - q).max() < 0.005
    warm = soil["truth/temperatures"]
    case = soil["Arm/SciHi"].array("tcase1", "tcase2", "tcase3", "tcase4")
    off = case - warm.array("case1", "case2", "case3", "case4")
    assert np.sqrt((off**2).mean()) < 0.2  # half of temp.m's 0.23 degC, and noise
    rotor = soil["Arm/SciHi"].array("trotor1", "trotor2", "trotor3", "trotor4")
    assert np.abs(rotor - warm.array("rotor1", "rotor2", "rotor3", "rotor4")).max() < 0.3


def test_the_sag_that_the_software_expects_is_nearly_the_true_one(soil: Recording) -> None:
    free = ~(soil["truth/contact"].column("normal") > 0.0)
    true, place = soil["truth/tool"], soil["Arm/SciHi/Tool"]
    off = place.array("x_enc_defl", "y_enc_defl", "z_enc_defl") - true.array("x", "y", "z")
    stiff = place.array("x_enc", "y_enc", "z_enc") - true.array("x", "y", "z")
    assert np.abs(off[free]).max() < 0.0008  # encoder counts, and 2 % of a sag of millimetres
    assert np.abs(stiff[free]).max() > 0.002


def test_forces_are_those_of_the_contact(soil: Recording) -> None:
    acts = np.array(soil["truth/contact"].column("act"))
    found = soil["Arm/SciHi/Forces"]
    pressing = (acts == "press") & np.isfinite(found.column("Fz"))
    for column, error in (("Fr", 0.3), ("Fz", 1.0)):
        off = found.column(column)[pressing] - soil["truth/contact"].column(column)[pressing]
        assert np.median(np.abs(off)) < error  # N
        # A motor whose current passes zero hides which way its friction acts: a few rows are wild.
        assert np.percentile(np.abs(off), 95) < 3 * error
    assert soil["truth/contact"].column("Fz").max() > 12.0


def test_forces_that_are_far_off_are_those_of_a_motor_without_current(soil: Recording) -> None:
    """Appendix D: within `current_delta` counts of no current, no torque; friction held the load alone."""
    sets, acts = soil.conditions["parameters"], np.array(soil["truth/contact"].column("act"))
    science, found = soil["Arm/SciHi"], soil["Arm/SciHi/Forces"].column("Fz")
    off = np.abs(found - soil["truth/contact"].column("Fz"))
    wild = np.isin(acts, ["press", "press again"]) & (off > 5.0)
    least = 1.5 * np.array(sets["RA_JOINT_PARAMS"]["current.m"])  # current_delta is one count
    silent = [
        (np.abs(science.column(f"cur{joint}")) <= least[joint - 1]) & science.column(f"motor_on_{joint}")
        for joint in (2, 3, 4)
    ]
    assert 0 < wild.sum() < 10
    assert np.any(silent, axis=0)[wild].all()


def test_indentations_give_the_stiffness_of_soil_and_arm_in_series(soil: Recording) -> None:
    press = next(i for i in indentations_of(soil, contact_force=1.0) if i.depth > 0.015)
    rows = slice(press.start, press.peak)
    contact, sag, tool = soil["truth/contact"], soil["truth/sag"], soil["truth/tool"]
    force = contact.column("Fz")[rows]
    low, high = (ratio * force.max() for ratio in SOIL_SETTINGS.fit_range)
    inside = (force > low) & (force < high)
    stiff_z = (tool.column("z") - sag.column("dz"))[rows]
    felt = np.polyfit(stiff_z[inside], force[inside], 1)[0]
    own = np.polyfit(contact.column("depth")[rows][inside], contact.column("normal")[rows][inside], 1)[0]
    assert press.loading.stiffness == pytest.approx(felt, rel=0.08)
    assert own > 1.2 * felt  # z_enc_defl does not know that the arm gives way to what it presses on
    assert press.unloading.stiffness > 2.0 * press.loading.stiffness
    assert press.force == pytest.approx(force.max(), abs=2.0)


# Does the archive agree with itself?


def test_every_derived_column_is_consistent(soil: Recording) -> None:
    verdicts = {name: check_recording(soil)[name] for name in ("Arm/SciHi", "Arm/SciLo")}
    assert {r.column: r.verdict for r in verdicts["Arm/SciHi"] if r.verdict != "consistent"} == {}
    # rows 1 s apart do not determine the control cycles between them
    left = {r.column for r in verdicts["Arm/SciLo"] if r.verdict != "consistent"}
    assert left == {f"{name}{joint}" for name in ("v", "trotor") for joint in (1, 2, 3, 4)}


def test_readings_that_the_sis_leaves_open_are_found(soil: Recording) -> None:
    remarks = {r.column: r.remark for r in check_recording(soil)["Arm/SciHi"]}
    assert "along the current" in remarks["tau2"]
    assert "CM_r multiplies" in remarks["trotor2"]
    assert "F_T as printed, gravity added" in remarks["Ft"]
    other = a_day("soil", 20.0, no_load="subtracted").recording
    found = {r.column: r for r in check_recording(other)["Arm/SciHi"]}
    assert found["tau2"].verdict == "consistent"
    assert "by fit_nl, subtracted" in found["tau2"].remark


@pytest.mark.parametrize("column", ["z_enc", "trotor2", "Fz"])
def test_a_spoilt_column_is_found(soil: Recording, column: str) -> None:
    rows, parameters = ScienceRows.of(soil, "Arm/SciHi"), Parameters.of(soil)
    spoilt = {"z_enc": rows.poses["enc"][:, 2], "trotor2": rows.rotor[:, 1], "Fz": rows.forces[:, 2]}[column]
    spoilt += np.round(0.004 * np.sin(np.arange(len(spoilt))), 4)
    verdicts = {r.column: r.verdict for r in check_rows(rows, parameters)}
    assert verdicts.pop(column) == "disagrees"
    assert "disagrees" not in verdicts.values()


# Faults


def test_a_sound_arm_has_no_fault(soil_day: Day, soil: Recording) -> None:
    parameters = Parameters.of(soil)
    for stream in ("Arm/SciHi", "Arm/Status", "History/Arm/Status", "System/Status"):
        telemetry = telemetry_of(soil, stream)
        assert {event.fault for event in detect(telemetry, parameters).events} <= {LONG_MOVES}
        assert detect(telemetry, parameters, OPERATOR_FAULTS).events == ()
    assert "faults" not in soil_day.truth.tables


def test_the_table_of_a_sound_minute_is_empty_but_by_the_letter(soil: Recording) -> None:
    assert soil.source is not None
    done = command_line("table", "faults", soil.source.path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("no faults; ")
    letter = command_line("table", "faults", soil.source.path, "--letter")
    assert letter.returncode == 4
    assert letter.stdout.count(" pot ") >= 10


def test_a_table_that_repeats_another_is_not_counted_again(soil: Recording) -> None:
    assert soil.source is not None
    done = command_line("table", "arm", soil.source.path)
    # 18 columns of all rows and 19 of the one tool, in Arm/SciHi and again in Arm/SciLo.
    assert done.stdout.endswith("37 columns are consistent; none disagrees.\n")


def test_a_stuck_pot_is_found_by_the_motion_of_the_encoder(soil: Recording) -> None:
    parameters, telemetry = Parameters.of(soil), telemetry_of(soil, "Arm/SciHi")
    motion = np.ptp(telemetry["enc"][:, 2])
    assert motion > 0.1  # rad: joint 3 moves
    stuck = telemetry["pot"].copy()
    stuck[:, 2] = stuck[0, 2]
    columns = {**telemetry.columns, "pot": stuck}
    found = detect(dataclasses.replace(telemetry, columns=columns), parameters, OPERATOR_FAULTS)
    assert {(event.fault, event.part) for event in found.events if event.fault == "pot"} == {
        ("pot", "joint 3")
    }


def check_fault(day: Day, fault: str, stream: str, labelled: str) -> None:
    """Find a fault in a stream on the samples that it affects in the truth."""
    found = detect(telemetry_of(day.recording, stream), Parameters.of(day.recording))
    event = next(event for event in found.events if event.fault == fault)
    table = day.truth.tables["faults"].to_pydict()
    labels = zip(table["stream"], table["index"], table["fault"], strict=True)
    rows = [index for name, index, planted in labels if name == labelled and planted == fault]
    assert rows
    assert min(rows) <= event.first <= min(rows) + 1
    assert event.count == pytest.approx(len(rows), abs=1)


@pytest.mark.parametrize(
    ("fault", "stream", "labelled"),
    [
        ("encoder-pot", "Arm/SciHi", "Arm/SciHi/Potentiometers"),
        ("stalled", "Arm/SciHi", "Arm/SciHi"),
        ("vref", "Arm/Status", "Arm/Status"),
    ],
)
def test_a_planted_fault_is_found_where_the_truth_has_it(
    broken: Day, fault: str, stream: str, labelled: str
) -> None:
    check_fault(broken, fault, stream, labelled)


def test_a_grapple_that_is_heated_on_and_on_overheats() -> None:
    check_fault(a_day("deploy", 20.0, fault="grapple-overheat"), "grapple-overheat", "Arm/SciHi", "Arm/SciHi")
    with pytest.raises(UsageError, match="not heated"):
        a_day("soil", 1.0, fault="grapple-overheat")


# Stories


def test_a_deployment_has_its_four_parts() -> None:
    day = a_day("deploy", 720.0)
    parts = [(p.name, p.payload) for p in phases_of(day.recording) if p.payload]
    assert parts == [(f"part {k}", "SEIS") for k in (1, 2, 3, 4)]  # SIS 2.6.2.2
    pulled = np.asarray(day.truth.tables["contact"].column("Fz").to_pylist())
    assert pulled.min() == pytest.approx(-8.9 * 3.711 * 0.997594, abs=0.1)  # seis_mass, RA_GRAVITY


def test_a_short_recording_holds_the_acts_that_matter() -> None:
    day = a_day("soil", 8.0)
    assert day.truth.tables["contact"].column("act").to_pylist() == ["press"] * 80
    assert len(day.recording["Arm/SciHi"]) == 80


def test_a_long_recording_holds_several_rounds() -> None:
    day = a_day("imaging", 450.0)
    assert len(day.recording["Arm/SciHi"]) == 4500
    acts = np.array(day.truth.tables["contact"].column("act").to_pylist())
    begun = (acts[1:] == "tier 1") & (acts[:-1] != "tier 1")
    assert begun.sum() == 2


def test_the_camera_sees_the_ground() -> None:
    day = simulate("insight", WorldOptions(5.0, seed=2, scale=0.0625, conditions={"story": "imaging"}))
    pictures = day.recording["IDC"]
    picture = pictures[0].payload
    assert picture.data.shape == (64, 64, 3)
    assert picture.data[..., 0].mean() > picture.data[..., 2].mean() + 20  # Mars is red
    assert picture.data[32:].std() > 3.0
    assert np.array_equal(picture.data, pictures[0].payload.data)
    T = day.recording.frames.lookup("Payload", "IDCOptical", pictures[0].t_ns)
    assert T[2, 2] > 0.5  # it looks down: z of Payload points down
