"""Truth beside a recording: a folder `truth/` that no reader sees, and that every recording gets as streams.

`truth/trajectory.tum` is the body in the world (x east, y north, z up); a comment at its top names both
frames (`# frame world, child body`). Each `truth/*.parquet` is a table with `t_ns`, each `truth/*.tif` a map
in the trajectory's world. Their streams have the role truth and are called `truth/<file>`; on writing they
become a folder `truth/` again. Other files in the folder (depth images) are copied along.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transect.recording import Source

FOLDER = "truth"
TRAJECTORY, TABLE, MAP = ".tum", ".parquet", ".tif"
_MAX_DEPTH = 4
_WORDS = re.compile(r"(?<![a-z])(gt|truth|ground_?truth)(?![a-z])")


def split_truth(source: Source) -> tuple[Source, Source | None]:
    """Return the recording's own files, and the files of its truth as seen from their folder, if any.

    A zip often has one folder at the top: truth lies in there then.
    """
    for above in _levels(source.names):
        folder = f"{above}{FOLDER}"
        if _is_truth(source, above, folder):
            return source.without(folder), source.at(folder)
    return source, None


def list_trajectories(source: Source) -> list[str]:
    """Return the TUM trajectories that lie beside a recording's own files, at the top of a folder.

    A text file is one only if its name says so: `groundtruth.txt`.
    """
    here = [] if source.path.is_file() else [name for name in source.names if "/" not in name]
    named = [n for n in here if n.endswith(TRAJECTORY) or (n.endswith(".txt") and _WORDS.search(n.lower()))]
    if not named:
        return []
    from ..recognition import match_tum_head

    return [name for name in named if match_tum_head(source.head(name))]


def _levels(names: tuple[str, ...]) -> Iterator[str]:
    """Yield "" and the nested folders that contain all files."""
    above = ""
    for _ in range(_MAX_DEPTH if names else 0):
        yield above
        top, slash, _ = names[0][len(above) :].partition("/")
        above = f"{above}{top}/"
        if not slash or not names[-1].startswith(above):
            return


def _is_truth(source: Source, above: str, folder: str) -> bool:
    first = bisect_left(source.names, f"{folder}/")
    if first == len(source.names) or not source.names[first].startswith(f"{folder}/"):
        return False
    from ..described import NAMES
    from ..recognition import recognise_geotiff

    for name in (f"{above}{name}" for name in NAMES):
        if name in source and f"{FOLDER}/".encode() in source.head(name):
            return False  # a description that names these files has its own idea of them
    truth = source.at(folder)
    here = [name for name in truth.names if "/" not in name]
    if any(name.endswith((TRAJECTORY, TABLE)) for name in here):
        return True
    return any(name.endswith(MAP) for name in here) and recognise_geotiff(truth).confidence >= 0.5
