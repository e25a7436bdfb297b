"""A check that cannot judge is UNKNOWN, and its reason names what it would need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from transect.base.clocks import NS
from transect.integrity import check
from transect.recording import FrameTree, Recording, Stream, stream_of_values
from transect.types import (
    Imu,
    JointState,
    NavFix,
    Odometry,
    Record,
    Verdict,
    WheelState,
    Wrench,
)

from .recordings import START_NS

DURATION_S = 12
GRAVITY_M_S2 = 9.81
ACC, GYRO = ("acc_x", "acc_y", "acc_z"), ("gyro_x", "gyro_y", "gyro_z")
NO_ACC: dict[str, Any] = dict.fromkeys(ACC)
NO_GYRO: dict[str, Any] = dict.fromkeys(GYRO)


def steady(
    name: str, kind: type, columns: Mapping[str, Any], rate: int = 10, seconds: int = DURATION_S, **about: Any
) -> Stream:
    """Return a stream at an even rate; a column is a constant, an array, or a function of the time in s."""
    t = np.arange(rate * seconds) / rate
    values: dict[str, Any] = {}
    for column, value in columns.items():
        value = value(t) if callable(value) else value
        values[column] = np.full(len(t), float(value)) if isinstance(value, float | int) else value
    return stream_of_values(name, START_NS + np.rint(t * NS).astype(np.int64), values, type=kind, **about)


def noise(sigma: float, mean: float = 0.0, seed: int = 0) -> Callable[[np.ndarray], np.ndarray]:
    return lambda t: mean + np.random.default_rng(seed).normal(0, sigma, len(t))


def imu(seconds: int = DURATION_S, rate: int = 50, frame: str = "", **changed: Any) -> Stream:
    """Return an inertial sensor at rest: gravity along z, and noise."""
    columns: dict[str, Any] = {name: noise(0.02, seed=k) for k, name in enumerate((*ACC, *GYRO))}
    columns["acc_z"] = noise(0.02, GRAVITY_M_S2, 9)
    columns = {name: value for name, value in (columns | changed).items() if value is not None}
    return steady("imu", Imu, columns, rate, seconds, frame=frame)


def gps(seconds: int = DURATION_S, rate: int = 5, frame: str = "", **changed: Any) -> Stream:
    """Return a receiver that goes north at 1 m/s, with 1 cm of noise."""
    columns: dict[str, Any] = {
        "lat": lambda t: 0.6 + (t + noise(0.01)(t)) / 6.371e6,
        "lon": lambda t: -1.0 + noise(0.01, seed=1)(t) / 6.371e6,
        "alt": 50.0,
    }
    columns = {name: value for name, value in (columns | changed).items() if value is not None}
    return steady("gps", NavFix, columns, rate, seconds, frame=frame)


def wheels(speed: Any = 1.0, turn: Any = 0.0, seconds: int = DURATION_S, **about: Any) -> Stream:
    still = dict.fromkeys(("vy", "vz", "wx", "wy"), 0.0)
    return steady("odom", Odometry, {"vx": speed, "wz": turn, **still}, 20, seconds, **about)


def judge(number: str, *streams: Stream, frames: FrameTree | None = None) -> list[Verdict]:
    """Return what a check says of the first stream."""
    recording = Recording("small", streams, frames=frames or FrameTree())
    verdicts = [v for v in check(recording, checks=[number]) if v.stream == streams[0].name]
    assert [v.note for v in verdicts if v.reason == "CHECK_FAILED"] == []
    return verdicts


def record(columns: Mapping[str, Any]) -> Stream:
    return steady("innovations", Record, columns, 5)


NOTHING = np.nan
CASES: dict[str, tuple[str, Callable[[], tuple[Stream, ...]], str]] = {
    "fixes of a receiver that says it has none": (
        "E04", lambda: (gps(fix=["none"] * 60, std_north=1.0, std_east=1.0),), "NO_FIX"),
    "a receiver that declares nothing": ("E04", lambda: (gps(),), "NOT_DECLARED"),
    "deviations of zero": ("E04", lambda: (gps(std_north=0.0, std_east=0.0),), "NOT_DECLARED"),
    "a covariance of inertial sensors without their variances": (
        "E04", lambda: (imu(gyro_covariance=np.zeros((600, 9))),), "NOT_DECLARED"),
    "a receiver that does not say how good it is": ("E01", lambda: (gps(),), "NOT_DECLARED"),
    "fixes too seldom for a cubic": (
        "E01", lambda: (gps(rate=1, std_north=0.01, std_east=0.01),), "TOO_FEW"),
    "a record without innovations": ("E01", lambda: (record({"value": 1.0}),), "NO_NUMBERS"),
    "innovations of a sensor that was never used": (
        "E01", lambda: (record({"values.fix_nis": 1.0, "values.fix_count": 0.0}),), "TOO_FEW"),
    "innovations that were not counted": ("E01", lambda: (record({"values.fix_nis": 1.0}),), "TOO_FEW"),
    "accelerations without gravity": ("X07", lambda: (imu(acc_z=noise(0.02)),), "NO_GRAVITY"),
    "accelerometers alone": ("X07", lambda: (imu(**NO_GYRO),), "NO_NUMBERS"),
    "an inertial sensor that has just begun": ("X07", lambda: (imu(rate=20, seconds=1),), "TOO_FEW"),
    "an inertial sensor that is never tilted": ("X07", lambda: (imu(),), "NO_MOTION"),
    "gyroscopes alone on a sensor that may be knocked": (
        "X04", lambda: (imu(**NO_ACC),), "NO_GRAVITY"),
    "an inertial sensor in free fall": ("X04", lambda: (imu(acc_z=noise(0.02)),), "NO_GRAVITY"),
    "an inertial sensor that is alone": ("X04", lambda: (imu(),), "NO_PEER"),
    "an antenna without a mount": ("X10", lambda: (gps(), wheels()), "NO_FRAMES"),
    "an antenna in a frame that nothing carries": ("X10", lambda: (gps(frame="gps"), wheels()), "NO_FRAMES"),
    "positions that never were": ("S07", lambda: (gps(lat=NOTHING, lon=NOTHING),), "NAN"),
    "forces that never were": (
        "S04", lambda: (steady("arm", Wrench, {"fx": NOTHING, "fy": NOTHING}),), "NO_NUMBERS"),
    "columns of another name": ("S05", lambda: (steady("arm", Wrench, {"mx": noise(1.0)}),), "NO_NUMBERS"),
    "too few samples for a noise": ("S05", lambda: (gps(rate=5, seconds=4),), "TOO_FEW"),
    "no columns of a signal to filter": ("S03", lambda: (steady("arm", Wrench, {"mx": 0.0}),), "NO_NUMBERS"),
    "wheels whose angles alone are known": (
        "S02", lambda: (steady("legs", WheelState, {"steering_angle": 0.0}),), "NO_NUMBERS"),
    "wheels that do not turn": (
        "S01", lambda: (steady("legs", WheelState, {"steering_angle": 0.0}),), "NO_NUMBERS"),
    "a receiver that repeats itself, and nothing that moves": (
        "S01", lambda: (gps(lat=0.6, lon=-1.0, seconds=20),), "NO_PEER"),
    "one sensor of a joint": ("X06", lambda: (
        steady("arm/encoder", JointState, {"position": 0.1}),
        steady("leg/potentiometer", JointState, {"position": 0.1})), "NO_PEER"),
    "a sensor of other joints": ("X06", lambda: (
        steady("arm/encoder", JointState, {"position": np.zeros((120, 4))}),
        steady("arm/potentiometer", JointState, {"position": np.zeros((120, 3))})), "NO_PEER"),
    "a sensor of joints that measures nothing": ("X06", lambda: (
        steady("arm/encoder", JointState, {"position": np.zeros((120, 2))}),
        steady("arm/potentiometer", JointState, {"position": np.full((120, 2), np.nan)})), "NO_PEER"),
    "a stream without files": ("T09", lambda: (imu(),), "NO_METADATA"),
    "a stream without the times of the log": ("T07", lambda: (imu(),), "NO_LOG_TIME"),
    "two streams that do not turn": ("T08", lambda: (imu(), wheels()), "NO_MOTION"),
    "a single stream of its type": ("X08", lambda: (imu(),), "NO_PEER"),
    "wheels without a speed": ("X05", lambda: (wheels(speed=NOTHING, turn=NOTHING), gps()), "NO_NUMBERS"),
    "wheels that stand": ("X05", lambda: (wheels(speed=0.0), gps()), "AT_REST"),
    "wheels beside nothing that sees the ground": ("X05", lambda: (wheels(), imu()), "NO_PEER"),
}  # fmt: skip


@pytest.mark.parametrize("what", CASES)
def test_what_a_check_lacks_is_named_and_never_ok(what: str) -> None:
    number, streams, reason = CASES[what]
    last = judge(number, *streams())[-1]
    assert (last.raw, last.reason, last.score) == ("UNKNOWN", reason, None)
    assert last.state != "OK"
