"""What labels state of the columns of each type."""

from __future__ import annotations

import pytest

from transect import types
from transect.archive.assembly.streams import describe_columns


@pytest.mark.parametrize("kind", [types.Pose, types.RigidBodyState, types.Odometry])
def test_the_direction_of_a_quaternion_is_stated(kind: type) -> None:
    # The comment stands behind a declaration of several lines, or above it.
    assert describe_columns(kind)["qx"].endswith("Quaternion x, y, z, w: rotates vectors of child to frame.")


def test_a_field_without_a_description_has_its_name_alone() -> None:
    assert describe_columns(types.Imu)["gyro_x"] == "Angular velocity, gyro_x"
