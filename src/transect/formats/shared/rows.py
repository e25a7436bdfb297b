"""Lines of numbers with comments: trajectories, other plain logs, and files of one line each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.base.clocks import NS, Clock, ns_from_decimal
from transect.base.file_bytes import Content
from transect.base.files import file_name, refuse_existing
from transect.base.units import Unit
from transect.errors import TimeError, UsageError
from transect.recording import Loss, Parsed, Source, Stream, arrow
from transect.recording.source import sha256_bytes
from transect.recording.text import (
    TextPiece,
    Tokens,
    bad_stamp,
    is_number,
    line_pieces,
    scan,
    stamps,
    whole_piece,
)

from .file_heads import first_rows

_HASH, _PERCENT = ord("#"), ord("%")


def read_lines(
    text: Content | TextPiece, file: str, widths: Sequence[int], comments: bool = True
) -> tuple[Tokens, NDArray[np.int64], list[Loss]]:
    """Return the tokens of a text, the lines with only numbers of one of the widths, and the losses.

    With `comments`, lines that start with `#` or `%` are comments; commented-out rows are losses.
    """
    piece = text if isinstance(text, TextPiece) else whole_piece(text, file)
    tokens = scan(piece.data, before=piece.newlines)
    marked = np.isin(tokens.buffer[tokens.begin[tokens.first[:-1]]], (_HASH, _PERCENT))
    fits = np.isin(tokens.counts, widths)
    plain = tokens.word_counts == 0
    struck_out = marked & fits & (tokens.word_counts <= 1)
    comment = marked & ~struck_out & comments
    wanted = " or ".join(str(w) for w in widths)
    losses = [
        *lines_lost(tokens, np.flatnonzero(~comment & ~fits), f"not {wanted} fields", file),
        *lines_lost(tokens, np.flatnonzero(~comment & fits & ~plain), "text where a number should be", file),
    ]
    return tokens, np.flatnonzero(~comment & fits & plain), [*losses, *piece.losses]


class LossCounter:
    """Counts the losses of a file by reason, with the position of the first."""

    def __init__(self) -> None:
        self._first: dict[str, int] = {}
        self._counts: Counter[str] = Counter()

    def add(self, reason: str, place: int, count: int = 1) -> None:
        """Add a loss at a line or byte."""
        self._first.setdefault(reason, place)
        self._counts[reason] += count

    def losses(self, file: str, place: Literal["line", "byte"]) -> tuple[Loss, ...]:
        """Return one loss per reason; `place` is the kind of positions."""
        found = [(reason, {place: self._first[reason]}, count) for reason, count in self._counts.items()]
        return tuple(Loss(file, reason, **where, count=count) for reason, where, count in found)


def parse_timed_rows(
    content: Content, file: str, columns: Sequence[str], units: Mapping[str, str]
) -> Iterator[Parsed]:
    """Parse lines of a time in seconds and one number per column, in pieces."""
    for piece in line_pieces(content, file):
        tokens, lines, losses = read_lines(piece, file, (len(columns) + 1,))
        t_ns, lines, untimed = exact_stamps(tokens, 0, lines, file)
        values = tokens.block(1, len(columns), lines)
        table = arrow.table(t_ns, dict(zip(columns, values.T, strict=True)), units=units)
        yield Parsed(table, (*losses, *untimed))


def lines_lost(tokens: Tokens, lines: NDArray[np.int64], reason: str, file: str) -> list[Loss]:
    """Return the loss of some lines (indices), if there are any."""
    return [Loss(file, reason, line=int(tokens.line[lines[0]]), count=len(lines))] if len(lines) else []


def exact_stamps(
    tokens: Tokens, number: int, lines: NDArray[np.int64], file: str, unit_ns: int = NS
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[Loss]]:
    """Return token `number` of the lines as ns, the lines that have a time, and the loss of the others."""
    t_ns = token_stamps(tokens, tokens.first[lines] + number, unit_ns)
    bad = bad_stamp(t_ns)
    return t_ns[~bad], lines[~bad], lines_lost(tokens, lines[bad], "the time cannot be read", file)


def token_stamps(tokens: Tokens, which: NDArray[np.int64], unit_ns: int = NS) -> NDArray[np.int64]:
    """Return some tokens (indices) as ns; `bad_stamp` marks invalid times.

    Stamps with an exponent (`1.4037e+09`), as written by numpy, are also read by decimal arithmetic.
    """
    begin, end = tokens.begin[which], tokens.end[which]
    t_ns = stamps(tokens.buffer, begin, end, unit_ns)
    for i in np.flatnonzero(bad_stamp(t_ns)):
        t_ns[i] = _with_exponent(tokens.text(int(which[i])), unit_ns, int(t_ns[i]))
    return t_ns


def _with_exponent(text: str, unit_ns: int, otherwise: int) -> int:
    try:
        t_ns = ns_from_decimal(text, unit_ns)
    except TimeError:
        return otherwise
    return t_ns if abs(t_ns) < 2**63 else otherwise


def clock_of(first_ns: float) -> Clock:
    """Return `utc` for times after 1973, else `device`: stamps that count from zero are not UTC."""
    return "utc" if first_ns > 100_000_000 * NS else "device"


def clock_of_head(head: bytes, unit_ns: int = NS) -> Clock:
    """Return the clock of a text from its first time; lines start with times of `unit_ns`."""
    for row in first_rows(head):
        if is_number(row[0]):
            return clock_of(float(row[0]) * unit_ns)
    return "device"


def text_rows(columns: Sequence[Sequence[str]], separator: str = " ") -> bytes:
    """Return columns of text as lines."""
    return "".join(separator.join(row) + "\n" for row in zip(*columns, strict=True)).encode()


def float_texts(values: NDArray[np.float64]) -> list[str]:
    """Return floats as the shortest text with the same value."""
    return [repr(v) for v in values.tolist()]


def invert(forward: Callable[..., Any], values: Floats, guess: Floats, *arguments: NDArray[Any]) -> Floats:
    """Return numbers that `forward` converts to exactly `values`, with few decimals if possible.

    The conversion of a reader (degrees to radians) rounds, so that its inverse in floating point may not
    reproduce the values, although a suitable number exists if the values were read from a file.

    Parameters
    ----------
    forward : callable
        Conversion of the reader.
    values : (n,) array
        Converted numbers.
    guess : (n,) array
        Inverse in floating point, kept if no number close to it is exact.
    arguments : (n,) arrays
        Further arguments of `forward`.
    """
    result, missing = guess.copy(), np.flatnonzero(np.isfinite(guess))
    with np.errstate(all="ignore"):
        for candidate in _near(guess):
            found = forward(candidate[missing], *(part[missing] for part in arguments)) == values[missing]
            result[missing[found]] = candidate[missing[found]]
            missing = missing[~found]
            if not len(missing):
                break
    return result


def from_si_exactly(values: Floats, unit: Unit) -> Floats:
    """Return numbers in a unit whose conversion to SI is exactly `values`; see `invert`."""
    return invert(unit.to_si, values, unit.from_si(values))


def _near(guess: Floats) -> Iterator[Floats]:
    """Yield an array rounded to decimals, unchanged, and with its last bits changed."""
    for decimals in (0, 2, 4, 6, 9, 12):
        yield np.round(guess, decimals)
    yield guess
    above = below = guess
    for _ in range(3):
        above, below = np.nextafter(above, np.inf), np.nextafter(below, -np.inf)
        yield above
        yield below


def column_or_nan(stream: Stream, name: str) -> NDArray[np.float64]:
    """Return a column as floats; NaN if the stream does not have it."""
    known = name in stream.columns
    return np.asarray(stream.column(name), np.float64) if known else np.full(len(stream), np.nan)


def only_file(source: Source) -> str:
    """Return the name of the only file of a source; raise if there are several or none."""
    if len(source.names) != 1:
        raise UsageError(
            f"{source.path} is not one file",
            why=f"it holds {len(source.names)} files",
            hint="name the one that is meant",
        )
    return source.names[0]


def new_file(path: Path, name: str) -> Path:
    """Return the file to write: the path if it has a suffix, else `name` in that folder."""
    file = path if path.suffix and not path.is_dir() else path / file_name(name)
    refuse_existing(file)
    return file


MAX_PACKET_BYTES = 1 << 16
"""Upper limit of the size of a packet file."""


@dataclass(frozen=True, eq=False)
class Packets:
    """The packets of one sensor."""

    t_ns: NDArray[np.int64]  # (n,) int64
    values: NDArray[np.float64]  # (n, width), as in the files
    losses: tuple[Loss, ...] = ()
    notes: tuple[str, ...] = ()

    def columns(self, names: Iterable[str]) -> dict[str, NDArray[np.float64]]:
        """Return the values by name, in the order of the file."""
        return dict(zip(names, np.ascontiguousarray(self.values.T), strict=True))


def read_packets(source: Source, files: Sequence[str], times: Sequence[int], width: int) -> Packets:
    """Read files of `width` numbers separated by blanks or commas, with times in ns; others are losses."""
    t_ns: list[int] = []
    rows: list[list[float]] = []
    losses: list[Loss] = []
    for name, time in zip(files, times, strict=True):
        data = source.read(name) if source.size(name) <= MAX_PACKET_BYTES else b""
        source.record_read(name, sha256_bytes(data) if data else None)
        tokens = data.replace(b",", b" ").split()
        if len(tokens) != width or not all(is_number(token) for token in tokens):
            losses.append(Loss(name, f"it does not hold {width} numbers"))
            continue
        t_ns.append(time)
        rows.append([float(token) for token in tokens])
    return Packets(np.array(t_ns, np.int64), np.array(rows, float).reshape(-1, width), _count(losses))


def one_unit(streams: Sequence[Stream]) -> dict[type, Stream]:
    """Choose the streams of one device: the first of each type with the times of the first."""
    chosen: dict[type, Stream] = {}
    for stream in streams:
        like = next(iter(chosen.values()), stream)
        if stream.type not in chosen and np.array_equal(stream.t_ns, like.t_ns):
            chosen[stream.type] = stream
    return chosen


def _count(losses: list[Loss]) -> tuple[Loss, ...]:
    """Return one loss with the first file and the count."""
    return (Loss(losses[0].file, losses[0].reason, count=len(losses)),) if losses else ()
