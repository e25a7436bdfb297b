"""Draft of a recording.yaml: types from names, units from names or magnitudes, times from both."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any

from transect.errors import TransectError
from transect.recording import Source

from ..calibration import kind_of
from ..recognition import list_cloud_files
from ..shared.file_groups import FileGroup, group_files
from ..shared.file_heads import IMAGE_SUFFIXES, is_paper, suffix_of
from . import FILE
from .columns import describe_columns, describe_log_time, describe_time, sample_of

TABLES = (".csv", ".txt", ".log", ".dat", ".tsv")
_ODOMETRY = re.compile(r"odo|wheel")
MAX_SEPARATE_TABLES = 3
"""More tables with numbered names are one stream."""
INSPECTED_PIECE_BYTES, INSPECTED_PIECES, INSPECTED_FILES = 1 << 16, 16, 4
"""Size of the inspected pieces of a table, their number, and the number of files."""
MAX_UNPACKED_BYTES = 1 << 26
"""Largest table in a zip that is unpacked for inspection."""
_CALIBRATIONS = (".yaml", ".yml", ".xml", ".txt", ".m")


def guess(source: Source) -> tuple[str, list[str]]:
    """Return a draft of a recording.yaml, and sentences with the guesses and their reasons.

    Raises
    ------
    TransectError
        If no file can be a stream.
    """
    import yaml

    notes: list[str] = []
    streams: list[dict[str, Any]] = []
    calibrations = [n for n in source.names if suffix_of(n) in _CALIBRATIONS and kind_of(source.head(n), n)]
    images = [n for n in source.names if suffix_of(n) in IMAGE_SUFFIXES]
    clouds = list_cloud_files(source)
    for kind, files in (("Image", images), ("PointCloud", clouds)):
        streams += [_payload_stream(group, kind, notes) for group in group_files(files, kind)]
    used = {*calibrations, *images, *clouds, *filter(is_paper, source.names)}
    tables = [n for n in source.names if n not in used and suffix_of(n) in TABLES]
    for group in group_files(tables, "table"):
        if len(group.files) > MAX_SEPARATE_TABLES:
            streams += _table_stream(source, group.files, group.name, notes)
        else:
            for name in group.files:
                streams += _table_stream(source, [name], re.sub(r"\.[^./]*$", "", name), notes)
    content: dict[str, Any] = {"name": source.stem, "streams": _uniquely_named(streams)}
    if len(calibrations) == 1:
        content["calibration"] = calibrations[0]
        notes.append(f"{calibrations[0]} holds the calibration of the cameras")
    elif calibrations:
        notes.append(
            f"{len(calibrations)} calibration files are left out: name the right one as `calibration`"
        )
    if not streams:
        raise TransectError(
            f"nothing in {source.path.name} could be a stream", where=str(source.path), why="; ".join(notes),
            hint="it describes tables (CSV or text), images and clouds; other formats: docs/formats.md",
        )  # fmt: skip
    head = f"# {FILE}: a first guess. Check types, units, clocks and frames.\n"
    body = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=100, allow_unicode=True)
    return head + body, notes


def _payload_stream(group: FileGroup, kind: str, notes: list[str]) -> dict[str, Any]:
    stream: dict[str, Any] = {"name": group.name, "type": kind}
    if len(group.files) == 1:
        stream["file"] = group.files[0]
    else:
        stream["files"] = pattern_of(group.files)
    if group.tag:
        stream["tag"] = group.tag
    times = "unix times in their names" if group.clock == "utc" else "the numbers in their names, no times"
    count = f"{len(group.files)} files" if len(group.files) > 1 else "one file"
    side = f"; the {group.tag} one of a pair, by name" if group.tag else ""
    notes.append(f"{group.name}: {count} of type {kind}, by {times}{side}")
    return stream


def pattern_of(files: Sequence[str]) -> str:
    """Return a pattern for files with numbered names: `left/img_[0-9]*.png`."""
    start = re.sub(r"\d[\d.]*$", "", _common_start(files))
    end = re.sub(r"^[\d.]*(?=\.[^.\d])", "", _common_start([name[::-1] for name in files])[::-1])
    return f"{glob.escape(start)}[0-9]*{glob.escape(end)}"


def _common_start(names: Sequence[str]) -> str:
    first, last = min(names), max(names)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:same]


def _table_stream(source: Source, files: Sequence[str], title: str, notes: list[str]) -> list[dict[str, Any]]:
    name = files[0] if len(files) == 1 else pattern_of(files)
    sample = sample_of(source.head(files[0], 1 << 18), later=[*_spread_pieces(source, files)])
    if not sample.is_table:
        notes.append(f"{name} is not rows of numbers and is left out")
        return []
    time, used, why = describe_time(sample)
    shared: dict[str, Any] = {"file" if len(files) == 1 else "files": name}
    shared |= {"delimiter": sample.text.delimiter, "header": sample.text.skip}
    if sample.text.decimal == ",":
        shared["decimal"] = ","
        notes.append(f"{name}: a comma stands before the decimals")
    if time:
        shared["time"] = time
    if log_time := describe_log_time(sample, time):
        shared["log_time"] = {key: log_time[key] for key in ("column", "unit")}
        used |= {log_time["column"]}
    found = [
        (_kind_of(kind, title), columns, units) for kind, columns, units in describe_columns(sample, title)
    ]
    notes.append(f"{name}: {' and '.join(kind for kind, _, _ in found)}; {why}")
    streams: list[dict[str, Any]] = []
    for kind, columns, units in found:
        called = title if len(found) == 1 else f"{title}/{kind}"
        kept = {key: column for key, column in columns.items() if column["source"] not in used}
        streams.append({"name": called, "type": kind, **deepcopy(shared), "columns": kept})
        if kind == "Odometry":
            streams[-1] |= {"frame": "odom", "child": "base_link"}
            notes.append(f"{name}: the body that moves is called base_link, and the frame of its path odom")
        notes += [f"{name}: {sentence}" for sentence in units]
    return streams


def _spread_pieces(source: Source, files: Sequence[str]) -> Iterator[bytes]:
    """Yield pieces spread over the files of a table, except large ones in a zip."""
    chosen = (
        [files[len(files) * k // INSPECTED_FILES] for k in range(INSPECTED_FILES)]
        if len(files) > INSPECTED_FILES
        else files
    )
    count = INSPECTED_PIECES // len(chosen)
    for name in chosen:
        size = source.size(name)
        if source.local(name) is None and size > MAX_UNPACKED_BYTES:
            continue
        content = source.content(name)
        starts = [size * k // count for k in range(count + 1)]
        yield from (bytes(content[a : min(a + INSPECTED_PIECE_BYTES, b)]) for a, b in pairwise(starts))


def _kind_of(kind: str, title: str) -> str:
    """Return Odometry instead of Twist if the file name indicates wheel odometry."""
    return "Odometry" if kind == "Twist" and _ODOMETRY.search(title.lower()) else kind


def _uniquely_named(streams: list[dict[str, Any]]) -> list[dict[str, Any]]:
    taken: set[str] = set()
    for stream in streams:
        name, number = stream["name"], 2
        while stream["name"] in taken:
            stream["name"], number = f"{name}_{number}", number + 1
        taken.add(stream["name"])
    return streams
