"""The life of compounds, and sensors that are set."""

from __future__ import annotations

import numpy as np
import pytest

from transect.base.clocks import NS
from transect.engine import Node, compound
from transect.errors import UsageError
from transect.orchestrator.lifecycle import STATES, TRANSITIONS, LifeCycleError, ManagedCompound
from transect.orchestrator.modes import Mode, ModeController
from transect.simulation.day import WorldOptions, simulate
from transect.simulation.instruments import SimulatedCamera
from transect.types import Image


class Brightness(Node):
    """Counts images and reports the brightness of the last one."""

    def reset(self) -> None:
        self.seen = 0

    def process(self, image: Image) -> float:
        self.seen += 1
        if self.seen > 1000:
            raise ValueError("tired")
        return float(image.data.mean())


class Fragile(Node):
    """Fails at the third sample."""

    def reset(self) -> None:
        self.seen = 0

    def process(self, x: float) -> float:
        self.seen += 1
        if self.seen == 3:
            raise ValueError("it broke")
        return 10 * x + self.seen


def unit_of(node: type[Node], port: str) -> tuple[ManagedCompound, list[tuple[int, float]]]:
    heard: list[tuple[int, float]] = []
    made = compound("Looked", {"n": node}, [f"{port} -> n.{port}", "n.out -> out"])
    return ManagedCompound(made, listener=lambda name, t_ns, value: heard.append((t_ns, value))), heard


def test_only_an_active_unit_gets_samples_and_an_inactive_one_remembers() -> None:
    unit, heard = unit_of(Fragile, "x")
    assert (unit.state, unit.push("x", 0, 1.0)) == ("UNCONFIGURED", False)
    unit.configure()
    assert (unit.state, unit.push("x", 0, 1.0)) == ("CONFIGURED", False)
    unit.activate()
    assert unit.push("x", 1, 1.0)
    unit.deactivate()
    assert (unit.state, unit.push("x", 2, 1.0)) == ("INACTIVE", False)
    unit.activate()
    unit.push("x", 3, 1.0)
    unit.play()
    assert heard == [(1, 11.0), (3, 12.0)]  # the second call knows of the first


def test_a_node_that_fails_ends_its_unit_alone_and_cleaning_up_begins_again() -> None:
    (bad, _), (good, heard) = unit_of(Fragile, "x"), unit_of(Brightness, "image")
    both = {"bad": bad, "good": good}
    wires = {"s": (("bad", "x"),), "camera": (("good", "image"),)}
    controller = ModeController(both, {}, {"on": Mode(("bad", "good")), "off": Mode()}, wires)
    controller.set_mode("on")
    for k in range(5):
        controller.push("s", k, 0.0)
        controller.push("camera", k, Image(np.full((2, 2), k, np.uint8)))
    controller.finish()
    assert controller.states == {"bad": "FAILED", "good": "ACTIVE"}
    assert "it broke" in str(bad.error)
    assert len(heard) == 5
    controller.set_mode("off")
    assert controller.states == {"bad": "FAILED", "good": "INACTIVE"}
    bad.clean_up()
    bad.configure()
    assert (bad.state, bad.error) == ("CONFIGURED", None)


@pytest.mark.parametrize("transition", TRANSITIONS)
@pytest.mark.parametrize("state", STATES)
def test_each_transition_is_possible_from_its_states_alone(transition: str, state: str) -> None:
    unit, _ = unit_of(Fragile, "x")
    unit.configure()
    unit.state = state  # type: ignore[assignment]
    act = getattr(unit, transition.replace(" ", "_"))
    if state in TRANSITIONS[transition]:  # type: ignore[index]
        act()
    else:
        with pytest.raises(LifeCycleError, match=state):
            act()


@pytest.fixture(scope="module")
def camera() -> SimulatedCamera:
    """The left camera of a simulated field, 3 s at 15 Hz."""
    day = simulate("rosario", WorldOptions(seconds=3.0, scale=0.1, streams=("zed/left",)))
    [stream] = [s for s in day.recording if s.type is Image]
    return SimulatedCamera(stream, exposure=0.005)


def test_a_mode_changes_what_a_sensor_gives_and_who_gets_it(camera: SimulatedCamera) -> None:
    unit, heard = unit_of(Brightness, "image")
    modes = {
        "drive": Mode(("eyes",), {"left": {"rate": camera.settings["rate"], "exposure": 0.005}}),
        "creep": Mode(("eyes",), {"left": {"rate": 3.0, "exposure": 0.01}}),
        "park": Mode(),
    }
    controller = ModeController({"eyes": unit}, {"left": camera}, modes, {"left": (("eyes", "image"),)})
    start, counts = camera.stream.t_ns[0], []
    for number, mode in enumerate(modes):
        controller.set_mode(mode)
        before = len(heard)
        for t_ns, image in camera.images(int(start) + (number + 1) * NS):
            controller.push("left", t_ns, image)
        controller.finish()
        counts.append(len(heard) - before)
    assert counts == [round(modes["drive"].instruments["left"]["rate"]), 3, 0]
    bright, brighter = (np.mean([v for _, v in heard[part]]) for part in (slice(0, 10), slice(-3, None)))
    assert 1.3 < brighter / bright <= 2.01  # twice the light, but for what is white already


@pytest.mark.parametrize(
    ("setting", "value"), [("rate", 1e3), ("rate", 0.0), ("exposure", 5.0), ("gain", 1.0)]
)
def test_a_camera_refuses_what_it_cannot_do(camera: SimulatedCamera, setting: str, value: float) -> None:
    before = camera.settings
    with pytest.raises(UsageError):
        camera.change(setting, value)
    assert camera.settings == before


def test_names_that_are_not_there_are_refused() -> None:
    unit, _ = unit_of(Fragile, "x")
    with pytest.raises(UsageError, match="no unit 'eys'"):
        ModeController({"eyes": unit}, {}, {"on": Mode(("eys",))}, {})
    controller = ModeController({"eyes": unit}, {}, {"on": Mode(("eyes",))}, {"s": (("eyes", "y"),)})
    with pytest.raises(UsageError, match="no mode"):
        controller.set_mode("no")
    controller.set_mode("on")
    with pytest.raises(UsageError, match="no input 'y'"):
        controller.push("s", 0, 1.0)
