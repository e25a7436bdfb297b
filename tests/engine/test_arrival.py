"""By which times a run plays: stamps that were overtaken are right, stamps of a noisy clock are not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from transect import run
from transect.engine import Node, compound
from transect.engine.arrival import describe_noisy_stamps, play_by_log_times
from transect.recording import Recording, Stream, stream_of_values
from transect.types import Odometry, Pose

NS_PER_S = 10**9
TRUE_NS = 1_600_000_000 * NS_PER_S + np.arange(200) * NS_PER_S // 10


def drive(
    t_ns: np.ndarray, log_ns: np.ndarray, name: str = "wheels", order: np.ndarray | None = None
) -> Stream:
    """Return a robot that drives 5 cm from sample to sample of the truth, as its samples arrived."""
    order = np.arange(len(t_ns)) if order is None else order
    nothing = np.zeros(len(t_ns))
    columns = {"x": 0.05 * np.arange(len(t_ns))[order], "y": nothing, "z": nothing}
    columns |= {"qx": nothing, "qy": nothing, "qz": nothing, "qw": np.ones(len(t_ns))}
    about = {"type": Odometry, "frame": "odom", "child": "robot", "log_ns": log_ns}
    return stream_of_values(name, t_ns, columns, **about)


def noisy() -> Stream:
    random = np.random.default_rng(1)
    return drive(TRUE_NS + random.normal(0, 0.3 * NS_PER_S, len(TRUE_NS)).astype(np.int64), TRUE_NS)


def delayed() -> Stream:
    """One sample in five comes 0.25 s late, after two others: its stamp is right."""
    late = np.where(np.arange(len(TRUE_NS)) % 5 == 0, NS_PER_S // 4, 0)
    order = np.argsort(TRUE_NS + late, kind="stable")
    return drive(TRUE_NS[order], np.sort(TRUE_NS + late), order=order)


class Where(Node):
    def process(self, odometry: Odometry) -> Pose:
        assert odometry.position is not None
        assert odometry.orientation is not None
        return Pose(odometry.position, odometry.orientation, odometry.t_ns, "odom", "robot")


WHERE = compound("W", {"w": Where}, ["odometry -> w.odometry", "w.out -> pose"])


def played(stream: Stream, **options: str) -> tuple[str, np.ndarray, np.ndarray]:
    done = run(WHERE, Recording("drive", (stream,)), **options)
    poses = done["pose"].values
    by = done.config["time"]["played_by"]
    return by, np.array([pose.position[0] for pose in poses]), np.array([pose.t_ns for pose in poses])


def test_a_noisy_clock_is_found_and_samples_are_played_and_stamped_by_their_log_times() -> None:
    by, x, t_ns = played(noisy())
    assert by == "log"
    np.testing.assert_allclose(np.diff(x), 0.05)
    np.testing.assert_array_equal(t_ns, TRUE_NS)


def test_overtaken_samples_are_played_by_their_stamps() -> None:
    by, x, t_ns = played(delayed())
    assert by == "sample"
    np.testing.assert_allclose(np.diff(x), 0.05)
    np.testing.assert_array_equal(t_ns, TRUE_NS)


@pytest.mark.parametrize("clock", ["sample", "log"])
def test_a_clock_that_is_named_is_used(clock: str) -> None:
    assert played(noisy(), clock=clock)[0] == clock
    assert played(delayed(), clock=clock)[0] == clock


def test_a_run_by_noisy_stamps_is_bad_and_says_so() -> None:
    forced = run(WHERE, Recording("drive", (noisy(),)), clock="sample")
    [text] = [each.text for each in forced.conclusions if each.bad]
    assert "played by stamps that are not in order" in text
    assert "times as long" in text
    for stream, clock in ((noisy(), "auto"), (noisy(), "log"), (delayed(), "sample")):
        done = run(WHERE, Recording("drive", (stream,)), clock=clock)
        assert not any(each.bad for each in done.conclusions)


def test_without_poses_the_period_decides() -> None:
    def without_poses(stream: Stream) -> Stream:
        columns = {"vx": np.ones(len(stream))}
        return stream_of_values("speed", stream.t_ns, columns, log_ns=stream.log_ns)

    assert "intervals vary" in describe_noisy_stamps([without_poses(noisy())])
    assert describe_noisy_stamps([without_poses(delayed())]) == ""


def test_stamps_that_stand_still_are_not_used_and_streams_without_log_times_are_left_alone() -> None:
    assert "equal to the one before" in describe_noisy_stamps([drive(np.full(200, TRUE_NS[0]), TRUE_NS)])
    lonely = stream_of_values("other", TRUE_NS, {"vx": np.ones(len(TRUE_NS))})
    assert describe_noisy_stamps([noisy(), lonely]) == ""


def test_payloads_are_found_by_their_own_stamps() -> None:
    stream = noisy()
    asked: list[int] = []

    def load(row: Mapping[str, Any]) -> Pose:
        asked.append(row["t_ns"])
        return Pose(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), row["t_ns"])

    loaded = play_by_log_times(stream.replace(loader=load))[7].value
    assert asked == [stream.t_ns[7]]
    assert loaded.t_ns == TRUE_NS[7]
