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
from ..rock.kinds import QuaternionOrder
from ..rock.streams import (
    LoggedPort,
    LogPart,
    ReadOptions,
    camera_of,
    group_parts,
    log_part,
    make_streams,
    read_files,
    stream_names,
)
from . import SUFFIXES
from .cursor import InvalidValue, MessagePackCursor, TruncatedValue, decode_octets, decode_rows
from .file import LIMITS, MapEntry, PortEntries, PortMeta, group_ports, list_entries, read_meta, unpack
from .samples import BITSTREAM, Asn1Definitions, compile_definitions, decoder, read_columns

_INFO = "/camera_info"


def is_config(view: Content, entries: Sequence[tuple[Any, MapEntry]]) -> bool:
    """Whether the first value of a map is that of a configuration file instead of a log."""
    if not entries:
        return False
    key, entry = entries[0]
    if isinstance(key, tuple):
        return True
    try:
        cursor = MessagePackCursor(view, entry.start)
        return cursor.map_length() > 0 and cursor.value() in ("intrinsic", "baseline")
    except (TruncatedValue, InvalidValue):
        return False


def read_config(
    view: Content, entries: Sequence[tuple[Any, MapEntry]], file: str
) -> tuple[FrameTree, dict[str, CameraModel], list[Loss], list[str]]:
    """Read the frames and cameras of a configuration file, with losses and notes."""
    frames, cameras = FrameTree(), dict[str, CameraModel]()
    losses: list[Loss] = []
    notes: list[str] = []
    for key, entry in entries:
        try:
            value = cast(Mapping[str, Any], MessagePackCursor(view, entry.start).value())
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
        except (
            TruncatedValue,
            InvalidValue,
            KeyError,
            TypeError,
            ValueError,
            FrameError,
            GeometryError,
        ) as error:
            losses.append(Loss(file, f"{key} cannot be read: {error}", byte=entry.start))
    return frames, cameras, losses, notes


def _transform(value: Mapping[str, Any]) -> Any:
    """Return T_parent_child of (parent, child): the pose of the child, as in tf.

    The direction is not documented; `tcp` to `camera_left` is (0.15, 0.045, 0.26), and the camera is half a
    baseline of 0.09 m to the left of the tool centre point.
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
class _LogFile:
    """One file: its MessagePack bytes and the entries of its ports."""

    file: str
    view: Content
    ports: dict[str, PortEntries] = field(default_factory=dict[str, PortEntries])
    metas: dict[str, PortMeta] = field(default_factory=dict[str, PortMeta])


@dataclass
class _LogContents:
    """Contents of the files of a source."""

    logs: dict[str, _LogFile] = field(default_factory=dict[str, _LogFile])
    frames: FrameTree = field(default_factory=FrameTree)
    cameras: dict[str, CameraModel] = field(default_factory=dict[str, CameraModel])
    losses: list[Loss] = field(default_factory=list[Loss])
    notes: list[str] = field(default_factory=list[str])

    def add(self, source: Source, file: str) -> None:
        """Index a file: a log or a configuration."""
        view, losses = unpack(source.content(file), file)
        self.losses += losses
        entries, losses = list_entries(view, file)
        self.losses += losses
        if is_config(view, entries):
            source.record_read(file)
            frames, cameras, losses, notes = read_config(view, entries, file)
            self.frames, self.cameras = self.frames.merge(frames), {**self.cameras, **cameras}
            self.losses += losses
            self.notes += notes
            return
        log = self.logs[file] = _LogFile(file, view)
        log.ports, losses = group_ports(entries, file)
        self.losses += losses
        for name, port in log.ports.items():
            log.metas[name], losses = read_meta(view, port.meta, file)
            self.losses += losses
            if port.meta is not None and not port.has_samples:
                self.losses.append(Loss(file, f"{name} has times but no samples", byte=port.meta.start))


def read(
    source: Source, *, quaternion: QuaternionOrder | None = None, definitions: str | None = None
) -> Recording:
    """Read a log, a folder of logs and their parts, or a configuration file."""
    if quaternion not in (None, "xyzw", "wxyz"):
        raise UsageError(f"quaternion is 'xyzw' or 'wxyz', not {quaternion!r}")
    found = _LogContents()
    read_files(log_files(source, SUFFIXES), partial(found.add, source), found.losses)
    reading = ReadOptions(partial(_octets, found.logs), partial(_rows, found.logs), found.cameras, quaternion)
    groups = group_parts(found.logs, CHUNK)
    names = stream_names({g: dict.fromkeys(_ports(found.logs, fs)) for g, fs in groups.items()})
    asn1 = compile_definitions(source, definitions)
    logged = [
        _log(source, name, port, [found.logs[f] for f in groups[group]], asn1)
        for (group, port), name in names.items()
    ]
    return Recording(
        source.stem,
        tuple(stream for each in logged for stream in make_streams(each, reading)),
        frames=found.frames,
        cameras=found.cameras,
        format="cdff_msgpack",
        source=source,
        notes=(*found.notes, *_bitstream_notes(logged, asn1)),
        reader_losses=tuple(found.losses),
    )


def _ports(logs: dict[str, _LogFile], files: list[str]) -> list[str]:
    """Names of the ports with samples in any of the files."""
    return [name for f in files for name, port in logs[f].ports.items() if port.has_samples]


def _log(source: Source, name: str, port: str, logs: list[_LogFile], asn1: Asn1Definitions) -> LoggedPort:
    available = [log for log in logs if port in log.ports and log.ports[port].has_samples]
    type_name = next((log.metas[port].type for log in available if log.metas[port].type), "")
    pieces = [_piece(source, log, port, type_name, asn1) for log in available]
    if type_name == BITSTREAM:
        type_name = _type_in_bitstream(available[0], port) or BITSTREAM
    return LoggedPort(name, type_name, pieces, log_name="the list of timestamps")


def _piece(source: Source, log: _LogFile, port: str, type_name: str, asn1: Asn1Definitions) -> LogPart:
    meta = PortMeta(log.metas[port].type or type_name, log.metas[port].ticks)
    prepare = decoder(log.view, asn1) if meta.type == BITSTREAM else None

    def flat(most: int | None) -> Parsed:
        return read_columns(log.view, log.file, log.ports[port], meta, most or LIMITS.samples, prepare)

    return log_part(source, log.file, f"cdff.flat/2/{type_name}/{asn1.key}/{port}", flat)


def _type_in_bitstream(log: _LogFile, port: str) -> str:
    plain = decoder(log.view, Asn1Definitions())
    table = read_columns(log.view, log.file, log.ports[port], log.metas[port], 1, plain).table
    return str(table.column("type")[0]) if "type" in table.column_names and table.num_rows else ""


def _bitstream_notes(logged: list[LoggedPort], asn1: Asn1Definitions) -> list[str]:
    return [
        f"{each.name}: bit streams of {each.type_name}, kept as bytes: its ASN.1 definition is not known "
        "(put the .asn file beside the log, or give --option definitions=FILE.asn)"
        for each in logged
        if each.type_name.startswith(("asn1Scc", BITSTREAM)) and not asn1.defines(each.type_name)
    ]


def _octets(logs: dict[str, _LogFile], file: str, at: int, size: int) -> NDArray[np.uint8]:
    with _locate(file, at):
        return decode_octets(logs[file].view[at : at + size])


def _rows(logs: dict[str, _LogFile], file: str, at: int, size: int, width: int) -> NDArray[np.float64]:
    with _locate(file, at):
        return decode_rows(logs[file].view[at : at + size], width)


@contextmanager
def _locate(file: str, at: int) -> Generator[None]:
    """Convert errors of a payload to a ParseError."""
    try:
        yield
    except (TruncatedValue, InvalidValue, ValueError, TypeError) as error:
        why = str(error) or "it is cut off"
        raise ParseError("a list of numbers cannot be read", where=f"{file}@{at}", why=why) from error
