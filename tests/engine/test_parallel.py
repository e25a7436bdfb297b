"""Several threads, the same result: digests, fates and errors are those of one thread."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transect.engine import Latest, Node
from transect.engine.compounds import compound
from transect.engine.flow import Flow
from transect.engine.parallel import ParallelFlow, can_run_in_parallel, tasks_of

from .flows import Double, Pair, ns, play
from .test_flow import Between, Clock, Counter, Fails, Gathers, Near, Needs, Newest, Total

NODES = {
    "near": Near, "newest": Newest, "needs": Needs, "many": Gathers, "at": Between, "add": Pair, "c": Counter,
    "clock": Clock, "total": Total, "d1": Double, "d2": Double, "sum": Pair, "ff": Fails, "after": Double,
}  # fmt: skip
WIRES = [
    "x -> near.left", "y -> near.right", "x -> newest.x", "y -> newest.other", "z -> needs.x",
    "x -> needs.other", "z -> many.x", "y -> many.many", "x -> at.x", "z -> at.other", "y -> add.p",
    "z -> add.q", "at.out -> c.x", "c.out ~> c.last", "x -> clock.x", "c.out -> total.x",
    "clock.out -> d1.x", "at.out -> d2.x", "d1.out -> sum.p", "d2.out -> sum.q", "z -> ff.x",
    "ff.out -> after.x", "total.out -> last",
]  # fmt: skip


def played(kind: Any, samples: list[tuple[float, str, Any]], horizon: float, **options: Any) -> Flow:
    graph = compound("test", NODES, WIRES, every={"clock": 0.003}).graph()
    return play(kind(graph, reorder_ns=ns(horizon), **options), samples)


def accounts(flow: Flow) -> dict[str, Any]:
    """What may not depend on threads, of the statistics."""
    return {name: (s.calls, s.samples, s.skipped, s.age_max) for name, s in flow.statistics.items()}


TIMES = st.lists(st.integers(0, 40), min_size=0, max_size=25)


@settings(max_examples=15)
@given(x=TIMES, y=TIMES, z=TIMES, horizon=st.integers(0, 10), jobs=st.integers(2, 4))
def test_any_flow_gives_the_same_on_any_number_of_threads(
    x: list[int], y: list[int], z: list[int], horizon: int, jobs: int
):
    samples: list[tuple[float, str, Any]] = [
        (t / 1000, name, float(t)) for name, times in (("x", x), ("y", y), ("z", z)) for t in times
    ]
    one = played(Flow, samples, horizon / 1000)
    many = played(ParallelFlow, samples, horizon / 1000, jobs=jobs)
    assert many.port_digests == one.port_digests
    assert many.digest == one.digest
    assert accounts(many) == accounts(one)
    assert [str(e) for e in many.errors] == [str(e) for e in one.errors]


MEETING = threading.Barrier(2)


class Meeting(Node):
    """Waits until another node of its kind runs, too."""

    def process(self, x: float) -> float:
        MEETING.wait(timeout=60)
        return x + 1


def test_nodes_that_do_not_depend_on_each_other_run_at_the_same_time():
    graph = compound(
        "two", {"a": Meeting, "b": Meeting}, ["x -> a.x", "x -> b.x", "a.out -> p", "b.out -> q"]
    ).graph()
    flow = play(ParallelFlow(graph, jobs=2), [(k / 10, "x", 1.0) for k in range(20)])
    assert flow.statistics["a"].calls == flow.statistics["b"].calls == 20
    assert not flow.errors


def test_delayed_wires_hold_their_nodes_together_and_may_not_make_a_node_run_on_threads():
    loop = compound(
        "loop", {"a": Double, "c": Counter, "b": Double},
        ["x -> a.x", "a.out -> c.x", "c.out -> b.x", "b.out ~> c.last", "b.out -> y"],
    ).graph()  # fmt: skip
    assert tasks_of(loop) == [["a"], ["c", "b"]]
    assert can_run_in_parallel(loop)
    late = compound("late", {"a": Double, "b": Double}, ["x -> a.x", "a.out ~> b.x", "b.out -> y"]).graph()
    assert not can_run_in_parallel(late)


class Broken(Node):
    """Raises what no flow should catch."""

    def process(self, x: float, last: Latest[float] = 0.0) -> float:
        raise SystemExit("gone")


def test_what_stops_a_thread_is_raised_where_the_recording_is_played():
    graph = compound("broken", {"a": Broken, "b": Double}, ["x -> a.x", "a.out -> b.x", "b.out -> y"]).graph()
    with pytest.raises(SystemExit, match="gone"):
        play(ParallelFlow(graph, jobs=2), [(k / 10, "x", 1.0) for k in range(200)])
