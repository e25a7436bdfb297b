"""Batches of messages hold what rosbags reads from each of them."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.bag_sample import STORES

from transect.formats.shared.bags import ros_decoder
from transect.formats.shared.bags.ros_decoder import Lists, MessageDecoder
from transect.formats.shared.bags.ros_types import ARRAY_NODE, BASE_NODE, NAME_NODE, standard_types

TYPES = (
    "sensor_msgs/msg/Imu",
    "sensor_msgs/msg/NavSatFix",
    "sensor_msgs/msg/LaserScan",
    "sensor_msgs/msg/JointState",
    "sensor_msgs/msg/PointCloud2",
    "sensor_msgs/msg/Image",
    "sensor_msgs/msg/CameraInfo",
    "sensor_msgs/msg/MultiEchoLaserScan",
    "nav_msgs/msg/Odometry",
    "nav_msgs/msg/Path",
    "geometry_msgs/msg/PolygonStamped",
    "std_msgs/msg/Float64MultiArray",
    "std_msgs/msg/String",
    "std_msgs/msg/Bool",
    "std_msgs/msg/Empty",
    "diagnostic_msgs/msg/DiagnosticArray",
    "visualization_msgs/msg/Marker",
)
INTEGERS = {"byte": "int8", "char": "uint8"}
TEXT = st.text(st.characters(blacklist_characters="\x00", blacklist_categories=["Cs"]), max_size=6)


def number(draw: st.DrawFn, form: str) -> Any:
    if form == "bool":
        return draw(st.booleans())
    if form.startswith("float"):
        return draw(st.floats(width=int(form[5:]), allow_nan=False))
    dtype = np.iinfo(INTEGERS.get(form, form))
    return draw(st.integers(int(dtype.min), int(dtype.max)))


def value(draw: st.DrawFn, store: Any, node: Any) -> Any:
    shape, inner = node
    if shape == NAME_NODE:
        fields = store.fielddefs[inner][1]
        return store.types[inner](*[value(draw, store, field) for _, field in fields])
    if shape == BASE_NODE:
        return draw(TEXT) if inner[0] == "string" else number(draw, inner[0])
    element, size = inner
    count = size if shape == ARRAY_NODE else draw(st.integers(0, 3))
    items = [value(draw, store, element) for _ in range(count)]
    if element[0] == BASE_NODE and element[1][0] != "string":
        form = INTEGERS.get(element[1][0], element[1][0])
        return np.array(items, dtype=form)
    return items


@st.composite
def messages(draw: st.DrawFn, encoding: str, kind: str) -> list[bytes]:
    store = STORES[encoding]
    made = [value(draw, store, (NAME_NODE, kind)) for _ in range(draw(st.integers(1, 4)))]
    write = store.serialize_ros1 if encoding == "ros1" else store.serialize_cdr
    return [bytes(write(message, kind)) for message in made for _ in range(2)]


@cache
def decoder_for(kind: str, encoding: str) -> MessageDecoder:
    return MessageDecoder(kind, standard_types(encoding), encoding == "cdr")


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[path], b[path]) for path in a)
    if isinstance(a, Lists):
        return np.array_equal(a.offsets, b.offsets) and (not a.offsets[-1] or equal(a.values, b.values))
    if isinstance(a, list):
        return a == b
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)


@pytest.mark.parametrize("encoding", ["ros1", "cdr"])
@pytest.mark.parametrize("kind", TYPES)
@settings(max_examples=5)
@given(data=st.data())
def test_a_batch_holds_what_rosbags_reads_one_by_one(encoding: str, kind: str, data: st.DataObject):
    raws = data.draw(messages(encoding, kind))
    decoder = decoder_for(kind, encoding)
    columns, kept, bad = decoder.decode(raws)
    assert kept.tolist() == list(range(len(raws)))
    assert not bad
    (_, singles), *_ = decoder._one_by_one(raws, range(len(raws)))[0]
    assert equal(columns, singles)


def strings(*texts: str) -> list[bytes]:
    store = STORES["cdr"]
    return [
        bytes(store.serialize_cdr(store.types["std_msgs/msg/String"](text), "std_msgs/msg/String"))
        for text in texts
    ]


def string_decoder() -> MessageDecoder:
    return MessageDecoder("std_msgs/msg/String", standard_types("cdr"), cdr=True)


def test_messages_of_many_lengths_keep_their_order():
    texts = ["a" * (k % 7) for k in range(50)]
    columns, kept, _ = string_decoder().decode(strings(*texts))
    assert columns["data"] == texts
    assert len(kept) == 50


def test_a_stream_with_too_many_layouts_is_read_one_by_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ros_decoder, "MAX_LAYOUTS", 3)
    texts = ["a" * k for k in range(40)]
    assert string_decoder().decode(strings(*texts))[0]["data"] == texts


def test_messages_that_do_not_fit_are_named_with_the_reason():
    raws = strings("one", "two", "three")
    raws[1] = raws[1][:-2]
    columns, kept, bad = string_decoder().decode(raws)
    assert columns["data"] == ["one", "three"]
    assert kept.tolist() == [0, 2]
    assert list(bad) == [1]
    assert bad[1]


def test_big_endian_messages_are_read_by_rosbags():
    store = STORES["cdr"]
    message = store.types["std_msgs/msg/Int32"](7)
    raw = bytes(store.serialize_cdr(message, "std_msgs/msg/Int32", little_endian=False))
    decoder = MessageDecoder("std_msgs/msg/Int32", standard_types("cdr"), cdr=True)
    assert decoder.decode([raw])[0]["data"].tolist() == [7]


def test_a_list_that_claims_a_billion_elements_takes_no_memory():
    decoder = MessageDecoder("std_msgs/msg/Float64MultiArray", standard_types("ros1"), cdr=False)
    raw = b"\x00\x00\x00\x00\x00\x00\x00\x00" + (10**9).to_bytes(4, "little")
    assert decoder.decode([raw])[2]
