"""Live sources: bounded queues that count what they drop, and the result of a replay."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from transect.engine.compounds import compound
from transect.engine.flow import Flow
from transect.engine.live import Live
from transect.errors import UsageError

from .flows import Double, Pair, emitted, flow_of, ns, play


def pairs() -> Flow:
    return flow_of({"a": Double, "p": Pair}, ["x -> a.x", "a.out -> p.p", "y -> p.q"])


SAMPLES = [(k / 10 + offset, name, float(k)) for k in range(50) for name, offset in (("x", 0.0), ("y", 0.03))]


def test_samples_pushed_out_of_order_give_the_digest_of_a_replay():
    replayed = play(pairs(), SAMPLES)
    live = Live(pairs(), reorder=0.5)
    shuffled = sorted(SAMPLES, key=lambda s: s[0] + 0.2 * np.sin(100 * s[0]))
    assert shuffled != sorted(SAMPLES)
    for t, name, value in shuffled:
        assert live.push(name, ns(t), value)
    live.close()
    live.play()
    assert live.flow.digest == replayed.digest
    assert live.accounts == {n: {"played": 50, "late": 0, "dropped": 0} for n in "xy"}


def test_a_thread_pushes_while_another_plays():
    live = Live(pairs(), reorder=0.2)

    def feed() -> None:
        for t, name, value in sorted(SAMPLES):
            live.push(name, ns(t), value)
        live.close()

    thread = threading.Thread(target=feed)
    thread.start()
    live.play()
    thread.join()
    assert live.flow.digest == play(pairs(), SAMPLES).digest


def test_a_full_queue_drops_the_oldest_and_counts_it():
    live = Live(flow_of({"a": Double}, ["x -> a.x"]), capacity=3, reorder=100.0)
    seen = emitted(live.flow, "a.out")
    for k in range(10):
        live.push("x", ns(k), float(k))
    live.close()
    live.play()
    assert [t for t, _ in seen] == [7, 8, 9]
    assert live.accounts["x"] == {"played": 3, "late": 0, "dropped": 7}


def test_a_sample_older_than_the_horizon_is_late_and_counted():
    live = Live(flow_of({"a": Double}, ["x -> a.x"]), reorder=1.0)
    assert live.push("x", ns(10), 1.0)
    assert live.push("x", ns(9.5), 1.0)
    assert not live.push("x", ns(8.9), 1.0)
    live.close()
    live.play()
    assert live.accounts["x"] == {"played": 2, "late": 1, "dropped": 0}


def test_a_source_that_falls_silent_ends_after_the_timeout():
    live = Live(flow_of({"a": Double}, ["x -> a.x"]), reorder=0.0)
    live.push("x", ns(1), 1.0)
    live.play(timeout=0.01)
    assert live.played == {"x": 1}
    with pytest.raises(UsageError, match="closed already"):
        live.push("x", ns(2), 1.0)


def test_an_input_that_is_not_there_names_the_nearest():
    live = Live(Flow(compound("c", {"a": Double}, ["speed -> a.x", "a.out -> y"]).graph()))
    with pytest.raises(UsageError, match="no input 'sped'") as caught:
        live.push("sped", 0, 1.0)
    assert "speed" in caught.value.hint
