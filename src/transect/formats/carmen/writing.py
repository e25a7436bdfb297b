"""Writing of CARMEN logs: one line per message, in the order of log times, else of sample times."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transect.base import files
from transect.base.clocks import decimal_from_ns
from transect.errors import UsageError
from transect.recording import Recording, Stream, arrow
from transect.types import LaserScan, Odometry, Pose
from transect.types.returns import BEYOND_MAXIMUM, NOT_VALID

from ..shared.rows import column_or_nan, float_texts, new_file
from . import LIMITS, OLD, RAW, SCANS
from .messages import MAX_SICK_LIMIT_M, MAX_SICK_RANGE_M, sick_geometry

HEADER = "# CARMEN Logfile\n# message_name [message contents] ipc_timestamp ipc_hostname logger_timestamp\n"
HOST = "transect"


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write scans, planar odometry and true poses in order of arrival, to a file or a folder."""
    words = _words(recording)
    if not words:
        raise UsageError(f"{recording.name} has no laser scan and no odometry to write as a CARMEN log")
    lines: list[tuple[int, str]] = []
    logged = all(stream.log_ns is not None for stream in words)
    for stream, word in words.items():
        body = _scan_bodies(stream, word) if word in SCANS else _planar_bodies(stream, word)
        order = stream.log_ns if logged and stream.log_ns is not None else stream.t_ns
        lines += zip(order.tolist(), _stamp(stream, word, body), strict=True)
    lines.sort(key=lambda line: line[0])
    text = HEADER + "".join(_params(words)) + "".join(line for _, line in lines)
    target = new_file(path, f"{recording.name}.clf")
    files.write_bytes(target, _pack(text.encode(), target))
    left = [s for s in recording.streams if s not in words and not _is_in_scans(s, recording)]
    notes = [f"{s.name}: CARMEN has no message for it" for s in left]
    flat = [s.name for s, word in words.items() if word == "ODOM" and "theta" not in s.columns]
    return (
        *notes,
        *(f"{name}: CARMEN's odometry is planar, z, roll and pitch are left out" for name in flat),
    )


def _params(words: Mapping[Stream, str]) -> list[str]:
    """Return lines with the range limits of scans of the old form."""
    limited = [(s, word) for s, word in words.items() if word in LIMITS and "range_max" in s.columns]
    limits = {LIMITS[word]: float(_limits(s, word)[0]) for s, word in limited if len(s)}
    return [f"PARAM {name} {limit!r} {HOST} 0\n" for name, limit in limits.items()]


def _words(recording: Recording) -> dict[Stream, str]:
    """Choose the message for each stream: its own name, or the first unused one that can represent it."""
    words: dict[Stream, str] = {}
    for stream in recording.streams:
        if _is_in_scans(stream, recording):
            continue
        if stream.type is LaserScan:
            form = OLD if _is_sick(stream) else RAW
            fitting = [w for w, f in SCANS.items() if w == stream.name or f is form]
            fitting.sort(key=lambda w: w != stream.name)
        else:
            kind = "ODOM" if stream.type is Odometry else "TRUEPOS"
            fitting = [kind] if stream.type in (Odometry, Pose) and "x" in stream.columns else []
            fitting = fitting if kind == "ODOM" or stream.name == kind else []
        if free := [word for word in fitting if word not in words.values()]:
            words[stream] = free[0]
    return words


def _is_in_scans(stream: Stream, recording: Recording) -> bool:
    """Return whether a stream is the odometry in the lines of a laser that is also written."""
    return any(stream.name == f"{other.name}/odometry" for other in recording.streams)


def _is_sick(stream: Stream) -> bool:
    """Return whether FLASER can represent a stream: angles of a SICK, and no larger ranges."""
    rows = stream.table.column("ranges").to_pylist()
    shape = sick_geometry(np.array([len(row) for row in rows], np.int64))
    return all(
        np.array_equal(column_or_nan(stream, name), values) for name, values in shape.items()
    ) and not any(reading >= MAX_SICK_RANGE_M for row in rows for reading in row)


def _scan_bodies(stream: Stream, word: str) -> Iterable[str]:
    form = SCANS[word]
    nothing = [""] * len(stream)
    head = _join(_head(stream, name) for name in form.head) or nothing
    tail = _join(column_or_nan(stream, name) for name in form.tail) or nothing
    readings = _readings(stream, _head(stream, "range_max") if form.head else _limits(stream, word))
    known = "remission" in stream.columns
    remissions = stream.table.column("remission").to_pylist() if known else [[]] * len(stream)
    for i, row in enumerate(readings):
        parts = [head[i], str(len(row)), *map(repr, row)]
        if form.remissions:
            parts += [str(len(remissions[i])), *(repr(float(v)) for v in remissions[i])]
        yield " ".join(part for part in (*parts, tail[i]) if part)


def _readings(stream: Stream, limits: NDArray[np.float64]) -> list[list[float]]:
    """Return the ranges of each scan in m, with the SICK code or limit (n,) for beams without return."""
    ranges, offsets = arrow.lists_of(stream.table, "ranges")
    known = "range_error" in stream.columns
    errors = arrow.lists_of(stream.table, "range_error")[0] if known else np.zeros(len(ranges))
    limit = np.repeat(limits, np.diff(offsets))
    coded = (errors >= BEYOND_MAXIMUM) & (limit <= MAX_SICK_LIMIT_M)
    told = np.where(np.isnan(ranges), np.where(coded, errors / 100, limit), ranges)
    return [row.tolist() for row in np.split(told, offsets[1:-1])] if len(stream) else []


def _limits(stream: Stream, word: str) -> NDArray[np.float64]:
    """Return the range (n,) that means no return in scans of the old form, m: the limit if known."""
    told = stream["range_max"] if word in LIMITS and "range_max" in stream.columns else np.array([np.nan])
    limit = told[0] if len(told) and (told == told[0]).all() else NOT_VALID / 100
    return np.full(len(stream), limit)


def _head(stream: Stream, name: str) -> NDArray[np.float64]:
    """Return a column of the head of RAWLASER; missing values are computed or 0."""
    if name in stream.columns:
        return column_or_nan(stream, name)
    if name == "field_of_view":
        counts = np.array([len(row) for row in stream.table.column("ranges").to_pylist()])
        return column_or_nan(stream, "angle_increment") * (counts - 1).clip(0)
    if name == "range_max":
        longest = max(
            (v for row in stream.table.column("ranges").to_pylist() for v in row if v == v), default=0
        )
        return np.full(len(stream), np.nextafter(longest, np.inf))
    return np.zeros(len(stream))


def _planar_bodies(stream: Stream, word: str) -> Iterable[str]:
    theta = column_or_nan(stream, "theta")
    if "theta" not in stream.columns:
        theta = 2 * np.arctan2(column_or_nan(stream, "qz"), column_or_nan(stream, "qw"))
    rest = ("vx", "wz", "accel") if word == "ODOM" else ("odom_x", "odom_y", "odom_theta")
    values = (column_or_nan(stream, "x"), column_or_nan(stream, "y"), theta)
    return _join((*values, *(column_or_nan(stream, name) for name in rest)))


def _join(columns: Iterable[NDArray[np.float64]]) -> list[str]:
    texts = [float_texts(np.ascontiguousarray(values)) for values in columns]
    return [" ".join(row) for row in zip(*texts, strict=True)]


def _stamp(stream: Stream, word: str, bodies: Iterable[str]) -> Iterable[str]:
    """Yield the lines of a stream with the times of its samples and those of its logger."""
    logged = stream.t_ns if stream.log_ns is None else stream.log_ns
    logger: list[int] = (stream.column("logger_ns") if "logger_ns" in stream.columns else logged).tolist()
    for t, at, body in zip(stream.t_ns.tolist(), logger, bodies, strict=True):
        yield f"{word} {body} {decimal_from_ns(t)} {HOST} {decimal_from_ns(at)}\n"


def _pack(text: bytes, path: Path) -> bytes:
    """Return a text compressed according to the suffix of its file."""
    if path.suffix.lower() == ".bz2":
        return bz2.compress(text)
    return gzip.compress(text, mtime=0) if path.suffix.lower() == ".gz" else text
