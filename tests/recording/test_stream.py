"""Streams: time axes, columns, payloads."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.errors import StreamError, TimeError
from transect.recording import Parsed, Stream, Timing, arrow, stream_of_values, time_axis
from transect.types import Imu, Pose

NS = 1_000_000_000


def pose_stream(t: list[int], **changes: object) -> Stream:
    n = len(t)
    columns = {c: np.linspace(0.0, 1.0, n) for c in ("x", "y", "z")}
    half = np.linspace(0.0, np.pi / 4, n)
    columns |= {"qx": np.zeros(n), "qy": np.zeros(n), "qz": np.sin(half), "qw": np.cos(half)}
    return stream_of_values("Gnss/Pose", np.array(t, np.int64), columns, type=Pose, **changes)


def test_a_sample_is_built_as_its_type_from_the_columns() -> None:
    columns = {f"{k}_{a}": np.array([i + 0.5]) for k in ("acc", "gyro") for i, a in enumerate("xyz")}
    imu = stream_of_values("Imu", np.array([7]), columns, type=Imu, frame="imu")[0].value
    assert isinstance(imu, Imu)
    assert imu.acceleration.tolist() == [0.5, 1.5, 2.5]
    assert (imu.t_ns, imu.frame, imu.magnetic_field) == (7, "imu", None)


def test_columns_carry_the_units_of_their_type() -> None:
    assert pose_stream([0, 1]).units == {
        "t_ns": "ns", "x": "m", "y": "m", "z": "m", "qx": "", "qy": "", "qz": "", "qw": "",
    }  # fmt: skip


def test_nothing_is_parsed_before_it_is_asked_for() -> None:
    calls: list[int] = []

    def build() -> Parsed:
        calls.append(1)
        return Parsed(arrow.table(np.arange(3), {}))

    stream = Stream("a", Pose, build)
    assert not calls
    assert len(stream) == 3
    assert len(stream) == 3
    assert calls == [1]


def test_at_takes_the_nearest_sample_by_any_spelling_of_time() -> None:
    start = 1_656_676_800 * NS  # 2022-07-01T12:00:00Z
    stream = pose_stream([start, start + NS, start + 2 * NS])
    assert stream.at("+1.4s").index == 1
    assert stream.at("12:00:01.6").index == 2
    assert stream.at("2022-07-01T12:00:00.9").index == 1
    assert stream.at(start - 5).index == 0
    assert stream.at("1656676801.2").index == 1


def test_a_time_of_day_on_a_clock_without_days_is_refused() -> None:
    with pytest.raises(TimeError, match="sclk"):
        pose_stream([0, 1], clock="sclk").at("12:00:00")


def test_between_is_closed_at_the_start_and_open_at_the_end() -> None:
    stream = pose_stream([0, 10, 20, 30])
    assert stream.between(10, 30).t_ns.tolist() == [10, 20]


def test_a_cut_of_a_sorted_stream_shares_its_memory() -> None:
    stream = pose_stream(list(range(100)))
    cut = stream.between(10, 50)
    assert np.shares_memory(cut["x"], stream["x"])


def test_unsorted_times_keep_their_order_and_are_still_found() -> None:
    stream = pose_stream([30, 10, 20])
    assert stream.t_ns.tolist() == [30, 10, 20]
    assert [stream.nearest(t) for t in (11, 19, 29)] == [1, 2, 0]
    assert stream.between(15, 31).t_ns.tolist() == [30, 20]


@given(st.lists(st.integers(-(10**18), 10**18), min_size=1, max_size=40), st.integers(-(10**18), 10**18))
def test_nearest_is_the_nearest(times: list[int], wanted: int) -> None:
    found = pose_stream(times).nearest(wanted)
    assert abs(times[found] - wanted) == min(abs(t - wanted) for t in times)


def test_interpolation_is_linear_for_positions_and_slerp_for_attitude() -> None:
    stream = pose_stream([0, 1000])
    middle = stream.interpolate(np.array([500]))
    assert middle["x"][0] == pytest.approx(0.5)
    half = np.pi / 8  # half of a 90 degree turn is 45 degrees: qz = sin(22.5 deg)
    assert (middle["qz"][0], middle["qw"][0]) == pytest.approx((np.sin(half), np.cos(half)))


def test_interpolation_outside_the_span_or_in_a_long_gap_is_not_a_number() -> None:
    stream = pose_stream([0, NS, 10 * NS])
    values = stream.interpolate(np.array([-1, NS // 2, 5 * NS]), ["x"], max_gap=2.0)["x"]
    assert np.isnan(values).tolist() == [True, False, True]


def test_an_index_out_of_range_and_an_unknown_column_are_named() -> None:
    stream = pose_stream([0, 1])
    with pytest.raises(StreamError, match="2 samples"):
        stream[2]
    with pytest.raises(StreamError) as caught:
        stream["qzz"]
    assert "'qz'" in str(caught.value)


def test_tables_convert_to_pandas_polars_and_numpy() -> None:
    stream = pose_stream([0, NS])
    frame = stream.to_pandas()
    assert str(frame.index[1]) == "1970-01-01 00:00:01+00:00"
    assert stream.to_polars()["x"].to_list() == [0.0, 1.0]
    assert stream.to_numpy()["t_ns"].tolist() == [0, NS]


def test_timing_tells_rate_gap_and_disorder() -> None:
    timing = Timing.of(np.array([0, 1, 1, 5, 4], np.int64) * NS)
    assert (timing.start_ns, timing.end_ns, timing.gap_s, timing.gap_at_ns) == (0, 5 * NS, 3.0, NS)
    assert (timing.backwards, timing.repeated) == (1, 1)


def test_a_rate_never_bridges_a_seam() -> None:
    t = np.array([0, 1, 2, 1000, 1001, 1002], np.int64) * NS
    assert Timing.of(t, seams=(3,)).rate == pytest.approx(1.0)
    assert Timing.of(t, seams=(3,)).gap_s == 1.0


@given(
    st.lists(st.integers(-40, 40), min_size=1, max_size=60),
    st.lists(st.integers(1, 59), max_size=3, unique=True).map(sorted),
    st.integers(1, 7),
)
def test_the_timing_of_an_axis_in_blocks_is_that_of_its_sorted_parts(
    times: list[int], seams: list[int], block: int
) -> None:
    seams = [seam for seam in seams if seam < len(times)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow, "BLOCK_ROWS", block)
        patch.setattr(time_axis, "_BLOCK_QUANTILES", 2)
        table = arrow.table(np.array(times, np.int64) * NS, {})
        timing = Stream("a", Pose, pa.concat_tables([table[:9], table[9:]]), seams=tuple(seams)).timing
    parts = [times[a:b] for a, b in itertools.pairwise([0, *seams, len(times)])]
    steps = [(b - a, a) for part in parts for a, b in itertools.pairwise(part)]
    gaps = [(b - a, a) for part in parts for a, b in itertools.pairwise(sorted(part))]
    longest = max(gaps, key=lambda gap: gap[0], default=None)
    back = [(step, at) for step, at in steps if step < 0]
    assert (timing.start_ns, timing.end_ns) == (min(times) * NS, max(times) * NS)
    assert timing.backwards == len(back)
    assert timing.repeated == sum(step == 0 for step, _ in steps)
    assert timing.back_s == -min(back, default=(0, 0))[0]
    assert timing.back_at_ns == (back[0][1] * NS if back else None)
    if longest is None:
        assert np.isnan(timing.gap_s)
    else:
        assert (timing.gap_s, timing.gap_at_ns) == (longest[0], longest[1] * NS)
    duration = sum(max(part) - min(part) for part in parts)
    assert (timing.rate == pytest.approx(len(steps) / duration)) if duration else np.isnan(timing.rate)


def test_ragged_and_fixed_lists_are_read_unchanged() -> None:
    rows = [np.array([1.0]), np.array([2.0, 3.0])]
    fixed = np.arange(4.0).reshape(2, 2)
    table = arrow.table(np.arange(2), {"r": rows, "f": fixed, "s": ["a", "ü"], "b": np.array([True, False])})
    assert table.column("r").to_pylist() == [[1.0], [2.0, 3.0]]
    assert np.array_equal(arrow.numbers(table, "f"), fixed)
    assert arrow.texts(table, "s") == ["a", "ü"]
    assert arrow.numbers(table, "b").tolist() == [True, False]
    assert np.array_equal(arrow.numbers(table.slice(1), "f"), fixed[1:])


def test_a_clock_that_was_set_back_does_not_hide_the_gap_that_it_leaves():
    # 0, 1, 2 s, then set back by 100 s: nothing was recorded from -95 s to 0 s.
    found = stream_of_values("s", np.array([0, 1, 2, -97, -96, -95]) * 10**9, {"x": np.zeros(6)}).timing
    assert (found.gap_s, found.gap_at_ns, found.backwards) == (95.0, -95 * 10**9, 1)


def test_yaw_is_interpolated_by_the_shorter_way_round():
    stream = stream_of_values(
        "s", np.array([0, 2]), {"yaw": np.array([3.1, -3.1]), "x": np.array([3.1, -3.1])}
    )
    found = stream.interpolate(np.array([1]))
    assert found["yaw"][0] == pytest.approx(np.pi)
    assert found["x"][0] == pytest.approx(0.0)
