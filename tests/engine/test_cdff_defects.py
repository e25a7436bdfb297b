"""The eleven defects that were reproduced in CDFF-Dev, each as a test: none of them is ours."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from transect.engine import Latest, Node, outputs, param
from transect.engine.compounds import CompoundError, compound
from transect.engine.nodes import ParameterError
from transect.engine.player import PlaybackPace
from transect.engine.runs import run
from transect.engine.wiring import WiringError
from transect.errors import TransectError
from transect.recording import Recording, Stream
from transect.recording.stream import stream_of_values
from transect.types import Image, Imu, Twist

from .flows import Double, Pair, emitted, flow_of, ns, play

T0_NS = 1_600_000_000_000_000_000


def speeds(count: int, name: str = "wheels", period_s: float = 0.1) -> Stream:
    """A stream of speeds 0, 1, 2, ... m/s."""
    columns = {"vx": np.arange(count, dtype=float), "vy": np.zeros(count), "vz": np.zeros(count)}
    return stream_of_values(name, T0_NS + np.arange(count) * ns(period_s), columns, type=Twist)


class Speed(Node):
    """The forward speed."""

    def process(self, twist: Twist) -> float:
        return float(twist.velocity[0])


def test_1_a_diamond_sees_both_fresh_halves():
    """CDFF-Dev: a -> (b, c) -> d gives d the pairs (1, 0), (2, 1), ..., one half stale."""
    flow = flow_of(
        {"a": Double, "b": Double, "c": Double, "d": Pair},
        ["x -> a.x", "a.out -> b.x", "a.out -> c.x", "b.out -> d.p", "c.out -> d.q"],
    )
    seen = emitted(flow, "d.out")
    play(flow, [(k, "x", float(k)) for k in (1, 2, 3)])
    assert seen == [(1, (4.0, 4.0)), (2, (8.0, 8.0)), (3, (12.0, 12.0))]


HASHED = """
from transect.engine import Batch, Node
from transect.engine.compounds import compound
from transect.engine.flow import Flow

class Echo(Node):
    def process(self, x: str) -> str:
        return x + "!"

class Gather(Node):
    def process(self, x: str, others: Batch[str]) -> dict:
        return {other: x for other in others}

names = ["gyro", "lidar", "sonar", "camera", "wheels", "radar"]
nodes = {name: Echo for name in names} | {f"all_{name}": Gather for name in names}
wires = [f"{name}_in -> {name}.x" for name in names]
for name, other in zip(names, names[1:] + names[:1]):
    wires += [f"{name}.out -> all_{name}.x", f"{other}.out -> all_{name}.others"]
    wires += [f"all_{name}.out -> {name}_out"]
flow = Flow(compound("hashed", nodes, wires).graph())
order = []
for name in names:
    flow.tap(f"all_{name}.out", lambda t_ns, value, name=name: order.append((name, list(value))))
for k in range(5):
    flow.wave(k, [(flow.channels.index[f"{name}_in"], f"{name}{k}") for name in names])
flow.end()
print(flow.digest, order)
"""


def test_2_neither_digest_nor_order_of_outputs_depends_on_the_hash_seed():
    children = [
        subprocess.Popen(
            [sys.executable, "-c", HASHED], env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE, text=True,
        )
        for seed in ("0", "1", "random")
    ]  # fmt: skip
    said = [child.communicate(timeout=120)[0] for child in children]
    assert all(child.returncode == 0 for child in children)
    assert len(said[0]) > 64
    assert said == [said[0]] * 3


class Shapes(Node):
    """An image and its left neighbour; only the neighbour triggers."""

    def process(self, imageLeft: float, image: Latest[float] = -1.0) -> tuple:
        return (imageLeft, image)


def test_3_a_trigger_is_the_port_of_that_name_and_not_of_one_that_contains_it():
    """CDFF-Dev: pushing `image` runs a node that is triggered by `imageLeft`, a substring test."""
    flow = flow_of({"n": Shapes}, ["image -> n.image", "imageLeft -> n.imageLeft"])
    seen = emitted(flow, "n.out")
    play(flow, [(1, "image", 1.0), (2, "image", 2.0), (3, "imageLeft", 3.0), (4, "image", 4.0)])
    assert seen == [(3, (3.0, 2.0))]
    assert flow.statistics["n"].calls == 1


class Window(Node):
    """Cannot be set up with some values that its parameter may have."""

    size: int = param(4, ge=1, unit="px")

    def reset(self) -> None:
        self.weights = np.ones(4).reshape(self.size, -1)

    def process(self, twist: Twist) -> float:
        raise AssertionError("must not run")


def test_4_a_node_that_cannot_be_configured_ends_the_run_before_it_begins_and_is_named():
    """CDFF-Dev: an exception in `configure()` becomes a warning, and the node runs unconfigured."""
    windows = compound(
        "W", {"first": Window, "second": Window}, ["twist -> first.twist", "twist -> second.twist"]
    )
    recording = Recording("made", (speeds(3),))
    with pytest.raises(ParameterError, match=r"Window\.size cannot be 0") as refused:
        run(windows, recording, set={"second.size": 0})
    assert "'second'" in str(refused.value)
    with pytest.raises(TransectError, match=r"the node 'second' .* ValueError: cannot reshape") as failed:
        run(windows, recording, set={"second.size": 3})
    assert "size=3" in failed.value.why
    assert isinstance(failed.value.__cause__, ValueError)


class Unready(Node):
    """Never ready."""

    def reset(self) -> None:
        raise FileNotFoundError("calibration.yaml")

    def process(self, x: float) -> float:
        return x


def test_4_a_failing_reset_is_named_where_a_compound_is_made_in_python_too():
    with pytest.raises(TransectError, match=r"the node 'rectify' .* calibration\.yaml"):
        compound("U", {"rectify": Unready}, ["x -> rectify.x"])


class Sums(Node):
    """Adds up what it is given and what it said last."""

    def process(self, x: float, last: Latest[float] = 0.0) -> float:
        return x + last


def test_5_a_loop_is_reported_when_it_is_built_and_runs_through_a_delay():
    """CDFF-Dev: a feedback loop ends in a RecursionError."""
    nodes = {"a": Sums, "b": Double}
    with pytest.raises(CompoundError, match="1 problem") as refused:
        flow_of(nodes, ["x -> a.x", "a.out -> b.x", "b.out -> a.last"])
    assert "~>" in str(refused.value)
    rounds = 2 * sys.getrecursionlimit()
    flow = flow_of({"a": Sums}, ["x -> a.x", "a.out ~> a.last"])
    seen = emitted(flow, "a.out")
    play(flow, [(float(k), "x", 1.0) for k in range(rounds)])
    assert seen[-1] == (rounds - 1, float(rounds))


class FakeClock:
    """Stands in for the module `time`: sleeping is free, and exact."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(("rate", "expected"), [(1.0, 1.0), (0.5, 2.0), (20.0, 0.55)])
def test_6_the_pace_is_kept_against_the_start_and_a_slow_node_is_made_up_for(
    monkeypatch: pytest.MonkeyPatch, rate: float, expected: float
):
    """CDFF-Dev: 1.0 s of log with a node of 0.05 s takes 1.55 s, the start is set again with every sample."""
    clock = FakeClock()
    monkeypatch.setattr("transect.engine.player.time", clock)

    class Slow(Node):
        def process(self, twist: Twist) -> float:
            clock.now += 0.05
            return 0.0

    slow = compound("Slow", {"slow": Slow}, ["twist -> slow.twist", "slow.out -> out"])
    result = run(slow, Recording("made", (speeds(11),)), rate=rate)
    assert len(result["out"]) == 11
    last_call = 0.05 if rate <= 1 else 0.0
    assert clock.now - 100.0 == pytest.approx(expected + last_call)


def test_6_the_rate_is_more_than_zero():
    with pytest.raises(TransectError, match="not more than 0"):
        PlaybackPace(0.0)


def test_7_wires_between_types_that_do_not_fit_are_all_reported_when_they_are_built():
    """CDFF-Dev: nothing is checked, neither when ports are connected nor when samples are pushed."""

    class Sees(Node):
        def process(self, image: Image) -> Image:
            return image

    with pytest.raises(CompoundError, match="2 problems") as refused:
        flow_of(
            {"speed": Speed, "sees": Sees, "double": Double},
            ["twist -> speed.twist", "speed.out -> sees.image", "speed.oot -> double.x"],
        )
    said = str(refused.value)
    assert "float" in said
    assert "Image" in said
    assert "did you mean 'out'" in said


def test_7_a_stream_of_another_type_is_not_pushed_into_a_port():
    one = compound("S", {"speed": Speed}, ["twist -> speed.twist", "speed.out -> v"])
    imu = stream_of_values(
        "imu", np.array([T0_NS]),
        {f"{kind}_{axis}": np.zeros(1) for kind in ("acc", "gyro") for axis in "xyz"},
        type=Imu,
    )  # fmt: skip
    with pytest.raises(WiringError, match="imu"):
        run(one, Recording("made", (imu, speeds(2))), wire={"twist": "imu"})
    with pytest.raises(TransectError, match="cannot take float"):
        Speed()(1.0)


def test_8_streams_without_samples_are_played_like_any_other():
    """CDFF-Dev: `replay_join` with an empty iterator is a RuntimeError."""
    two = compound(
        "Two", {"a": Speed, "b": Speed},
        ["first -> a.twist", "second -> b.twist", "a.out -> va", "b.out -> vb"],
    )  # fmt: skip
    wire = {"first": "full", "second": "empty"}
    result = run(two, Recording("made", (speeds(3, "full"), speeds(0, "empty"))), wire=wire)
    assert result["va"].values == [0.0, 1.0, 2.0]
    assert len(result["vb"]) == 0
    assert result.stats.streams["empty"] == {"samples": 0, "played": 0, "late": 0}
    nothing = run(two, Recording("made", (speeds(0, "full"), speeds(0, "empty"))), wire=wire)
    assert nothing.status == "complete"
    assert len(nothing["va"]) == len(nothing["vb"]) == 0


@outputs
class Halves:
    """Of a number."""

    even: float
    odd: float


class Sorts(Node):
    """Even and odd numbers on a port each, 0 on none."""

    def process(self, x: float) -> Halves:
        if not x:
            return None
        return Halves(odd=x) if x % 2 else Halves(even=x)


def test_9_none_is_no_output_on_each_port_and_nothing_old_is_emitted_again():
    """CDFF-Dev ignores `hasNewOutput`: old outputs are emitted and logged again with a new stamp."""
    flow = flow_of({"s": Sorts, "d": Double}, ["x -> s.x", "s.even -> d.x"])
    even, odd, doubled = (emitted(flow, name) for name in ("s.even", "s.odd", "d.out"))
    play(flow, [(float(k), "x", float(k % 4)) for k in range(8)])
    assert even == [(2, 2.0), (6, 2.0)]
    assert odd == [(1, 1.0), (3, 3.0), (5, 1.0), (7, 3.0)]
    assert doubled == [(2, 4.0), (6, 4.0)]
    assert flow.statistics["d"].calls == 2


class Sleeps(Node):
    """Takes time, but not the processor's."""

    def process(self, x: float) -> float:
        time.sleep(SLEEP_S)
        return x


SLEEP_S = 0.004


def test_10_the_time_of_a_sleeping_node_is_counted_and_its_processor_time_is_not():
    """CDFF-Dev counts process CPU time only: a sleeping node costs 0.00005 s."""
    flow = play(flow_of({"s": Sleeps}, ["x -> s.x"]), [(float(k), "x", 1.0) for k in range(48)])
    found = flow.statistics["s"]
    assert found.wall_p50 >= SLEEP_S * 15 / 16, "half the width of a bucket below the shortest call"
    assert found.wall_p50 <= found.wall_p95 <= found.wall_max
    assert found.wall_max >= SLEEP_S
    assert found.wall_total >= 48 * SLEEP_S
    assert 0 < found.cpu_p50 < SLEEP_S / 4


class Collects(Node):
    """A sink: takes everything, gives nothing."""

    def reset(self) -> None:
        self.taken: list[float] = []

    def process(self, x: float) -> None:
        self.taken.append(x)


def test_11_a_sink_gets_every_sample_and_is_accounted_for():
    """CDFF-Dev: result ports that it does not know are dropped without a word."""
    flow = flow_of({"d": Double, "sink": Collects}, ["x -> d.x", "d.out -> sink.x"])
    play(flow, [(float(k), "x", float(k)) for k in range(4)])
    assert flow.graph.parts["sink"].node.freeze()["taken"] == [0.0, 2.0, 4.0, 6.0]
    assert flow.statistics["sink"].samples == {"x": {"used": 4}}


def test_11_every_result_port_is_kept_or_refused():
    recording = Recording("made", (speeds(3),))
    wires = ["twist -> speed.twist", "speed.out -> v"]
    result = run(compound("S", {"speed": Speed}, wires), recording)
    assert list(result.outputs) == ["v"]
    assert result["v"].values == [0.0, 1.0, 2.0]
    unwired = run(compound("S", {"speed": Speed}, wires[:1]), recording)
    assert unwired.ports == result.ports, "a port that nobody takes is hashed all the same"
    with pytest.raises(CompoundError, match="did you mean 'out'"):
        run(compound("S", {"speed": Speed}, [*wires, "speed.outt -> w"]), recording)
