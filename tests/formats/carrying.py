"""Which format carries which type of stream, found out by writing and opening: the table in docs/formats.md.

`python -m tests.formats.carrying` prints it.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from tests.formats import every_type
from tests.formats.comparing import differences, stream_differences

import transect
from transect import formats
from transect.errors import UnsupportedError, UsageError
from transect.recording import FrameTree, Recording

SUFFIXES = {
    "rosbag": ".bag", "rosbag2": "", "mcap": ".mcap", "foxglove": ".mcap", "msgpack": ".msg", "kitti": "",
    "euroc": "", "tum": ".tum", "pcd": "", "geotiff": "", "geojson": ".geojson", "kml": ".kml", "gpx": ".gpx",
    "csv": "", "parquet": "", "mp4": ".mp4",
}  # fmt: skip
"""The formats of the table, and how the file that each writes is called."""
EXACTLY, IN_PART, NOT = "=", "part", ""
Carried = tuple[str, tuple[str, ...]]
"""EXACTLY, IN_PART or NOT, and the sentences with which the writer said what is missing."""


def carry(recording: Recording, format: str, folder: Path) -> tuple[Recording | None, tuple[str, ...]]:
    """Write a recording and open what was written; nothing but a sentence where the format refuses."""
    out = folder / f"{recording.name}{SUFFIXES[format]}"
    try:
        said = formats.write(recording, out, format)
    except (UsageError, UnsupportedError) as error:
        return None, (error.what,)
    return transect.open(next(folder.iterdir())), said


@cache
def carried(format: str) -> dict[str, Carried]:
    """Return how a format carries each type of stream, frames and cameras."""
    found = {kind: _carried(kind, format) for kind in every_type.streams()}
    return found | {"frames": _circumstance("frames", format), "cameras": _circumstance("cameras", format)}


def _carried(kind: str, format: str) -> Carried:
    stream = every_type.streams()[kind]
    cameras = {"cam": every_type.CAMERA} if stream.camera else {}
    with tempfile.TemporaryDirectory() as folder:
        back, said = carry(Recording(stream.name, (stream,), cameras=cameras), format, Path(folder))
        if back is None:
            return NOT, said
        lost = stream_differences(stream, back, names=False)
        written = any(len(other) for other in back)
    return EXACTLY if not lost else IN_PART if written else NOT, said


def _circumstance(what: str, format: str) -> Carried:
    """Look at frames or cameras beside streams that the format carries."""
    known = every_type.streams()
    frames = every_type.frames() if what == "frames" else FrameTree()
    beside = tuple(known[kind] for kind in ("Image", "Pose", "NavFix", "PointCloud", "GridMap"))
    if format in ("mp4", "tum", "gpx", "kml", "geojson", "pcd", "geotiff"):
        return NOT, ()  # files of one thing
    recording = Recording("every", beside, frames=frames, cameras={"cam": every_type.CAMERA})
    with tempfile.TemporaryDirectory() as folder:
        back, said = carry(recording, format, Path(folder))
        if back is None:
            return NOT, said
        lost = differences(recording, back)[what]
        some = back.frames.edges if what == "frames" else back.cameras
    return EXACTLY if not lost else IN_PART if some else NOT, said


def table() -> str:
    """Return the table in Markdown; formats that carry the same share a column."""
    kinds = [*every_type.streams(), "frames", "cameras"]
    columns: dict[tuple[str, ...], list[str]] = {}
    for format in SUFFIXES:
        columns.setdefault(tuple(carried(format)[kind][0] for kind in kinds), []).append(format)
    head = ["", *(", ".join(names) for names in columns.values())]
    rows = [[kind, *marks] for kind, marks in zip(kinds, zip(*columns, strict=True), strict=True)]
    lines = [f"| {' | '.join(row)} |" for row in (head, *rows)]
    return "\n".join([lines[0], f"|{'---|' * len(head)}", *lines[1:]])


if __name__ == "__main__":
    print(table())
