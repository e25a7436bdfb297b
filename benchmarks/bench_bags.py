"""Fixed-layout bag messages: our batches beside rosbags, message by message, both from the file on."""

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._harness import compare, rate

MESSAGE_COUNT = 50_000
NS_PER_S = 1_000_000_000
REAL_BAGS = (
    Path(os.environ.get("TRANSECT_TEST_DATA") or "../shared/data")
    / "bags"
    / "robot_localization"
    / "test1.bag"
)


def main() -> None:
    print("  one thread on both sides; ours opens, decodes and tabulates all streams")
    if REAL_BAGS.is_file():
        bench("test1.bag (Imu, Odometry, NavSatFix; bz2)", REAL_BAGS)
    with tempfile.TemporaryDirectory() as folder:
        bench("50k Imu, ROS 1", write_ros1(Path(folder) / "imu.bag"))
        for storage in ("sqlite3", "mcap"):
            bench(f"50k Imu, ROS 2 {storage}", write_ros2(Path(folder) / storage, storage))


def bench(name: str, path: Path) -> None:
    compare(f"{name} / rosbags", lambda: read_ours(path), lambda: read_rosbags(path), target=2.5, repeat=3)
    rate(f"{name}, messages", lambda: read_ours(path), n=read_ours(path), repeat=3)


def read_ours(path: Path) -> int:
    import transect

    recording = transect.open(path, format="rosbag")
    return sum(len(stream) for stream in recording)


def read_rosbags(path: Path) -> int:
    from rosbags.highlevel import AnyReader

    with AnyReader([path]) as reader:
        for connection, _, data in reader.messages():
            reader.deserialize(data, connection.msgtype)
        return reader.message_count


def write_ros1(path: Path) -> Path:
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC)
    with Writer(path) as bag:
        connection = bag.add_connection("/imu", "sensor_msgs/msg/Imu", typestore=store)
        for k in range(MESSAGE_COUNT):
            t_ns = 1_700_000_000 * NS_PER_S + k * 10_000_000
            bag.write(connection, t_ns, store.serialize_ros1(imu(store, k, t_ns, (k,)), connection.msgtype))
    return path


def write_ros2(path: Path, storage: str) -> Path:
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    with Writer(path, version=8, storage_plugin=StoragePlugin[storage.upper()]) as bag:
        connection = bag.add_connection("/imu", "sensor_msgs/msg/Imu", typestore=store)
        for k in range(MESSAGE_COUNT):
            t_ns = 1_700_000_000 * NS_PER_S + k * 10_000_000
            bag.write(connection, t_ns, store.serialize_cdr(imu(store, k, t_ns), connection.msgtype))
    return path


def imu(store: Any, k: int, t_ns: int, sequence: tuple[int, ...] = ()) -> Any:
    def of(kind: str, *values: Any) -> Any:
        return store.types[kind](*values)

    header = of(
        "std_msgs/msg/Header",
        *sequence,
        of("builtin_interfaces/msg/Time", *divmod(t_ns, NS_PER_S)),
        "imu_link",
    )
    vector = of("geometry_msgs/msg/Vector3", 0.1 * k, 0.2, 0.3)
    attitude = of("geometry_msgs/msg/Quaternion", 0.0, 0.0, 0.0, 1.0)
    covariance = np.full(9, 0.01)
    return of("sensor_msgs/msg/Imu", header, attitude, covariance, vector, covariance, vector, covariance)
