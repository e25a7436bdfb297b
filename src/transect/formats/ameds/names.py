"""Times out of file names such as `MainCam_1657013071.123456.jpg`, tens of thousands at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from transect.base.clocks import NS
from transect.recording import Loss, Parsed

from .._images import file_table, stamps_of_names

_STAMP = r"(?P<s>\d{1,11})(?:[._,-](?P<f>\d+))?"
_WHOLE_UNITS = {10: NS, 13: 10**6, 16: 10**3, 19: 1}
"""Digits of a stamp without a decimal point, and what one of them counts in ns: s, ms, us or ns."""


def stamped_table(names: Sequence[str], prefix: str) -> Parsed:
    """Return the table of a payload stream from its files' names, in time order.

    Parameters
    ----------
    names : sequence of str
        `<prefix><unix seconds>.<suffix>`.
    prefix : str
        What stands before the stamp, folder included.
    """
    by_length: dict[int, list[str]] = {}
    for name in names:
        by_length.setdefault(len(name), []).append(name)
    times: list[NDArray[np.int64]] = []
    files: list[str] = []
    others: list[str] = []
    for alike in by_length.values():
        t_ns = _equal_names(alike, len(prefix))
        if t_ns is None:
            found, alike, bad = stamps_of_names(alike, rf"{_base(prefix)}{_STAMP}\.\w+")
            t_ns = np.array(found, dtype=np.int64)
            others += bad
        times.append(t_ns)
        files += alike
    t_ns = np.concatenate(times) if times else np.zeros(0, np.int64)
    order = np.argsort(t_ns, kind="stable")
    losses = (Loss(others[0], "no unix time in the file's name", count=len(others)),) if others else ()
    return Parsed(file_table(t_ns[order], [files[i] for i in order.tolist()]), losses)


def _base(prefix: str) -> str:
    return prefix.rpartition("/")[2]


def _equal_names(names: Sequence[str], start: int) -> NDArray[np.int64] | None:
    """Return the times of names that differ only in the digits of their stamps; None if they do not."""
    length = len(names[0])
    end = names[0].rfind(".")
    whole, _, fraction = names[0][start:end].replace("_", ".").partition(".")
    if (
        not (whole + fraction).isdecimal()
        or len(fraction) > 9
        or (len(whole) > 11 and len(whole) not in _WHOLE_UNITS)
    ):
        return None
    try:
        letters = np.frombuffer("".join(names).encode("ascii"), np.uint8).reshape(-1, length)
    except UnicodeEncodeError:
        return None
    digits = [*range(start, start + len(whole)), *range(start + len(whole) + 1, end)]
    numbers = letters[:, digits] - np.uint8(ord("0"))
    rest = np.delete(np.arange(length), digits)
    if (numbers > 9).any() or (letters[:, rest] != letters[0, rest]).any():
        return None
    unit = NS // 10 ** len(fraction) if fraction or len(whole) <= 11 else _WHOLE_UNITS[len(whole)]
    value = np.zeros(len(names), np.int64)
    for column in range(len(digits)):
        value = value * 10 + numbers[:, column]
    return value * unit
