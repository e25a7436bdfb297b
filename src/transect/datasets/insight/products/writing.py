"""Writing a recording as a folder of IDA products, with the formats and names of the SIS."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.clocks import NS, decimal_from_ns
from transect.base.files import refuse_existing, write_bytes, write_text
from transect.base.units import from_si
from transect.errors import UnsupportedError
from transect.formats.shared.images import encode_image
from transect.formats.shared.interface import Note
from transect.recording import Recording, Stream
from transect.recording.stream import Sample

from . import columns as known
from . import names
from .columns import STATUS_BITS, encode_status
from .names import sol_of_sclk
from .parameters import bracket, parameters_text, shortest
from .status import ARM, EXTRA, INDEX, POINT, SYSTEM, StatusKey, StatusText

Status = tuple[StatusText, dict[str, Any]]
FILE_COLUMN = "file"
RING_SIZE = 300
"""Points of the history ring (SIS 5.1.2)."""


@dataclass
class _ExportPlan:
    """Files to write, and notes on lost content."""

    recording: Recording
    texts: dict[str, str] = field(default_factory=dict[str, str])
    pictures: dict[str, Sample] = field(default_factory=dict[str, Sample])
    said: list[str] = field(default_factory=list[str])
    used: set[str] = field(default_factory=set[str])

    def stream(self, name: str, like: Stream | None = None) -> Stream | None:
        """Return a stream if it exists and is sampled as `like`."""
        if name not in self.recording:
            return None
        stream = self.recording[name]
        self.used.add(name)
        if like is None or np.array_equal(like.t_ns, stream.t_ns):
            return stream
        self.said.append(f"{name} is left out: it is not sampled as {like.name}")
        return None

    def name(self, given: str, apid: int, product: str, t_ns: NDArray[np.int64]) -> str:
        """Return the given file name, or a new one by SIS Table 8."""
        if given:
            return given
        self.said.append(
            Note("new file names: the time tag is the UTC of the last sample to 3 minutes, by its SCLK")
        )
        sols = self.recording.conditions.get("sols")
        sol = int(sols[0]) if sols else None
        return str(names.new_name(apid, product, (int(t_ns.min()), int(t_ns.max())), sol))


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write a new folder of IDA products; return a sentence for each content that they cannot represent."""
    refuse_existing(path, hint="name a new folder")
    plan = _ExportPlan(recording)
    for device, apid in (("SciHi", 87), ("SciLo", 88)):
        _plan_science(plan, device, apid)
    _plan_status(plan, "", 89, names.ARM_FLOAT)
    _plan_status(plan, "History/", 85, names.SYSTEM_FLOAT)
    _plan_conditions(plan)
    for camera in names.CAMERAS.values():
        _plan_pictures(plan, camera)
    if not plan.texts and not plan.pictures:
        raise UnsupportedError(
            f"{recording.name} has nothing that an IDA product holds",
            hint="its streams are Arm/SciHi, Arm/Status, System/Status, ...",
        )
    for name, text in plan.texts.items():
        write_text(path / name, text)
    for name, sample in plan.pictures.items():
        write_bytes(path / name, encode_image(sample.payload, ".png"))
    unused = [stream.name for stream in recording if stream.name not in plan.used]
    plan.said += [f"{', '.join(unused)}: no IDA product holds this"] if unused else []
    return tuple(dict.fromkeys(plan.said))


def _plan_pictures(plan: _ExportPlan, camera: str) -> None:
    """Plan pictures with the names of InSight's raw pictures, in whole seconds of the spacecraft clock."""
    stream = plan.stream(camera)
    for number, sample in enumerate(stream or ()):
        sclk, rest = divmod(sample.t_ns, NS)
        if rest:
            plan.said.append(Note(f"the times of {camera} are whole seconds: its file names have no others"))
        sol = max(0, sol_of_sclk(sample.t_ns))
        plan.pictures[names.PictureName(camera, sol, sclk).numbered(number)] = sample


def _plan_science(plan: _ExportPlan, device: str, apid: int) -> None:
    base = f"Arm/{device}"
    parts = [base, *(f"{base}/{part}" for part in ("Encoders", "Potentiometers", "Tool", "Forces"))]
    first = next((plan.recording[name] for name in parts if name in plan.recording), None)
    if first is None:
        return
    columns: dict[str, Any] = {}
    units: dict[str, str] = {}
    for name in parts:
        stream = plan.stream(name, first)
        if stream is None:
            plan.said.append(Note(f"there is no {name}: its columns are written as not measured"))
            continue
        columns.update(_columns(stream))
        units.update(stream.units)
    for given, rows in _groups(first):
        chosen = {name: _rows(column, rows) for name, column in columns.items()}
        t_ns = first.t_ns[rows]
        plan.texts[plan.name(given, apid, names.SCIENCE, t_ns)] = science_csv(t_ns, chosen, units)


def _columns(stream: Stream) -> dict[str, Any]:
    """Return the columns of a stream as in the table: joints separately, without derived columns."""
    part = stream.name.rpartition("/")[2].lower()
    if part in known.JOINTS:
        joints = {name: stream.column(name) for name in known.JOINTS[part] if name in stream.columns}
        return {
            f"{known.JOINTS[part][name]}{joint + 1}": values[:, joint]
            for name, values in joints.items()
            for joint in range(4)
        }
    columns = {
        name: stream.column(name) for name in stream.columns if name not in (FILE_COLUMN, *known.DECODED)
    }
    if "stat" not in columns and set(STATUS_BITS) <= set(stream.columns):
        columns["stat"] = encode_status({name: stream.column(name) for name in STATUS_BITS})
    return columns


def _rows(column: Any, rows: NDArray[np.int64]) -> Any:
    return [column[i] for i in rows.tolist()] if isinstance(column, list) else column[rows]


def _groups(stream: Stream) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Yield the file names of a stream with the rows of each; "" for rows without a valid name."""
    files = stream.column(FILE_COLUMN) if FILE_COLUMN in stream.columns else [""] * len(stream)
    groups: dict[str, list[int]] = {}
    for row, file in enumerate(files):
        groups.setdefault(file if _is_safe(file) else "", []).append(row)
    for file, rows in groups.items():
        yield file, np.array(rows, dtype=np.int64)


def _is_safe(file: str) -> bool:
    """Whether a name is a text file inside the folder."""
    path = PurePosixPath(file)
    return path.suffix.lower() in (".txt", ".csv") and not path.is_absolute() and ".." not in path.parts


def _plan_status(plan: _ExportPlan, prefix: str, apid: int, product: str) -> None:
    rows: dict[str, list[Status]] = {}
    for kind, found in ((ARM, _arm_rows(plan, prefix)), (SYSTEM, _system_rows(plan, prefix))):
        for number, row in enumerate(found):
            file = row.get(FILE_COLUMN) or ""
            row.setdefault(POINT, len(found) - 1 - number)
            row.setdefault(INDEX, number % RING_SIZE)
            rows.setdefault(file if _is_safe(file) else "", []).append((kind, row))
    for given, blocks in rows.items():
        t_ns = np.array([row["t_ns"] for _, row in blocks], dtype=np.int64)
        text = history_text(blocks) if prefix else status_text(_interleave(blocks))
        plan.texts[plan.name(given, apid, product, t_ns)] = text


def _system_rows(plan: _ExportPlan, prefix: str) -> list[dict[str, Any]]:
    stream = plan.stream(f"{prefix}System/Status")
    return stream.table.to_pylist() if stream else []


def _arm_rows(plan: _ExportPlan, prefix: str) -> list[dict[str, Any]]:
    base = f"{prefix}Arm/Status"
    parts = [name for name in (base, f"{base}/Encoders", f"{base}/Potentiometers") if name in plan.recording]
    if not parts:
        return []
    first = plan.recording[parts[0]]
    rows: list[dict[str, Any]] = first.table.to_pylist()
    for name in parts:
        stream = plan.stream(name, first)
        column = {"Encoders": "jnt_enc", "Potentiometers": "jnt_pot"}.get(name.rpartition("/")[2])
        if stream is not None and column:
            positions: list[Any] = stream.table.column("position").to_pylist()
            rows = [{**row, column: position} for row, position in zip(rows, positions, strict=True)]
    return rows


def _interleave(blocks: Sequence[Status]) -> list[Status]:
    """Merge arm and system by time without reordering either; the arm comes first."""
    arm = [block for block in blocks if block[0] is ARM]
    system = [block for block in blocks if block[0] is SYSTEM]
    return list(heapq.merge(arm, system, key=lambda block: block[1]["t_ns"]))


def _plan_conditions(plan: _ExportPlan) -> None:
    conditions = plan.recording.conditions
    if "parameters" in conditions:
        _plan_parameters(plan, conditions["parameters"], conditions.get("parameter_files", {}))
    if "sc_coordinates" in conditions:
        plan.texts[names.COORDINATES] = coordinates_csv(conditions["sc_coordinates"])


def coordinates_csv(place: Sequence[float]) -> str:
    """Return the text of SIS 5.1.4: the lander's origin in the payload frame, given in m, in mm."""
    numbers = ",".join(f"{from_si(value, 'mm'):.3f}" for value in place)
    return f"x_coord(mm),y_coord(mm),z_coord(mm){CRLF}{numbers}{CRLF}"


def _plan_parameters(plan: _ExportPlan, latest: Mapping[str, Any], files: Mapping[str, Any]) -> None:
    """Plan the parameters of each file; changes of `latest` since reading go to the last file."""
    ordered = sorted((f for f in files if _is_safe(f)), key=lambda file: files[file]["time_ns"] or 0)
    merged: dict[str, dict[str, Any]] = {}
    for file in ordered:
        for set_name, values in files[file]["parameters"].items():
            merged.setdefault(set_name, {}).update(values)
        plan.texts[file] = parameters_text(files[file]["parameters"], files[file]["time_ns"])
    if parameters_text(merged) != parameters_text(latest):
        time_ns = files[ordered[-1]]["time_ns"] if ordered else None
        stamp = np.array([time_ns or 0], dtype=np.int64)
        name = plan.name(ordered[-1] if ordered else "", 86, names.PARAMETERS, stamp)
        plan.texts[name] = parameters_text(latest, time_ns)


Row = Mapping[str, Any]


def status_lines(kind: StatusText, row: Row) -> Iterator[str]:
    """Yield the lines of one status; keys without a value are omitted.

    Parameters
    ----------
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


def _text(key: StatusKey, row: Row) -> str | None:
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
    return bracket(words) if key.size > 1 else words[0]


def _word(key: StatusKey, number: float) -> str:
    if key.form == "hex":
        return f"{int(number):X}"
    if key.form == "int":
        return str(int(number))
    printed = number / key.scale
    return f"{printed:.{key.digits}f}" if key.digits is not None else shortest(round(printed, 6))


def _time_digits(t_ns: int, least: int) -> int:
    """Return the number of decimals of a second that represents a time exactly, at least `least`."""
    return next(digits for digits in range(least, 10) if t_ns % 10 ** (9 - digits) == 0)


def status_text(statuses: Sequence[tuple[StatusText, Row]]) -> str:
    """Return a status file of some blocks, in their order."""
    blocks = ["\n".join(status_lines(kind, row)) + "\n" for kind, row in statuses]
    return "\n".join(blocks)


def history_text(statuses: Sequence[tuple[StatusText, Row]]) -> str:
    """Return a history file: the blocks of each point under its heading, the oldest first."""
    lines: list[str] = []
    heading = ""
    for kind, row in sorted(statuses, key=lambda item: -item[1][POINT]):
        wanted = f"{row[POINT]} points before latest (index = {row[INDEX]}):"
        if wanted != heading:
            lines += ["", wanted] if lines else [wanted]
            heading = wanted
        lines += status_lines(kind, row)
    return "\n".join(lines) + "\n"


CRLF = "\r\n"
TABLE_DECIMALS = 4


def science_csv(t_ns: NDArray[np.int64], columns: Mapping[str, Any], units: Mapping[str, str]) -> str:
    """Return the text of a table.

    Parameters
    ----------
    t_ns : (n,) int64 array
        SCLK.
    columns : mapping of str to (n,) array
        Named as in `columns.COLUMNS`, in SI units. Missing documented columns are written as -99999.0000,
        codes as 0; `elapsed_time` is omitted (Table 12 lacks it).
    units : mapping of str to str
        Units of columns that are not in the SIS.
    """
    elapsed = columns.get("elapsed_time")
    names = known.NAMES_57 if elapsed is None or np.isnan(elapsed).all() else known.NAMES_58
    others = [name for name in columns if name not in known.BY_NAME]
    headings = [known.BY_NAME[name].header for name in names]
    headings += [f"{name}({units[name]})" if units.get(name) else name for name in others]
    fields = [_field(name, t_ns, columns.get(name)) for name in (*names, *others)]
    row = ",".join(form for form, _ in fields)
    rows = zip(*(values for _, values in fields), strict=True)
    return CRLF.join(["#" + ",".join(headings), *(row % values for values in rows)]) + CRLF


def _field(name: str, t_ns: NDArray[np.int64], values: Any) -> tuple[str, list[Any]]:
    """Return the format of a column and its values."""
    if name == "time":
        return "%s", _times(t_ns)
    if name == "stat" or name in known.CODES:
        return "%d", _whole(values, len(t_ns))
    if isinstance(values, list):
        return "%s", values
    return f"%.{TABLE_DECIMALS}f", _numbers(name, values, len(t_ns))


def _whole(values: Any, count: int) -> list[int]:
    return [0] * count if values is None else np.nan_to_num(values).astype(np.int64).tolist()


def _times(t_ns: NDArray[np.int64]) -> list[str]:
    digits = next(d for d in range(1, 10) if not (t_ns % 10 ** (9 - d)).any())
    return [decimal_from_ns(t, digits) for t in t_ns.tolist()]


def _numbers(name: str, values: Any, count: int) -> list[float]:
    if values is None:
        return [known.INVALID_CONSTANT] * count
    scale = known.BY_NAME[name].scale if name in known.BY_NAME else 1.0
    numbers = np.asarray(values, dtype=np.float64) / scale
    return np.where(np.isnan(numbers), known.INVALID_CONSTANT, numbers).tolist()
