"""The benchmark of the checks: what counts as found, what as a false alarm; and that it goes on."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.integrity import bases, peers, running
from benchmarks.integrity.bases import Base, choose_bases
from benchmarks.integrity.cases import Case, choose_faults, namers_of, reasons_of
from benchmarks.integrity.command import command
from benchmarks.integrity.comparison import CLEAR, OURS, compare
from benchmarks.integrity.gates import Gate
from benchmarks.integrity.planning import plan
from benchmarks.integrity.results import Event, Flag, Result, Said, read_result, write_result
from benchmarks.integrity.running import Plan, run
from benchmarks.integrity.scores import score_case
from benchmarks.integrity.summary import Summary, count_alarms
from benchmarks.integrity.winding import make_winding
from click.testing import CliRunner
from tests.commands import Done
from tests.integrity.recordings import START_NS, drive

from transect.base.clocks import NS
from transect.errors import UsageError
from transect.integrity import check
from transect.recording import Recording, stream_of_values
from transect.simulation.faults import inject
from transect.types import Imu, LaserScan


def result(fault: str = "", events: tuple[Event, ...] = (), *flags: Flag, severity: float = 0.5) -> Result:
    """Return a case of 40 windows of two streams; four checks judge all but the first."""
    judged = {check: [[1, 39]] for check in ("T01", "T02", "S01", "T06")}
    return Result(
        Case("made", 0, fault, severity if fault else 0.0, "imu" if fault else ""),
        40.0, 1.0, {"imu": "Imu", "odom": "Odometry"}, {"imu": judged, "odom": judged}, events, flags,
    )  # fmt: skip


def flag(check: str, reason: str, *windows: int, stream: str = "imu") -> Flag:
    return Flag(stream, check, reason, windows, windows)


def test_windows_are_found_missed_and_false() -> None:
    event = Event("imu", 10.0, 19.9)
    # 10 and 11 are the patience, so 12 to 19 count; 20 to 22 fade; 30 is a false alarm
    said = flag("S01", "STUCK", *range(13, 23), 30)
    score = score_case(result("stuck", (event,), said), result())
    assert (score.right, score.missed, score.wrong, score.unjudged) == (7, 1, 1, 0)
    assert [e.latency for e in score.events] == [4.0]
    assert score.named_by["S01"] == 1


def test_a_wrong_name_is_a_miss_and_what_was_said_before_does_not_count() -> None:
    event = Event("imu", 10.0, 19.9)
    score = score_case(result("stuck", (event,), flag("T02", "GAP", *range(10, 20))), result())
    assert (score.right, score.missed) == (0, 8)
    assert [(e.flagged, e.named) for e in score.events] == [(True, False)]
    known = flag("S01", "STUCK", *range(10, 20), 30)
    score = score_case(result("stuck", (event,), known), result("", (), known))
    assert (score.right, score.wrong) == (0, 0)


def test_a_window_without_a_touched_sample_does_not_count() -> None:
    event = Event("imu", 10.0, 19.9, windows=(10, 11, 12, 13, 16, 17, 18, 19))
    score = score_case(result("stuck", (event,), flag("S01", "STUCK", 12, 13, 16, 17, 18)), result())
    assert (score.right, score.missed, score.unjudged) == (5, 1, 0)


def test_a_jump_whose_stamps_are_those_of_lost_samples_may_be_called_so() -> None:
    said = flag("T02", "GAP", 10)
    for also, named in (((), False), (("GAP",), True)):
        jump = result("clock_jump", (Event("imu", 10.2, 39.9, (10, 11), also),), said)
        assert [event.named for event in score_case(jump, result()).events] == [named]


def test_a_short_event_is_one_window_and_a_jump_is_a_moment() -> None:
    short = result("dropout", (Event("imu", 10.6, 11.1),), flag("T02", "GAP", 11))
    assert (score_case(short, result()).right, score_case(short, result()).missed) == (1, 0)
    late = result("dropout", (Event("imu", 10.6, 11.1),), flag("T02", "GAP", 14))
    assert (score_case(late, result()).right, score_case(late, result()).wrong) == (0, 0)  # it fades
    jump = result("clock_jump", (Event("imu", 10.2, 39.9),), flag("T06", "CLOCK_JUMP", 11))
    assert (score_case(jump, result()).right, score_case(jump, result()).missed) == (1, 0)


def test_windows_that_no_check_judges_are_left_out_and_told() -> None:
    score = score_case(result("nan", (Event("imu", 10.0, 19.9),)), result())
    assert (score.right, score.missed, score.unjudged) == (0, 0, 0)  # S04 judges nothing of it
    early = score_case(result("stuck", (Event("imu", 0.0, 5.9),), flag("S01", "STUCK", 2, 3, 4, 5)), result())
    assert (early.right, early.missed, early.unjudged) == (4, 0, 0)


def test_other_streams_that_are_flagged_meanwhile_are_the_wrong_sensor() -> None:
    flags = (flag("S01", "STUCK", *range(10, 20)), flag("T02", "GAP", 15, 35, stream="odom"))
    score = score_case(result("stuck", (Event("imu", 10.0, 19.9),), *flags), result())
    assert score.elsewhere == 1


def test_an_object_that_a_laser_saw_is_no_alarm() -> None:
    seen = result("", (), flag("C01", "OBJECT", 3, 4), flag("T02", "GAP", 9))
    assert [row.suspect for row in Summary([seen]).by_base()] == [1]
    case = result("stuck", (Event("imu", 10.0, 19.9),), flag("C01", "OBJECT", 30))
    assert score_case(case, result()).wrong == 0


def test_alarms_are_counted_by_stream_and_not_by_window_or_check() -> None:
    flags = [flag("T02", "GAP", 3, 4, 6), flag("S01", "STUCK", 7, 20), flag("T02", "GAP", 5, stream="odom")]
    assert count_alarms(flags) == (3, 3)
    assert count_alarms(flags, "S01") == (2, 2)
    assert count_alarms([Flag("imu", "T02", "GAP", (3,), ())]) == (0, 1)


def test_the_least_severity_is_that_from_which_on_events_are_found() -> None:
    event, found = (Event("imu", 10.0, 19.9),), flag("S01", "STUCK", *range(10, 20))
    cases = [
        result("stuck", event, found, severity=0.25),
        result("stuck", event, severity=0.5),
        result("stuck", event, found, severity=0.75),
        result("stuck", event, found, severity=1.0),
    ]
    [row] = Summary([result(), *cases]).by_fault()
    assert (row.least, row.events, row.event_recall) == (0.75, 4, 0.75)
    assert (row.precision, row.recall) == (1.0, 0.75)


def test_a_gate_without_a_measurement_is_neither_met_nor_missed() -> None:
    assert [Gate("x", 0.9, found).met for found in (0.9, 0.89, math.nan)] == [True, False, None]
    assert [Gate("x", 1.0, found, most=True).met for found in (1.0, 1.1)] == [True, False]


def test_words_of_clouds_are_one_and_checks_are_known_by_their_words() -> None:
    assert reasons_of("dust") == {"OBSCURANT", "HAZE", "INLIERS"}
    assert {"C02", "X01"} <= namers_of("dust")
    assert namers_of("early_stop") == {"T01"}


def test_a_result_survives_its_file(tmp_path: Path) -> None:
    made = result("stuck", (Event("imu", 10.0, 19.9),), flag("S01", "STUCK", 12))
    write_result(made, tmp_path)
    assert read_result(tmp_path / made.case.file) == made
    assert read_result(tmp_path / "other.json") is None


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    folder = tmp_path_factory.mktemp("benchmark") / "results"
    return Plan(folder, seeds=(5,), bases=("small",), faults=("dropout", "stuck"), severities=(0.5,))


@pytest.fixture
def only_small(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Leave one short drive of the recordings; return the seeds that it is made for."""
    made: list[int] = []

    def make(seed: int) -> Recording:
        made.append(seed)
        return drive(24, seed)

    monkeypatch.delenv(bases.TEST_DATA, raising=False)
    monkeypatch.setattr(running, "SIMULATED", (Base("small", "a short drive", make, peers=True),))
    monkeypatch.setattr(peers, "find_triage", lambda: None)
    return made


def bench(*arguments: object) -> Done:
    """Run `python -m benchmarks.integrity ARGUMENTS` in this process."""
    done = CliRunner().invoke(command, [str(each) for each in arguments], standalone_mode=False)
    usage = isinstance(done.exception, UsageError)
    return Done(
        2 if usage else int(done.exception is not None), done.stdout, f"{done.stderr}{done.exception}"
    )


def test_faults_are_found_where_they_were_put_and_a_second_run_reads_the_first(
    small: Plan, only_small: list[int]
) -> None:
    told: list[tuple[str, bool]] = []
    first = run(small, report=lambda what, known: told.append((what, known)))
    assert [known for _, known in told] == [False] * 3
    assert sorted(path.name for path in small.folder.iterdir()) == sorted(r.case.file for r in first)
    rows = {row.fault: row for row in Summary(first).by_fault()}
    assert rows.keys() == {"dropout", "stuck"}
    assert rows["stuck"].event_recall == rows["dropout"].event_recall == 1.0
    assert all(event.start >= 5.9 and event.end <= 18.1 for r in first for event in r.events)
    told.clear()
    assert run(small, report=lambda what, known: told.append((what, known))) == first
    assert [known for _, known in told] == [True] * 3


def test_the_command_prints_gates_and_tables_or_one_document(small: Plan, only_small: list[int]) -> None:
    asked = ("--seeds", "5", "--faults", "dropout,stuck", "--severities", "0.5", "-o", small.folder)
    done = bench(*asked)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("signal faults, F1") and line.endswith(" met") for line in lines)
    assert any(line.startswith("rain, F1") and line.endswith("not measured") for line in lines)
    document = json.loads(bench(*asked, "--json").stdout)
    assert {row["fault"] for row in document["faults"]} == {"dropout", "stuck"}
    assert document["seeds"] == [5]
    assert {row["peer"] for row in document["peers"]} == {OURS, "rates", "dror"}
    assert [row["counts"] for row in document["checks"] if row["check"] == "S01"] == [True]
    only_small.clear()
    again = bench("-o", small.folder, "--read", "--json")
    assert json.loads(again.stdout) == document
    assert only_small == []  # nothing was simulated
    assert bench("-o", small.folder / "none", "--read").returncode == 2


def test_without_a_folder_results_are_forgotten_and_a_quick_benchmark_has_fewer_cases(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Plan] = []

    def run_none(plan: Plan, jobs: int, report: Callable[[str, bool], None]) -> list[Result]:
        assert plan.folder.is_dir()
        asked.append(plan)
        report("stuck in made: new", False)
        report("stuck in made: old", True)
        return [replace(result(), unnamed={"noise": ["Odometry", "Imu"]}), result("stuck")]

    monkeypatch.setattr(running, "run", run_none)
    whole = bench("--no-peers", "--seeds", "3, 4", "--minutes", 7)
    quick = bench("--quick", "--faults", "stuck")
    assert (whole.returncode, quick.returncode) == (0, 0), whole.stderr
    assert not any(plan.folder.exists() for plan in asked)
    assert (asked[0].seeds, asked[0].peers, asked[0].faults, asked[0].blocks) == ((3, 4), False, (), 2)
    assert (asked[1].seeds, asked[1].peers, asked[1].faults) == ((0,), True, ("stuck",))
    assert 0 < len(asked[1].bases) < 10
    assert "stuck in made: new" in whole.stderr
    assert "old" not in whole.stderr  # nobody waits for what is read from a file
    assert "No check names\n  noise: Imu, Odometry\n" in whole.stdout
    assert "Peers" not in whole.stdout
    wrong = bench("--seeds", "one")
    assert (wrong.returncode, "--seeds 1,2" in wrong.stderr) == (2, True)


def test_rules_for_rates_see_what_they_are_for_and_nothing_else() -> None:
    clear = drive(20)
    imu = clear["imu"]
    half = imu.take(imu.t_ns < START_NS + 10**10)
    short = clear.replace(streams=(half, clear["odom"], clear["gps"]))
    assert peers.ask(clear, clear, 20.0)["rates"] == ()
    assert [(s.stream, s.reason, s.known) for s in peers.ask(short, clear, 20.0)["rates"]] == (
        [("imu", "EARLY_STOP", 20.0)]
    )
    thin = clear.replace(streams=(imu.take(np.arange(len(imu)) % 4 > 0), clear["odom"], clear["gps"]))
    assert {s.reason for s in peers.ask(thin, clear, 20.0)["rates"]} == {"RATE", "GAP"}


def test_a_peer_is_not_blamed_for_what_it_says_of_the_clear_recording_in_a_case() -> None:
    known, new = Said("imu", 0.0, 40.0, "RATE", 40.0), Said("imu", 9.0, 21.0, "GAP", 40.0)
    clear = Result(**{**vars(result()), "peers": {"rates": (known,)}})
    case = result("dropout", (Event("imu", 10.0, 19.9),), flag("T02", "GAP", 10))
    rows = compare(Summary([clear, Result(**{**vars(case), "peers": {"rates": (known, new)}})]))
    found = {(row.peer, row.fault): row for row in rows}
    assert found["rates", CLEAR].recall == 90.0  # one alarm in 40 s
    assert (found["rates", "dropout"].latency, found[OURS, "dropout"].latency) == (30.0, 1.0)
    assert found["rates", "dropout"].named == 1.0


def test_names_that_do_not_exist_are_refused() -> None:
    with pytest.raises(UsageError, match="no base 'yrd'"):
        choose_bases(bases.SIMULATED, ("yrd",))
    with pytest.raises(UsageError, match="no fault 'bit_flip' of streams"):
        choose_faults(["bit_flip"])


def test_images_are_made_once() -> None:
    made: list[int] = []
    stream = stream_of_values("imu", np.arange(3) + START_NS, {"acc_x": np.arange(3.0)}, type=Imu)
    slow = stream.replace(loader=lambda row: made.append(row["t_ns"]) or row["t_ns"])
    kept = bases.keep_payloads(Recording("r", (slow,)))["imu"].loader
    assert kept is not None
    rows = [stream[k].row for k in (0, 1, 0)]
    assert [kept(row) for row in rows] == [START_NS, START_NS + 1, START_NS]
    assert made == [START_NS, START_NS + 1]


def test_a_winding_drive_is_clear_and_shows_mistakes_of_its_description() -> None:
    recording, checks = make_winding(3), ["X05", "X07", "X10"]
    clear = check(recording, checks=checks)
    assert {v.raw for v in clear} == {"OK", "UNKNOWN"}
    for fault, number, severity in (("lever_arm", "X10", 1.0), ("flipped_axis", "X07", 1.0)):
        named = say_of(inject(recording, fault, severity, 3)[0], number)
        assert named[-1] == ("BAD", "EXTRINSIC")


def say_of(recording: Recording, number: str) -> list[tuple[str, str]]:
    return [(v.state, v.reason) for v in check(recording, checks=[number]) if v.raw != "UNKNOWN"]


def test_a_stream_that_has_a_defect_of_its_own_is_not_given_it() -> None:
    base = Base("made", "", lambda seed: drive(), known={"odom": ("SLIP",)})
    judged = {"odom": {"X05": [[1, 39]]}}
    clear = Result(Case("made", 0), 40.0, 1.0, {"odom": "Odometry"}, judged)
    assert list(plan(base, drive(), clear, ["wheel_slip"])) == []
    assert len(list(plan(replace(base, known={}), drive(), clear, ["wheel_slip"]))) == 3


def test_a_filter_of_isolated_points_says_in_which_seconds_it_removes_them() -> None:
    rng = np.random.default_rng(3)
    t_ns = START_NS + np.arange(160) * (NS // 20)

    def wall(ranges: np.ndarray) -> Recording:
        columns = {
            "ranges": ranges.tolist(), "start_angle": np.zeros(160), "angle_increment": np.full(160, 0.02),
        }  # fmt: skip
        return Recording("wall", (stream_of_values("laser", t_ns, columns, type=LaserScan),))

    ranges = rng.normal(5.0, 0.01, (160, 200))
    clear, inside = wall(ranges), (t_ns >= START_NS + 2 * NS) & (t_ns < START_NS + 6 * NS)
    specks = inside[:, None] & (rng.random(ranges.shape) < 0.1)
    dusty = wall(np.where(specks, rng.uniform(1, 4, ranges.shape), ranges))
    assert peers.ask(clear, clear, 8.0)["dror"] == ()
    (said,) = peers.ask(dusty, clear, 8.0)["dror"]
    assert said == Said("laser", 2.0, 6.0, "ISOLATED", 3.0)
    assert peers.ask(wall(np.full(ranges.shape, np.nan)), clear, 8.0)["dror"] == ()


TRIAGE = """
from types import SimpleNamespace
from mcap.reader import make_reader

def run(path, settings):
    with open(path, "rb") as file:
        topics = sorted({channel.topic for _, channel, _ in make_reader(file).iter_messages()})
    found = [("freeze", 1.0, 2.5, topic) for topic in topics]
    found += [("odd", 3.0, 4.0, "/imu"), ("jump", 0, 1, "/none")]
    return [SimpleNamespace(detector=d, t_start=a, t_end=b, details={"topic": t}) for d, a, b, t in found]
"""
"""A stand-in for the package of that name: it reads the export, and names its topics."""


@pytest.mark.parametrize("breaks", [False, True])
def test_what_robot_triage_says_is_told_in_our_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: bool
) -> None:
    package = tmp_path / "robot_triage"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "cli.py").write_text("raise SystemExit(3)" if breaks else TRIAGE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    recording = drive(6)
    later = recording["gps"].replace(source=recording["gps"].table.slice(5))
    recording = recording.replace(streams=(later, recording["imu"]))
    said = peers.ask(recording, recording, 6.0)[peers.TRIAGE]
    if breaks:
        assert said == ()
        return
    told = [(each.stream, round(each.start, 1), round(each.end, 1), each.reason) for each in said]
    assert told == [
        ("gps", 1.0, 2.5, "STUCK"), ("imu", 1.0, 2.5, "STUCK"), ("imu", 3.0, 4.0, "ODD"),
    ]  # fmt: skip
