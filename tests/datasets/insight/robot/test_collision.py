"""Keep-out boxes: hand-worked distances, and the flags and tolerances of the SIS."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transect.datasets.insight.robot.arm import DeploymentArm
from transect.datasets.insight.robot.collision import (
    Clearance,
    KeepOutBox,
    Thickness,
    clearance,
    list_ignored,
    payload_boxes,
    segment_distance,
)
from transect.datasets.insight.robot.parameters import Parameters
from transect.errors import GeometryError, TransectError

PRINTED = Parameters.printed()
SIZES = {"seis": (0.4, 0.2, 0.2), "wts": (0.7, 0.7, 0.4), "hp3": (0.3, 0.3, 0.5)}
UNIT = KeepOutBox("unit", np.eye(4), np.full(3, 0.5))
THIN = Thickness((0.0, 0.0, 0.0, 0.0))


def flagged(**flags: int) -> Parameters:
    values = {f"fault_params.ignore_col_{name}": value for name, value in flags.items()}
    return Parameters.over_printed({"RA_FAULT_PARAMS": values})


def at(x: float, y: float, z: float, half: float) -> KeepOutBox:
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return KeepOutBox("test", pose, np.full(3, half))


@pytest.mark.parametrize(
    ("start", "end", "distance"),
    [
        ((2.0, 0.0, 0.0), (2.0, 0.0, 0.0), 1.5),  # a point before a face
        ((1.5, 4.5, 0.0), (1.5, 4.5, 0.0), math.hypot(1, 4)),  # before an edge
        ((1.5, 2.5, 2.5), (1.5, 2.5, 2.5), 3.0),  # before a corner: 1, 2, 2
        ((2.0, -9.0, 0.0), (2.0, 9.0, 0.0), 1.5),  # along a face
        ((-3.0, 0.1, 0.2), (3.0, 0.1, 0.2), 0.0),  # through
        ((0.1, 0.1, 0.1), (0.2, 0.2, 0.2), 0.0),  # inside
        ((1.5, 0.0, 0.0), (0.0, 1.5, 0.0), math.sqrt(2) / 4),  # across the edge (0.5, 0.5): 0.25, 0.25 off
        ((1.0, 1.0, 0.0), (5.0, 1.0, 0.0), math.hypot(0.5, 0.5)),  # its start is nearest
        ((5.0, 1.0, 0.0), (1.0, 1.0, 0.0), math.hypot(0.5, 0.5)),  # its end is
        ((0.5, 3.0, 0.0), (0.5, -3.0, 0.0), 0.0),  # grazing a side
    ],
)
def test_distances_from_a_unit_cube_worked_by_hand(
    start: tuple[float, ...], end: tuple[float, ...], distance: float
) -> None:
    assert float(segment_distance(UNIT, start, end)) == pytest.approx(distance, abs=1e-12)


COORDINATE = st.floats(-3.0, 3.0)
POINT = st.tuples(COORDINATE, COORDINATE, COORDINATE)


@given(POINT, POINT)
@example((0.0, 0.0, 0.0), (2.2e-311, 1.0, 0.0))  # a subnormal way: dividing by it overflows
def test_no_point_of_a_segment_is_nearer_than_its_distance(
    start: tuple[float, ...], end: tuple[float, ...]
) -> None:
    points = np.linspace(start, end, 401)
    sampled = np.linalg.norm(points - np.clip(points, -0.5, 0.5), axis=1).min()
    exact = float(segment_distance(UNIT, start, end))
    assert exact <= sampled + 1e-9
    assert sampled - exact <= np.linalg.norm(np.subtract(end, start)) / 400


def test_the_quaternion_of_seis_has_its_scalar_last_and_turns_about_z() -> None:
    seis = payload_boxes(PRINTED, SIZES)[0]
    angle = 2 * math.atan2(0.177944, 0.984041)  # PAYLOAD_COL_PARAMS: 20.5 degrees
    ahead = [-0.408 + math.cos(angle), -0.319 + math.sin(angle), -0.334]  # 1 m along the box's x axis
    assert float(segment_distance(seis, ahead, ahead)) == pytest.approx(0.8, abs=1e-6)


def test_a_box_given_by_corners_stands_between_them() -> None:
    corners = [(-0.35, -0.35, 0.0), (0.35, 0.35, 0.26)]  # from the link frame down to the deck, z = 0
    wts = payload_boxes(PRINTED, {"wts": corners}, absent=("seis", "hp3"))[0]
    np.testing.assert_allclose(wts.pose[:3, 3], [-0.996, -0.459, -0.131])
    assert float(segment_distance(wts, [-0.996, -0.459, -0.5], [-0.996, -0.459, -0.4])) == pytest.approx(
        0.139
    )


def test_a_box_without_size_is_an_error_that_says_why() -> None:
    with pytest.raises(TransectError) as raised:
        payload_boxes(PRINTED, {"seis": (1, 1, 1)})
    assert "wts, hp3" in raised.value.what
    assert "APID 84" in raised.value.why
    assert "sizes=" in raised.value.hint


def test_a_size_must_be_three_edges_or_two_corners() -> None:
    with pytest.raises(GeometryError, match="size of seis"):
        payload_boxes(PRINTED, {"seis": [(1, 1, 1), (0, 0, 0)]}, absent=("wts", "hp3"))


def test_ignored_payloads_have_no_box_and_need_no_size() -> None:
    parameters = flagged(seis=1, hp3=0)
    assert list_ignored(parameters) == {"seis"}
    assert [box.name for box in payload_boxes(parameters, {k: SIZES[k] for k in ("wts", "hp3")})] == [
        "wts",
        "hp3",
    ]


def test_the_straight_arm_passes_a_box_at_the_hand_worked_distance() -> None:
    # With all joints at zero the links lie along x, at y = -dh.d2 and z = dh.d1 of RA_ARM_PARAMS.
    box = at(1.0, 0.140838 + 0.3, -0.056456, half=0.1)
    found = clearance(DeploymentArm.of(PRINTED), np.zeros((1, 4)), [box], Thickness((0.0, 0.05, 0.04, 0.0)))
    assert found.parts == ("link 1", "link 2", "link 3", "link 4")
    links = found.distance[0, :, 0]
    assert links[1] == pytest.approx(0.15)
    assert links[2] == pytest.approx(0.16)  # the elbow, at x = 1.006, is beside the box, too
    assert links[0] == pytest.approx(math.hypot(0.9 - 0.029609, 0.340838))
    assert links[3] == pytest.approx(math.hypot(0.029609 + 0.976664 + 0.857989 - 1.1, 0.2))


def test_the_first_violation_is_found_as_the_arm_sinks() -> None:
    # Shoulder and elbow turn against each other: link 3 stays level and sinks by 0.976664 sin(q2).
    box = at(1.4, 0.140838, 0.4, half=0.1)
    q2 = np.array([0.0, 0.1, 0.2, 0.3, 0.36])
    q = np.column_stack([0 * q2, q2, -q2, 0 * q2])
    found = clearance(DeploymentArm.of(PRINTED), q, [box], Thickness((0.0, 0.0, 0.05, 0.0)))
    gap = 0.3 - (-0.056456 + 0.976664007 * np.sin(q2)) - 0.05
    np.testing.assert_allclose(found.distance[:, 2, 0], gap, atol=1e-9)
    assert found.tolerance == 0.015  # lander_tol, RA_FAULT_DETECT
    assert found.violated.tolist() == [False, False, False, False, True] == (gap < 0.015).tolist()
    assert found.first is not None
    assert (found.first.row, found.first.part, found.first.box) == (4, "link 3", "test")
    assert found.first.distance == pytest.approx(gap[4])


def test_a_tool_point_counts_unless_it_is_ignored() -> None:
    box = at(0.0, 0.0, 1.0, half=0.5)
    points = np.array([[0.0, 0.0, 0.3], [0.0, 0.0, 0.45]])
    thickness = Thickness(THIN.links, {"grapple": 0.1})
    tools = {"grapple": points}
    found = clearance(DeploymentArm.of(PRINTED), np.zeros((2, 4)), [box], thickness, tools, tolerance=0.05)
    np.testing.assert_allclose(found.distance[:, found.parts.index("grapple"), 0], [0.1, -0.05])
    assert found.violated.tolist() == [False, True]
    ignoring = DeploymentArm.of(flagged(grapple=1))
    assert clearance(ignoring, np.zeros((2, 4)), [box], thickness, tools).parts[-1] == "link 4"


def test_the_arms_mount_moves_it_towards_a_box() -> None:
    parameters = Parameters.over_printed(
        {"RA_LANDER_TO_RA": {"frame.x": (0.0, 0.1, 0.0), "frame.q": (1, 0, 0, 0)}}
    )
    box = at(0.5, 1.140838, -0.056456, half=0.5)
    moved = clearance(DeploymentArm.of(parameters), np.zeros((1, 4)), [box], THIN)
    assert moved.distance[0, 1, 0] == pytest.approx(0.4)


def test_without_boxes_there_is_room_everywhere() -> None:
    found = clearance(DeploymentArm.of(PRINTED), np.zeros((3, 4)), [], THIN)
    assert found.first is None
    assert not found.violated.any()
    assert isinstance(found, Clearance)
