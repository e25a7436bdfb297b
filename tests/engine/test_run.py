"""Runs: same bytes every time, compared with others, forked, kept in a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest

import transect
from transect.engine import Latest, Node, Synced, node, param
from transect.engine.compounds import Compound, compound
from transect.engine.digest import RunsDifferError
from transect.engine.execution import NodeError
from transect.engine.replay import Options, Replay
from transect.engine.runs import Run, run
from transect.engine.wiring import WiringError
from transect.errors import TransectError, UsageError
from transect.recording import Recording
from transect.recording.stream import stream_of_values
from transect.types import Image, Imu, NavFix, Pose, Twist

T0_NS = 1_600_000_000_000_000_000


def recording(seconds: float = 10.0, seed: int = 0) -> Recording:
    """An IMU at 100 Hz, a speed at 10 Hz whose stamps are never the IMU's."""
    rng = np.random.default_rng(seed)
    n = round(seconds * 100)
    imu = stream_of_values(
        "imu", T0_NS + np.arange(n) * 10_000_000,
        {name: rng.normal(size=n) for name in ("acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z")},
        type=Imu,
    )  # fmt: skip
    m = n // 10
    twist = stream_of_values(
        "wheels", T0_NS + 3_000_001 + np.arange(m) * 100_000_000,
        {"vx": np.full(m, 0.5), "vy": np.zeros(m), "vz": np.zeros(m)}, type=Twist,
    )  # fmt: skip
    return Recording("made", (imu, twist))


class Heading(Node):
    """Integrates the turn rate."""

    gain: float = param(1.0, gt=0)

    def reset(self) -> None:
        self.yaw, self.last = 0.0, None

    def process(self, imu: Imu) -> float:
        if self.last is not None:
            self.yaw += self.gain * float(imu.angular_velocity[2]) * (self.ctx.time - self.last) / 1e9
        self.last = self.ctx.time
        return self.yaw


class Track(Node):
    """Dead reckoning."""

    def reset(self) -> None:
        self.position = np.zeros(3)

    def process(self, twist: Twist, yaw: Latest[float]) -> Pose:
        self.position = self.position + 0.1 * float(twist.velocity[0]) * np.array(
            [np.cos(yaw), np.sin(yaw), 0]
        )
        return Pose(self.position, np.array([0, 0, np.sin(yaw / 2), np.cos(yaw / 2)]))


def odometry() -> Compound:
    return compound(
        "Odometry", {"heading": Heading, "track": Track},
        ["imu -> heading.imu", "twist -> track.twist", "heading.out -> track.yaw", "track.out -> pose"],
    )  # fmt: skip


def test_the_same_recording_gives_the_same_digest_for_any_chunks():
    made = recording()
    digests = set()
    for chunk in (1, 7, 4096):
        replay = Replay(odometry(), made, chunk=chunk)
        replay.play()
        digests.add(replay.flow.digest)
    assert len(digests) == 1
    assert run(odometry(), made).digest in digests
    assert run(odometry(), recording(seed=1)).digest not in digests


def test_a_run_wires_by_type_and_gives_its_outputs():
    result = transect.run(odometry(), recording())
    assert result["pose"].t_ns[0] == T0_NS + 3_000_001
    assert len(result["pose"]) == 100
    assert isinstance(result["pose"].values[0], Pose)
    assert result.stats.nodes["heading"].calls == 1000
    assert result.stats.streams["imu"] == {"samples": 1000, "played": 1000, "late": 0}
    assert result.config["wiring"]["imu"]["stream"] == "imu"
    assert "heading" in str(result.stats)


def test_a_parameter_is_set_by_node_and_name_and_refused_if_it_is_not_there():
    plain = run(odometry(), recording())
    turned = run(odometry(), recording(), set={"heading.gain": 2.0})
    assert turned.digest != plain.digest
    difference = turned.diff(plain)
    assert difference.first.port == "heading.out"
    assert difference.first.first_ns == T0_NS + 10_000_000
    assert difference.settings["parameters.heading.gain"] == (2.0, 1.0)
    assert "heading.out: from" in str(difference)
    with pytest.raises(UsageError, match="no node 'headin'"):
        run(odometry(), recording(), set={"headin.gain": 2.0})
    with pytest.raises(UsageError, match="no parameter 'gian'"):
        run(odometry(), recording(), set={"heading.gian": 2.0})
    with pytest.raises(UsageError, match="cannot be -1"):
        run(odometry(), recording(), set={"heading.gain": -1.0})


@pytest.mark.parametrize("keyframes", [None, 1.0, 3.7])
def test_a_fork_is_the_parent_before_and_the_changed_run_after(keyframes: float | None):
    parent = run(odometry(), recording(), keyframes=keyframes)
    child = parent.fork(at="+6s", set={"heading.gain": 3.0})
    difference = child.diff(parent)
    assert difference.first.port == "heading.out"
    assert difference.first.first_ns >= T0_NS + 6_000_000_000
    assert difference.first.first_ns < T0_NS + 6_050_000_000
    assert len(child["pose"]) == len(parent["pose"])
    np.testing.assert_array_equal(child["pose"].t_ns, parent["pose"].t_ns)
    again = run(odometry(), recording()).fork(at="+6s", set={"heading.gain": 3.0})
    assert again.digest == child.digest
    assert parent.fork(at="+6s", set={}).digest == parent.digest


@pytest.mark.parametrize("keyframes", [None, 1.0])
def test_a_fork_on_several_threads_is_that_on_one(keyframes: float | None):
    one = run(odometry(), recording()).fork(at="+6s", set={"heading.gain": 3.0})
    two = run(odometry(), recording(), jobs=2, keyframes=keyframes).fork(at="+6s", set={"heading.gain": 3.0})
    assert two.digest == one.digest


def test_a_fork_from_a_keyframe_keeps_what_the_first_pass_found():
    twice = compound("Two", {"t": Twice}, ["twist -> t.twist", "t.out -> n"])
    parent = run(twice, recording(), keyframes=2.0)
    child = parent.fork(at="+6s", set={})
    assert child["n"].values == [100] * 100
    assert child.digest == parent.digest


def test_a_run_is_the_same_as_a_golden_one_or_says_what_differed_first(tmp_path: Path):
    run(odometry(), recording(), out=tmp_path / "golden")
    run(odometry(), recording(), golden=tmp_path / "golden").assert_same(tmp_path / "golden")
    with pytest.raises(RunsDifferError, match=r"heading\.out differs first") as caught:
        run(odometry(), recording(), set={"heading.gain": 2.0}, golden=tmp_path / "golden")
    assert caught.value.exit_code == 4


def test_the_folder_of_a_run_has_everything_and_a_link_to_the_latest(tmp_path: Path):
    first = run(odometry(), recording(), out=tmp_path / "a")
    run(odometry(), recording(), out=tmp_path / "b")
    assert (tmp_path / "latest").resolve() == (tmp_path / "b").resolve()
    content = json.loads((tmp_path / "a" / "run.json").read_text())
    assert content["status"] == "complete"
    assert content["digest"] == first.digest == run(odometry(), recording()).digest
    assert content["config"]["versions"]["numpy"] == np.__version__
    assert content["statistics"]["nodes"]["heading"]["calls"] == 1000
    lines = (tmp_path / "a" / "pose.tum").read_text().splitlines()
    assert len([line for line in lines if not line.startswith("#")]) == 100
    assert transect.open(tmp_path / "a" / "pose.tum").streams[0].t_ns[0] == T0_NS + 3_000_001
    assert "<svg" in (tmp_path / "a" / "graph.svg").read_text()
    assert (tmp_path / "a" / "compound.yaml").read_text() == odometry().to_yaml()
    loaded = Run.load(tmp_path / "a")
    assert not loaded.diff(tmp_path / "b")
    assert {k: len(t) for k, t in loaded.traces.items()} == {"heading.out": 1000, "track.out": 100}


def test_a_folder_that_is_there_already_is_not_written_over(tmp_path: Path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "mine.txt").write_text("precious")
    with pytest.raises(UsageError, match="exists already"):
        run(odometry(), recording(), out=tmp_path / "a")
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["a", "mine.txt"]
    with pytest.raises(UsageError, match="not the folder of a run"):
        Run.load(tmp_path / "a")


class Fails(Node):
    """Fails in the middle."""

    def process(self, twist: Twist) -> float:
        if self.ctx.time > T0_NS + 5_000_000_000:
            raise ValueError("lost the wheels")
        return 1.0


def test_a_failing_node_keeps_the_rest_of_the_run(tmp_path: Path):
    broken = compound(
        "Broken", {"heading": Heading, "fails": Fails},
        ["imu -> heading.imu", "twist -> fails.twist", "heading.out -> yaw", "fails.out -> one"],
    )  # fmt: skip
    with pytest.raises(NodeError, match="'fails' \\(Fails\\) failed: ValueError: lost the wheels") as caught:
        run(broken, recording(), out=tmp_path / "run")
    assert caught.value.where.startswith("fails.twist@16000000050")
    content = json.loads((tmp_path / "run.failed" / "run.json").read_text())
    assert content["status"] == "failed"
    assert "lost the wheels" in content["errors"][0]
    assert transect.open(tmp_path / "run.failed" / "yaw.parquet").streams[0].timing.count == 1000
    assert transect.open(tmp_path / "run.failed" / "one.parquet").streams[0].timing.count == 50
    assert caught.value.run.folder == tmp_path / "run.failed"
    assert caught.value.run.stats.nodes["heading"].calls == 1000


class Interrupts(Node):
    """Presses Ctrl-C."""

    def process(self, twist: Twist) -> None:
        if self.ctx.time > T0_NS + 5_000_000_000:
            raise KeyboardInterrupt


def test_an_interrupted_run_is_kept_as_far_as_it_came(tmp_path: Path):
    stopped = compound(
        "Stopped", {"heading": Heading, "stop": Interrupts},
        ["imu -> heading.imu", "twist -> stop.twist", "heading.out -> yaw"],
    )  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        run(stopped, recording(), out=tmp_path / "run")
    assert json.loads((tmp_path / "run.interrupted" / "run.json").read_text())["status"] == "interrupted"
    assert transect.open(tmp_path / "run.interrupted" / "yaw.parquet").streams[0].timing.count == 501
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_inputs_that_cannot_be_wired_say_what_to_type():
    @node
    def fix(fix: NavFix) -> float:
        return fix.altitude

    with pytest.raises(WiringError):
        run(compound("Fix", {"fix": fix}, ["nav -> fix.fix", "fix.out -> height"]), recording())


def test_late_samples_are_left_out_and_counted_and_nearly_late_ones_put_in_order():
    made = recording(2.0)
    imu = made["imu"]
    times = imu.t_ns.copy()
    times[50], times[51] = times[51], times[50]
    times[150] = times[20]
    shuffled = stream_of_values("imu", times, {n: imu.column(n) for n in imu.columns}, type=Imu)
    jumbled = made.replace(streams=(shuffled, made["wheels"]))
    result = run(odometry(), jumbled, reorder=0.5)
    assert result.stats.streams["imu"] == {"samples": 200, "played": 199, "late": 1}
    assert run(odometry(), jumbled, reorder=2.0).stats.streams["imu"]["late"] == 0


def test_a_part_of_the_recording_is_played_from_and_to():
    result = run(odometry(), recording(), start="+2s", end="+3s")
    assert result.stats.nodes["heading"].calls == 100


class Twice(Node, passes=2):
    """Knows in the second pass how much there was in the first."""

    def reset(self) -> None:
        self.seen = 0

    def process(self, twist: Twist) -> int:
        self.seen += self.ctx.pass_index == 0
        return self.seen


def test_a_node_that_needs_several_passes_sees_the_recording_again():
    result = run(compound("Two", {"t": Twice}, ["twist -> t.twist", "t.out -> n"]), recording())
    assert result["n"].values == [100] * 100


class TwiceButShort(Twice, passes=2):
    """Has seen enough after 20 samples; asked once a second."""

    def is_satisfied(self) -> bool:
        return self.seen >= 20


def test_a_first_pass_ends_when_no_node_wants_to_see_more():
    result = run(compound("Two", {"t": TwiceButShort}, ["twist -> t.twist", "t.out -> n"]), recording())
    assert len(result["n"]) == 100
    assert 20 <= result["n"].values[-1] <= 31


class LooksTwice(Node, passes=2):
    """Looks at every image in both passes."""

    def process(self, image: Image) -> float:
        assert not image.data.flags.writeable  # the other pass, and other nodes, see the same
        return float(image.data.mean())


@pytest.mark.parametrize(("room", "decoded"), [(10_000_000, 5), (11_000, 8), (0, 10)])
def test_images_that_were_decoded_are_kept_for_the_next_pass_as_far_as_there_is_room(
    room: int, decoded: int, monkeypatch: pytest.MonkeyPatch
):
    rows: list[int] = []

    def load(row: Mapping[str, Any]) -> Image:
        rows.append(row["k"])
        return Image(np.full((50, 100), row["k"], np.uint8), t_ns=row["t_ns"])

    images = stream_of_values("camera", T0_NS + np.arange(5), {"k": np.arange(5)}, type=Image)
    monkeypatch.setattr("transect.engine.replay.IMAGE_CACHE_BYTES", room)
    looks = compound("Looks", {"l": LooksTwice}, ["image -> l.image", "l.out -> mean"])
    result = run(looks, Recording("made", (images.replace(loader=load),)))
    assert result["mean"].values == [0, 1, 2, 3, 4]
    assert len(rows) == decoded


class Speaks(Node):
    """Logs, skips, and draws a random number."""

    def process(self, twist: Twist) -> float:
        if self.ctx.time % 2:
            self.ctx.log("odd")
        if self.ctx.time > T0_NS + 9_000_000_000:
            return self.ctx.skip("too late in the day")
        assert self.ctx.integrity("twist") is None
        return float(self.ctx.rng.normal())


def test_a_node_logs_skips_with_a_reason_and_draws_the_same_random_numbers_every_time(tmp_path: Path):
    made = compound("S", {"s": Speaks}, ["twist -> s.twist", "s.out -> x"])
    one, other = run(made, recording(), out=tmp_path / "r"), run(made, recording())
    assert one.digest == other.digest
    assert len(set(other["x"].values)) == len(other["x"]) == 90
    assert other.stats.nodes["s"].skipped == {"too late in the day": 10}
    assert "s: odd" in (tmp_path / "r" / "log.txt").read_text()


class NearWheels(Node):
    """An image of how real cameras are stamped: never equal."""

    def process(self, imu: Imu, twist: Annotated[Twist, Synced(0.004)]) -> float:
        return float(twist.velocity[0])


def test_a_run_played_by_the_log_clock_uses_log_times():
    made = recording(1.0)
    imu = made["imu"]
    with pytest.raises(TransectError, match="no log times"):
        run(odometry(), made, clock="log")
    logged = stream_of_values(
        "imu", imu.t_ns, {n: imu.column(n) for n in imu.columns}, type=Imu, log_ns=imu.t_ns + 7
    )
    alone = compound("H", {"h": Heading}, ["imu -> h.imu", "h.out -> yaw"])
    assert run(alone, made.replace(streams=(logged,)), clock="log")["yaw"].t_ns[0] == imu.t_ns[0] + 7


def test_options_that_cannot_be_meant_are_refused():
    with pytest.raises(UsageError, match="no clock 'wall'"):
        Options(clock="wall")
    with pytest.raises(UsageError, match="reorder horizon"):
        Options(reorder=-1)


class Corrected(Node):
    """Needs one of two inputs; which is only known once they are wired."""

    def ready(self) -> None:
        if not (self.ctx.is_fed("fix") or self.ctx.is_fed("pose")):
            raise UsageError("nothing corrects")

    def process(
        self, twist: Twist, fix: Latest[NavFix] | None = None, pose: Latest[Pose] | None = None
    ) -> float:
        return 0.0


def test_a_node_can_refuse_its_wiring_before_anything_is_played_or_written(tmp_path: Path):
    wires = ["twist -> it.twist", "fix -> it.fix", "pose -> it.pose", "it.out -> out"]
    made = compound("Made", {"it": Corrected()}, wires)
    with pytest.raises(UsageError, match="nothing corrects"):
        run(made, recording(), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
