"""What the nodes that smooth have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.geometry import se3
from transect.types import Pose, Record

from ._fusion_events import Place
from ._fusion_gate import USUAL, limit
from ._smooth_graph import Noise
from ._smooth_inertial import InertialNoise
from ._smooth_places import Judged
from ._smooth_wheels import WheelNoise


def noise_of(wheel_noise: float, unsteady: float, tilt: float, gravity: float) -> Noise:
    """Return the noise that a node's parameters mean."""
    wheels = WheelNoise(unsteady=unsteady).times(wheel_noise)
    return Noise(wheels=wheels, inertial=InertialNoise(gravity=gravity), tilt=tilt)


def stamped(pose: Floats, t_ns: int, frame: str, child: str) -> Pose:
    """Return a pose (4, 4) with its names."""
    attitude, place = se3.to_quaternion(pose)
    return Pose(place, attitude, t_ns=t_ns, frame=frame, child=child)


def innovations(places: Sequence[Place], judged: Judged, t_ns: int) -> Record | None:
    """Return how positions fitted, by sensor and in the words of the filter; None if there were none."""
    values: dict[str, Any] = {}
    sensors = np.array([each.sensor for each in places])
    for name in sorted(set(sensors.tolist())):
        some = sensors == name
        nis = judged.nis[some]
        values[f"{name}_count"] = float(len(nis))
        values[f"{name}_below"] = float(np.count_nonzero(nis <= limit(USUAL, 3)))
        values[f"{name}_refused"] = float(np.count_nonzero(~judged.used[some]))
        values[f"{name}_nis"] = float(np.mean(nis)) / 3
        values[f"{name}_detectable"] = float(np.max(judged.detectable[some]))
    return Record(values, t_ns=t_ns) if values else None
