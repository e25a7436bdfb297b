"""Canonical bytes of values of any type, from which digests of runs are made and runs compared.

Per sample time, dtype, shape and bytes; every NaN has the same bits. One hash per port, and the digest of a
run is the hash of the sorted (port, hash): how ports interleave does not matter.
"""

from __future__ import annotations

import dataclasses
import hashlib
import struct
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base import clocks
from transect.errors import TransectError, UnsupportedError

Encoder = Callable[[Any], bytes]
Buffer = bytes | memoryview
_NUMBER, _STAMPED_NUMBER = struct.Struct("<cd"), struct.Struct("<qcd")
_INT64_LIMIT = 1 << 63
NAN = float("nan")
"""The one whose bits stand for all."""
LARGE_SAMPLE_BYTES = 1 << 16
"""Bytes of a sample from which on its port is hashed on another thread: an image takes a millisecond."""
MOST_WAITING = 8
"""Large samples of a port that may wait to be hashed, which bounds the memory."""


@cache
def _hashing_thread() -> ThreadPoolExecutor:
    """Return the thread that hashes large samples of all ports, each port's in their order."""
    return ThreadPoolExecutor(1, "hashing")


class PortDigest:
    """Hashes what a port emits, and remembers a checksum of every sample so that runs can be compared.

    Once a sample was large, all that follow are hashed on another thread, in the same order: the hash is the
    same.

    Attributes
    ----------
    times : array
        Of every sample, ns.
    """

    def __init__(self, kind: type, idle: bool = False) -> None:
        self._hash = hashlib.sha256()
        self._encode: Encoder = to_bytes
        self.times, self._checks = array("q"), array("I")
        self._large, self._waiting = False, deque[Future[None]]()
        self.update: Callable[[int, Any], None] = self._numbers() if kind is float else self._any
        if idle:
            self.update = _leave

    def _numbers(self) -> Callable[[int, Any], None]:
        """As `_any`, faster, for ports of floats."""
        pack, timed, checked = _STAMPED_NUMBER.pack, self.times.append, self._checks.append

        def update(t_ns: int, value: Any) -> None:
            data = pack(t_ns, b"f", value if value == value else NAN)
            self._hash.update(data)
            timed(t_ns)
            checked(crc32(data))

        return update

    def _any(self, t_ns: int, value: Any) -> None:
        stamp = t_ns.to_bytes(8, "little", signed=True)
        if not self._large:
            data = stamp + self._encode(value)
            self._large = len(data) >= LARGE_SAMPLE_BYTES
            self.times.append(t_ns)
            self._take([data])
            return
        pieces = _join_small([stamp, *_pieces(value)])
        self.times.append(t_ns)
        if len(self._waiting) == MOST_WAITING:
            self._waiting.popleft().result()
        self._waiting.append(_hashing_thread().submit(self._take, pieces))

    def _take(self, pieces: Iterable[Buffer]) -> None:
        check = 0
        for piece in pieces:
            self._hash.update(piece)
            check = crc32(piece, check)
        self._checks.append(check)

    def _settle(self) -> None:
        """Wait until every sample is hashed."""
        while self._waiting:
            self._waiting.popleft().result()

    @property
    def checks(self) -> array[int]:
        """The crc32 of the bytes of every sample."""
        self._settle()
        return self._checks

    @property
    def hexdigest(self) -> str:
        """The hash of everything so far."""
        self._settle()
        return self._hash.hexdigest()

    def freeze(self) -> tuple[Any, int]:
        """Return its state: the hash so far, and how many samples it has seen."""
        self._settle()
        return self._hash.copy(), len(self.times)

    def thaw(self, state: tuple[Any, int]) -> None:
        """Take back a state that this digest, or one with the same first samples, was in."""
        hashed, count = state
        self._settle()
        self._hash = hashed.copy()
        del self.times[count:], self._checks[count:]


def _leave(t_ns: int, value: Any) -> None:
    """Hash nothing."""


def digest_of_ports(ports: Mapping[str, str]) -> str:
    """Return the digest of a run from the hash of each of its ports."""
    digest = hashlib.sha256()
    for name in sorted(ports):
        digest.update(to_bytes(name) + to_bytes(ports[name]))
    return digest.hexdigest()


def to_bytes(value: Any) -> bytes:
    """Return the bytes of a value.

    Takes None, bool, int, float, str, bytes, numpy arrays and scalars, lists, tuples, mappings, Arrow tables,
    and dataclasses of these.
    """
    return _encoder(value.__class__)(value)


@cache
def _encoder(kind: type) -> Encoder:
    """Return how values of a class become bytes; looked up once per class."""
    for known, encode in _ENCODERS:
        if issubclass(kind, known):
            return encode
    if dataclasses.is_dataclass(kind):
        return _fields_encoder(kind)
    raise UnsupportedError(
        f"a {kind.__name__} cannot be hashed",
        why="a run's digest is made of the bytes of everything that ports carry",
        hint="carry numbers, text, numpy arrays, or a dataclass of these",
    )


def _fields_encoder(kind: type) -> Encoder:
    head, names = _fields(kind)

    def encode(value: Any) -> bytes:
        return head + b"".join([to_bytes(getattr(value, name)) for name in names])

    return encode


@cache
def _fields(kind: type) -> tuple[bytes, list[str]]:
    """Return what stands before the fields of a dataclass, and their names."""
    return _label(b"d", kind.__name__.encode()), [field.name for field in dataclasses.fields(kind)]


def _pieces(value: Any) -> Iterator[Buffer]:
    """Yield the bytes of `to_bytes` in pieces, so that an image is copied once only, or not at all."""
    kind = value.__class__
    if kind is np.ndarray:
        yield from _array_pieces(value)
    elif _has_fields(kind):
        head, names = _fields(kind)
        yield head
        for name in names:
            yield from _pieces(getattr(value, name))
    else:
        yield _encoder(kind)(value)


def _join_small(pieces: Iterable[Buffer]) -> list[Buffer]:
    """Return the same bytes in fewer pieces: between two of them the hashing thread waits for its turn."""
    joined: list[Buffer] = [b""]
    for piece in pieces:
        if len(piece) >= LARGE_SAMPLE_BYTES or len(joined[-1]) >= LARGE_SAMPLE_BYTES:
            joined.append(piece)
        else:
            joined[-1] = b"".join((joined[-1], piece))
    return joined


@cache
def _has_fields(kind: type) -> bool:
    """Return whether values of a class are hashed field by field."""
    return dataclasses.is_dataclass(kind) and not issubclass(kind, _KNOWN)


def _label(label: bytes, content: bytes) -> bytes:
    return label + len(content).to_bytes(8, "little") + content


def _float(value: float) -> bytes:
    return _NUMBER.pack(b"f", value if value == value else NAN)


def _int(value: int) -> bytes:
    if -_INT64_LIMIT <= value < _INT64_LIMIT:
        return b"i" + value.to_bytes(8, "little", signed=True)
    return _label(b"I", str(value).encode())


def _array(value: Any) -> bytes:
    return b"".join(_array_pieces(value))


def _array_pieces(value: Any) -> tuple[Buffer, ...]:
    """dtype, shape and bytes of an array or numpy scalar, little-endian and C-contiguous.

    Large arrays that nobody can write to, as images that are played, are not copied.
    """
    values: NDArray[Any] = np.asarray(value)
    stays = values.nbytes >= LARGE_SAMPLE_BYTES and values.base is None and not values.flags.writeable
    if values.dtype.hasobject:
        return (_sequence(values.tolist()),)
    if values.dtype.names:  # field by field: what lies between them in memory is nobody's
        return (_sequence((name, values[name]) for name in values.dtype.names),)
    values = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    if values.dtype.kind in "fc" and np.isnan(values).any():
        values = np.where(np.isnan(values), np.asarray(NAN, values.dtype), values)
    return _array_label(values.dtype, np.shape(value)), values.ravel().data if stays else values.tobytes()


@cache
def _array_label(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    return _label(b"a", f"{dtype.str}{shape}".encode())


def _sequence(value: Iterable[Any]) -> bytes:
    parts = [to_bytes(item) for item in value]
    return b"l" + len(parts).to_bytes(8, "little") + b"".join(parts)


def _mapping(value: Mapping[Any, Any]) -> bytes:
    """Items in the order of their keys' bytes, never in the order of insertion."""
    items = sorted((to_bytes(key), to_bytes(item)) for key, item in value.items())
    return b"m" + len(items).to_bytes(8, "little") + b"".join(key + item for key, item in items)


def _table(value: pa.Table) -> bytes:
    columns = zip(value.column_names, value.schema.types, value.columns, strict=True)
    return _mapping({name: (str(kind), column.to_pylist()) for name, kind, column in columns})


_ENCODERS: tuple[tuple[type, Encoder], ...] = (
    (type(None), lambda value: b"N"),
    (bool, lambda value: b"b1" if value else b"b0"),
    (np.generic, _array),  # before float: numpy's float64 is one
    (float, _float),
    (int, _int),
    (str, lambda value: _label(b"s", value.encode("utf-8", "surrogatepass"))),
    (bytes, lambda value: _label(b"y", value)),
    (np.ndarray, _array),
    (pa.Table, _table),
    (Mapping, _mapping),
    (list, _sequence),
    (tuple, _sequence),
)
_KNOWN = tuple(kind for kind, _ in _ENCODERS)


@dataclass(frozen=True)
class Trace:
    """Time and checksum of every sample that a port emitted."""

    times: array[int]
    checks: array[int]

    def __len__(self) -> int:
        return len(self.times)


@dataclass(frozen=True)
class PortDifference:
    """How a port differs between two runs."""

    port: str
    # Time of the first sample that differs; None where the port is in one of the runs only
    first_ns: int | None
    samples: tuple[int, int]  # in this run and the other
    differing: int  # how many of the samples that both have differ


@dataclass(frozen=True)
class Difference:
    """What differs between two runs; false if nothing does.

    `str` says which port differed first, and when.
    """

    ports: tuple[PortDifference, ...]  # the first to differ first; those that are equal are left out
    equal: tuple[str, ...]  # ports with the same samples
    # By name of a setting, parameter, version or input: its value in this run and in the other
    settings: Mapping[str, tuple[Any, Any]] = field(default_factory=dict[str, tuple[Any, Any]])
    clock: str = "utc"

    def __bool__(self) -> bool:
        return bool(self.ports)

    @property
    def first(self) -> PortDifference | None:
        """The port that differed first."""
        return self.ports[0] if self.ports else None

    def __str__(self) -> str:
        equal, differ = len(self.equal), len(self.ports)
        lines = [f"{equal} port{'s' * (equal != 1)} equal, {differ} differ{'s' * (differ == 1)}"]
        lines += [self._line(port) for port in self.ports]
        if self.settings:
            lines.append("what was not the same:")
            lines += [f"  {name}: {here!r}, other {there!r}" for name, (here, there) in self.settings.items()]
        return "\n".join(lines)

    def place(self, port: PortDifference) -> str:
        """Return a port, and the time since when it differs where there is one."""
        if port.first_ns is None:
            return port.port
        return f"{port.port}@{clocks.text_from_ns(port.first_ns, self.clock)} ({port.first_ns} ns)"

    def _line(self, port: PortDifference) -> str:
        own, other = port.samples
        if port.first_ns is None:
            return f"  {port.port}: {own} samples, other {other}"
        when = clocks.text_from_ns(port.first_ns, self.clock)
        return f"  {port.port}: from {when} on; {port.differing} samples differ ({own}, other {other})"


class RunsDifferError(TransectError):
    """Two runs that should be the same are not; `difference` says how."""

    exit_code = 4

    def __init__(self, difference: Difference, golden: str) -> None:
        first = difference.first
        assert first is not None
        super().__init__(
            f"the run is not the same as {golden}: {first.port} differs first",
            where=difference.place(first),
            why=str(difference).replace("\n", "\n         "),
        )
        self.difference = difference


def difference(
    here: Mapping[str, Trace], there: Mapping[str, Trace], settings: Mapping[str, tuple[Any, Any]], clock: str
) -> Difference:
    """Compare the traces of two runs port by port.

    Of ports that differ since the same time, upstream ports come first.
    """
    found: list[PortDifference] = []
    equal: list[str] = []
    none = Trace(array("q"), array("I"))
    for port in dict.fromkeys([*here, *there]):
        one = _compare(port, here.get(port, none), there.get(port, none))
        if one is None and port in here and port in there:
            equal.append(port)
        else:
            found.append(
                one or PortDifference(port, None, (len(here.get(port, none)), len(there.get(port, none))), 0)
            )
    found.sort(key=lambda d: (d.first_ns is None, d.first_ns or 0))
    return Difference(tuple(found), tuple(equal), settings, clock)


def _compare(port: str, own: Trace, other: Trace) -> PortDifference | None:
    common = min(len(own), len(other))
    times = [np.array(trace.times, np.int64) for trace in (own, other)]
    checks = [np.array(trace.checks, np.uint64) for trace in (own, other)]
    unequal = (times[0][:common] != times[1][:common]) | (checks[0][:common] != checks[1][:common])
    if not unequal.any() and len(own) == len(other):
        return None
    first = int(np.argmax(unequal)) if unequal.any() else common
    stamps = [int(t[first]) for t in times if first < len(t)]
    return PortDifference(port, min(stamps), (len(own), len(other)), int(unequal.sum()))


def settings_that_differ(here: Mapping[str, Any], there: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the settings that differ between two configurations, by dotted name."""
    one, other = _flatten(here), _flatten(there)
    names = [name for name in sorted({*one, *other}) if one.get(name) != other.get(name)]
    return {name: (one.get(name), other.get(name)) for name in names}


def _flatten(values: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(values, Mapping):
        return {prefix: values}
    flat: dict[str, Any] = {}
    for key, value in values.items():  # pyright: ignore[reportUnknownVariableType]
        flat.update(_flatten(value, f"{prefix}.{key}" if prefix else str(key)))  # pyright: ignore[reportUnknownArgumentType]
    return flat
