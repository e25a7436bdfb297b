"""A project for `transect run`: nodes, compounds and two seconds of a recording; and what runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner, Result

from transect import formats
from transect.cli.run import command
from transect.recording import Recording
from transect.recording.stream import stream_of_values
from transect.types import Imu, Pose, Twist

START_NS = 1_600_000_000_000_000_000
NODES = '''
import os
import signal

import numpy as np

from transect import Node, node, param
from transect.engine import Latest
from transect.types import Image, Imu, Pose, Twist


class Heading(Node):
    """Integrates the turn rate."""

    gain: float = param(1.0, gt=0)
    axes: list = param([0, 0, 1])
    name: str = param("z")
    loud: bool = param(False)

    def reset(self):
        self.yaw = 0.0

    def process(self, imu: Imu) -> float:
        self.yaw += self.gain * float(imu.angular_velocity @ np.array(self.axes)) * 0.01
        if self.loud:
            self.ctx.log("turning")
        return self.yaw


class Track(Node):
    """Dead reckoning."""

    def reset(self):
        self.x = 0.0

    def process(self, twist: Twist, yaw: Latest[float]) -> Pose:
        self.x += 0.1 * float(twist.velocity[0])
        return Pose(np.array([self.x, yaw, 0.0]), np.array([0.0, 0.0, np.sin(yaw / 2), np.cos(yaw / 2)]))


class Fails(Node):
    """Fails from a sample on."""

    after: int = param(10)

    def reset(self):
        self.calls = 0

    def process(self, imu: Imu) -> float:
        self.calls += 1
        if self.calls > self.after:
            raise ValueError("lost the horizon")
        return 1.0


class Large(Node):
    """A hundred thousand numbers that no compressor likes."""

    def process(self, imu: Imu) -> np.ndarray:
        return np.random.default_rng(self.ctx.time).normal(size=100_000)


class Presses(Node):
    """Presses Ctrl-C at its fiftieth sample."""

    times: int = param(1)

    def reset(self):
        self.calls = 0

    def process(self, imu: Imu) -> float:
        self.calls += 1
        if self.calls == 50:
            for _ in range(self.times):
                os.kill(os.getpid(), signal.SIGINT)
        return 1.0


@node
def same(pose: Pose) -> Pose:
    return pose


@node
def negative(image: Image) -> Image:
    return Image(255 - image.data, image.mode)
'''
TRACK = """
name: Track2D
doc: Dead reckoning
input_ports: [{name: imu, type: Imu}, {name: twist, type: Twist}]
output_ports: [{name: pose, type: Pose}, {name: yaw, type: float}]
implementations:
  - name: Plain
    nodes: {heading: {node: Heading}, track: {node: Track}}
    wires: [imu -> heading.imu, twist -> track.twist, heading.out -> track.yaw, heading.out -> yaw,
            track.out -> pose]
  - name: Double
    nodes: {heading: {node: Heading, params: {gain: 2.0}}, track: {node: Track}}
    wires: [imu -> heading.imu, twist -> track.twist, heading.out -> track.yaw, heading.out -> yaw,
            track.out -> pose]
"""
FAILS = """
name: Broken
doc: Two nodes that fail, one that does not
input_ports: [{name: imu, type: Imu}]
output_ports: [{name: one, type: float}, {name: yaw, type: float}]
implementations:
  - name: Broken
    nodes: {heading: {node: Heading}, late: {node: Fails, params: {after: 20}}, fails: {node: Fails}}
    wires: [imu -> heading.imu, imu -> fails.imu, imu -> late.imu, heading.out -> yaw, fails.out -> one]
"""
PRESSES = """
name: Pressed
doc: Somebody presses Ctrl-C
input_ports: [{name: imu, type: Imu}]
output_ports: [{name: out, type: float}, {name: yaw, type: float}]
implementations:
  - name: Pressed
    nodes: {one: {node: Presses}, heading: {node: Heading}}
    wires: [imu -> one.imu, imu -> heading.imu, one.out -> out, heading.out -> yaw]
"""
SMALL = """
name: {name}
doc: One node
input_ports: [{{name: {input}, type: {type}}}]
output_ports: [{{name: out, type: {out}}}]
implementations:
  - name: {name}
    nodes: {{one: {{node: {node}}}}}
    wires: [{input} -> one.{input}, one.out -> out]
"""


def write_project(folder: Path) -> Path:
    """Write nodes, compounds and a recording of 2 s; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "my_nodes.py").write_text(NODES)
    (folder / "track.yaml").write_text(TRACK)
    (folder / "broken.yaml").write_text(FAILS)
    (folder / "presses.yaml").write_text(PRESSES)
    for name, kind, node, out in (
        ("pose", "Pose", "same", "Pose"),
        ("image", "Image", "negative", "Image"),
        ("imu", "Imu", "Large", "ndarray"),
    ):
        text = SMALL.format(name=node.title(), input=name, type=kind, node=node, out=out)
        (folder / f"{node.lower()}.yaml").write_text(text)
    formats.write(recording(), folder / "day", "parquet")
    return folder


def recording(seconds: float = 2.0) -> Recording:
    """Return an IMU at 100 Hz, a speed at 10 Hz between its stamps, and true poses."""
    rng, n, m = np.random.default_rng(0), round(seconds * 100), round(seconds * 10)
    names = ("acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z")
    columns = {name: rng.normal(size=n) for name in names}
    imu = stream_of_values("imu", START_NS + np.arange(n) * 10_000_000, columns, type=Imu)
    speed = {"vx": np.full(m, 0.5), "vy": np.zeros(m), "vz": np.zeros(m)}
    twist = stream_of_values("wheels", START_NS + 3_000_001 + np.arange(m) * 100_000_000, speed, type=Twist)
    place = {"x": np.arange(m) * 0.05, "y": np.zeros(m), "z": np.zeros(m)}
    turn = {"qx": np.zeros(m), "qy": np.zeros(m), "qz": np.zeros(m), "qw": np.ones(m)}
    times = START_NS + np.arange(m) * 100_000_000
    truth = stream_of_values("truth/pose", times, place | turn, type=Pose, role="truth")
    return Recording("day", (imu, twist, truth))


def run(*arguments: object, input: str | None = None) -> Result:
    """Run the verb in this process."""
    return CliRunner().invoke(command, [str(a) for a in arguments], input=input, standalone_mode=False)


def document(*arguments: object) -> dict[str, Any]:
    """Return what `--json` prints."""
    return json.loads(run(*arguments, "--json").stdout)
