"""Streams moved in time: by what a person says, or by what two sensors feel of the same motion."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from transect.engine.offsets import AUTO, OffsetError, apply_offsets, parse_offsets, signals_of
from transect.geometry import rotations
from transect.recording import FrameTree, Recording, Stream, stream_of_values
from transect.recording.arrow import PAYLOAD, strings, table
from transect.types import Image, Imu, NavFix, Odometry, Pose, WheelState

NS = 10**9
T0_NS = 1_656_676_800 * NS


def seconds(n: int, rate: float) -> Any:
    return np.round(np.arange(n) * NS / rate).astype(np.int64)


def turning(t: Any) -> Any:
    """Rate of turn (rad/s) about z at times in s: uneven, so that there is one best offset."""
    return 0.4 * np.sin(0.7 * t) + 0.3 * np.sin(0.31 * t + 1) + 0.2 * np.sin(1.9 * t)


def imu(name: str, true_ns: Any, stamped_ns: Any, noise: float = 0.02, **attributes: Any) -> Stream:
    random = np.random.default_rng(len(name))
    gyro = random.normal(0, noise, (len(true_ns), 3))
    gyro[:, 2] += turning(true_ns / NS)
    columns = {f"gyro_{a}": gyro[:, i] for i, a in enumerate("xyz")} | {
        f"acc_{a}": np.zeros(len(true_ns)) for a in "xyz"
    }
    return stream_of_values(name, stamped_ns, columns, type=Imu, **attributes)


def poses(name: str, true_ns: Any, stamped_ns: Any, **attributes: Any) -> Stream:
    fine = np.linspace(0, true_ns[-1] / NS, 200_001)
    yaw = np.interp(true_ns / NS, fine, np.cumsum(turning(fine)) * (fine[1] - fine[0]))
    q = rotations.quaternion_from_euler("rpy", np.column_stack([yaw * 0, yaw * 0, yaw]))
    columns = dict(zip(("x", "y", "z", "qx", "qy", "qz", "qw"), [*np.zeros((3, len(q))), *q.T], strict=True))
    return stream_of_values(name, stamped_ns, columns, type=Pose, **attributes)


def test_offsets_are_read_from_text_to_the_nanosecond() -> None:
    assert parse_offsets(["Imu=0.25", "a/b=auto", "c=-1657000000.123456789", "d= 1e-9"]) == {
        "Imu": 250_000_000, "a/b": AUTO, "c": -1657000000123456789, "d": 1,
    }  # fmt: skip


@pytest.mark.parametrize("text", ["Imu", "=1", "Imu=soon", "Imu=", "Imu=nan"])
def test_what_is_no_offset_is_refused(text: str) -> None:
    with pytest.raises(OffsetError, match="--offset") as caught:
        parse_offsets([text])
    named = "--offset Imu=0.25 or --offset Imu=auto"
    first = "the name of a stream comes first, as in --offset Imu=0.25"
    assert caught.value.hint == (named if text.startswith("Imu") else first)


def test_one_stream_has_one_offset() -> None:
    with pytest.raises(OffsetError, match="twice"):
        parse_offsets(["Imu=1", "Imu=2"])


def test_a_given_offset_is_added_exactly_and_kept_with_the_recording() -> None:
    t = T0_NS + seconds(100, 10)
    day = Recording("day", (imu("Imu", seconds(100, 10), t), poses("Pose", seconds(100, 10), t)))
    moved, mappings = apply_offsets(day, {"Imu": 7})
    assert moved["Imu"].t_ns.tolist() == (t + 7).tolist()
    assert moved["Pose"] is day["Pose"]
    assert moved["Imu"][3].value.t_ns == t[3] + 7
    assert moved.clock_offsets == {"Imu": 7}
    assert str(mappings["Imu"]) == "Imu: +0.000000007 s"
    assert moved.notes == ("Imu: +0.000000007 s",)
    assert day["Imu"].t_ns.tolist() == t.tolist()


def test_nothing_is_read_before_it_is_asked_for() -> None:
    def build() -> Any:
        raise AssertionError("read too early")

    lazy = Stream("Cam", Image, build)
    day = Recording("day", (lazy, imu("Imu", seconds(9, 10), T0_NS + seconds(9, 10))))
    moved, _ = apply_offsets(day, {"Cam": 1}, reference="Imu")
    with pytest.raises(AssertionError, match="too early"):
        len(moved["Cam"])


def test_frames_that_move_as_a_stream_says_move_with_it() -> None:
    t, q = T0_NS + seconds(9, 10), np.tile([0.0, 0.0, 0.0, 1.0], (9, 1))
    places = np.column_stack([np.arange(9.0), np.zeros(9), np.zeros(9)])
    frames = FrameTree()
    frames.add_lazy("map", "base", lambda: (t, places, q), clock="device", source="Pose")
    frames.add_moving("base", "arm", t, places, q, source="Joints")
    pose = poses("Pose", seconds(9, 10), t, clock="device")
    day = Recording("day", (pose, imu("Imu", seconds(9, 10), t)), frames=frames)
    moved, _ = apply_offsets(day, {"Pose": NS})
    assert moved.frames.lookup("map", "base", int(t[3]) + NS)[0, 3] == 3.0
    assert moved.frames.lookup("base", "arm", int(t[3]))[0, 3] == 3.0
    assert {edge.child: edge.clock for edge in moved.frames.edges} == {"base": "utc", "arm": "utc"}
    assert day.frames.lookup("map", "base", int(t[3]))[0, 3] == 3.0


def test_payloads_are_found_by_their_old_time_and_stamped_with_the_new() -> None:
    by_time = {5: 1, 6: 2}

    def load(row: Any) -> Image:
        return Image(np.full((1, 1), by_time[row["t_ns"]], np.uint8), t_ns=row["t_ns"])

    source = table(np.array([5, 6]), {PAYLOAD: strings(["a", "b"])})
    day = Recording("day", (Stream("Cam", Image, source, loader=load),))
    value = apply_offsets(day, {"Cam": NS})[0]["Cam"][1].value
    assert (value.t_ns, value.data.tolist()) == (NS + 6, [[2]])


def test_a_device_clock_is_brought_to_that_of_the_others() -> None:
    true = seconds(3000, 50)
    day = Recording(
        "day", (poses("Pose", true, T0_NS + true), imu("Imu", true, true + 5 * NS, clock="device"))
    )
    moved, mappings = apply_offsets(day, {"Imu": AUTO})
    assert {s.clock for s in moved} == {"utc"}
    mapping = mappings["Imu"]
    assert abs(mapping.offset_ns - (T0_NS - 5 * NS)) < 10_000_000
    assert (mapping.before, mapping.after, mapping.reference) == ("device", "utc", "Pose")
    assert mapping.signal == "rate of turn"
    assert mapping.confidence is not None
    assert mapping.confidence > 0.2
    assert "device -> utc, by the rate of turn of Pose (correlation 0.9" in str(mapping)
    assert mapping.to_dict()["offset_ns"] == mapping.offset_ns


@pytest.mark.parametrize("planted", [0.0, 0.137, -2.5])
@pytest.mark.parametrize("rate", [50.0, 100.0])
def test_a_planted_offset_is_recovered_within_10_ms_from_noisy_signals(planted: float, rate: float) -> None:
    # 2 deg/s of noise on a motion that changes by 20 deg/s in a second: the samples of a minute tell 3 ms.
    true, coarse = seconds(round(60 * rate), rate), seconds(2400, 40)
    late = imu("late", true, T0_NS + true - round(planted * NS), noise=0.035)
    day = Recording("day", (late, imu("Imu", coarse, T0_NS + coarse, noise=0.035)))
    _, mappings = apply_offsets(day, {"late": AUTO})
    assert abs(mappings["late"].offset_ns - planted * NS) < 10_000_000


def test_a_robot_that_stands_still_gives_no_offset() -> None:
    t = T0_NS + seconds(100, 10)
    still = stream_of_values("Wheels", t, {"wheel_velocity": np.zeros((100, 4))}, type=WheelState)
    day = Recording("day", (still, dataclasses.replace(still, name="Other")))
    with pytest.raises(OffsetError, match="cannot be correlated") as caught:
        apply_offsets(day, {"Wheels": AUTO})
    assert "moves" in caught.value.hint


def test_signals_that_have_nothing_to_do_with_each_other_give_no_offset() -> None:
    random = np.random.default_rng(1)
    t = T0_NS + seconds(2000, 50)
    noise = {f"{k}_{a}": random.normal(size=2000) for k in ("gyro", "acc") for a in "xyz"}
    day = Recording("day", (imu("Imu", seconds(2000, 50), t), stream_of_values("Noise", t, noise, type=Imu)))
    with pytest.raises(OffsetError, match="no offset can be told") as caught:
        apply_offsets(day, {"Noise": AUTO})
    assert caught.value.hint == "--offset Noise=SECONDS"


def test_auto_needs_a_stream_that_shows_motion_and_another_to_hold_it_against() -> None:
    true = seconds(500, 50)
    camera = Stream("Cam", Image, table(T0_NS + true, {}))
    day = Recording("day", (camera, imu("Imu", true, T0_NS + true)))
    with pytest.raises(OffsetError, match="Cam=auto: it shows no motion"):
        apply_offsets(day, {"Cam": AUTO})
    with pytest.raises(OffsetError, match="Imu=auto: nothing to hold it against"):
        apply_offsets(day, {"Imu": AUTO})


def test_truth_is_held_against_only_if_named() -> None:
    true = seconds(3000, 50)
    truth = poses("truth/trajectory", true, T0_NS + true, role="truth")
    day = Recording("day", (truth, imu("Imu", true, T0_NS + true + NS)))
    with pytest.raises(OffsetError, match="nothing to hold it against"):
        apply_offsets(day, {"Imu": AUTO})
    _, mappings = apply_offsets(day, {"Imu": AUTO}, reference="truth/trajectory")
    assert abs(mappings["Imu"].offset_ns + NS) < 10_000_000


def test_an_unknown_stream_suggests_the_known_ones() -> None:
    day = Recording("day", (imu("Imu", seconds(9, 10), seconds(9, 10)),))
    with pytest.raises(OffsetError, match="no such stream") as caught:
        apply_offsets(day, {"Imo": 1})
    assert caught.value.hint == "did you mean 'Imu'?"


def test_log_times_go_along_only_where_they_were_on_the_clock_that_changes() -> None:
    t = seconds(10, 10)
    columns = {f"{k}_{a}": np.zeros(10) for k in ("gyro", "acc") for a in "xyz"}

    def device(name: str, log_ns: Any) -> Stream:
        return stream_of_values(name, t, columns, type=Imu, clock="device", log_ns=log_ns)

    day = Recording("day", (imu("Imu", t, T0_NS + t), device("same", t + 5), device("host", T0_NS + t + 5)))
    moved, _ = apply_offsets(day, {"same": T0_NS, "host": T0_NS}, reference="Imu")
    assert moved["same"].log_ns.tolist() == moved["host"].log_ns.tolist() == (T0_NS + t + 5).tolist()


def test_speed_is_read_from_any_stream_that_has_it() -> None:
    t = T0_NS + seconds(5, 1)
    odometry = {"vx": np.full(5, 3.0), "vy": np.full(5, 4.0), "vz": np.zeros(5)}
    (speed,) = signals_of(stream_of_values("odo", t, odometry, type=Odometry))
    assert (speed.name, speed.values.tolist()) == ("speed", [5.0] * 5)
    step = 1.0 / 6_378_137.0  # one metre along the equator (WGS84's semi-major axis)
    fix = {"lat": np.zeros(5), "lon": np.arange(5) * step, "alt": np.zeros(5)}
    (speed,) = signals_of(stream_of_values("fix", t, fix, type=NavFix))
    np.testing.assert_allclose(speed.values, 1.0, rtol=1e-6)
    assert speed.t_ns.tolist() == (t[:-1] + NS // 2).tolist()
