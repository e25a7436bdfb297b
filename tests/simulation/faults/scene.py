"""A recording with a stream of every kind of sensor: the Argo stands before a wall, 20 s long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from transect import robots
from transect.recording import Recording, Stream, arrow, stream_of_values
from transect.types import (
    Image,
    Imu,
    JointState,
    LaserScan,
    NavFix,
    Odometry,
    PointCloud,
    RadarRange,
    RadarSpectrum,
    Record,
    RigidBodyState,
    WheelState,
)

START_NS, NS = 1_224_199_788 * 10**9, 10**9
DURATION_S = 20.0
WALL_DISTANCE_M = 12.0
"""Metres ahead of the vehicle."""


def times(rate: float) -> np.ndarray:
    return START_NS + np.rint(np.arange(0.0, DURATION_S, 1.0 / rate) * NS).astype(np.int64)


def noise(name: str, *shape: int) -> np.ndarray:
    return np.random.default_rng(sum(name.encode())).normal(size=shape)


def laser(name: str = "LaserHorizontal", rate: float = 9.0) -> Stream:
    """A scanner that sees the wall in the middle and nothing, its code 8191, at the sides."""
    t = times(rate)
    angles = np.radians(np.arange(-90.0, 91.0))
    wall = WALL_DISTANCE_M / np.cos(np.clip(angles, -1.3, 1.3))
    ranges = np.where(np.abs(angles) < 1.2, wall, np.nan) + 0.01 * noise(name, len(t), len(angles))
    codes = np.where(np.isnan(ranges), 8191, 0).astype(np.uint16)
    columns = {
        "ranges": arrow.ragged(list(np.round(ranges, 2))),
        "start_angle": np.full(len(t), angles[0]),
        "angle_increment": np.full(len(t), np.radians(1.0)),
        "end_angle": np.full(len(t), angles[-1]),
        "range_unit": np.full(len(t), 2, np.int8),
        "range_error": arrow.ragged(list(codes)),
    }
    return stream_of_values(name, t, columns, type=LaserScan, frame=name, units={"end_angle": "rad"})


def radar() -> Stream:
    t = times(100.0)
    angle = np.radians(-40.0 + 80.0 * (np.arange(len(t)) % 50) / 50)
    distance = WALL_DISTANCE_M / np.cos(angle) + 0.13 * noise("radar", len(t))
    columns = {
        "range": distance,
        "angle": angle,
        "reflectivity": 60.0 + noise("reflectivity", len(t)),
        "range_unit": np.full(len(t), 3, np.int8),
    }
    return stream_of_values("RadarRangeBearing", t, columns, type=RadarRange, frame="Radar", role="derived")


def spectrum() -> Stream:
    t = times(10.0)
    argo = robots.load("argo").constants["radar"]
    bins = 30.0 + noise("spectrum", len(t), 512)
    width = argo["sample_frequency"] / (2 * 512) / argo["hertz_per_metre"]
    columns = {
        "reflectivity": arrow.ragged(list(bins)),
        "angle": np.radians(np.linspace(-40.0, 40.0, len(t))),
        "bin_width": np.full(len(t), width),
        "range_offset": np.full(len(t), argo["range_offset"]),
    }
    return stream_of_values("RadarSpectrum", t, columns, type=RadarSpectrum, frame="Radar")


def picture(t_ns: int, channels: int) -> np.ndarray:
    """A chequered scene, with the noise of its time."""
    y, x = np.mgrid[:48, :64]
    flat = np.where((x // 4 + y // 4) % 2, 60, 190).astype(np.int64) + (t_ns - START_NS) // (NS // 4) % 60
    pixels = flat.astype(np.uint8)
    return (
        np.repeat(pixels[..., None], 3, axis=2) * np.array([1, 1, 1], np.uint8) if channels == 3 else pixels
    )


def camera(name: str, rate: float = 4.0) -> Stream:
    """A camera whose pictures are made from the time of the row, as those of a simulated day are."""
    infrared = name == "VideoIR"
    aside = {"StereoLeft": 1, "StereoRight": 2}.get(name, 0)  # the two of a pair see it from two places

    def load(row: Mapping[str, Any]) -> Image:
        pixels = np.roll(picture(int(row["t_ns"]), 1 if infrared else 3), aside, axis=1)
        return Image(pixels, "thermal" if infrared else "rgb", int(row["t_ns"]), name)

    tag = "infrared" if infrared else name.removeprefix("Stereo").lower() if "Stereo" in name else "visual"
    table = arrow.table(times(rate), {})
    known = "" if "Stereo" in name else name
    return Stream(name, Image, table, tag=tag, frame=name, camera=known, loader=load)


def lidar(rate: float = 2.0) -> Stream:
    def load(row: Mapping[str, Any]) -> PointCloud:
        azimuth = np.radians(np.arange(-90.0, 90.0, 2.0))
        directions = np.column_stack([np.cos(azimuth), np.sin(azimuth), np.zeros(len(azimuth))])
        points = (directions * (10.0 + 0.01 * ((row["t_ns"] - START_NS) / NS))).astype(np.float32)
        return PointCloud(points, {"intensity": np.full(len(points), 100.0, np.float32)}, int(row["t_ns"]))

    table = arrow.table(
        times(rate), {"payload": arrow.strings([f"{i}.pcd" for i in range(len(times(rate)))])}
    )
    return Stream("Lidar", PointCloud, table, frame="LaserHorizontal", loader=load)


def imu() -> Stream:
    t = times(50.0)
    names = ("acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z")
    values = 0.02 * noise("imu", len(t), 6) + np.array([0.0, 0.0, 9.81, 0.0, 0.0, 0.0])
    return stream_of_values("Imu", t, dict(zip(names, values.T, strict=True)), type=Imu, frame="Body")


def gnss() -> Stream:
    t = times(5.0)
    columns = {
        "lat": np.radians(-34.6) + 1e-9 * noise("lat", len(t)),
        "lon": np.radians(150.1) + 1e-9 * noise("lon", len(t)),
        "alt": 650.0 + 0.01 * noise("alt", len(t)),
        **{f"std_{axis}": np.full(len(t), 0.02) for axis in ("north", "east", "down")},
        "fix": arrow.strings(["rtk fixed"] * len(t)),
    }
    return stream_of_values("Gnss", t, columns, type=NavFix, frame="Body", log_ns=t + 5_000_000)


def wheels() -> Stream:
    t = times(20.0)
    speed = np.column_stack([0.5 + 0.01 * noise(f"wheel{i}", len(t)) for i in range(4)])
    ticks = np.floor(1000.0 * np.cumsum(speed, axis=0) / 20.0).astype(np.int64)
    return stream_of_values(
        "Wheels", t, {"wheel_velocity": speed, "drive_ticks": ticks}, type=WheelState, frame="Body"
    )


def odometry() -> Stream:
    t = times(10.0)
    x = 0.05 * np.arange(len(t)) + 0.001 * noise("odo", len(t))
    columns = {"x": x, "y": 0.1 * x, "z": 0.0 * x, "vx": 0.5 + 0.01 * noise("vx", len(t))}
    return stream_of_values("Odometry", t, columns, type=Odometry, frame="odom", child="Body")


def joints(sensor: str) -> Stream:
    t = times(5.0)
    position = np.cumsum(0.01 + 0.001 * noise("joints", len(t), 4), axis=0)
    position += 0.001 * noise(sensor, len(t), 4)
    return stream_of_values(f"Arm/{sensor}", t, {"position": position}, type=JointState)


def estimate() -> Stream:
    """Pose estimates of the vehicle with covariances."""
    t = times(5.0)
    names = ("x", "y", "z", "vx", "vy", "vz", "wx", "wy", "wz")
    columns: dict[str, Any] = {name: 0.1 * noise(name, len(t)) for name in names}
    columns |= dict(zip(("qx", "qy", "qz", "qw"), np.tile([0.0, 0.0, 0.0, 1.0], (len(t), 1)).T, strict=True))
    spread = noise("spread", 12, 12)
    columns["covariance"] = np.tile((0.01 * spread @ spread.T).reshape(-1), (len(t), 1))
    kind: dict[str, Any] = {"type": RigidBodyState, "role": "estimate"}
    return stream_of_values("Estimate", t, columns, frame="odom", child="Body", **kind)


def battery() -> Stream:
    t = times(1.0)
    return stream_of_values("Battery", t, {"volt": 24.0 - 0.01 * np.arange(len(t))}, type=Record)


def scene(*names: str) -> Recording:
    """Return the recording, or some of its streams."""
    streams = (
        laser(),
        radar(),
        spectrum(),
        camera("VideoVisual"),
        camera("VideoIR"),
        camera("StereoLeft", rate=1.0),
        camera("StereoRight", rate=1.0),
        lidar(),
        imu(),
        gnss(),
        wheels(),
        odometry(),
        joints("Encoders"),
        joints("Potentiometers"),
        estimate(),
        battery(),
    )
    argo = robots.load("argo")
    chosen = tuple(s for s in streams if not names or s.name in names)
    return Recording(
        "scene", chosen, frames=argo.frames.copy(), cameras=argo.cameras, robot=argo, format="sdi"
    )


def _value(row: Mapping[str, Any], name: str) -> Any:
    return np.asarray(row[name]) if isinstance(row[name], list) else row[name]


def _same_rows(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    names = [name for name in a if name != "payload"]
    for name in names:
        one, other = _value(a, name), _value(b, name)
        if isinstance(one, str) or one is None:
            if one != other:
                return False
        elif not np.array_equal(one, other, equal_nan=True):
            return False
    return True


def same_payload(a: Any, b: Any) -> bool:
    """Return whether two images, or two clouds, are bit-identical."""
    if isinstance(a, Image):
        return np.array_equal(a.data, b.data) and a.t_ns == b.t_ns
    return np.array_equal(a.points, b.points, equal_nan=True) and all(
        np.array_equal(a.fields[name], b.fields[name]) for name in a.fields
    )


def touched_rows(before: Stream, after: Stream) -> set[int]:
    """Return which samples of a stream are others now, or gone, sample by sample.

    Where some are gone, those that are left are known by their times; where there are more, they must be
    the same rows, and those that are there twice are touched.
    """
    if before is after or (before.loader is None and before.table.equals(after.table)):
        return set()
    if len(after) > len(before):
        rows = after.table.to_pylist()
        again = {i for i in range(1, len(rows)) if _same_rows(rows[i - 1], rows[i])}
        once = after.take(np.array([i not in again for i in range(len(rows))]))
        assert not touched_rows(before, once)
        return {i - 1 - sum(k < i for k in again) for i in again}
    kept = list(range(len(before)))
    if len(after) != len(before):
        times_after = set(after.t_ns.tolist())
        kept = [i for i, t in enumerate(before.t_ns.tolist()) if t in times_after]
        assert len(kept) == len(after)
    rows, new = before.table.to_pylist(), after.table.to_pylist()
    found = set(range(len(before))) - set(kept)
    for place, i in enumerate(kept):
        same = _same_rows(rows[i], new[place])
        if same and before.loader is not None:
            same = same_payload(before[i].value, after[place].value)
        found |= set() if same else {i}
    return found


def labelled_rows(labels: pa.Table, name: str) -> set[int]:
    """Return the samples of a stream that labels name."""
    rows = zip(arrow.texts(labels, "stream"), arrow.numbers(labels, "index").tolist(), strict=True)
    return {index for stream, index in rows if stream == name}
