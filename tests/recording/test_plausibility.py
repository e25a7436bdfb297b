"""Units that cannot be what was declared, on an IMU that is simulated here: a body that rocks and drives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from transect.recording import arrow
from transect.recording.plausibility import (
    ACCELERATION,
    RATE,
    UnitFinding,
    check_acceleration_unit,
    check_rate_unit,
    check_stamp_unit,
    find_implausible,
)
from transect.recording.recording import Recording
from transect.recording.stream import Stream, stream_of_values
from transect.types import Imu, NavFix, Record

EARTH_M_S2, MARS_M_S2, MOON_M_S2, TITAN_M_S2 = 9.81, 3.71, 1.62, 1.35
DAY_NS = 1_600_000_000_000_000_000
FOUND = (
    "imu: its mean acceleration is 1.00, and m/s2 was declared: on Earth it is 9.8, on Mars 3.7; "
    "it is probably in g"
)


def imu(
    gravity: float = EARTH_M_S2,
    rock: float = 0.05,
    seconds: float = 30.0,
    rate: float = 100.0,
    pushed: float = 0.0,
    turn: float = 0.1,
    bias: float = 0.003,
) -> dict[str, Any]:
    """Return an IMU that pitches by `rock` rad every 4 s, turns by `turn` rad/s, and is pushed forwards."""
    t = np.arange(0.0, seconds, 1 / rate)
    rng = np.random.default_rng(1)
    pitch = rock * np.sin(2 * np.pi * t / 4)
    pitch_rate = rock * 2 * np.pi / 4 * np.cos(2 * np.pi * t / 4)
    force = np.column_stack(
        [-gravity * np.sin(pitch) + pushed * np.sin(t / 2), 0 * t, gravity * np.cos(pitch)]
    )
    spin = np.column_stack([-turn * np.sin(pitch), pitch_rate, turn * np.cos(pitch)]) + bias
    return {
        "t": t,
        "force": force + 0.02 * rng.normal(size=(len(t), 3)),
        "rate": spin + 0.002 * rng.normal(size=(len(t), 3)),
    }


def stream(
    made: dict[str, Any], force: float = 1.0, rate: float = 1.0, ns: float = 1e9, start_ns: int = DAY_NS
) -> Stream:
    """Return a stream of an IMU whose numbers are multiplied by factors: other units than declared."""
    columns = {name: force * made["force"][:, i] for i, name in enumerate(ACCELERATION)}
    columns |= {name: rate * made["rate"][:, i] for i, name in enumerate(RATE)}
    t_ns = start_ns + np.round(ns * made["t"]).astype(np.int64)
    return stream_of_values("imu", t_ns, columns, type=Imu)


def found_in(*streams: Stream) -> list[UnitFinding]:
    return list(find_implausible(Recording("test", streams)))


@pytest.mark.parametrize("wrong", [{"force": 1 / EARTH_M_S2}, {"rate": 180 / np.pi}])
def test_an_imu_is_looked_at_in_blocks_as_at_once(
    monkeypatch: pytest.MonkeyPatch, wrong: dict[str, float]
) -> None:
    made = stream(imu(rock=0.3), **wrong)
    (found,) = found_in(made)
    monkeypatch.setattr(arrow, "BLOCK_ROWS", 97)
    assert found_in(made.replace()) == [found]


def test_an_imu_in_g_is_found() -> None:
    found = check_acceleration_unit(stream(imu(), force=1 / EARTH_M_S2))
    assert str(found) == FOUND
    assert found is not None
    assert (found.check, found.unit) == ("acceleration unit", "m/s2")
    assert found.value == pytest.approx(1, abs=0.01)
    assert (found.start_ns, found.end_ns) == (DAY_NS, DAY_NS + 29_990_000_000)


@pytest.mark.parametrize(
    ("factor", "unit"), [(1000 / EARTH_M_S2, "milli-g"), (100, "cm/s2"), (9.80665, "twice")]
)
def test_other_wrong_units_of_accelerations_are_named(factor: float, unit: str) -> None:
    found = check_acceleration_unit(stream(imu(pushed=0.5), force=factor))
    assert found is not None
    assert unit in found.hint


@pytest.mark.parametrize("gravity", [EARTH_M_S2, MARS_M_S2, MOON_M_S2, TITAN_M_S2, 0.28])
def test_gravity_elsewhere_is_no_finding(gravity: float) -> None:
    assert not found_in(stream(imu(gravity, pushed=0.5)))


@pytest.mark.parametrize("made", [imu(0.0, pushed=1.0), imu(0.0, pushed=1.4), imu(0.0)])
def test_an_imu_without_its_gravity_is_no_finding(made: dict[str, Any]) -> None:
    assert not found_in(stream(made))


def test_rates_in_degrees_are_found() -> None:
    found = check_rate_unit(stream(imu(), rate=180 / np.pi))
    assert found is not None
    assert found.hint == "it is probably in deg/s"
    assert found.value > 0.3
    assert found.end_ns > found.start_ns >= DAY_NS
    # At rest its bias shows it: 0.2 deg/s are taken for 0.2 rad/s.
    assert check_rate_unit(stream(imu(rock=0.0, turn=0.0), rate=180 / np.pi)) is not None
    # About the vertical only gravity says nothing, but a turn of 30 deg/s would be five turns per second.
    assert check_rate_unit(stream(imu(rock=0.0, turn=0.5, bias=0.0), rate=180 / np.pi)) is not None


@pytest.mark.parametrize(
    "made",
    [
        imu(rock=0.6),
        imu(turn=3.0),
        imu(turn=5.5, rock=0.0),
        imu(bias=0.1),
        imu(rock=0.0, turn=0.0, bias=0.0),
        imu(pushed=3.0),
        imu(MARS_M_S2, rock=0.3, pushed=0.5),
        imu(seconds=1.0),
        imu(seconds=0.05),
        imu(rate=10.0),
    ],
)
def test_rates_in_radians_are_no_finding(made: dict[str, Any]) -> None:
    assert not found_in(stream(made))


def test_samples_that_are_not_measured_are_left_out() -> None:
    made = imu()
    made["force"][500:700] = np.nan
    made["rate"][900:950] = np.nan
    assert not found_in(stream(made))
    assert len(found_in(stream(made, 1 / EARTH_M_S2, 180 / np.pi))) == 2


@pytest.mark.parametrize(("per_second", "unit"), [(1e3, "ms"), (1e6, "us")])
def test_stamps_taken_for_nanoseconds_are_found(per_second: float, unit: str) -> None:
    said = check_stamp_unit(stream(imu(), ns=per_second, start_ns=int(DAY_NS * per_second / 1e9)))
    assert said is not None
    assert said.hint == f"its stamps are probably in {unit}, and were taken for ns"
    assert said.unit == "Hz"
    assert said.value == pytest.approx(100 * 1e9 / per_second, rel=0.01)


def test_slow_stamps_in_microseconds_are_found_by_their_date() -> None:
    made = imu(rate=20.0)
    assert check_stamp_unit(stream(made, ns=1e6, start_ns=DAY_NS // 1000)) is not None
    assert check_stamp_unit(stream(made, start_ns=0)) is None  # a simulated clock that begins at 0
    assert check_stamp_unit(stream(made, start_ns=10**15)) is None


def test_stamps_taken_for_seconds_are_found() -> None:
    found = check_stamp_unit(stream(imu(), ns=1e12, start_ns=0))
    assert found is not None
    assert found.hint == "its stamps are probably in ms, and were taken for s"
    assert found.reason == "a sample every 10 s: no Imu is that slow"


def test_stamps_of_what_may_be_fast_or_slow_are_no_finding() -> None:
    times = DAY_NS + np.arange(100, dtype=np.int64)
    values = {"x": np.zeros(100)}
    assert check_stamp_unit(stream_of_values("log", times, values, type=Record)) is None
    fixes = {name: np.zeros(100) for name in ("lat", "lon", "alt")}
    slow = DAY_NS + 600 * 10**9 * np.arange(100, dtype=np.int64)
    assert check_stamp_unit(stream_of_values("fix", slow, fixes, type=NavFix)) is None
    assert check_stamp_unit(stream_of_values("fix", times, fixes, type=NavFix)) is not None


def test_only_measurements_on_a_clock_are_checked() -> None:
    wrong = stream(imu(), force=1 / EARTH_M_S2)
    assert len(found_in(wrong)) == 1
    assert not found_in(wrong.replace(role="truth"), wrong.replace(name="b", clock="index"))
