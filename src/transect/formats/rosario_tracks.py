"""Rosario ground truth with echoed odometry: `sequence0N_new_gt_IMU_frame.txt` and `odometry_sequence0N.txt`.

Tracks that another project derived from the Rosario bags (and one of Flourish). The ground truth is
nanoseconds written as a float, a position to which a constant was added (it is subtracted here), and a
quaternion that means nothing. The odometry is what `rostopic echo` prints of a position, without times.
Writing adds the constant again and puts the identity where the quaternion was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transect import robots
from transect.errors import UsageError
from transect.recording import Loss, Parsed, Recording, Source, Stream, arrow, cache
from transect.recording.clocks import NS
from transect.recording.files import write_bytes
from transect.recording.source import Buffer
from transect.types import Image, Odometry, Pose

from ._base import Match, no
from ._catalogues.rosario import entry_of
from ._images import file_table, image_loader
from ._payloads import good_payloads, new_folder, payload_bytes, source_file
from ._rows import column_or_nan, exact_stamps, float_texts, read_lines, text_rows, undone

ADDED = (1.96, -0.017, 1.02)
"""Metres: where the imu is in base_link; it was added to Rosario's ground truth."""
_TRUTH = re.compile(r"(?:sequence(?P<n>\d\d)_new_gt_IMU_frame|flourish_Dataset(?P<f>[A-Z])_GT)\.txt")
_ODOMETRY = re.compile(
    r"(?:odometry_sequence(?P<n>\d\d)|flourish_odometry_(?P<c>com\w*_)?Dataset(?P<f>[A-Z]))\.txt"
)
_SAMPLE = re.compile(r"sequence(?P<n>\d\d)_(?P<which>max|min)_inliers_(?P<before>prev_)?\d+\.jpg")
_BLOCK = re.compile(rb"(?m)^x: (\S+)\r?\n\s*y: (\S+)\r?\n\s*z: (\S+)\r?\n---\r?\n?")
_UNTIMED = "Odometry has no times: it is on the index clock"
_RATE = " (10 Hz by the documentation)"
_ANTENNA = (
    "GroundTruth is the track of the gps antenna (see errata), the constant added to it subtracted; its "
    "times were floats, good to 128 ns; the _left_cam_frame file is the same track and is not read"
)
_AS_FOUND = "GroundTruth stands as it was found: what was added to it is not known"


def recognises(source: Source) -> Match:
    """Look at file names only."""
    truths = [name for name in source.names if _TRUTH.fullmatch(_base(name))]
    odometries = [name for name in source.names if _ODOMETRY.fullmatch(_base(name))]
    if truths and odometries:
        return Match(0.95, f"it has {_base(truths[0])} and {_base(odometries[0])}")
    if truths or odometries:
        return Match(0.9, f"it has {_base([*truths, *odometries][0])}")
    return no("no sequence0N_new_gt_IMU_frame.txt and no odometry_sequence0N.txt")


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def sequences(source: Source) -> dict[str, list[str]]:
    """Return the files of each sequence: `01` to `06` of Rosario, a letter for Flourish."""
    found: dict[str, list[str]] = {}
    for name in source.names:
        for pattern in (_TRUTH, _ODOMETRY, _SAMPLE):
            if match := pattern.fullmatch(_base(name)):
                groups = match.groupdict()
                found.setdefault(groups["n"] or groups["f"], []).append(name)
    return dict(sorted(found.items()))


def read(source: Source, sequence: str | int | None = None) -> Recording:
    """Read one sequence.

    Parameters
    ----------
    source : Source
    sequence : str or int, optional
        "01", ... of Rosario, "A" of Flourish; needed where there are several.
    """
    known = sequences(source)
    key = _chosen(known, sequence, source)
    files, rosario = known[key], key.isdigit()
    recording = Recording(
        name=f"sequence{key}" if rosario else f"flourish{key}",
        streams=(*_truths(source, files, rosario), *_odometries(source, files), *_samples(source, files)),
        format="rosario_tracks",
        source=source,
        notes=(_UNTIMED + _RATE, _ANTENNA) if rosario else (_UNTIMED, _AS_FOUND),
    )
    return _of_weeder(recording) if rosario else recording


def _chosen(known: dict[str, list[str]], sequence: str | int | None, source: Source) -> str:
    text = str(next(iter(known)) if sequence is None and len(known) == 1 else sequence or "")
    key = text.removeprefix("sequence").removeprefix("flourish")
    key = f"{int(key):02d}" if key.isdigit() else key.upper()
    if key in known:
        return key
    names = ", ".join(known)
    raise UsageError(
        f"there are {len(known)} sequences here"
        if sequence is None
        else f"there is no sequence {sequence!r} here",
        where=str(source.path),
        why=f"found: {names or 'none'}",
        hint=f"--option sequence={next(iter(known), '01')} (in Python sequence=...)",
    )


def _of_weeder(recording: Recording) -> Recording:
    robot, entry = robots.load("weeder"), entry_of(recording.name)
    return recording.replace(
        robot=robot, frames=robot.frames, cameras=robot.cameras, conditions=entry.facts() if entry else {}
    )


def _truths(source: Source, files: list[str], rosario: bool) -> list[Stream]:
    names = [name for name in files if _TRUTH.fullmatch(_base(name))]
    added = _added(rosario)
    return [
        Stream(
            "GroundTruth",
            Pose,
            partial(
                cache.parsed,
                source,
                name,
                f"rosario_tracks.truth/1 {added}",
                partial(read_truth, file=name, added=added),
            ),
            role="truth",
            frame="world",
            child="gps" if rosario else "base_link",
        )
        for name in names[:1]
    ]


def _added(rosario: bool) -> tuple[float, float, float]:
    return ADDED if rosario else (0.0, 0.0, 0.0)


def _odometries(source: Source, files: list[str]) -> list[Stream]:
    streams: list[Stream] = []
    for name in files:
        if match := _ODOMETRY.fullmatch(_base(name)):
            load = partial(
                cache.parsed, source, name, "rosario_tracks.odometry/1", partial(read_echo, file=name)
            )
            stream = Stream("Odometry", Odometry, load, clock="index", frame="odom", child="base_link")
            combined = stream.replace(name="Odometry/Combined", role="derived")
            streams.append(combined if match["c"] else stream)
    return streams


def _samples(source: Source, files: list[str]) -> list[Stream]:
    """Return the few single frames: pairs of successive images with the most and the fewest matches."""
    pairs = [
        (match["which"], not match["before"], name)
        for name in files
        if (match := _SAMPLE.fullmatch(_base(name)))
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


def read_truth(buffer: Buffer, file: str, added: tuple[float, float, float]) -> Parsed:
    """Read nanoseconds (as a decimal, also with an exponent), x, y, z, and a quaternion that is left out."""
    tokens, lines, losses = read_lines(buffer, file, (8,))
    t_ns, lines, untimed = exact_stamps(tokens, 0, lines, file, unit_ns=1)
    position = tokens.block(1, 3, lines) - np.array(added)
    columns = {axis: position[:, i] for i, axis in enumerate("xyz")}
    return Parsed(arrow.table(t_ns, columns, units=Pose.units()), (*losses, *untimed))


def read_echo(buffer: Buffer, file: str) -> Parsed:
    """Read blocks of `x:`, `y:`, `z:`, `---`; sample i stands at i seconds of the index clock."""
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


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write one sequence to a new folder: its ground truth, its odometry as echoed, its sample images.

    Everything that came from such a folder reads back exactly; a position from elsewhere to the rounding of
    the one addition that reading undoes.
    """
    new_folder(path)
    key = _key(recording)
    chosen = _chosen_streams(recording, rosario=key.isdigit())
    if not chosen:
        raise UsageError(
            f"{recording.name} has no track to write", why="it has neither a true position nor an odometry"
        )
    said: list[str] = []
    for place, stream in chosen.items():
        if place == "images":
            said += _write_samples(recording, stream, key, path)
        else:
            text = _truth_text(stream, key.isdigit()) if place == "truth" else _echo_text(stream)
            write_bytes(path / _file_name(place, key), text)
    return (*said, *_not_carried(recording, chosen, key.isdigit()))


def _key(recording: Recording) -> str:
    """Return two digits for Rosario (00 where the name says nothing), a letter for Flourish."""
    if match := re.fullmatch(r"flourish([A-Z])", recording.name):
        return match[1]
    entry = entry_of(recording.name)
    numbered = re.fullmatch(r"sequence(\d\d)", recording.name)
    return f"{entry.number:02d}" if entry else numbered[1] if numbered else "00"


def _file_name(place: str, key: str) -> str:
    names = {"truth": "sequence{}_new_gt_IMU_frame.txt", "odometry": "odometry_sequence{}.txt"}
    if not key.isdigit():
        names = {"truth": "flourish_Dataset{}_GT.txt", "odometry": "flourish_odometry_Dataset{}.txt"}
        names["combined"] = "flourish_odometry_combined_Dataset{}.txt"
    return names[place].format(key)


def _chosen_streams(recording: Recording, rosario: bool) -> dict[str, Stream]:
    """Return the streams that have a place, by that place."""
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
    for axis, offset in zip("xyz", _added(rosario), strict=True):
        columns.append(float_texts(_before_subtracting(column_or_nan(stream, axis), offset)))
    return text_rows([*columns, *([text] * len(stream) for text in ("0.0", "0.0", "0.0", "1.0"))])


def _before_subtracting(values: NDArray[np.float64], offset: float) -> NDArray[np.float64]:
    return undone(values, lambda raw: raw - offset, values + offset)


def _echo_text(stream: Stream) -> bytes:
    rows = zip(*(float_texts(column_or_nan(stream, axis)) for axis in "xyz"), strict=True)
    return "".join(f"x: {x}\ny: {y}\nz: {z}\n---\n" for x, y, z in rows).encode()


def _write_samples(recording: Recording, stream: Stream, key: str, path: Path) -> list[str]:
    """Copy the images that came as samples; a name says which pair they are of, and others have none."""
    said: list[str] = []
    samples = [s for s in stream if _SAMPLE.fullmatch(_base(source_file(recording, s) or ""))]
    for sample, data in good_payloads(samples, partial(payload_bytes, recording, suffix=".jpg"), said):
        name = _base(source_file(recording, sample) or "")
        write_bytes(path / "sample_left_images" / re.sub(r"^sequence\d\d", f"sequence{key}", name), data)
    if others := len(stream) - len(samples):
        said.append(f"{stream.name}: {others} images are no samples and have no place among the tracks")
    return said


def _not_carried(recording: Recording, chosen: dict[str, Stream], rosario: bool) -> Iterator[str]:
    for stream in recording:
        if stream not in chosen.values():
            yield f"{stream.name} ({stream.type.__name__}) has no place among the tracks"
    for place, stream in chosen.items():
        left_out = set(stream.columns) - {"x", "y", "z"}
        if place != "images" and left_out:
            yield f"{stream.name}: only positions are written, not {', '.join(sorted(left_out))}"
        if place in ("odometry", "combined") and (stream.t_ns != NS * np.arange(len(stream))).any():
            yield f"{stream.name}: an echoed odometry has no times"
    truth, moving = chosen.get("truth"), "gps" if rosario else "base_link"
    if truth is not None and truth.child not in ("", moving):
        yield f"{truth.name} is of {truth.child}; it will be read as the track of {moving}"
