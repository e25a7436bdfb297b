"""Status and history text of the IDA (SIS 5.1.1, 5.1.2): blocks of `key = value`, one block per time.

Documented columns always exist, null or NaN where a block lacks the key. Unknown keys are kept as text in
columns named `extra.<key>`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from transect.base.clocks import ns_from_decimal
from transect.base.units import unit_of
from transect.datasets.insight.robot.arm import TOOLS
from transect.datasets.insight.robot.parameters import fold
from transect.recording import Loss, Parsed, arrow
from transect.recording.source import Buffer

from .columns import PHASES, name_of_text
from .parameters import LogicalLine, is_number, key_and_value, text_lines, tokens

ValueForm = Literal["int", "real", "hex", "code", "time", "text"]


@dataclass(frozen=True)
class StatusKey:
    """One key of a status text."""

    name: str  # as printed, after the prefix
    # `int`, `real`, `hex`, `code` (a number and a name: `5 RA_GRAPPLE`), `time` (SCLK), or `text`
    form: ValueForm = "int"
    size: int = 1  # number of values; several are in brackets
    unit: str = ""  # unit in the text; see `scale`
    digits: int | None = None  # printed decimals; None for the shortest text
    scale: float = 1.0  # SI value of one unit of the text

    @property
    def column(self) -> str:
        """Name of the column: dots become underscores, times count nanoseconds."""
        renamed = {"mtr.brake": "mtr_brake_on", "ace.calib_OK": "ace_calib_ok"}
        plain = renamed.get(self.name, self.name.replace(".", "_"))
        return f"{plain}_ns" if self.form == "time" else plain

    @property
    def si_unit(self) -> str:
        """Unit of the column."""
        if self.form == "time":
            return "ns"
        return {"mA": "A", "Wh": "J"}.get(self.unit, self.unit)


@dataclass(frozen=True)
class StatusText:
    """One of the two kinds of status text: its prefix and its keys."""

    prefix: str
    keys: tuple[StatusKey, ...]

    def known(self) -> dict[str, StatusKey]:
        """Return the keys by their folded full name."""
        return {fold(f"{self.prefix}.{key.name}"): key for key in self.keys}

    @property
    def width(self) -> int:
        """Characters of the longest full name, to align the equals signs."""
        return max(len(self.prefix) + 1 + len(key.name) for key in self.keys)


ARM = StatusText(
    "ra_status",
    (
        StatusKey("ace.calib_OK"),
        StatusKey("ace.bus30v_err"),
        StatusKey("ace.parity_err"),
        StatusKey("ace.msg_err"),
        StatusKey("ace.load_box"),
        StatusKey("ace.self_test"),
        StatusKey("mtr.pwr_on", size=4),
        StatusKey("mtr.rotation", size=4),
        StatusKey("mtr.over_current", size=4),
        StatusKey("mtr.brake", size=4),
        StatusKey("mtr.current", "real", 4, "A", 3),
        StatusKey("jnt.enc", "real", 4, "rad", 3),
        StatusKey("jnt.pot", "real", 4, "rad", 3),
        StatusKey("jnt.temp", "real", 4, "degC", 3),
        StatusKey("ref", "real", 2, "V", 3),
        StatusKey("htr_crnt", "real", 1, "A", 3),
        StatusKey("agnd", "real", 1, "V", 3),
        StatusKey("time", "time", digits=1),
    ),
)

SYSTEM = StatusText(
    "sys_status",
    (
        StatusKey("curr_limit", "real", 4, "mA", scale=unit_of("mA").scale),
        StatusKey("mtr_volt", "real", 4, "V"),
        StatusKey("brake", size=4),
        StatusKey("use_pots", size=4),
        StatusKey("htr_on", size=4),
        StatusKey("tool", "code"),
        StatusKey("cool_down"),
        StatusKey("fault_chk_mask", "hex", 2),
        StatusKey("fault_status", "hex", 2),
        StatusKey("act_cmd", "code"),
        StatusKey("act_args", "text"),
        StatusKey("task_cmd", "code"),
        StatusKey("task_args", "text"),
        StatusKey("target.q", "real", 4, "rad", 3),
        StatusKey("target.x", "real", 4, "m m m rad", 3),
        StatusKey("via.q", "real", 4, "rad", 3),
        StatusKey("via.x", "real", 4, "m m m rad", 3),
        StatusKey("via_step"),
        StatusKey("via_time", "time", digits=1),
        StatusKey("col_status.has_collisions"),
        StatusKey("col_status.link1"),
        StatusKey("col_status.link2"),
        StatusKey("col_status.obj1"),
        StatusKey("col_status.obj2"),
        StatusKey("rotation_cmd", size=4),
        StatusKey("delta_via.dq", "real", 4, "rad", 3),
        StatusKey("delta_via.dx", "real", 4, "m m m rad", 3),
        StatusKey("delta_via.mag", "real", 1, "m", 4),
        StatusKey("algo_code", "code"),
        StatusKey("algo_code_override", "code"),
        StatusKey("delta_via_code", "code"),
        StatusKey("plane_angle", "real", 1, "rad", 4),
        StatusKey("tau", "real", 4, "N m", 1),
        StatusKey("delta_tau", "real", 1, "N m", 4),
        StatusKey("track_state", "code"),
        StatusKey("energy_limit", "real", 1, "Wh", 1, unit_of("Wh").scale),
        StatusKey("energy_value", "real", 1, "Wh", 1, unit_of("Wh").scale),
        StatusKey("time_limit", "time", digits=1),  # the text says minutes, the example is an SCLK
        StatusKey("grapple_state", "code"),
        StatusKey("grapple_temp", "real", 1, "degC", 1),
        StatusKey("grapple_exp_time", "time", digits=6),
        StatusKey("grapple_phase", "code"),
        StatusKey("mtr_volt_sign", size=4),
        StatusKey("actively_holding_position"),
        StatusKey("time", "time", digits=1),
    ),
)


POINT = "points_before_latest"
INDEX = "ring_index"
EXTRA = "extra."
ENCODERS, POTENTIOMETERS = "jnt.enc", "jnt.pot"
NAMED = {"tool": TOOLS, "grapple_phase": PHASES}
"""Codes with a table in the SIS; their `_name` column is the entry of the printed name."""

_KINDS = {text.prefix: text for text in (ARM, SYSTEM)}
_KNOWN = {folded: key for text in _KINDS.values() for folded, key in text.known().items()}
_POINT = re.compile(
    r"(\d{1,9})\s+points?\s+before\s+latest\s*\(\s*index\s*=?\s*(\d{1,9})\s*\)\s*:?", re.IGNORECASE
)
_TIME = re.compile(r"\d{1,10}(\.\d*)?")


@dataclass
class _Block:
    """The keys of one status."""

    kind: StatusText
    line: int
    point: int = -1
    index: int = -1
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    extra: dict[str, str] = field(default_factory=dict[str, str])


@dataclass
class _Blocks:
    """Groups lines into blocks; other lines are losses."""

    file: str
    done: list[_Block] = field(default_factory=list[_Block])
    losses: list[Loss] = field(default_factory=list[Loss])
    titles: list[str] = field(default_factory=list[str])
    open: dict[str, _Block] = field(default_factory=dict[str, _Block])
    point: tuple[int, int] = (-1, -1)

    def add(self, line: LogicalLine) -> None:
        if match := _POINT.fullmatch(line.text):
            self.close()
            self.point = int(match[1]), int(match[2])
            return
        key, value = key_and_value(line.text, _KNOWN)
        prefix, _, name = key.partition(".")
        if prefix in _KINDS and name:
            self._enter(_KINDS[prefix], line, key, name, value)
        elif self.done or self.open or "=" in line.text:
            self.losses.append(Loss(self.file, "not a line of a status", line=line.number))
        else:
            self.titles.append(line.text)

    def _enter(self, kind: StatusText, line: LogicalLine, key: str, name: str, value: str) -> None:
        known = _KNOWN.get(key)
        label = known.name if known else name
        block = self.open.get(kind.prefix)
        if block is not None and (label in block.values or label in block.extra):
            self._close_one(kind.prefix)
            block = None
        if block is None:
            block = self.open[kind.prefix] = _Block(kind, line.number, *self.point)
        if known is None:
            block.extra[name] = value
            return
        block.values[label] = converted = value_of(known, value)
        if converted is None:
            self.losses.append(Loss(self.file, f"{key} is not {_describe_expected(known)}", line=line.number))
        if label == "time":
            self._close_one(kind.prefix)

    def _close_one(self, prefix: str) -> None:
        block = self.open.pop(prefix)
        if block.values.get("time") is None:
            self.losses.append(Loss(self.file, "a status without its time", line=block.line))
        else:
            self.done.append(block)

    def close(self) -> None:
        for prefix in list(self.open):
            self._close_one(prefix)


def value_of(key: StatusKey, value: str) -> Any:
    """Parse a value by the form of its key; None if it is invalid.

    Returns
    -------
    list of int, list of float, (int or None, str), int nanoseconds, or str
    """
    if key.form == "text":
        return value
    if key.name == "ace.calib_OK" and not value:
        return [1]  # the line reads "ra_status.ace.calib OK"
    if key.form == "code":
        return _code(value)
    words = tokens(value)
    if len(words) != key.size:
        return None
    if key.form == "time":
        return ns_from_decimal(words[0]) if _TIME.fullmatch(words[0]) else None
    if key.form == "real":
        return [float(word) * key.scale for word in words] if all(map(is_number, words)) else None
    pattern, base = (r"(0x)?[0-9a-fA-F]{1,8}", 16) if key.form == "hex" else (r"[+-]?\d{1,10}", 10)
    return [int(word, base) for word in words] if all(re.fullmatch(pattern, word) for word in words) else None


def _code(value: str) -> tuple[int | None, str] | None:
    """Return number and name of `5 RA_GRAPPLE`; either may be missing."""
    number, _, text = value.partition(" ")
    if re.fullmatch(r"[+-]?\d{1,10}", number):
        return int(number), text.strip()
    return (None, value) if value and not value[0].isdigit() else None


def _describe_expected(key: StatusKey) -> str:
    what = {"int": "whole number", "real": "number", "hex": "hexadecimal number"}.get(key.form, key.form)
    return f"a {what}" if key.size == 1 else f"{key.size} {what}s"


def parse_status(buffer: Buffer, file: str, *, history: bool = False) -> dict[str, Parsed]:
    """Read a status or history text.

    Parameters
    ----------
    buffer : buffer
        The file's content.
    file : str
        For the losses.
    history : bool
        Whether blocks have headings "N points before latest (index = K):"; the rows are then sorted oldest
        first and have the columns `points_before_latest` and `ring_index`.

    Returns
    -------
    dict of str to Parsed
        `arm` and `system`, and of the arm's joints `encoders` and `potentiometers` (column `position`, rad).
    """
    lines, losses = text_lines(buffer, file)
    blocks = _Blocks(file)
    for line in lines:
        blocks.add(line)
    blocks.close()
    found = (*blocks.losses, *losses)
    parts = {"arm": ARM, "system": SYSTEM, "encoders": ARM, "potentiometers": ARM}
    notes = _notes(blocks, file, history)
    if history:
        blocks.done.sort(key=lambda block: -block.point)
    of_kind = {name: [block for block in blocks.done if block.kind is kind] for name, kind in parts.items()}
    return {name: Parsed(_table(name, of_kind[name], history), found, notes) for name in parts}


def _notes(blocks: _Blocks, file: str, history: bool) -> tuple[str, ...]:
    notes = [f"{file} begins with {' / '.join(blocks.titles)}"] if blocks.titles else []
    unknown = sorted({f"{b.kind.prefix}.{key}" for b in blocks.done for key in b.extra})
    if unknown:
        notes.append(f"{file}: keys that the SIS does not know, kept as text: {', '.join(unknown)}")
    points = {block.point for block in blocks.done}
    if history and points:
        missing = sorted(set(range(min(max(points), 299) + 1)) - points)
        if missing:
            notes.append(f"{file}: {len(missing)} history points are missing, the latest {missing[0]}")
    return tuple(notes)


def _table(part: str, blocks: Sequence[_Block], history: bool) -> pa.Table:
    t_ns = np.array([block.values["time"] for block in blocks], dtype=np.int64)
    columns: dict[str, Any] = {}
    units: dict[str, str] = {}
    if history:
        columns[POINT] = np.array([block.point for block in blocks], dtype=np.int64)
        columns[INDEX] = np.array([block.index for block in blocks], dtype=np.int64)
    if part in ("encoders", "potentiometers"):
        name = ENCODERS if part == "encoders" else POTENTIOMETERS
        columns["position"] = _reals([block.values.get(name) for block in blocks], 4)
        return arrow.table(t_ns, columns, units={"position": "rad"})
    for key in (ARM if part == "arm" else SYSTEM).keys:
        if key.name not in ("time", ENCODERS, POTENTIOMETERS):
            columns.update(_columns(key, [block.values.get(key.name) for block in blocks]))
            units[key.column] = key.si_unit
    for name in sorted({name for block in blocks for name in block.extra}):
        columns[EXTRA + name] = arrow.strings([block.extra.get(name, "") for block in blocks])
    return arrow.table(t_ns, columns, units=units)


def _columns(key: StatusKey, values: Sequence[Any]) -> dict[str, Any]:
    if key.form == "text":
        return {key.column: arrow.strings([value or "" for value in values])}
    if key.form == "real":
        return {key.column: _reals(values, key.size)}
    if key.form == "time":
        return {key.column: _nullable(values)}
    if key.form != "code":
        return {key.column: _nullable_rows(values, key.size)}
    pairs = [value or (None, "") for value in values]
    columns: dict[str, Any] = {key.column: _nullable([code for code, _ in pairs])}
    columns[f"{key.column}_text"] = arrow.strings([text for _, text in pairs])
    if table := NAMED.get(key.name):
        names = [name_of_text(text, code, table) for code, text in pairs]
        columns[f"{key.column}_name"] = arrow.strings(names)
    return columns


def _reals(values: Sequence[Any], size: int) -> Any:
    rows = np.array([[np.nan] * size if row is None else row for row in values], dtype=np.float64)
    rows = rows.reshape(len(values), size)
    return rows if size > 1 else rows[:, 0].copy()


def _nullable(values: Sequence[int | None]) -> pa.Array:
    known = np.array([value is not None for value in values], dtype=bool)
    data = np.array([value or 0 for value in values], dtype=np.int64)
    bitmap = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.Array.from_buffers(pa.int64(), len(data), [bitmap, pa.py_buffer(data)])


def _nullable_rows(values: Sequence[Any], size: int) -> pa.Array:
    flat = _nullable([number for row in values for number in (row or [None] * size)])
    return flat if size == 1 else pa.FixedSizeListArray.from_arrays(flat, size)
