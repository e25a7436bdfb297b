"""Compounds from YAML: nodes beside the file, nesting, implementations, controllers, operations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import pytest

from transect.engine import Batch, Compound, Frame, Latest, Node, PortError, Unit, compound, run
from transect.engine.catalogue import Catalogue
from transect.engine.compounds import CompoundError
from transect.engine.reading import parse_description
from transect.errors import UsageError
from transect.recording import Recording
from transect.recording.stream import stream_of_values
from transect.types import Imu, Twist

NODES = '''
import numpy as np

from transect.engine import Controller, Latest, Node, node, param
from transect.types import Imu, Twist


class Norm(Node, interface=True):
    """Length of the turn rate."""

    def process(self, imu: Imu) -> float: ...


class Euclidean(Norm):
    """As Euclid has it."""

    def process(self, imu: Imu) -> float:
        return float(np.linalg.norm(imu.angular_velocity))


class Largest(Norm):
    """The largest part."""

    def process(self, imu: Imu) -> float:
        return float(np.abs(imu.angular_velocity).max())


class Smooth(Node):
    """First-order low pass."""

    weight: float = param(0.5, ge=0, le=1)

    def reset(self):
        self.value = 0.0

    def process(self, x: float) -> float:
        self.value += self.weight * (x - self.value)
        return self.value


@node
def fast(twist: Twist, *, limit: float = 0.4) -> bool:
    """Whether it drives fast."""
    return bool(twist.velocity[0] > limit)


class Careful(Controller):
    """Smooths only while nothing is odd, and remembers the rest."""

    def reset(self):
        self.odd = []

    def step(self, c):
        norm = c.norm(c.imu)
        if norm > 2.0:
            self.odd.append(norm)
            return c.skip("turns too fast")
        c.store.count = getattr(c.store, "count", 0) + 1
        c.emit(turn=c.smooth(norm))

    def worst(self, most):
        return sorted(self.odd, reverse=True)[:most]
'''

TURNING = """
name: Turning
doc: How much it turns.
input_ports: [{name: imu, type: Imu}]
output_ports: [{name: turn, type: float}]
operations: [{name: worst, inputs: [{name: most, type: int}], output_type: float}]
implementations:
  - name: Plain
    nodes:
      norm: {node: Norm, implementation: Euclidean}
      smooth: {node: Smooth, params: {weight: 0.25}}
    wires: [imu -> norm.imu, norm.out -> smooth.x, smooth.out -> turn]
  - name: ByLargest
    nodes:
      norm: {node: Norm, implementation: Largest}
      smooth: {node: Smooth, params: {weight: 0.25}}
    wires: [imu -> norm.imu, norm.out -> smooth.x, smooth.out -> turn]
  - name: Careful
    nodes:
      norm: {node: Norm, implementation: Euclidean}
      smooth: {node: Smooth}
    wires: [imu -> norm.imu, norm.out -> smooth.x, smooth.out -> turn]
    controller: nodes.py:Careful
"""

NESTED = """
name: Nested
doc: A compound in a compound.
input_ports: [{name: imu, type: Imu}, {name: twist, type: Twist}]
output_ports: [{name: turn, type: float}, {name: fast, type: bool}]
nodes:
  turning: {node: Turning, implementation: ByLargest}
  again: {node: Smooth, params: {weight: 1.0}}
  fast: {node: fast, params: {limit: 0.2}}
wires: [imu -> turning.imu, turning.turn -> again.x, again.out -> turn, twist -> fast.twist, fast.out -> fast]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "nodes.py").write_text(NODES)
    (tmp_path / "Turning.yaml").write_text(TURNING)
    (tmp_path / "Nested.yaml").write_text(NESTED)
    return tmp_path


def recording() -> Recording:
    rng = np.random.default_rng(3)
    t = np.arange(300, dtype=np.int64) * 10_000_000
    imu = {name: rng.normal(size=300) for name in ("acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z")}
    speed = {"vx": np.linspace(0, 1, 300), "vy": np.zeros(300), "vz": np.zeros(300)}
    streams = (stream_of_values("imu", t, imu, type=Imu), stream_of_values("speed", t, speed, type=Twist))
    return Recording("made", streams)


def test_two_implementations_of_an_interface_are_two_algorithms(folder: Path):
    plain = run(folder / "Turning.yaml", recording())
    other = run(f"{folder / 'Turning.yaml'}/ByLargest", recording())
    assert plain.name == "Turning/Plain"
    assert plain.digest != other.digest
    assert len(plain["turn"]) == len(other["turn"]) == 300
    assert plain["turn"].values != other["turn"].values


def test_a_compound_inside_a_compound_is_dissolved_and_its_nodes_can_be_set(folder: Path):
    nested = run(folder / "Nested.yaml", recording())
    alone = run(f"{folder / 'Turning.yaml'}/ByLargest", recording())
    assert list(nested.stats.nodes) == ["fast", "turning.norm", "turning.smooth", "again"]
    assert nested["turn"].values == alone["turn"].values
    assert sum(nested["fast"].values) == sum(v > 0.2 for v in np.linspace(0, 1, 300))
    slower = run(folder / "Nested.yaml", recording(), set={"turning.smooth.weight": 0.1})
    assert slower.diff(nested).first.port == "turning.smooth.out"
    with pytest.raises(UsageError, match="no node 'smooth' to set"):
        run(folder / "Nested.yaml", recording(), set={"smooth.weight": 0.1})


def test_a_controller_calls_the_nodes_keeps_a_store_and_counts_what_it_skips(folder: Path):
    careful = run(f"{folder / 'Turning.yaml'}/Careful", recording())
    norms = np.linalg.norm(recording()["imu"].array("gyro_x", "gyro_y", "gyro_z"), axis=1)
    skipped = int((norms > 2).sum())
    assert 0 < skipped < 300
    assert careful.stats.nodes["controller"].skipped == {"turns too fast": skipped}
    assert len(careful["turn"]) == 300 - skipped
    assert careful.call("worst", most=2) == sorted(norms[norms > 2].tolist(), reverse=True)[:2]
    with pytest.raises(UsageError, match="no operation 'wurst'"):
        careful.call("wurst", most=2)
    with pytest.raises(UsageError, match="takes most"):
        careful.call("worst")
    again = run(f"{folder / 'Turning.yaml'}/Careful", recording(), keyframes=1.0)
    assert again.fork(at="+2s", set={}).digest == again.digest == careful.digest


def test_a_controller_without_a_step_is_refused(folder: Path):
    (folder / "nodes.py").write_text(NODES.replace("def step(self, c)", "def setp(self, c)"))
    with pytest.raises(UsageError, match=r"nodes\.py:Careful has no step"):
        run(f"{folder / 'Turning.yaml'}/Careful", recording())


def test_everything_that_is_wrong_is_said_at_once(folder: Path):
    text = TURNING.replace("norm.out -> smooth.x", "norm.uot -> smooth.x").replace(
        "weight: 0.25", "weight: 2"
    )
    (folder / "Wrong.yaml").write_text(text.replace("name: Turning", "name: Wrong"))
    with pytest.raises(CompoundError, match=r"cannot run: [2-9] problems") as caught:
        run(folder / "Wrong.yaml", recording())
    said = str(caught.value)
    assert "uot" in said
    assert "did you mean 'out'" in said
    assert "weight cannot be 2" in said
    assert "Wrong.yaml:12" in said


def test_a_class_without_process_is_found_out(folder: Path):
    text = NODES.replace(
        "    def process(self, x: float) -> float:\n        self.value +=",
        "    def proces(self, x: float) -> float:\n        self.value +=",
    )
    (folder / "nodes.py").write_text(text)
    with pytest.raises(CompoundError) as caught:
        run(folder / "Turning.yaml", recording())
    assert "the class Smooth has no process; is it 'proces'?" in str(caught.value)


def test_a_node_that_is_only_described_cannot_run(folder: Path):
    (folder / "Ghost.yaml").write_text(
        "name: Ghost\ndoc: d\ninput_ports: [{name: imu, type: Imu, doc: d}]\n"
        "output_ports: [{name: out, type: float, doc: d}]\n"
    )
    (folder / "Uses.yaml").write_text(
        "name: Uses\ndoc: d\ninput_ports: [{name: imu, type: Imu}]\noutput_ports: [{name: y, type: float}]\n"
        "nodes: {g: {node: Ghost}}\nwires: [imu -> g.imu, g.out -> y]\n"
    )
    with pytest.raises(CompoundError, match="cannot run"):
        run(folder / "Uses.yaml", recording())


def test_a_compound_made_in_python_round_trips_through_yaml():
    class Twice(Node):
        """Twice."""

        def process(self, imu: Imu) -> float:
            return 2.0

    made = compound("Made", {"t": Twice}, ["imu -> t.imu", "t.out -> y"], every={"t": 0.5})
    catalogue = Catalogue()
    catalogue.register(Twice)
    again = Compound(parse_description(made.to_yaml(), "made.yaml"), catalogue)
    assert run(again, recording()).digest == run(made, recording()).digest
    assert len(run(made, recording())["y"]) == 6


class Metres(Node):
    def process(self, imu: Imu) -> Annotated[float, Unit("m"), Frame("map")]:
        return 1.0


class Feet(Node):
    def process(self, x: Annotated[float, Unit("ft")]) -> None: ...


class InCamera(Node):
    def process(self, x: Latest[Annotated[float, Frame("camera")]], imu: Imu) -> None: ...


class Anything(Node):
    def process(self, x: Batch[Annotated[float, Unit("m")]], imu: Imu) -> None: ...


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Feet, "the unit is 'm', and 'ft' is expected"),
        (InCamera, "the frame is 'map', and 'camera' is expected"),
    ],
)
def test_units_and_frames_that_nodes_declare_are_held_against_each_other(kind: type[Node], said: str):
    wires = ["imu -> a.imu", "a.out -> b.x", *(["imu -> b.imu"] if "imu" in kind.inputs else [])]
    with pytest.raises(CompoundError) as caught:
        compound("Mixed", {"a": Metres, "b": kind}, wires).graph()
    assert said in str(caught.value)
    fits = compound("Fits", {"a": Metres, "b": Anything}, ["imu -> a.imu", "a.out -> b.x", "imu -> b.imu"])
    assert list(fits.graph().parts) == ["a", "b"]


def test_an_implementation_keeps_the_unit_of_its_interface():
    class Speed(Node, interface=True):
        def process(self, x: Annotated[float, Unit("m/s")]) -> float: ...

    with pytest.raises(PortError, match="the input 'x' of Knots is not that of Speed"):

        class Knots(Speed):
            def process(self, x: Annotated[float, Unit("kn")]) -> float: ...


def test_an_invalid_wire_is_refused():
    with pytest.raises(UsageError, match="is not a wire"):
        compound("Wrong", {}, ["a => b"])
