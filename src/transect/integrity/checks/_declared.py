"""What samples declare of their own uncertainty: covariances, row by row, and standard deviations."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from transect.integrity.windows import Window
from transect.types import Imu, NavFix, Odometry, Pose, RigidBodyState, Twist

Declaring = RigidBodyState | NavFix | Pose | Odometry | Twist | Imu


def matrix_columns(window: Window[Any]) -> dict[str, int]:
    """Return the columns of covariances, and how many rows the matrices have."""
    found: dict[str, int] = {}
    for field in window.stream.table.schema:
        if field.name.endswith("covariance") and pa.types.is_fixed_size_list(field.type):
            size = math.isqrt(field.type.list_size)
            if size * size == field.type.list_size:
                found[field.name] = size
    return found


def deviation_columns(window: Window[Any]) -> list[str]:
    """Return the columns of standard deviations."""
    return [name for name in window.stream.table.column_names if name.startswith("std_")]
