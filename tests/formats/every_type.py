"""A recording with a short stream of every type that a robot logs, and of what its runs make."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from transect.base.units import to_si
from transect.geometry import se3
from transect.recording import FrameTree, Recording, Stream, arrow, stream_of_values
from transect.types import (
    CameraModel,
    DepthMap,
    GridMap,
    Image,
    Imu,
    JointState,
    LaserScan,
    NavFix,
    Odometry,
    PointCloud,
    Pose,
    RadarRange,
    RadarSpectrum,
    Record,
    RigidBodyState,
    Trajectory,
    Twist,
    WheelState,
    Wrench,
)

START_NS = 1_700_000_000_000_000_000
SAMPLE_COUNT = 3
T_NS = START_NS + np.array([0, 100_001_000, 250_000_000])
"""Resolution of one microsecond: finer times are lost, and reported, by MessagePack logs and videos."""
RNG = np.random.default_rng(21)


def _numbers(names: str) -> dict[str, Any]:
    return {name: RNG.normal(size=SAMPLE_COUNT) for name in names.split()}


def _turns() -> dict[str, Any]:
    half = RNG.normal(size=SAMPLE_COUNT) / 2
    return {
        "qx": np.zeros(SAMPLE_COUNT),
        "qy": np.zeros(SAMPLE_COUNT),
        "qz": np.sin(half),
        "qw": np.cos(half),
    }


def _columns(name: str, kind: type, columns: dict[str, Any], **more: Any) -> Stream:
    return stream_of_values(name, T_NS, columns, type=kind, **more)


def _payloads(name: str, kind: type, values: Sequence[Any], **more: Any) -> Stream:
    known = dict(zip(T_NS.tolist(), values, strict=False))
    return Stream(
        name, kind, arrow.table(T_NS[: len(values)], {}), loader=lambda row: known[row["t_ns"]], **more
    )


def _images() -> list[Image]:
    return [
        Image(RNG.integers(0, 255, (6, 8, 3), np.uint8), "rgb", int(t), "camera", CAMERA)
        for t in T_NS.tolist()
    ]


def _depth(t_ns: int) -> DepthMap:
    return DepthMap(RNG.uniform(1, 5, (6, 8)).astype(np.float32), t_ns, "camera")


def _cloud(t_ns: int) -> PointCloud:
    points = RNG.normal(size=(5, 3)).astype(np.float32)
    points[2] = np.nan
    fields = {
        "intensity": np.arange(5, dtype=np.float32),
        "ring": np.arange(5, dtype=np.uint16),
        "rgb": RNG.integers(0, 255, (5, 3), np.uint8),
        "t_offset_ns": np.arange(5) * 1000,
    }
    return PointCloud(points, fields, t_ns, "laser")


def _dem(t_ns: int) -> GridMap:
    layers = {"elevation": RNG.normal(size=(4, 3)).astype(np.float32)}
    layers["elevation"][1, 1] = np.nan
    return GridMap(layers, (0.1, 0.0, 5.3, 0.0, -0.1, 7.7), "", "map", t_ns)


def _track(t_ns: int) -> Trajectory:
    turns = np.column_stack(list(_turns().values()))
    return Trajectory(T_NS, RNG.normal(size=(SAMPLE_COUNT, 3)), turns, frame="map", child="body")


CAMERA = CameraModel(
    "cam",
    8,
    6,
    np.array([[4.1, 0.0, 3.5], [0.0, 4.2, 2.5], [0.0, 0.0, 1.0]]),
    "radtan",
    np.array([0.1, -0.2, 0.001, 0.002]),
    frame="camera",
)


@cache
def frames() -> FrameTree:
    """Return a tree with an edge that does not move and one that does."""
    tree = FrameTree()
    turn = np.array([0.1, -0.2, 0.3, 0.9])
    tree.add_static("body", "camera", se3.from_quaternion(turn / np.linalg.norm(turn), [0.1, 0.2, 0.3]))
    poses = np.column_stack(list(_turns().values()))
    tree.add_moving("map", "body", T_NS, RNG.normal(size=(SAMPLE_COUNT, 3)), poses)
    return tree


@cache
def streams() -> dict[str, Stream]:
    """Return a stream of each kind, by what the table in docs/formats.md calls it."""
    ranges = [RNG.uniform(1, 9, 4) for _ in range(SAMPLE_COUNT)]
    ranges[1][2] = np.nan
    scan = {
        "ranges": np.array(ranges),
        "start_angle": np.full(SAMPLE_COUNT, -0.7),
        "angle_increment": np.full(SAMPLE_COUNT, 0.35),
    }
    fix = {"lat": to_si(np.array([37.7, 37.70001, 37.70002]), "deg")}
    fix |= {
        "lon": to_si(np.array([15.0, 15.00001, 15.00002]), "deg"),
        "alt": np.array([1700.5, 1700.6, np.nan]),
    }
    joints = {"position": RNG.normal(size=(SAMPLE_COUNT, 2)), "velocity": RNG.normal(size=(SAMPLE_COUNT, 2))}
    twist = "vx vy vz wx wy wz"

    def moved() -> dict[str, Any]:
        return _numbers("x y z") | _turns() | _numbers(twist)

    return {
        "NavFix": _columns("fix", NavFix, fix, frame="antenna"),
        "Pose": _columns("pose", Pose, _numbers("x y z") | _turns(), frame="map", child="body"),
        "Odometry": _columns("odom", Odometry, moved(), frame="odom", child="body"),
        "RigidBodyState": _columns("state", RigidBodyState, moved(), frame="map", child="body"),
        "Twist": _columns("twist", Twist, _numbers(twist), frame="body"),
        "Wrench": _columns("wrench", Wrench, _numbers("fx fy fz tx ty tz"), frame="wrist"),
        "Imu": _columns("imu", Imu, _numbers("acc_x acc_y acc_z gyro_x gyro_y gyro_z"), frame="imu"),
        "JointState": _columns("joints", JointState, joints),
        "WheelState": _columns("wheels", WheelState, {"velocity": RNG.normal(size=(SAMPLE_COUNT, 4))}),
        "LaserScan": _columns("scan", LaserScan, scan, frame="laser"),
        "RadarRange": _columns("target", RadarRange, _numbers("range angle reflectivity"), frame="radar"),
        "RadarSpectrum": _columns("radar", RadarSpectrum, {
            "reflectivity": RNG.normal(size=(SAMPLE_COUNT, 6)), "angle": np.arange(SAMPLE_COUNT) * 0.1,
            "bin_width": np.full(SAMPLE_COUNT, 0.2),
            "range_offset": np.full(SAMPLE_COUNT, 0.05)}, frame="radar"),
        "numbers": _columns("status", Record, _numbers("a b") | {"count": np.arange(SAMPLE_COUNT)}),
        "text": _columns("log", Record, {"message": ["drove", "stopped: é", ""]}),
        "Image": _payloads("camera", Image, _images(), frame="camera", camera="cam"),
        "DepthMap": _payloads("depth", DepthMap, [_depth(int(t)) for t in T_NS.tolist()], frame="camera"),
        "PointCloud": _payloads("lidar", PointCloud, [_cloud(int(t)) for t in T_NS.tolist()], frame="laser"),
        "GridMap": _payloads("dem", GridMap, [_dem(START_NS)], frame="map"),
        "Trajectory": _payloads("track", Trajectory, [_track(START_NS)], frame="map", child="body"),
    }  # fmt: skip


def recording() -> Recording:
    """Return all of them in one recording, with a camera and frames."""
    return Recording("every", tuple(streams().values()), frames=frames(), cameras={"cam": CAMERA})
