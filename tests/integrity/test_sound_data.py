"""What looks like a fault and is not: commands, robots that stand, batches, one message of two kinds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.commands import transect
from tests.integrity.recordings import START_NS, drive, winding, yard

from transect import formats
from transect.base.clocks import NS
from transect.integrity import VerdictTable, check
from transect.integrity.report import report_sensors
from transect.recording import Recording, Stream, stream_of_values
from transect.recording.stream import Role
from transect.types import Imu, JointState, LaserScan, NavFix, Odometry, Pose, Record, Twist


def at(seconds: np.ndarray) -> np.ndarray:
    return START_NS + np.rint(seconds * NS).astype(np.int64)


def anomalies(verdicts: VerdictTable) -> set[tuple[str, str, str]]:
    rows = verdicts.select(raw=("BAD", "SUSPECT"))
    return {(v.stream, v.check, v.reason) for v in rows}


def command(name: str, logged: str, kind: type = Twist) -> Stream:
    """Return a command that is repeated for half a minute."""
    t = np.arange(0, 30, 0.1)
    columns = {"vx": np.full(len(t), 0.5), "wz": np.full(len(t), 0.3)}
    stream = stream_of_values(name, at(t), columns, type=kind)
    return stream.replace(meta={"logged_type": logged})


def standing_odometry(rate: float = 20.0, until: float = 30.0) -> Stream:
    """Return an odometry that says the same all the time."""
    t = np.arange(0, until, 1 / rate)
    zeros = dict.fromkeys(("x", "y", "vx", "vy", "wz"), np.zeros(len(t)))
    return stream_of_values("odom", at(t), zeros, type=Odometry)


@pytest.mark.parametrize(
    ("name", "logged", "kind"),
    [
        ("/cmd_vel", "geometry_msgs/msg/TwistStamped", Twist),
        ("/base/velocity", "geometry_msgs/Twist", Twist),
        ("/arm/JointCommand", "sensor_msgs/msg/JointState", Record),
        ("Payload/ServoSetpoint", "", Record),
        ("/move_base/goal", "", Record),
        ("/rosout", "rosgraph_msgs/Log", Record),
        ("/rosout", "rcl_interfaces/msg/Log", Record),
        ("/tf", "tf/tfMessage", Record),
        ("/tf", "foxglove.FrameTransform", Record),
        ("/chatter", "std_msgs/msg/String", Record),
    ],
)
def test_commands_texts_and_frames_are_no_sensors(name: str, logged: str, kind: type) -> None:
    verdicts = check(Recording("robot", (command(name, logged, kind), *drive(30))))
    assert set(verdicts.column("stream")) == {"gps", "imu", "odom"}


@pytest.mark.parametrize(
    ("name", "logged"),
    [
        ("/goalie/imu", ""),
        ("/wheel_twist", "geometry_msgs/msg/TwistStamped"),
        ("/catalog", "my_msgs/Catalog"),
    ],
)
def test_what_is_only_called_alike_is_judged(name: str, logged: str) -> None:
    assert name in check(Recording("robot", (command(name, logged),)), checks=["T02"]).column("stream")


def poses(name: str, role: Role, until: float = 30.0) -> Stream:
    """Return poses that lack ten seconds."""
    t = np.arange(0, until, 0.1)
    t = t[(t < 10) | (t > 20)]
    columns = dict.fromkeys(("x", "y", "z", "qx", "qy", "qz"), np.zeros(len(t))) | {"qw": np.ones(len(t))}
    return stream_of_values(name, at(t), columns, type=Pose, role=role)


@pytest.mark.parametrize("role", ["truth", "estimate"])
def test_truth_and_estimates_are_not_judged_under_any_name(role: Role) -> None:
    verdicts = check(Recording("robot", (poses("poses/track", role), *drive(30))))
    assert set(verdicts.column("stream")) == {"gps", "imu", "odom"}
    judged = check(Recording("robot", (poses("poses/track", "measurement"), *drive(30))))
    assert ("poses/track", "T02", "GAP") in anomalies(judged)


@pytest.mark.parametrize("role", ["truth", "estimate"])
def test_truth_and_estimates_that_outlast_the_sensors_make_none_of_them_stop_early(role: Role) -> None:
    recording = Recording("robot", (poses("poses/track", role, 90.0), *drive(30)))
    assert anomalies(check(recording, checks=["T01"])) == set()


def test_check_of_a_trajectory_says_that_it_is_not_judged(tmp_path: Path) -> None:
    lines = [f"{1.7e9 + k / 10:.1f} {k / 10} 0 0 0 0 0 1" for k in range(100)]
    (tmp_path / "track.txt").write_text("\n".join(lines) + "\n")
    done = transect("check", tmp_path / "track.txt")
    assert done.returncode == 0
    assert "nothing to check" in done.stdout
    assert "(no timestamps, or not a sensor): Trajectory" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    "kept",
    [
        np.arange(600) % 3 != 1,
        (np.arange(600) < 200) | (np.arange(600) % 3 != 1),
        np.arange(600) % 5 != 2,
        np.random.default_rng(1).random(600) > 1 / 3,
    ],
    ids=["one of three", "one of three from then on", "one of five", "a third by chance"],
)
def test_lost_images_are_a_gap_and_no_clock_that_jumps_nor_jitter(kept: np.ndarray) -> None:
    """Steps of 103.7 ms, 0.5 ms apart from an even grid: what is left is at whole multiples of them."""
    t = np.arange(600) * 0.1037 + np.random.default_rng(0).normal(0, 5e-4, 600)
    speed = stream_of_values("speed", at(t[kept]), {"vx": np.arange(600.0)[kept]}, type=Twist)
    report = report_sensors(check(Recording("robot", (speed,)), checks=["T02", "T04", "T06"]))[0]
    assert {problem.reason for problem in report.problems} == {"GAP"}


def test_a_rate_between_two_steps_by_turns_is_no_other_rate() -> None:
    """A loop of 107 or 120 ms: which one the median of a few steps is, is chance; their mean stays."""
    steps = np.where(np.random.default_rng(7).random(3000) < 0.45, 0.107, 0.120)
    steps[:40:2] = 0.120
    odometry = stream_of_values("odom", at(np.cumsum(steps)), {"vx": np.arange(3000.0)}, type=Twist)
    assert anomalies(check(Recording("loop", (odometry,)), checks=["T03"])) == set()


@pytest.mark.parametrize("felt", [True, False])
def test_a_turn_that_falters_is_no_spike_if_the_gyroscope_felt_it(felt: bool) -> None:
    t, imu_t = np.arange(0, 20, 0.02), np.arange(0, 20, 0.01) + 0.003
    rng = np.random.default_rng(0)

    def turning(times: np.ndarray, falters: bool) -> np.ndarray:
        halt = ((times > 12.0) & (times < 12.04)) | ((times > 12.4) & (times < 12.44))
        return 1.2 - 0.5 * (halt & falters) + rng.normal(0, 0.01, len(times))

    zeros, still = np.zeros(len(t)), np.zeros(len(imu_t))
    wheels = {"vx": zeros + 0.5, "vy": zeros, "wx": zeros, "wy": zeros, "wz": turning(t, True)}
    gyro = dict.fromkeys(("acc_x", "acc_y", "gyro_x", "gyro_y"), still)
    gyro |= {"acc_z": still + 9.81, "gyro_z": 0.6 * turning(imu_t, felt)}
    odom = stream_of_values("odom", at(t), wheels, type=Odometry)
    imu = stream_of_values("imu", at(imu_t), gyro, type=Imu)
    found = anomalies(check(Recording("robot", (odom, imu)), checks=["S03"]))
    assert found == (set() if felt else {("odom", "S03", "SPIKES")})


def test_noise_is_learned_again_where_other_columns_have_values() -> None:
    """Another column is missing in the second half, as many as before: none of them got noisier."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=(4000, 6)) * [0.01, 0.01, 0.2, 1e-3, 1e-3, 1e-3] + [0, 0, 9.8, 0, 0, 0]
    values[:2000, 2] = values[2000:, 0] = np.nan
    names = [f"{kind}_{axis}" for kind in ("acc", "gyro") for axis in "xyz"]
    columns = dict(zip(names, values.T, strict=True))
    imu = stream_of_values("imu", at(np.arange(4000) / 100), columns, type=Imu)
    said = list(check(Recording("imu", (imu,)), checks=["S05"]))
    assert {verdict.raw for verdict in said} == {"OK", "UNKNOWN"}
    assert {verdict.raw for verdict in said[30:]} == {"OK"}


def test_a_robot_that_is_told_to_drive_and_stands_has_no_stuck_odometry() -> None:
    told = Recording("robot", (command("/cmd_vel", "geometry_msgs/msg/Twist"), standing_odometry()))
    assert anomalies(check(told, checks=["S01"])) == set()


def test_streams_in_the_order_of_a_tree_of_frames_are_named_as_not_checked(tmp_path: Path) -> None:
    recording = Recording("robot", (command("cmd_vel", ""), drive(10)["imu"]))
    formats.write(recording, tmp_path / "robot", "csv")
    done = transect("check", "robot", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "not checked (no timestamps, or not a sensor" in done.stdout
    assert "cmd_vel" in done.stdout


def test_a_robot_that_starts_late_in_a_window_was_not_stuck_before() -> None:
    """A receiver shows a metre of motion in the window in which the odometry ends a long stand."""
    t = np.arange(0, 20, 0.05)
    moved = np.clip(t - 12.4, 0, None) * 3.0
    odom = stream_of_values(
        "odom",
        at(t),
        {"x": moved, "y": 0 * t, "vx": 3.0 * (moved > 0), "vy": 0 * t, "wz": 0 * t},
        type=Odometry,
    )
    t = np.arange(0, 20, 0.2)
    rng = np.random.default_rng(0)
    north = np.clip(t - 12.4, 0, None) * 3.0 + 0.01 * rng.normal(size=len(t))
    fixes = {"lat": 0.6 + north / 6.371e6, "lon": 0.1 + 0 * t, "alt": 0 * t}
    gps = stream_of_values("gps", at(t), fixes, type=NavFix)
    assert anomalies(check(Recording("robot", (odom, gps)), checks=["S01"])) == set()
    stuck = odom.replace(source=standing_odometry(until=20.0).source)
    found = check(Recording("robot", (stuck, gps)), checks=["S01"]).select(stream="odom", state="BAD")
    assert min(found.column("t0_ns")) <= START_NS + 14 * NS


def test_an_odometry_that_crawled_and_then_stands_is_not_stuck() -> None:
    """It changes with every sample while a laser sees no motion yet: that is no noise."""
    t = np.arange(0, 30, 0.05)
    x = 0.02 * np.clip(t, 0, 12)
    odom = stream_of_values("odom", at(t), {"x": x, "y": 0.3 * x, "theta": 0.1 * x}, type=Odometry)
    recording = yard(30)
    found = check(Recording("robot", (odom, *recording)), checks=["S01"])
    assert anomalies(found) == set()


def test_two_kinds_of_samples_of_one_message_are_not_late_against_each_other() -> None:
    """An inertial navigation filters its velocity; its stamps are uneven, and the same for all it says."""
    recording = winding(40)
    imu = recording["imu"]
    rng = np.random.default_rng(3)
    t_ns = imu.t_ns + rng.integers(-500_000, 500_000, len(imu))
    rates = {name: np.asarray(imu[name]) for name in imu.columns}
    still = dict.fromkeys(("vx", "vy", "vz", "wx", "wy"), np.zeros(len(imu)))
    late = {**still, "wz": np.roll(rates["gyro_z"], 8)}  # 160 ms
    own = stream_of_values("imu", t_ns, rates, type=Imu)
    same = stream_of_values("velocity", t_ns, late, type=Odometry)
    assert anomalies(check(Recording("ins", (own, same)), checks=["T08"])) == set()
    other = stream_of_values("velocity", t_ns + 1_000_000, late, type=Odometry)
    apart = anomalies(check(Recording("two", (own, other)), checks=["T08"]))
    assert apart == {("imu", "T08", "LATENCY"), ("velocity", "T08", "LATENCY")}


def test_samples_that_are_stamped_in_batches_come_at_their_rate() -> None:
    t = np.arange(0, 40, 0.01)
    number = np.arange(len(t))
    stamped = np.where(t < 15, t, 0.04 * (number // 4) + 1e-4 * (number % 4))
    odom = stream_of_values("odom", at(stamped), {"vx": np.sin(t)}, type=Odometry)
    verdicts = check(Recording("robot", (odom,)), checks=["T03", "T04"])
    assert anomalies(verdicts.select(check="T03")) == set()
    assert "BAD" in verdicts.select(check="T04").column("state")


def test_an_even_rate_of_1_hz_is_known_after_ten_steps() -> None:
    t = np.concatenate([np.arange(15.0), np.arange(15.0, 96.0, 8.0)])
    joints = stream_of_values("joints", at(t), {"position": np.sin(t)}, type=JointState)
    verdicts = check(Recording("robot", (joints,)), checks=["T03"]).select(check="T03")
    rated = [v for v in verdicts if v.state != "UNKNOWN"]
    assert min(v.t0_ns for v in rated) <= START_NS + 11 * NS
    assert {v.reason for v in rated if v.state == "BAD"} == {"RATE"}
    assert {v.state for v in rated if v.t1_ns <= START_NS + 16 * NS} == {"OK"}


@pytest.mark.parametrize("seed", range(3))
def test_samples_that_are_lost_all_the_time_show_no_jump_of_the_clock(seed: int) -> None:
    """A motion capture of 300 Hz that loses its markers: steps are whole ones, printed with four digits."""
    rng = np.random.default_rng(seed)
    steps = np.ones(9000, np.int64)
    lossy = rng.random(9000) < 0.3
    lossy[:500] = False
    steps[lossy] += rng.geometric(0.08, int(lossy.sum()))
    t = np.round(np.cumsum(steps) / 300.0, 4)
    poses = stream_of_values("poses", at(t), {"vx": np.sin(t)}, type=Twist)
    found = anomalies(check(Recording("capture", (poses,)), checks=["T06"]))
    assert ("poses", "T06", "CLOCK_JUMP") not in found


def test_positions_that_jump_and_declare_nothing_disagree_with_nobody() -> None:
    t = np.arange(0, 60, 0.2)
    rng = np.random.default_rng(1)
    north = t + 0.02 * rng.normal(size=len(t)) + 40.0 * (np.arange(len(t)) % 50 == 49)
    columns = {"lat": 0.6 + north / 6.371e6, "lon": 0.1 + 0 * t, "alt": 0 * t}
    unknown = {"std_north": np.full(len(t), np.nan), "std_east": np.full(len(t), np.nan)}
    for declared in ({}, unknown):
        gps = stream_of_values("gps", at(t), {**columns, **declared}, type=NavFix)
        found = anomalies(check(Recording("alone", (gps,)), checks=["E03"]))
        assert found == {("gps", "E03", "POSITION_JUMP")}


@pytest.mark.parametrize(("kind", "reason"), [(0, "NOT_DECLARED"), (2, "COV_INVALID")])
def test_a_covariance_of_unknown_type_is_not_declared(kind: int, reason: str) -> None:
    t = np.arange(0, 10, 0.2)
    nothing = np.tile(np.diag([1.0, -2.0, 3.0]).reshape(-1), (len(t), 1))
    columns = {
        "lat": 0.6 + 0 * t, "lon": 0.1 + 0 * t, "position_covariance": nothing,
        "position_covariance_type": np.full(len(t), kind, np.uint8),
    }  # fmt: skip
    gps = stream_of_values("gps", at(t), columns, type=NavFix)
    assert set(check(Recording("alone", (gps,)), checks=["E02"]).column("reason")) == {reason}


def test_legs_that_stay_in_a_few_beams_of_a_standing_laser_are_no_cloud() -> None:
    """Alone in their direction, and at the same range in every sweep."""
    recording = yard(30)
    laser = recording["laser"]
    ranges = np.array(laser["ranges"].tolist())
    late = laser.t_ns >= START_NS + 12 * NS
    legs = np.arange(5, ranges.shape[1], ranges.shape[1] // 12)
    rng = np.random.default_rng(0)
    near = 1.5 + 0.03 * rng.normal(size=(int(late.sum()), len(legs))) + 0.1 * np.arange(len(legs))
    ranges[np.ix_(late, legs)] = np.minimum(ranges[np.ix_(late, legs)], near)
    columns = {name: laser[name] for name in laser.columns if name != "ranges"}
    changed = stream_of_values("laser", laser.t_ns, {**columns, "ranges": ranges}, type=LaserScan)
    changed = changed.replace(frame=laser.frame)
    others = tuple(stream for stream in recording if stream.name != "laser")
    found = check(recording.replace(streams=(changed, *others)), checks=["C02"])
    assert anomalies(found) == set()
