"""Positions without stated noise, or with a wrong one: it is estimated, and the fusion is as accurate."""

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
DURATION_S, RATE_HZ = 80.0, 10
NAMES = ("ErrorStateFilter", "BatchSmoother", "FixedLagSmoother")
TYPES = {"rtk fixed": 0.02, "rtk float": 0.3, "3d": 2.0}


@dataclass(frozen=True)
class Drive:
    """Drive over hills: truth (n, 3) at times (n,), measurements, and errors (m, 3) of the fixes."""

    t: np.ndarray
    truth: np.ndarray
    recording: Recording
    first: np.ndarray
    fix_errors: np.ndarray


def drive(
    sigma: float = 0.0,
    *,
    rate: float = 1.0,
    correlated: float = 0.0,
    types: bool = False,
    stated: float = 0.0,
    imu: bool = False,
    reckoned: bool = True,
) -> Drive:
    """Wheels have errors of 1 % of length and 3 % of turns; fixes `sigma` and `correlated` ones over 20 s."""
    rng = np.random.default_rng(11)
    t = np.arange(0, DURATION_S + 1e-9, 1 / RATE_HZ)
    speed, rates = 1.2 + 0.3 * np.sin(t / 9), 0.25 * np.sin(t / 6) + 0.1 * np.sin(t / 17)
    yaw = 0.7 + np.concatenate([[0.0], np.cumsum(rates[:-1]) / RATE_HZ])
    way = np.concatenate([[0.0], np.cumsum(speed[:-1]) / RATE_HZ])
    pitch = np.arctan(0.12 * np.sin(way / 25))
    ahead = np.column_stack([np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), np.sin(pitch)])
    truth = np.concatenate([np.zeros((1, 3)), np.cumsum(ahead[:-1] * speed[:-1, None] / RATE_HZ, axis=0)])
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
    each = np.arange(0, len(t), round(RATE_HZ / rate))
    kinds = np.array([*TYPES])[(t[each] // 15).astype(int) % 3]
    level = np.array([TYPES[kind] for kind in kinds])[:, None] if types else sigma
    off = level * rng.normal(size=(len(each), 3)) * [1, 1, 2]
    if correlated:
        off = off + correlated * np.array([1, 1, 2]) * _gauss_markov(rng, len(each), np.exp(-1 / rate / 20))
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


def _gauss_markov(rng: np.random.Generator, n: int, kept: float) -> np.ndarray:
    errors = [rng.normal(size=3)]
    for _ in range(n - 1):
        errors.append(kept * errors[-1] + np.sqrt(1 - kept**2) * rng.normal(size=3))
    return np.array(errors)


def errors(simulated: Drive, name: str) -> tuple[float, float, list[str]]:
    """Return the RMS error in the plane and of the height, m, and the conclusions of the run."""
    done = run(f"PoseFusion/{name}", simulated.recording)
    (found,) = done["trajectory"].values
    truth = np.column_stack([np.interp(found.t_ns / NS, simulated.t, each) for each in simulated.truth.T])
    off = found.positions + simulated.first - truth
    said = [each.text for each in done.conclusions]
    return _rms(off[:, :2]), _rms(off[:, 2:]), said


def _rms(off: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.sum(off**2, axis=1))))


@pytest.fixture(autouse=True)
def _needs_gtsam():
    pytest.importorskip("gtsam")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("rate", "stated", "imu"), [(1.0, 0.0, False), (5.0, 0.0, False), (1.0, 5.0, True)])
def test_with_exact_fixes_the_path_follows_them(name: str, rate: float, stated: float, imu: bool):
    level, height, said = errors(drive(rate=rate, stated=stated, imu=imu), name)
    assert level < (0.2 if stated else 0.1)
    assert height < 0.6
    why = "the 5 m that each states is wrong" if stated else "none is stated"
    assert any("estimated from" in each and f"of them ({why})" in each for each in said)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "options",
    [
        {"sigma": 0.02},
        {"sigma": 0.5},
        {"sigma": 3.0},
        {"sigma": 3.0, "rate": 5.0},
        {"sigma": 0.3, "correlated": 1.5, "imu": True},
        {"types": True},
        {"sigma": 1.0, "stated": 0.01},
        {"sigma": 0.5, "imu": True, "reckoned": False},
    ],
    ids=str,
)
def test_a_fusion_is_as_accurate_as_its_fixes(name: str, options: dict):
    simulated = drive(**options)
    level, height, _ = errors(simulated, name)
    more = 1.1 if "correlated" in options else 1.0  # correlated errors have few degrees of freedom
    assert level < max(more * _rms(simulated.fix_errors[:, :2]), 0.1)
    assert height < max(more * _rms(simulated.fix_errors[:, 2:]), 0.6)


def test_a_stated_sigma_that_varies_is_used_as_stated():
    simulated = drive(0.5)
    fix = simulated.recording["fix"]
    stated = 0.5 + 0.01 * np.arange(len(fix))
    columns = {name: fix[name] for name in ("lat", "lon", "alt")}
    columns |= dict.fromkeys(("std_north", "std_east", "std_down"), stated)
    table = _table(NavFix, fix.t_ns, columns)
    changed = simulated.recording.replace(
        streams=(simulated.recording["odom"], Stream("fix", NavFix, table, clock="utc", frame="base_link"))
    )
    done = run("PoseFusion/ErrorStateFilter", changed)
    assert not any("estimated from" in each.text for each in done.conclusions)


def test_an_imu_without_a_mount_is_reported_and_counted_as_not_used(tmp_path: Path):
    simulated = drive(0.1, imu=True)
    bare = simulated.recording.replace(frames=FrameTree())
    formats.write(bare, tmp_path / "bag", "rosbag")
    done = transect("run", "PoseFusion/BatchSmoother", tmp_path / "bag")
    assert "note: no frame gives the mount of imu_link: it is not used\n\n" in done.stdout
    asked = transect("run", "PoseFusion/BatchSmoother", tmp_path / "bag", "--json")
    counted = json.loads(asked.stdout)["statistics"]["nodes"]["fusion"]["samples"]["imu"]
    assert counted["used"] == 0
    assert sum(counted.values()) == len(simulated.t)


@pytest.mark.parametrize("name", NAMES)
def test_wheels_of_unknown_track_are_refused_with_the_parameter_to_set(name: str):
    t_ns = np.arange(0, 10 * NS, NS // 10)
    columns = {"wheel_velocity": np.ones((len(t_ns), 2))}
    wheels = Stream("wheels", WheelState, _table(WheelState, t_ns, columns), clock="utc")
    simulated = drive(0.1)
    with pytest.raises(TransectError, match="track is not known") as caught:
        run(f"PoseFusion/{name}", simulated.recording.replace(streams=(wheels, simulated.recording["fix"])))
    assert "--set fusion.track=METRES" in str(caught.value)
