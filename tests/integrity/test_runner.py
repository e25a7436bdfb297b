"""Checks over recordings: windows, states, causality, determinism, what people configure."""

from __future__ import annotations

import sys
import warnings
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.integrity.recordings import START_NS, drive

from transect.base import plugins
from transect.base.clocks import NS
from transect.base.plugins import Plugin
from transect.errors import ParseError
from transect.integrity import Check, Finding, Limit, Unknown, VerdictTable, Window, check
from transect.integrity.catalogue import describe, markdown_table
from transect.integrity.config import Config, load_config, read_config
from transect.integrity.report import axis_of, report_sensors
from transect.integrity.runner import Job
from transect.integrity.table import SCHEMA, json_schema, to_dict
from transect.integrity.windows import Grid, WindowedStream
from transect.recording import Recording, stream_of_values
from transect.simulation.faults import inject
from transect.types import Imu, JointState, NavFix, Odometry, Twist, WheelState


@cache
def clean() -> VerdictTable:
    return check(drive())


def test_windows_of_every_stream_and_check_tile_the_session() -> None:
    rows: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for verdict in clean():
        rows.setdefault((verdict.stream, verdict.check), []).append((verdict.t0_ns, verdict.t1_ns))
    for windows in rows.values():
        starts, ends = zip(*windows, strict=True)
        assert starts[0] == START_NS
        assert starts[1:] == ends[:-1]
    assert len({tuple(windows) for windows in rows.values()}) == 1  # of the session, not of the stream


def test_a_clean_drive_has_no_bad_and_no_failed_check() -> None:
    assert clean().select(raw=("BAD", "SUSPECT")).column("check") == []
    assert clean().select(reason="CHECK_FAILED").column("note") == []
    assert {s: {v.state for v in vs} for s, vs in clean().by_sensor.items()} == (
        {"gps": {"OK"}, "imu": {"OK"}, "odom": {"OK"}}
    )


FAULTS: list[tuple[str, str, float, str, str, dict[str, float]]] = [
    ("dropout", "imu", 0.5, "T02", "GAP", {}),
    ("late_start", "imu", 0.5, "T01", "LATE_START", {}),
    ("early_stop", "gps", 0.9, "T01", "EARLY_STOP", {}),
    ("clock_jump", "imu", 0.3, "T06", "CLOCK_JUMP", {}),
    ("clock_drift", "imu", 1.0, "T07", "CLOCK_DRIFT", {}),
    ("latency", "imu", 0.5, "T08", "LATENCY", {}),
    ("stuck", "imu", 0.5, "S01", "STUCK", {}),
    ("noise", "imu", 1.0, "S05", "NOISE", {"factor": 6.0}),
    ("bias_step", "imu", 1.0, "S05", "BIAS", {}),
    ("gnss_spike", "gps", 1.0, "S03", "SPIKES", {}),
    ("other_rate", "imu", 0.3, "T03", "RATE", {}),
    ("spikes", "odom", 1.0, "S03", "SPIKES", {}),
    ("jitter", "imu", 0.4, "T04", "JITTER", {}),
    ("disorder", "odom", 0.4, "T05", "BACKWARD", {}),
    ("repeated_rows", "imu", 0.4, "T05", "DUPLICATE", {}),
    ("saturation", "imu", 0.3, "S02", "SATURATED", {}),
    ("nan", "gps", 0.4, "S04", "NAN", {}),
    ("acceleration_in_g", "imu", 1.0, "S06", "UNIT", {}),
]


def test_repeated_stamps_are_over_when_they_are_over() -> None:
    recording, _ = inject(drive(40), "repeated_rows", 0.5, streams=["gps"], start="+10s", end="+20s")
    found = check(recording, checks=["T05"]).select(raw=("SUSPECT", "BAD"))
    assert START_NS + 18 * NS <= max(found.column("t0_ns")) <= START_NS + 20 * NS


@pytest.mark.parametrize(("back", "reason"), [(0.0, "DUPLICATE"), (0.14, "BACKWARD")])
def test_stamps_that_repeat_for_seconds_are_no_jump_and_print_nothing(
    back: float, reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """A line through equal stamps has no slope: least squares fail, and LAPACK writes to the terminal."""
    steps = np.arange(60) / 10
    last = steps[-1]
    seconds = np.concatenate([steps, np.full(60, last), last + 0.1 + 0.04 - 2 * back + steps])
    t_ns = START_NS + np.rint(seconds * NS).astype(np.int64)
    vx = np.random.default_rng(0).normal(size=len(t_ns))
    recording = Recording("bench", (stream_of_values("odom", t_ns, {"vx": vx}, type=Odometry),))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = check(recording, checks=["T05", "T06"])
    assert found.select(reason=("CHECK_FAILED", "CLOCK_JUMP")).column("note") == []
    assert set(found.select(raw="BAD").column("reason")) == {reason}
    assert capfd.readouterr() == ("", "")


def test_stamps_that_go_back_are_explained_by_how_many_do() -> None:
    """Repeated stamps among them are farther beyond their limit, but are not what the reason is about."""
    seconds = np.arange(100) / 10
    for first in (40, 70):
        seconds[first : first + 20] = np.repeat(seconds[first : first + 20 : 2], 2)
    seconds[82] -= 0.3
    t_ns = START_NS + np.rint(seconds * NS).astype(np.int64)
    stream = stream_of_values("odom", t_ns, {"vx": np.sin(seconds)}, type=Odometry)
    [report] = report_sensors(check(Recording("bench", (stream,)), checks=["T05"]))
    said = {problem.reason: problem.sentence(START_NS) for problem in report.problems}
    assert "stamps that are earlier than the one before" in said["BACKWARD"]
    assert "stamps equal" in said["DUPLICATE"]


@pytest.mark.parametrize("seconds", [0.02, 0.13, -0.02, -0.4])
def test_stamps_without_log_times_show_a_jump_by_their_phase(seconds: float) -> None:
    odom = drive(24)["odom"]
    rng = np.random.default_rng(2)
    jump = round(seconds * NS) * (odom.t_ns > START_NS + 12 * NS)
    late = odom.t_ns + rng.integers(0, 1_000_000, len(odom)) + jump
    columns = {name: odom.column(name) for name in odom.columns}
    moved = stream_of_values("odom", late, columns, type=odom.type)
    found = check(Recording("jump", (moved,)), checks=["T06"]).select(raw=("SUSPECT", "BAD"))
    assert set(found.column("reason")) == {"CLOCK_JUMP"}
    assert {round((t - START_NS) / NS) for t in found.column("t0_ns")} <= {12, 13}


def test_lost_samples_of_a_slow_stream_are_a_gap_and_one_is_not() -> None:
    t_ns = START_NS + np.arange(60) * NS
    for lost, said in (((30,), False), ((30, 32, 33), True)):
        kept = np.delete(t_ns, lost)
        slow = stream_of_values("slow", kept, {"position": np.zeros((len(kept), 2))}, type=JointState)
        found = check(Recording("slow", (slow,)), checks=["T02"]).select(raw=("SUSPECT", "BAD"))
        assert (set(found.column("reason")) == {"GAP"}) is said


def test_a_jump_shows_among_steps_that_are_shorter_and_longer_by_turns() -> None:
    """Samples of 100 Hz that a camera of 9.63 Hz picks are 100 and 110 ms apart, which is no jump."""
    t_ns = START_NS + 10_000_000 * np.ceil(np.arange(200) * 0.10384 / 0.01).astype(np.int64)
    for jump_ms, said in ((0, []), (30, [11])):
        late = t_ns + np.where(np.arange(200) >= 100, jump_ms * 1_000_000, 0)
        fixes = stream_of_values("speed", late, {"vx": np.arange(200.0)}, type=Twist)
        found = check(Recording("picked", (fixes,)), checks=["T06"]).select(raw=("SUSPECT", "BAD"))
        assert [(t - START_NS) // NS for t in found.column("t0_ns")] == said


def test_a_loop_whose_phase_changes_all_the_time_has_a_clock_that_jumps_once_at_most() -> None:
    rng = np.random.default_rng(2)
    late = np.repeat(np.cumsum(rng.uniform(0.02, 0.05, 40)), 50)
    t_ns = START_NS + np.rint((0.1 * np.arange(2000) + late + rng.normal(0, 1e-3, 2000)) * NS).astype(
        np.int64
    )
    loop = stream_of_values("odom", t_ns, {"vx": np.arange(2000.0)}, type=Twist)
    found = check(Recording("loop", (loop,)), checks=["T06"]).select(raw=("SUSPECT", "BAD"))
    assert len(found) == 1


def test_jitter_and_disorder_are_not_called_jumps_or_drifts() -> None:
    recording = drive(24)
    for fault in ("jitter", "disorder"):
        changed, _ = inject(recording, fault, 0.6, streams=["odom", "imu"])
        assert check(changed, checks=["T06", "T07"]).select(state="BAD").column("reason") == []


@pytest.mark.parametrize(("fault", "stream", "severity", "number", "reason", "parameters"), FAULTS)
def test_a_fault_is_declared_where_it_is_and_named(
    fault: str, stream: str, severity: float, number: str, reason: str, parameters: dict[str, float]
) -> None:
    recording = drive(60 if number == "T07" else 40)
    start, end = ("+15s", "+25s") if fault in ("bias_step", "noise") else (None, None)
    if number == "S05":  # which needs rest
        recording = drive(90)
    changed, labels = inject(
        recording, fault, severity, streams=[stream], start=start, end=end, parameters=parameters
    )
    # Of two streams that disagree in time, either may be late: neither is BAD.
    verdicts = check(changed, checks=[number])
    found = verdicts.select(state="SUSPECT" if number == "T08" else "BAD")
    assert set(found.column("stream")) == ({stream, "odom"} if number == "T08" else {stream})
    assert number != "T08" or "BAD" not in verdicts.column("raw")
    assert set(found.column("reason")) == {reason}
    touched = labels.column("t_ns").to_pylist()
    # Persistence and learning take a few windows; nothing is said before the fault, or long after it.
    assert min(found.column("t1_ns")) > min(touched)
    assert max(found.column("t0_ns")) < max(touched) + 12 * NS


@pytest.mark.parametrize("fault", ["times_in_milliseconds", "time_zone"])
def test_stamps_that_are_far_off_for_a_while_do_not_make_the_session_longer(fault: str) -> None:
    recording, _ = inject(drive(20), fault, 1.0, streams=["odom"], start="+5s", end="+9s")
    verdicts = check(recording, checks=["T01", "T02", "T05"])
    assert len(verdicts.select(stream="imu", check="T01")) == 20
    assert "BAD" in verdicts.select(stream="odom").column("state")
    assert set(verdicts.select(stream=("imu", "gps")).column("state")) <= {"OK", "UNKNOWN"}


@pytest.mark.parametrize("stuck", ["pots", ""])
def test_a_potentiometer_of_a_slow_arm_that_sticks_is_told_by_the_encoder(stuck: str) -> None:
    """The arm turns by 0.01 rad/s to and fro, and halts for three seconds; the potentiometer is coarse."""
    t = np.arange(400) / 10
    turn = 0.01 * np.where(t < 20, t, 20 - np.clip(t - 23, 0, None))
    rng = np.random.default_rng(0)
    values = {
        "encoders": np.round(turn, 4),
        "pots": 0.0014 * np.round((turn + rng.normal(0, 1e-3, 400)) / 0.0014),
    }
    if stuck:
        values[stuck][150:350] = values[stuck][150]
    t_ns = START_NS + np.rint(t * NS).astype(np.int64)
    streams = [
        stream_of_values(f"arm/{name}", t_ns, {"position": column[:, None]}, type=JointState)
        for name, column in values.items()
    ]
    found = check(Recording("arm", tuple(streams)), checks=["S01"]).select(reason="STUCK")
    windows = {(t - START_NS) // NS for t in found.column("t0_ns")}
    assert set(found.column("stream")) == ({"arm/pots"} if stuck else set())
    assert windows == (set(range(min(windows), 35)) if stuck else set())
    assert not stuck or min(windows) <= 17


def test_what_moved_in_a_run_of_equal_samples_is_stuck_while_it_halts() -> None:
    recording = drive(40)
    odom = recording["odom"]
    columns = {name: np.array(odom.column(name)) for name in odom.columns}
    for column in columns.values():
        column[(odom.t_ns >= START_NS + 12 * NS)] = column[np.searchsorted(odom.t_ns, START_NS + 12 * NS)]
    frozen = stream_of_values("odom", odom.t_ns, columns, type=odom.type)
    found = check(recording.replace(streams=(recording["imu"], recording["gps"], frozen)), checks=["S01"])
    said = [k for k, v in enumerate(found.select(stream="odom")) if v.reason == "STUCK"]
    assert said[0] >= 12
    assert said[1:] == list(range(said[1], 40))


@pytest.mark.parametrize(("step", "is_stuck"), [(1e-5, True), (1e-5, False), (1e-2, True)])
def test_joints_alone_are_stuck_once_they_repeat_longer_than_they_did_at_rest(
    step: float, is_stuck: bool
) -> None:
    """Seven angles once a second, with noise of 1e-5 rad: fine converters seldom repeat, coarse ones do."""
    rng = np.random.default_rng(3)
    angles = step * np.round((1.0 + rng.normal(0, 1e-5, (60, 7))) / step)
    t = np.arange(60)
    angles[:, 0] += 0.05 * np.clip(t - 8, 0, 20)
    if is_stuck:
        angles[16:40] = angles[16]
    joints = stream_of_values("arm/joints", START_NS + t * NS, {"position": angles}, type=JointState)
    found = check(Recording("arm", (joints,)), checks=["S01"]).select(stream="arm/joints")
    said = [k for k, verdict in enumerate(found) if verdict.reason == "STUCK"]
    assert said == (list(range(said[0], 40)) if is_stuck and step < 1e-4 else [])
    assert not said or 20 < said[0] < 28


def test_odometry_that_wavers_on_a_drive_and_then_stands_is_not_stuck() -> None:
    """Fixes of 0.9 m/s look as those of a robot that stands: they go less than a metre in a window."""
    rng, t = np.random.default_rng(7), np.arange(400) / 10
    speed = np.where(t < 20.35, 0.9 + rng.normal(0, 0.02, 400), 0.0)
    t_ns = START_NS + np.rint(t * NS).astype(np.int64)
    odom = stream_of_values("odom", t_ns, {"vx": speed, "wz": 0.001 * speed}, type=Odometry)
    fixes = {"lat": 0.6 + np.cumsum(speed) / 10 / 6.37e6, "lon": 0 * t, "alt": rng.normal(0, 0.02, 400)}
    gps = stream_of_values("gps", t_ns, fixes, type=NavFix)
    found = check(Recording("straight", (odom, gps)), checks=["S01"])
    assert found.select(stream="odom", raw=("SUSPECT", "BAD")).column("reason") == []


def test_wheels_with_steering_angles_only_are_not_stuck() -> None:
    recording = drive(20)
    steering = stream_of_values(
        "wheels", recording["odom"].t_ns, {"steering": [[0.1, 0.1]] * 400, "roll": [[0.0, 0.0]] * 400,
        "pitch": [[0.0, 0.0]] * 400, "yaw": [[0.1, 0.1]] * 400}, type=WheelState,
    )  # fmt: skip
    verdicts = check(recording.replace(streams=(*recording.streams, steering)), checks=["S01", "T08"])
    assert set(verdicts.select(stream="wheels", check="S01").column("reason")) == {"NO_NUMBERS"}
    assert verdicts.select(reason="CHECK_FAILED").column("note") == []  # four wheels have four attitudes


def test_a_window_without_data_is_bad_and_not_absent() -> None:
    recording, _ = inject(drive(), "early_stop", 0.9, streams=["imu"])
    verdicts = check(recording, checks=["T01", "S04"])
    imu = verdicts.select(stream="imu", check="T01")
    assert len(imu) == len(verdicts.select(stream="odom", check="T01"))
    assert [imu[len(imu) - 1].state, imu[len(imu) - 1].n] == ["BAD", 0]
    last = verdicts.select(stream="imu", check="S04")[len(imu) - 1]
    assert (last.state, last.score, last.reason) == ("UNKNOWN", None, "NO_DATA")
    assert verdicts.by_sensor["imu"][-1].state == "BAD"


@pytest.mark.parametrize(("stamps_jump", "busy"), [(True, True), (False, True), (True, False)])
def test_a_clock_that_goes_back_by_one_step_is_reported_where_the_recorder_is_busy(
    stamps_jump: bool, busy: bool
) -> None:
    """Back by one step looks as a row that is there twice, but for log times; a late recorder is no jump."""
    rng, steps = np.random.default_rng(5), np.arange(2000)
    t_ns, late = START_NS + steps * NS // 50, 20_000_000 * (steps >= 1000)
    wait = 1_000_000 * rng.integers(0, 28 if busy else 2, len(steps))
    wait[rng.random(len(steps)) < 0.2] = 0
    log_ns = t_ns + wait + (0 if stamps_jump else late)
    stamps = t_ns - (late if stamps_jump else 0)
    speeds = {"vx": rng.normal(1, 0.1, len(steps)), "wz": rng.normal(0, 0.1, len(steps))}
    odom = stream_of_values("odom", stamps, speeds, type=Odometry, log_ns=log_ns)
    found = check(Recording("late", (odom,)), checks=["T06"]).select(reason="CLOCK_JUMP")
    said = {(t - START_NS) // NS for t in found.column("t0_ns")}
    assert said <= {19, 20, 21}
    assert bool(said) == stamps_jump


def _cut(recording: Recording, end_ns: int) -> Recording:
    return recording.replace(streams=tuple(s.between(None, end_ns) for s in recording))


def test_verdicts_know_nothing_of_what_comes_later() -> None:
    recording, _ = inject(drive(24), "clock_jump", 0.6, seed=1, streams=["imu"])
    recording, _ = inject(recording, "dropout", 0.5, streams=["gps"])
    recording = recording.replace(streams=tuple(s for s in recording if not s.name.startswith("truth")))
    end = START_NS + 15 * NS
    whole, early = check(recording), check(_cut(recording, end))

    def rows(table: VerdictTable) -> list[dict[str, Any]]:
        # Only the name EARLY_STOP is hindsight; it says nothing else than NO_DATA.
        kept = (to_dict(v) for v in table if v.t1_ns <= end - NS)
        return [{**row, "reason": row["reason"].replace("EARLY_STOP", "NO_DATA")} for row in kept]

    assert rows(early) == rows(whole)


def test_equal_recordings_give_equal_bytes_and_files_are_read_back(tmp_path: Path) -> None:
    recording, _ = inject(drive(12), "dropout", 0.5, streams=["imu"])
    first, second = check(recording), check(recording)
    for suffix in ("parquet", "csv"):
        for name, table in (("a", first), ("b", second)):
            table.write(tmp_path / f"{name}.{suffix}")
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()
        back = VerdictTable.read(tmp_path / f"a.{suffix}")
        assert back.csv() == first.csv()
    assert set(json_schema()["properties"]) == set(to_dict(first[0])) == set(SCHEMA.names)


class _Broken(Check, id="Z01", group="signal"):
    """Fails in every second window."""

    size = Limit(1.0, 2.0, "NOISE")

    def reset(self) -> None:
        self.calls = 0

    def evaluate(self, stream: Window[Any]) -> Finding | Unknown:
        self.calls += 1
        if self.calls % 2:
            raise ZeroDivisionError("oh")
        return Finding({"size": 3.0}, 1, region=np.ones(4, np.bool_))


def test_a_check_that_fails_is_unknown_and_stops_nothing() -> None:
    stream = drive(4)["imu"]
    grid = Grid(START_NS + NS * np.arange(5), NS)
    job = Job(_Broken(), WindowedStream(stream, grid))
    verdicts = [job.judge(index) for index in range(4)]
    assert [v.state for v in verdicts] == ["UNKNOWN", "SUSPECT", "UNKNOWN", "BAD"]
    assert (verdicts[0].reason, verdicts[0].note) == ("CHECK_FAILED", "ZeroDivisionError: oh")
    assert verdicts[1].threshold == {"size.warn": 1.0, "size.fail": 2.0}


CONFIG = """
checks:
  gap: {limits: {ratio: [1000, 2000]}}
streams:
  "gps": {sensor: receiver, checks: {T02: {limits: {ratio: [2000, 3000]}}}}
conditions:
  night: {checks: {gap: {limits: {ratio: [1, 1.5]}, k_on: 4}}}
mute:
  - {checks: T01, streams: imu, reason: it is known to stop}
skip: [jitter]
"""


def test_limits_differ_by_stream_and_condition_and_verdicts_can_be_muted() -> None:
    recording, _ = inject(drive(), "early_stop", 0.9, streams=["imu"])
    config = read_config(CONFIG, "robot.yaml")
    names = ["gap", "coverage"]
    day, night = (check(recording, config, checks=names, conditions=c) for c in ((), ("night",)))
    limits = {v.stream: v.threshold["ratio.warn"] for v in day if v.check == "T02"}
    assert limits == {"imu": 1000, "odom": 1000, "gps": 2000}
    assert {v.threshold["ratio.fail"] for v in night if v.check == "T02"} == {1.5}
    assert set(day.by_sensor) == {"imu", "odom", "receiver"}
    muted = day.select(stream="imu", check="T01", state="BAD")
    assert set(muted.column("muted")) == {"it is known to stop"}
    assert day.by_sensor["imu"][-1].state == "UNKNOWN"  # what is left says nothing
    assert "T04" not in check(drive(3), config).column("check")


def test_streams_that_a_configuration_keeps_in_a_session_of_their_own_make_nobody_late() -> None:
    """A history that began earlier is drawn over its own time, the others where they belong in it."""
    recording = drive(10)
    late = recording.replace(streams=(recording["imu"], recording["gps"].slice("+6s", None)))
    config = read_config('streams:\n  "gps": {session: now}\n', "robot.yaml")
    for given, words in ((None, {"LATE_START"}), (config, set[str]())):
        found = check(late, given, checks=["T01"])
        assert set(found.select(raw=("SUSPECT", "BAD")).column("reason")) == words
    reports = {each.sensor: each for each in report_sensors(check(late, config, checks=["T01"]))}
    axis = axis_of(reports["gps"], reports["imu"])
    assert reports["gps"].strip(5, axis) == [None, None, None, "OK", "OK"]
    assert reports["imu"].strip(5, axis) == ["OK"] * 5
    assert axis_of(reports["imu"], reports["gps"]) == reports["imu"].span


def test_a_configuration_says_all_that_is_wrong_with_it() -> None:
    wrong = "checks:\n  gap: {limits: {ration: [1, 2]}}\n  rat: {}\nskip: [T99]\n"
    with pytest.raises(ParseError) as caught:
        read_config(wrong, "robot.yaml")
    said = str(caught.value).splitlines()
    for line, word in ((2, "'ration'"), (3, "'rat'"), (4, "'T99'")):
        assert any(f"robot.yaml:{line}" in each and word in each for each in said)


def test_streams_far_from_the_others_in_time_are_bad() -> None:
    recording = drive(5)
    moved = [
        s.replace(source=s.table.set_column(0, s.table.schema.field(0), _later(s, 100))) for s in recording
    ]
    renamed = moved[0].replace(name="far")
    found = check(recording.replace(streams=(*recording.streams, renamed)), checks=["T09", "T01"])
    assert set(found.select(state="BAD").column("stream")) == {"far"}
    assert set(found.select(state="BAD").column("reason")) == {"META_TIME"}


def _later(stream: Any, seconds: int) -> Any:
    from transect.recording import arrow

    return arrow.from_numpy(stream.t_ns + seconds * NS)


def test_every_check_says_what_it_judges_measures_and_why() -> None:
    described = describe()
    assert len({row.id for row in described}) == len(described)
    assert [row.id for row in described if not (row.measures and row.limits and row.motive)] == []
    assert f"| {described[0].id} | {described[0].name} |" in markdown_table()


def test_what_robots_of_ours_change_can_be_read() -> None:
    files = [plugins.file_of("limits", name) for name in plugins.names("limits")]
    assert files
    for file in files:
        assert load_config(file) != Config()


class Brownout(Check, id="U01", group="signal"):
    """How often a user's own check was asked.

    Motive: A package outside brings its own.
    """

    windows = Limit(1.0, 2.0, "BROWNOUT")

    def evaluate(self, imu: Window[Imu]) -> Finding | Unknown:
        return Finding({"windows": float(imu.index)}, len(imu))


def test_a_check_of_the_users_own_comes_with_a_plug_in(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("fieldkit_checks")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(module, "Brownout", Brownout, raising=False)
    with plugins.added(Plugin(name="fieldkit", checks={"brownout": "fieldkit_checks:Brownout"})):
        verdicts = check(drive(4), checks=["brownout", "T01"])
    assert verdicts.select(check="U01").column("state") == ["OK", "OK", "SUSPECT", "BAD"]
    assert set(verdicts.select(check="U01", state="BAD").column("reason")) == {"BROWNOUT"}


@pytest.mark.parametrize("jump_ms", [-50, -20, 20, 130, 400])
def test_without_log_times_a_jump_shows_by_its_phase_and_whole_steps_are_a_gap(jump_ms: int):
    """At 10 Hz a jump forward by 400 ms is the same as four lost samples."""
    t_ns = START_NS + np.arange(300) * 100_000_000
    t_ns[150:] += jump_ms * 1_000_000
    stream = stream_of_values("speed", t_ns, {"vx": np.random.default_rng(0).normal(size=300)}, type=Twist)
    verdicts = list(check(Recording("jump", (stream,)), checks=["T02", "T06"]))
    jumps = [each for each in verdicts if each.check == "T06" and each.reason == "CLOCK_JUMP"]
    assert [round((each.t0_ns - START_NS) / 1e9) for each in jumps] == (
        [] if jump_ms == 400 else [15 + (jump_ms > 0)]
    )
    gaps = {each.check for each in verdicts if each.reason == "GAP"}
    assert gaps == ({"T02", "T06"} if jump_ms == 400 else set())


@pytest.mark.parametrize(("every", "said"), [(0, [15]), (97, [])])
def test_a_jump_by_two_steps_is_reported_where_a_stream_never_jumps(every: int, said: list[int]):
    """At 100 Hz a clock that jumps ahead by 20 ms leaves the stamps of two lost samples."""
    steps = np.full(3000, 10_000_000)
    steps[1500] += 20_000_000
    if every:  # a logger that loses some all the time
        steps[every::every] += 20_000_000
    t_ns = START_NS + np.cumsum(steps)
    columns = {"vx": np.random.default_rng(0).normal(size=len(t_ns))}
    for log_ns in (None, t_ns + 1_000_000):
        stream = stream_of_values("speed", t_ns, columns, type=Twist, log_ns=log_ns)
        found = check(Recording("jump", (stream,)), checks=["T02", "T06"]).select(raw=("SUSPECT", "BAD"))
        assert set(found.column("reason")) <= {"GAP"}
        assert [round((t - START_NS) / NS) for t in found.column("t0_ns")] == (said if log_ns is None else [])
        assert all(each.evidence["jump"] == pytest.approx(0.02) for each in found)
