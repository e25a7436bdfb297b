"""Statistics: quantiles to one part in eight in flat memory, a table for people, JSON for programs."""

from __future__ import annotations

import dataclasses
import json
import math
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transect.engine import Latest, Node
from transect.engine.compounds import compound
from transect.engine.runs import run
from transect.engine.statistics import Histogram, NodeCount, NodeStatistics, RunStatistics, size_of
from transect.recording import Recording
from transect.recording.stream import stream_of_values
from transect.types import Twist

from .flows import flow_of, play

SIZES = st.integers(0, 63).flatmap(lambda bits: st.integers(0, 2**bits - 1))
"""Numbers of every length up to 63 bits, as likely small as large."""


def counted(numbers: list[int]) -> Histogram:
    histogram = Histogram()
    for number in numbers:
        histogram.add(number)
    return histogram


@given(
    numbers=st.lists(SIZES, min_size=1, max_size=200),
    part=st.sampled_from([0.01, 0.25, 0.5, 0.95, 0.99, 1.0]),
)
@example(numbers=[0], part=0.5)
@example(numbers=[2**63 - 1] * 3, part=0.95)
def test_a_quantile_is_within_one_part_in_eight_of_the_exact_one(numbers: list[int], part: float):
    exact = int(np.quantile(np.array(numbers), part, method="inverted_cdf"))
    found = counted(numbers).quantile(part)
    assert abs(found - exact) <= exact / 8


@given(seed=st.integers(0, 2**32 - 1), scale=st.floats(1e2, 1e9))
def test_quantiles_of_times_as_nodes_take_them_agree_with_numpy(seed: int, scale: float):
    times = (np.random.default_rng(seed).lognormal(0, 1, 500) * scale).astype(np.int64)
    histogram = counted(times.tolist())
    for part in (0.5, 0.95):
        exact = np.quantile(times, part, method="inverted_cdf")
        assert histogram.quantile(part) == pytest.approx(exact, rel=1 / 8)


@given(numbers=st.lists(SIZES, max_size=100))
def test_count_total_and_largest_are_exact(numbers: list[int]):
    histogram = counted(numbers)
    assert histogram.count == len(numbers)
    assert histogram.total == sum(numbers)
    assert histogram.largest == max(numbers, default=0)
    assert histogram.quantile(1.0) <= histogram.largest or not numbers


def test_numbers_up_to_fifteen_are_exact():
    for number in range(16):
        assert counted([number]).quantile(0.5) == number


def test_nothing_has_no_quantile():
    assert math.isnan(Histogram().quantile(0.5))


def test_the_memory_of_a_histogram_does_not_grow():
    histogram = Histogram()
    before = sys.getsizeof(histogram.buckets)
    for number in range(0, 2**62, 2**62 // 20_000):
        histogram.add(number)
    assert sys.getsizeof(histogram.buckets) == before
    assert len(histogram.buckets) == 512


def test_a_frozen_count_is_restored_unchanged():
    count = NodeCount()
    count.calls = 2
    count.wall.add(100)
    count.samples["x", "used"] += 2
    state = count.freeze()
    count.wall.add(9_000_000)
    count.samples["x", "unpaired"] += 1
    count.skipped["dark"] += 1
    buckets = count.wall.buckets
    count.thaw(state)
    assert count.wall.buckets is buckets, "steps hold the list"
    assert (count.wall.count, count.wall.largest) == (1, 100)
    assert dict(count.samples) == {("x", "used"): 2}
    assert not count.skipped


def test_a_count_is_reported_in_seconds():
    count = NodeCount()
    count.calls = 100
    for k in range(100):
        count.wall.add(1_000_000 * (k + 1))
    count.cpu.add(500_000)
    count.samples["x", "used"], count.samples["x", "unpaired"] = 99, 1
    found = NodeStatistics.of(count)
    assert found.wall_p50 == pytest.approx(0.050, rel=1 / 8)
    assert found.wall_p95 == pytest.approx(0.095, rel=1 / 8)
    assert found.wall_max == 0.1
    assert found.wall_total == pytest.approx(5.05)
    assert found.cpu_p50 == pytest.approx(0.0005, rel=1 / 8)
    assert found.samples == {"x": {"unpaired": 1, "used": 99}}
    assert found.age_p95 == 0.0


class Waits(Node):
    """Needs another input, and remembers a megabyte."""

    def reset(self) -> None:
        self.memory = np.zeros(125_000)

    def process(self, x: float, other: Latest[float]) -> float | None:
        return self.ctx.skip("not even") if x % 2 else x


def test_a_flow_counts_calls_fates_reasons_and_the_memory_that_nodes_hold():
    flow = flow_of({"w": Waits}, ["x -> w.x", "y -> w.other"])
    play(flow, [(1.0, "x", 1.0), (2.0, "y", 0.0), (3.0, "x", 3.0), (4.0, "x", 4.0), (5.0, "y", 0.0)])
    found = flow.statistics["w"]
    assert found.calls == 2
    assert found.samples == {"x": {"used": 2, "skipped": 1}, "other": {"used": 1, "left over": 1}}
    assert found.skipped == {"waiting for other": 1, "not even": 1}
    assert 1_000_000 <= found.state_bytes < 1_010_000


def test_the_size_of_a_value_counts_every_part_once():
    values = np.zeros(1000)
    assert size_of(values) == sys.getsizeof(values)
    assert size_of(values[:500]) >= 4000
    assert size_of([values, values]) < 8000 + 500
    assert size_of({"a": np.zeros(1000), "b": np.zeros(1000)}) > 16_000


class Speed(Node):
    """The forward speed."""

    def process(self, twist: Twist) -> float:
        return float(twist.velocity[0])


@pytest.fixture(scope="module")
def statistics() -> RunStatistics:
    """Of a run in which one sample came too late."""
    times = 1_600_000_000_000_000_000 + np.arange(40) * 100_000_000
    times[30] = times[3]
    columns = {name: np.ones(40) for name in ("vx", "vy", "vz")}
    recording = Recording("made", (stream_of_values("wheels", times, columns, type=Twist),))
    found = run(compound("S", {"speed": Speed}, ["twist -> speed.twist", "speed.out -> v"]), recording).stats
    assert found is not None
    return found


def test_the_table_has_a_line_per_node_every_loss_and_the_whole(statistics: RunStatistics):
    lines = str(statistics).splitlines()
    assert lines[0].split() == [
        "node", "calls", "wall", "p50", "p95", "max", "cpu", "p50", "share", "waited", "state"
    ]  # fmt: skip
    assert lines[1].split()[:2] == ["speed", "39"]
    assert "100%" in lines[1]
    assert "wheels: 1 of 40 samples came too late" in lines
    assert "for 3.9 s recorded" in lines[-1]
    assert "x real time" in lines[-1]
    long = dataclasses.replace(statistics, wall_s=1063.2, recorded_s=86400.0).summary()
    assert "1063 s for 86400 s recorded, 81.3x real time" in long


def test_the_json_has_everything_and_null_for_what_is_not_known(statistics: RunStatistics):
    content = json.loads(json.dumps(statistics.to_dict(), allow_nan=False))
    assert content["streams"] == {"wheels": {"samples": 40, "played": 39, "late": 1}}
    node = content["nodes"]["speed"]
    assert node["calls"] == 39
    assert node["samples"] == {"twist": {"used": 39}}
    assert 0 < node["wall_p50"] <= node["wall_p95"] <= node["wall_max"] <= node["wall_total"]
    assert content["recorded_s"] == pytest.approx(3.9)
    idle = RunStatistics({"n": NodeStatistics.of(NodeCount())}, {}, 0.0, 0.0, 0.0)
    assert idle.to_dict()["nodes"]["n"]["wall_p50"] is None
    assert str(idle).splitlines()[1].split()[2:5] == ["-", "-", "0"]


def test_shares_are_parts_of_the_time_spent_in_nodes():
    quick, slow = NodeCount(), NodeCount()
    quick.wall.add(1_000_000)
    slow.wall.add(3_000_000)
    nodes = {"quick": NodeStatistics.of(quick), "slow": NodeStatistics.of(slow)}
    shares = RunStatistics(nodes, {}, 1.0, 1.0, 0.0).shares
    assert shares["quick"][0] == pytest.approx(0.25)
    assert shares["slow"][1].endswith(", 75%")
