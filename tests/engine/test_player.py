"""The player: pacing against a start anchor, steps, pauses, breaks, and the same result in each mode."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.engine import Node
from transect.engine.flow import Flow
from transect.engine.player import END, MAX_SLEEP_S, PAUSED, SEVERAL_CHANNELS, PlaybackPace, Player
from transect.errors import UsageError

from .flows import Double, emitted, flow_of, ns

TENTHS = [k / 10 for k in range(11)]
"""1.0 s of log at 10 Hz."""


class FakeTime:
    """A clock that only moves when somebody sleeps, or a node says that it worked."""

    def __init__(self) -> None:
        self.now = 100.0
        self.naps: list[float] = []
        self.on_sleep: Callable[[], None] = lambda: None

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now += seconds
        self.on_sleep()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    made = FakeTime()
    monkeypatch.setattr("transect.engine.player.time", made)
    return made


def player_of(flow: Flow, seconds: list[float], rate: float | None = None) -> Player:
    """Return a player of one sample per time; the value is the time."""
    channel = flow.channels.index["x"]
    return Player(flow, iter([(ns(t), channel, t) for t in seconds]), rate)


def doubling() -> Flow:
    return flow_of({"d": Double}, ["x -> d.x", "d.out -> y"])


def working(clock: FakeTime, seconds: float) -> Flow:
    """A flow whose node takes some time."""

    class Works(Node):
        """Takes its time."""

        def process(self, x: float) -> float:
            clock.now += seconds
            return x

    return flow_of({"w": Works}, ["x -> w.x", "w.out -> y"])


def test_what_a_slow_node_takes_is_made_up_for(clock: FakeTime):
    # cdff.md 1.9, defect 6: 1.0 s of log with a 0.05 s node took 1.55 s.
    player = player_of(working(clock, 0.05), TENTHS, rate=1.0)
    assert player.play() == END
    assert clock.now - 100.0 == pytest.approx(1.0 + 0.05)


def test_a_node_slower_than_the_recording_never_sleeps(clock: FakeTime):
    player_of(working(clock, 0.2), TENTHS, rate=1.0).play()
    assert clock.naps == []
    assert clock.now - 100.0 == pytest.approx(11 * 0.2)


@pytest.mark.parametrize(("rate", "took"), [(5.0, 0.2), (0.5, 2.0)])
def test_a_rate_is_times_real_time(clock: FakeTime, rate: float, took: float):
    player_of(doubling(), TENTHS, rate).play()
    assert clock.now - 100.0 == pytest.approx(took)


def test_without_a_rate_nobody_sleeps(clock: FakeTime):
    player_of(doubling(), TENTHS).play()
    assert clock.naps == []


def test_a_pause_is_not_made_up_for(clock: FakeTime):
    player = player_of(doubling(), TENTHS, rate=1.0)
    player.break_at(ns(0.5))
    assert player.play() == "break: time"
    clock.now += 3600.0
    began = clock.now
    player.play()
    assert clock.now - began == pytest.approx(0.5)


def test_a_pause_in_a_long_gap_comes_after_a_nap_and_the_wave_after_the_gap_is_held(clock: FakeTime):
    flow = doubling()
    seen = emitted(flow, "d.out")
    player = player_of(flow, [0.0, 3600.0], rate=1.0)
    clock.on_sleep = player.pause
    assert player.play() == PAUSED
    assert clock.naps == [MAX_SLEEP_S]
    assert seen == [(0.0, 0.0)]
    clock.on_sleep = lambda: None
    assert player.play() == END
    assert seen == [(0.0, 0.0), (3600.0, 7200.0)]


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan")])
def test_a_rate_that_goes_nowhere_is_refused(rate: float):
    with pytest.raises(UsageError, match="not more than 0"):
        PlaybackPace(rate)


def test_a_step_plays_one_wave_and_says_when_there_are_no_more():
    flow = doubling()
    seen = emitted(flow, "d.out")
    player = player_of(flow, [0.0, 0.1, 0.2])
    assert player.state == "ready"
    assert player.step() == PAUSED
    assert seen == [(0.0, 0.0)]
    assert player.step(2) == PAUSED
    assert len(seen) == 3
    assert not flow.ended
    assert player.step() == END
    assert (flow.ended, player.state) == (True, "ended")
    assert player.play() == END


def test_samples_of_one_time_are_one_step():
    flow = flow_of({"d": Double, "e": Double}, ["x -> d.x", "z -> e.x"])
    seen = emitted(flow, "e.out")
    both = [(flow.channels.index["x"], 1.0), (flow.channels.index["z"], 2.0)]
    assert Player(flow, iter([(ns(0.5), SEVERAL_CHANNELS, both)])).step() == PAUSED
    assert seen == [(0.5, 4.0)]


def test_a_node_can_pause_the_player_which_stops_before_the_next_wave():
    class Pauses(Node):
        """Pauses at half a second."""

        def process(self, x: float) -> float:
            if x == 0.5:
                player.pause()
            return x

    flow = flow_of({"p": Pauses}, ["x -> p.x", "p.out -> y"])
    player = player_of(flow, TENTHS)
    assert player.play() == PAUSED
    assert flow.now_ns == ns(0.5)
    assert player.play() == END
    assert flow.now_ns == ns(1.0)


def test_a_break_at_a_time_stops_before_its_wave_once():
    flow = doubling()
    player = player_of(flow, TENTHS)
    player.break_at(ns(0.45))
    assert player.play() == "break: time"
    assert flow.now_ns == ns(0.4)
    assert player.play() == END


def test_a_break_when_a_port_emits_stops_after_that_wave_each_time():
    flow = doubling()
    player = player_of(flow, TENTHS)
    player.break_when("d.out", lambda value: value > 1.5)
    stops = []
    while (why := player.play()) != END:
        assert why == "break: d.out"
        stops.append(flow.now_ns)
    assert stops == [ns(0.8), ns(0.9), ns(1.0)]


def test_a_break_at_an_input_holds_although_waves_were_played_before_it_was_set():
    flow = doubling()
    player = player_of(flow, TENTHS)
    player.step(3)
    player.break_when("x", lambda value: value > 0.65)
    assert player.play() == "break: x"
    assert flow.now_ns == ns(0.7)


def test_many_steps_end_at_a_break_and_the_first_goes_past_it():
    flow = doubling()
    player = player_of(flow, TENTHS)
    player.break_at(ns(0.3))
    assert player.step(100) == "break: time"
    assert flow.now_ns == ns(0.2)
    player.break_at(ns(0.3))
    assert player.step() == PAUSED
    assert flow.now_ns == ns(0.3)
    player.break_when("d.out")
    assert player.step(100) == "break: d.out"
    assert flow.now_ns == ns(0.4)


@given(st.lists(st.integers(0, 4), max_size=8))
def test_however_it_is_stopped_the_digest_is_that_of_an_uninterrupted_run(ways: list[int]):
    whole = doubling()
    player_of(whole, TENTHS).play()
    flow = doubling()
    player = player_of(flow, TENTHS)
    for way in ways:
        if way == 0:
            player.break_at(flow.now_ns + ns(0.15) if flow.now_ns > 0 else ns(0.15))
            player.play()
        else:
            player.step(way)
    while player.play() != END:
        pass
    assert flow.digest == whole.digest
    assert flow.statistics["d"].samples == whole.statistics["d"].samples
