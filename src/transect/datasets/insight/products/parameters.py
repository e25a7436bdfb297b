"""`key = value` text of the IDA ground software: tolerant parsing, and writing as documented."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transect.base.clocks import decimal_from_ns, ns_from_decimal
from transect.datasets.insight.robot.parameters import GROUPS, ROWS, SETS, ArmParameter, fold, known_keys
from transect.errors import did_you_mean
from transect.recording import Loss
from transect.recording.source import Buffer

MAX_CONTINUATION_LINES = 12
"""A longer bracket is considered unclosed."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?nan", re.IGNORECASE)


@dataclass(frozen=True)
class LogicalLine:
    """A logical line: the lines of one bracketed value are joined."""

    number: int  # of its first line, from 1
    text: str


def text_lines(buffer: Buffer, file: str) -> tuple[list[LogicalLine], list[Loss]]:
    """Return the nonblank logical lines of a text, and the loss of a truncated last line.

    A last line without a newline is accepted only if its end is recognisable: a bracket, or the decimal of a
    `.time`, which ends every status block.
    """
    text = bytes(buffer).decode("utf-8-sig", "replace")
    physical = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    losses: list[Loss] = []
    last = physical.pop().strip()
    if last.endswith("]") or re.search(r"\.time\b.*\.\d+$", last):
        physical.append(last)
    elif last:
        losses.append(Loss(file, "the last line is cut off", line=len(physical) + 1))
    return list(_join(physical)), losses


def _join(physical: Sequence[str]) -> Iterator[LogicalLine]:
    """Join `key = [ 1 2` with the lines that follow, up to the closing bracket."""
    index = 0
    while index < len(physical):
        first = index
        text = physical[index].strip()
        index += 1
        if text.count("[") > text.count("]"):
            more = _until_closed(physical[index : index + MAX_CONTINUATION_LINES])
            text, index = " ".join([text, *more]), index + len(more)
        if text:
            yield LogicalLine(first + 1, text)


def _until_closed(following: Sequence[str]) -> list[str]:
    more: list[str] = []
    for line in following:
        if "=" in line or "[" in line:
            return []
        more.append(line.strip())
        if "]" in line:
            return more
    return []


def key_and_value(text: str, known: Collection[str]) -> tuple[str, str]:
    """Split a line at its `=`, or at the bracket, or after the longest known key.

    Parameters
    ----------
    known : collection of str
        Folded keys.

    Returns
    -------
    key, value : str
        Folded key, and value; "" if missing.
    """
    before, equals, after = text.partition("=")
    if equals:
        return fold(before), after.strip()
    if "[" in text:
        before, _, after = text.partition("[")
        return fold(before), f"[{after}"
    words = text.split()
    for count in range(len(words), 0, -1):
        key = fold(" ".join(words[:count]))
        if key in known:
            return key, " ".join(words[count:])
    return "", ""


def tokens(value: str) -> list[str]:
    """Return the words of `[ a b ]`, `[a, b]` or `a b`."""
    return value.replace("[", " ").replace("]", " ").replace(",", " ").split()


def is_number(token: str) -> bool:
    """Whether a word is a decimal number or NaN."""
    return _NUMBER.fullmatch(token) is not None


def bracket(words: Sequence[str]) -> str:
    """Return `[ a b ]`."""
    return f"[ {' '.join(words)} ]"


def shortest(value: float) -> str:
    """Return the shortest text that is parsed as the same number, whole numbers without a point."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def exact(value: float, style: str) -> str:
    """Format a number (`.6e`) if the result is parsed as the same number, else its shortest text."""
    text = format(value, style) if style else repr(value)
    return text if float(text) == value else repr(value)


Number = int | float
Value = Any
Sets = dict[str, dict[str, Value]]

_SET = re.compile(r"Parameter\s+Set\s*[:=]\s*(.+)", re.IGNORECASE)
_STAMP = re.compile(r"\D*(\d{1,10}(?:\.\d*)?)\s*|.*?(?<![\w.])(\d{9,10}(?:\.\d*)?)(?!\w).*")
"""The SIS does not define the time stamp: the only number of a line, or one of nine digits."""
_FORMATS = {"RA_ARM_PARAMS": ".9f", "PAYLOAD_COL_PARAMS": ".6f", "RA_DEFL_GENERAL": ".6f"}
"""Sets that the SIS prints with a fixed number of decimals."""


_GROUPS = {fold(key): members for key, members in GROUPS.items()}


@dataclass
class ParameterFile:
    """Contents of a parameter file."""

    time_ns: int | None = None  # its SCLK
    sets: Sets = field(default_factory=dict[str, dict[str, Any]])  # set name to key to value
    losses: list[Loss] = field(default_factory=list[Loss])
    notes: list[str] = field(default_factory=list[str])


def parse_parameters(buffer: Buffer, file: str) -> ParameterFile:
    """Parse a parameter file; invalid values are losses, unknown keys are kept as text with a note."""
    lines, losses = text_lines(buffer, file)
    result = ParameterFile(losses=losses)
    current = ""
    known: dict[str, ArmParameter] = {}
    for line in lines:
        if match := _SET.fullmatch(line.text):
            current = "_".join(match[1].split()).upper()
            known = known_keys(current)
            if current not in SETS:
                said = f"the SIS knows no parameter set {current}; kept as text"
                result.notes.append(f"{file}:{line.number}: {said} ({did_you_mean(current, SETS)})")
            result.sets.setdefault(current, {})
        elif current:
            _enter(result, file, result.sets[current], known, line)
        else:
            _before_sets(result, file, line)
    return result


def _before_sets(result: ParameterFile, file: str, line: LogicalLine) -> None:
    stamp = _STAMP.fullmatch(line.text)
    if stamp and result.time_ns is None:
        result.time_ns = ns_from_decimal(stamp[1] or stamp[2])
    else:
        result.notes.append(f"{file} begins with {line.text!r}")


def _enter(
    result: ParameterFile,
    file: str,
    values: dict[str, Value],
    known: Mapping[str, ArmParameter],
    line: LogicalLine,
) -> None:
    key, text = key_and_value(line.text, known)
    words, where = tokens(text), f"{file}:{line.number}"
    members = [known[fold(name)] for name in _GROUPS.get(key, ()) if fold(name) in known]
    if not key:
        result.losses.append(Loss(file, "not a key and a value", line=line.number))
    elif not words:
        result.notes.append(f"{where}: {key} has no value")
    elif members and len(members) == len(words):
        for member, word in zip(members, words, strict=True):
            _put(result, file, values, member, [word], line)
    elif members:
        result.losses.append(Loss(file, _miscount(key, words, (len(members),)), line=line.number))
    elif key in known:
        _put(result, file, values, known[key], words, line)
    else:
        result.notes += [_unknown_key(where, key, known)] if known else []
        values[key] = text


def _unknown_key(where: str, key: str, known: Mapping[str, ArmParameter]) -> str:
    names = {parameter.name for parameter in known.values()}
    meant = did_you_mean(key, names)
    return f"{where}: the SIS does not know the parameter {key}, nor so its unit; kept as text ({meant})"


def _put(
    result: ParameterFile,
    file: str,
    values: dict[str, Value],
    parameter: ArmParameter,
    words: list[str],
    line: LogicalLine,
) -> None:
    words = _repair(parameter, words)
    numbers = [_number(parameter, word) for word in words]
    if problem := _problem(parameter, words, numbers):
        result.losses.append(Loss(file, problem, line=line.number))
        return
    value = tuple(number for number in numbers if number is not None)
    if parameter.name == ROWS:
        values[ROWS] = (*values.get(ROWS, ()), value)
        return
    if parameter.name in values:
        twice = f"{file}:{line.number}: {parameter.key} is given twice; the later value counts"
        result.notes.append(twice)
    values[parameter.name] = _shape(value)


def _problem(parameter: ArmParameter, words: Sequence[str], numbers: Sequence[Number | None]) -> str:
    """Return the problem with the words of a parameter, "" if there is none."""
    if None in numbers:
        return f"{parameter.key}: {words[numbers.index(None)]!r} is not a number"
    if len(words) not in parameter.sizes:
        return _miscount(parameter.key, words, parameter.sizes)
    return ""


def _miscount(key: str, words: Sequence[str], sizes: Sequence[int]) -> str:
    given = f"{len(words)} number{'s' if len(words) != 1 else ''}"
    return f"{key} has {given}, expected {' or '.join(map(str, sizes))}"


def _repair(parameter: ArmParameter, words: list[str]) -> list[str]:
    """Correct two misprints of the SIS."""
    if parameter.name.endswith("_q") and parameter.sizes == (4,) and len(words) == 3:
        return ["0.0", *words]  # wts_q has three numbers; a zero is missing
    return _signs_joined(words) if parameter.sizes == (9,) else words


def _signs_joined(words: Sequence[str]) -> list[str]:
    """Join a sign that is separated from its number, as in wCm of RA_DEFL_LINK_2."""
    return re.sub(r"(?<!\S)([+-])\s+", r"\1", " ".join(words)).split()


def _number(parameter: ArmParameter, word: str) -> Number | None:
    if parameter.name in ("start_count", "nonstart_count") and word.upper() == "FF":
        return 0xFF  # disables overcurrent monitoring
    if not is_number(word):
        return None
    number = int(word) if re.fullmatch(r"[+-]?\d{1,15}", word) else float(word)
    return number if parameter.scale == 1.0 else number * parameter.scale


def _shape(numbers: tuple[Number, ...]) -> Value:
    if len(numbers) == 1:
        return numbers[0]
    return (numbers[:3], numbers[3:6], numbers[6:]) if len(numbers) == 9 else numbers


def parameters_text(sets: Mapping[str, Mapping[str, Value]], time_ns: int | None = None) -> str:
    """Return a parameter file; sets and keys in the order of the SIS, then unknown ones."""
    stamp = "" if time_ns is None else f"SCLK = {decimal_from_ns(time_ns, 9 if time_ns % 10**8 else 1)}\n\n"
    order = [*(name for name in SETS if name in sets), *(name for name in sets if name not in SETS)]
    return stamp + "\n".join(_set_text(name, sets[name]) for name in order)


def _set_text(set_name: str, values: Mapping[str, Value]) -> str:
    entries: list[tuple[str, str]] = []
    written: set[str] = set()
    for parameter in SETS.get(set_name, ()):
        if parameter.name in values and parameter.name not in written:
            key, members = _group_of(parameter.name, values)
            if key:
                entries.append((key, bracket([_free_text(values[member]) for member in members])))
            else:
                entries += _entries(set_name, parameter, values[parameter.name])
            written |= set(members)
    entries += [(key, _free_text(value)) for key, value in values.items() if key not in written]
    width = max((len(key) for key, _ in entries), default=0)
    lines = [f"Parameter Set: {set_name}", *(f"{key.ljust(width)} = {text}" for key, text in entries)]
    return "\n".join(lines) + "\n"


def _group_of(name: str, values: Mapping[str, Value]) -> tuple[str, Sequence[str]]:
    """Return the common key of a parameter and the names of its group, if the group is complete."""
    for key, members in GROUPS.items():
        if name in members and values.keys() >= set(members):
            return key, members
    return "", (name,)


def _entries(set_name: str, parameter: ArmParameter, value: Value) -> list[tuple[str, str]]:
    if isinstance(value, str):
        return [(parameter.key, value)]
    if parameter.name == ROWS:
        return [(ROWS, bracket([str(code) for code in _flat(row)])) for row in value]
    style = ".6e" if parameter.sizes == (9,) else _FORMATS.get(set_name, "")
    words = [_word(parameter, number, style) for number in _flat(value)]
    return [(parameter.key, bracket(words) if parameter.sizes != (1,) else words[0])]


def _flat(value: Value) -> list[Number]:
    """Return the numbers of a scalar, tuple, list or array, row by row."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list | tuple):
        return [number for item in value for number in _flat(item)]
    return [value]


def _word(parameter: ArmParameter, number: Number, style: str) -> str:
    if parameter.scale != 1.0:
        return shortest(float(f"{number / parameter.scale:.15g}"))
    return str(number) if isinstance(number, int) else exact(number, style)


def _free_text(value: Value) -> str:
    if isinstance(value, str):
        return value
    words = [str(number) for number in _flat(value)]
    return words[0] if len(words) == 1 else bracket(words)
