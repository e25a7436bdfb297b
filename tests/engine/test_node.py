"""Nodes as a person writes and tests them: ports from the signature, parameters, interfaces, state."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import pytest

from transect.engine import (
    At,
    Batch,
    Frame,
    Latest,
    Node,
    ParameterError,
    PortError,
    Shape,
    Synced,
    Unit,
    implementation,
    node,
    outputs,
    param,
)  # fmt: skip
from transect.errors import UsageError
from transect.types import Image, Imu, PointCloud, Pose

PICTURE = Image(np.zeros((2, 3), np.uint8), "gray")
CLOUD = PointCloud(np.zeros((4, 3)))
POSE = Pose(np.zeros(3), np.array([0, 0, 0, 1.0]))
IMU = Imu(np.zeros(3), np.zeros(3))


class Stereo(Node, interface=True):
    """Point cloud from a rectified stereo pair."""

    def process(self, left: Image, right: Annotated[Image, Synced(0.005)]) -> PointCloud: ...


class SemiGlobal(Stereo):
    """One way of it."""

    window: int = param(5, ge=3, odd=True, unit="px", doc="matching window")
    scale: float = param(1.0, gt=0)

    def process(self, left: Image, right: Image) -> PointCloud:
        return CLOUD


@outputs
class Registered:
    pose: Pose
    success: bool


class Icp(Node):
    """Counts what it saw."""

    def reset(self) -> None:
        self.seen = 0

    def process(self, cloud: PointCloud, guess: Latest[Pose] = None) -> Registered:
        self.seen += 1
        return Registered(success=guess is not None)


@node
def gyro_norm(imu: Imu, *, bias: float = 0.0) -> float:
    """Length of the turn rate."""
    return float(np.linalg.norm(imu.angular_velocity)) + bias


def test_the_signature_is_the_port_list():
    assert [str(port) for port in Stereo.inputs.values()] == [
        "left: Image",
        "right: Image (synced within 0.005 s)",
    ]
    assert [str(port) for port in Stereo.outputs.values()] == ["out: PointCloud"]
    assert list(Icp.outputs) == ["pose", "success"]


def test_every_policy_is_read_from_its_annotation():
    class Fusion(Node):
        def process(self, pose: At[Pose], imu: Batch[Imu], state: Latest[Pose], image: Image) -> None: ...

    assert {name: str(port.policy) for name, port in Fusion.inputs.items()} == {
        "pose": "at", "imu": "batch", "state": "latest", "image": "trigger",
    }  # fmt: skip
    assert Fusion.inputs["imu"].type is Imu
    assert Fusion.outputs == {}


def test_a_node_is_a_plain_callable():
    assert SemiGlobal(window=7)(PICTURE, PICTURE) is CLOUD
    assert SemiGlobal()(right=PICTURE, left=PICTURE) is CLOUD
    assert gyro_norm(IMU, bias=0.5) == 0.5
    assert gyro_norm.Class(bias=1).values == {"bias": 1.0}


def test_implementations_are_found_by_name():
    assert implementation(Stereo, "SemiGlobal") is SemiGlobal
    assert implementation(Stereo) is SemiGlobal
    with pytest.raises(PortError, match="no implementation 'SemiGlobl'") as caught:
        implementation(Stereo, "SemiGlobl")
    assert "SemiGlobal" in caught.value.hint


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"window": 4}, "an odd number"),
        ({"window": 1}, "at least 3 px"),
        ({"window": 5.0}, "a int"),
        ({"window": True}, "a int"),
        ({"scale": 0}, "more than 0"),
    ],
)
def test_a_parameter_says_what_it_expects(given: dict[str, Any], expected: str):
    name = next(iter(given))
    with pytest.raises(ParameterError, match=f"SemiGlobal.{name} cannot be") as caught:
        SemiGlobal(**given)
    assert caught.value.why == f"expected {expected}"


def test_an_unknown_parameter_names_the_nearest_one():
    with pytest.raises(ParameterError, match="has no parameter 'windw'") as caught:
        SemiGlobal(windw=5)
    assert "window" in caught.value.hint


def test_a_plain_class_declares_parameters_for_several_nodes():
    class Scales:
        coarse: float = param(2.0, gt=0, unit="m", doc="coarse voxel")
        fine: float = param(1.0, gt=0)

    class Guided(Node, interface=True):
        steps: int = param(10, ge=1)

        def process(self, x: float) -> float:
            return x * self.values["steps"] * self.values["fine"]

    class Plane(Scales, Guided):
        trim: float = param(0.5)

    class Point(Scales, Guided):
        fine: float = param(3.0)

    class Finer(Point):
        depth: int = param(1)

    class Behind(Guided, Scales):
        steps: int = param(7)

    assert list(Plane.parameters) == ["steps", "coarse", "fine", "trim"]
    assert Plane.parameters["coarse"].unit == "m"
    assert Plane(fine=2)(1.0) == 20.0
    assert Point()(1.0) == 30.0
    assert list(Finer.parameters) == ["steps", "coarse", "fine", "depth"]
    assert (Finer.fine, Finer().values) == (3.0, {"steps": 10, "coarse": 2.0, "fine": 3.0, "depth": 1})
    assert Behind().values == {"coarse": 2.0, "fine": 1.0, "steps": 7}
    with pytest.raises(ParameterError, match=r"Plane\.coarse cannot be 0\.0"):
        Plane(coarse=0)


def test_a_parameter_cannot_have_the_name_of_what_every_node_has():
    with pytest.raises(ParameterError, match=r"Often\.every cannot be a parameter"):

        class Often(Node):
            every: float = param(0.1)

            def process(self, x: float) -> float:
                return x


def test_a_default_outside_its_own_bounds_is_refused_when_the_class_is_made():
    with pytest.raises(ParameterError, match="cannot be 2"):

        class Wrong(Node):
            size: int = param(2, ge=3)

            def process(self, image: Image) -> Image: ...


def test_a_wrong_input_names_node_port_what_came_and_what_was_expected():
    with pytest.raises(PortError, match=r"SemiGlobal\.left cannot take PointCloud") as caught:
        SemiGlobal()(CLOUD, PICTURE)
    assert caught.value.why == "expected Image"
    with pytest.raises(PortError, match="cannot take ndarray of shape \\(2, 3\\)"):
        SemiGlobal()(PICTURE.data, PICTURE)
    with pytest.raises(PortError, match="needs its input 'right'"):
        SemiGlobal()(PICTURE)
    with pytest.raises(PortError, match="no input 'rihgt'"):
        SemiGlobal()(PICTURE, rihgt=PICTURE)


def test_a_wrong_result_is_refused():
    class Liar(Node):
        def process(self, image: Image) -> PointCloud:
            return image

    with pytest.raises(PortError, match=r"Liar\.out cannot give Image"):
        Liar()(PICTURE)


def test_a_port_left_none_gives_nothing_and_the_others_are_checked():
    assert Icp()(CLOUD) == Registered(pose=None, success=False)
    assert Icp()(CLOUD, POSE).success


def test_an_implementation_must_have_the_ports_of_its_interface():
    with pytest.raises(PortError, match="lacks the input 'right'"):

        class OneEye(Stereo):
            def process(self, left: Image) -> PointCloud: ...

    with pytest.raises(PortError, match="the output 'out' of Flat is not that of Stereo"):

        class Flat(Stereo):
            def process(self, left: Image, right: Image) -> Image: ...

    with pytest.raises(PortError, match="the input 'left' of Cloudy is not that of Stereo") as caught:

        class Cloudy(Stereo):
            def process(self, left: PointCloud, right: Image) -> PointCloud: ...

    assert caught.value.why == "expected left: Image, got left: PointCloud"

    with pytest.raises(PortError, match="the input 'right' of Late"):

        class Late(Stereo):
            def process(self, left: Image, right: Annotated[Image, Synced(0.5)]) -> PointCloud: ...

    with pytest.raises(PortError, match="input 'extra' that Stereo does not have"):

        class More(Stereo):
            def process(self, left: Image, right: Image, extra: Pose) -> PointCloud: ...


class Fusing(Node, interface=True):
    """Everything that an interface can say of its ports."""

    out_name = "state"

    def process(
        self,
        cloud: Annotated[PointCloud, Frame("map")],
        imu: Batch[Imu],
        pose: At[Pose] | None = None,
        points: Annotated[Latest[np.ndarray], Shape("n", 3)] | None = None,
        radius: Annotated[Latest[float], Unit("m")] = 100.0,
    ) -> Annotated[np.ndarray, Shape(6)] | None: ...


def test_an_implementation_takes_its_ports_from_the_interface():
    class Plain(Fusing):
        def process(
            self,
            cloud: PointCloud,
            imu: Sequence[Imu],
            pose: Pose | None = None,
            points: np.ndarray | None = None,
            radius: float = 100.0,
        ) -> np.ndarray:
            return np.full(6, radius)

    class Short(Fusing):
        def process(self, cloud, imu, pose, points, radius):
            return np.full(6, radius)

    for kind in (Plain, Short):
        assert (kind.inputs, kind.outputs) == (Fusing.inputs, Fusing.outputs)
        np.testing.assert_array_equal(kind()(CLOUD, [IMU]), np.full(6, 100.0))
        with pytest.raises(PortError, match=rf"{kind.__name__}\.points cannot take"):
            kind()(CLOUD, [IMU], points=np.zeros((3, 2)))


def test_an_implementation_that_does_not_say_what_it_returns_returns_what_its_interface_says():
    class Tracker(Node, interface=True):
        def process(self, cloud: PointCloud) -> Registered | None: ...

    class Blind(Tracker):
        def process(self, cloud):
            return Registered(success=False)

    assert Blind.bundled
    assert list(Blind.outputs) == ["pose", "success"]
    assert not Blind()(CLOUD).success


def test_an_implementation_may_give_more_special_types_and_take_more_general_ones():
    class Special(PointCloud):
        pass

    class Wide(Stereo):
        def process(self, left: object, right: Image) -> Special: ...

    assert Wide.outputs["out"].type is Special


def test_state_is_frozen_and_thawed_without_parameters():
    icp = Icp()
    icp(CLOUD)
    kept = icp.freeze()
    icp(CLOUD)
    icp.leftover = 1
    assert icp.seen == 2
    icp.thaw(kept)
    assert icp.freeze() == {"seen": 1}


def test_nodes_do_not_share_state():
    first, second = Icp(), Icp()
    first(CLOUD)
    assert (first.seen, second.seen) == (1, 0)


@pytest.mark.parametrize("seconds", [-0.1, float("nan")])
def test_a_synced_port_needs_a_time(seconds: float):
    with pytest.raises(UsageError, match="seconds of 0 or more"):
        Synced(seconds)


def test_what_a_signature_leaves_out_is_said():
    with pytest.raises(PortError, match=r"Bare\.image has no type"):

        class Bare(Node):
            def process(self, image) -> None: ...

    with pytest.raises(PortError, match="does not say what it returns"):

        class Silent(Node):
            def process(self, image: Image): ...

    with pytest.raises(PortError, match="cannot be a port"):

        class Many(Node):
            def process(self, *images: Image) -> None: ...

    with pytest.raises(PortError, match="needs a default"):
        node(_needs_a_default)


def _needs_a_default(imu: Imu, *, bias: float) -> float:
    return bias


def test_a_batch_is_a_list_of_its_type():
    @node
    def count(imus: Batch[Imu]) -> int:
        return len(imus)

    batch: Sequence[Imu] = [IMU, IMU]
    assert count(batch) == 2
    with pytest.raises(PortError, match=r"count\.imus cannot take"):
        count([IMU, 3])


class Centre(Node):
    """The mean of points."""

    def process(
        self,
        points: Annotated[np.ndarray, Shape("n", 3)],
        before: Batch[Annotated[np.ndarray, Shape(3)]] = (),
    ) -> Annotated[np.ndarray, Shape(3)]:
        return points.mean(axis=0) if len(points) > 1 else points


def test_a_wrong_shape_names_node_port_what_came_and_what_was_expected():
    assert str(Centre.inputs["points"]) == "points: ndarray of shape (n, 3)"
    np.testing.assert_array_equal(Centre()(np.ones((5, 3)), [np.zeros(3)]), np.ones(3))
    with pytest.raises(PortError, match=r"Centre\.points cannot take ndarray of shape \(3, 5\)") as caught:
        Centre()(np.ones((3, 5)))
    assert caught.value.why == "expected ndarray of shape (n, 3)"
    with pytest.raises(PortError, match=r"Centre\.before cannot take"):
        Centre()(np.ones((5, 3)), [np.zeros(4)])
    with pytest.raises(PortError, match=r"Centre\.out cannot give ndarray of shape \(1, 3\)") as caught:
        Centre()(np.ones((1, 3)))
    assert caught.value.why == "expected ndarray of shape (3,)"


def test_an_implementation_keeps_the_shapes_of_its_interface():
    class Points(Node, interface=True):
        def process(self, points: Annotated[np.ndarray, Shape("n", 3)]) -> float: ...

    with pytest.raises(PortError, match="the input 'points' of Flat is not that of Points"):

        class Flat(Points):
            def process(self, points: Annotated[np.ndarray, Shape("n", 2)]) -> float: ...
