"""Grouping of files by sensor, with times from their names, and stereo pairs.

The files of a sensor are in one folder and have the same name except for a number at its start or end. The
number is the time if it can be Unix time in s, ms, us or ns; else it is the index on the `index` clock, where
sample i has the time i seconds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.clocks import NS, Clock
from transect.errors import ParseError
from transect.recording import Loss, Parsed, arrow
from transect.recording.arrow import PAYLOAD

_LEADING = re.compile(r"(?P<number>\d+(?:\.\d+)?)[._-](?P<label>.*)")
_DIGITS = "0123456789"
_SEPARATORS = (".", "_", "-")
_UNIX_SECONDS_DIGITS = 10
"""Digits of unix time in seconds."""
_UNIX_DIGITS = {10: NS, 13: 10**6, 16: 10**3, 19: 1}
"""Unit in ns of present Unix times by their number of digits: s, ms, us and ns."""
_PAIRS = (("left", "right"), ("Left", "Right"), ("LEFT", "RIGHT"), ("cam0", "cam1"), ("image_0", "image_1"))
_ENDINGS = (
    ("L", "R"),
    ("_l", "_r"),
    ("image_2", "image_3"),
    ("im2", "im6"),
    ("view1", "view5"),
    ("im0", "im1"),
)
_NUMBERED_VIEWS = {"im": ({"2", "6"}, {"0", "1"}), "view": ({"1", "5"},), "disp": ({"2", "6"}, {"1", "5"})}
Key = tuple[str, str, str]
_MAX_INDEX = 2**63 // NS - 1


@dataclass(frozen=True)
class FileGroup:
    """The files of one sensor."""

    name: str  # Name of the stream
    files: tuple[str, ...]  # In order of time or number
    t_ns: tuple[int, ...]
    clock: Clock
    tag: str = ""  # `left`, `right` or nothing


@dataclass(frozen=True)
class _FileName:
    name: str
    folder: str
    label: str
    number: str
    suffix: str


def group_files(files: Sequence[str], default: str) -> list[FileGroup]:
    """Group files (names in a Source) by sensor, in order of their names.

    `default` is the name of a stream for files with only numbers as names and without a folder.
    """
    alike: dict[Key, list[_FileName]] = {}
    for file in _with_views([_take_apart(name) for name in files]):
        alike.setdefault((file.folder, file.label, file.suffix), []).append(file)
    names = _names(alike, default)
    paths = {(_path(key), key[2]) for key in alike}
    return [
        FileGroup(names[key], *_in_time(members), _tag(_path(key), key[2], paths))
        for key, members in alike.items()
    ]


def sort_by_time(files: Sequence[str]) -> tuple[tuple[str, ...], tuple[int, ...], Clock]:
    """Return files sorted by the times in their names, the times in ns, and their clock."""
    return _in_time([_take_apart(name) for name in files])


def _take_apart(name: str) -> _FileName:
    folder, _, base = name.rpartition("/")
    stem, dot, suffix = base.rpartition(".")
    stem, suffix = (stem, dot + suffix.lower()) if dot else (base, "")
    label, number = _number_at_end(stem)
    if not number:
        label, number = _number_at_start(stem)
    return _FileName(name, folder, label, number, suffix)


def _number_at_end(stem: str) -> tuple[str, str]:
    """Split `left_12`, `cloud.00012`, `left_1657000000.5` and `1657000000_123456` into label and number."""
    head = stem.rstrip(_DIGITS)
    number = stem[len(head) :]
    if not number or head[-1:] not in _SEPARATORS:
        return (head, number) if number else (stem, "")
    before = head[:-1].rstrip(_DIGITS)
    whole = head[len(before) : -1]
    apart = len(whole) == _UNIX_SECONDS_DIGITS and whole[0] == "1" and 6 <= len(number) <= 9
    if whole and (head[-1] == "." or apart):
        return before[:-1] if before[-1:] in _SEPARATORS else before, f"{whole}.{number}"
    return head[:-1], number


def _number_at_start(stem: str) -> tuple[str, str]:
    """Split `000012_left` and `1657000000.5_left` into label and number."""
    match = _LEADING.match(stem)
    return (match["label"], match["number"]) if match else (stem, "")


def _with_views(files: list[_FileName]) -> list[_FileName]:
    """Give the views of Middlebury their own labels: im2 and im6 are left and right, not a series."""
    numbers: dict[tuple[str, str], set[str]] = {}
    for file in files:
        numbers.setdefault((file.folder, file.label), set()).add(file.number)
    return [
        _FileName(f.name, f.folder, f.label + f.number, "", f.suffix)
        if any(numbers[f.folder, f.label] <= views for views in _NUMBERED_VIEWS.get(f.label, ()))
        else f
        for f in files
    ]


def _names(alike: Mapping[Key, list[_FileName]], default: str) -> dict[Key, str]:
    plain = {key: _plain_name(key, members, default) for key, members in alike.items()}
    times = Counter(plain.values())
    return {key: name if times[name] == 1 else f"{name}/{key[2].lstrip('.')}" for key, name in plain.items()}


def _plain_name(key: Key, members: list[_FileName], default: str) -> str:
    folder, label, suffix = key
    if len(members) == 1 and _unix_ns(members[0].number) is None:
        label = (
            members[0].name.rpartition("/")[2].removesuffix(suffix)
        )  # the only one: its number is part of it
    label = label.strip("._-") if re.search("[A-Za-z]", label) else ""
    return "/".join(part for part in (folder, label) if part) or default


def _in_time(files: list[_FileName]) -> tuple[tuple[str, ...], tuple[int, ...], Clock]:
    stamps = [_unix_ns(file.number) for file in files]
    clock: Clock = "utc"
    if any(stamp is None for stamp in stamps):
        clock, stamps = "index", _places(files)
    order = sorted(range(len(files)), key=lambda i: (stamps[i] or 0, files[i].name))
    return tuple(files[i].name for i in order), tuple(stamps[i] or 0 for i in order), clock


def _unix_ns(number: str) -> int | None:
    whole, separator, fraction = number.partition(".")
    unit = _UNIX_DIGITS.get(len(whole))
    if unit is None or not whole.startswith("1") or (separator and unit != NS):
        return None
    return int(whole) * unit + int((fraction + "0" * 9)[:9])


def _places(files: list[_FileName]) -> list[int | None]:
    """Return the index of each file in ns: its number, or its rank if the numbers are not unique."""
    numbers = [int(f.number) if f.number.isdigit() else -1 for f in files]
    if len(set(numbers)) == len(numbers) and all(0 <= n <= _MAX_INDEX for n in numbers):
        return [n * NS for n in numbers]
    ranked = sorted(range(len(files)), key=lambda i: natural_key(files[i].name))
    places: list[int | None] = [0] * len(files)
    for rank, i in enumerate(ranked):
        places[i] = rank * NS
    return places


def natural_key(name: str) -> tuple[tuple[int, int | str], ...]:
    """Return a key that sorts img2 before img10."""
    return tuple((0, int(p)) if p.isdigit() else (1, p) for p in re.split(r"(\d+)", name) if p)


def _path(key: Key) -> str:
    return f"{key[0]}/{key[1]}".strip("/._-")


def _tag(path: str, suffix: str, known: set[tuple[str, str]]) -> str:
    """Return left or right if the other one exists, too."""
    for left, right in (*_PAIRS, *_ENDINGS):
        for mine, other, tag in ((left, right, "left"), (right, left, "right")):
            swapped = _swap(path, mine, other, ending=(left, right) in _ENDINGS)
            if swapped and (swapped, suffix) in known:
                return tag
    return ""


def _swap(path: str, mine: str, other: str, ending: bool) -> str:
    if ending:
        return path.removesuffix(mine) + other if path.endswith(mine) else ""
    head, found, tail = path.rpartition(mine)
    return head + other + tail if found else ""


def file_table(t_ns: Any, files: Sequence[str]) -> Any:
    """Return the table of a payload stream: times and file names."""
    return arrow.table(t_ns, {PAYLOAD: arrow.strings(files)})


def check_table(t_ns: Sequence[int], files: Sequence[str], check: Callable[[str], Iterable[Loss]]) -> Parsed:
    """Return the table of valid files, with the losses of `check`; a ParseError leaves a file out."""
    kept: list[int] = []
    losses: list[Loss] = []
    for number, name in enumerate(files):
        try:
            losses += check(name)
            kept.append(number)
        except ParseError as error:
            losses.append(Loss(name, error.why or error.what))
    times = np.array(t_ns, dtype=np.int64)[kept]
    return Parsed(file_table(times, [files[i] for i in kept]), tuple(losses))
