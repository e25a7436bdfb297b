"""Reading TUM trajectories."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transect.base.file_bytes import Content
from transect.recording import Parsed, Recording, Role, Source, Stream, arrow, cache
from transect.types import Pose

from ..shared.rows import clock_of_head, only_file, parse_timed_rows

COLUMNS = ("x", "y", "z", "qx", "qy", "qz", "qw")
_FRAMES = re.compile(
    r"^# (?:frame (?P<frame>[^,\r\n]+))?(?:, )?(?:child (?P<child>[^,\r\n]+))?\r?$", re.MULTILINE
)
_TRUTH_WORDS = {"gt", "truth", "groundtruth", "poses"}


def role_of_name(name: str) -> Role:
    """Return `truth` for a file that calls itself ground truth, else `estimate`."""
    words = set(re.split(r"[^a-z]+", name.lower()))
    return "truth" if words & _TRUTH_WORDS or "groundtruth" in name.lower() else "estimate"


def read(source: Source) -> Recording:
    """Read one trajectory as a stream of poses."""
    stream = tum_stream("Trajectory", source, only_file(source), "world", "body")
    return Recording(source.stem, (stream,), format="tum", source=source)


def tum_stream(stream: str, source: Source, name: str, frame: str, child: str) -> Stream:
    """Return the stream of one file of a source; the role is what its name says.

    Parameters
    ----------
    frame, child : str
        Names of the world and of the body, unless the comments at the top of the file name them.
    """
    frame, child = frames_of(source.head(name, 1024), frame, child)
    return Stream(
        stream,
        Pose,
        lambda: cache.parse_pieces(source, name, "tum/2", partial(parse_poses, file=name)),
        clock=clock_of_head(source.head(name)),
        role=role_of_name(name),
        frame=frame,
        child=child,
    )


def frames_of(head: bytes, frame: str, child: str) -> tuple[str, str]:
    """Return what the comments at the top of a trajectory call world and body, else the names given."""
    lines = _FRAMES.finditer(head.decode("utf-8", "replace"))
    said = {key: name for line in lines for key, name in line.groupdict().items() if name}
    return said.get("frame", frame), said.get("child", child)


def parse_poses(content: Content, file: str) -> Iterator[Parsed]:
    """Parse lines of time and pose, piece by piece."""
    return parse_timed_rows(content, file, COLUMNS, Pose.units())


def pose_table(t_ns: NDArray[np.int64], poses: NDArray[np.float64]) -> pa.Table:
    """Return the table of (n, 7) poses x y z qx qy qz qw."""
    return arrow.table(t_ns, dict(zip(COLUMNS, poses.T, strict=True)), units=Pose.units())
