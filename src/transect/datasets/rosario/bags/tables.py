"""The text files of a Rosario sequence as tables in SI units: IMU, wheels, ground truth."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect import robots
from transect.base.arrays import Floats, Ints, Mask
from transect.base.clocks import NS, ns_from_decimal
from transect.base.file_bytes import Content
from transect.formats.shared.rows import LossCounter, exact_stamps, lines_lost, read_lines
from transect.recording import Loss, Parsed, arrow
from transect.recording.text import TextPiece, Tokens, line_pieces, read_twice, scan
from transect.types import Imu, Pose, WheelState

from ..robot.geometry import MAX_SPEED_M_S, WeederGeometry, si_from_raw

RAW = ("left_raw", "right_raw", "steering_raw", "direction_raw")
"""Columns of raw values."""
LONG_FIELDS, SHORT_FIELDS = (9, 13, 16, 17), (0, 1, 2, 3)
"""Indices of left, right, steering and direction in a telegram of the motors: of all 18 fields, or of 4."""
_TELEGRAM = re.compile(rb"\s*(\d{1,10}(?:\.\d+)?)\s+(\S+\s+\S+)\s*")
_RAW_LINE = re.compile(rb"\s*[^\s,]+[ \t]+[^\s,]+[ \t]+[^\s,]*,")
_SIGN = re.compile(r"\s*([01])(?![0-9.])")


def read_imu(
    content: Content, file: str, gyro_offset: Floats | None, acc_offset: Floats | None
) -> Iterator[Parsed]:
    """Read `imu.log`: time, perhaps two undocumented tokens, gyro in deg/s, accelerations in milli-g.

    Offsets (3,) are in the log's units and are subtracted, as the published scripts do.
    """

    def read(piece: TextPiece) -> _ValidLines:
        tokens = scan(piece.data, before=piece.newlines)
        lines, losses = _imu_lines(tokens, file)
        t_ns, lines, untimed = exact_stamps(tokens, 0, lines, file)
        return _ValidLines(tokens, lines, t_ns, (*losses, *untimed, *piece.losses))

    def build(found: _ValidLines, documented: bool) -> Parsed:
        tokens, lines = found.tokens, found.lines
        values = _last_six(tokens, lines, tokens.values)
        gyro, acc = si_from_raw(values[:, :3], values[:, 3:], gyro_offset, acc_offset)
        columns: dict[str, Any] = {f"acc_{axis}": acc[:, i] for i, axis in enumerate("xyz")}
        columns |= {f"gyro_{axis}": gyro[:, i] for i, axis in enumerate("xyz")}
        if not documented:
            long = tokens.counts[lines] == 9
            columns |= {f"undocumented_{n}": arrow.strings(_texts(tokens, lines, n, long)) for n in (1, 2)}
        return Parsed(arrow.table(found.t_ns, columns, units=Imu.units()), found.losses)

    def judge(every: Iterable[_ValidLines]) -> bool:
        return all((found.tokens.counts[found.lines] != 9).all() for found in every)

    return read_twice(content, file, read, judge, build)


@dataclass(frozen=True, eq=False)
class _ValidLines:
    """Valid lines of a piece (indices), with their times, and the losses."""

    tokens: Tokens
    lines: Ints
    t_ns: Ints
    losses: tuple[Loss, ...]


def _imu_lines(tokens: Tokens, file: str) -> tuple[Ints, list[Loss]]:
    """Return the lines of 7 or 9 tokens whose last six are numbers, and the others as losses."""
    lines = np.arange(len(tokens.line))
    fits = np.isin(tokens.counts, (7, 9))
    numeric = np.all(~_last_six(tokens, lines[fits], tokens.is_word), axis=1)
    return lines[fits][numeric], [
        *lines_lost(tokens, lines[~fits], "not 7 or 9 fields", file),
        *lines_lost(tokens, lines[fits][~numeric], "text where a number should be", file),
    ]


def _last_six(tokens: Tokens, lines: Ints, of: NDArray[Any]) -> NDArray[Any]:
    return of[(tokens.first[lines + 1] - 6)[:, None] + np.arange(6)]


def _texts(tokens: Tokens, lines: Ints, number: int, is_present: Mask) -> list[str]:
    selected = zip((tokens.first[lines] + number).tolist(), is_present.tolist(), strict=True)
    return [tokens.text(token) if present else "" for token, present in selected]


def read_odometry(content: Content, file: str) -> Iterator[Parsed]:
    """Read `<time> <left> <right> <angle> <direction>` (4.4.1): the paper's m/s, or the cleaned log's RPM.

    The two differ in size: no weeding robot drives at 3 m/s.
    """

    def read(piece: TextPiece) -> _ValidLines:
        tokens, lines, losses = read_lines(piece, file, (5,), comments=False)
        t_ns, lines, untimed = exact_stamps(tokens, 0, lines, file)
        direction = tokens.column(4, lines)
        known = np.isin(direction, (-1.0, 0.0, 1.0)) | np.isnan(direction)
        odd = lines_lost(tokens, lines[~known], "the direction is neither 1 nor -1", file)
        return _ValidLines(tokens, lines[known], t_ns[known], (*losses, *untimed, *odd))

    def build(found: _ValidLines, judged: tuple[bool, bool]) -> Parsed:
        in_rpm, coded = judged
        reason = "else they would be too fast" if in_rpm else "4.4.1"
        note = f"{file}: wheel speeds are in {'turns per minute' if in_rpm else 'm/s'} ({reason})"
        values = found.tokens.block(1, 4, found.lines)
        return Parsed(_wheel_table(found.t_ns, values, in_rpm, coded), found.losses, (note,))

    def judge(every: Iterable[_ValidLines]) -> tuple[bool, bool]:
        fast = slow = 0
        directions: list[Floats] = []
        for found in every:
            more = count_fast(found.tokens.block(1, 2, found.lines))
            fast, slow = fast + more[0], slow + more[1]
            directions.append(np.unique(found.tokens.column(4, found.lines)))
        return are_rpm(fast, slow), has_own_coding(np.concatenate(directions))

    return read_twice(content, file, read, judge, build)


def is_telegram(head: bytes) -> bool:
    """Return whether the lines of a file are `<time> <token> <csv>`, by its start."""
    return _RAW_LINE.match(head) is not None


def count_fast(speeds: Floats) -> tuple[int, int]:
    """Return the numbers of wheel speeds (n, 2) that are too fast to be m/s, and that are not."""
    fast = np.abs(speeds[(speeds != 0) & ~np.isnan(speeds)]) > MAX_SPEED_M_S
    return int(fast.sum()), int((~fast).sum())


def are_rpm(fast: int, slow: int) -> bool:
    """Return whether speeds are turns per minute, by `count_fast`: at least half are too fast."""
    return fast > 0 and fast >= slow


def read_odometry_raw(content: Content, file: str) -> Iterator[Parsed]:
    """Read `<time> <token> <csv>`: telegrams of the motors, speeds in RPM, direction 0 forwards, 1 backwards.

    At ten lines a second, they are parsed one by one.
    """
    for piece in line_pieces(content, file):
        yield _read_telegrams(piece, file)


def _read_telegrams(piece: TextPiece, file: str) -> Parsed:
    times: list[int] = []
    rows: list[list[float]] = []
    telegrams: list[str] = []
    lost = LossCounter()
    for number, line in enumerate(bytes(piece.data).split(b"\n"), piece.newlines + 1):
        if not line.strip():
            continue
        try:
            t_ns, values, text = _telegram(line)
        except ValueError as error:
            lost.add(str(error), number)
            continue
        times.append(t_ns)
        rows.append(values)
        telegrams.append(text)
    values = np.array(rows, np.float64).reshape(-1, 4)
    table = _wheel_table(np.array(times, np.int64), values, in_rpm=True, coded=True)
    losses = (*piece.losses, *lost.losses(file, "line"))
    return Parsed(table.append_column("telegram", arrow.strings(telegrams)), losses)


def _telegram(line: bytes) -> tuple[int, list[float], str]:
    match = _TELEGRAM.fullmatch(line)
    if match is None:
        raise ValueError("not <time> <token> <csv>")
    t_ns, text = ns_from_decimal(match[1].decode()), match[2].decode("utf-8", "replace")
    fields = text.split()[1].split(",")
    if t_ns >= 2**63:
        raise ValueError("the first value is not a time")
    if len(fields) != len(SHORT_FIELDS) and len(fields) <= LONG_FIELDS[-1]:
        raise ValueError(f"fewer than {LONG_FIELDS[-1] + 1} fields in the telegram")
    left, right, angle, direction = (fields[i] for i in telegram_fields(fields))
    sign = _SIGN.match(direction)
    if sign is None:
        raise ValueError("the direction is neither 0 nor 1")
    try:
        return t_ns, [float(left), float(right), float(angle), float(sign[1])], text
    except ValueError:
        raise ValueError("text in place of a number") from None


def telegram_fields(fields: list[str]) -> tuple[int, ...]:
    """Return the indices of left and right wheel, steering and direction in a telegram."""
    return SHORT_FIELDS if len(fields) == len(SHORT_FIELDS) else LONG_FIELDS


def has_own_coding(direction: Floats) -> bool:
    """Return whether directions (n,) have the motors' code, 0 forwards and 1 backwards, not 1 and -1."""
    return bool((direction == 0).any() and not (direction < 0).any())


@cache
def weeder() -> WeederGeometry:
    """Return the geometry of the robot."""
    return WeederGeometry.of(robots.load("weeder"))


def wheel_motion(values: Floats, in_rpm: bool, coded: bool) -> tuple[Floats, Floats]:
    """Return wheel speeds (n, 2) in m/s, negative backwards, and steering (n,) in rad to the left.

    Parameters
    ----------
    values : (n, 4) array
        Left, right, steering and direction of the file.
    in_rpm : bool
        Whether left and right are turns per minute, else m/s.
    coded : bool
        Whether the direction has the motors' code; see `has_own_coding`.
    """
    direction = values[:, 3]
    backwards = direction == 1 if coded else direction < 0
    sign = np.where(np.isnan(direction), np.nan, np.where(backwards, -1.0, 1.0))
    robot = weeder()
    speeds = values[:, :2] * sign[:, None] * (robot.rim_speed if in_rpm else 1.0)
    return speeds, robot.steering(values[:, 2])


def _wheel_table(t_ns: Ints, values: Floats, in_rpm: bool, coded: bool) -> Any:
    """Return the table of the wheels' motion, with the raw values."""
    speeds, steering = wheel_motion(values, in_rpm, coded)
    columns = {"wheel_velocity": speeds, "steering": steering}
    columns |= {name: values[:, i] for i, name in enumerate(RAW)}
    unit = "rpm" if in_rpm else "m/s"
    return arrow.table(t_ns, columns, units={**WheelState.units(), "left_raw": unit, "right_raw": unit})


def read_truth(content: Content, file: str) -> Iterator[Parsed]:
    """Read `sequence0N_gt.txt`: time, x, y, z of the antenna; the quaternion after it has no meaning."""

    def read(piece: TextPiece) -> _ValidLines:
        tokens, lines, losses = read_lines(piece, file, (4, 8), comments=False)
        t_ns, lines, untimed = exact_stamps(tokens, 0, lines, file)
        return _ValidLines(tokens, lines, t_ns, (*losses, *untimed))

    def build(found: _ValidLines, padded: int) -> Parsed:
        t_ns = _restore_zeros(found) if padded else found.t_ns
        notes = (
            (f"{file}: {padded} times lack the zeros after the decimal point: restored",) if padded else ()
        )
        x, y, z = found.tokens.block(1, 3, found.lines).T
        table = arrow.table(t_ns, {"x": x, "y": y, "z": z}, units=Pose.units())
        return Parsed(table, found.losses, notes)

    return read_twice(content, file, read, _count_padded, build)


def _count_padded(every: Iterable[_ValidLines]) -> int:
    """Return the number of times without leading zeros of the fraction, in a file with nine digits elsewhere.

    The published script prints seconds and nanoseconds as two integers.
    """
    whole = short = 0
    for found in every:
        width = _decimals(found)
        whole, short = whole + int((width == 9).sum()), short + int(((width > 0) & (width < 9)).sum())
    return short if whole else 0


def _decimals(found: _ValidLines) -> Ints:
    """Return the number of decimals (n,) of the time of each line."""
    tokens = found.tokens
    texts = (tokens.text(token) for token in tokens.first[found.lines].tolist())
    return np.fromiter((len(text.partition(".")[2]) for text in texts), np.int64, len(found.lines))


def _restore_zeros(found: _ValidLines) -> Ints:
    """Return times whose decimals are nanoseconds without leading zeros: `6.61000000` is 6.061 s."""
    width, t_ns = _decimals(found), found.t_ns.copy()
    short = (width > 0) & (width < 9)
    seconds, fraction = np.divmod(t_ns[short], NS)
    t_ns[short] = seconds * NS + fraction // 10 ** (9 - width[short])
    return t_ns
