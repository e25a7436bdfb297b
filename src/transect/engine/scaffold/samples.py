"""Small values of every type that ports carry, for the tests that are written along with stubs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from transect import types
from transect.errors import UsageError, did_you_mean

_UPRIGHT = (0.0, 0.0, 0.0, 1.0)
_NORTH_UP = (0.5, 0.0, 0.0, 0.0, -0.5, 0.0)


def _gray() -> types.Image:
    return types.Image(np.zeros((4, 6), np.uint8))


def _match(axes: int, kind: Callable[[Any, Any], Any]) -> Any:
    points = np.zeros((5, axes), np.float32 if axes == 2 else np.float64)
    return kind(points, points)


_SAMPLES: dict[type, Callable[[], Any]] = {
    bool: lambda: True,
    int: lambda: 1,
    float: lambda: 1.0,
    str: lambda: "text",
    object: lambda: "anything",
    np.ndarray: lambda: np.zeros(3),
    types.CorrespondenceMaps2D: lambda: types.CorrespondenceMaps2D((_match(2, types.Correspondences2D),)),
    types.CorrespondenceMaps3D: lambda: types.CorrespondenceMaps3D((_match(3, types.Correspondences3D),)),
    types.Correspondences2D: lambda: _match(2, types.Correspondences2D),
    types.Correspondences3D: lambda: _match(3, types.Correspondences3D),
    types.Features2D: lambda: types.Features2D(np.zeros((5, 2), np.float32)),
    types.Features3D: lambda: types.Features3D(np.zeros((5, 3))),
    types.Octree: lambda: types.Octree(np.zeros(3), 1.0, 1, np.zeros((1, 3), np.int64), np.ones(1, np.int64)),
    types.StereoPair: lambda: types.StereoPair(_gray(), _gray()),
    types.CameraModel: lambda: types.CameraModel("camera", 6, 4, np.eye(3)),
    types.DepthMap: lambda: types.DepthMap(np.ones((4, 6), np.float32)),
    types.GridMap: lambda: types.GridMap({"elevation": np.zeros((3, 4))}, _NORTH_UP),
    types.Image: _gray,
    types.Imu: lambda: types.Imu(np.array([0.0, 0.0, 9.81]), np.zeros(3)),
    types.JointState: lambda: types.JointState(np.zeros(3)),
    types.LaserScan: lambda: types.LaserScan(np.ones(5), -0.2, 0.1),
    types.NavFix: lambda: types.NavFix(0.0, 0.0, 0.0),
    types.Odometry: lambda: types.Odometry(np.zeros(3), np.array(_UPRIGHT)),
    types.PointCloud: lambda: types.PointCloud(np.zeros((5, 3))),
    types.Pose: lambda: types.Pose(np.zeros(3), np.array(_UPRIGHT)),
    types.Provenance: lambda: types.Provenance(),
    types.RadarRange: lambda: types.RadarRange(1.0, 0.0, 1.0),
    types.RadarSpectrum: lambda: types.RadarSpectrum(np.zeros(8), 0.0, 0.1, 0.0),
    types.Record: lambda: types.Record(),
    types.RigidBodyState: lambda: types.RigidBodyState(np.zeros(3), np.array(_UPRIGHT)),
    types.SourceFile: lambda: types.SourceFile("file", 0, "0" * 64),
    types.Trajectory: lambda: types.Trajectory(np.arange(2), np.zeros((2, 3))),
    types.Transform: lambda: types.Transform("target", "source", np.eye(4)),
    types.Twist: lambda: types.Twist(np.zeros(3), np.zeros(3)),
    types.Verdict: lambda: types.Verdict("stream", 0, 1, 1.0, "ok", "as it should be"),
    types.WheelState: lambda: types.WheelState(np.zeros(4)),
    types.Wrench: lambda: types.Wrench(np.zeros(3), np.zeros(3)),
}


def sample_value(kind: type) -> Any:
    """Return a small, valid value of a type that ports carry, to call a node with."""
    if kind not in _SAMPLES:
        known = [known.__name__ for known in _SAMPLES]
        name = kind.__name__
        raise UsageError(f"there is no sample value of type {name}", hint=did_you_mean(name, known))
    return _SAMPLES[kind]()
