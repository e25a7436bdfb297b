"""Between two samples: what `At[T]` gives to a node."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from transect.geometry.rotations import slerp
from transect.types import Imu, NavFix, Odometry, Pose, RigidBodyState, Twist, Wrench

from .ports import PortError, type_name

SAMPLED = (Pose, RigidBodyState, Odometry, Twist, Imu, Wrench, NavFix)
"""Types made of numbers that change steadily: `orientation` goes along the sphere, `attitude` the shorter way
round, everything else straight."""


def check_interpolable(kind: type, owner: str) -> None:
    """Refuse a type between whose samples there is nothing."""
    if not issubclass(kind, (*SAMPLED, float, int, np.ndarray)) or kind is bool:
        raise PortError(
            f"{owner}: {type_name(kind)} cannot be interpolated",
            why="At[T] takes numbers, arrays, " + ", ".join(type_name(k) for k in SAMPLED),
            hint=f"Latest[{type_name(kind)}], or Synced",
        )


def interpolated(before: Any, after: Any, part: float, t_ns: int) -> Any:
    """Return the value a part (0 to 1) of the way from one sample to the next; `t_ns` is its time."""
    if isinstance(before, float | int):
        return before + (after - before) * part
    if isinstance(before, np.ndarray):
        return _straight(before, after, part)
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(before):
        a, b = getattr(before, field.name), getattr(after, field.name)
        if field.name == "orientation" and a is not None and b is not None:
            changes[field.name] = slerp(a, b, part)
        elif field.name == "attitude" and a is not None and b is not None:
            changes[field.name] = a + (np.mod(b - a + np.pi, 2 * np.pi) - np.pi) * part
        elif field.name == "t_ns":
            changes[field.name] = t_ns
        elif (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)) or isinstance(a, float):
            changes[field.name] = None if b is None else _straight(a, b, part)
    return dataclasses.replace(before, **changes)


def _straight(a: Any, b: Any, part: float) -> Any:
    return a + (b - a) * part
