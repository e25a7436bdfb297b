"""A walk through MessagePack bytes that takes only the memory it was granted.

MessagePack makes large things of small ones: 20 MB of empty maps become 1.4 GB of Python objects. Values that
are not needed are therefore passed without building them, and those that are built are counted meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MAX_ELEMENTS = 2_000_000
"""Elements of maps and lists that one value may have in all, at most about 150 MB of them."""
MAX_LIST = 1 << 20
"""Elements of one list; images and clouds are longer, but they are passed and decoded as arrays."""
MAX_TEXT = 1 << 24
"""Bytes of one text."""
MAX_SKIPPED = 1 << 27
"""Longest text or block of bytes, in bytes, that can be passed."""
SMALL = 1 << 16
"""Bytes of a value that is built without counting: at most 5 MB."""
READ_SIZE = 1 << 16
_PLAIN: dict[str, Any] = {"use_list": False, "strict_map_key": False, "unicode_errors": "replace"}
_LIMITS = {
    "max_array_len": MAX_LIST,
    "max_map_len": MAX_LIST,
    **dict.fromkeys(("max_str_len", "max_bin_len", "max_ext_len"), MAX_TEXT),
}


class Cut(Exception):
    """The bytes end inside a value; never leaves the readers."""


class Broken(Exception):
    """The bytes are no MessagePack, or more than is granted; never leaves the readers."""


class _Reader:
    """The bytes from a place on, as the file that the unpacker wants."""

    def __init__(self, view: memoryview, start: int) -> None:
        self.view, self.at = view, start

    def read(self, count: int) -> bytes:
        data = bytes(self.view[self.at : self.at + count])
        self.at += len(data)
        return data


class Cursor:
    """Reads one value after another from a place in a buffer.

    Every method raises Cut or Broken where it cannot; `at` is undefined after that, but for `value` with
    Broken, after which it is the next value.
    """

    def __init__(self, view: memoryview, start: int = 0) -> None:
        import msgpack

        self._view, self._start = view, start
        self._cut: type[Exception] = msgpack.OutOfData
        self._unpack: Callable[..., Any] = msgpack.unpackb
        self._unpacker = msgpack.Unpacker(
            _Reader(view, start), read_size=READ_SIZE, max_buffer_size=MAX_SKIPPED, **_PLAIN
        )

    @property
    def at(self) -> int:
        """Byte at which the next value begins."""
        return self._start + self._unpacker.tell()

    def value(self) -> Any:
        """Build the next value: maps are dicts, lists are tuples."""
        start = self.at
        self.skip()
        data = self._view[start : self.at]
        if len(data) <= SMALL:
            return self._read(self._unpack, data, **_PLAIN)
        budget = _Budget()
        return self._read(
            self._unpack, data, object_pairs_hook=budget.map, list_hook=budget.list, **_PLAIN, **_LIMITS
        )

    def skip(self) -> None:
        """Pass the next value."""
        self._read(self._unpacker.skip)

    def list_length(self) -> int:
        """Enter a list; return how many values follow."""
        return self._read(self._unpacker.read_array_header)

    def map_length(self) -> int:
        """Enter a map; return how many pairs of key and value follow."""
        return self._read(self._unpacker.read_map_header)

    def _read(self, step: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        try:
            return step(*arguments, **options)
        except self._cut:
            raise Cut from None
        except (ValueError, TypeError, OverflowError, MemoryError, BufferError) as error:
            raise Broken(_reason(error)) from error


class _Budget:
    """Counts the elements of a large value while it is built, and stops it in time."""

    def __init__(self) -> None:
        self.left = MAX_ELEMENTS

    def map(self, pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
        self._count(len(pairs))
        return dict(pairs)

    def list(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        self._count(len(values))
        return values

    def _count(self, elements: int) -> None:
        self.left -= elements + 1
        if self.left < 0:
            raise ValueError(f"a value of more than {MAX_ELEMENTS} elements")


def _reason(error: Exception) -> str:
    known = {
        "FormatError": "a byte that begins no MessagePack value",
        "StackError": "values nested too deeply",
        "BufferFull": f"a value of more than {MAX_SKIPPED} bytes",
        "TypeError": "a key that is no text",
    }
    return known.get(type(error).__name__) or str(error) or type(error).__name__


def end_of(view: memoryview, start: int) -> int:
    """Return where the value that begins at `start` ends."""
    cursor = Cursor(view, start)
    cursor.skip()
    return cursor.at
