"""Reader of AMEDS recordings: tables, images, clouds and films of Table 7."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect import robots
from transect.base.clocks import NS
from transect.errors import ParseError, UsageError
from transect.formats.shared.file_groups import file_table
from transect.formats.shared.images import image_loader, image_size, stamps_of_names
from transect.formats.shared.video_files import is_readable
from transect.geometry.camera import scale_intrinsics
from transect.recording import Loss, Parsed, Recording, Source, Stream, cache
from transect.types import CameraModel, Image, Record

from ..catalogue import entry_of
from ..robot.arms import frame_tree
from .columns import BY_STEM, CSV_FILES
from .files import FEEDS, AmedsFiles, PayloadListing, find, has_unix_time
from .films import film_stream
from .parse import parse, parse_unknown
from .plan import Spellings, load_spellings


def read(source: Source, *, columns: Mapping[str, Any] | None = None) -> Recording:
    """Read a recording."""
    found = find(source)
    if found.first is None:
        raise ParseError(f"{source.path} has no file of AMEDS Table 7", where=str(source.path))
    if found.conflict is not None:
        raise _several_recordings(source, *found.conflict)
    robot = robots.load("interact")
    cameras, resized = cameras_of(source, found.payloads, robot.cameras)
    spellings = load_spellings(source, columns)
    unknown = [name for name in found.others if has_unix_time(source, name)]
    streams = (
        *(
            _table_stream(source, found.tables[f.stem], f.stem, spellings)
            for f in CSV_FILES
            if f.stem in found.tables
        ),
        *(_payload_stream(source, listed, cameras) for listed in found.payloads),
        *(_film_stream(source, name, found, cameras) for name in found.videos if is_readable()),
        *(_unknown_stream(source, name) for name in unknown),
    )
    entry = entry_of(source.stem)
    return Recording(
        name=source.stem,
        streams=streams,
        frames=frame_tree(robot, streams),
        cameras=cameras,
        robot=robot,
        conditions=entry.facts() if entry else {},
        format="ameds",
        source=source,
        notes=(*resized, *_notes(source, found, unknown)),
    )


def _several_recordings(source: Source, one: str, other: str) -> UsageError:
    folders = sorted(name.rpartition("/")[0] or "." for name in (one, other))
    return UsageError(
        f"{source.path} holds more than one AMEDS recording",
        where=f"{one} and {other}",
        why="one recording has only one of them",
        hint=f"transect info {quote(str(source.path / folders[0]))}  opens one; several paths are joined",
    )


def _table_stream(source: Source, name: str, stem: str, spellings: Spellings) -> Stream:
    file = BY_STEM[stem]
    own = spellings.get(stem, {})
    build = partial(parse, file=file, name=name, spellings=own)
    digest = hashlib.sha256(repr(sorted(own.items())).encode()).hexdigest()[:16] if own else "-"
    load = partial(cache.parse_pieces, source, name, f"ameds.{stem}/3|{digest}", build)
    return Stream(
        file.stream, file.type, load, role=file.role, tag=file.tag, frame=file.frame, child=file.child
    )


def _payload_stream(source: Source, listed: PayloadListing, cameras: Mapping[str, CameraModel]) -> Stream:
    kind = listed.kind
    camera = cameras.get(kind.frame)
    return Stream(
        kind.stream,
        kind.type,
        partial(stamped_table, listed.names, listed.start),
        role=kind.role,
        tag=kind.tag,
        frame=kind.frame,
        camera=kind.frame if camera else "",
        loader=image_loader(source, kind.frame, camera)
        if kind.type is Image
        else _cloud_loader(source, kind.frame),
    )


def _film_stream(source: Source, name: str, found: AmedsFiles, cameras: Mapping[str, CameraModel]) -> Stream:
    frame = FEEDS[name.rpartition("/")[2]].frame
    listed = [listed for listed in found.payloads if listed.kind.stream == frame]
    images = partial(stamped_table, listed[0].names, listed[0].start) if listed else None
    return film_stream(source, name, images, cameras.get(frame))


def _cloud_loader(source: Source, frame: str) -> Any:
    def load(row: Mapping[str, Any]) -> Any:
        from transect.formats.shared.clouds import cloud_loader

        return cloud_loader(source, frame)(row)

    return load


def _unknown_stream(source: Source, name: str) -> Stream:
    build = partial(parse_unknown, name=name)
    return Stream(name[:-4], Record, partial(cache.parse_pieces, source, name, "ameds.unknown/2", build))


def _notes(source: Source, found: AmedsFiles, unknown: list[str]) -> tuple[str, ...]:
    """Return notes about files that were not read."""
    hint = "pip install 'transect[video]'"
    notes = [f"{n} is not read, PyAV is not installed: {hint}" for n in found.videos if not is_readable()]
    count = len(found.tables) + len(found.videos) + len(unknown) + sum(len(p.names) for p in found.payloads)
    if count < len(source.names):
        known = {
            *found.tables.values(),
            *found.videos,
            *unknown,
            *(n for p in found.payloads for n in p.names),
        }
        rest = [name for name in source.names if name not in known and name != "ameds_columns.yaml"]
        shown = ", ".join(rest[:3]) + (f" and {len(rest) - 3} more" if len(rest) > 3 else "")
        notes += [f"not read, as they are not in AMEDS Table 7: {shown}"] if rest else []
    return tuple(notes)


_STAMP = r"(?P<s>\d{1,11})(?:[._,-](?P<f>\d+))?"
_WHOLE_UNITS = {10: NS, 13: 10**6, 16: 10**3, 19: 1}
"""Unit of a stamp without a decimal point, ns, by its number of digits: s, ms, us or ns."""


def stamped_table(names: Sequence[str], prefix: str) -> Parsed:
    """Return the table of a payload stream by the names of its files, in order of time.

    Parameters
    ----------
    names : sequence of str
        `<prefix><unix seconds>.<suffix>`.
    prefix : str
        Text before the stamp, with the folder.
    """
    by_length: dict[int, list[str]] = {}
    for name in names:
        by_length.setdefault(len(name), []).append(name)
    times: list[NDArray[np.int64]] = []
    files: list[str] = []
    others: list[str] = []
    for group in by_length.values():
        t_ns = _parse_uniform_names(group, len(prefix))
        if t_ns is None:
            found, group, bad = stamps_of_names(group, rf"{prefix.rpartition('/')[2]}{_STAMP}\.\w+")
            t_ns = np.array(found, dtype=np.int64)
            others += bad
        times.append(t_ns)
        files += group
    t_ns = np.concatenate(times) if times else np.zeros(0, np.int64)
    order = np.argsort(t_ns, kind="stable")
    losses = (Loss(others[0], "no unix time in the file's name", count=len(others)),) if others else ()
    return Parsed(file_table(t_ns[order], [files[i] for i in order.tolist()]), losses)


def _parse_uniform_names(names: Sequence[str], start: int) -> NDArray[np.int64] | None:
    """Return the times (n,) of names that differ only in the digits of their stamps; None for others."""
    length = len(names[0])
    end = names[0].rfind(".")
    whole, _, fraction = names[0][start:end].replace("_", ".").partition(".")
    if (
        not (whole + fraction).isdecimal()
        or len(fraction) > 9
        or (len(whole) > 11 and len(whole) not in _WHOLE_UNITS)
    ):
        return None
    try:
        letters = np.frombuffer("".join(names).encode("ascii"), np.uint8).reshape(-1, length)
    except UnicodeEncodeError:
        return None
    digits = [*range(start, start + len(whole)), *range(start + len(whole) + 1, end)]
    numbers = letters[:, digits] - np.uint8(ord("0"))
    rest = np.delete(np.arange(length), digits)
    if (numbers > 9).any() or (letters[:, rest] != letters[0, rest]).any():
        return None
    unit = NS // 10 ** len(fraction) if fraction or len(whole) <= 11 else _WHOLE_UNITS[len(whole)]
    value = np.zeros(len(names), np.int64)
    for column in range(len(digits)):
        value = value * 10 + numbers[:, column]
    return value * unit


def cameras_of(
    source: Source, payloads: Sequence[PayloadListing], cameras: Mapping[str, CameraModel]
) -> tuple[dict[str, CameraModel], tuple[str, ...]]:
    """Return the camera models scaled to the size of the first image, and a note for each change."""
    found, notes = dict(cameras), list[str]()
    for listed in payloads:
        camera = cameras.get(listed.kind.frame)
        size = image_size(source.head(listed.names[0])) if camera else None
        if camera is None or size is None or size == (camera.width, camera.height):
            continue
        sizes = f"images are {size[0]} x {size[1]}, the calibration is for {camera.width} x {camera.height}"
        if _has_aspect_ratio(camera, *size):
            found[camera.name] = resize_camera(camera, *size)
            notes.append(f"{camera.name}: {sizes}; it is scaled to them")
        else:
            notes.append(f"{camera.name}: {sizes}, with another aspect ratio; it is not changed")
    return found, tuple(notes)


def resize_camera(camera: CameraModel, width: int, height: int) -> CameraModel:
    """Return the camera model for images of another size, px, with the same lens."""
    K = scale_intrinsics(camera.K, width / camera.width, height / camera.height)
    return replace(camera, width=width, height=height, K=K)


def _has_aspect_ratio(camera: CameraModel, width: int, height: int) -> bool:
    """Return whether a size is the camera's times one factor, rounded to pixels."""
    min_factor = max((width - 0.5) / camera.width, (height - 0.5) / camera.height)
    return min_factor <= min((width + 0.5) / camera.width, (height + 0.5) / camera.height)
