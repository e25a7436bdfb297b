"""Point-cloud files (PCD, PLY, legacy VTK, text, raw float32) and folders of them.

The files of one sensor are a stream: those in one folder that are called alike but for a number. Raw `.bin`
files have no header; whether they hold 3, 4 or 5 float32 per point is decided by their size and by what is
plausible, and said in a note (`columns=("x", "y", "z", "intensity")` decides it instead).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from transect.base.files import file_paths, refuse_existing, write_bytes
from transect.errors import FrameError, TransectError, UnsupportedError, UsageError
from transect.recording import FrameTree, Loss, Parsed, Recording, Source, Stream
from transect.types import PointCloud

from .recognition import list_cloud_files
from .shared.clouds import cloud_loader, cloud_table, encode_cloud
from .shared.file_groups import FileGroup, group_files
from .shared.file_heads import CLOUD_SUFFIXES, suffix_of

PAIR = ("source", "target")
"""Names of the two clouds of a registration."""


def read(source: Source, columns: Sequence[str] | None = None) -> Recording:
    """Read point clouds, which are loaded on access."""
    files = list(source.names) if len(source.names) == 1 else list_cloud_files(source)
    columns = _check_columns(columns, files) if columns is not None else None
    streams = [cloud_stream(source, group, columns) for group in group_files(files, "Lidar")]
    if tables := [name for name in source.names if suffix_of(name) == ".csv"]:
        from .shared.clouds.pose_lists import is_cloud_list, truth_stream  # needs geometry

        streams += [truth_stream(source, n) for n in tables if is_cloud_list(source.head(n, 1024))]
    frames, losses = frames_beside(source)
    return Recording(
        name=source.stem,
        streams=tuple(streams),
        frames=frames,
        format="pcd",
        source=source,
        reader_losses=tuple(losses),
    )


def _check_columns(columns: Sequence[str], files: Sequence[str]) -> Sequence[str]:
    """Return the names of the columns of raw files, given as a list or as text with commas."""
    names = columns.split(",") if isinstance(columns, str) else list(columns)
    names = [name.strip() for name in names]
    hint = "--option columns=x,y,z,intensity (in Python columns=['x', 'y', 'z', 'intensity'])"
    if not any(suffix_of(file) == ".bin" for file in files):
        raise UsageError("the option columns is for raw .bin files", why="there is none")
    if not {"x", "y", "z"} <= set(names) or len(set(names)) < len(names):
        raise UsageError(f"columns={','.join(names)} does not name x, y and z once", hint=hint)
    return names


def cloud_stream(source: Source, group: FileGroup, columns: Sequence[str] | None = None) -> Stream:
    """Return the stream of one sensor's clouds; losses are reported with its table."""
    if suffix_of(group.files[0]) == ".bin" and not columns and source.size(group.files[0]):
        from .shared.clouds.plain import raw_layout

        columns = raw_layout(source.buffer(group.files[0]))
    return Stream(
        group.name,
        PointCloud,
        partial(_table, source, group, columns),
        clock=group.clock,
        tag=group.tag or (group.name if group.name in PAIR else ""),
        frame=group.name,
        loader=cloud_loader(source, group.name, partial=True, columns=columns),
    )


def _table(source: Source, group: FileGroup, columns: Sequence[str] | None) -> Parsed:
    table = cloud_table(source, group.t_ns, group.files, columns)
    if suffix_of(group.files[0]) != ".bin":
        return table
    said = " ".join(columns or ())
    return Parsed(table.table, table.losses, (f"{group.name}: raw float32 points read as {said}",))


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write streams of point clouds as PCD files named by their time, or one cloud to a path like `a.ply`."""
    from .shared.payloads import good_payloads, not_written, payload_bytes, time_names

    clouds = [s for s in recording.streams if s.type is PointCloud]
    if not clouds:
        raise UnsupportedError(f"{recording.name} has no point clouds to write")
    notes = not_written(recording, clouds)
    if path.suffix.lower() in CLOUD_SUFFIXES:
        samples = [sample for stream in clouds for sample in stream]
        if len(samples) != 1:
            raise UsageError(
                f"{len(samples)} point clouds do not fit in one file", hint="give a folder's name"
            )
        write_bytes(path, encode_cloud(samples[0].value, path.suffix.lower()))
        return tuple(notes)
    refuse_existing(path)
    folders = file_paths(stream.name for stream in clouds) if len(clouds) > 1 else [""]
    for stream, folder in zip(clouds, folders, strict=True):
        names, sentences = time_names(stream)
        notes += sentences
        for sample, data in good_payloads(stream, partial(payload_bytes, recording, suffix=".pcd"), notes):
            write_bytes(path / folder / f"{names[sample.index]}.pcd", data)
    return tuple(notes)


_MATRIX = re.compile(r"(?:.*/)?T_([A-Za-z0-9]+)_([A-Za-z0-9]+)\.txt")


def frames_beside(source: Source) -> tuple[FrameTree, list[Loss]]:
    """Return the edges that files named `T_<a>_<b>.txt` give: a (4, 4) matrix that takes points of b to a."""
    tree, losses = FrameTree(), list[Loss]()
    for name in source.names:
        match = _MATRIX.fullmatch(name)
        if match is None or source.size(name) > 4096:
            continue
        try:
            matrix = np.array(source.text(name).split(), dtype=np.float64).reshape(4, 4)
            tree.add_static(match[1], match[2], matrix, source=name)
        except (ValueError, FrameError) as error:
            why = error.what if isinstance(error, TransectError) else "not a 4 x 4 matrix"
            losses.append(Loss(name, why))
    return tree, losses
