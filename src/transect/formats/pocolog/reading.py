"""Reading Rock logs: the streams of their tasks, parts of one log joined."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.errors import ParseError
from transect.recording import Loss, Parsed, Recording, Source, cache
from transect.recording.source import Buffer

from .._rock import log_files
from .._rock.streams import PROBED, Logged, Piece, Reading, groups_of, stream_names, streams_of
from . import SUFFIX
from .file import Declared, PocologFile, read_file
from .layout import Layout, Vector
from .samples import flat_of, layout_or_reason

PART = r"(.+)\.(\d+)\.log"
"""`<task>.0.log`, `<task>.1.log`: parts of one log."""
_LAZY = {"Frame": {"image": ("u1", None)}, "Pointcloud": {"points": ("f8", 3), "colors": ("f8", 4)}}
"""Long containers by the type that has them, and what they hold: their place is kept, not their content."""


def read(source: Source) -> Recording:
    """Read a log file, or a folder of them; parts of one log are joined in order."""
    files: dict[str, PocologFile] = {}
    losses: list[Loss] = []
    names = log_files(source, SUFFIX)
    for name in names:
        try:
            files[name] = read_file(source.buffer(name), name)
            losses += files[name].losses
        except ParseError as error:
            if len(names) == 1:
                raise
            losses.append(Loss(name, error.why or error.what))
    reading = Reading(partial(_octets, files), partial(_rows, files))
    groups = groups_of(files, PART)
    ports = {
        g: dict.fromkeys(d.name for f in fs for d in files[f].streams.values()) for g, fs in groups.items()
    }
    notes: list[str] = []
    logged = [
        _log(source, name, port, [files[f] for f in groups[group]], notes)
        for (group, port), name in stream_names(ports).items()
    ]
    return Recording(
        source.stem,
        tuple(stream for each in logged for stream in streams_of(each, reading)),
        cameras=reading.cameras,
        format="pocolog",
        source=source,
        notes=tuple(notes),
        reader_losses=tuple(losses),
    )


def _log(source: Source, name: str, port: str, files: list[PocologFile], notes: list[str]) -> Logged:
    pieces: list[Piece] = []
    declared = Declared(port, "")
    for file in files:
        for index, stream in file.streams.items():
            if stream.name != port:
                continue
            declared = stream
            layout, reason = layout_or_reason(stream)
            if reason:
                notes.append(f"{name}: samples of {stream.type_name} are kept as bytes: {reason}")
            pieces.append(Piece(file.name, *_builders(source, file, index, layout, stream)))
    return Logged(name, declared.type_name, pieces, _metadata(declared), log_name="real time")


def _builders(
    source: Source, file: PocologFile, index: int, layout: Layout | None, stream: Declared
) -> tuple[Callable[[], Parsed], Callable[[], Parsed]]:
    """Return what parses all samples of a stream, through the cache, and what parses the first few."""
    lazy = _lazy(stream, layout)

    def build(_: Buffer) -> Parsed:
        return flat_of(file, index, layout, lazy)

    return (
        lambda: cache.parsed(source, file.name, f"pocolog.flat/1/{index}", build),
        lambda: flat_of(file, index, layout, lazy, PROBED),
    )


def _lazy(stream: Declared, layout: Layout | None) -> list[str]:
    """Return the paths of the long containers of a stream that hold what is expected of them."""
    wanted = _LAZY.get(stream.type_name.rsplit("/", 1)[-1].removesuffix("_m"), {})
    found: list[str] = []
    for part in layout.parts if layout else ():
        if isinstance(part, Vector) and part.run is not None and part.path in wanted:
            held = [(place.number.dtype.str[1:], place.count) for place in part.run.places]
            found += [part.path] if held == [wanted[part.path]] else []
    return found


def _metadata(declared: Declared) -> dict[str, Any]:
    """Return what the declaration says of task and port; YAML, one `key: value` a line."""
    import yaml

    try:
        found = yaml.safe_load(declared.metadata)
    except yaml.YAMLError:
        return {"metadata": declared.metadata}
    return {str(key): value for key, value in found.items()} if isinstance(found, dict) else {}


def _octets(files: dict[str, PocologFile], file: str, at: int, size: int) -> NDArray[np.uint8]:
    return np.frombuffer(files[file].view, np.uint8, size, at)


def _rows(files: dict[str, PocologFile], file: str, at: int, size: int, width: int) -> NDArray[np.float64]:
    log = files[file]
    return np.frombuffer(log.view, f"{log.order}f8", size // 8, at).astype(np.float64).reshape(-1, width)
