"""On-disk formats, one module each; `open` selects the format that recognises a path.

A format is a module or package here, or an object of a plug-in (see `base/plugins.py`), with `recognises`,
`read` and optionally `write`. Recognition imports no libraries and no readers; `read` and `write` import what
they need. `shared/` and `truth/` are not formats.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal, cast, get_args, get_origin

from transect.base import plugins
from transect.base.files import refuse_existing, staged
from transect.errors import (
    ParseError,
    TransectError,
    UnknownFormatError,
    UnknownOptionError,
    UnsupportedError,
    UsageError,
    did_you_mean,
)
from transect.recording import Source, source_of

from .shared.file_heads import SURE_SUFFIXES, is_packet_capture, is_paper, mostly_text, suffix_counts
from .shared.interface import DataLost, Format, LazyFormat, Match, Note, WritingFormat, no
from .truth import list_trajectories, split_truth

if TYPE_CHECKING:
    from transect.recording import Recording

__all__ = [
    "DataLost",
    "Format",
    "Match",
    "Note",
    "WritingFormat",
    "load",
    "names",
    "no",
    "open",
    "recognise",
    "write",
    "write_folder",
    "writing_names",
]

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class RecognitionSettings:
    """Settings of the recognition of formats, and of its error messages."""

    min_match: float = 0.5  # Matches of a lower confidence are fallbacks
    min_recording: float = 0.8  # Confidence of a folder inside that counts as a recording
    min_whole: float = 0.92  # The same if the outer folder is a recording, too
    max_parts: int = 50  # Files and folders that are inspected
    max_listed: int = 8  # Files, suffixes or losses in a message
    nearest_formats: int = 3  # Formats whose reasons are in a message


RECOGNITION = RecognitionSettings()
_RANK_WITHOUT_SIMILARITY = 3  # Rank of formats without any similarity, see `_nearness`
_OF_TEXT, _OF_BINARY = ("line", "NMEA sentence"), ("does not begin", "MessagePack", "video")
"""Words in the reasons of formats of single files, for text and binary files."""
READS_TUM = ("described", "kitti", "tum")
"""Formats that read the trajectories in their folder."""
UNREAD = "is a trajectory that is not read: transect eval compares with it"
READER = "docs/formats.md shows how to write a reader"
CLOUDS = "pcd"
NAMED_BY_SUFFIX = {
    **dict.fromkeys((".bag", ".db3", ".mcap"), "rosbag"),
    **dict.fromkeys(SURE_SUFFIXES, CLOUDS),
    ".tum": "tum",
}
"""Formats that are tried first, because importing all formats takes longer than reading."""
CALLED_WITH: dict[str, dict[str, Any]] = {"foxglove": {"messages": "foxglove"}}
"""Options for writing that are implied by a name."""
IN_FOLDERS = ("csv", "parquet")
"""Formats that are written as folders, although their name is a suffix."""
_NO_OPTIONS = ("source", "recording", "path")
"""Parameters of `read` and `write` that are not options."""


def names() -> tuple[str, ...]:
    """Return the names of all formats, without importing them."""
    return plugins.names("formats")


def load(name: str) -> Format:
    """Return a format module by its name or alias."""
    if plugins.find("formats", name) is None:
        aliases = plugins.strings("aliases")
        if name in aliases:
            return load(aliases[name])
        raise UnknownFormatError(
            f"there is no format {name!r}", hint=did_you_mean(name, (*names(), *aliases))
        )
    return cast(Format, plugins.load("formats", name))


def writing_names() -> tuple[str, ...]:
    """Return the names of the formats that can write."""
    return tuple(name for name in names() if "write" in dir(load(name)))


def describe(name: str) -> str:
    """Return the docstring of a format."""
    found = load(name)
    return (import_module(found.module) if isinstance(found, LazyFormat) else found).__doc__ or ""


def recognise(path: PathLike | Source) -> list[tuple[str, Match]]:
    """Return the match of each format for a path, in order of confidence."""
    source, _ = split_truth(path if isinstance(path, Source) else source_of(path))
    glimpse = source.glimpse()
    matches = [(name, load(name).recognises(glimpse)) for name in names()]
    return sorted(matches, key=lambda item: (-item[1].confidence, item[0]))


def open(
    *paths: PathLike, format: str | None = None, strict: bool = False, apart: bool = False, **options: Any
) -> Recording:
    """Open a recording, with the ground truth in its folder `truth/`.

    Parameters
    ----------
    paths : path-like
        A folder, a zip as downloaded, or a file; several are joined into one recording.
    format : str, optional
        Name of the format; recognised from the path by default.
    strict : bool
        Refuse files with bad parts instead of keeping the good ones; this parses everything at once.
    apart : bool
        Keep the streams of several paths apart, as `<recording>/<stream>`, instead of concatenating them.
    options
        Options of the format: `sequence="01"`, ...
    """
    if not paths:
        raise TransectError("nothing to open", hint="give the path of a recording")
    parts = [_open_one(path, format, options) for path in paths]
    recording = parts[0] if len(parts) == 1 else _join(parts, apart)
    if strict and recording.losses:
        raise recording.losses[0].error()
    return recording


def _join(parts: list[Recording], apart: bool) -> Recording:
    from transect.recording import join

    return join(parts, prefix=apart)


def _open_one(path: PathLike, format: str | None, options: dict[str, Any]) -> Recording:
    source, truth = split_truth(source_of(path))
    if format is not None:
        if not source.names:
            raise _no_files(source)
        top = "" if load(format).recognises(source.glimpse()) else _shell(source)[-1]
        chosen, base = format, source.at(top)
    else:
        chosen, base = _best(source)
    read = load(chosen).read
    _check_options(chosen, read, options)
    recording = read(base, **options)
    if truth is not None:
        from transect.formats.truth.streams import attach

        recording = attach(recording, truth)
    if chosen not in READS_TUM and not any(stream.role == "truth" for stream in recording):
        notes = (f"{base.path / name} {UNREAD}" for name in list_trajectories(base))
        recording = recording.replace(notes=(*recording.notes, *notes))
    return recording.replace(
        format=recording.format or chosen,
        options=options,
        source=recording.source or base,
        reader_losses=(*source.refused, *recording.reader_losses),
    )


def _check_options(format: str, function: Callable[..., Any], options: dict[str, Any]) -> None:
    """Refuse options that the format's `read` or `write` does not have, and invalid values.

    Values that depend on the files, such as the number of a sequence, are checked by the format itself.
    """
    parameters = inspect.signature(function).parameters
    known = [name for name in parameters if name not in _NO_OPTIONS]
    for option, value in options.items():
        if option not in known:
            verb = "no option" if function.__name__ == "read" else "no option for writing"
            error = UnknownOptionError(
                f"the format {format} has {verb} {option!r}", hint=did_you_mean(option, known)
            )
            error.option = option
            raise error
        allowed = _list_allowed(function, str(parameters[option].annotation))
        if allowed and value not in allowed:
            flag = "--option" if function.__name__ == "read" else "--write-option"
            shown = [str(each).lower() if isinstance(each, bool) else str(each) for each in allowed]
            raise UsageError(
                f"the option {option} of the format {format} cannot be {value!r}",
                why=f"it is {' or '.join(shown)}",
                hint=f"{flag} {option}={shown[0]} (in Python {option}={allowed[0]!r})",
            )


def _list_allowed(function: Callable[..., Any], annotation: str) -> tuple[Any, ...]:
    """Return the values that an annotation allows, () if they are not enumerated."""
    if annotation == "bool":
        return (True, False)
    named = (function.__globals__.get(name.strip()) for name in annotation.split("|"))
    return next((get_args(kind) for kind in named if get_origin(kind) is Literal), ())


def _shell(source: Source) -> list[str]:
    """Return "" and the nested folders that contain all files: zips often have a top folder."""
    levels = [""]
    while len(levels) < 4:
        tops = {name.partition("/")[0] for name in source.names}
        if len(tops) != 1 or (top := tops.pop()) in source:
            break
        source = source.at(top)
        levels.append(f"{levels[-1]}/{top}".lstrip("/"))
    return levels


def _best(source: Source) -> tuple[str, Source]:
    glimpse = source.glimpse()
    if (named := _named_by_suffix(glimpse)) and _is_only_format(named, glimpse):
        return named, source
    matches = [(match, name, top) for top in _shell(glimpse) for name, match in recognise(glimpse.at(top))]
    match, name, top = max(matches, key=lambda item: item[0].confidence)
    _refuse_several(glimpse, name if match.confidence >= RECOGNITION.min_match else "")
    if not match:
        raise _unknown(source, matches[: len(names())])
    return name, source.at(top)


def _named_by_suffix(source: Source) -> str:
    """Return the format implied by the suffix of a single file, or of all files in a folder, or ""."""
    suffixes = {Path(name).suffix for name in source.names}
    if len(source.names) == 1:
        return NAMED_BY_SUFFIX.get(suffixes.pop(), "")
    is_flat = not any("/" in name for name in source.names) and not _list_linked_folders(source.path)
    return CLOUDS if suffixes and suffixes <= {*SURE_SUFFIXES} and is_flat else ""


def _is_only_format(name: str, source: Source) -> bool:
    """Return whether a path is in the format implied by its suffixes, and not in a plug-in's format.

    The formats of transect and its data sets need not be imported, because none of them has folders with only
    PCD, PLY or VTK files.
    """
    match = load(name).recognises(source)
    if len(source.names) == 1:
        return match.confidence >= RECOGNITION.min_recording
    others = [other for plugin in plugins.foreign_plugins() for other in plugin.formats]
    return match.confidence >= RECOGNITION.min_match and not any(
        load(other).recognises(source).confidence >= match.confidence for other in others
    )


def _refuse_several(source: Source, format: str) -> None:
    """Raise if a folder has several recordings, because the choice is ambiguous.

    A folder that is a recording of `format` may have parts that look like recordings: clouds, images, logs.
    Only certain matches of another format count as further recordings.
    """
    tops = sorted({name.partition("/")[0] for name in source.names if "/" in name})[: RECOGNITION.max_parts]
    linked = _list_linked_folders(source.path)[: RECOGNITION.max_parts]
    if format and len(tops) + len(linked) < 2:
        return
    parts = [*(source.at(top) for top in tops), *map(source_of, linked)]
    zips = [source.local(name) for name in source.names if name.lower().endswith(".zip")]
    parts += [
        source_of(path) for path in zips[: RECOGNITION.max_parts] if path is not None and path != source.path
    ]
    found = [(part, *recognise(part)[0]) for part in parts]
    sure = [
        (part, name)
        for part, name, match in found
        if match.confidence >= (RECOGNITION.min_whole if format else RECOGNITION.min_recording)
    ]
    if len(sure) > 1 and any(name != format for _, name in sure):
        listed = "\n".join(f"         {part.path} ({name})" for part, name in sure)
        raise UsageError(
            f"{source.path} holds {len(sure)} recordings",
            why=f"these are\n{listed}",
            hint="open one of them, or as one recording those of one drive: "
            f"transect info {' '.join(quote(str(part.path)) for part, _ in sure[:2])}",
        )


def _list_linked_folders(path: Path) -> list[Path]:
    """Return the linked folders in a folder, which are not part of the recording."""
    if not path.is_dir():
        return []
    with os.scandir(path) as entries:  # detects links without a system call per file
        return sorted(
            Path(entry.path) for entry in entries if entry.is_symlink() and Path(entry.path).is_dir()
        )


def _no_files(source: Source) -> TransectError:
    linked = ", ".join(map(str, _list_linked_folders(source.path)))
    hint = f"it has links to other folders: open {linked}" if linked else ""
    why = "; ".join(f"{loss.file}: {loss.reason}" for loss in source.refused[: RECOGNITION.max_listed])
    return ParseError(f"{source.path} holds no files", where=str(source.path), why=why, hint=hint)


def _unknown(source: Source, matches: list[tuple[Match, str, str]]) -> TransectError:
    if not source.names:
        return _no_files(source)
    if len(source.names) == 1 and source.size(source.names[0]) == 0:
        return ParseError(f"{source.path} is empty", where=str(source.path), why="it has 0 bytes")
    if len(source.names) == 1 and is_packet_capture(source.head(source.names[0])):
        return UnsupportedError(
            f"{source.path} is a capture of network packets, which no format reads",
            where=str(source.path),
            why="it begins as a pcap or pcapng file does",
            hint="let the driver of the sensor turn it into a ROS bag or PCD files: transect info FILE.bag",
        )
    files = _openable_files(source)
    near = sorted(matches, key=partial(_nearness, source))[: RECOGNITION.nearest_formats]
    if not files and _nearness(source, near[0])[0] == _RANK_WITHOUT_SIMILARITY:
        why = [f"it has {_count_suffixes(source)}, and no format reads any of them"]
    else:
        reasons = [f"{name:<14} {m.reason}" for m, name, _ in near if not files or " but " in m.reason]
        why = [f"the nearest formats miss{_list_lines(reasons)}"] if reasons else []
    why += (
        [f"these files of it open by themselves{_list_lines(files[: RECOGNITION.max_listed])}"]
        if files
        else []
    )
    beside = source.path.parent / "recording.yaml"
    if source.path.is_file() and beside.is_file():
        own = f"transect info {quote(str(beside.parent))}  opens the folder that {beside.name} describes"
    else:
        own = f"transect new recording {quote(str(source.path))}  writes a recording.yaml that describes it"
    every = f"transect info {quote(str(source.path))} --formats  lists what every format misses"
    hints = [f"transect info {quote(file.rpartition(' (')[0])}" for file in files[:1]]
    return UnknownFormatError(
        f"no format recognises {source.path}",
        where=str(source.path),
        why="\n         ".join(why),
        hint="\n         ".join(
            [*hints, *_hint_compounds(source), *([own] if not files else []), every, READER]
        ),
    )


def _hint_compounds(source: Source) -> list[str]:
    """Return a hint on descriptions of nodes or compounds, which are not recordings."""
    written = (name for name in source.names[: RECOGNITION.max_parts] if name.endswith((".yaml", ".yml")))
    found = [name for name in written if b"input_ports" in source.head(name)][:1]
    return [
        f"transect graph check {quote(str(source.local(name) or name))}  looks at what it describes"
        for name in found
    ]


def _list_lines(words: list[str]) -> str:
    """Return words as indented lines of an error message."""
    return "".join(f"\n         {word}" for word in words)


def _openable_files(source: Source) -> list[str]:
    """Return files of a folder that can be opened on their own, each with its format."""
    names = [name for name in source.names if not is_paper(name)][: RECOGNITION.max_parts]
    files = [path for name in names if (path := source.local(name)) and path != source.path]
    known = [(path, *recognise(path)[0]) for path in files]
    return [f"{path} ({name})" for path, name, match in known if match.confidence >= RECOGNITION.min_match]


def _nearness(source: Source, item: tuple[Match, str, str]) -> tuple[int, str]:
    """Return a sort key for formats: partial matches (reason with 'but') first, then by suffix and kind."""
    match, name, _ = item
    if " but " in match.reason:
        return 0, name
    if any(re.search(rf"(?<!\w){re.escape(s)}\b", match.reason) for s in suffix_counts(source) if s):
        return 1, name
    if len(source.names) == 1:
        words = _OF_TEXT if mostly_text(source.head(source.names[0])) else _OF_BINARY
        return (2 if any(word in match.reason for word in words) else _RANK_WITHOUT_SIMILARITY), name
    return _RANK_WITHOUT_SIMILARITY, name


def _count_suffixes(source: Source) -> str:
    """Return the number of files by suffix: `5 .ulg and 1 .txt files`."""
    counted = suffix_counts(source).most_common(RECOGNITION.max_listed)
    named = [f"{count} {suffix or 'without a suffix'}" for suffix, count in counted]
    return f"{', '.join(named[:-1])} and {named[-1]} files" if len(named) > 1 else f"{named[0]} files"


def write(recording: Recording, path: PathLike, format: str, **options: Any) -> tuple[str, ...]:
    """Write a recording in a format; return sentences on what was left out, and `Note`s on the rest.

    Streams of a folder `truth/` are written to such a folder again. `options` are those of the format.
    """
    from transect.formats.truth.streams import without, write_beside

    path = Path(path)
    module = check_target(path, format)
    options = CALLED_WITH.get(format, {}) | options
    _check_options(format, module.write, options)
    with staged(path) as new:
        left_out = module.write(without(recording), new, **options)
        left_out += write_beside(recording, new)
        if not any(file.is_file() for file in new.parent.rglob("*")):
            raise UnsupportedError(
                f"nothing of {recording.name} can be written as {format}", why="; ".join(left_out)
            )
        for made in new.parent.iterdir():
            refuse_existing(path.parent / made.name, hint="choose another name with -o")
    return left_out


def write_folder(recording: Recording, folder: Path, format: str, name: str = "") -> tuple[str, ...]:
    """Write a recording to a new folder, with its ground truth.

    `name` is the file in the folder for formats of single files.
    """
    from transect.formats.truth.streams import without, write_beside

    said = write(without(recording), folder / name if name else folder, format)
    return said + write_beside(recording, folder)


def format_of_suffix(path: Path) -> str:
    """Return the format for writing a file of this name."""
    if (named := path.suffix.removeprefix(".")) in IN_FOLDERS:
        raise UsageError(
            f"{named} is written as a folder with a table for each stream, not as one file {path.name}",
            hint=f"--format {named} -o {path.with_suffix('')}",
        )
    known = plugins.strings("suffixes")
    if path.suffix not in known:
        raise UsageError(
            f"the name {path.name} does not tell a format",
            why=f"these do: {', '.join(known)}",
            hint=f"--format NAME, one of {', '.join(writing_names())}",
        )
    return known[path.suffix]


def check_target(path: Path, format: str) -> WritingFormat:
    """Return the format's module if it can write and `path` does not exist."""
    module = load(format)
    if "write" not in dir(module):
        raise UnsupportedError(
            f"the format {format} cannot be written", hint=f"these can: {', '.join(writing_names())}"
        )
    refuse_existing(path, hint="choose another name with -o")
    return cast(WritingFormat, module)
