"""The firing rules, to the letter: waves, triggers, policies, delays, periods, the end, and every fate."""

from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.engine import At, Batch, Latest, Node, PortError, Shape, Synced, outputs, param
from transect.engine.compounds import CompoundError
from transect.engine.parallel import ParallelFlow
from transect.types import Image, Pose

from .flows import Add, Double, Pair, compound, emitted, flow_of, ns, play


class Near(Node):
    """A trigger with the nearest other within 10 ms."""

    def process(self, left: float, right: Annotated[float, Synced(0.01)]) -> tuple:
        return (left, right)


class Newest(Node):
    """A trigger with the newest other, or None."""

    def process(self, x: float, other: Latest[float] = None) -> tuple:
        return (x, other)


class Needs(Node):
    """A trigger with the newest other, which it cannot do without."""

    def process(self, x: float, other: Latest[float]) -> tuple:
        return (x, other)


class Gathers(Node):
    """Everything since the last trigger."""

    def process(self, x: float, many: Batch[float]) -> tuple:
        return tuple(many)


class Between(Node):
    """Another input at the trigger's time."""

    def process(self, x: float, other: At[float]) -> float:
        return other


def test_samples_of_equal_time_are_one_wave_and_a_diamond_sees_both_fresh_halves():
    flow = flow_of(
        {"b": Double, "c": Double, "d": Pair}, ["x -> b.x", "x -> c.x", "b.out -> d.p", "c.out -> d.q"]
    )
    seen = emitted(flow, "d.out")
    play(flow, [(k, "x", float(k)) for k in range(1, 4)])
    assert seen == [(1, (2.0, 2.0)), (2, (4.0, 4.0)), (3, (6.0, 6.0))]
    assert flow.statistics["d"].calls == 3


def test_a_node_runs_at_most_once_per_wave():
    flow = flow_of({"add": Add}, ["x -> add.p", "y -> add.q"])
    seen = emitted(flow, "add.out")
    play(flow, [(1, "x", 1.0), (1, "y", 2.0)])
    assert seen == [(1, 3.0)]


def test_a_node_runs_when_every_trigger_has_a_sample_not_yet_used_and_carries_the_latest_time():
    flow = flow_of({"add": Pair}, ["x -> add.p", "y -> add.q"])
    seen = emitted(flow, "add.out")
    play(flow, [(1.0, "x", 1.0), (1.5, "y", 10.0), (1.7, "y", 20.0), (2.0, "x", 2.0)])
    assert seen == [(1.5, (1.0, 10.0)), (2.0, (2.0, 20.0))]


def test_an_older_trigger_without_its_match_is_dropped_and_counted_unpaired():
    flow = flow_of({"add": Pair}, ["x -> add.p", "y -> add.q"])
    seen = emitted(flow, "add.out")
    play(flow, [(1, "x", 1.0), (2, "x", 2.0), (3, "y", 9.0), (4, "x", 4.0)])
    assert seen == [(3, (2.0, 9.0))]
    assert flow.statistics["add"].samples == {"p": {"unpaired": 2, "used": 1}, "q": {"used": 1}}


def test_a_node_that_never_paired_is_an_error_that_names_synced():
    flow = flow_of({"add": Pair}, ["x -> add.p", "y -> add.q"])
    play(flow, [(1, "x", 1.0), (2, "x", 2.0)])
    (error,) = flow.errors
    assert "'add' never ran" in error.what
    assert "p got 2, q got 0" in error.why
    assert "Synced" in error.hint


class Quiet(Node):
    def process(self, x: float) -> float | None:
        return self.ctx.skip("too dark")


def test_a_node_behind_one_that_gave_nothing_is_no_error():
    flow = flow_of({"quiet": Quiet, "add": Pair}, ["x -> add.p", "x -> quiet.x", "quiet.out -> add.q"])
    play(flow, [(1, "x", 1.0), (2, "x", 2.0)])
    assert flow.errors == []
    assert flow.statistics["quiet"].skipped == {"too dark": 2}


def test_synced_takes_the_nearest_within_its_tolerance_before_or_after_each_once():
    flow = flow_of({"n": Near}, ["l -> n.left", "r -> n.right"])
    seen = emitted(flow, "n.out")
    rights = [(0.991, "r", 1.0), (1.004, "r", 2.0), (2.02, "r", 3.0), (2.995, "r", 4.0), (3.0, "r", 5.0)]
    play(flow, [*((float(k), "l", 10.0 * k) for k in (1, 2, 3)), *rights])
    assert seen == [(1.0, (10.0, 2.0)), (3.0, (30.0, 5.0))]
    statistics = flow.statistics["n"]
    assert statistics.samples == {
        "left": {"skipped": 1, "used": 2}, "right": {"unmatched": 3, "used": 2}
    }  # fmt: skip
    assert statistics.skipped == {"no right within 0.01 s": 1}
    assert statistics.age_max == pytest.approx(0.004, rel=0.1)


def test_a_synced_sample_is_used_once_even_if_two_triggers_are_near():
    flow = flow_of({"n": Near}, ["l -> n.left", "r -> n.right"])
    seen = emitted(flow, "n.out")
    play(flow, [(1.0, "l", 1.0), (1.002, "l", 2.0), (1.001, "r", 9.0)])
    assert seen == [(1.0, (1.0, 9.0))]


def test_two_firings_that_one_sample_completes_run_in_two_waves():
    flow = flow_of({"b": Between, "d": Double}, ["x -> b.x", "y -> b.other", "b.out -> d.x"])
    seen = emitted(flow, "d.out")
    play(flow, [(0.0, "y", 0.0), *((k / 10, "x", 0.0) for k in range(1, 4)), (0.4, "y", 4.0)])
    assert [(t, pytest.approx(v)) for t, v in seen] == [(0.1, 2.0), (0.2, 4.0), (0.3, 6.0)]


def test_latest_is_the_newest_up_to_and_including_its_own_wave():
    flow = flow_of({"n": Newest, "d": Double}, ["x -> n.x", "y -> d.x", "d.out -> n.other"])
    seen = emitted(flow, "n.out")
    play(flow, [(1, "x", 1.0), (2, "y", 5.0), (2, "x", 2.0), (3, "x", 3.0), (4, "y", 6.0), (5, "y", 7.0)])
    assert seen == [(1, (1.0, None)), (2, (2.0, 10.0)), (3, (3.0, 10.0))]
    assert flow.statistics["n"].samples["other"] == {"left over": 1, "superseded": 1, "used": 1}


def test_latest_without_a_default_waits_and_is_counted():
    flow = flow_of({"n": Needs}, ["x -> n.x", "y -> n.other"])
    seen = emitted(flow, "n.out")
    play(flow, [(1, "x", 1.0), (2, "y", 5.0), (3, "x", 3.0)])
    assert seen == [(3, (3.0, 5.0))]
    assert flow.statistics["n"].skipped == {"waiting for other": 1}
    assert flow.statistics["n"].samples["x"] == {"skipped": 1, "used": 1}


def test_batch_is_everything_since_the_last_firing_up_to_the_triggers_time():
    flow = flow_of({"g": Gathers}, ["x -> g.x", "y -> g.many"])
    seen = emitted(flow, "g.out")
    play(flow, [(1, "x", 0.0), (1, "y", 1.0), (2, "y", 2.0), (3, "y", 3.0), (3, "x", 0.0), (4, "y", 4.0)])
    assert seen == [(1, (1.0,)), (3, (2.0, 3.0))]
    assert flow.statistics["g"].samples["many"] == {"left over": 1, "used": 3}


def test_at_interpolates_to_the_triggers_time_and_waits_for_the_next_sample():
    flow = flow_of({"b": Between}, ["x -> b.x", "y -> b.other"], reorder_ns=ns(1.0))
    seen = emitted(flow, "b.out")
    play(flow, [(1.0, "y", 10.0), (1.25, "x", 0.0)], end=False)
    assert seen == []
    play(flow, [(2.0, "y", 20.0), (2.0, "x", 0.0)], end=False)
    assert seen == [(1.25, 12.5), (2.0, 20.0)]


def test_at_past_the_reorder_horizon_skips_the_firing_and_counts_it():
    flow = flow_of({"b": Between}, ["x -> b.x", "y -> b.other"], reorder_ns=ns(0.5))
    seen = emitted(flow, "b.out")
    play(flow, [(1.0, "y", 10.0), (1.25, "x", 0.0), (1.9, "x", 0.0), (2.0, "y", 20.0)])
    assert [t for t, _ in seen] == [1.9]
    assert flow.statistics["b"].skipped == {"no other after it": 1}


def test_at_before_the_first_sample_is_skipped_and_counted():
    flow = flow_of({"b": Between}, ["x -> b.x", "y -> b.other"])
    play(flow, [(1.0, "x", 0.0), (1.1, "y", 1.0), (1.2, "y", 2.0)])
    assert flow.statistics["b"].skipped == {"no other before it": 1}


def test_at_turns_poses_along_the_sphere_and_refuses_what_has_no_between():
    class Where(Node):
        def process(self, x: float, pose: At[Pose]) -> Pose:
            return pose

    quarter = np.array([0, 0, np.sin(np.pi / 4), np.cos(np.pi / 4)])
    flow = flow_of({"w": Where}, ["x -> w.x", "pose -> w.pose"])
    seen = emitted(flow, "w.out")
    start, end = Pose(np.zeros(3), np.array([0, 0, 0, 1.0])), Pose(np.array([2.0, 0, 0]), quarter)
    play(flow, [(1.0, "pose", start), (1.1, "x", 0.0), (1.2, "pose", end)])
    ((t, pose),) = seen
    assert t == pytest.approx(1.1)
    np.testing.assert_allclose(pose.position, [1, 0, 0])
    np.testing.assert_allclose(pose.orientation, [0, 0, np.sin(np.pi / 8), np.cos(np.pi / 8)])
    assert pose.t_ns == ns(1.1)

    with pytest.raises(PortError, match=r"Wrong.image: Image cannot be interpolated"):

        class Wrong(Node):
            def process(self, x: float, image: At[Image]) -> None: ...


class Counter(Node):
    """Counts up from what it said last."""

    def process(self, x: float, last: Latest[float] = 0.0) -> float:
        return last + x


def test_a_delayed_wire_delivers_in_the_next_wave_and_may_close_a_loop():
    flow = flow_of({"c": Counter}, ["x -> c.x", "c.out ~> c.last"])
    seen = emitted(flow, "c.out")
    play(flow, [(k, "x", 1.0) for k in range(4)])
    assert seen == [(0, 1.0), (1, 2.0), (2, 3.0), (3, 4.0)]
    assert flow.statistics["c"].samples["last"] == {"left over": 1, "used": 3}


def test_a_delayed_trigger_runs_its_node_in_the_next_wave_for_any_content():
    flow = flow_of({"a": Double, "b": Double}, ["x -> a.x", "a.out ~> b.x", "y -> s"])
    seen = emitted(flow, "b.out")
    play(flow, [(1, "x", 1.0), (2, "y", 0.0), (3, "y", 0.0)])
    assert seen == [(1, 4.0)]


class Successive(Node):
    """Two inputs that both trigger, as they came."""

    def process(self, now: float, before: float) -> np.ndarray:
        return np.array([now, before])


class Ticking(Successive, every=1.0):
    """The same by the clock."""


class AfterLatest(Node):
    def process(self, now: Latest[float], before: float) -> np.ndarray:
        return np.array([now, before])


class AfterBatch(Node):
    def process(self, now: float, before: Batch[float], other: Annotated[float, Synced(1.2)]) -> np.ndarray:
        return np.array([now, *before[-1:]])


@pytest.mark.parametrize(
    ("nodes", "wires"),
    [
        ({"p": Successive}, ["x -> p.now", "x ~> p.before"]),
        ({"p": AfterLatest}, ["x -> p.now", "x ~> p.before"]),
        ({"p": Ticking}, ["x -> p.now", "x ~> p.before"]),
        ({"p": AfterBatch}, ["x -> p.now", "x ~> p.before", "y -> p.other"]),
        ({"p": Successive, "d": Double}, ["x -> p.now", "x ~> d.x", "d.out -> p.before"]),
        ({"p": Successive, "f": Double}, ["x -> f.x", "f.out -> p.now", "f.out ~> p.before"]),
        (
            {"p": Successive, "f": Double, "d": Double},
            ["x -> f.x", "f.out -> p.now", "f.out ~> d.x", "d.out -> p.before"],
        ),
    ],
)
def test_a_sample_never_meets_itself_behind_a_delay(nodes: dict[str, Any], wires: list[str]):
    flow = flow_of(nodes, [*wires, "y -> s"])
    seen = emitted(flow, "p.out")
    samples = [(k, "x", 3.0**k) for k in range(5)] + [(k + 0.5, "y", 0.0) for k in range(5)]
    play(flow, samples)
    pairs = [values for _, values in seen if len(values) == 2]
    factor = 2.0 if "d" in nodes else 1.0
    assert len(pairs) >= 3
    np.testing.assert_allclose([now / before for now, before in pairs], 3.0 / factor)


def test_a_delayed_wire_into_a_port_at_the_time_of_the_trigger_is_refused():
    class At3(Node):
        def process(self, now: float, before: At[float]) -> float: ...

    with pytest.raises(CompoundError, match="would take the sample that p has already"):
        flow_of({"p": At3}, ["x -> p.now", "x ~> p.before"])


def test_a_loop_without_a_delay_is_refused_before_anything_runs():
    with pytest.raises(CompoundError, match="1 problem") as caught:
        flow_of({"c": Counter, "d": Double}, ["x -> c.x", "c.out -> d.x", "d.out -> c.last"])
    assert "~>" in str(caught.value)


class Clock(Node):
    """Runs by the clock and reads the newest input."""

    def process(self, x: float) -> float:
        return x


def test_every_ticks_at_the_first_sample_and_each_period_after_that_times_wave():
    flow = flow_of({"c": Clock}, ["x -> c.x"], every={"c": 1.0})
    seen = emitted(flow, "c.out")
    play(flow, [(10.0, "x", 1.0), (10.5, "x", 2.0), (11.0, "x", 3.0), (13.5, "x", 4.0)])
    assert seen == [(10.0, 1.0), (11.0, 3.0), (12.0, 3.0), (13.0, 3.0)]


def parallel_flow_of(nodes: dict, wires: list[str], *, every: dict[str, float]) -> ParallelFlow:
    return ParallelFlow(compound("test", nodes, wires, every=every).graph(), jobs=2)


def test_the_ticks_of_a_silence_of_years_are_left_out_and_the_others_stay_in_step():
    years = 3 * 365 * 86400.0
    for kind in (flow_of, parallel_flow_of):
        flow = kind({"c": Clock}, ["x -> c.x"], every={"c": 10.0})
        seen = emitted(flow, "c.out")
        play(flow, [(0.0, "x", 1.0), (years + 5.0, "x", 2.0), (years + 31.0, "x", 3.0)])
        times = [t for t, _ in seen]
        assert times[:3] == [0.0, 10.0, 20.0]
        assert times[-4:] == [years, years + 10.0, years + 20.0, years + 30.0]
        assert 5_000 < len(times) < 20_000


def test_what_an_output_feeds_runs_in_the_wave_of_the_tick():
    flow = flow_of({"c": Clock, "d": Double}, ["x -> c.x", "c.out -> d.x"], every={"c": 1.0})
    seen = emitted(flow, "d.out")
    play(flow, [(0.0, "x", 1.0), (2.5, "x", 2.0)])
    assert seen == [(0.0, 2.0), (1.0, 2.0), (2.0, 2.0)]


class Total(Node):
    """Says the sum at the end."""

    def reset(self) -> None:
        self.sum = 0.0

    def process(self, x: float) -> float:
        self.sum += x

    def finish(self) -> float:
        return self.sum


def test_finish_is_called_once_in_topological_order_and_emits_at_the_last_triggers_time():
    flow = flow_of({"a": Total, "b": Total}, ["x -> a.x", "a.out -> b.x", "y -> s"])
    seen, after = emitted(flow, "a.out"), emitted(flow, "b.out")
    play(flow, [(1, "x", 1.0), (2, "x", 2.0), (5, "y", 0.0)])
    assert seen == [(2, 3.0)]
    assert after == [(2, 3.0)]


@outputs
class Two:
    low: float
    high: float


class Split(Node):
    """One of two outputs."""

    limit: float = param(0.0)

    def process(self, x: float) -> Two:
        return Two(low=x) if x < self.limit else Two(high=x)


def test_a_field_left_none_emits_nothing_on_that_port():
    flow = flow_of({"s": Split(limit=2.0), "d": Double}, ["x -> s.x", "s.high -> d.x"])
    low, high, doubled = emitted(flow, "s.low"), emitted(flow, "s.high"), emitted(flow, "d.out")
    play(flow, [(k, "x", float(k)) for k in range(4)])
    assert low == [(0, 0.0), (1, 1.0)]
    assert high == [(2, 2.0), (3, 3.0)]
    assert doubled == [(2, 4.0), (3, 6.0)]


class Fails(Node):
    """Cannot take 2."""

    def process(self, x: float) -> float:
        if x == 2.0:
            raise ValueError("two is too much")
        return x


def test_a_failing_node_is_named_with_port_and_time_and_the_rest_goes_on():
    flow = flow_of({"f": Fails, "d": Double, "after": Double}, ["x -> f.x", "x -> d.x", "f.out -> after.x"])
    failed, fine = emitted(flow, "after.out"), emitted(flow, "d.out")
    play(flow, [(k, "x", float(k)) for k in range(5)])
    (error,) = flow.errors
    assert (error.node, error.port, error.t_ns) == ("f", "x", ns(2))
    assert "the node 'f' (Fails) failed: ValueError: two is too much" in error.what
    assert len(fine) == 5
    assert failed == [(0, 0.0), (1, 2.0)]


def test_a_result_of_the_wrong_type_is_the_nodes_failure():
    class Liar(Node):
        def process(self, x: float) -> float:
            return "much"  # type: ignore[return-value]

    flow = play(flow_of({"f": Liar}, ["x -> f.x"]), [(0, "x", 1.0)])
    assert "f.out cannot give str 'much'" in flow.errors[0].what


def test_a_result_of_the_wrong_shape_is_the_nodes_failure():
    class Wide(Node):
        def process(self, x: float) -> Annotated[np.ndarray, Shape(3)]:
            return np.zeros(4)

    flow = play(flow_of({"f": Wide}, ["x -> f.x"]), [(0, "x", 1.0)])
    assert "f.out cannot give ndarray of shape (4,)" in flow.errors[0].what
    assert flow.errors[0].why == "expected ndarray of shape (3,)"


def test_samples_of_one_stream_that_share_a_time_are_all_accounted_for():
    flow = flow_of({"d": Double, "g": Gathers}, ["x -> d.x", "x -> g.x", "y -> g.many"])
    batches = emitted(flow, "g.out")
    play(flow, [(1, "x", 1.0), (1, "x", 2.0), (1, "y", 5.0), (1, "y", 6.0)])
    assert flow.statistics["d"].samples == {"x": {"same time": 1, "used": 1}}
    assert batches == [(1, (5.0, 6.0))]


TIMES = st.lists(st.integers(0, 40), min_size=0, max_size=25)


@given(x=TIMES, y=TIMES, z=TIMES, horizon=st.integers(0, 10))
def test_every_sample_that_reaches_a_port_has_exactly_one_fate(
    x: list[int], y: list[int], z: list[int], horizon: int
):
    flow = flow_of(
        {"near": Near, "newest": Newest, "needs": Needs, "many": Gathers, "at": Between, "add": Pair,
         "c": Counter},
        ["x -> near.left", "y -> near.right", "x -> newest.x", "y -> newest.other", "z -> needs.x",
         "x -> needs.other", "z -> many.x", "y -> many.many", "x -> at.x", "z -> at.other", "y -> add.p",
         "z -> add.q", "at.out -> c.x", "c.out ~> c.last"],
        reorder_ns=ns(horizon / 1000),
    )  # fmt: skip
    samples: list[tuple[float, str, Any]] = [
        (t / 1000, name, float(t)) for name, times in (("x", x), ("y", y), ("z", z)) for t in times
    ]
    play(flow, samples)
    for part in flow.graph.parts.values():
        fates = flow.statistics[part.id].samples
        for port, feed in part.feeds.items():
            arrived = flow.channels.counts[flow.channels.index[feed.source]]
            assert sum(fates.get(port, {}).values()) == arrived, (part.id, port, fates.get(port))
