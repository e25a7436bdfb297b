"""Long times without data cost nothing, and are one interval in everything that reads verdicts."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from benchmarks.integrity.cases import Case
from benchmarks.integrity.results import result_of
from hypothesis import given
from hypothesis import strategies as st
from tests.commands import transect
from tests.integrity.recordings import drive, yard

from transect.base.clocks import NS
from transect.errors import UsageError
from transect.integrity import VerdictTable, check
from transect.integrity.config import read_config
from transect.integrity.live import Monitor
from transect.integrity.report import report_sensors
from transect.integrity.rules import RULES, tile_sampled
from transect.integrity.table import to_dict
from transect.recording import Parsed, Recording, Stream, arrow, stream_of_values
from transect.recording.plausibility import find_implausible
from transect.simulation.faults import inject
from transect.types import Imu, Verdict

SEVEN_YEARS_NS = 7 * 365 * 86_400 * NS
TEN_SECONDS_NS = 10 * NS


def with_silence(recording: Recording, silence_ns: int = SEVEN_YEARS_NS) -> Recording:
    """Return a recording whose second half comes much later."""

    def later(stream: Stream) -> Stream:
        t_ns = stream.t_ns.copy()
        begin = min(int(each.t_ns[0]) for each in recording)
        t_ns[t_ns >= begin + TEN_SECONDS_NS] += silence_ns
        at = stream.table.column_names.index("t_ns")
        return stream.replace(source=Parsed(stream.table.set_column(at, "t_ns", arrow.from_numpy(t_ns))))

    return recording.replace(streams=tuple(later(stream) for stream in recording))


@pytest.fixture(scope="module")
def verdicts() -> VerdictTable:
    return check(with_silence(drive(20)))


@given(
    st.lists(st.integers(0, 2**62), min_size=1, max_size=30),
    st.integers(-(2**61), 2**61),
    st.integers(10**8, 10**10),
)
def test_windows_grow_with_the_samples_and_are_those_of_a_tiled_session(
    since: list[int], start: int, window: int
) -> None:
    t_ns = np.array(since) + start
    edges = tile_sampled([t_ns], start, int(t_ns.max()) + 1, window).tolist()
    assert (edges[0], edges[-1]) == (start, t_ns.max() + 1)
    assert all((edge - start) % window == 0 for edge in edges[:-1])
    assert len(edges) <= (RULES.max_silent_windows + 2) * (len(since) + 2)
    place = np.searchsorted(edges, t_ns, "right") - 1
    for k, (begin, end) in enumerate(pairwise(edges)):
        assert 0 < end - begin <= window or k not in place  # no sample is in a merged window


def test_a_silence_of_years_is_one_interval_that_is_bad(verdicts: VerdictTable) -> None:
    longest = [v for v in verdicts if v.t1_ns - v.t0_ns > NS]
    assert len({v.t0_ns for v in longest}) == 1
    assert len(verdicts) == (20 + RULES.max_silent_windows + 1) * len({(v.stream, v.check) for v in longest})
    said = {v.stream: (v.state, v.raw, v.reason) for v in longest if v.check == "T01"}
    assert said == dict.fromkeys(("gps", "imu", "odom"), ("BAD", "BAD", "NO_DATA"))
    for windows in verdicts.by_sensor.values():
        assert [v.t0_ns for v in windows[1:]] == [v.t1_ns for v in windows[:-1]]


def test_what_windows_say_does_not_depend_on_how_long_the_silence_is(verdicts: VerdictTable) -> None:
    """An hour, which was judged window by window once, and seven years: after it all is the same."""

    def after(table: VerdictTable) -> list[tuple[str, str, str, float | None]]:
        begin = max(v.t1_ns for v in table if v.t1_ns - v.t0_ns > NS)
        rows = (v for v in table if v.t0_ns >= begin + NS)
        return [(v.stream, v.check, v.raw, v.score) for v in rows if v.check[0] != "T"]

    assert after(verdicts) == after(check(with_silence(drive(20), 3600 * NS)))


def test_scores_and_strips_count_a_silence_by_its_length(verdicts: VerdictTable) -> None:
    for report in report_sensors(verdicts):
        assert report.mean_score == pytest.approx(0.0, abs=1e-6)
        cells = report.strip(60, report.span)
        assert (len(cells), set(cells[1:-1])) == (60, {"BAD"})
        assert report.window_count == pytest.approx(SEVEN_YEARS_NS / NS, rel=1e-3)
        assert report.problems[0].seconds == pytest.approx(SEVEN_YEARS_NS / NS, rel=1e-3)


def test_an_interval_counts_as_the_windows_that_it_stands_for() -> None:
    config = read_config("checks: {coverage: {k_on: 100}}", "config")
    state = {
        v.state for v in check(with_silence(drive(20)), config, checks=["T01"]) if v.t1_ns - v.t0_ns > NS
    }
    assert state == {"BAD"}


def test_a_monitor_does_not_loop_over_a_silence() -> None:
    recording, names = with_silence(drive(20)), ["T01", "T02", "T05", "S01", "S04"]
    monitor = Monitor({s.name: s.type for s in recording}, checks=names)
    said: list[Verdict] = []
    for sample in recording.merge():
        said += monitor.push(sample.stream.name, sample.t_ns, sample.value)
    until = max(v.t1_ns for v in said)
    replayed = [v for v in check(recording, checks=names) if v.t1_ns <= until]

    def rows(found: list[Verdict]) -> list[dict[str, object]]:
        said = [to_dict(v) for v in found]
        for row in said:  # only the name EARLY_STOP is hindsight: while it lasts a silence may be the end
            row["reason"] = row["reason"].replace("EARLY_STOP", "NO_DATA")
        return sorted(said, key=lambda row: (row["stream"], row["check"], row["t0_ns"]))

    assert rows(said) == rows(replayed)


def test_windows_of_a_benchmark_are_numbered_by_time() -> None:
    recording = with_silence(drive(20), 60 * NS)
    case = Case("drive", 0)
    result = result_of(case, recording, check(recording, checks=["T01"]), None, recording, 1.0)
    [flag] = [f for f in result.flags if f.stream == "imu" and f.reason == "NO_DATA"]
    assert flag.windows[-1] == 69
    assert len(flag.windows) == len(set(flag.windows)) >= 58


def test_looking_for_wrong_units_takes_memory_by_samples() -> None:
    recording = with_silence(drive(20))
    list(find_implausible(recording))  # what is imported and cached once does not count
    tracemalloc.start()
    list(find_implausible(recording))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


def test_dust_for_years_is_refused_with_what_to_type() -> None:
    with pytest.raises(UsageError, match="dust would last") as refused:
        inject(with_silence(yard(20)), "dust", 0.5)
    assert "--from" in str(refused.value.hint)


def test_the_command_checks_a_hundred_bytes_that_span_years(tmp_path: Path) -> None:
    lines = (f"{1_500_000_000 + 30_000_000 * k}.0 {k} 0 0 0 0 0 1\n" for k in range(7))
    (tmp_path / "track.txt").write_text("".join(lines))
    done = transect("check", "track.txt", "-o", "out", cwd=tmp_path)
    assert done.returncode in (0, 4), done.stderr
    table = VerdictTable.read(tmp_path / "out" / "verdicts.parquet")
    assert len({v.t0_ns for v in table}) <= 7 * (RULES.max_silent_windows + 2)


@pytest.mark.parametrize("count", [1, 200])
def test_a_recording_may_end_with_the_last_time_that_there_is(count: int) -> None:
    last = 2**63 - 1
    t_ns = last - np.arange(count, dtype=np.int64)[::-1] * (NS // 100)
    gyro = dict.fromkeys(("gyro_x", "gyro_y", "gyro_z"), np.sin(np.arange(count)))
    verdicts = check(Recording("robot", (stream_of_values("imu", t_ns, gyro, type=Imu),)))
    assert len(verdicts)
    assert max(verdict.t1_ns for verdict in verdicts) == last
