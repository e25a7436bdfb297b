"""What checks measure, against the formulas of their descriptions worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from transect.base.clocks import NS
from transect.integrity import check
from transect.integrity.config import read_config
from transect.recording import FrameTree, Recording, Stream, arrow, stream_of_values
from transect.types import (
    Image,
    Imu,
    JointState,
    LaserScan,
    NavFix,
    Odometry,
    Pose,
    Record,
    Twist,
    Verdict,
    WheelState,
)

from .recordings import START_NS, winding
from .test_what_is_missing import ACC, GRAVITY_M_S2, GYRO, NO_ACC, NO_GYRO, gps, imu, noise, steady, wheels


def judge(
    number: str, *streams: Stream, frames: FrameTree | None = None, config: str = "{}"
) -> list[Verdict]:
    """Return what a check says of the first stream."""
    recording = Recording("small", streams, frames=frames or FrameTree())
    verdicts = check(recording, read_config(config, "robot.yaml"), checks=[number])
    assert verdicts.select(reason="CHECK_FAILED").column("note") == []
    return list(verdicts.select(stream=streams[0].name))


def mounted(frame: str, attitude: Rotation | None = None, arm: tuple[float, ...] = (0, 0, 0)) -> FrameTree:
    frames, T = FrameTree(), np.eye(4)
    T[:3, 3] = arm
    T[:3, :3] = attitude.as_matrix() if attitude else np.eye(3)
    frames.add_static("base_link", frame, T)
    return frames


# State


@pytest.mark.parametrize(("alert", "raw"), [(0.0, "OK"), (10.0, "OK"), (5.0, "SUSPECT"), (3.0, "BAD")])
def test_the_bound_of_a_receiver_is_held_against_its_alert_limit(alert: float, raw: str) -> None:
    """6.18 sigma is 6.18 m; SUSPECT from the alert limit on, and BAD from twice that."""
    fixes = gps(std_north=1.0, std_east=0.5)
    last = judge("E03", fixes, config=f"checks: {{gnss: {{params: {{alert: {alert}}}}}}}")[-1]
    assert (last.raw, last.reason) == (raw, "" if raw == "OK" else "NIS")
    assert last.evidence["bound_m"] == pytest.approx(6.18)
    assert last.evidence.get("bound") == (pytest.approx(6.18 / alert) if alert else None)


@pytest.mark.parametrize(
    ("fixes", "lost", "raw"),
    [
        (["rtk fixed", "rtk float"], 1.0, "SUSPECT"),
        (["rtk fixed", "3d"], 2.0, "SUSPECT"),
        (["3d", "2d"], 3.0, "BAD"),
        (["3d", "none"], 3.0, "BAD"),
        (["differential", "3d"], 0.0, "OK"),
    ],
)
def test_steps_of_the_fix_type_count_from_the_best_one(fixes: list[str], lost: float, raw: str) -> None:
    """1 from RTK fixed to float, 2 from RTK to less, 3 for none; positions are not needed for that."""
    receiver = gps(lat=None, lon=None, fix=[fixes[0]] * 30 + [fixes[1]] * 30)
    found = judge("E03", receiver)
    assert {v.raw for v in found[:6]} <= ({"OK"} if fixes[0] not in ("2d", "none") else {"BAD"})
    assert (found[-1].evidence["lost"], found[-1].raw) == (lost, raw)


def test_a_receiver_without_fix_types_positions_and_deviations_is_not_judged() -> None:
    assert {v.reason for v in judge("E03", gps(lat=None, lon=None))} == {"TOO_FEW"}


def test_a_receiver_that_returns_after_a_tunnel_has_no_spike() -> None:
    """After 3 s the positions before lead nowhere: what they foretell would be hundreds of metres off."""
    before = gps(seconds=40)
    t_s = (before.t_ns - START_NS) / NS
    kept = (t_s < 20) | (t_s > 30)
    columns = {name: np.asarray(before[name])[kept] for name in ("lat", "lon", "alt")}
    columns["lon"] = columns["lon"] + np.where(t_s[kept] > 30, 300 / 6.371e6, 0.0)
    fixes = stream_of_values("gps", before.t_ns[kept], columns, type=NavFix)
    found = judge("E03", fixes)
    assert found[35].evidence["stepped_m"] == 0.0
    regions = [v.region for v in found if v.region is not None and v.t0_ns > START_NS + 31 * NS]
    assert not any(region.any() for region in regions)


@pytest.mark.parametrize(("sigma", "raw"), [(100.0, "OK"), (500.0, "SUSPECT"), (2000.0, "BAD")])
def test_deviations_by_which_nothing_is_meant_are_named(sigma: float, raw: str) -> None:
    """Limits 200 and 1000 m of the smallest deviation; a column that was never measured does not count."""
    fixes = gps(std_north=sigma, std_east=2 * sigma, std_down=np.nan)
    last = judge("E02", fixes)[-1]
    assert (last.raw, last.evidence["huge"]) == (raw, sigma)


def test_components_that_are_not_known_do_not_make_the_others_useless() -> None:
    """A deviation of 1e6 m is a usual way to say that a component is not known; the smallest one counts."""
    last = judge("E02", gps(std_north=0.02, std_east=1e6, std_down=1e6))[-1]
    assert (last.raw, last.evidence["huge"]) == ("OK", 0.02)
    two = {"pose_covariance": np.tile(1e12 * np.eye(6).ravel(), (240, 1))}
    two["twist_covariance"] = np.tile(1e-4 * np.eye(6).ravel(), (240, 1))
    odom = steady("odom", Odometry, {**two, "vx": 1.0}, 20)
    assert judge("E02", odom)[-1].evidence["huge"] == pytest.approx(0.01)


def test_a_list_that_is_no_matrix_is_no_covariance() -> None:
    assert {v.reason for v in judge("E02", imu(gyro_covariance=np.ones((600, 6))))} == {"NOT_DECLARED"}


def test_a_fusion_that_had_to_widen_what_is_declared_errs_by_the_factor_beyond_two() -> None:
    """A NIS of 1 per number is as declared; variances made eight times as large count four times."""
    names = {"values.fix_nis": 1.0, "values.fix_count": 1.0}
    for scale, wanted in ((1.0, 1.0), (2.0, 1.0), (8.0, 4.0)):
        run = steady("innovations", Record, {**names, "values.fix_scale": scale}, 5, 20)
        last = judge("E01", run)[-1]
        assert last.evidence["fix"] == pytest.approx(wanted)
        assert (last.raw == "OK") == (scale <= 2)


def test_stretches_of_fixes_do_not_go_over_a_change_of_their_type_or_a_pause() -> None:
    """A floating solution that is half a metre beside the fixed one has no large error of its own."""
    count = 600
    fixed = np.arange(count) < 300
    t_ns = START_NS + np.arange(count) * (NS // 20)  # faster than is used
    rng = np.random.default_rng(0)
    sigma = np.where(fixed, 0.01, 0.1)
    metres = rng.normal(0, 1, (count, 2)) * sigma[:, None] + np.where(fixed, 0.0, 5.0)[:, None]
    columns: dict[str, Any] = {
        "lat": 0.6 + metres[:, 0] / 6.371e6, "lon": -1 + metres[:, 1] / 6.371e6 / np.cos(0.6),
        "alt": np.zeros(count), "std_north": sigma, "std_east": sigma,
        "fix": np.where(fixed, "rtk fixed", "rtk float").tolist(),
    }  # fmt: skip
    found = judge("E01", stream_of_values("gps", t_ns, columns, type=NavFix))
    assert {v.raw for v in found[5:]} <= {"OK", "UNKNOWN"}
    assert found[12].raw == found[-1].raw == "OK"


def test_a_gate_of_fixes_is_as_wide_as_what_they_declare() -> None:
    """sqrt(9.21) sigma: 15 m of deviation let pass 46 m; SUSPECT from 25 m on, BAD before 100 m."""
    for sigma, raw in ((5.0, "OK"), (15.0, "SUSPECT"), (40.0, "BAD")):
        fixes = gps(std_north=sigma, std_east=sigma, fix=["3d"] * 60)
        last = judge("E04", fixes)[-1]
        assert (last.raw, last.evidence["step"]) == (raw, pytest.approx(np.sqrt(9.21) * sigma))


def test_fixes_that_were_never_positions_have_no_scatter_and_their_gate_is_judged_all_the_same() -> None:
    last = judge("E04", gps(lat=np.nan, lon=np.nan, std_north=40.0, std_east=40.0, fix=["3d"] * 60))[-1]
    assert (last.raw, last.reason) == ("BAD", "GATE_INERT")


# Signals


@pytest.mark.parametrize(("part", "raw"), [(0.0, "OK"), (0.04, "SUSPECT"), (0.2, "BAD")])
def test_a_known_end_of_the_range_counts_for_any_history(part: float, raw: str) -> None:
    """SUSPECT from 1 % of the samples of a window on, BAD from 10 %; 2 g are 19.6 m/s2."""
    force = np.tile(GRAVITY_M_S2 + np.linspace(0, 1, 50), 12)
    force[np.arange(600) % 50 < round(50 * part)] = 19.7  # above the end: it is cut off in filters later
    config = "checks: {saturation: {params: {acceleration: 19.6}}}"
    found = judge("S02", imu(acc_x=force), config=config)
    assert {v.raw for v in found} == {raw}
    assert found[-1].evidence["share"] == pytest.approx(part)


@pytest.mark.parametrize(("factor", "raw"), [(1.0, "OK"), (2.0, "SUSPECT"), (5.0, "BAD")])
def test_noise_is_held_against_the_data_sheet_from_the_first_windows_on(factor: float, raw: str) -> None:
    """Densities N give sigma = N sqrt(f): at 100 Hz ten times N. Limits 1.5 and 3."""
    columns: dict[str, Any] = {name: noise(factor * 0.002, seed=k) for k, name in enumerate(GYRO)}
    columns |= {
        name: noise(factor * 0.02, GRAVITY_M_S2 * (name == "acc_z"), 9 + k) for k, name in enumerate(ACC)
    }
    config = "checks: {noise: {params: {gyro_density: 0.0002, acc_density: 0.002}}}"
    found = judge("S05", imu(rate=100, **columns), config=config)
    assert {v.raw for v in found[4:8]} == {raw}
    assert found[6].evidence["ratio"] == pytest.approx(factor, rel=0.25)


def test_an_accelerometer_without_gyroscopes_is_weighed_and_gyroscopes_alone_are_not() -> None:
    """At rest ||a| - g|, limits 0.3 and 1 m/s2."""
    light = judge("S06", imu(acc_z=noise(0.02, 9.3), **NO_GYRO))[2]
    assert (light.raw, light.evidence["weight"]) == ("SUSPECT", pytest.approx(9.80665 - 9.3, abs=0.02))
    assert "turn" not in light.evidence
    fast = judge("S06", imu(gyro_z=17.0, **NO_ACC))[2]
    assert (fast.raw, fast.evidence["turn"]) == ("SUSPECT", pytest.approx(17.0, rel=0.01))
    assert "weight" not in fast.evidence


def test_a_column_that_never_had_a_value_is_not_missing_and_one_that_had_is() -> None:
    """A constant that stands for none counts as none; the worst column decides."""
    late = np.arange(60) >= 30
    fixes = gps(alt=np.nan, lat=np.where(late & (np.arange(60) % 5 == 0), -9999.0, 0.6))
    found = judge("S04", fixes)
    assert {v.raw for v in found[:6]} == {"OK"}
    assert {(v.raw, v.reason, v.evidence["share"]) for v in found[6:]} == {("BAD", "NAN", 0.2)}


@pytest.mark.parametrize(("lat", "reason"), [(np.pi / 2, ""), (1.7, "RANGE_LIMIT")])
def test_a_latitude_beyond_the_pole_is_nowhere(lat: float, reason: str) -> None:
    last = judge("S07", gps(lat=lat, lon=0.3))[-1]
    assert last.reason == reason
    assert ("exchanged" in last.note) == bool(reason)


def test_a_receiver_that_has_another_ones_position_exchanged_is_named() -> None:
    other = gps().replace(name="gps2")
    swapped = gps(lat=-1.0, lon=lambda t: 0.6 + t / 6.371e6)
    last = judge("S07", swapped, other)[-1]
    assert (last.raw, last.reason, last.evidence["exchanged"]) == ("BAD", "DISAGREE", 1.0)


def test_joints_with_speeds_only_do_not_count_as_at_rest() -> None:
    """Without positions nothing tells that they stood still: speeds that repeat for long are not stuck."""
    turning = np.random.default_rng(0).normal(0, 0.1, (300, 2))
    turning[150:] = 0.0
    joints = steady("arm/encoder", JointState, {"velocity": turning}, 10, 30)
    assert {v.raw for v in judge("S01", joints)} <= {"OK", "UNKNOWN"}


# Axes, mounts and copies


@pytest.mark.parametrize(("degrees", "raw"), [(0, "UNKNOWN"), (125, "SUSPECT"), (180, "BAD")])
def test_an_inertial_sensor_that_is_mounted_upside_down_is_named(degrees: float, raw: str) -> None:
    """`down` is minus the cosine between acceleration and z of the body: 0.57 for 125 degrees."""
    frames = mounted("box", Rotation.from_euler("x", degrees, degrees=True))
    last = judge("X07", imu(frame="box"), frames=frames)[-1]
    assert last.raw == raw
    if degrees:
        assert last.evidence["down"] == pytest.approx(-np.cos(np.radians(degrees)), abs=0.01)
        assert "upside down" in last.note


@pytest.mark.parametrize(("degrees", "raw"), [(0.2, "OK"), (1.0, "SUSPECT"), (10.0, "SUSPECT")])
def test_gravity_that_turns_on_a_robot_that_stands_is_suspect_at_most(degrees: float, raw: str) -> None:
    """Limits 0.5 and 2 degrees; without another range sensor the robot may have been tilted."""
    turned = np.radians(degrees) * (np.arange(600) >= 300)
    force = {"acc_x": GRAVITY_M_S2 * np.sin(turned), "acc_z": GRAVITY_M_S2 * np.cos(turned)}
    found = judge("X04", imu(**force, acc_y=noise(0.001)), wheels(speed=0.0))
    assert {v.reason for v in found[:3]} == {"LEARNING"}
    assert {v.raw for v in found[3:6]} == {"OK"}
    assert {v.raw for v in found[7:]} == {raw}
    assert found[-1].evidence["turned"] == pytest.approx(degrees, abs=0.05)


def test_what_was_felt_before_a_drive_is_learned_again_after_it() -> None:
    """A robot that drives up a slope and stands there has not been knocked."""
    slope = np.radians(8.0) * (np.arange(1000) >= 450)
    force = {"acc_x": GRAVITY_M_S2 * np.sin(slope), "acc_z": GRAVITY_M_S2 * np.cos(slope)}
    drives = wheels(speed=lambda t: np.where((t >= 8) & (t < 11), 1.0, 0.0), seconds=20)
    found = judge("X04", imu(20, **force), drives)
    assert {v.reason for v in found[8:11]} == {"MOVING"}
    assert {v.reason for v in found[11:14]} == {"LEARNING"}
    assert {v.raw for v in found[14:]} == {"OK"}


def test_an_arm_needs_turns_an_odometry_and_something_that_shows_turns() -> None:
    """The speed of an antenna in a turn is s v - w y: without w or v nothing tells y."""
    recording = winding()
    without = [recording["gps"], recording["imu"]]
    assert judge("X10", *without, frames=recording.frames)[-1].reason == "TOO_FEW"
    rates = {name: np.asarray(recording["odom"][name]) for name in ("vx", "vy", "vz")}
    odom = stream_of_values("odom", recording["odom"].t_ns, rates, type=Odometry)
    assert judge("X10", recording["gps"], odom, frames=recording.frames)[-1].reason == "NO_PEER"
    falling = imu(40, acc_z=noise(0.02), gyro_z=0.3)  # nothing determines which way is up
    assert judge("X10", recording["gps"], falling, frames=recording.frames)[-1].reason == "NO_PEER"
    straight = [gps(40, frame="antenna"), wheels(seconds=40)]
    assert judge("X10", *straight, frames=recording.frames)[-1].reason == "NO_TURNS"


def test_a_stream_at_a_lower_rate_is_no_copy_and_a_copy_with_later_stamps_is_one() -> None:
    first = imu(20)
    rows = np.arange(0, len(first), 4)
    kept = {name: np.asarray(first[name])[rows] for name in (*ACC, *GYRO)}
    for delay_ns, raw in ((0, "OK"), (3_000_000, "BAD")):
        slow = stream_of_values("slow", first.t_ns[rows] + delay_ns, kept, type=Imu)
        verdicts = check(Recording("two", (first, slow)), checks=["X08"])
        last = list(verdicts.select(stream="slow"))[-1]
        assert last.raw == raw
        assert ("lower rate" in last.note) == (raw == "OK")
        assert {v.reason for v in verdicts.select(stream="imu")} == {"NO_PEER"}


def test_scans_of_different_lengths_are_compared_row_by_row() -> None:
    """Two lasers whose scans have 3 to 5 beams: noise differs, a copy is the same to the last bit."""

    def laser(name: str, seed: int) -> Stream:
        rng = np.random.default_rng(seed)
        ranges = [rng.uniform(2, 9, 3 + k % 3) for k in range(120)]
        columns = {"ranges": arrow.ragged(ranges), "start_angle": -1.0, "angle_increment": 0.1}
        return steady(name, LaserScan, columns)

    for seed, raw in ((1, "OK"), (0, "BAD")):
        verdicts = check(Recording("two", (laser("a", 0), laser("b", seed))), checks=["X08"])
        assert {v.raw for v in verdicts.select(stream="b")} == {raw}


def test_values_that_do_not_change_do_not_show_a_copy() -> None:
    zeros: dict[str, Any] = dict.fromkeys((*ACC, *GYRO), 0.0)
    two = (imu(**zeros), imu(**zeros))
    verdicts = check(Recording("two", (two[0], two[1].replace(name="other"))), checks=["X08"])
    assert {v.reason for v in verdicts.select(stream="other")} == {"AT_REST"}


# Slip


@pytest.mark.parametrize("kind", ["path", "velocity"])
def test_an_estimate_of_another_sensor_shows_slip_once_it_agreed_with_the_wheels(kind: str) -> None:
    """s = 1 - v_ref / v_wheel: wheels of 1 m/s while a visual odometry goes on by 0.5 m/s."""
    seconds = 30
    pace = np.where(np.arange(10 * seconds) < 180, 1.0, 0.5)
    way = np.concatenate([[0.0], np.cumsum(pace[:-1]) / 10])
    columns: dict[str, Any] = {"x": way, "y": 0.0} if kind == "path" else {"vx": pace, "x": way, "y": 0.0}
    still = dict.fromkeys(("z", "qx", "qy", "qz"), 0.0)
    visual = steady("vo", Pose, {**columns, **still, "qw": 1.0}, 10, seconds, role="estimate")
    found = judge("X05", wheels(seconds=seconds), visual)
    assert {v.raw for v in found[8:17]} == {"OK"}
    assert {(v.raw, v.reason) for v in found[22:]} == {("BAD", "SLIP")}
    assert found[-1].evidence["measured"] == pytest.approx(0.5, abs=0.02)
    alone = judge("X05", wheels(speed=2.0, seconds=seconds), visual)[-1]
    assert (alone.raw, alone.reason) == ("UNKNOWN", "LEARNING")  # it never agreed with these wheels


@pytest.mark.parametrize("size", [0.0, 100.0])
def test_gyroscopes_that_do_not_know_where_up_is_show_no_turn_slip(size: float) -> None:
    sensor = imu(20, acc_x=noise(0.02), acc_z=noise(0.02, size), gyro_z=1.0)
    assert all("turn" not in v.evidence for v in judge("X05", wheels(turn=0.0, seconds=20), sensor))
    known = judge("X05", wheels(turn=0.0, seconds=20), imu(20, gyro_z=noise(0.01, 1.0)))[-1]
    assert known.evidence["turn"] == pytest.approx(1.0, abs=0.02)


# Times


def pictures(stamps_ns: np.ndarray, names: list[str]) -> Stream:
    """Return images whose files have names; nothing loads them."""
    return Stream("camera", Image, arrow.table(stamps_ns, {"payload": arrow.strings(names)}))


@pytest.mark.parametrize(
    ("shift_s", "raw", "word"),
    [(0.0, "OK", ""), (0.25, "SUSPECT", ""), (2.0, "BAD", ""), (3600.0 * 11, "BAD", "+11.00 h apart")],
)
def test_names_of_files_are_held_against_stamps(shift_s: float, raw: str, word: str) -> None:
    """Limits 0.01 and 0.5 s; whole quarters of an hour are a time zone; underscores are decimal points."""
    t_ns = START_NS + np.arange(40) * (NS // 4)
    named = t_ns + round(shift_s * NS)
    for dot in "._":
        names = [f"left/{t // NS}{dot}{t % NS // 1000:06d}.png" for t in named.tolist()]
        last = judge("T09", pictures(t_ns, names))[-1]
        assert last.raw == raw
        assert last.evidence["name_minus_stamp_s"] == pytest.approx(shift_s)
        assert word in last.note
        assert ("time zone" in last.note) == bool(word)


def test_names_that_are_rounded_or_count_frames_contradict_nothing() -> None:
    """The last digit does not count, rounded or cut off; 0000000012 is an image, not a time of 1970."""
    t_ns = START_NS + np.arange(40) * (NS // 4)
    for tenths in (round, int):
        names = [f"{tenths(t / NS * 10) / 10:.1f}.png" for t in t_ns.tolist()]
        assert {v.evidence["name"] for v in judge("T09", pictures(t_ns, names))} == {0.0}
    counted = [f"{k:010d}.png" for k in range(40)]
    assert {v.reason for v in judge("T09", pictures(t_ns, counted))} == {"NO_METADATA"}


@pytest.mark.parametrize(("clock", "raw"), [("utc", "BAD"), ("device", "UNKNOWN")])
def test_a_clock_that_is_far_too_fast_is_of_another_kind_unless_it_says_utc(clock: str, raw: str) -> None:
    """Stamps that run at twice the speed of the log drift by 500 000 ppm; no quartz is 1000 ppm off."""
    t_ns = START_NS + np.arange(600) * (NS // 10)
    log_ns = START_NS + (t_ns - START_NS) // 2 + 1_000_000
    columns = dict.fromkeys((*ACC, *GYRO), np.zeros(600))
    last = judge("T07", stream_of_values("imu", t_ns, columns, type=Imu, clock=clock, log_ns=log_ns))[-1]
    assert (last.raw, last.reason) == (raw, "CLOCK_DRIFT" if raw == "BAD" else "OTHER_TIME")


def test_poses_that_come_when_they_are_ready_have_no_gaps_and_no_rate() -> None:
    rng = np.random.default_rng(0)
    t_ns = START_NS + np.cumsum(rng.uniform(0.02, 0.4, 200) * NS).astype(np.int64)
    columns = {name: np.zeros(200) for name in ("x", "y", "z", "qx", "qy", "qz", "qw")}
    poses = stream_of_values("vo", t_ns, columns, type=Pose, role="measurement")
    for number in ("T02", "T03", "T04"):
        assert judge(number, poses)[-1].reason == "IRREGULAR", number


def test_poses_that_come_at_a_pace_may_have_gaps_and_no_lost_samples() -> None:
    """Nobody promised their pace: a silence of 15 steps is a gap, one of two steps is nothing."""
    t_s = np.arange(300) / 10
    t_s[150:] += 0.1
    t_s[250:] += 1.5
    columns = {name: np.zeros(300) for name in ("x", "y", "z", "qx", "qy", "qz", "qw")}
    stamps = START_NS + np.rint(t_s * NS).astype(np.int64)
    found = judge("T02", stream_of_values("vo", stamps, columns, type=Pose, role="measurement"))
    assert [v.raw for v in found[2:24]] == ["OK"] * 22
    assert "BAD" in {v.raw for v in found[24:28]}
    assert all("lost" not in v.evidence for v in found)


def test_a_sensor_that_goes_on_at_another_rate_has_lost_no_samples() -> None:
    """Of a sensor of 10 Hz that measures at 4 Hz from now on no step is usual: that is its rate (T03)."""
    t_s = np.concatenate([np.arange(100) / 10, 10 + np.arange(40) / 4])
    stamps = START_NS + np.rint(t_s * NS).astype(np.int64)
    fixes = stream_of_values("gps", stamps, {n: np.zeros(140) for n in ("lat", "lon", "alt")}, type=NavFix)
    last = judge("T02", fixes)[-1]
    assert (last.raw, last.evidence["lost"]) == ("OK", 0.0)
    assert judge("T03", fixes)[-1].reason == "RATE"


def test_partly_known_wheels_move_by_the_known_part() -> None:
    """Wheels of a column each; of two the known one gives the speed."""
    rims = np.column_stack([np.ones(240), np.full(240, np.nan)])
    legs = steady("legs", WheelState, {"wheel_velocity": rims}, 20)
    fixes = gps()
    last = judge("X05", legs, fixes)[-1]
    assert last.evidence["speed_m_s"] == pytest.approx(1.0)
    assert last.evidence["measured"] == pytest.approx(0.0, abs=0.05)


def test_a_twist_without_velocities_does_not_show_motion() -> None:
    """S01 asks whether the robot moves meanwhile: a twist with turn rates alone that is at rest says no."""
    fixes = gps(lat=0.6, lon=-1.0, seconds=20)
    for columns, raw in (({"wz": 0.0}, "OK"), ({"wz": 0.5}, "BAD"), ({"temperature": 1.0}, "UNKNOWN")):
        twist = steady("twist", Twist, columns, 10, 20)
        assert judge("S01", fixes, twist)[-1].raw == raw, columns
