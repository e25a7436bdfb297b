"""One module per on-disk format; `open` asks each whether it knows the path.

A new format is one file here (or an entry point of the group `transect.formats`) with `recognises`, `read`
and, if it can, `write`. Names that begin with an underscore are helpers shared by formats.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, cast

from transect.errors import ParseError, TransectError, UnknownFormatError, UnsupportedError, did_you_mean
from transect.recording import Recording, Source, join, source_of

from ._base import Format, Match, WritingFormat, no

__all__ = [
    "Format",
    "Match",
    "WritingFormat",
    "load",
    "names",
    "no",
    "open",
    "recognise",
    "write",
    "writing_names",
]

ENTRY_POINTS = "transect.formats"
PathLike = str | os.PathLike[str]


@cache
def _outside() -> dict[str, Any]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def names() -> tuple[str, ...]:
    """Return the names of all formats, without importing them."""
    inside = {module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")}
    return tuple(sorted(inside | set(_outside())))


def load(name: str) -> Format:
    """Return a format module by name."""
    if name not in names():
        raise UnknownFormatError(f"there is no format {name!r}", hint=did_you_mean(name, names()))
    if name in _outside():
        return cast(Format, _outside()[name].load())
    return cast(Format, importlib.import_module(f"{__name__}.{name}"))


def writing_names() -> tuple[str, ...]:
    """Return the names of the formats that can write."""
    return tuple(name for name in names() if hasattr(load(name), "write"))


def recognise(path: PathLike | Source) -> list[tuple[str, Match]]:
    """Return what each format says of a path, surest first."""
    source = path if isinstance(path, Source) else source_of(path)
    said = [(name, load(name).recognises(source)) for name in names()]
    return sorted(said, key=lambda item: (-item[1].confidence, item[0]))


def open(*paths: PathLike, format: str | None = None, strict: bool = False, **options: Any) -> Recording:
    """Open a recording, whatever robot wrote it.

    Parameters
    ----------
    paths : path-like
        A folder, a zip as downloaded, or a file; several are joined into one recording.
    format : str, optional
        Name of the format; recognised from the path by default.
    strict : bool
        Refuse files with bad parts instead of keeping the good ones; this parses everything at once.
    options
        For the format: `sequence="01"`, ...

    Returns
    -------
    Recording
    """
    if not paths:
        raise TransectError("nothing to open", hint="give the path of a recording")
    parts = [_open_one(path, format, options) for path in paths]
    recording = parts[0] if len(parts) == 1 else join(parts)
    if strict and recording.losses:
        raise recording.losses[0].error()
    return recording


def _open_one(path: PathLike, format: str | None, options: dict[str, Any]) -> Recording:
    source = source_of(path)
    if format is not None:
        chosen, base = format, _shell(source)[-1] if not load(format).recognises(source) else source
    else:
        chosen, base = _best(source)
    try:
        recording = load(chosen).read(base, **options)
    except TypeError as error:
        if options and "unexpected keyword" in str(error):
            raise UnsupportedError(f"the format {chosen} has no option {', '.join(options)}") from error
        raise
    return recording.replace(
        format=recording.format or chosen,
        source=recording.source or base,
        reader_losses=(*source.refused, *recording.reader_losses),
    )


def _shell(source: Source) -> list[Source]:
    """Return the source and, while all its files lie in one folder, that folder, as zips often have one."""
    levels = [source]
    while len(tops := {name.partition("/")[0] for name in levels[-1].names}) == 1 and len(levels) < 4:
        (top,) = tops
        if top in levels[-1]:
            break
        levels.append(levels[-1].at(top))
    return levels


def _best(source: Source) -> tuple[str, Source]:
    said = [(match, name, level) for level in _shell(source) for name, match in recognise(level)]
    match, name, level = max(said, key=lambda item: item[0].confidence)
    if not match:
        raise _unknown(source, said[: len(names())])
    return name, level


def _unknown(source: Source, said: list[tuple[Match, str, Source]]) -> TransectError:
    if not source.names:
        return ParseError(f"{source.path} holds no files", where=str(source.path))
    if len(source.names) == 1 and source.size(source.names[0]) == 0:
        return ParseError(f"{source.path} is empty", where=str(source.path), why="it has 0 bytes")
    reasons = "\n".join(
        f"         {name:<14} {match.reason}" for match, name, _ in sorted(said, key=_nearness)
    )
    return UnknownFormatError(
        f"no format recognises {source.path}",
        where=str(source.path),
        why=f"this is what each one missed\n{reasons}",
        hint=f"transect new recording {source.path}  writes a recording.yaml that describes it; "
        "docs/formats.md shows how to write a reader",
    )


def _nearness(item: tuple[Match, str, Source]) -> tuple[int, str]:
    """Sort formats that found something of theirs (their reason says 'but') before the others."""
    match, name, _ = item
    return (0 if " but " in match.reason else 1, name)


def write(recording: Recording, path: PathLike, format: str) -> tuple[str, ...]:
    """Write a recording in a format; return what the format could not carry, a sentence each."""
    module = load(format)
    if not hasattr(module, "write"):
        raise UnsupportedError(
            f"the format {format} cannot be written", hint=f"these can: {', '.join(writing_names())}"
        )
    return cast(WritingFormat, module).write(recording, Path(path))
