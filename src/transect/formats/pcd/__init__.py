"""Point-cloud files (PCD, PLY, legacy VTK, text, raw float32) and folders of them.

The files of one sensor are a stream: those in one folder that are called alike but for a number. Raw `.bin`
files have no header; whether they hold 3, 4 or 5 float32 per point is decided by their size and by what is
plausible, and said in a note (`columns=("x", "y", "z", "intensity")` decides it instead).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..shared.file_heads import (
    CLOUD_SUFFIXES,
    IMAGE_SUFFIXES,
    SURE_SUFFIXES,
    looks_like_raw_points,
    looks_like_text_points,
    suffix_counts,
    suffix_of,
)
from ..shared.interface import Match, no

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from transect.recording import Recording, Source

MANY = 50
"""Of more files than this in one folder only the first is looked into to see whether they are clouds."""
_ASIDE = (".txt", ".md", ".pdf", ".xml", ".yaml", ".yml", ".json", "")


def recognises(source: Source) -> Match:
    """Say how sure we are that these are point clouds and nothing else."""
    if len(source.names) == 1:
        return _one_file(source, source.names[0], suffix_of(source.names[0]))
    counts = suffix_counts(source)
    sure = sum(counts[s] for s in SURE_SUFFIXES)
    images = any(counts[s] for s in IMAGE_SUFFIXES)
    clouds = sure or (0 if images else len(cloud_files(source)))
    if not clouds:
        return no("no .pcd, .ply, .vtk or raw .bin files")
    if images:
        return no("it has point clouds but also images")
    if sum(count for s, count in counts.items() if s not in (*CLOUD_SUFFIXES, *_ASIDE)) > clouds:
        return no(f"it has {clouds} point clouds but more files of other kinds")
    return Match(0.5 if sure else 0.3, f"{clouds} point-cloud files")


def _one_file(source: Source, name: str, suffix: str) -> Match:
    starts = {".pcd": b"FIELDS", ".ply": b"ply", ".vtk": b"# vtk DataFile"}
    if suffix in starts:
        known = starts[suffix] in source.head(name)
        return Match(
            0.9 if known else 0.4, f"a {suffix} file" + ("" if known else " without the usual header")
        )
    if suffix in CLOUD_SUFFIXES and source.size(name) and _looks_like_points(source, name):
        return Match(0.3, f"a {suffix} file that holds points")
    return no(
        f"a {suffix} file, but it does not look like points" if suffix in CLOUD_SUFFIXES else "no point cloud"
    )


def _looks_like_points(source: Source, name: str) -> bool:
    """Look into a file whose suffix does not tell: a header with x, y first, or plausible numbers."""
    head = source.head(name)
    if suffix_of(name) == ".bin":
        whole = (
            len(head) if len(head) == source.size(name) else len(head) // 240 * 240
        )  # 3, 4 and 5 floats fit
        return looks_like_raw_points(head[:whole])
    return looks_like_text_points(head)


def cloud_files(source: Source) -> list[str]:
    """Return the names that are point clouds, by their suffix or, where that does not tell, by a look."""
    alike: dict[tuple[str, str], list[str]] = {}
    for name in source.names:
        if (suffix := suffix_of(name)) in CLOUD_SUFFIXES:
            alike.setdefault((name.rpartition("/")[0], suffix), []).append(name)
    found: set[str] = set()
    for (_, suffix), names in alike.items():
        if suffix in SURE_SUFFIXES or (len(names) > MANY and _looks_like_points(source, names[0])):
            found.update(names)
        elif len(names) <= MANY:
            found.update(name for name in names if _looks_like_points(source, name))
    return [name for name in source.names if name in found]


def read(source: Source, columns: Sequence[str] | None = None) -> Recording:
    """Read point clouds; each is loaded when it is asked for.

    Parameters
    ----------
    source : Source
    columns : sequence of str, optional
        What each float32 of a point is, for raw `.bin` files.
    """
    from . import reading

    return reading.read(source, columns)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write streams of point clouds as PCD files named by their time; a path like `a.ply` takes one cloud."""
    from . import writing

    return writing.write(recording, path)
