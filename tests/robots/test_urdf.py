"""URDF in and out: hand-worked chains, located errors, and the way there and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect import robots
from transect.errors import (
    FrameError,
    GeometryError,
    ParseError,
    StreamError,
    TransectError,
    UnsupportedError,
)
from transect.recording import Parsed, Recording, Robot, Stream, arrow
from transect.recording.stream import stream_of_values
from transect.robots import urdf
from transect.robots.chains import Chain
from transect.types import JointState

ARM = """<?xml version="1.0"?>
<robot name="arm">
  <material name="red"><color rgba="1 0 0 1"/></material>
  <link name="base">
    <inertial><origin xyz="0 0 0.1"/><mass value="2.5"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.3"/></inertial>
    <visual name="box"><geometry><box size="1 2 3"/></geometry><material name="red"/></visual>
    <collision><origin rpy="0 0 1.5"/><geometry><cylinder radius="0.5" length="2"/></geometry></collision>
  </link>
  <link name="upper"/>
  <link name="slide"/>
  <link name="finger"/>
  <link name="tool"/>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/>
    <origin xyz="0 0 1" rpy="0 0 0"/><axis xyz="0 0 2"/>
    <limit lower="-2" upper="2" effort="10" velocity="1"/>
  </joint>
  <joint name="rail" type="prismatic">
    <parent link="upper"/><child link="slide"/>
    <origin xyz="1 0 0"/><axis xyz="1 0 0"/>
    <limit lower="0" upper="0.5"/>
  </joint>
  <joint name="follower" type="continuous">
    <parent link="slide"/><child link="finger"/>
    <axis xyz="0 0 1"/><mimic joint="shoulder" multiplier="-2" offset="0.5"/>
  </joint>
  <joint name="flange" type="fixed">
    <parent link="finger"/><child link="tool"/>
    <origin xyz="0 0.1 0" rpy="1.5707963267948966 0 0"/>
  </joint>
  <transmission name="ignored"/>
</robot>
"""


def arm() -> urdf.Urdf:
    return urdf.parse(ARM.encode(), "arm.urdf")


def line_of(text: str) -> int:
    return ARM[: ARM.index(text)].count("\n") + 1


def turned(angle: float) -> np.ndarray:
    """A turn about z, written out."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def moved(x: float, y: float, z: float) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, 3] = x, y, z
    return matrix


# Reading


def test_links_joints_and_inertias_are_read():
    robot = arm()
    assert (robot.name, robot.root, robot.driven) == ("arm", "base", ("shoulder", "rail"))
    base = robot.links[0]
    assert base.inertial is not None
    assert (base.inertial.mass, base.inertial.inertia[5], base.inertial.origin.xyz) == (
        2.5,
        0.3,
        (0.0, 0.0, 0.1),
    )
    assert [(s.use, s.kind, s.size) for s in base.shapes] == [
        ("visual", "box", (1.0, 2.0, 3.0)),
        ("collision", "cylinder", (0.5, 2.0)),
    ]
    assert robot.joint("shoulder").axis == (0.0, 0.0, 1.0)  # made a unit vector
    assert robot.joint("shoulder").limit == urdf.JointLimit(-2.0, 2.0, 10.0, 1.0)
    assert robot.joint("rail").line == line_of('name="rail"')


def test_the_chain_is_where_hand_work_puts_it():
    # Up 1 m, a turn of 90 degrees about z, 1.2 m along the turned x (base y), the follower turns back by
    # pi - 0.5 rad, then 0.1 m along its own y.
    tree = arm().frames({"shoulder": np.pi / 2, "rail": 0.2})
    expected = moved(0, 0, 1) @ turned(np.pi / 2) @ moved(1.2, 0, 0) @ turned(-np.pi + 0.5)
    assert np.allclose(tree.lookup("base", "finger"), expected)
    assert np.allclose(tree.lookup("base", "slide")[:3, 3], (0, 1.2, 1))
    tool = tree.lookup("base", "tool")
    assert np.allclose(tool[:3, 3], expected[:3, 3] + 0.1 * expected[:3, 1])
    assert np.allclose(tool[:3, 1], (0, 0, 1))  # rolled by 90 degrees, its y axis points up


def test_many_positions_are_one_call():
    robot = arm()
    q = np.random.default_rng(3).uniform(-1, 1, (4, 5, 2))
    together = robot.transforms(q)
    assert together["follower"].shape == (4, 5, 4, 4)
    for name, transforms in together.items():
        one = robot.frames({"shoulder": q[2, 3, 0], "rail": q[2, 3, 1]})
        joint = robot.joint(name)
        assert np.allclose(transforms[2, 3], one.lookup(joint.parent, joint.child))


def test_rpy_turns_about_the_fixed_axes_roll_first():
    # R = Rz(90) Ry(0) Rx(90): x goes to y, y goes (by the roll) to z, z goes to -y and by the yaw to x.
    matrix = urdf.Origin(rpy=(np.pi / 2, 0.0, np.pi / 2)).matrix
    assert np.allclose(matrix[:3, :3], np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]]))


def test_a_robot_has_the_fixed_frames_only(tmp_path: Path):
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    robot = urdf.load(path)
    assert robot.frames.frames == ("finger", "tool")
    with pytest.raises(FrameError):
        robot.frames.lookup("base", "tool")


def test_positions_of_unknown_joints_are_refused():
    with pytest.raises(GeometryError, match="shoulder"):
        arm().frames({"sholder": 0.0})
    with pytest.raises(GeometryError, match="expected shape"):
        arm().transforms(np.zeros(3))


@pytest.mark.parametrize(
    ("old", "new", "message", "at"),
    [
        (
            '<parent link="upper"/><child link="slide"/>',
            '<parent link="upper"/><child link="upper"/>',
            "two parents",
            'name="rail"',
        ),
        (
            '<parent link="base"/><child link="upper"/>',
            '<parent link="finger"/><child link="upper"/>',
            "loop",
            'name="shoulder"',
        ),
        ('<parent link="slide"/>', '<parent link="slid"/>', "'slid' that is not there", 'name="follower"'),
        ('    <limit lower="0" upper="0.5"/>\n', "", "no <limit>", 'name="rail"'),
        ('lower="-2"', 'lower="nan"', "lower, 1 finite number", 'lower="-2"'),
        ('upper="2" ', 'upper="-3" ', "wrong way round", 'lower="-2"'),
        ('xyz="0 0 2"', 'xyz="0 0 0"', "no direction", 'rpy="0 0 0"'),
        ('xyz="0 0 1" rpy', 'xyz="0 0" rpy', "xyz, 3 finite numbers", 'rpy="0 0 0"'),
        ('type="continuous"', 'type="screw"', "unknown type 'screw'", 'name="follower"'),
        ('mimic joint="shoulder"', 'mimic joint="elbow"', "mimics 'elbow'", 'name="follower"'),
        ('mimic joint="shoulder"', 'mimic joint="follower"', "mimics 'follower'", 'name="follower"'),
        ('<link name="slide"/>', '<link name="upper"/>', "two links named upper", '<link name="slide"/>'),
        ('<link name="tool"/>', '<link name="tool"/><link name="loose"/>', "2 trees", '<link name="tool"/>'),
        ("<box ", "<cone ", "no geometry", "<box"),
        ("</robot>", "", "not well-formed", ""),
        ("<robot name", "<machine name", "not well-formed", ""),
    ],
)
def test_what_is_wrong_is_told_with_its_line(old: str, new: str, message: str, at: str):
    assert old in ARM
    with pytest.raises(ParseError, match=message) as caught:
        urdf.parse(ARM.replace(old, new, 1).encode(), "arm.urdf")
    assert not at or caught.value.where == f"arm.urdf:{line_of(at)}"


def test_entities_are_refused():
    bomb = '<!DOCTYPE robot [<!ENTITY a "b">]><robot name="&a;"><link name="x"/></robot>'
    with pytest.raises(ParseError, match="document type"):
        urdf.parse(bomb.encode(), "bomb.urdf")


def test_a_xacro_file_is_refused_with_the_command_that_expands_it():
    text = '<robot name="a" xmlns:xacro="http://ros.org/wiki/xacro">\n<xacro:property name="w"/></robot>'
    with pytest.raises(UnsupportedError, match=r"xacro a\.urdf\.xacro > a\.urdf") as caught:
        urdf.parse(text.encode(), "a.urdf.xacro")
    assert caught.value.where == "a.urdf.xacro:2"
    with pytest.raises(UnsupportedError, match="expanded"):
        urdf.parse(ARM.replace('xyz="1 0 0"', 'xyz="${w} 0 0"', 1).encode(), "a.urdf")


def test_what_xacro_has_expanded_may_still_name_it():
    text = '<robot name="a" xmlns:xacro="http://ros.org/wiki/xacro"><link name="x"/></robot>'
    assert urdf.parse(text.encode(), "a.urdf").root == "x"


def test_missing_meshes_are_told_and_not_fatal(tmp_path: Path):
    meshes = "".join(
        f'<visual><geometry>\n<mesh filename="{name}"/></geometry></visual>'
        for name in ("here.stl", "package://mine/meshes/deep.stl", "gone.stl", "https://a.b/c.stl")
    )
    folder = tmp_path / "mine" / "urdf"
    folder.mkdir(parents=True)
    (tmp_path / "mine" / "meshes").mkdir()
    (folder / "here.stl").touch()
    (tmp_path / "mine" / "meshes" / "deep.stl").touch()
    (folder / "a.urdf").write_text(f'<robot name="a"><link name="x">{meshes}</link></robot>')
    robot = urdf.read(folder / "a.urdf")
    assert [loss.line for loss in robot.losses] == [4, 5]
    assert "gone.stl" in robot.losses[0].reason
    assert [shape.file is not None for shape in robot.links[0].shapes] == [True, True, False, False]


# Writing


def test_what_is_written_reads_back_equal():
    assert urdf.parse(urdf.text_of(arm()).encode(), "again.urdf") == arm()


numbers = st.floats(-1e6, 1e6, allow_subnormal=False)
vectors = st.tuples(numbers, numbers, numbers)


@given(xyz=vectors, rpy=vectors, lower=numbers, width=st.floats(0, 1e3), offset=numbers)
def test_all_digits_survive(xyz, rpy, lower: float, width: float, offset: float):
    joints = (
        urdf.Joint(
            "j",
            "revolute",
            "a",
            "b",
            urdf.Origin(xyz, rpy),
            (0.0, 1.0, 0.0),
            urdf.JointLimit(lower, lower + width),
        ),
        urdf.Joint("k", "prismatic", "b", "c", limit=urdf.JointLimit(), mimic=urdf.Mimic("j", -1.5, offset)),
    )
    robot = urdf.Urdf("r", (urdf.UrdfLink("a"), urdf.UrdfLink("b"), urdf.UrdfLink("c")), joints)
    assert urdf.parse(urdf.text_of(robot).encode(), "r") == robot


@pytest.mark.parametrize("name", ["argo", "ida", "interact", "weeder"])
def test_every_robot_keeps_its_frames_as_urdf(name: str):
    robot = robots.load(name)
    text = urdf.text_from_robot(robot)
    back = urdf.parse(text.encode(), f"{name}.urdf")
    assert back == urdf.urdf_from_robot(robot)
    tree = back.frames()
    plain = {frame: frame.replace(" (", "_").replace(")", "") for frame in robot.frames.frames}
    for edge in robot.frames.edges:
        T = tree.lookup(plain[edge.parent], plain[edge.child])
        assert np.allclose(T, robot.frames.lookup(edge.parent, edge.child), atol=1e-12)
    if robot.z_down:
        assert "z of the root points down" in text


def test_trees_that_only_data_join_float():
    back = urdf.parse(urdf.text_from_robot(robots.load("weeder")).encode(), "weeder.urdf")
    floating = [joint for joint in back.joints if joint.type == "floating"]
    assert len(floating) == 1
    assert np.isnan(back.transforms(np.zeros(0))[floating[0].name]).all()
    with pytest.raises(FrameError):
        back.frames().lookup(floating[0].parent, floating[0].child)


def test_the_arm_of_insight_reaches_where_its_links_say():
    # SIS 5.1.3: a = 0.029609, 0.976664007, 0.857989013; d1 = -0.056456, d2 = -0.140837997. With all joints at
    # zero the arm is straight: x adds all a, joint 1's twist of 90 degrees turns d2 from z to -y.
    back = urdf.parse(urdf.text_from_robot(robots.load("ida")).encode(), "ida.urdf")
    assert back.driven == ("shoulder_yaw", "shoulder_elevation", "elbow", "wrist")
    straight = back.frames(dict.fromkeys(back.driven, 0.0))
    T = straight.lookup("Payload", "Wrist")
    assert np.allclose(T[:3, 3], (0.029609 + 0.976664007 + 0.857989013, 0.140837997, -0.056456), atol=1e-8)
    # The elbow at 90 degrees turns the forearm to z (down, as the frame is).
    bent = back.frames({**dict.fromkeys(back.driven, 0.0), "elbow": np.pi / 2})
    assert np.allclose(
        bent.lookup("Payload", "Wrist")[:3, 3], (1.006273007, 0.140837997, 0.801533013), atol=1e-8
    )
    assert back.joint("elbow").limit == urdf.JointLimit(
        -0.4324, 4.0478, 53.0, 0.02618
    )  # RA_JOINT, RA_TAU, RA_CTRL


def test_the_arms_of_interact_reach_as_far_as_table_3_says():
    # Table 3 as the errata read it: 0.31, 0.40 and 0.39 m along the straight arm, 1.10 m in all.
    back = urdf.parse(urdf.text_from_robot(robots.load("interact")).encode(), "interact.urdf")
    straight = back.frames(dict.fromkeys(back.driven, 0.0))
    for side in ("MainArm", "AuxArm"):
        T = straight.lookup(f"{side}_base", f"{side}_end")
        assert np.allclose(T[:3, 3], (0, 0, 1.10), atol=1e-12)
    # Joint 2 at 90 degrees about -y of the base (alpha 90): the upper 0.79 m lie along x, or against it.
    bent = back.frames({**dict.fromkeys(back.driven, 0.0), "MainArm_joint_2": np.pi / 2})
    x, y, z = bent.lookup("MainArm_base", "MainArm_end")[:3, 3]
    assert np.allclose((abs(x), y, z), (0.79, 0, 0.31), atol=1e-12)


@given(
    q=st.lists(st.floats(-3, 3), min_size=3, max_size=3),
    dh=st.lists(st.floats(-1, 1), min_size=9, max_size=9),
    convention=st.sampled_from(["standard", "modified"]),
)
def test_a_chain_and_its_urdf_agree(q: list[float], dh: list[float], convention):
    a, alpha, d = np.reshape(dh, (3, 3))
    chain = Chain(a, alpha, d, convention)
    robot = Robot("r")
    robot.frames.add_static("body", "base", np.eye(4))
    whole = urdf.urdf_from_robot(robot, [urdf.RobotArm(chain, ("base", "1", "2", "end"), ("j1", "j2", "j3"))])
    tree = whole.frames(dict(zip(("j1", "j2", "j3"), q, strict=True)))
    # Written out from the definition, not by the chain.
    expected = np.eye(4)
    for i in range(3):
        turn = turned(q[i]) @ moved(0, 0, d[i])
        c, s = np.cos(alpha[i]), np.sin(alpha[i])
        twist = np.array([[1, 0, 0, a[i]], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]])
        expected = expected @ (turn @ twist if convention == "standard" else twist @ turn)
    assert np.allclose(tree.lookup("base", "end"), expected, atol=1e-9)


def test_a_robot_without_frames_cannot_be_written():
    with pytest.raises(UnsupportedError, match="no frames"):
        urdf.text_from_robot(Robot("empty"))


def test_names_stay_apart_and_comments_stay_comments():
    robot = Robot("my robot", title="a -- b", frames=Robot("x").frames)
    robot.frames.add_static("a b", "a_b", np.eye(4))
    robot.frames.add_static("a b", "a (b)", moved(1, 0, 0))
    back = urdf.parse(urdf.text_from_robot(robot).encode(), "r")
    assert back.name == "my_robot"
    assert len({link.name for link in back.links}) == 3


# Joint states


def states(columns: dict, t_ns=(0, 10**9, 2 * 10**9), **attributes) -> Stream:
    return stream_of_values("joints", np.array(t_ns), columns, type=JointState, **attributes)


def test_joint_states_drive_the_frames():
    robot = arm()
    stream = states({"position": np.array([[0.0, 0.0], [1.0, 0.5], [1.0, 0.5]])})
    tree = robot.frames().merge(urdf.joint_edges(robot, stream))
    # Half-way between the first two samples the shoulder is at 0.5 rad and the rail at 0.25 m.
    expected = moved(0, 0, 1) @ turned(0.5) @ moved(1.25, 0, 0)
    assert np.allclose(tree.lookup("base", "slide", 5 * 10**8), expected)
    assert np.allclose(
        tree.lookup("base", "tool", 2 * 10**9),
        arm().frames({"shoulder": 1.0, "rail": 0.5}).lookup("base", "tool"),
    )
    with pytest.raises(FrameError, match="not known"):
        tree.lookup("base", "slide", 3 * 10**9)


def test_the_table_is_read_at_the_first_lookup():
    asked: list[str] = []

    def load() -> Parsed:
        asked.append("read")
        return Parsed(arrow.table(np.array([0]), {"position": np.array([[0.5, 0.1]])}))

    robot = arm()
    tree = robot.frames().merge(urdf.joint_edges(robot, Stream("joints", JointState, load)))
    assert asked == []
    assert tree.lookup("base", "slide", 0)[2, 3] == 1
    tree.lookup("base", "tool", 0)
    assert asked == ["read"]


def test_each_sample_may_name_its_own_joints():
    # As two publishers on one topic do: the shoulder in 0 and 2, rail and shoulder in 1, no position in 3.
    rows = [["shoulder"], ["rail", "shoulder"], ["shoulder"], ["rail"]]
    positions = [np.array([0.0]), np.array([0.3, 1.0]), np.array([2.0]), np.zeros(0)]
    flat = arrow.strings([name for row in rows for name in row])
    offsets = np.cumsum([0, *(len(row) for row in rows)])
    names = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), flat)
    stream = states({"position": positions, "names": names}, (0, 10, 20, 30))
    tree = urdf.joint_edges(arm(), stream)
    assert np.allclose(tree.lookup("base", "upper", 20), moved(0, 0, 1) @ turned(2.0))
    assert np.allclose(tree.lookup("upper", "slide", 10)[:3, 3], (1.3, 0, 0))
    with pytest.raises(FrameError):
        tree.lookup("upper", "slide", 30)


def test_positions_without_names_must_fit():
    stream = states({"position": np.zeros((3, 3))})
    with pytest.raises(StreamError, match="3 positions a sample, arm wants 2"):
        urdf.joint_edges(arm(), stream).lookup("base", "upper", 0)
    with pytest.raises(TransectError, match="no joint 'elbow'"):
        urdf.joint_edges(arm(), stream, ["elbow"])


def test_named_positions_drive_only_their_joints():
    stream = states({"position": np.full((3, 1), 0.25)})
    tree = urdf.joint_edges(arm(), stream, ["rail"])
    assert [edge.child for edge in tree.edges] == ["slide"]
    assert np.allclose(tree.lookup("upper", "slide", 0)[:3, 3], (1.25, 0, 0))


def test_a_recording_of_interact_moves_its_arm():
    """The demo's joints, in the order of Table 7, with the names that its URDF gives them."""
    robot = urdf.urdf_from_robot(robots.load("interact"))
    q = np.array([0.0, np.pi / 2, 0.0, 0.0, 0.0, 0.0, 0.0])
    stream = stream_of_values("MainArm/JointAngles", np.array([0]), {"position": q[None]}, type=JointState)
    rec = Recording("etna", (stream,), frames=robot.frames())
    edges = urdf.joint_edges(robot, stream, [f"MainArm_joint_{i}" for i in range(1, 8)])
    T = rec.frames.merge(edges).lookup("MainArm_base", "MainArm_end", 0)
    assert np.allclose(np.abs(T[:3, 3]), (0.79, 0, 0.31), atol=1e-12)
