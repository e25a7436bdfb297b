"""Where ROS messages are written: a .bag file, a folder with a .db3, or an .mcap file."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transect.base.files import atomic_write, refuse_existing, staged

Write = Callable[[int, int, bytes], None]
"""Writes a message: log time, sample time, data."""
Sink = Callable[[str, str, Any], Write]
"""Opens a topic: name, type, and a typestore that knows it."""


def encoding_of(path: Path) -> str:
    """How messages are encoded in a file of that name."""
    return "ros1" if path.suffix == ".bag" else "cdr"


def sink_for(path: Path) -> Any:
    """Return the context in which a bag of that name is written; it appears when the context ends."""
    if path.suffix == ".bag":
        return _ros1(path)
    return _mcap(path) if path.suffix == ".mcap" else _folder(path)


@contextmanager
def _ros1(path: Path) -> Generator[Sink, None, None]:
    from rosbags.rosbag1 import Writer

    with staged(path) as building, Writer(building) as bag:

        def open_topic(topic: str, kind: str, store: Any) -> Write:
            connection = bag.add_connection(topic, kind, typestore=store)
            return lambda log_ns, _, data: bag.write(connection, log_ns, data)

        yield open_topic


@contextmanager
def _folder(path: Path) -> Generator[Sink, None, None]:
    from rosbags.rosbag2 import Writer

    refuse_existing(path, hint="give a new folder, or an empty one")
    with staged(path) as building, Writer(building, version=8) as bag:

        def open_topic(topic: str, kind: str, store: Any) -> Write:
            connection = bag.add_connection(topic, kind, typestore=store)
            return lambda log_ns, _, data: bag.write(connection, log_ns, data)

        yield open_topic


@contextmanager
def _mcap(path: Path) -> Generator[Sink, None, None]:
    """Write with the mcap library: rosbags' own writer leaves out the checksums."""
    from mcap.writer import Writer

    with atomic_write(path) as stream:
        bag = Writer(stream, enable_data_crcs=True)
        bag.start(profile="ros2")
        schemas: dict[str, int] = {}

        def open_topic(topic: str, kind: str, store: Any) -> Write:
            if kind not in schemas:
                definition, _ = store.generate_msgdef(kind, ros_version=2)
                schemas[kind] = bag.register_schema(kind, "ros2msg", definition.encode())
            channel = bag.register_channel(topic, "cdr", schemas[kind])
            return lambda log_ns, t_ns, data: bag.add_message(channel, log_ns, data, publish_time=t_ns)

        yield open_topic
        bag.finish()
