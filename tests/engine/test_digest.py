"""The bytes of values: what is equal has the same, what differs has not; and the digest of a run is these."""

from __future__ import annotations

import hashlib
import struct
from array import array
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from transect.engine import Node, outputs
from transect.engine.digest import MOST_WAITING, PortDigest, digest_of_ports, to_bytes
from transect.errors import UnsupportedError
from transect.recording.arrow import from_numpy, strings
from transect.types import Image, PointCloud, Pose, StereoPair

from .flows import Double, flow_of, play

NANS = [struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in
        (0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF)]  # fmt: skip
"""Quiet, negative, signalling, and with every bit of the payload set (IEEE 754)."""


def port_hash(kind: type, *samples: tuple[int, Any]) -> str:
    """The hash of a port that emitted some samples."""
    digest = PortDigest(kind)
    for t_ns, value in samples:
        digest.update(t_ns, value)
    return digest.hexdigest


@pytest.mark.parametrize("nan", NANS)
def test_every_nan_has_the_same_bytes(nan: float):
    assert to_bytes(nan) == to_bytes(float("nan"))
    assert to_bytes([nan, {"a": nan}]) == to_bytes([np.nan, {"a": np.nan}])
    assert port_hash(float, (1, nan)) == port_hash(float, (1, float("nan")))
    assert port_hash(float, (1, nan)) != port_hash(float, (1, 0.0))


@pytest.mark.parametrize(
    ("dtype", "whole", "patterns"),
    [
        ("<f8", "<u8", [0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF]),
        (">f8", ">u8", [0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF]),
        ("<f4", "<u4", [0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FFFFFFF]),
        ("<f2", "<u2", [0x7E00, 0xFE00, 0x7C01, 0x7FFF]),
    ],
)
def test_every_nan_in_an_array_has_the_same_bytes(dtype: str, whole: str, patterns: list[int]):
    odd = np.array(patterns, whole).view(dtype)
    assert np.isnan(odd).all()
    assert to_bytes(odd) == to_bytes(np.full(4, np.nan, dtype))
    assert to_bytes(odd[0]) == to_bytes(odd[3])
    assert to_bytes(odd) != to_bytes(np.zeros(4, dtype))


def test_a_complex_nan_is_one_for_any_parts():
    values = np.array([complex(np.nan, 0), complex(NANS[1], 0), complex(np.nan, 1), complex(1, np.nan)])
    assert len({to_bytes(value) for value in values}) == 1
    assert to_bytes(values) != to_bytes(np.array([0, 0, 0, 1j]))


def test_dtype_and_shape_matter():
    values = [np.zeros(4), np.zeros(4, np.float32), np.zeros(4, np.int64), np.zeros((2, 2)), np.zeros((4, 1)),
              np.zeros((1, 4)), np.zeros(8, np.float32), np.zeros(0), np.zeros((0, 3)), np.zeros(()), 0.0, 0,
              False, None, "", b"", [], {}, [0.0] * 4, np.float32(0), "0", b"0"]  # fmt: skip
    assert len({to_bytes(value) for value in values}) == len(values)


def test_zero_has_a_sign_and_numbers_have_a_type():
    assert to_bytes(0.0) != to_bytes(-0.0)
    assert len({to_bytes(v) for v in (1, 1.0, True, "1", b"1", np.int32(1), np.int64(1), np.float64(1))}) == 8
    assert to_bytes(2**63) != to_bytes(-(2**63))
    assert to_bytes(2**80) != to_bytes(2**80 + 1)


def test_how_an_array_lies_in_memory_does_not_matter():
    plain = np.arange(24.0).reshape(4, 6)
    wide = np.zeros((8, 12))
    wide[::2, ::2] = plain
    same = [
        np.asfortranarray(plain),
        wide[::2, ::2],
        plain[::-1][::-1],
        plain.T.copy().T,
        plain.astype(">f8"),
    ]
    read_only = plain.copy()
    read_only.flags.writeable = False
    assert {to_bytes(values) for values in (*same, read_only)} == {to_bytes(plain)}
    assert to_bytes(plain.T) != to_bytes(plain)


def test_structured_arrays_are_taken_field_by_field():
    padded = np.dtype({"names": ["a", "b"], "formats": ["u1", "<f8"], "offsets": [0, 8], "itemsize": 24})
    one, other = np.full(3 * 24, 0x55, np.uint8).view(padded), np.zeros(3 * 24, np.uint8).view(padded)
    for values in (one, other):
        values["a"], values["b"] = 7, NANS[1]
    assert to_bytes(one) == to_bytes(other), "what lies between fields does not matter"
    other["b"] = NANS[2]
    assert to_bytes(one) == to_bytes(other)
    other["a"][1] = 8
    assert to_bytes(one) != to_bytes(other)
    assert to_bytes(one) != to_bytes(one.astype([("a", "u1"), ("c", "<f8")]))


def test_the_order_of_a_mapping_does_not_matter_and_that_of_a_list_does():
    assert to_bytes({"a": 1, "b": {"x": 2, "y": 3}}) == to_bytes({"b": {"y": 3, "x": 2}, "a": 1})
    assert to_bytes(MappingProxyType({1: "one", "two": 2})) == to_bytes({"two": 2, 1: "one"})
    assert to_bytes({"a": 1, "b": 2}) != to_bytes({"a": 2, "b": 1})
    assert to_bytes([1, 2]) != to_bytes([2, 1])
    assert to_bytes([[1], 2]) != to_bytes([1, [2]])
    assert to_bytes(["ab", "c"]) != to_bytes(["a", "bc"])


@dataclass
class Plain:
    """Two fields, one of them nested."""

    name: str
    inside: Any


@dataclass(frozen=True, slots=True)
class Slotted:
    """The same without a `__dict__`."""

    name: str
    inside: Any


def test_dataclasses_are_their_class_and_fields():
    assert to_bytes(Plain("a", np.ones(3))) == to_bytes(Plain("a", np.ones(3)))
    assert to_bytes(Plain("a", Plain("b", 1))) != to_bytes(Plain("a", Plain("b", 2)))
    assert to_bytes(Plain("a", 1)) != to_bytes(Slotted("a", 1))
    cloud = PointCloud(np.ones((5, 3)), {"ring": np.arange(5), "intensity": np.zeros(5)}, frame="lidar")
    same = PointCloud(np.ones((5, 3)), {"intensity": np.zeros(5), "ring": np.arange(5)}, frame="lidar")
    assert to_bytes(cloud) == to_bytes(same)
    assert to_bytes(cloud) != to_bytes(PointCloud(cloud.points, cloud.fields, frame="other"))


def test_arrow_tables_are_names_types_and_values_however_they_are_chunked():
    def table(middle: pa.Array, kind: pa.DataType = pa.float64()) -> pa.Table:  # noqa: B008 - immutable
        one, three = from_numpy(np.array([1.0])), from_numpy(np.array([3.0]))
        numbers = pa.concat_arrays([one, middle, three]).cast(kind)
        return pa.table({"a": numbers, "b": strings(["x", "y", "z"])})

    whole = table(pa.nulls(1, pa.float64()))
    pieces = pa.concat_tables([whole.slice(0, 1), whole.slice(1)])
    assert pieces.column("a").num_chunks == 2
    assert to_bytes(pieces) == to_bytes(whole) == to_bytes(whole.select(["b", "a"]))
    others = [
        table(from_numpy(np.array([2.0]))),
        table(pa.nulls(1, pa.float64()), pa.float32()),
        whole.rename_columns(["a", "c"]),
        whole.slice(1),
        whole.slice(0, 0),
        whole.slice(0, 0).select(["a"]),
    ]
    assert len({to_bytes(t) for t in (whole, *others)}) == 7


class Colour(Enum):
    """Has no bytes of its own."""

    RED = 1


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, Colour.RED, lambda: 0, array("d"), [object()], {"a": {1}}]
)
def test_what_has_no_bytes_is_refused_with_what_to_carry_instead(value: Any):
    with pytest.raises(UnsupportedError, match="cannot be hashed") as refused:
        to_bytes(value)
    assert "numpy arrays" in refused.value.hint


class Gives(Node):
    """Something that no digest can be made of."""

    def process(self, x: float) -> object:
        return {x}


def test_a_node_that_gives_what_cannot_be_hashed_is_named():
    flow = play(flow_of({"gives": Gives}, ["x -> gives.x"]), [(1.0, "x", 1.0)])
    assert "the node 'gives' (Gives) failed: a set cannot be hashed" in str(flow.errors[0])


class Whole(Node):
    """Says float and gives int, as Python allows."""

    def process(self, x: float) -> float:
        return 2


def test_a_whole_number_on_a_port_of_floats_is_hashed_as_a_float():
    assert port_hash(float, (5, 2)) == port_hash(float, (5, 2.0)) == port_hash(float, (5, np.float64(2)))
    assert port_hash(float, (5, 2.0)) == port_hash(object, (5, 2.0))
    assert port_hash(object, (5, 2)) != port_hash(object, (5, 2.0))
    samples = [(1.0, "x", 1.0)]
    whole, double = (play(flow_of({"n": kind}, ["x -> n.x"]), samples) for kind in (Whole, Double))
    assert whole.digest == double.digest


def test_time_counts_and_so_does_the_order_of_samples_on_a_port():
    assert port_hash(float, (1, 1.0)) != port_hash(float, (2, 1.0))
    assert port_hash(float, (1, 1.0), (2, 2.0)) != port_hash(float, (2, 2.0), (1, 1.0))
    assert port_hash(float, (-1, 1.0)) != port_hash(float, (1, 1.0))


def test_a_digest_goes_back_to_where_it_was_frozen():
    digest = PortDigest(float)
    digest.update(1, 1.0)
    state, before = digest.freeze(), digest.hexdigest
    digest.update(2, 2.0)
    after, checks = digest.hexdigest, list(digest.checks)
    digest.thaw(state)
    assert digest.hexdigest == before
    assert list(digest.times) == [1]
    digest.update(2, 2.0)
    assert digest.hexdigest == after
    assert list(digest.checks) == checks


def test_large_samples_are_hashed_on_a_thread_to_what_their_bytes_are():
    rng, digest, whole, checks = np.random.default_rng(0), PortDigest(StereoPair), hashlib.sha256(), []
    for t_ns in range(MOST_WAITING + 4):
        left, right = (Image(rng.integers(0, 255, (200, 300), np.uint8)[:, ::2], t_ns=t_ns) for _ in range(2))
        value = StereoPair(left, replace(right, data=np.where(right.data > 200, np.nan, right.data)), t_ns)
        digest.update(t_ns, value)
        data = t_ns.to_bytes(8, "little", signed=True) + to_bytes(value)
        left.data[:] = 0  # a node that uses its array again changes nothing
        whole.update(data)
        checks.append(crc32(data))
        if t_ns == 5:
            state, before = digest.freeze(), whole.hexdigest()
    assert (digest.hexdigest, list(digest.checks)) == (whole.hexdigest(), checks)
    digest.thaw(state)
    assert (digest.hexdigest, list(digest.checks)) == (before, checks[:6])


def test_an_image_that_nobody_can_write_to_is_hashed_as_one_that_must_be_copied():
    mine = np.random.default_rng(1).integers(0, 255, (300, 400), np.uint8)
    fixed = mine.copy()
    fixed.setflags(write=False)
    assert port_hash(Image, (0, Image(mine)), (1, Image(mine))) == port_hash(
        Image, (0, Image(fixed)), (1, Image(fixed))
    )


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
    | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def typed(value: Any) -> Any:
    """A value that is equal to another only if their types and the signs of their zeros are, too."""
    if isinstance(value, list):
        return [typed(item) for item in value]
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    return type(value), value, repr(value) if isinstance(value, float) else ""


@given(one=VALUES, other=VALUES)
def test_equal_values_have_equal_bytes_and_different_ones_different(one: Any, other: Any):
    assert (to_bytes(one) == to_bytes(other)) == (typed(one) == typed(other))


DTYPES = st.sampled_from(["<f8", ">f8", "<f4", "<i4", "u1", "?", ">i2", "<c16", "<U3"])
SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)


@given(values=arrays.arrays(DTYPES, SHAPES), data=st.data())
def test_an_array_equals_its_copies_and_nothing_that_differs_in_one_element(
    values: np.ndarray, data: st.DataObject
):
    assert to_bytes(values.copy(order="F")) == to_bytes(values)
    assert to_bytes(values.astype(values.dtype.newbyteorder())) == to_bytes(values)
    if not values.size:
        return
    changed = values.copy()
    index = data.draw(st.integers(0, values.size - 1))
    changed.reshape(-1)[index] = data.draw(arrays.from_dtype(values.dtype))
    equal = np.array_equal(changed, values, equal_nan=values.dtype.kind in "fc")
    if equal and values.dtype.kind in "fc":
        equal = to_bytes(changed.reshape(-1)[index]) == to_bytes(
            values.reshape(-1)[index]
        )  # the sign of zero
    assert (to_bytes(changed) == to_bytes(values)) == equal


@outputs
class Everything:
    """Ports of several kinds."""

    number: float
    vector: np.ndarray
    pose: Pose
    text: str


class Emits(Node):
    """One sample on each port, the number on every second."""

    def process(self, x: float) -> Everything:
        vector = np.array([[x, np.nan]], ">f4")
        number = x if x % 2 else None
        pose = Pose(np.zeros(3), np.array([0, 0, 0, 1.0]), t_ns=7, frame="map")
        return Everything(number, vector, pose, f"x{x:g}")


def labelled(label: bytes, content: bytes) -> bytes:
    return label + struct.pack("<Q", len(content)) + content


def array_bytes(dtype: str, shape: tuple[int, ...], content: bytes) -> bytes:
    return labelled(b"a", f"{dtype}{shape}".encode()) + content


def pose_bytes() -> bytes:
    """The fields of a `Pose`, in their order."""
    position = array_bytes("<f8", (3,), bytes(24))
    orientation = array_bytes("<f8", (4,), struct.pack("<4d", 0, 0, 0, 1))
    time_and_frames = b"i" + struct.pack("<q", 7) + labelled(b"s", b"map") + labelled(b"s", b"")
    return labelled(b"d", b"Pose") + position + orientation + time_and_frames


def test_the_digest_of_a_run_is_sha256_over_the_sorted_ports_of_time_dtype_shape_and_bytes():
    """As DESIGN.md defines it, written down a second time."""
    flow = play(flow_of({"n": Emits}, ["x -> n.x"]), [(1.0, "x", 1.0), (2.0, "x", 2.0)])
    ports = {name: hashlib.sha256() for name in ("n.number", "n.vector", "n.pose", "n.text")}
    for seconds in (1, 2):
        stamp = struct.pack("<q", seconds * 1_000_000_000)
        if seconds == 1:
            ports["n.number"].update(stamp + b"f" + struct.pack("<d", 1.0))
        content = struct.pack("<f", seconds) + bytes.fromhex("0000c07f")
        ports["n.vector"].update(stamp + array_bytes("<f4", (1, 2), content))
        ports["n.pose"].update(stamp + pose_bytes())
        ports["n.text"].update(stamp + labelled(b"s", f"x{seconds}".encode()))
    expected = {name: digest.hexdigest() for name, digest in ports.items()}
    assert flow.port_digests == expected
    whole = hashlib.sha256()
    for name in sorted(expected):
        whole.update(labelled(b"s", name.encode()) + labelled(b"s", expected[name].encode()))
    assert flow.digest == whole.hexdigest()
    assert digest_of_ports(dict(reversed(expected.items()))) == flow.digest
