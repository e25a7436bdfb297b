import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.errors import FrameError, TimeError
from transect.geometry import interpolation, rotations, se3
from transect.recording.frames import FrameTree

T0_NS = 1_657_000_000_000_000_000
NS_PER_S = 1_000_000_000
IDENTITY_QUATERNION = (0.0, 0.0, 0.0, 1.0)
YAW_90 = (0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5))

# AMEDS Table 2: frame A, frame B, x y z of A in B (mm), psi theta phi (deg); R = Rx Ry Rz (eq. 3).
TABLE_2 = [
    ("Lidar", "Origin", (-549, 0, -1389), (180, 0, 180)),
    ("MainArm (base)", "Origin", (-100, 0, -647), (0, 180, 0)),
    ("MainCam", "MainArm (end)", (28, 0, 186), (0, -90, 90)),
    ("AuxArm (base)", "Origin", (598, 310, -210), (-60, 50, 180)),
    ("AuxCam", "AuxArm (end)", (-57, 0, 218), (0, 18, 90)),
    ("Platform", "Origin", (0, 0, 81), (180, 0, 0)),
]


def translation(x: float, y: float, z: float) -> np.ndarray:
    return se3.from_quaternion(IDENTITY_QUATERNION, (x, y, z))


def interact() -> FrameTree:
    tree = FrameTree()
    for child, parent, millimetres, degrees in TABLE_2:
        rotation = rotations.matrix_from_euler("XYZ", np.radians(degrees))
        tree.add_static(
            parent, child, se3.from_matrix(rotation, np.divide(millimetres, 1000)), source="Table 2"
        )
    return tree


def walking(start_ns: int = T0_NS, seconds: int = 10, speed: float = 1.0) -> FrameTree:
    """World -> body at 1 m/s along x with a pose each second; body -> camera 1 m up."""
    tree = FrameTree()
    t_ns = start_ns + np.arange(seconds + 1) * NS_PER_S
    x = np.arange(seconds + 1) * speed
    positions = np.stack([x, np.zeros_like(x), np.zeros_like(x)], axis=1)
    tree.add_moving(
        "world", "body", t_ns, positions, np.tile(IDENTITY_QUATERNION, (len(x), 1)), source="odometry"
    )
    tree.add_static("body", "camera", translation(0, 0, 1))
    return tree


def random_poses(rng: np.random.Generator, n: int):
    t_ns = T0_NS + np.sort(rng.choice(1000 * n, n, replace=False)) * 1_000_003
    return t_ns, rng.normal(size=(n, 3)) * 10, rng.normal(size=(n, 4))


def random_tree(rng: np.random.Generator, frames: int) -> FrameTree:
    """Frames "0", "1", ...: each hangs on an earlier one, about half of the edges move."""
    tree = FrameTree()
    for child in range(1, frames):
        parent = str(rng.integers(child))
        t_ns, positions, quaternions = random_poses(rng, int(rng.integers(2, 30)))
        if rng.random() < 0.5:
            tree.add_static(parent, str(child), se3.from_quaternion(quaternions[0], positions[0]))
        else:
            t_ns[0], t_ns[-1] = T0_NS, T0_NS + 40_000 * NS_PER_S
            tree.add_moving(parent, str(child), t_ns, positions, quaternions)
    return tree


seeds = st.integers(0, 2**32 - 1)


# Which way transforms go


def test_table_2_puts_the_lidar_on_the_mast_above_an_origin_whose_z_points_down():
    in_origin = interact().lookup("Origin", "Lidar") @ (0, 0, 0, 1)
    np.testing.assert_allclose(in_origin[:3], (-0.549, 0, -1.389))


def test_table_2_turns_the_lidar_upside_down_and_backwards():
    # Rx(180) Rz(180) by hand: x -> -x, y -> y, z -> -z.
    np.testing.assert_allclose(interact().lookup("Origin", "Lidar")[:3, :3], np.diag([-1, 1, -1]), atol=1e-15)


def test_a_wheel_hub_135_mm_below_the_platform_is_216_mm_below_the_origin():
    # Wheel 1 of section 4, wheels straight (phi = 0): x = L, y = W + d, z = -H; Platform is y left, z up.
    wheel_in_platform = (0.402, 0.396 + 0.143, -0.135, 1)
    in_origin = interact().lookup("Origin", "Platform") @ wheel_in_platform
    np.testing.assert_allclose(in_origin[:3], (0.402, -0.539, 0.081 + 0.135), atol=1e-12)


def test_siblings_meet_at_their_common_parent():
    tree = interact()
    by_hand = np.linalg.inv(tree.lookup("Origin", "Platform")) @ tree.lookup("Origin", "Lidar")
    np.testing.assert_allclose(tree.lookup("Platform", "Lidar"), by_hand, atol=1e-12)


def test_a_frame_is_at_its_own_origin():
    np.testing.assert_array_equal(interact().lookup("Lidar", "Lidar"), np.eye(4))


def test_a_rounded_rotation_still_has_an_exact_inverse():
    tree = FrameTree()
    rounded = np.round(se3.from_quaternion((0.058, 0.019, 0.703, 0.708), (-0.031, -0.077, 0.026)), 3)
    tree.add_static("imu", "left_camera", rounded)
    there_and_back = tree.lookup("imu", "left_camera") @ tree.lookup("left_camera", "imu")
    np.testing.assert_allclose(there_and_back, np.eye(4), atol=1e-14)
    np.testing.assert_array_equal(tree.lookup("imu", "left_camera"), rounded)


# Moving edges


def test_between_two_poses_the_position_is_linear_and_the_attitude_slerps():
    tree = FrameTree()
    tree.add_moving(
        "world", "body", [T0_NS, T0_NS + 3 * NS_PER_S], [(0, 0, 0), (3, 6, 9)], [IDENTITY_QUATERNION, YAW_90]
    )
    expected = se3.from_matrix(rotations.matrix_from_euler("z", [np.radians(30)]), (1, 2, 3))
    np.testing.assert_allclose(tree.lookup("world", "body", T0_NS + NS_PER_S), expected, atol=1e-15)


def test_the_shorter_arc_is_taken_when_a_quaternion_changes_sign():
    tree = FrameTree()
    flipped = tuple(-x for x in YAW_90)
    tree.add_moving(
        "world", "body", [T0_NS, T0_NS + 2 * NS_PER_S], np.zeros((2, 3)), [IDENTITY_QUATERNION, flipped]
    )
    expected = rotations.matrix_from_euler("z", [np.radians(45)])
    np.testing.assert_allclose(tree.lookup("world", "body", T0_NS + NS_PER_S)[:3, :3], expected, atol=1e-15)


def test_a_lookup_on_a_sample_is_that_sample():
    rng = np.random.default_rng(1)
    t_ns, positions, quaternions = random_poses(rng, 20)
    tree = FrameTree()
    tree.add_moving("world", "body", t_ns, positions, quaternions)
    np.testing.assert_allclose(
        tree.lookup("world", "body", t_ns), se3.from_quaternion(quaternions, positions), atol=1e-12
    )


def test_static_edges_ride_on_moving_ones():
    camera = walking().lookup("world", "camera", T0_NS + 2_500_000_000)
    np.testing.assert_allclose(camera, translation(2.5, 0, 1))


def test_the_way_back_is_the_inverse():
    tree = walking()
    np.testing.assert_allclose(tree.lookup("camera", "world", T0_NS + NS_PER_S), translation(-1, 0, -1))


def test_a_static_path_needs_no_time_but_takes_one():
    tree = walking()
    one = tree.lookup("body", "camera")
    assert tree.lookup("body", "camera", T0_NS) is one
    assert tree.lookup("body", "camera", np.arange(5)).shape == (5, 4, 4)
    np.testing.assert_array_equal(tree.lookup("body", "camera", np.arange(5))[3], one)


def test_numpy_integers_are_times_too():
    tree = walking()
    np.testing.assert_array_equal(
        tree.lookup("world", "body", np.int64(T0_NS + 5)), tree.lookup("world", "body", T0_NS + 5)
    )
    np.testing.assert_array_equal(
        tree.lookup("body", "camera", np.int64(T0_NS + 5)), tree.lookup("body", "camera")
    )


def test_no_times_give_no_transforms():
    assert walking().lookup("world", "body", np.array([], dtype=np.int64)).shape == (0, 4, 4)


@given(seeds, st.integers(2, 40))
def test_the_scalar_path_and_the_vector_path_agree(seed: int, n: int):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 8)
    target, source = (str(x) for x in rng.integers(8, size=2))
    times = T0_NS + rng.integers(0, 40_000 * NS_PER_S, n)
    many = tree.lookup(target, source, times)
    one_by_one = [tree.lookup(target, source, int(t)) for t in times]
    np.testing.assert_allclose(many, one_by_one, rtol=0, atol=1e-11)


@given(seeds, st.floats(0, 5))
def test_both_paths_hold_and_refuse_the_same_times(seed: int, tolerance: float):
    rng = np.random.default_rng(seed)
    early, late = walking(), walking(T0_NS + 15 * NS_PER_S)
    tree = early.merge(late)
    times = rng.integers(T0_NS - 6 * NS_PER_S, T0_NS + 31 * NS_PER_S, 20)
    many = tree.lookup("world", "camera", times, tolerance=tolerance, missing="nan")
    one_by_one = [tree.lookup("world", "camera", int(t), tolerance=tolerance, missing="nan") for t in times]
    np.testing.assert_allclose(many, one_by_one, atol=1e-12)


@given(seeds, st.integers(1, 30))
def test_lookups_agree_with_geometry(seed: int, n: int):
    rng = np.random.default_rng(seed)
    t_ns, positions, quaternions = random_poses(rng, n)
    quaternions[rng.random(n) < 0.3] = quaternions[0]  # equal neighbours are the singular case of slerp
    tree = FrameTree()
    tree.add_moving("world", "body", t_ns, positions, quaternions)
    times = rng.integers(t_ns[0], t_ns[-1] + 1, 50)
    xyz, q = interpolation.interpolate_poses(t_ns, positions, quaternions, times)
    np.testing.assert_allclose(tree.lookup("world", "body", times), se3.from_quaternion(q, xyz), atol=1e-11)


@given(seeds)
def test_a_path_is_the_product_of_its_parts(seed: int):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 10)
    a, b, c = (str(x) for x in rng.integers(10, size=3))
    times = T0_NS + rng.integers(0, 40_000 * NS_PER_S, 5)
    product = tree.lookup(a, b, times) @ tree.lookup(b, c, times)
    np.testing.assert_allclose(product, tree.lookup(a, c, times), atol=1e-10)


def test_many_times_are_answered_in_chunks_without_a_trace():
    times = T0_NS + np.linspace(0, 10 * NS_PER_S, 40_000).astype(np.int64)
    x = walking().lookup("world", "body", times)[:, 0, 3]
    np.testing.assert_allclose(x, (times - T0_NS) / NS_PER_S, atol=1e-12)


# What comes in


def test_poses_are_sorted_and_of_equal_times_the_last_stays():
    tree = FrameTree()
    t_ns = [T0_NS + 2, T0_NS, T0_NS + 1, T0_NS]
    tree.add_moving(
        "world", "body", t_ns, [(2, 0, 0), (9, 0, 0), (1, 0, 0), (0, 0, 0)], [IDENTITY_QUATERNION] * 4
    )
    assert [tree.lookup("world", "body", T0_NS + k)[0, 3] for k in range(3)] == [0, 1, 2]
    assert tree.edges[0].span_ns == (T0_NS, T0_NS + 2)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_poses_that_were_not_measured_are_left_out(bad: float):
    tree = FrameTree()
    positions = [(0, 0, 0), (bad, 0, 0), (2, 0, 0), (5, 0, 0)]
    orientations = [IDENTITY_QUATERNION, IDENTITY_QUATERNION, IDENTITY_QUATERNION, (0, 0, 0, 0)]
    tree.add_moving("world", "body", T0_NS + np.arange(4), positions, orientations)
    assert tree.lookup("world", "body", T0_NS + 1)[0, 3] == 1
    assert tree.edges[0].span_ns == (T0_NS, T0_NS + 2)


def test_an_edge_without_any_pose_joins_its_frames_but_answers_no_lookup():
    tree = FrameTree()
    tree.add_moving("world", "body", [], [], [])
    assert tree.frames == ("body", "world")
    assert tree.edges[0].span_ns is None
    with pytest.raises(FrameError, match="no poses"):
        tree.lookup("world", "body", T0_NS)
    with pytest.raises(FrameError, match="no poses"):
        tree.lookup("world", "body", np.array([T0_NS]))
    assert np.isnan(tree.lookup("world", "body", np.array([T0_NS]), missing="nan")).all()


def test_the_caller_may_go_on_using_its_arrays():
    t_ns, positions = np.array([T0_NS, T0_NS + 1]), np.zeros((2, 3))
    matrix = np.eye(4)
    tree = FrameTree()
    tree.add_moving("world", "body", t_ns, positions, [IDENTITY_QUATERNION] * 2)
    tree.add_static("body", "camera", matrix)
    t_ns[:], positions[:], matrix[0, 3] = 0, 7, 7
    np.testing.assert_array_equal(tree.lookup("world", "camera", T0_NS), np.eye(4))


@pytest.mark.parametrize(
    ("t_ns", "positions", "orientations"),
    [
        ([T0_NS], [(0, 0)], [IDENTITY_QUATERNION]),
        ([T0_NS, T0_NS + 1], [(0, 0, 0)], [IDENTITY_QUATERNION] * 2),
        ([[T0_NS]], [(0, 0, 0)], [IDENTITY_QUATERNION]),
    ],
)
def test_poses_of_the_wrong_shape_are_refused(t_ns, positions, orientations):
    with pytest.raises(FrameError, match=r"positions \(n, 3\)"):
        FrameTree().add_moving("world", "body", t_ns, positions, orientations)


def test_times_in_float_seconds_are_refused_on_the_way_in_and_in_a_lookup():
    with pytest.raises(FrameError, match="int64 nanoseconds, got float64"):
        FrameTree().add_moving("world", "body", [1.5], [(0, 0, 0)], [IDENTITY_QUATERNION])
    for t in (1.5, np.array([1.5]), np.array([[T0_NS]])):
        with pytest.raises(TimeError, match="int64 nanoseconds"):
            walking().lookup("world", "body", t)


@pytest.mark.parametrize(
    "matrix",
    [
        np.diag([1.0, 1.0, -1.0, 1.0]),
        np.diag([2.0, 2.0, 2.0, 1.0]),
        np.full((4, 4), np.nan),
        translation(np.nan, 0, 0),
        np.ones((4, 4)),
        np.eye(3),
    ],
    ids=["mirrored", "scaled", "nan", "nan translation", "last row", "3x3"],
)
def test_what_is_not_a_rigid_transform_is_refused_with_the_edge(matrix: np.ndarray):
    with pytest.raises(FrameError, match=r"rigid|\(4, 4\)") as caught:
        FrameTree().add_static("world", "body", matrix)
    assert caught.value.where == "world -> body"


# Beyond what is known


@pytest.mark.parametrize("t_ns", [T0_NS - 1, T0_NS + 10 * NS_PER_S + 1])
def test_nothing_is_extrapolated_by_default_and_the_error_names_edge_span_and_time(t_ns: int):
    with pytest.raises(FrameError) as caught:
        walking().lookup("world", "camera", t_ns)
    text = str(caught.value)
    assert "world -> body" in text
    assert str(t_ns) in text
    assert "2022-07-05T05:46:40.000 to 2022-07-05T05:46:50.000" in text
    assert "odometry" in text


def test_within_the_tolerance_the_nearest_pose_is_held():
    tree, late = walking(), T0_NS + 10 * NS_PER_S + 570_000_000
    assert tree.lookup("world", "body", late, tolerance=0.57)[0, 3] == 10
    assert tree.lookup("world", "body", np.array([late]), tolerance=0.57)[0, 0, 3] == 10
    with pytest.raises(FrameError):
        tree.lookup("world", "body", late + 1, tolerance=0.57)
    assert tree.lookup("world", "body", 0, tolerance=math.inf)[0, 3] == 0


def test_one_bad_time_among_many_is_an_error_that_counts_unless_nan_is_asked_for():
    tree, times = walking(), np.array([T0_NS, T0_NS - 5, T0_NS + NS_PER_S])
    with pytest.raises(FrameError, match=f"{T0_NS - 5} ns") as caught:
        tree.lookup("world", "camera", times)
    assert "1 of 3 times" in caught.value.why
    answer = tree.lookup("world", "camera", times, missing="nan")
    assert np.isnan(answer[1]).all()
    np.testing.assert_array_equal(answer[[0, 2], 0, 3], [0, 1])
    assert np.isnan(tree.lookup("world", "camera", T0_NS - 5, missing="nan")).all()


def test_a_moving_path_without_a_time_says_which_edge_moves():
    with pytest.raises(FrameError, match="world -> body needs a time"):
        walking().lookup("world", "camera")


def test_two_clocks_on_one_path_cannot_be_looked_up_at_one_time():
    tree = walking()
    tree.add_moving("body", "arm", [1], [(0, 0, 0)], [IDENTITY_QUATERNION], clock="device")
    with pytest.raises(FrameError, match="two clocks") as caught:
        tree.lookup("world", "arm", T0_NS)
    assert "body -> arm moves on device" in caught.value.why


# The shape of the tree


def test_frames_edges_roots_and_parents_describe_the_tree():
    tree = walking()
    tree.add_static("map", "marker", np.eye(4), source="survey")
    assert tree.frames == ("body", "camera", "map", "marker", "world")
    assert tree.roots == ("map", "world")
    assert [(e.parent, e.child, e.moving, e.source, e.clock) for e in tree.edges] == [
        ("map", "marker", False, "survey", ""),
        ("world", "body", True, "odometry", "utc"),
        ("body", "camera", False, "", ""),
    ]
    assert (tree.parent_of("camera"), tree.parent_of("world")) == ("body", None)
    assert len(tree) == 5
    assert "world" in tree
    assert "camera" in tree
    assert "moon" not in tree
    assert len(FrameTree()) == 0


def test_a_second_parent_is_refused_naming_both():
    with pytest.raises(FrameError, match="'camera' cannot have two parents, 'body' and 'world'"):
        walking().add_static("world", "camera", np.eye(4), replace=True)


def test_a_cycle_is_refused_naming_the_edge_and_the_path_that_is_there():
    with pytest.raises(FrameError, match="camera -> world would close a cycle") as caught:
        walking().add_static("camera", "world", np.eye(4))
    assert "world -> body -> camera" in caught.value.why


def test_a_frame_is_not_its_own_parent_and_has_a_name():
    with pytest.raises(FrameError, match="cycle"):
        FrameTree().add_static("a", "a", np.eye(4))
    with pytest.raises(FrameError, match="name"):
        FrameTree().add_static("", "a", np.eye(4))


def test_the_same_edge_may_come_again_only_if_equal():
    tree = walking()
    version = tree.version
    tree.add_static("body", "camera", translation(0, 0, 1), source="again")
    assert tree.version == version
    with pytest.raises(FrameError, match="body -> camera is there already"):
        tree.add_static("body", "camera", translation(0, 0, 2))
    tree.add_static("body", "camera", translation(0, 0, 2), replace=True)
    assert tree.lookup("body", "camera")[2, 3] == 2


def test_a_static_edge_gives_way_to_a_moving_one_with_replace():
    tree = FrameTree()
    tree.add_static("odom", "base", np.eye(4))
    assert tree.lookup("odom", "base")[0, 3] == 0
    poses = ([T0_NS, T0_NS + 2], [(1, 0, 0), (3, 0, 0)], [IDENTITY_QUATERNION] * 2)
    with pytest.raises(FrameError, match="differs"):
        tree.add_moving("odom", "base", *poses)
    tree.add_moving("odom", "base", *poses, replace=True)
    assert tree.lookup("odom", "base", T0_NS + 1)[0, 3] == 2


def test_an_edit_is_seen_by_the_next_lookup():
    tree = walking()
    assert tree.lookup("world", "camera", T0_NS)[2, 3] == 1
    tree.add_static("body", "camera", translation(0, 0, 5), replace=True)
    assert tree.lookup("world", "camera", T0_NS)[2, 3] == 5


def test_a_cached_answer_cannot_be_changed():
    matrix = interact().lookup("Origin", "Lidar")
    with pytest.raises(ValueError, match="read-only"):
        matrix[0, 3] = 1


def test_an_unknown_frame_is_named_with_the_nearest_ones():
    with pytest.raises(FrameError, match="'Origin' and 'MainCamm'") as caught:
        interact().lookup("Origin", "MainCamm")
    assert "'MainCam'" in caught.value.hint
    assert "'Origin' is connected to AuxArm (base), Lidar" in caught.value.why
    with pytest.raises(FrameError, match="no frame 'Lidr'") as caught:
        interact().parent_of("Lidr")
    assert "'Lidar'" in caught.value.hint


def test_an_unknown_frame_has_no_path_to_itself():
    with pytest.raises(FrameError, match="no path"):
        FrameTree().lookup("moon", "moon")


def test_a_missing_path_says_what_each_frame_is_connected_to():
    with pytest.raises(FrameError, match="'Origin' and 'MainCam'") as caught:
        interact().lookup("Origin", "MainCam")
    assert "'Origin' is connected to AuxArm (base), Lidar, MainArm (base), Platform" in caught.value.why
    assert "'MainCam' is connected to MainArm (end)" in caught.value.why
    assert "'MainArm (base)'" in caught.value.hint or "Lidar" in caught.value.hint


def test_a_transform_carries_names_times_and_sources():
    transform = walking().transform("world", "camera", T0_NS + NS_PER_S)
    assert (transform.target, transform.source, transform.producer) == ("world", "camera", "odometry")
    assert transform.target_t_ns == transform.source_t_ns == T0_NS + NS_PER_S
    np.testing.assert_array_equal(transform.matrix, translation(1, 0, 1))


def test_the_repr_is_a_tree_that_marks_what_moves():
    tree = walking()
    tree.add_static("body", "beacon", np.eye(4))
    assert repr(tree).splitlines() == [
        "FrameTree: 4 frames, 3 edges, 1 moving (~)",
        "world",
        "└~ body  (2022-07-05T05:46:40.000 to 2022-07-05T05:46:50.000, 11 poses, utc)",
        "   ├─ beacon",
        "   └─ camera",
    ]


# Copies, slices, joins


def test_a_copy_is_edited_on_its_own():
    tree = walking()
    copy = tree.copy()
    copy.add_static("body", "lidar", np.eye(4))
    assert "lidar" in copy
    assert "lidar" not in tree


@given(seeds, st.floats(0, 3))
def test_inside_a_slice_every_lookup_is_what_it_was(seed: int, tolerance: float):
    rng = np.random.default_rng(seed)
    tree = walking().merge(walking(T0_NS + 13 * NS_PER_S))
    from_ns, to_ns = np.sort(rng.integers(T0_NS - 3 * NS_PER_S, T0_NS + 26 * NS_PER_S, 2)).tolist()
    times = rng.integers(from_ns, to_ns + 1, 20)
    times = times[times < to_ns]
    before = tree.lookup("world", "camera", times, tolerance=tolerance, missing="nan")
    after = tree.slice(from_ns, to_ns).lookup("world", "camera", times, tolerance=tolerance, missing="nan")
    np.testing.assert_array_equal(after, before)


def test_a_slice_drops_poses_outside_and_shares_those_inside():
    tree = walking()
    sliced = tree.slice(T0_NS + 2_500_000_000, T0_NS + 4_500_000_000)
    whole, part = tree.edges[0].motion, sliced.edges[0].motion
    assert sliced.edges[0].span_ns == (T0_NS + 2 * NS_PER_S, T0_NS + 5 * NS_PER_S)
    assert np.shares_memory(whole.poses, part.poses)


def test_a_slice_on_one_clock_leaves_the_others_whole():
    tree = walking()
    tree.add_moving("base", "arm", [1, 2, 3], np.zeros((3, 3)), [IDENTITY_QUATERNION] * 3, clock="device")
    spans = {edge.child: edge.span_ns for edge in tree.slice(T0_NS, T0_NS + NS_PER_S, clock="utc").edges}
    assert spans["arm"] == (1, 3)
    assert spans["body"] == (T0_NS, T0_NS + NS_PER_S)


def test_merged_recordings_keep_a_seam_that_no_lookup_bridges():
    tree = walking().merge(walking(T0_NS + 20 * NS_PER_S, speed=2.0))
    assert tree.lookup("world", "body", T0_NS + 10 * NS_PER_S)[0, 3] == 10
    assert tree.lookup("world", "body", T0_NS + 21 * NS_PER_S)[0, 3] == 2
    with pytest.raises(FrameError, match="1 seam"):
        tree.lookup("world", "body", T0_NS + 15 * NS_PER_S)
    assert tree.lookup("world", "body", T0_NS + 11 * NS_PER_S, tolerance=1)[0, 3] == 10
    assert tree.lookup("world", "body", T0_NS + 19 * NS_PER_S, tolerance=1)[0, 3] == 0


def test_merging_works_in_any_order_and_with_equal_trees():
    early, late = walking(), walking(T0_NS + 20 * NS_PER_S)
    times = np.array([T0_NS + NS_PER_S, T0_NS + 21 * NS_PER_S])
    np.testing.assert_array_equal(
        late.merge(early).lookup("world", "camera", times),
        early.merge(late).lookup("world", "camera", times),
    )
    assert repr(early.merge(early)) == repr(early)


def test_overlapping_or_disagreeing_trees_do_not_merge():
    with pytest.raises(FrameError, match="world -> body is there already"):
        walking().merge(walking(T0_NS + 5 * NS_PER_S))
    other = FrameTree()
    other.add_static("body", "camera", translation(0, 0, 2))
    with pytest.raises(FrameError, match="body -> camera is there already"):
        walking().merge(other)


def test_a_prefix_keeps_two_robots_apart():
    tree = walking().merge(walking(T0_NS + 5 * NS_PER_S), prefix="second/")
    assert tree.roots == ("second/world", "world")
    assert tree.lookup("second/world", "second/camera", T0_NS + 6 * NS_PER_S)[0, 3] == 1
    with pytest.raises(FrameError, match="no path"):
        tree.lookup("world", "second/camera", T0_NS + 6 * NS_PER_S)


def test_a_lazy_edge_is_loaded_by_the_first_lookup_through_it_and_never_again():
    calls: list[str] = []

    def poses():
        calls.append("loaded")
        return [T0_NS, T0_NS + NS_PER_S], [(0.0, 0.0, 0.0), (2.0, 0.0, 0.0)], [IDENTITY_QUATERNION] * 2

    tree = FrameTree()
    tree.add_lazy("world", "body", poses, source="Gnss/Pose")
    tree.add_static("body", "camera", translation(0, 0, 1))
    assert tree.frames == ("body", "camera", "world")
    assert tree.lookup("body", "camera")[2, 3] == 1
    assert not calls
    assert tree.lookup("world", "camera", T0_NS + NS_PER_S // 2)[0, 3] == 1
    assert tree.lookup("world", "body", T0_NS)[0, 3] == 0
    assert calls == ["loaded"]


def test_lazy_edges_of_two_recordings_are_joined_like_others():
    def later(start_ns: int) -> FrameTree:
        tree = FrameTree()
        tree.add_lazy("world", "body", lambda: ([start_ns], [(1.0, 2.0, 3.0)], [IDENTITY_QUATERNION]))
        return tree

    merged = later(T0_NS).merge(later(T0_NS + NS_PER_S))
    assert merged.edges[0].span_ns == (T0_NS, T0_NS + NS_PER_S)
    with pytest.raises(FrameError, match="seam"):
        merged.lookup("world", "body", T0_NS + NS_PER_S // 2)


def test_a_frame_knows_what_it_hangs_on_and_what_hangs_on_it():
    tree = FrameTree()
    shift = np.eye(4)
    shift[0, 3] = 2.0
    for parent, child in (("map", "base"), ("base", "camera"), ("lander", "mast")):
        tree.add_static(parent, child, shift)
    tree.add_moving("base", "arm", np.zeros(0, np.int64), np.zeros((0, 3)), np.zeros((0, 4)))
    assert tree.ancestry("camera") == ["camera", "base", "map"]
    assert tree.largest_root == "map"
    poses = tree.poses_below("base")
    assert list(poses) == ["base", "camera"]  # where the arm is, nobody ever said
    np.testing.assert_allclose(poses["camera"], shift)
