"""Lines of numbers with comments among them: trajectories and other plain logs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from transect.errors import TimeError
from transect.recording import Loss
from transect.recording.clocks import NS, Clock, ns_from_decimal
from transect.recording.source import Buffer

from ._lines import whole_lines
from ._scan import Tokens, bad_stamp, scan

_HASH, _PERCENT = ord("#"), ord("%")


def number_lines(head: bytes, width: int) -> bool:
    """Tell whether the first lines of a text, comments aside, are all `width` numbers."""
    whole = head.rpartition(b"\n")[0] if b"\n" in head else head
    lines = [
        line for line in whole.split(b"\n") if line.strip() and not line.lstrip().startswith((b"#", b"%"))
    ]
    rows = [line.replace(b",", b" ").split() for line in lines[:50]]
    return bool(rows) and all(len(row) == width and all(_is_number(t) for t in row) for row in rows)


def _is_number(token: bytes) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return True


def read_lines(
    buffer: Buffer, file: str, widths: Sequence[int]
) -> tuple[Tokens, NDArray[np.int64], list[Loss]]:
    """Return the tokens of a text, which lines are all numbers of one of the widths, and what is lost.

    Lines that begin with `#` or `%` are comments.
    """
    size, cut = whole_lines(buffer, file)
    tokens = scan(buffer, size)
    comment = np.isin(tokens.buffer[tokens.begin[tokens.first[:-1]]], (_HASH, _PERCENT))
    words = np.add.reduceat(tokens.is_word, tokens.first[:-1]) if len(tokens.line) else np.zeros(0, int)
    fits = np.isin(tokens.counts, widths)
    good = ~comment & fits & (words == 0)
    losses = [cut] if cut else []
    wanted = " or ".join(str(w) for w in widths)
    for mask, reason in (
        (~comment & ~fits, f"not {wanted} fields"),
        (~comment & fits & (words > 0), "text where a number should be"),
    ):
        if mask.any():
            losses.append(Loss(file, reason, line=int(tokens.line[mask][0]), count=int(mask.sum())))
    return tokens, np.flatnonzero(good), losses


def exact_stamps(
    tokens: Tokens, number: int, lines: NDArray[np.int64], file: str, unit_ns: int = NS
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[Loss]]:
    """Return token `number` of the lines as ns, the lines that have a time, and the loss of the others.

    Stamps with an exponent (`1.4037e+09`), as numpy writes them, are read by decimal arithmetic too.
    """
    t_ns = tokens.stamps(number, lines, unit_ns)
    for i in np.flatnonzero(bad_stamp(t_ns)):
        t_ns[i] = _with_exponent(tokens.text(int(tokens.first[lines[i]]) + number), unit_ns, int(t_ns[i]))
    bad = bad_stamp(t_ns)
    losses: list[Loss] = []
    if bad.any():
        losses.append(
            Loss(file, "the time cannot be read", line=int(tokens.line[lines[bad]][0]), count=int(bad.sum()))
        )
    return t_ns[~bad], lines[~bad], losses


def _with_exponent(text: str, unit_ns: int, otherwise: int) -> int:
    try:
        t_ns = ns_from_decimal(text, unit_ns)
    except TimeError:
        return otherwise
    return t_ns if abs(t_ns) < 2**63 else otherwise


def clock_of(first_ns: int) -> Clock:
    """Return `utc` for times after 1973, else `device`: stamps that count from zero are not UTC."""
    return "utc" if first_ns > 100_000_000 * NS else "device"


def text_rows(columns: Sequence[Sequence[str]], separator: str = " ") -> bytes:
    """Return columns of text as lines."""
    return "".join(separator.join(row) + "\n" for row in zip(*columns, strict=True)).encode()


def float_texts(values: NDArray[np.float64]) -> list[str]:
    """Return floats as the shortest text that reads back the same."""
    return [repr(v) for v in values.tolist()]
