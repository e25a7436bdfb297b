"""Reader and writer of the published tracks: a ground truth with times as floats, an echoed odometry."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache as kept
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transect import robots
from transect.base.clocks import NS
from transect.base.file_bytes import Content
from transect.base.files import refuse_existing, write_bytes
from transect.errors import GeometryError, UsageError
from transect.formats.shared.file_groups import file_table
from transect.formats.shared.images import image_loader
from transect.formats.shared.interface import Note
from transect.formats.shared.payloads import good_payloads, payload_bytes, source_file
from transect.formats.shared.rows import (
    column_or_nan,
    exact_stamps,
    float_texts,
    invert,
    read_lines,
    text_rows,
)
from transect.recording import Loss, Parsed, Recording, Source, Stream, arrow, cache
from transect.recording.source import Buffer
from transect.recording.text import line_pieces
from transect.types import Image, Odometry, Pose

from ..bags.files import no_sequence
from ..catalogue import entry_of
from . import ODOMETRY, SAMPLE, TRUTH, base_of

IMU_OFFSET_M = (1.96, -0.017, 1.02)
"""Position of the IMU in base_link, which was added to Rosario's ground truth."""
_BLOCK = re.compile(rb"(?m)^x: (\S+)\r?\n\s*y: (\S+)\r?\n\s*z: (\S+)\r?\n---\r?\n?")


def added_offset(rosario: bool) -> tuple[float, float, float]:
    """Return the offset that was added to the positions of a ground truth, m; 0 if unknown."""
    return IMU_OFFSET_M if rosario else (0.0, 0.0, 0.0)


def read_truth(content: Content, file: str, added: tuple[float, float, float]) -> Iterator[Parsed]:
    """Read nanoseconds (as a decimal, also with an exponent), x, y, z; the quaternion is ignored."""
    for piece in line_pieces(content, file):
        tokens, lines, losses = read_lines(piece, file, (8,))
        t_ns, lines, untimed = exact_stamps(tokens, 0, lines, file, unit_ns=1)
        position = tokens.block(1, 3, lines) - np.array(added)
        columns = {axis: position[:, i] for i, axis in enumerate("xyz")}
        yield Parsed(arrow.table(t_ns, columns, units=Pose.units()), (*losses, *untimed))


def read_echo(buffer: Buffer, file: str) -> Parsed:
    """Read blocks of `x:`, `y:`, `z:`, `---`; sample i is at i seconds of the index clock."""
    data = bytes(buffer)
    rows: list[list[float]] = []
    bad: list[int] = []
    at = 0
    for match in _BLOCK.finditer(data):
        if data[at : match.start()].strip():
            bad.append(at)
        row = _numbers(match)
        if row is None:
            bad.append(match.start())
        else:
            rows.append(row)
        at = match.end()
    if data[at:].strip():
        bad.append(at)
    position = np.array(rows, np.float64).reshape(-1, 3)
    columns = {axis: position[:, i] for i, axis in enumerate("xyz")}
    table = arrow.table(NS * np.arange(len(rows)), columns, units=Odometry.units())
    return Parsed(table, _echo_losses(data, bad, file))


def _numbers(match: re.Match[bytes]) -> list[float] | None:
    try:
        return [float(text) for text in match.groups()]
    except ValueError:
        return None


def _echo_losses(data: bytes, bad: list[int], file: str) -> tuple[Loss, ...]:
    if not bad:
        return ()
    line = 1 + data.count(b"\n", 0, bad[0])
    return (Loss(file, "not a block of x, y, z and ---", line=line, count=len(bad)),)


class EstimatedStamps(NamedTuple):
    """Times (n,) on the clock of the truth, None if they cannot be estimated, and a note."""

    t_ns: NDArray[np.int64] | None
    note: str


def estimate_stamps(truth: Stream, odometry: Stream, min_correlation: float = 0.7) -> EstimatedStamps:
    """Estimate the times of an odometry by a ground truth track that was recorded at the same time.

    The correlation of the speeds of unrelated tracks is at most 0.4.
    """
    from ..robot.comparison import PlanarTrack, find_sample_times

    rate = float(robots.load("weeder").constants["odometry_rate"])
    order = np.argsort(truth.t_ns, kind="stable")
    track = PlanarTrack(truth.t_ns[order], truth.array("x", "y", "z")[order])
    if not len(track.t_ns):
        return EstimatedStamps(None, "the RTK track is empty")
    try:
        t_ns, found = find_sample_times(track, odometry.array("x", "y", "z"), rate)
    except GeometryError:
        return EstimatedStamps(None, "its speed cannot be compared with RTK's")
    if found.correlation < min_correlation or not found.confidence:
        return EstimatedStamps(None, f"its speed does not fit RTK's (correlation {found.correlation:.2f})")
    return EstimatedStamps(
        t_ns,
        f"{rate:g} Hz are assumed (by the documentation), starting {found.offset_ns / NS:+.2f} s after RTK, "
        f"where the speeds correlate best ({found.correlation:.2f}); --option stamps=none keeps the index "
        "clock",
    )


_UNTIMED = "Odometry has no times: "
_INDEX = "it is on the index clock"
_RATE = " (10 Hz by the documentation)"
_ANTENNA = (
    "GroundTruth is the track of the GPS antenna (see errata), without the constant that was added; its "
    "times were floats, exact to 128 ns; the _left_cam_frame file has the same track and is not read"
)
_RTK = "Rtk is the same track as a measurement: results that use it cannot be evaluated by GroundTruth"
_UNCHANGED = "GroundTruth is unchanged: the constant that was added to it is unknown"


def sequences(source: Source) -> dict[str, list[str]]:
    """Return the files of each sequence: `01` to `06` of Rosario, a letter for Flourish."""
    found: dict[str, list[str]] = {}
    for name in source.names:
        for pattern in (TRUTH, ODOMETRY, SAMPLE):
            if match := pattern.fullmatch(base_of(name)):
                groups = match.groupdict()
                found.setdefault(groups["n"] or groups["f"], []).append(name)
    return dict(sorted(found.items()))


def choose_sequence(known: dict[str, list[str]], sequence: str | int | None, source: Source) -> str:
    """Return the key of the selected sequence, or of the only one."""
    text = str(next(iter(known)) if sequence is None and len(known) == 1 else sequence or "")
    key = text.removeprefix("sequence").removeprefix("flourish")
    key = f"{int(key):02d}" if key.isdigit() else key.upper()
    if key in known:
        return key
    raise no_sequence(sequence, known, str(source.path), next(iter(known), "01"))


def read(source: Source, sequence: str | int | None = None, stamps: str = "auto") -> Recording:
    """Read one sequence."""
    if stamps not in ("auto", "none"):
        hint = "--option stamps=auto, or --option stamps=none"
        raise UsageError(f"stamps is {stamps!r}", hint=hint)
    known = sequences(source)
    key = choose_sequence(known, sequence, source)
    files, rosario = known[key], key.isdigit()
    tracks, odometries = _truths(source, files, rosario), _odometries(source, files)
    notes: list[str] = [_UNTIMED + _INDEX, _UNCHANGED]
    about: dict[str, Any] = {}
    if rosario:
        odometries, notes = _time(odometries, tracks[:1], stamps)
        notes += [_ANTENNA, _RTK] if tracks else []
        robot, entry = robots.load("weeder"), entry_of(f"sequence{key}")
        about = {"robot": robot, "frames": robot.frames, "cameras": robot.cameras}
        about |= {"conditions": entry.facts() if entry else {}}
    return Recording(
        f"sequence{key}" if rosario else f"flourish{key}",
        (*tracks, *odometries, *_samples(source, files)),
        format="rosario_tracks",
        source=source,
        notes=tuple(notes),
        **about,
    )


def _truths(source: Source, files: list[str], rosario: bool) -> list[Stream]:
    """Return the ground truth track, and for Rosario the same track as a measurement."""
    added = added_offset(rosario)
    for name in files:
        if TRUTH.fullmatch(base_of(name)):
            parser, build = f"rosario_tracks.truth/1 {added}", partial(read_truth, file=name, added=added)
            load = kept(partial(cache.parse_pieces, source, name, parser, build))
            child = "gps" if rosario else "base_link"
            truth = Stream("GroundTruth", Pose, load, role="truth", frame="world", child=child)
            rtk = truth.replace(name="Rtk", role="measurement", tag="position")
            return [truth, rtk] if rosario else [truth]
    return []


def _odometries(source: Source, files: list[str]) -> list[Stream]:
    streams: list[Stream] = []
    for name in files:
        if match := ODOMETRY.fullmatch(base_of(name)):
            load = partial(
                cache.parse, source, name, "rosario_tracks.odometry/1", partial(read_echo, file=name)
            )
            stream = Stream("Odometry", Odometry, load, clock="index", frame="odom", child="base_link")
            combined = stream.replace(name="Odometry/Combined", role="derived")
            streams.append(combined if match["c"] else stream)
    return streams


def _time(odometries: list[Stream], truths: list[Stream], stamps: str) -> tuple[list[Stream], list[str]]:
    """Return the odometry with estimated times, or notes without them.

    The clock of a stream is fixed when it is opened, so that both texts are read now, in some milliseconds.
    """
    if not odometries:
        return [], []
    if not truths or stamps == "none":
        return odometries, [_UNTIMED + _INDEX + _RATE]
    odometry = odometries[0]
    t_ns, note = estimate_stamps(truths[0], odometry)
    if t_ns is None:
        return odometries, [f"{_UNTIMED}{_INDEX}{_RATE}, as {note}"]
    table = odometry.table.set_column(0, odometry.table.schema.field(0), arrow.from_numpy(t_ns))
    timed = Parsed(table, odometry.losses, (_UNTIMED + note,))
    return [odometry.replace(source=timed, clock="utc")], []


def _samples(source: Source, files: list[str]) -> list[Stream]:
    """Return the stream of sample images: pairs of successive images with the most and the fewest matches."""
    pairs = [
        (match["which"], not match["before"], name)
        for name in files
        if (match := SAMPLE.fullmatch(base_of(name)))
    ]
    names = [name for _, _, name in sorted(pairs)]
    if not names:
        return []
    table = file_table(NS * np.arange(len(names)), names)
    loader = image_loader(source, frame="left_camera", camera=robots.load("weeder").cameras["left"])
    return [
        Stream(
            "Zed/Left",
            Image,
            table,
            clock="index",
            role="derived",
            tag="left",
            frame="left_camera",
            loader=loader,
            camera="left",
        )
    ]


def write_tracks(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write one sequence to a new folder; return a sentence for each loss."""
    refuse_existing(path)
    key = _key(recording)
    chosen = _choose_streams(recording, rosario=key.isdigit())
    if not chosen:
        raise UsageError(
            f"{recording.name} has no track to write", why="it has neither a true position nor an odometry"
        )
    losses: list[str] = []
    for part, stream in chosen.items():
        if part == "images":
            losses += _write_samples(recording, stream, key, path)
        else:
            text = _truth_text(stream, key.isdigit()) if part == "truth" else _echo_text(stream)
            write_bytes(path / _file_name(part, key), text)
    return (*losses, *_list_losses(recording, chosen, key.isdigit()))


def _key(recording: Recording) -> str:
    """Return two digits for Rosario (00 if unknown), a letter for Flourish."""
    if match := re.fullmatch(r"flourish([A-Z])", recording.name):
        return match[1]
    entry = entry_of(recording.name)
    numbered = re.fullmatch(r"sequence(\d\d)", recording.name)
    return f"{entry.number:02d}" if entry else numbered[1] if numbered else "00"


def _file_name(part: str, key: str) -> str:
    names = {"truth": "sequence{}_new_gt_IMU_frame.txt", "odometry": "odometry_sequence{}.txt"}
    if not key.isdigit():
        names = {"truth": "flourish_Dataset{}_GT.txt", "odometry": "flourish_odometry_Dataset{}.txt"}
        names["combined"] = "flourish_odometry_combined_Dataset{}.txt"
    return names[part].format(key)


def _choose_streams(recording: Recording, rosario: bool) -> dict[str, Stream]:
    """Return the streams that can be written, by part of the sequence."""
    chosen: dict[str, Stream] = {}
    for stream in recording:
        tracked = {"x", "y", "z"} <= set(stream.columns)
        if stream.role == "truth" and stream.type is Pose and stream.clock == "utc" and tracked:
            chosen.setdefault("truth", stream)
        elif stream.role != "truth" and stream.type is Odometry and tracked:
            combined = stream.name.endswith("Combined") and not rosario
            chosen.setdefault("combined" if combined else "odometry", stream)
        elif stream.type is Image and stream.tag == "left" and rosario:
            chosen.setdefault("images", stream)
    return chosen


def _truth_text(stream: Stream, rosario: bool) -> bytes:
    columns = [[str(t) for t in stream.t_ns.tolist()]]
    for axis, offset in zip("xyz", added_offset(rosario), strict=True):
        values = column_or_nan(stream, axis)
        columns.append(float_texts(invert(lambda raw, by=offset: raw - by, values, values + offset)))
    return text_rows([*columns, *([text] * len(stream) for text in ("0.0", "0.0", "0.0", "1.0"))])


def _echo_text(stream: Stream) -> bytes:
    rows = zip(*(float_texts(column_or_nan(stream, axis)) for axis in "xyz"), strict=True)
    return "".join(f"x: {x}\ny: {y}\nz: {z}\n---\n" for x, y, z in rows).encode()


def _write_samples(recording: Recording, stream: Stream, key: str, path: Path) -> list[str]:
    """Copy the sample images, whose names contain their pair; other images are lost."""
    losses: list[str] = []
    samples = [s for s in stream if SAMPLE.fullmatch(base_of(source_file(recording, s) or ""))]
    for sample, data in good_payloads(samples, partial(payload_bytes, recording, suffix=".jpg"), losses):
        name = base_of(source_file(recording, sample) or "")
        write_bytes(path / "sample_left_images" / re.sub(r"^sequence\d\d", f"sequence{key}", name), data)
    if others := len(stream) - len(samples):
        losses.append(f"{stream.name}: {others} images are not samples and cannot be written with the tracks")
    return losses


def _list_losses(recording: Recording, chosen: dict[str, Stream], rosario: bool) -> Iterator[str]:
    truth, moving = chosen.get("truth"), "gps" if rosario else "base_link"
    for stream in recording:
        if stream not in chosen.values() and not (rosario and _is_truth_track(stream, truth)):
            yield f"{stream.name} ({stream.type.__name__}) cannot be written with the tracks"
    for part, stream in chosen.items():
        lost = set(stream.columns) - {"x", "y", "z"}
        if part != "images" and lost:
            yield f"{stream.name}: only positions are written, not {', '.join(sorted(lost))}"
        by = truth if rosario and part == "odometry" else None
        if part in ("odometry", "combined") and not _is_timed_by(stream, by):
            yield f"{stream.name}: an echoed odometry has no times"
    if truth is not None and truth.child not in ("", moving):
        yield Note(f"{truth.name} is of {truth.child}; it will be read as the track of {moving}")


def _is_truth_track(stream: Stream, truth: Stream | None) -> bool:
    """Return whether a stream is the track of the ground truth, from which the reader restores both."""
    if truth is None or stream.type is not Pose or not np.array_equal(stream.t_ns, truth.t_ns):
        return False
    both = ([column_or_nan(each, axis) for axis in "xyz"] for each in (stream, truth))
    return np.array_equal(*both, equal_nan=True)


def _is_timed_by(odometry: Stream, truth: Stream | None) -> bool:
    """Return whether an odometry has the times that the reader will estimate."""
    found = None if truth is None else estimate_stamps(truth, odometry).t_ns
    return np.array_equal(odometry.t_ns, NS * np.arange(len(odometry)) if found is None else found)
