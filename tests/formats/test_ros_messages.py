"""What the standard messages of ROS mean, by their definitions and the REPs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.formats import bag_sample as bags
from tests.formats.bag_sample import LOG_DELAY_NS, NS_PER_S, START_NS, Make

import transect
from transect.formats import write
from transect.recording import Recording, Stream, stream_of_values
from transect.types import Imu, LaserScan, NavFix, Pose, Record, Twist, Wrench

XYZ, QUATERNION = ("x", "y", "z"), ("qx", "qy", "qz", "qw")
TWIST, WRENCH = ("vx", "vy", "vz", "wx", "wy", "wz"), ("fx", "fy", "fz", "tx", "ty", "tz")
TIMES_NS = START_NS + np.arange(3) * NS_PER_S


def opened(tmp_path: Path, kind: str, make: Callable[[Make], Any], ros: str = "mcap") -> Stream:
    """Open a bag of one message, logged a little after its stamp."""

    def said(m: Make) -> list[bags.Message]:
        return [("/it", kind.replace("/", "/msg/"), START_NS + LOG_DELAY_NS, make(m))]

    return transect.open(bags.write(tmp_path, ros, said), format="rosbag")["/it"]


def transform(m: Make) -> Any:
    return m("geometry_msgs/Transform", m.vector(1.0, 2.0, 3.0), m.quaternion(0.0, 0.0, 0.6, 0.8))


def twist(m: Make) -> Any:
    return m("geometry_msgs/Twist", m.vector(1.0, 2.0, 3.0), m.vector(4.0, 5.0, 6.0))


def wrench(m: Make) -> Any:
    return m("geometry_msgs/Wrench", m.vector(1.0, 2.0, 3.0), m.vector(4.0, 5.0, 6.0))


def uncertain(m: Make, what: str, value: Any) -> Any:
    return m(f"geometry_msgs/{what}WithCovariance", value, np.arange(36.0))


PLAIN: dict[str, tuple[type, Callable[[Make], Any], tuple[str, ...], list[float]]] = {
    "Pose": (Pose, lambda m: m.pose(1.0, 2.0, 3.0), XYZ + QUATERNION, [1, 2, 3, 0, 0, 0.6, 0.8]),
    "Transform": (Pose, transform, XYZ + QUATERNION, [1, 2, 3, 0, 0, 0.6, 0.8]),
    "Twist": (Twist, twist, TWIST, [1, 2, 3, 4, 5, 6]),
    "Wrench": (Wrench, wrench, WRENCH, [1, 2, 3, 4, 5, 6]),
    "Point": (Record, lambda m: m("geometry_msgs/Point", 1.0, 2.0, 3.0), XYZ, [1, 2, 3]),
}


@pytest.mark.parametrize("name", PLAIN)
def test_a_message_without_a_header_has_the_time_of_its_logging(tmp_path: Path, name: str):
    kind, make, columns, values = PLAIN[name]
    stream = opened(tmp_path, f"geometry_msgs/{name}", make)
    assert (stream.type, stream.t_ns.tolist(), stream.frame) == (kind, [START_NS + LOG_DELAY_NS], "")
    assert stream.array(*columns).tolist() == [values]


@pytest.mark.parametrize("name", ["Pose", "Transform", "Twist", "Wrench", "Point"])
def test_a_stamped_message_has_the_time_and_frame_of_its_header(tmp_path: Path, name: str):
    kind, make, columns, values = PLAIN[name]
    child = ("arm",) if name == "Transform" else ()
    stamped = f"geometry_msgs/{name}Stamped"
    stream = opened(tmp_path, stamped, lambda m: m(stamped, m.header(START_NS, "base"), *child, make(m)))
    assert (stream.type, stream.t_ns.tolist(), stream.frame) == (kind, [START_NS], "base")
    assert stream.child == "".join(child)
    assert stream.array(*columns).tolist() == [values]


@pytest.mark.parametrize("name", ["Pose", "Twist"])
@pytest.mark.parametrize("stamped", [True, False])
def test_a_message_with_covariance_keeps_it(tmp_path: Path, name: str, stamped: bool):
    kind, make, columns, values = PLAIN[name]
    full = f"geometry_msgs/{name}WithCovariance{'Stamped' if stamped else ''}"

    def message(m: Make) -> Any:
        inner = uncertain(m, name, make(m))
        return m(full, m.header(START_NS, "base"), inner) if stamped else inner

    stream = opened(tmp_path, full, message)
    assert stream.type is kind
    assert stream.array(*columns).tolist() == [values]
    assert stream["covariance"].reshape(-1).tolist() == list(range(36))


def test_a_magnetometer_is_in_tesla_and_a_thermometer_in_degrees_celsius(tmp_path: Path):
    def field(m: Make) -> Any:
        return m(
            "sensor_msgs/MagneticField", m.header(START_NS, "mag"), m.vector(1e-5, 2e-5, 3e-5), np.zeros(9)
        )

    stream = opened(tmp_path / "a", "sensor_msgs/MagneticField", field)
    assert stream.array("mag_x", "mag_y", "mag_z").tolist() == [[1e-5, 2e-5, 3e-5]]
    assert stream.units["mag_x"] == "T"
    stream = opened(
        tmp_path / "b",
        "sensor_msgs/Temperature",
        lambda m: m("sensor_msgs/Temperature", m.header(START_NS, "t"), 21.5, 0.25),
    )
    assert stream["temperature"].tolist() == [21.5]
    assert (stream.units["temperature"], stream.units["variance"]) == ("degC", "degC2")


def test_leading_slashes_of_older_ros_are_no_part_of_a_frame(tmp_path: Path):
    stream = opened(tmp_path, "sensor_msgs/Imu", lambda m: m.imu(START_NS, 0, frame="/imu_link"), "ros1")
    assert stream.frame == "imu_link"
    assert "frame_id" not in stream.table.column_names


@pytest.mark.parametrize(
    ("status", "kind", "fix", "known"),
    [(-1, 2, "none", True), (0, 0, "3d", False), (1, 1, "sbas", True), (2, 3, "differential", True)],
)
def test_the_status_and_covariance_of_a_fix_are_what_navsatfix_defines(
    tmp_path: Path, status: int, kind: int, fix: str, known: bool
):
    """STATUS_NO_FIX = -1, FIX = 0, SBAS = 1, GBAS = 2; COVARIANCE_TYPE_UNKNOWN = 0."""

    def message(m: Make) -> Any:
        said = m("sensor_msgs/NavSatStatus", status, 1)
        covariance = np.diag([4.0, 9.0, -1.0]).reshape(-1)
        header = m.header(START_NS, "gps")
        return m("sensor_msgs/NavSatFix", header, said, 45.0, -90.0, 100.5, covariance, kind)

    stream = opened(tmp_path, "sensor_msgs/NavSatFix", message)
    assert stream["fix"] == [fix]
    east, north, down = stream.array("std_east", "std_north", "std_down")[0]
    assert np.isnan(down)  # no variance is negative
    np.testing.assert_array_equal([east, north], [2.0, 3.0] if known else [np.nan, np.nan])


def carried(tmp_path: Path, target: str, kind: type, **columns: Any) -> Stream:
    stream = stream_of_values("it", TIMES_NS[: len(next(iter(columns.values())))], columns, type=kind)
    write(Recording("r", (stream,)), tmp_path / target, "rosbag")
    return transect.open(tmp_path / target, format="rosbag")["it"]


@pytest.mark.parametrize("target", ["out.bag", "out.mcap"])
def test_fixes_of_receivers_become_the_status_that_navsatfix_has_for_them(tmp_path: Path, target: str):
    fixes = ["none", "rtk fixed", "2d"]
    stream = carried(tmp_path, target, NavFix, lat=np.zeros(3), lon=np.ones(3), fix=fixes)
    assert stream["status"].tolist() == [-1, 2, 0]
    np.testing.assert_allclose(stream["lon"], 1.0)


@pytest.mark.parametrize("target", ["out.bag", "out.mcap"])
def test_sigmas_of_a_fix_become_a_diagonal_where_all_are_known(tmp_path: Path, target: str):
    sigmas = {"std_east": np.array([1.0, 2.0]), "std_north": np.array([3.0, np.nan]), "std_down": [5.0, 6.0]}
    columns = {name: np.array(values) for name, values in sigmas.items()}
    stream = carried(tmp_path, target, NavFix, lat=np.zeros(2), lon=np.zeros(2), **columns)
    assert stream["position_covariance"].reshape(2, 9)[0].tolist() == [1, 0, 0, 0, 9, 0, 0, 0, 25]
    assert stream["position_covariance_type"].tolist() == [2, 0]  # DIAGONAL_KNOWN, UNKNOWN
    assert np.isnan(stream.array("std_east", "std_north", "std_down")[1]).all()


@pytest.mark.parametrize("target", ["out.bag", "out.mcap"])
def test_an_imu_without_attitude_says_so_in_its_covariance(tmp_path: Path, target: str):
    """`If you have no estimate for one of the data elements, set element 0 of its covariance to -1`."""
    columns = {f"{kind}_{axis}": np.arange(2.0) for kind in ("gyro", "acc") for axis in "xyz"}
    stream = carried(tmp_path, target, Imu, **columns)
    assert stream["orientation_covariance"][:, 0].tolist() == [-1, -1]
    assert stream["linear_acceleration_covariance"][:, 0].tolist() == [0, 0]
    assert np.isnan(stream["qw"]).all()
    assert stream["acc_z"].tolist() == [0, 1]


@pytest.mark.parametrize("target", ["out.bag", "out.mcap"])
def test_the_last_angle_of_a_scan_is_that_of_its_last_beam(tmp_path: Path, target: str):
    columns = {
        "ranges": np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), "start_angle": np.array([-0.5, 0.0]),
        "angle_increment": np.array([0.25, 0.5]),
    }  # fmt: skip
    stream = carried(tmp_path, target, LaserScan, **columns)
    assert stream["angle_max"].tolist() == [0.0, 1.0]
    assert stream["ranges"].tolist() == columns["ranges"].tolist()


def test_lists_of_texts_and_of_flags_are_columns(tmp_path: Path):
    def joy(m: Make) -> Any:
        header = m.header(START_NS, "pad")
        return m("sensor_msgs/Joy", header, np.array([0.5, -0.5], np.float32), np.array([1, 0, 1], np.int32))

    stream = opened(tmp_path, "sensor_msgs/Joy", joy)
    assert stream["axes"].tolist() == [[0.5, -0.5]]
    assert stream["buttons"].tolist() == [[1, 0, 1]]
