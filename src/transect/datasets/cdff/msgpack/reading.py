"""Reading CDFF's MessagePack logs, their parts, and configurations of cameras and static frames."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from transect.base.file_bytes import Content
from transect.errors import FrameError, GeometryError, ParseError, UsageError
from transect.recording import FrameTree, Loss, Parsed, Recording, Source
from transect.types import CameraModel

from ..rock import log_files
from ..rock.kinds import Order
from ..rock.streams import (
    Logged,
    Piece,
    Reading,
    camera_of,
    groups_of,
    piece_of,
    read_each,
    stream_names,
    streams_of,
)
from . import SUFFIXES
from .cursor import Broken, Cursor, Cut, octets_of, rows_of
from .file import Entry, Meta, Port, entries_of, meta_of, ports_of, unpack
from .samples import BITSTREAM, MAX_SAMPLES, Definitions, decoder, definitions_of, flat_of

_INFO = "/camera_info"


def is_config(view: Content, entries: Sequence[tuple[Any, Entry]]) -> bool:
    """Tell whether the first value of a map is that of a configuration file, and not of a log."""
    if not entries:
        return False
    key, entry = entries[0]
    if isinstance(key, tuple):
        return True
    try:
        cursor = Cursor(view, entry.start)
        return cursor.map_length() > 0 and cursor.value() in ("intrinsic", "baseline")
    except (Cut, Broken):
        return False


def read_config(
    view: Content, entries: Sequence[tuple[Any, Entry]], file: str
) -> tuple[FrameTree, dict[str, CameraModel], list[Loss], list[str]]:
    """Read the frames and cameras of a configuration file; return what was lost and noticed, too."""
    frames, cameras = FrameTree(), dict[str, CameraModel]()
    losses: list[Loss] = []
    notes: list[str] = []
    for key, entry in entries:
        try:
            value = cast(Mapping[str, Any], Cursor(view, entry.start).value())
            if isinstance(key, tuple):
                parent, child = (str(name) for name in cast("tuple[Any, ...]", key))
                frames.add_static(parent, child, _transform(value), source=file)
            else:
                name = str(key).removesuffix(_INFO)
                camera = _camera(name, value)
                if camera is not None:
                    cameras[name] = camera
                else:
                    notes.append(f"{name}: its focal length is a placeholder, so the camera is left out")
        except (Cut, Broken, KeyError, TypeError, ValueError, FrameError, GeometryError) as error:
            losses.append(Loss(file, f"{key} cannot be read: {error}", byte=entry.start))
    return frames, cameras, losses, notes


def _transform(value: Mapping[str, Any]) -> Any:
    """Return T_parent_child of (parent, child): the pose of the child, as tf has it.

    The names of the two are not explained; `tcp` to `camera_left` is (0.15, 0.045, 0.26), and the camera is
    half a baseline of 0.09 m to the left of the tool centre point.
    """
    from transect.geometry import se3

    quaternion = np.asarray(value["rotation"], dtype=np.float64)
    return se3.from_quaternion(quaternion, np.asarray(value["translation"], dtype=np.float64))


def _camera(name: str, value: Mapping[str, Any]) -> CameraModel | None:
    camera, baseline = camera_of(name, value["intrinsic"]), value.get("baseline")
    if camera is None or baseline is None:
        return camera
    P = np.column_stack([camera.K, [-camera.K[0, 0] * float(baseline), 0.0, 0.0]])
    return dataclasses.replace(camera, P=P)


CHUNK = r"(.+)_(\d+)\.msg(?:\.zz)?"
"""`<prefix>_%09d.msg`: parts of one log."""


@dataclass
class _Log:
    """One file: its MessagePack bytes, and where its ports are."""

    file: str
    view: Content
    ports: dict[str, Port] = field(default_factory=dict[str, Port])
    metas: dict[str, Meta] = field(default_factory=dict[str, Meta])


@dataclass
class _Found:
    """What the files of a source hold, while it is gathered."""

    logs: dict[str, _Log] = field(default_factory=dict[str, _Log])
    frames: FrameTree = field(default_factory=FrameTree)
    cameras: dict[str, CameraModel] = field(default_factory=dict[str, CameraModel])
    losses: list[Loss] = field(default_factory=list[Loss])
    notes: list[str] = field(default_factory=list[str])

    def add(self, source: Source, file: str) -> None:
        """Look into a file: a log, or a configuration."""
        view, losses = unpack(source.content(file), file)
        self.losses += losses
        entries, losses = entries_of(view, file)
        self.losses += losses
        if is_config(view, entries):
            source.touch(file)
            frames, cameras, losses, notes = read_config(view, entries, file)
            self.frames, self.cameras = self.frames.merge(frames), {**self.cameras, **cameras}
            self.losses += losses
            self.notes += notes
            return
        log = self.logs[file] = _Log(file, view)
        log.ports, losses = ports_of(entries, file)
        self.losses += losses
        for name, port in log.ports.items():
            log.metas[name], losses = meta_of(view, port.meta, file)
            self.losses += losses
            if port.meta is not None and not port.has_samples:
                self.losses.append(Loss(file, f"{name} has times but no samples", byte=port.meta.start))


def read(source: Source, *, quaternion: Order | None = None, definitions: str | None = None) -> Recording:
    """Read a log, a folder of logs and their parts, or a configuration file."""
    if quaternion not in (None, "xyzw", "wxyz"):
        raise UsageError(f"quaternion is 'xyzw' or 'wxyz', not {quaternion!r}")
    found = _Found()
    read_each(log_files(source, SUFFIXES), partial(found.add, source), found.losses)
    reading = Reading(partial(_octets, found.logs), partial(_rows, found.logs), found.cameras, quaternion)
    groups = groups_of(found.logs, CHUNK)
    names = stream_names({g: dict.fromkeys(_ports(found.logs, fs)) for g, fs in groups.items()})
    asn1 = definitions_of(source, definitions)
    logged = [
        _log(source, name, port, [found.logs[f] for f in groups[group]], asn1)
        for (group, port), name in names.items()
    ]
    return Recording(
        source.stem,
        tuple(stream for each in logged for stream in streams_of(each, reading)),
        frames=found.frames,
        cameras=found.cameras,
        format="cdff_msgpack",
        source=source,
        notes=(*found.notes, *_bitstream_notes(logged, asn1)),
        reader_losses=tuple(found.losses),
    )


def _ports(logs: dict[str, _Log], files: list[str]) -> list[str]:
    """Names of the ports that have samples in any of the files."""
    return [name for f in files for name, port in logs[f].ports.items() if port.has_samples]


def _log(source: Source, name: str, port: str, logs: list[_Log], asn1: Definitions) -> Logged:
    having = [log for log in logs if port in log.ports and log.ports[port].has_samples]
    type_name = next((log.metas[port].type for log in having if log.metas[port].type), "")
    pieces = [_piece(source, log, port, type_name, asn1) for log in having]
    if type_name == BITSTREAM:
        type_name = _type_in_bitstream(having[0], port) or BITSTREAM
    return Logged(name, type_name, pieces, log_name="the list of timestamps")


def _piece(source: Source, log: _Log, port: str, type_name: str, asn1: Definitions) -> Piece:
    meta = Meta(log.metas[port].type or type_name, log.metas[port].ticks)
    prepare = decoder(log.view, asn1) if meta.type == BITSTREAM else None

    def flat(most: int | None) -> Parsed:
        return flat_of(log.view, log.file, log.ports[port], meta, most or MAX_SAMPLES, prepare)

    return piece_of(source, log.file, f"cdff.flat/2/{type_name}/{asn1.key}/{port}", flat)


def _type_in_bitstream(log: _Log, port: str) -> str:
    plain = decoder(log.view, Definitions())
    table = flat_of(log.view, log.file, log.ports[port], log.metas[port], 1, plain).table
    return str(table.column("type")[0]) if "type" in table.column_names and table.num_rows else ""


def _bitstream_notes(logged: list[Logged], asn1: Definitions) -> list[str]:
    return [
        f"{each.name}: bit streams of {each.type_name}, kept as bytes: its ASN.1 definition is not known "
        "(put the .asn file beside the log, or give --option definitions=FILE.asn)"
        for each in logged
        if each.type_name.startswith(("asn1Scc", BITSTREAM)) and not asn1.knows(each.type_name)
    ]


def _octets(logs: dict[str, _Log], file: str, at: int, size: int) -> NDArray[np.uint8]:
    with _locate(file, at):
        return octets_of(logs[file].view[at : at + size])


def _rows(logs: dict[str, _Log], file: str, at: int, size: int, width: int) -> NDArray[np.float64]:
    with _locate(file, at):
        return rows_of(logs[file].view[at : at + size], width)


@contextmanager
def _locate(file: str, at: int) -> Generator[None]:
    """Make a ParseError of what goes wrong with a payload."""
    try:
        yield
    except (Cut, Broken, ValueError, TypeError) as error:
        why = str(error) or "it is cut off"
        raise ParseError("a list of numbers cannot be read", where=f"{file}@{at}", why=why) from error
