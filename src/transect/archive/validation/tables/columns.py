"""Columns of text: where each value begins and ends in the bytes of a file, looked at all at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Bytes, Floats, Ints, Mask
from transect.recording.arrow import from_numpy, offsets_of

BLANK = np.zeros(256, bool)
BLANK[[9, 10, 11, 12, 13, 32]] = True
QUOTE = 0x22


@dataclass(frozen=True)
class Column:
    """The values of one field."""

    data: Bytes  # (bytes,) the file, or the part of it that holds the table
    # (rows,) first byte of each value, and the one after its last
    starts: Ints
    ends: Ints

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def lengths(self) -> Ints:
        """Bytes of each value."""
        return self.ends - self.starts

    def text(self, row: int) -> str:
        """Return one value, as people are shown it."""
        return self.data[self.starts[row] : self.ends[row]].tobytes().decode("utf-8", "replace")

    def trimmed(self) -> Column:
        """Return the values without blanks around them."""
        starts, ends = self.starts.copy(), self.ends.copy()
        rows = np.flatnonzero((ends > starts) & BLANK[self.data[np.minimum(starts, len(self.data) - 1)]])
        while rows.size:
            starts[rows] += 1
            rows = rows[starts[rows] < ends[rows]]
            rows = rows[BLANK[self.data[starts[rows]]]]
        rows = np.flatnonzero((ends > starts) & BLANK[self.data[ends - 1]])
        while rows.size:
            ends[rows] -= 1
            rows = rows[starts[rows] < ends[rows]]
            rows = rows[BLANK[self.data[ends[rows] - 1]]]
        return Column(self.data, starts, ends)

    def unquoted(self) -> tuple[Column, Mask]:
        """Return the values without the quotation marks around them, and which had them."""
        long = self.lengths >= 2
        first = self.data[np.minimum(self.starts, len(self.data) - 1)] == QUOTE
        quoted = long & first & (self.data[self.ends - 1] == QUOTE)
        return Column(self.data, self.starts + quoted, self.ends - quoted), quoted

    def where(self, rows: Mask) -> Column:
        """Return some of the values."""
        return Column(self.data, self.starts[rows], self.ends[rows])

    def strings(self) -> Any:
        """Return an Arrow array of bytes, one value after the other."""
        import pyarrow as pa

        lengths = self.lengths
        offsets = offsets_of(lengths)
        places = np.arange(offsets[-1]) + np.repeat(self.starts - offsets[:-1], lengths)
        flat = np.ascontiguousarray(self.data[places])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(flat)]
        return pa.Array.from_buffers(pa.large_binary(), len(lengths), buffers)


def matches(strings: Any, pattern: str) -> Mask:
    """Return which values a pattern describes from their first to their last byte."""
    import pyarrow.compute as pc

    found: Any = pc.match_substring_regex(strings, pattern=rf"\A(?:{pattern})\z")  # pyright: ignore[reportAttributeAccessIssue]
    bits = np.frombuffer(found.buffers()[1], np.uint8)
    return np.unpackbits(bits, bitorder="little")[found.offset : found.offset + len(found)].astype(bool)


def numbers(strings: Any) -> tuple[Floats, Mask]:
    """Return values as numbers, NaN for what is none, and which are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    real = matches(strings, REAL)
    values = np.full(len(strings), np.nan)
    if real.any():
        some = strings if real.all() else strings.filter(from_numpy(real))
        text = some.cast(pa.large_string())
        bare: Any = pc.utf8_ltrim(text, characters="+")  # pyright: ignore[reportAttributeAccessIssue]
        parsed = bare.cast(pa.float64())
        values[real] = np.frombuffer(parsed.buffers()[1], np.float64)[
            parsed.offset : parsed.offset + len(parsed)
        ]
    return values, real


REAL = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[Ee][+-]?[0-9]+)?"
