"""Reading of KITTI's pose files (twelve numbers per line) with their times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from transect.base.clocks import NS, Clock, ns_from_decimal, ns_from_iso
from transect.base.file_bytes import Content
from transect.errors import TimeError, UsageError
from transect.geometry import rotations
from transect.recording import Loss, Parsed, Recording, Role, Source, Stream, cache
from transect.recording.text import NO_STAMP, bad_stamp, line_pieces
from transect.types import Pose

from ..shared.rows import clock_of_head, lines_lost, only_file, read_lines
from ..tum import pose_table, role_of_name
from . import SECONDS, STAMPS, find_pose_file


@dataclass(frozen=True)
class TimedFiles:
    """Files and their times in ns, in the order of their numbers; what has no time, and what was assumed."""

    t_ns: dict[str, int]
    losses: tuple[Loss, ...] = ()
    notes: tuple[str, ...] = ()


def times_of_folder(source: Source, folder: str) -> str | None:
    """Return the file with the times of a folder: its timestamps.txt, or the sequence's times.txt."""
    return next((name for name in (f"{folder}/{STAMPS}", SECONDS) if name in source), None)


def clock_of_times(source: Source, times: str | None) -> Clock:
    """Return the clock of a file of times; without one, frames are only numbered."""
    if times is None:
        return "index"
    return "utc" if times.endswith(STAMPS) else clock_of_head(source.head(times))


def read_times(source: Source, name: str) -> tuple[NDArray[np.int64], tuple[Loss, ...]]:
    """Return a time in ns per line, and the loss of the lines that are none (`bad_stamp` marks them).

    Raw drives have `2011-09-30 12:08:26.403042304`, odometry sequences have seconds.
    """
    source.record_read(name)
    read = ns_from_iso if name.endswith(STAMPS) else ns_from_decimal
    found: list[NDArray[np.int64]] = []
    count, cut = 0, ()
    for piece in line_pieces(source.content(name), name):
        text = bytes(piece.data).decode("utf-8" if piece.newlines else "utf-8-sig", "replace")
        lines = text.split("\n")[: text.count("\n") + (not text.endswith("\n"))]
        found.append(np.fromiter((_time_of(line.strip(), read) for line in lines), np.int64, len(lines)))
        count = max([count, *(piece.newlines + i for i, line in enumerate(lines, 1) if line.strip())])
        cut = piece.losses
    t_ns = np.concatenate(found)[:count]  # blank lines at the end are none
    bad = np.flatnonzero(bad_stamp(t_ns))
    lost = [Loss(name, "the line is no time", line=int(bad[0]) + 1, count=len(bad))] if len(bad) else []
    return t_ns, (*lost, *cut)


def _time_of(text: str, read: Callable[[str], int]) -> int:
    try:
        value = read(text)
    except TimeError:
        return int(NO_STAMP)
    return value if abs(value) < 2**63 else int(NO_STAMP)


def pair_times(source: Source, folder: str, suffixes: tuple[str, ...]) -> TimedFiles:
    """Pair the numbers that a folder's files are named after with lines of times; without any, count them.

    A drive cut out of a longer one may keep its numbers (from 400 on) with times for these files alone: as
    many times as files then belong together in their order.
    """
    inside = f"{folder}/data" if f"{folder}/data" in source.folders else folder
    numbers = {n: _number(n) for n in source.under(inside) if n.endswith(suffixes)}
    losses = [Loss(n, "its name is no frame number") for n, number in numbers.items() if number is None]
    frames = {n: number for n, number in numbers.items() if number is not None}
    times = times_of_folder(source, folder)
    if times is None:
        return TimedFiles({n: number * NS for n, number in frames.items()}, tuple(losses))
    t_ns, lost = read_times(source, times)
    notes: tuple[str, ...] = ()
    first, last = min(frames.values(), default=0), max(frames.values(), default=0)
    if first > 0 and last >= len(t_ns) == len(frames):
        notes = (f"{folder}: files from number {first} on are paired with the {len(t_ns)} times in order",)
        frames = {n: line for line, n in enumerate(sorted(frames, key=lambda n: frames[n]))}
    if beyond := [n for n, number in frames.items() if number >= len(t_ns)]:
        losses.append(Loss(beyond[0], f"{times} has only {len(t_ns)} times", count=len(beyond)))
    found = {n: int(t_ns[number]) for n, number in frames.items() if number < len(t_ns)}
    return TimedFiles({n: t for n, t in found.items() if t != NO_STAMP}, (*losses, *lost), notes)


def _number(name: str) -> int | None:
    stem = PurePosixPath(name).stem
    return int(stem) if stem.isascii() and stem.isdigit() and len(stem) <= 10 else None


OXTS = "oxts"
"""The GNSS/INS from which KITTI computed its true poses, and the folder of its data."""
WORLD = "cam0_first"
"""Frame of a pose file: camera 0 at its first frame."""
MAX_ORTHONORMALITY_ERROR = 0.01
"""Largest difference of ``R.T @ R`` of a printed pose from the identity."""
Times = tuple[Source, str]


def open_beside(source: Source, path: Path) -> Source | None:
    """Return a file outside of the source, if it exists."""
    return source.beside(path) if path.is_file() else None


def read_poses(source: Source, times: str | None) -> Recording:
    """Read a pose file with `times`, or with the file of times in its folder."""
    name = find_pose_file(source) or only_file(source)
    folder = source.path if source.path.is_dir() else source.path.parent
    usual = (f"{PurePosixPath(name).stem}_times.txt", SECONDS)
    beside = [Path(times)] if times else [folder / n for n in usual]
    inside = [(source, n) for n in usual if n in source and not times]
    found = [(p, p.names[0]) for path in beside if (p := open_beside(source, path)) is not None]
    if times and not found:
        raise UsageError(
            f"there is no file {times}", hint="--option times=FILE names the file with one time a line"
        )
    timed = next(iter(inside + found), None)
    stream = pose_stream("Trajectory", source, name, timed, role_of_name(f"{folder.name}/{name}"))
    return Recording(source.stem, (stream,), format="kitti", source=source)


def pose_stream(
    stream: str, source: Source, name: str, times: Times | None, role: Role, child: str = "image_00"
) -> Stream:
    """Return the stream of a file of poses; without times it is on the index clock."""
    return Stream(
        stream,
        Pose,
        partial(_pose_rows, source, name, times),
        clock=clock_of_times(*times) if times else "index",
        role=role,
        frame=WORLD,
        child=child,
        meta={"made_from": OXTS} if role == "truth" else {},
    )


def _pose_rows(source: Source, name: str, times: Times | None) -> Parsed:
    """Return parsed 3 x 4 matrices; the cache key includes the content of the file of times."""
    timed = ""
    if times is not None:
        timer, file = times
        timer.record_read(file)
        timed = f"|{file}|{timer.key(file)}"
    build = partial(_parse_poses, name=name, times=times)
    return cache.parse_pieces(source, name, f"kitti.poses/1{timed}", build)


def _parse_poses(content: Content, name: str, times: Times | None) -> Iterator[Parsed]:
    """Parse 3 x 4 matrices, piece by piece; line i is frame i."""
    known, lost = read_times(*times) if times else (None, ())
    for piece in line_pieces(content, name):
        tokens, lines, losses = read_lines(piece, name, (12,))
        frames = tokens.line[lines] - 1
        t_ns = frames * NS
        if times and known is not None:
            timed = frames < len(known)
            losses += lines_lost(tokens, lines[~timed], f"{times[1]} has only {len(known)} times", name)
            lines, t_ns = lines[timed], known[frames[timed]]
            lines, t_ns = lines[t_ns != NO_STAMP], t_ns[t_ns != NO_STAMP]
        poses = tokens.block(0, 12, lines).reshape(-1, 3, 4)
        usable = is_rotation(poses[:, :, :3]) | np.isnan(poses).any(axis=(1, 2))
        losses += lines_lost(tokens, lines[~usable], "the matrix is no rotation", name)
        yield Parsed(pose_table(t_ns[usable], with_quaternions(poses[usable])), (*losses, *lost))
        lost = ()


def is_rotation(R: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return (n,) which of (n, 3, 3) matrices are rotations within the printed digits."""
    with np.errstate(over="ignore", invalid="ignore"):
        straight = (
            np.abs(np.swapaxes(R, 1, 2) @ R - np.eye(3)).max(axis=(1, 2), initial=0.0)
            < MAX_ORTHONORMALITY_ERROR
        )
        return straight & (np.linalg.det(R) > 0)


def with_quaternions(poses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (n, 7) x y z qx qy qz qw of (n, 3, 4) matrices; the attitude of one with a NaN is NaN."""
    known = ~np.isnan(poses).any(axis=(1, 2))
    q = np.full((len(poses), 4), np.nan)
    q[known] = rotations.quaternion_from_matrix(poses[known][:, :, :3])
    return np.concatenate([poses[:, :, 3], q], axis=1)
