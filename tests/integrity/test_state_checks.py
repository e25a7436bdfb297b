"""Slip, satellite fixes, declared uncertainties, and mistakes of descriptions."""

from __future__ import annotations

import numpy as np
import pytest

from transect.base.clocks import NS
from transect.integrity import VerdictTable, check
from transect.recording import Recording, stream_of_values
from transect.simulation.faults import inject
from transect.types import Imu, JointState, LaserScan, NavFix, Odometry, Record, WheelState

from .recordings import START_NS, declaring, drive, winding, yard

NUMBERS = ["X05", "E01", "E02", "E03", "E04"]


def test_clean_drives_are_ok_and_no_check_fails() -> None:
    for recording, said in ((drive(), {"X05", "E03"}), (declaring(), set(NUMBERS))):
        verdicts = check(recording, checks=NUMBERS)
        assert verdicts.select(raw=("BAD", "SUSPECT")).column("check") == []
        assert verdicts.select(reason="CHECK_FAILED").column("note") == []
        assert set(verdicts.select(raw="OK").column("check")) == said


def declared(recording: Recording, fault: str, severity: float, stream: str, number: str) -> VerdictTable:
    changed, _ = inject(recording, fault, severity, seed=1, streams=[stream], start="+22s", end="+32s")
    found = check(changed, checks=[number]).select(raw=("BAD", "SUSPECT"))
    assert set(found.column("stream")) == {stream}
    assert min(found.column("t1_ns")) > START_NS + 22 * NS
    assert max(found.column("t0_ns")) < START_NS + 36 * NS
    return found


def test_a_lost_fix_and_what_nobody_declares_are_no_faults_of_a_covariance() -> None:
    changed, _ = inject(declaring(), "gnss_float", 1.0, streams=["gps"], start="+22s", end="+32s")
    assert check(changed, checks=["E02", "E04"]).select(raw=("BAD", "SUSPECT")).column("check") == []
    # In ROS a covariance of zeros from the start means that nobody knows it; that of an estimate means 0.
    unknown = np.zeros((40, 9))
    t_ns = START_NS + np.arange(40) * (NS // 10)
    imu = {f"{kind}_{axis}": np.zeros(40) for kind in ("acc", "gyro") for axis in "xyz"}
    silent = stream_of_values("imu", t_ns, {**imu, "gyro_covariance": unknown}, type=Imu)
    assert set(check(Recording("zero", (silent,)), checks=["E02"]).column("reason")) == {"NOT_DECLARED"}


def test_a_step_of_fixes_is_remembered_until_it_is_undone() -> None:
    stepped, _ = inject(drive(), "bias_step", 1.0, streams=["gps"], start="+16s", end="+30s")
    found = check(stepped, checks=["E03"]).select(raw=("SUSPECT", "BAD"))
    windows = sorted({(t - START_NS) // NS for t in found.column("t0_ns")})
    assert windows[0] in (15, 16)
    assert set(range(17, 30)) <= set(windows)
    assert windows[-1] <= 31
    assert "POSITION_JUMP" in found.column("reason")


def test_a_covered_sector_is_blocked_and_masked_and_the_sky_is_not() -> None:
    clear = yard()
    covered, _ = inject(clear, "occlusion", 0.8, seed=3, streams=["laser"], start="+10s", end="+22s")
    verdicts = check(covered, checks=["C05"])
    states = [verdict.state for verdict in verdicts]
    assert set(states[3:14]) == {"OK"}
    assert states[17:21] == ["BAD"] * 4
    assert set(states[26:]) == {"OK"}
    region = verdicts[18].region
    assert region is not None
    before, after = (np.isfinite(np.array(r["laser"]["ranges"]))[360:380] for r in (clear, covered))
    assert np.mean(region[before & ~after]) > 0.95
    assert not region[after].any()
    for other in (yard(12, walker=True), yard(12, speed=0.3)):
        assert {v.raw for v in check(other, checks=["C05"])} <= {"OK", "UNKNOWN"}


@pytest.mark.parametrize("gone", [(-88.0, -70.0), (-88.0, -76.0), (-91.0, 91.0)])
def test_a_thing_that_goes_away_before_the_sky_blocks_nothing_and_half_of_one_does(gone: tuple[float, float]):
    """18 degrees of a thing stand before the sky; mud takes part of them, or all that the laser sees."""
    base = yard(30)["laser"]
    ranges, first = np.array(base["ranges"]), np.degrees(base["start_angle"])
    angles = first[:, None] + np.arange(ranges.shape[1])
    thing, late = (angles > -88) & (angles < -70), (np.arange(len(ranges)) >= 300)[:, None]
    ranges = np.where(thing, 5.0, ranges)
    ranges = np.where(late & (angles > gone[0]) & (angles < gone[1]), np.nan, ranges)
    columns = {name: base.column(name) for name in base.columns}
    laser = stream_of_values("laser", base.t_ns, {**columns, "ranges": ranges.tolist()}, type=LaserScan)
    raws = [v.raw for v in check(Recording("yard", (laser,)), checks=["C05"])]
    leaves = gone == (-88.0, -70.0)
    assert set(raws[22:28]) == {"OK" if leaves else "SUSPECT" if gone[1] < 0 else "BAD"}


@pytest.mark.parametrize(
    ("fault", "severity", "stream", "number", "reason", "state"),
    [
        ("wheel_slip", 0.5, "odom", "X05", "SLIP", "SUSPECT"),
        ("wheel_slip", 0.9, "odom", "X05", "SLIP", "BAD"),
        ("gnss_spike", 1.0, "gps", "E03", "NIS", "BAD"),
        ("gnss_float", 1.0, "gps", "E03", "FIX_LOST", "SUSPECT"),
        ("covariance_indefinite", 0.1, "gps", "E02", "COV_INVALID", "BAD"),
        ("covariance_indefinite", 0.1, "nav", "E02", "COV_INVALID", "BAD"),
        ("covariance_zero", 0.5, "nav", "E02", "COV_INVALID", "BAD"),
        ("covariance_huge", 1.0, "gps", "E02", "COV_INVALID", "BAD"),
        ("inert_gate", 1.0, "gps", "E04", "GATE_INERT", "BAD"),
    ],
)
def test_a_fault_is_named(
    fault: str, severity: float, stream: str, number: str, reason: str, state: str
) -> None:
    found = declared(declaring(), fault, severity, stream, number)
    assert set(found.column("reason")) == {reason}
    assert state in found.column("state")


@pytest.mark.parametrize(
    ("fault", "factor", "state", "word", "within"),
    [
        ("inert_gate", 1 / 3, "BAD", "larger", 5),
        ("inert_gate", 1 / 2, "SUSPECT", "larger", 8),
        ("inert_gate", 3.0, "BAD", "smaller", 5),
        ("bias_step", None, "BAD", "larger", 3),
    ],
)
def test_errors_that_are_not_as_declared_are_named(
    fault: str, factor: float | None, state: str, word: str, within: int
) -> None:
    given = {} if factor is None else {"factor": factor}
    changed, _ = inject(
        declaring(), fault, 1.0, seed=1, streams=["gps"], start="+22s", end="+32s", parameters=given
    )
    found = check(changed, checks=["E01"]).select(stream="gps", raw=("BAD", "SUSPECT"))
    assert set(found.column("reason")) == {"NIS"}
    assert all(word in note for note in found.column("note"))
    assert START_NS + 22 * NS < min(found.column("t1_ns")) <= START_NS + (22 + within) * NS
    assert state in found.column("state")
    assert max(found.column("t0_ns")) < START_NS + 39 * NS  # it looks back for six seconds


def test_a_fusion_whose_innovations_are_too_large_is_named() -> None:
    squares = np.random.default_rng(0).chisquare(3, size=(150, 1)) / 3
    t_ns = START_NS + np.arange(150) * (NS // 5)
    worse = np.where(t_ns < START_NS + 20 * NS, 1.0, 6.0)
    columns = {"values.fix_nis": squares[:, 0] * worse, "values.fix_count": np.ones(150)}
    innovations = stream_of_values("innovations", t_ns, columns, type=Record)
    verdicts = list(check(Recording("run", (innovations,)), checks=["E01"]))
    assert {v.raw for v in verdicts[2:20]} == {"OK"}
    assert {(v.state, v.reason, v.note) for v in verdicts[24:]} == {
        ("BAD", "NIS", "fix has larger errors than declared")
    }


MISTAKES = ["S07", "X07", "X08", "X10"]


def test_a_well_described_robot_has_no_mistakes() -> None:
    for recording, said in ((winding(), {*MISTAKES}), (drive(), {"S07"})):
        verdicts = check(recording, checks=MISTAKES)
        assert verdicts.select(raw=("BAD", "SUSPECT")).column("check") == []
        assert verdicts.select(reason="CHECK_FAILED").column("note") == []
        assert set(verdicts.select(raw="OK").column("check")) == said


@pytest.mark.parametrize(
    ("fault", "stream", "axis", "number", "reason", "word"),
    [
        ("swapped_coordinates", "gps", -1, "S07", "DISAGREE", "exchange"),
        ("flipped_axis", "imu", 0, "X07", "EXTRINSIC", "left-handed"),
        ("flipped_axis", "imu", 1, "X07", "EXTRINSIC", "left-handed"),
        ("flipped_axis", "imu", 2, "X07", "EXTRINSIC", "flipped"),
        ("copied_stream", "gps2", -1, "X08", "DUPLICATE", "gps;"),
    ],
)
def test_a_mistake_of_a_description_is_named_with_the_fix(
    fault: str, stream: str, axis: int, number: str, reason: str, word: str
) -> None:
    recording = winding()
    if number == "S07":  # alone, by its turns
        recording = recording.replace(streams=tuple(s for s in recording if s.name != "gps2"))
    changed, _ = inject(
        recording, fault, 1.0, streams=[stream], parameters={"axis": axis} if "axis" in fault else {}
    )
    found = check(changed, checks=[number]).select(state="BAD")
    assert len(found) > 20
    assert set(found.column("stream")) == {stream}
    assert set(found.column("reason")) == {reason}
    assert all(word in note for note in found.column("note"))


@pytest.mark.parametrize(("severity", "state"), [(0.0, "OK"), (0.4, "SUSPECT"), (1.0, "BAD")])
def test_an_antenna_that_is_not_where_its_mount_says_is_named_with_the_fix(
    severity: float, state: str
) -> None:
    """Severity 1 is half a metre; the seed chooses the direction, mostly to the side."""
    recording = winding(40, arm=(0.4, -0.3))
    changed, _ = inject(recording, "lever_arm", severity, seed=2, streams=["gps"])
    found = [v for v in check(changed, checks=["X10"]) if v.stream == "gps"]
    assert {v.state for v in found[30:]} == {state}
    assert found[-1].evidence["across_m"] == pytest.approx(-0.3, abs=0.05)
    assert found[-1].evidence["along_m"] == pytest.approx(0.4, abs=0.05)
    if severity:
        assert {(v.reason, "correct its mount" in v.note) for v in found[30:]} == {("EXTRINSIC", True)}


@pytest.mark.parametrize(
    ("fault", "severity", "word"),
    [
        ("time_zone", 2 / 12, "take 2 h from its stamps"),
        ("time_zone", 5.75 / 12, "take 5.75 h from its stamps"),
        ("times_in_milliseconds", 1.0, "count ms, not ns; multiply them by 1e+06"),
        ("times_in_microseconds", 1.0, "count us, not ns; multiply them by 1000"),
    ],
)
def test_times_that_are_off_by_hours_or_by_a_factor_are_named_with_the_fix(
    fault: str, severity: float, word: str
) -> None:
    changed, _ = inject(winding(12), fault, severity, seed=1, streams=["gps2"])
    found = check(changed, checks=["T09"]).select(state="BAD")
    assert set(zip(found.column("stream"), found.column("reason"), strict=True)) == {("gps2", "META_TIME")}
    assert all(word in note for note in found.column("note"))


def test_a_latitude_beyond_the_pole_is_nowhere() -> None:
    gps = drive(12)["gps"]
    columns = {
        "lat": np.asarray(gps["lat"]),
        "lon": np.asarray(gps["lon"]) - 1.0,
        "alt": np.asarray(gps["alt"]),
    }
    sydney = Recording("sydney", (stream_of_values("gps", gps.t_ns, columns, type=NavFix),))
    assert {v.raw for v in check(sydney, checks=["S07"])} == {"OK"}
    swapped, _ = inject(sydney, "swapped_coordinates", 1.0, streams=["gps"])
    assert set(check(swapped, checks=["S07"]).column("reason")) == {"RANGE_LIMIT"}


@pytest.mark.parametrize("which", ["encoder", "potentiometer"])
def test_two_sensors_of_a_joint_that_part_disagree(which: str) -> None:
    arm = reaching()
    assert {v.raw for v in check(arm, checks=["X06"])} == {"OK"}
    changed, _ = inject(
        arm, f"{which}_drift", 1.0, streams=[f"Arm/{which.title()}s"], start="+4s", end="+20s"
    )
    found = check(changed, checks=["X06"]).select(state="BAD")
    assert set(found.column("stream")) == {"Arm/Encoders", "Arm/Potentiometers"}
    assert set(found.column("reason")) == {"DISAGREE"}
    assert START_NS + 12 * NS <= min(found.column("t0_ns")) < START_NS + 16 * NS  # 0.1 of 0.2 rad in 16 s


def test_an_encoder_that_sticks_is_told_by_the_potentiometers_of_its_arm() -> None:
    arm = reaching()
    idle = arm["Arm/Encoders"].replace(name="Other/Encoders")
    both = arm.replace(streams=(*arm.streams, idle))
    stuck, _ = inject(both, "stuck", 1.0, streams=["Arm/Encoders", "Other/Encoders"], start="+6s", end="+16s")
    found = check(stuck, checks=["S01"])
    assert set(found.select(raw=("SUSPECT", "BAD")).column("stream")) == {"Arm/Encoders"}
    assert "NO_PEER" in found.select(stream="Other/Encoders").column("reason")
    assert check(both, checks=["S01"]).select(raw=("SUSPECT", "BAD")).column("stream") == []


def reaching() -> Recording:
    """Return encoders and potentiometers of an arm that moves slowly, two joints of four."""
    t = np.arange(120) / 5
    angles = np.column_stack([0.5 * np.sin(0.2 * t), 0.3 * t / 24, 0 * t, 1 + 0 * t])
    t_ns = START_NS + np.rint(t * NS).astype(np.int64)
    noise = 0.01 * np.random.default_rng(0).normal(size=angles.shape)
    both = [("encoder", angles), ("potentiometer", angles + noise)]
    streams = (
        stream_of_values(f"Arm/{kind.title()}s", t_ns, {"position": q}, type=JointState, tag=kind)
        for kind, q in both
    )
    return Recording("arm", tuple(streams))


def test_a_stream_at_a_lower_rate_is_no_copy() -> None:
    imu = drive(8)["imu"]
    slow = imu.take(np.arange(len(imu)) % 10 == 0).replace(name="slow")
    for name, state in (("slow", {"OK"}), ("twin", {"SUSPECT", "BAD"})):
        other = slow if name == "slow" else imu.replace(name="twin")
        found = check(Recording("two", (imu, other)), checks=["X08"]).select(stream=name)
        assert {verdict.state for verdict in found} == state


def test_peers_that_are_silent_or_in_another_unit_make_no_slip() -> None:
    for fault, stream in (("late_start", "gps"), ("rates_in_degrees", "imu")):
        changed, _ = inject(drive(24), fault, 1.0, streams=[stream])
        verdicts = check(changed, checks=["X05", "S07"])
        assert verdicts.select(reason="CHECK_FAILED").column("note") == []
        assert verdicts.select(state="BAD").column("check") == []


def test_coordinates_exchanged_on_the_way_are_seen_by_a_receiver_alone() -> None:
    recording = Recording("alone", (drive()["gps"],))
    found = declared(recording, "swapped_coordinates", 1.0, "gps", "S07")
    assert len(found) == 10
    assert set(found.column("reason")) == {"DISAGREE"}


def test_deviations_of_a_turn_rate_that_grow_are_a_gate_that_is_inert() -> None:
    odom = drive()["odom"]
    columns = {name: np.asarray(odom[name]) for name in odom.columns}
    wheels = stream_of_values(
        "odom", odom.t_ns, {**columns, "std_wz": np.full(len(odom), 0.01)}, type=Odometry
    )
    found = declared(Recording("turning", (wheels,)), "covariance_huge", 0.5, "odom", "E04")
    assert set(found.column("reason")) == {"GATE_INERT"}


def test_of_three_streams_only_the_one_that_is_late_is_named() -> None:
    recording = winding()
    rates = {name: np.asarray(recording["imu"][name]) for name in recording["imu"].columns}
    second = stream_of_values("imu2", recording["imu"].t_ns, rates, type=Imu)
    three = Recording("three", (recording["imu"], recording["odom"], second))
    late, _ = inject(three, "latency", 1.0, streams=["odom"])
    assert set(check(late, checks=["T08"]).select(raw=("SUSPECT", "BAD")).column("stream")) == {"odom"}


def test_units_that_are_right_again_are_accepted_within_half_a_minute() -> None:
    wrong, _ = inject(drive(80), "acceleration_in_g", 1.0, streams=["imu"], start="+0s", end="+35s")
    found = check(wrong, checks=["S06"]).select(raw="BAD")
    assert min(found.column("t1_ns")) <= START_NS + 5 * NS
    assert START_NS + 34 * NS <= max(found.column("t0_ns")) < START_NS + 45 * NS


def test_a_stuck_inertial_sensor_has_no_wrong_unit() -> None:
    shaken = drive()
    columns = {name: np.array(shaken["imu"][name]) for name in shaken["imu"].columns}
    t_s = (shaken["imu"].t_ns - START_NS) / NS
    straight = np.abs(columns["gyro_z"]) < 0.01
    hardest = int(np.argmax(straight * np.abs(columns["acc_z"] - 9.81)))
    for column in columns.values():
        column[(t_s > 15) & (t_s < 30)] = column[hardest]
    stuck = Recording("stuck", (stream_of_values("imu", shaken["imu"].t_ns, columns, type=Imu),))
    found = check(stuck, checks=["S01", "S06"]).select(raw=("SUSPECT", "BAD"))
    assert set(found.column("reason")) == {"STUCK"}


def test_a_column_that_is_cut_off_is_saturated_though_it_was_larger_before() -> None:
    cut, _ = inject(drive(), "saturation", 0.5, streams=["imu"], start="+22s", end="+32s")
    found = check(cut, checks=["S02"]).select(raw=("SUSPECT", "BAD"))
    assert len(found) >= 10
    assert min(found.column("t1_ns")) > START_NS + 22 * NS
    assert max(found.column("t0_ns")) <= START_NS + 32 * NS


@pytest.mark.parametrize(("ends", "is_cut"), [((0.4, 0.4), True), ((0.4, 0.5), False), ((0.0, 0.0), False)])
def test_wheels_that_are_all_at_one_speed_are_cut_off(ends: tuple[float, float], is_cut: bool) -> None:
    """Noisy wheels that stay at one value: at the same one, at two, or at rest."""
    speeds = np.random.default_rng(0).normal(0.6, 0.02, (1000, 2))  # 50 Hz
    speeds[600:800] = ends
    t_ns = START_NS + np.arange(1000) * NS // 50
    wheels = stream_of_values("wheels", t_ns, {"wheel_velocity": speeds}, type=WheelState)
    found = check(Recording("wheels", (wheels,)), checks=["S02"]).select(raw=("SUSPECT", "BAD"))
    said = {(t - START_NS) // NS for t in found.column("t0_ns")}
    assert said == (set(range(12, 16)) if is_cut else set())


def test_a_coarse_sensor_at_rest_and_one_that_is_stuck_are_not_saturated() -> None:
    imu = drive()["imu"]
    coarse = {name: np.round(np.asarray(imu[name]) / 0.05) * 0.05 for name in imu.columns}
    quiet = Recording("coarse", (stream_of_values("imu", imu.t_ns, coarse, type=Imu),))
    assert check(quiet, checks=["S02"]).select(raw=("SUSPECT", "BAD")).column("stream") == []
    stuck, _ = inject(drive(), "stuck", 1.0, streams=["imu"])
    assert check(stuck, checks=["S02"]).select(raw=("SUSPECT", "BAD")).column("stream") == []


@pytest.mark.parametrize("step", [False, True])
def test_spikes_in_a_row_are_masked_and_a_receiver_that_stepped_aside_is_accepted_again(step: bool) -> None:
    rng, rows = np.random.default_rng(2), np.arange(400)  # 100 Hz
    off = np.zeros(len(rows), bool)
    off[300 : 400 if step else 305] = True
    metres = np.column_stack([0.01 * rows, np.zeros(len(rows))]) + rng.normal(0, 0.002, (len(rows), 2))
    metres[off] += np.array([4.0, -7.0]) if step else rng.uniform(5.0, 50.0, (5, 2))
    degrees = 0.7 + metres / 6_371_000.0 / np.array([1.0, np.cos(0.7)])
    columns = {"lat": degrees[:, 0], "lon": degrees[:, 1], "alt": np.zeros(len(rows))}
    fixes = stream_of_values("gps", START_NS + rows * (NS // 100), columns, type=NavFix)
    regions = [v.region for v in check(Recording("row", (fixes,)), checks=["E03"])]
    masked = np.concatenate([np.zeros(100, bool) if each is None else each[:, 0] for each in regions])
    assert np.flatnonzero(masked).tolist() == ([300, 301, 302] if step else [300, 301, 302, 303, 304])


def test_spikes_of_a_column_that_has_none_are_told_beside_one_that_has_some() -> None:
    """Turns are shaken all the time; then speeds have four spikes in a second, and two or one in others."""
    rng, count = np.random.default_rng(4), 3000
    columns = {name: rng.normal(0, 0.02, count) for name in ("vx", "wz")}
    columns["wz"][20::50] += 2.0
    for second in range(20, 50):
        spikes = 4 if second == 20 else 1 + second % 2
        columns["vx"][second * 50 + 12 + 8 * np.arange(spikes)] += 3.0
    t_ns = START_NS + np.arange(count) * (NS // 50)
    odom = stream_of_values("odom", t_ns, {**columns, "vy": np.zeros(count)}, type=Odometry)
    found = check(Recording("shaken", (odom,)), checks=["S03"]).select(raw=("SUSPECT", "BAD"))
    said = {(t - START_NS) // NS for t in found.column("t0_ns")}
    assert {20, *range(21, 50, 2)} <= said <= set(range(20, 51))
