"""Status and history text of the IDA, written as SIS 5.1.1 and 5.1.2 print it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from transect.base.clocks import decimal_from_ns

from .keys import Key, StatusText
from .status import EXTRA, INDEX, POINT
from .text import bracketed, shortest

Row = Mapping[str, Any]


def status_lines(kind: StatusText, row: Row) -> Iterator[str]:
    """Yield the lines of one status; keys without a value are left out.

    Parameters
    ----------
    kind : StatusText
    row : mapping
        Columns as `parse_status` makes them, with the joint angles as `jnt_enc` and `jnt_pot`.
    """
    for key in kind.keys:
        if key.name == "time":
            for name in sorted(name for name in row if name.startswith(EXTRA) and row[name]):
                yield _line(kind, name.removeprefix(EXTRA), row[name])
        text = _text(key, {**row, "time_ns": row["t_ns"]})
        if text is not None:
            yield _line(kind, key.name, text)


def _line(kind: StatusText, name: str, value: str) -> str:
    return f"{kind.prefix}.{name}".ljust(kind.width) + f" = {value}"


def _text(key: Key, row: Row) -> str | None:
    value = row.get(key.column)
    if key.form == "code":
        number = "" if value is None else str(value)
        return f"{number} {row.get(f'{key.column}_text') or ''}".strip() or None
    if value is None or value == "":
        return None
    if key.form == "text":
        return str(value)
    if key.form == "time":
        return decimal_from_ns(value, _time_digits(value, key.digits or 1))
    values = value if isinstance(value, list) else [value]
    if all(number is None or math.isnan(number) for number in values):
        return None
    words = [_word(key, number) for number in values]
    return bracketed(words) if key.size > 1 else words[0]


def _word(key: Key, number: float) -> str:
    if key.form == "hex":
        return f"{int(number):X}"
    if key.form == "int":
        return str(int(number))
    printed = number / key.scale
    return f"{printed:.{key.digits}f}" if key.digits is not None else shortest(round(printed, 6))


def _time_digits(t_ns: int, least: int) -> int:
    """Return how many decimals of a second hold a time exactly, at least those of the format."""
    return next(digits for digits in range(least, 10) if t_ns % 10 ** (9 - digits) == 0)


def status_text(statuses: Sequence[tuple[StatusText, Row]]) -> str:
    """Return a status file of some blocks, in their order."""
    blocks = ["\n".join(status_lines(kind, row)) + "\n" for kind, row in statuses]
    return "\n".join(blocks)


def history_text(statuses: Sequence[tuple[StatusText, Row]]) -> str:
    """Return a history file: blocks of one point stand under its heading, the oldest first."""
    lines: list[str] = []
    heading = ""
    for kind, row in sorted(statuses, key=lambda item: -item[1][POINT]):
        wanted = f"{row[POINT]} points before latest (index = {row[INDEX]}):"
        if wanted != heading:
            lines += ["", wanted] if lines else [wanted]
            heading = wanted
        lines += status_lines(kind, row)
    return "\n".join(lines) + "\n"
