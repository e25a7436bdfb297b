"""Positions that state no noise, or a wrong one: a fusion finds it, and is not worse than they are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.commands import transect

from transect import formats, run
from transect.errors import TransectError
from transect.geometry import geodesy
from transect.recording import FrameTree, Recording, Stream, arrow
from transect.types import Imu, NavFix, Odometry, WheelState

NS = 1_000_000_000
ORIGIN = np.array([0.65, 0.2, 700.0])
SECONDS, HZ = 80.0, 10
NAMES = ("ErrorStateFilter", "BatchSmoother", "FixedLagSmoother")
TYPES = {"rtk fixed": 0.02, "rtk float": 0.3, "3d": 2.0}


@dataclass(frozen=True)
class Drive:
    """A drive over hills: truth (n, 3) at times (n,), what was measured, and errors (m, 3) of the fixes."""

    t: np.ndarray
    truth: np.ndarray
    recording: Recording
    first: np.ndarray
    off: np.ndarray


def drive(
    sigma: float = 0.0,
    *,
    rate: float = 1.0,
    lasting: float = 0.0,
    types: bool = False,
    stated: float = 0.0,
    imu: bool = False,
    reckoned: bool = True,
) -> Drive:
    """Wheels err by 1 % of the way and 3 % of turns; fixes by `sigma` and a `lasting` part over 20 s."""
    rng = np.random.default_rng(11)
    t = np.arange(0, SECONDS + 1e-9, 1 / HZ)
    speed, rates = 1.2 + 0.3 * np.sin(t / 9), 0.25 * np.sin(t / 6) + 0.1 * np.sin(t / 17)
    yaw = 0.7 + np.concatenate([[0.0], np.cumsum(rates[:-1]) / HZ])
    way = np.concatenate([[0.0], np.cumsum(speed[:-1]) / HZ])
    pitch = np.arctan(0.12 * np.sin(way / 25))
    ahead = np.column_stack([np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), np.sin(pitch)])
    truth = np.concatenate([np.zeros((1, 3)), np.cumsum(ahead[:-1] * speed[:-1, None] / HZ, axis=0)])
    t_ns = (t * NS).round().astype(np.int64)
    streams = []
    if reckoned:
        twist = {"vx": 1.01 * speed + 0.01 * rng.normal(size=len(t)), "vy": 0 * t}
        twist["wz"] = 1.03 * rates + 0.004 * rng.normal(size=len(t))
        streams.append(
            Stream("odom", Odometry, _table(Odometry, t_ns, twist), clock="utc", child="base_link")
        )
    if imu:
        change = np.gradient(pitch, t)
        force = np.column_stack([
            np.gradient(speed, t) + 9.80665 * np.sin(pitch), speed * rates * np.cos(pitch),
            9.80665 * np.cos(pitch) + speed * change,
        ])  # fmt: skip
        turns = np.column_stack([rates * np.sin(pitch), -change, rates * np.cos(pitch)])
        felt = {
            f"acc_{axis}": each
            for axis, each in zip("xyz", (force + 0.02 * rng.normal(size=force.shape)).T, strict=True)
        }
        felt |= {
            f"gyro_{axis}": each
            for axis, each in zip("xyz", (turns + 2e-3 * rng.normal(size=turns.shape)).T, strict=True)
        }
        streams.append(Stream("imu", Imu, _table(Imu, t_ns, felt), clock="utc", frame="imu_link"))
    each = np.arange(0, len(t), round(HZ / rate))
    kinds = np.array([*TYPES])[(t[each] // 15).astype(int) % 3]
    level = np.array([TYPES[kind] for kind in kinds])[:, None] if types else sigma
    off = level * rng.normal(size=(len(each), 3)) * [1, 1, 2]
    if lasting:
        off = off + lasting * np.array([1, 1, 2]) * _walk_back(rng, len(each), np.exp(-1 / rate / 20))
    places = truth[each] + off
    geodetic = np.array([geodesy.geodetic_from_local(place, ORIGIN) for place in places])
    columns = dict(zip(("lat", "lon", "alt"), geodetic.T, strict=True))
    if types:
        columns["fix"] = kinds.tolist()
    if stated:
        columns |= {f"std_{axis}": np.full(len(each), stated) for axis in ("north", "east", "down")}
    streams.append(Stream("fix", NavFix, _table(NavFix, t_ns[each], columns), clock="utc", frame="base_link"))
    frames = FrameTree()
    if imu:
        frames.add_static("base_link", "imu_link", np.eye(4))
    return Drive(t, truth, Recording("drive", tuple(streams), frames=frames), places[0], off)


def _table(kind, t_ns: np.ndarray, columns: dict):
    return arrow.table(t_ns, columns, units=kind.units())


def _walk_back(rng: np.random.Generator, n: int, kept: float) -> np.ndarray:
    errors = [rng.normal(size=3)]
    for _ in range(n - 1):
        errors.append(kept * errors[-1] + np.sqrt(1 - kept**2) * rng.normal(size=3))
    return np.array(errors)


def errors(driven: Drive, name: str) -> tuple[float, float, list[str]]:
    """Return the RMS error in the plane and of the height, m, and what the run concluded."""
    done = run(f"PoseFusion/{name}", driven.recording)
    (found,) = done["trajectory"].values
    truth = np.column_stack([np.interp(found.t_ns / NS, driven.t, each) for each in driven.truth.T])
    off = found.positions + driven.first - truth
    said = [each.text for each in done.conclusions]
    return _rms(off[:, :2]), _rms(off[:, 2:]), said


def _rms(off: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.sum(off**2, axis=1))))


@pytest.fixture(autouse=True)
def _needs_gtsam():
    pytest.importorskip("gtsam")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("rate", "stated", "imu"), [(1.0, 0.0, False), (5.0, 0.0, False), (1.0, 5.0, True)])
def test_with_fixes_without_error_the_way_is_theirs(name: str, rate: float, stated: float, imu: bool):
    level, height, said = errors(drive(rate=rate, stated=stated, imu=imu), name)
    assert level < (0.2 if stated else 0.1)
    assert height < 0.6
    why = "the 5 m that each states is wrong" if stated else "none is stated"
    assert any("found from" in each and f"of them ({why})" in each for each in said)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "made",
    [
        {"sigma": 0.02},
        {"sigma": 0.5},
        {"sigma": 3.0},
        {"sigma": 3.0, "rate": 5.0},
        {"sigma": 0.3, "lasting": 1.5, "imu": True},
        {"types": True},
        {"sigma": 1.0, "stated": 0.01},
        {"sigma": 0.5, "imu": True, "reckoned": False},
    ],
    ids=str,
)
def test_a_fusion_is_not_worse_than_its_fixes(name: str, made: dict):
    driven = drive(**made)
    level, height, _ = errors(driven, name)
    more = 1.1 if "lasting" in made else 1.0  # errors that last are a few numbers only
    assert level < max(more * _rms(driven.off[:, :2]), 0.1)
    assert height < max(more * _rms(driven.off[:, 2:]), 0.6)


def test_a_deviation_that_changes_from_fix_to_fix_is_believed():
    driven = drive(0.5)
    fix = driven.recording["fix"]
    stated = 0.5 + 0.01 * np.arange(len(fix))
    columns = {name: fix[name] for name in ("lat", "lon", "alt")}
    columns |= dict.fromkeys(("std_north", "std_east", "std_down"), stated)
    table = _table(NavFix, fix.t_ns, columns)
    changed = driven.recording.replace(
        streams=(driven.recording["odom"], Stream("fix", NavFix, table, clock="utc", frame="base_link"))
    )
    done = run("PoseFusion/ErrorStateFilter", changed)
    assert not any("found from" in each.text for each in done.conclusions)


def test_an_imu_without_a_frame_is_named_first_and_counted_as_not_used(tmp_path: Path):
    driven = drive(0.1, imu=True)
    bare = driven.recording.replace(frames=FrameTree())
    formats.write(bare, tmp_path / "bag", "rosbag")
    done = transect("run", "PoseFusion/BatchSmoother", tmp_path / "bag")
    assert "note: no frame tells how imu_link is mounted: it is not used\n\n" in done.stdout
    asked = transect("run", "PoseFusion/BatchSmoother", tmp_path / "bag", "--json")
    counted = json.loads(asked.stdout)["statistics"]["nodes"]["fusion"]["samples"]["imu"]
    assert counted["used"] == 0
    assert sum(counted.values()) == len(driven.t)


@pytest.mark.parametrize("name", NAMES)
def test_wheels_whose_track_is_not_known_are_refused_by_the_parameter(name: str):
    t_ns = np.arange(0, 10 * NS, NS // 10)
    columns = {"wheel_velocity": np.ones((len(t_ns), 2))}
    wheels = Stream("wheels", WheelState, _table(WheelState, t_ns, columns), clock="utc")
    driven = drive(0.1)
    with pytest.raises(TransectError, match="track is not known") as caught:
        run(f"PoseFusion/{name}", driven.recording.replace(streams=(wheels, driven.recording["fix"])))
    assert "--set fusion.track=METRES" in str(caught.value)
