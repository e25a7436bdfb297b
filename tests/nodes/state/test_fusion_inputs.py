"""What drivers leave out: speeds without a pose, poses that nobody filled in, fixes without heights."""

from __future__ import annotations

import numpy as np
import pytest

from transect import run
from transect.engine.context import Context
from transect.evaluation.loading import trajectory_of
from transect.nodes.state.fusion import Inputs, Step
from transect.recording import Recording, Stream, arrow
from transect.types import NavFix, Odometry

NS = 1_000_000_000
T_NS = np.arange(0, 12 * NS, NS // 10)
RADIUS = 6_378_137.0


def odometry(**columns: np.ndarray) -> Stream:
    table = arrow.table(T_NS, columns, units=Odometry.units())
    return Stream("odom", Odometry, table, clock="utc", child="base_link")


def steps(stream: Stream) -> list[Step]:
    """Return the steps that a fusion takes from an odometry."""
    inputs, ctx = Inputs(), Context()
    found = [inputs.gather(ctx, None, [each.value], *[None] * 5) for each in stream]
    return [event for events in found for event in events if isinstance(event, Step)]


ONE, NONE, NOT = np.ones(len(T_NS)), np.zeros(len(T_NS)), np.full(len(T_NS), np.nan)
TWIST = {"vx": ONE, "wz": 0.2 * ONE}


@pytest.mark.parametrize(
    "columns",
    [
        TWIST,
        TWIST | {"vy": NOT, "vz": NOT, "wx": NOT, "wy": NOT},
        TWIST | dict.fromkeys(("x", "y", "z", "qx", "qy", "qz", "qw", "vy", "vz", "wx", "wy"), NONE),
        TWIST | dict.fromkeys(("x", "y", "z", "qx", "qy", "qz", "vy"), NONE) | {"qw": ONE},
    ],
    ids=["columns absent", "not measured", "pose of zeros", "pose at the origin"],
)
def test_speed_and_turn_rate_alone_are_a_dead_reckoning(columns: dict[str, np.ndarray]):
    found = steps(odometry(**columns))
    assert len(found) == len(T_NS) - 1
    assert np.allclose([each.transform[0, 3] for each in found], 0.1, rtol=1e-3)
    assert np.allclose([np.arctan2(*each.transform[[1, 0], 0]) for each in found], 0.02)


def test_a_quaternion_of_zeros_is_no_attitude():
    zeros = dict.fromkeys(("qx", "qy", "qz", "qw"), NONE)
    found = steps(odometry(x=T_NS / NS, y=NONE, z=NONE, **zeros))
    assert np.allclose([each.transform[:3, 3] for each in found[1:]], [0.1, 0, 0])


@pytest.fixture(scope="module")
def flat() -> Recording:
    """A circle of 5 m radius at 1 m/s: fixes without a height, and an odometry of speed and turn rate."""
    turned = 0.2 * T_NS / NS
    lat, lon = 5 * (1 - np.cos(turned)) / (RADIUS * (1 - 0.00669438)), 5 * np.sin(turned) / RADIUS
    table = arrow.table(T_NS[::5], {"lat": lat[::5], "lon": lon[::5]}, units=NavFix.units())
    return Recording("flat", (odometry(**TWIST), Stream("fix", NavFix, table, clock="utc")))


def test_fixes_without_a_height_are_fused_in_the_plane(flat: Recording):
    done = run("PoseFusion/ErrorStateFilter", flat)
    (found,) = done["trajectory"].values
    turned = 0.2 * found.t_ns / NS
    true = np.column_stack([5 * np.sin(turned), 5 * (1 - np.cos(turned))])
    assert np.hypot(*(found.positions[:, :2] - true).T)[-30:].max() < 0.3
    assert np.abs(found.positions[:, 2]).max() < 1
    assert any(each.text.startswith("fix tells no height: it is taken for 0") for each in done.conclusions)


def test_fixes_without_a_height_are_a_trajectory_in_the_plane(flat: Recording):
    found = trajectory_of(flat["fix"])
    assert len(found) == len(flat["fix"])
    assert np.abs(found.positions[:, 2]).max() < 1e-4
    assert found.positions[-1, 0] == pytest.approx(5 * np.sin(0.2 * 11.5), abs=0.01)
