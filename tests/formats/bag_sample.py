"""Small bags, written by rosbags and mcap themselves, for the tests of our readers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.rosbag1 import Writer as Ros1Writer
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin
from rosbags.rosbag2 import Writer as Ros2Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

NS_PER_S = 1_000_000_000
START_NS = 1_700_000_000 * NS_PER_S
LOG_DELAY_NS = 3_000_000
"""How long after its stamp a message is logged, in ns."""
CUSTOM = "Header header\nfloat32 voltage\nstring[] faults\nuint8[4] cells\ntime since\n"
STORES = {"ros1": get_typestore(Stores.ROS1_NOETIC), "cdr": get_typestore(Stores.ROS2_HUMBLE)}
STORES["ros1"].register(
    get_types_from_msg("geometry_msgs/TransformStamped[] transforms", "tf2_msgs/msg/TFMessage")
)
STORES["ros1"].register(get_types_from_msg(CUSTOM, "rover_msgs/msg/Status"))
STORES["cdr"].register(
    get_types_from_msg(
        CUSTOM.replace("Header", "std_msgs/Header").replace("time ", "builtin_interfaces/Time "),
        "rover_msgs/msg/Status",
    )
)
Message = tuple[str, str, int, Any]
"""Topic, type, log time in ns, and the message."""


class Make:
    """Makes messages of either ROS."""

    def __init__(self, encoding: str) -> None:
        self.types: Any = STORES[encoding].types
        self.ros1 = encoding == "ros1"

    def __call__(self, kind: str, *values: Any) -> Any:
        return self.types[kind.replace("/", "/msg/")](*values)

    def time(self, t_ns: int) -> Any:
        return self("builtin_interfaces/Time", *divmod(t_ns, NS_PER_S))

    def header(self, t_ns: int, frame: str) -> Any:
        values = (self.time(t_ns), frame)
        return self("std_msgs/Header", *((7, *values) if self.ros1 else values))

    def vector(self, x: float, y: float, z: float) -> Any:
        return self("geometry_msgs/Vector3", x, y, z)

    def quaternion(self, x: float, y: float, z: float, w: float) -> Any:
        return self("geometry_msgs/Quaternion", x, y, z, w)

    def pose(self, x: float, y: float, z: float) -> Any:
        return self(
            "geometry_msgs/Pose", self("geometry_msgs/Point", x, y, z), self.quaternion(0.0, 0.0, 0.6, 0.8)
        )

    def imu(self, t_ns: int, k: int, frame: str = "imu_link", oriented: bool = True) -> Any:
        first = 0.0 if oriented else -1.0
        covariance = np.array([first, *np.arange(1.0, 9.0)])
        return self(
            "sensor_msgs/Imu",
            self.header(t_ns, frame),
            self.quaternion(0.0, 0.0, 0.0, 1.0),
            covariance,
            self.vector(0.1 * k, 0.2, 0.3),
            np.zeros(9),
            self.vector(0.0, 0.01 * k, 9.81),
            np.full(9, 0.5),
        )

    def odometry(self, t_ns: int, k: int) -> Any:
        pose = self("geometry_msgs/PoseWithCovariance", self.pose(1.0 * k, 2.0, 3.0), np.arange(36.0))
        twist = self("geometry_msgs/Twist", self.vector(0.5, 0.0, 0.0), self.vector(0.0, 0.0, 0.25))
        twist = self("geometry_msgs/TwistWithCovariance", twist, np.arange(36.0) / 10)
        return self("nav_msgs/Odometry", self.header(t_ns, "odom"), "base_link", pose, twist)

    def fix(self, t_ns: int, k: int) -> Any:
        status = self("sensor_msgs/NavSatStatus", 2, 1)
        covariance = np.diag([4.0, 9.0, 16.0]).reshape(-1)
        return self(
            "sensor_msgs/NavSatFix", self.header(t_ns, "gps"), status, 45.0 + k, -90.0, 100.5, covariance, 2
        )

    def image(
        self, t_ns: int, pixels: np.ndarray, encoding: str, frame: str = "left_optical", step: int = 0
    ) -> Any:
        height, width = pixels.shape[:2]
        data = np.ascontiguousarray(pixels).view(np.uint8).reshape(-1)
        step = step or data.size // height
        return self("sensor_msgs/Image", self.header(t_ns, frame), height, width, encoding, 0, step, data)

    def compressed(self, t_ns: int, form: str, data: bytes, frame: str = "right_optical") -> Any:
        return self(
            "sensor_msgs/CompressedImage", self.header(t_ns, frame), form, np.frombuffer(data, np.uint8)
        )

    def camera(self, t_ns: int, frame: str = "left_optical") -> Any:
        D = np.array([-0.3, 0.1, 0.001, 0.002, 0.0])
        K = np.array([350.0, 0, 320, 0, 351, 240, 0, 0, 1])
        P = np.array([340.0, 0, 318, -40.8, 0, 340, 238, 0, 0, 0, 1, 0])
        roi = self("sensor_msgs/RegionOfInterest", 0, 0, 0, 0, False)
        header = self.header(t_ns, frame)
        return self(
            "sensor_msgs/CameraInfo", header, 480, 640, "plumb_bob", D, K, np.eye(3).reshape(-1), P, 0, 0, roi
        )

    def cloud(self, t_ns: int, points: np.ndarray, row_padding: int = 0, height: int = 1) -> Any:
        codes = {"i1": 1, "u1": 2, "i2": 3, "u2": 4, "i4": 5, "u4": 6, "f4": 7, "f8": 8}
        fields = [
            self("sensor_msgs/PointField", name, at, codes[form.str[1:]], 1)
            for name, (form, at) in points.dtype.fields.items()
        ]
        step, width = points.dtype.itemsize, len(points) // height
        rows = [points[k * width : (k + 1) * width].tobytes() + b"\x00" * row_padding for k in range(height)]
        data = np.frombuffer(b"".join(rows), np.uint8)
        row_step = width * step + row_padding
        header = self.header(t_ns, "lidar")
        return self(
            "sensor_msgs/PointCloud2", header, height, width, fields, False, step, row_step, data, True
        )

    def scan(self, t_ns: int, ranges: list[float], intensities: list[float]) -> Any:
        angles = (-1.5, 1.5, 0.5, 0.001, 0.1, 0.05, 30.0)
        values = (np.array(ranges, np.float32), np.array(intensities, np.float32))
        return self("sensor_msgs/LaserScan", self.header(t_ns, "laser"), *angles, *values)

    def joints(self, t_ns: int, names: list[str], positions: list[float]) -> Any:
        empty = np.zeros(0)
        return self(
            "sensor_msgs/JointState",
            self.header(t_ns, ""),
            names,
            np.array(positions),
            np.array(positions) / 2,
            empty,
        )

    def tf(self, *transforms: tuple[int, str, str, float]) -> Any:
        made = [
            self(
                "geometry_msgs/TransformStamped",
                self.header(t_ns, parent),
                child,
                self(
                    "geometry_msgs/Transform", self.vector(x, 0.0, 0.0), self.quaternion(0.0, 0.0, 0.0, 1.0)
                ),
            )
            for t_ns, parent, child, x in transforms
        ]
        return self("tf2_msgs/TFMessage", made)

    def path(self, t_ns: int, count: int) -> Any:
        poses = [
            self(
                "geometry_msgs/PoseStamped",
                self.header(t_ns + k * NS_PER_S, "map"),
                self.pose(1.0 * k, 0.0, 0.0),
            )
            for k in range(count)
        ]
        return self("nav_msgs/Path", self.header(t_ns, "map"), poses)

    def status(self, t_ns: int, voltage: float, faults: list[str]) -> Any:
        header = self.header(t_ns, "base_link")
        return self(
            "rover_msgs/Status",
            header,
            voltage,
            faults,
            np.arange(4, dtype=np.uint8),
            self.time(t_ns - NS_PER_S),
        )


def rover(make: Make) -> list[Message]:
    """One of everything a small rover says in a second; logged 3 ms after it was measured."""
    said: list[tuple[str, str, int, Any]] = []

    def say(topic: str, kind: str, t_ns: int, message: Any) -> None:
        said.append((topic, kind.replace("/", "/msg/"), t_ns + LOG_DELAY_NS, message))

    say(
        "/tf_static",
        "tf2_msgs/TFMessage",
        START_NS,
        make.tf((START_NS, "base_link", "lidar", 0.3), (START_NS, "base_link", "imu_link", 0.1)),
    )
    say("/left/camera_info", "sensor_msgs/CameraInfo", START_NS, make.camera(START_NS))
    for k in range(20):
        t_ns = START_NS + k * NS_PER_S // 20
        say("/imu", "sensor_msgs/Imu", t_ns, make.imu(t_ns, k))
        if k % 2 == 0:
            say("/odom", "nav_msgs/Odometry", t_ns, make.odometry(t_ns, k))
            say("/tf", "tf2_msgs/TFMessage", t_ns, make.tf((t_ns, "odom", "base_link", 0.1 * k)))
        if k % 5 == 0:
            say("/fix", "sensor_msgs/NavSatFix", t_ns, make.fix(t_ns, k))
            say("/left/image_raw", "sensor_msgs/Image", t_ns, make.image(t_ns, picture(k), "rgb8"))
            say("/cloud", "sensor_msgs/PointCloud2", t_ns, make.cloud(t_ns, points(k)))
            say("/status", "rover_msgs/Status", t_ns, make.status(t_ns, 24.0 + k, ["hot"] * (k // 5)))
            say("/say", "std_msgs/String", t_ns, make("std_msgs/String", f"step {k}"))
    say("/path", "nav_msgs/Path", START_NS, make.path(START_NS, 3))
    return sorted(said, key=lambda message: message[2])


def picture(k: int) -> np.ndarray:
    """(6, 8, 3) uint8 pixels."""
    return (np.arange(6 * 8 * 3).reshape(6, 8, 3) + k).astype(np.uint8)


def points(k: int) -> np.ndarray:
    """Five points with intensity and time, as an Ouster sends them."""
    cloud = np.zeros(5, dtype=[("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("intensity", "<f4"), ("t", "<u4")])
    cloud["x"], cloud["intensity"], cloud["t"] = np.arange(5) + k, 100, np.arange(5) * 1000
    return cloud


def write_ros1(path: Path, messages: list[Message], compression: str = "") -> Path:
    bag = Ros1Writer(path)
    if compression:
        bag.set_compression(Ros1Writer.CompressionFormat[compression.upper()])
    with bag:
        _write(bag, messages, STORES["ros1"], STORES["ros1"].serialize_ros1)
    return path


def write_ros2(path: Path, messages: list[Message], storage: str = "sqlite3", compression: str = "") -> Path:
    bag = Ros2Writer(path, version=8, storage_plugin=StoragePlugin[storage.upper()])
    if compression:
        bag.set_compression(CompressionMode[compression.upper()], CompressionFormat.ZSTD)
    with bag:
        _write(bag, messages, STORES["cdr"], STORES["cdr"].serialize_cdr)
    return path


def _write(bag: Any, messages: list[Message], store: Any, serialise: Callable[..., Any]) -> None:
    connections: dict[tuple[str, str], Any] = {}
    for topic, kind, log_ns, message in messages:
        if (topic, kind) not in connections:
            connections[topic, kind] = bag.add_connection(topic, kind, typestore=store)
        bag.write(connections[topic, kind], log_ns, serialise(message, kind))


def write(path: Path, kind: str, messages: Callable[[Make], list[Message]] = rover) -> Path:
    """Write a bag in one of the containers; return what is to be opened."""
    if kind.startswith("ros1"):
        return write_ros1(path / "rover.bag", messages(Make("ros1")), kind.partition("-")[2])
    storage, _, compression = kind.partition("-")
    return write_ros2(path / "rover", messages(Make("cdr")), storage, compression)


KINDS = ("ros1", "ros1-bz2", "ros1-lz4", "sqlite3", "sqlite3-message", "sqlite3-file", "mcap", "mcap-storage")
