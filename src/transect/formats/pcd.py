"""Point-cloud files (PCD, PLY, legacy VTK, text, raw float32) and folders of them.

The files of one sensor are a stream: those in one folder that are called alike but for a number. Raw `.bin`
files have no header; whether they hold 3, 4 or 5 float32 per point is decided by their size and by what is
plausible, and said in a note (`columns=("x", "y", "z", "intensity")` decides it instead).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from transect.base.files import refuse_existing, write_bytes
from transect.errors import UnsupportedError, UsageError
from transect.recording import Parsed, Recording, Source, Stream
from transect.types import PointCloud

from ._base import Match, no
from ._clouds import (
    CLOUD_SUFFIXES,
    SURE_SUFFIXES,
    cloud_loader,
    cloud_table,
    decode_cloud,
    encode_cloud,
    raw_columns,
    suffix_counts,
    suffix_of,
)
from ._clouds.plain import looks_like_text_points, plausible_layout
from ._clouds.truth import frames_beside, is_cloud_list, truth_stream
from ._grouping import Group, grouped
from ._images import IMAGE_SUFFIXES
from ._payloads import good_payloads, payload_bytes, time_names

__all__ = ["cloud_files", "cloud_stream", "decode_cloud", "encode_cloud", "read", "recognises", "write"]

MANY = 50
"""Of more files than this in one folder only the first is looked into to see whether they are clouds."""
PAIR = ("source", "target")
"""Names of two clouds that are to be registered, which say which is which."""
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
        return plausible_layout(head[:whole]) is not None
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
    files = list(source.names) if len(source.names) == 1 else cloud_files(source)
    streams = [cloud_stream(source, group, columns) for group in grouped(files, "Lidar")]
    lists = [n for n in source.names if suffix_of(n) == ".csv" and is_cloud_list(source.head(n, 1024))]
    streams += [truth_stream(source, name) for name in lists]
    frames, losses = frames_beside(source)
    return Recording(
        name=source.stem,
        streams=tuple(streams),
        frames=frames,
        format="pcd",
        source=source,
        reader_losses=tuple(losses),
    )


def cloud_stream(source: Source, group: Group, columns: Sequence[str] | None = None) -> Stream:
    """Return the stream of one sensor's clouds; what files lack is reported when its table is asked for."""
    if suffix_of(group.files[0]) == ".bin" and not columns and source.size(group.files[0]):
        columns = raw_columns(source, group.files[0])
    return Stream(
        group.name,
        PointCloud,
        partial(_table, source, group, columns),
        clock=group.clock,
        tag=group.tag or (group.name if group.name in PAIR else ""),
        frame=group.name,
        loader=cloud_loader(source, group.name, partial=True, columns=columns),
    )


def _table(source: Source, group: Group, columns: Sequence[str] | None) -> Parsed:
    table = cloud_table(source, group.t_ns, group.files, columns)
    if suffix_of(group.files[0]) != ".bin":
        return table
    said = " ".join(columns or ())
    return Parsed(table.table, table.losses, (f"{group.name}: raw float32 points read as {said}",))


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write streams of point clouds as PCD files named by their time; a path like `a.ply` takes one cloud."""
    clouds = [s for s in recording.streams if s.type is PointCloud]
    if not clouds:
        raise UnsupportedError(f"{recording.name} has no point clouds to write")
    said = [
        f"{s.name} is a {s.type.__name__} and was not written" for s in recording if s.type is not PointCloud
    ]
    if path.suffix.lower() in CLOUD_SUFFIXES:
        _write_one(clouds, path)
        return tuple(said)
    refuse_existing(path)
    for stream in clouds:
        names, sentences = time_names(stream)
        said += sentences
        folder = path if len(clouds) == 1 else path / stream.name
        for sample, data in good_payloads(stream, partial(payload_bytes, recording, suffix=".pcd"), said):
            write_bytes(folder / f"{names[sample.index]}.pcd", data)
    return tuple(said)


def _write_one(clouds: Sequence[Stream], path: Path) -> None:
    samples = [sample for stream in clouds for sample in stream]
    if len(samples) != 1:
        raise UsageError(f"{len(samples)} point clouds do not fit in one file", hint="give a folder's name")
    write_bytes(path, encode_cloud(samples[0].value, path.suffix.lower()))
