"""Reading a result of Boreas's odometry benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from transect.base.file_bytes import Content
from transect.recording import Parsed, Recording, Source, Stream, cache
from transect.recording.text import line_pieces
from transect.types import Pose

from ..kitti.poses import is_rotation, with_quaternions
from ..shared.rows import exact_stamps, lines_lost, only_file, read_lines
from ..tum.reading import pose_table
from . import result_rows, rows_of, unit_of_head
from .tables import in_one_unit

WORLD = "odom"
_TAIL = 4096


def read_result(source: Source) -> Recording:
    """Read one trajectory.

    The benchmark asks for poses of the frame `applanix`, and in the plane for those of `radar`.
    """
    name = only_file(source)
    stream = Stream(
        "Trajectory",
        Pose,
        lambda: cache.parse_pieces(source, name, "boreas.result/1", partial(parse_result, file=name)),
        role="estimate",
        frame=WORLD,
        child="radar" if _is_planar(source, name) else "applanix",
    )
    return Recording(source.stem, (stream,), format="boreas", source=source)


def _is_planar(source: Source, name: str) -> bool:
    """Tell whether the first poses and the last turn about z only, and stay at z = 0."""
    rows = [*result_rows(source.head(name)), *rows_of(bytes(source.content(name)[-_TAIL:]), 13)[-1:]]
    return all(row[9:] == (0.0, 0.0, 1.0, 0.0) for row in rows)


def parse_result(content: Content, file: str) -> Iterator[Parsed]:
    """Parse lines of a time and the upper 3 x 4 of ``T_vehicle_world``, row by row, in metres.

    Poses are that of the vehicle in the world, so each matrix is inverted.
    """
    unit, first = unit_of_head(bytes(content[:_TAIL])), np.zeros(0, np.int64)
    for piece in line_pieces(content, file):
        tokens, lines, losses = read_lines(piece, file, (13,))
        t_ns, lines, bad = exact_stamps(tokens, 0, lines, file, unit)
        first = np.append(first, t_ns[:1])[:1]
        same = in_one_unit(t_ns, first)
        bad += lines_lost(tokens, lines[~same], "the time is in another unit than the first", file)
        t_ns, lines = t_ns[same], lines[same]
        given = tokens.block(1, 12, lines).reshape(-1, 3, 4)
        usable = is_rotation(given[:, :, :3])
        losses += [*bad, *lines_lost(tokens, lines[~usable], "the matrix is no rotation", file)]
        turned = np.swapaxes(given[usable][:, :, :3], 1, 2)
        poses = np.concatenate([turned, -turned @ given[usable][:, :, 3:]], axis=2)
        yield Parsed(pose_table(t_ns[usable], with_quaternions(poses)), tuple(losses))
