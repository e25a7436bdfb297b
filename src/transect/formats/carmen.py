"""CARMEN log: planar laser and odometry, one message per line (`.clf`, `.log`, also as `.bz2` or `.gz`)."""

from __future__ import annotations

import bz2
import gzip
import io
import zlib
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transect.errors import ParseError, UsageError
from transect.recording import Loss, Parsed, Recording, Source, Stream, arrow, cache, files
from transect.recording.clocks import decimal_from_ns
from transect.recording.source import Buffer
from transect.types import LaserScan, Odometry

from ._base import Match, no
from ._lines import whole_lines
from ._rows import clock_of, exact_stamps, float_texts
from ._scan import Tokens, scan

SCANS = ("FLASER", "RLASER", "LASER3", "LASER4", "LASER5")
FIELD_OF_VIEW = np.pi
"""A SICK's scan: the log carries no angles; n beams cover 180 degrees, from right to left."""
MAX_RANGE = 81.83
"""Metres; the readings of a SICK at or above this mean that nothing came back."""
MAX_UNPACKED = 1 << 31
_UNPACK = {".bz2": bz2.open, ".gz": gzip.open}


def recognises(source: Source) -> Match:
    """Recognise one file whose lines begin with PARAM, ODOM or FLASER."""
    if len(source.names) != 1:
        return no("a CARMEN log is one file")
    (name,) = source.names
    head = _head(source, name)
    words = {line.split(None, 1)[0] for line in head.split(b"\n") if line.strip()}
    if words & {b"FLASER", b"ODOM", b"RLASER"}:
        return Match(0.95, "its lines begin with FLASER or ODOM")
    if b"CARMEN" in head[:200]:
        return Match(0.9, "it calls itself a CARMEN log")
    return no("no line begins with FLASER or ODOM")


def _head(source: Source, name: str) -> bytes:
    head = source.head(name)
    suffix = Path(name).suffix.lower()
    try:
        if suffix == ".bz2":
            return bz2.BZ2Decompressor().decompress(head, 65_536)
        if suffix == ".gz":
            return zlib.decompressobj(31).decompress(head, 65_536)
    except (OSError, ValueError):
        return b""
    return head


def read(source: Source) -> Recording:
    """Read scans and odometry; the clock is the one of the IPC stamps."""
    (name,) = source.names

    def part(key: str) -> Parsed:
        return cache.parsed_many(source, name, "carmen/1", partial(_parse, file=name)).get(key) or Parsed(
            arrow.empty()
        )

    known = cache.parsed_many(source, name, "carmen/1", partial(_parse, file=name))
    first = next((int(p.table.column("t_ns")[0].as_py()) for p in known.values() if p.table.num_rows), 0)
    streams = [
        Stream(
            key,
            Odometry if key == "ODOM" else LaserScan,
            partial(part, key),
            clock=clock_of(first),
            frame=frame,
        )
        for key, frame in ((k, "odom" if k == "ODOM" else "laser") for k in known)
    ]
    return Recording(Path(source.stem).stem, tuple(streams), format="carmen", source=source)


def _parse(buffer: Buffer, file: str) -> dict[str, Parsed]:
    text, losses = _unpacked(buffer, file)
    size, cut = whole_lines(text, file)
    losses += [cut] if cut else []
    tokens = scan(text, size)
    words = np.array(tokens.words(0), dtype=str)
    parsed: dict[str, Parsed] = {}
    for key in (*SCANS, "ODOM"):
        lines = np.flatnonzero(words == key)
        if len(lines):
            parsed[key] = _odometry(tokens, lines, file) if key == "ODOM" else _scans(tokens, lines, file)
    if losses and parsed:
        key, kept = next(iter(parsed.items()))
        parsed[key] = Parsed(kept.table, (*kept.losses, *losses), kept.notes)
    if not parsed:
        raise ParseError(f"{file} holds no scan and no odometry", where=file)
    return parsed


def _unpacked(buffer: Buffer, file: str) -> tuple[Buffer, list[Loss]]:
    """Return the text; a compressed file that ends early or claims too much keeps its good part."""
    opener = _UNPACK.get(Path(file).suffix.lower())
    if opener is None:
        return buffer, []
    chunks: list[bytes] = []
    size = 0
    try:
        with opener(io.BytesIO(bytes(buffer))) as stream:
            while chunk := stream.read(1 << 20):
                chunks.append(chunk)
                size += len(chunk)
                if size > MAX_UNPACKED:
                    raise ParseError(f"{file} unpacks to more than 2 GiB", where=file)
    except (EOFError, OSError, ValueError) as error:
        return b"".join(chunks), [Loss(file, f"the compressed data is damaged: {error}", byte=size, count=0)]
    return b"".join(chunks), []


def _odometry(tokens: Tokens, lines: NDArray[np.int64], file: str) -> Parsed:
    """Parse `ODOM x y theta tv rv accel ipc_timestamp host logger_timestamp`."""
    lines, losses = _of_width(tokens, lines, lines * 0 + 10, file)
    t_ns, lines, bad = exact_stamps(tokens, 7, lines, file)
    x, y, theta, tv, rv = tokens.block(1, 5, lines).T
    nothing = np.zeros(len(lines))
    columns = {
        "x": x, "y": y, "z": nothing, "theta": theta,
        "qx": nothing, "qy": nothing, "qz": np.sin(theta / 2), "qw": np.cos(theta / 2),
        "vx": tv, "vy": nothing, "vz": nothing, "wx": nothing, "wy": nothing, "wz": rv,
    }  # fmt: skip
    contiguous = {k: np.ascontiguousarray(v) for k, v in columns.items()}
    return Parsed(arrow.table(t_ns, contiguous, units={**Odometry.units(), "theta": "rad"}), (*losses, *bad))


def _scans(tokens: Tokens, lines: NDArray[np.int64], file: str) -> Parsed:
    """Parse `FLASER n r1..rn x y theta odom_x odom_y odom_theta ipc_timestamp host logger_timestamp`."""
    claimed = np.nan_to_num(tokens.column(1, lines[tokens.counts[lines] > 1]), nan=-1).astype(np.int64)
    lines = lines[tokens.counts[lines] > 1]
    lines, losses = _of_width(tokens, lines, claimed + 11, file)
    counts = tokens.counts[lines] - 11
    at_time = tokens.first[lines] + 8 + counts
    t_ns, lines, bad = _late_stamps(tokens, lines, at_time, file)
    counts = tokens.counts[lines] - 11
    first = tokens.first[lines]
    pick = np.concatenate(
        [np.arange(f + 2, f + 2 + n) for f, n in zip(first, counts, strict=True)] or [np.zeros(0, int)]
    )
    ranges = tokens.values[pick]
    ranges[ranges >= MAX_RANGE] = np.nan
    offsets = np.concatenate([[0], np.cumsum(counts)])
    pose = tokens.values[(first + 2 + counts)[:, None] + np.arange(6)]
    columns = {
        "ranges": arrow.ragged_from_offsets(ranges, offsets),
        "start_angle": np.full(len(lines), -FIELD_OF_VIEW / 2),
        "angle_increment": FIELD_OF_VIEW / np.where(counts % 2, counts - 1, counts).clip(1),
        **{
            n: np.ascontiguousarray(pose[:, i])
            for i, n in enumerate(("x", "y", "theta", "odom_x", "odom_y", "odom_theta"))
        },
    }
    units = {
        **LaserScan.units(),
        "x": "m",
        "y": "m",
        "theta": "rad",
        "odom_x": "m",
        "odom_y": "m",
        "odom_theta": "rad",
    }
    return Parsed(arrow.table(t_ns, columns, units=units), (*losses, *bad))


def _late_stamps(
    tokens: Tokens, lines: NDArray[np.int64], at: NDArray[np.int64], file: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[Loss]]:
    from ._scan import bad_stamp, stamps

    t_ns = stamps(tokens.buffer, tokens.begin[at], tokens.end[at], 10**9)
    bad = bad_stamp(t_ns)
    lost = (
        [Loss(file, "the time cannot be read", line=int(tokens.line[lines[bad]][0]), count=int(bad.sum()))]
        if bad.any()
        else []
    )
    return t_ns[~bad], lines[~bad], lost


def _of_width(
    tokens: Tokens, lines: NDArray[np.int64], widths: NDArray[np.int64], file: str
) -> tuple[NDArray[np.int64], list[Loss]]:
    """Keep the lines of the right number of fields whose values are numbers; host names are words."""
    words = np.add.reduceat(tokens.is_word, tokens.first[:-1])[lines]
    good = (tokens.counts[lines] == widths) & (words <= 2)
    if good.all():
        return lines, []
    bad = lines[~good]
    return lines[good], [
        Loss(file, "the number of fields is wrong", line=int(tokens.line[bad][0]), count=len(bad))
    ]


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write scans and planar odometry; a path without suffix gets `.clf`."""
    path = path if path.suffix else path.with_suffix(".clf")
    chosen = [s for s in recording.streams if s.type in (LaserScan, Odometry)]
    if not chosen:
        raise UsageError(f"{recording.name} has no laser scan and no odometry to write as a CARMEN log")
    lines: list[tuple[int, str]] = []
    for stream in chosen:
        lines += _scan_lines(stream) if stream.type is LaserScan else _odometry_lines(stream)
    lines.sort(key=lambda item: item[0])
    text = "# CARMEN Logfile\n" + "".join(line for _, line in lines)
    files.write_text(path, text)
    names = [s.name for s in recording.streams if s not in chosen]
    return (f"a CARMEN log holds scans and odometry: {', '.join(names)} left out",) if names else ()


def _scan_lines(stream: Stream) -> list[tuple[int, str]]:
    word = stream.name if stream.name in SCANS else SCANS[0]
    poses = [
        float_texts(np.asarray(stream[n]) if n in stream.columns else np.zeros(len(stream)))
        for n in ("x", "y", "theta", "odom_x", "odom_y", "odom_theta")
    ]
    rows = stream.table.column("ranges").to_pylist()
    lines: list[tuple[int, str]] = []
    for i, (t, ranges) in enumerate(zip(stream.t_ns.tolist(), rows, strict=True)):
        values = " ".join(repr(r) if r == r else repr(MAX_RANGE) for r in ranges)
        pose, time = " ".join(p[i] for p in poses), decimal_from_ns(t)
        lines.append((t, f"{word} {len(ranges)} {values} {pose} {time} transect {time}\n"))
    return lines


def _odometry_lines(stream: Stream) -> list[tuple[int, str]]:
    if "theta" in stream.columns:
        theta = np.asarray(stream["theta"])
    else:
        theta = 2 * np.arctan2(np.asarray(stream["qz"]), np.asarray(stream["qw"]))
    parts = [
        float_texts(np.asarray(v)) for v in (stream["x"], stream["y"], theta, stream["vx"], stream["wz"])
    ]
    return [
        (t, f"ODOM {' '.join(p[i] for p in parts)} 0.0 {decimal_from_ns(t)} transect {decimal_from_ns(t)}\n")
        for i, t in enumerate(stream.t_ns.tolist())
    ]
