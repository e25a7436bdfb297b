"""The time offset, from what two trajectories show of the same motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.evaluation.association import OffsetSearchError, find_offset
from transect.geometry import rotations
from transect.types import Trajectory


def drive(rate: float = 20.0, seconds: float = 60.0, start: float = 0.0) -> Trajectory:
    """A drive that changes speed and heading without repeating itself."""
    t = start + np.arange(int(rate * seconds)) / rate
    speed = 1.5 + np.sin(0.31 * t) + 0.5 * np.sin(1.3 * t + 1)
    heading = np.sin(0.2 * t) + 0.6 * np.sin(0.93 * t + 2) + 0.3 * np.sin(2.1 * t)
    steps = np.column_stack([speed * np.cos(heading), speed * np.sin(heading), 0 * t]) / rate
    turned = rotations.quaternion_from_euler("z", heading[:, None])
    return Trajectory(np.round(t * 1e9).astype(np.int64), np.cumsum(steps, axis=0), turned)


@given(st.floats(-8, 8))
def test_an_offset_that_was_put_in_is_found(seconds: float) -> None:
    late = drive()
    late = replace(late, t_ns=late.t_ns - round(seconds * 1e9))
    found = find_offset(drive(), late)
    assert found.seconds == pytest.approx(seconds, abs=0.005)
    assert found.correlation > 0.95
    assert found.confidence > 0


def test_positions_alone_are_held_against_each_other_by_speed() -> None:
    alone = replace(drive(rate=10.0), orientations=None)
    alone = replace(alone, t_ns=alone.t_ns - 1_250_000_000)
    found = find_offset(drive(), alone)
    assert found.signal == "speed"
    assert found.seconds == pytest.approx(1.25, abs=0.03)
    assert "offset +1.2" in str(found)


def test_what_stands_still_has_no_offset() -> None:
    still = replace(drive(), positions=np.zeros((1200, 3)), orientations=None)
    with pytest.raises(OffsetSearchError, match="does not determine a time offset") as caught:
        find_offset(drive(), still)
    assert "speed" in caught.value.why
