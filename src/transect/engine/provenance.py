"""What a run was made from: configuration, request, the files whose bytes reached a node, and the code.

Files of a series (images, clouds) are kept as one entry with the hash of their listing, the text that
`sha256sum` prints. The listing itself goes beside the result, so that a file that changed can be named.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from transect._version import __version__
from transect.base.clocks import NS
from transect.recording.content_hash import hash_calibration
from transect.types.provenance import SourceFile

from .controller import ControllerNode

if TYPE_CHECKING:
    from types import ModuleType

    from transect.recording import Recording
    from transect.recording.file_hashes import ReadLog

    from .graph import Graph
    from .nodes import Node
    from .replay import Replay

MAX_SINGLE_FILES = 16
"""Files of a series that are listed one by one; more of them are one entry."""
LISTING = "inputs.sha256"
CODE_SUFFIXES = (".py", ".yaml", ".json", ".toml")
PACKAGE = Path(__file__).parents[1]
_NUMBER = re.compile(r"\d+")
_ESCAPED = {"n": "\n", "r": "\r", "\\": "\\"}


def files_of(recording: Recording, reads: ReadLog | None = None) -> tuple[SourceFile, ...]:
    """Return every file that a recording, and a run of it, read; each with the part that it belongs to.

    Parameters
    ----------
    reads : ReadLog, optional
        Of the run: images, clouds and other payloads.
    """
    from dataclasses import replace

    parts = {id(source.touched): number for number, source in enumerate(recording.sources)}
    found: dict[tuple[int, str], SourceFile] = {}
    for log in (*(source.touched for source in recording.sources), *([reads] if reads else [])):
        for source, files in log.by_source().items():
            part = parts.get(id(source.touched))
            for file in files:
                # A source of another recording has no number here.
                path = file.path if part is not None else str(source.path / file.path)
                found[part or 0, path] = replace(file, path=path, part=part or 0)
    return tuple(found[key] for key in sorted(found))


def list_beside(recording: Recording) -> list[list[Any]]:
    """Return part, name and path of each file outside of a recording that its readers took."""
    return sorted(
        [part, name, str(place.path)]
        for part, source in enumerate(recording.sources)
        for place, name in source.touched.entries
        if place is not source.root
    )


def summarise(files: Iterable[SourceFile]) -> tuple[SourceFile, ...]:
    """Return the files with each long series as one entry."""
    series: dict[tuple[int, str], list[SourceFile]] = {}
    for file in files:
        series.setdefault((file.part, _pattern_of(file.path)), []).append(file)
    found: list[SourceFile] = []
    for (part, pattern), members in series.items():
        if len(members) <= MAX_SINGLE_FILES:
            found += members
            continue
        sha256 = hashlib.sha256(listing_of(members).encode("utf-8", "surrogateescape")).hexdigest()
        found.append(SourceFile(pattern, sum(f.size for f in members), sha256, len(members), part))
    return tuple(sorted(found, key=lambda file: (file.part, file.path)))


def _pattern_of(path: str) -> str:
    name = PurePosixPath(path).name
    return path[: len(path) - len(name)] + _NUMBER.sub("*", name)


def listing_of(files: Sequence[SourceFile]) -> str:
    """Return the lines that `sha256sum` prints for files, each part of a joined recording below a comment."""
    lines: list[str] = []
    part = 0
    for file in sorted(files, key=lambda file: (file.part, file.path)):
        if file.part != part:
            part = file.part
            lines.append(f"# part {part}\n")
        escaped = file.path.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
        lines.append(f"{'' if escaped == file.path else chr(92)}{file.sha256}  {escaped}\n")
    return "".join(lines)


def read_listing(text: str) -> dict[tuple[int, str], str]:
    """Return the sha256 of each file of a listing, by part and path."""
    found: dict[tuple[int, str], str] = {}
    part = 0
    for line in text.split("\n"):
        if line.startswith("# part "):
            part = int(line.removeprefix("# part "))
        elif line.startswith("\\"):
            sha256, _, name = line[1:].partition("  ")
            found[part, re.sub(r"\\([nr\\])", lambda sign: _ESCAPED[sign[1]], name)] = sha256
        elif line:
            sha256, _, name = line.partition("  ")
            found[part, name] = sha256
    return found


@functools.cache
def hash_of_package() -> str:
    """Return the sha256 over transect's own sources: Python and the descriptions that come with it."""
    return hash_of_sources(PACKAGE)


def hash_of_sources(place: Path) -> str:
    """Return the sha256 over a source file, or over all sources of a package's folder."""
    digest = hashlib.sha256()
    for name in _source_files(str(place)) if place.is_dir() else [str(place)]:
        with open(name, "rb", buffering=0) as file:  # noqa: PTH123  (a thousand files, in half the time)
            content = file.read()
        digest.update(f"{os.path.relpath(name, place)} {len(content)}\n".encode("utf-8", "surrogateescape"))
        digest.update(content)
    return digest.hexdigest()


def _source_files(folder: str) -> list[str]:
    found: list[str] = []
    ahead = [folder]
    while ahead:
        with os.scandir(ahead.pop()) as entries:
            for entry in entries:
                if entry.name.startswith(".") or entry.name == "__pycache__":
                    continue
                if entry.is_dir(follow_symlinks=False):
                    ahead.append(entry.path)
                elif entry.name.endswith(CODE_SUFFIXES) and entry.is_file():
                    found.append(entry.path)
    return sorted(found)


def code_of_plugins(graph: Graph, format: str) -> dict[str, str]:
    """Return a hash for each piece of foreign code that a run uses, by the module's name.

    Foreign are nodes, controllers and formats that are not transect's own: of a package its whole folder
    counts, of a single file that file.
    """
    from transect.base import plugins
    from transect.formats import load

    classes = {kind for part in graph.parts.values() for kind in _classes_behind(part.node)}
    modules = {sys.modules.get(kind.__module__) for kind in classes}
    if plugins.find("formats", format) is not None:
        modules.add(sys.modules.get(getattr(load(format), "__name__", "")))
    found: dict[str, str] = {}
    for module in modules:
        if (place := _place_of(module)) is not None:
            found[place.name] = hash_of_sources(place)
    return dict(sorted(found.items()))


def _classes_behind(node: Node) -> list[type]:
    """Return the classes that a node is made of; of a compound with a controller also its members'."""
    found = list(type(node).__mro__)
    if isinstance(node, ControllerNode):
        found += node.controller_class.__mro__
        found += [kind for member in node.members.values() for kind in _classes_behind(member)]
    return found


def _place_of(module: ModuleType | None) -> Path | None:
    """Return the file or the package's folder of a module that is not ours, Python's or numpy's."""
    file = getattr(module, "__file__", None)
    if module is None or file is None or not file.endswith(".py"):
        return None
    path = Path(file)
    top = sys.modules.get(module.__name__.partition(".")[0])
    if path.is_relative_to(PACKAGE) or module.__name__.partition(".")[0] in sys.stdlib_module_names:
        return None
    if "." in module.__name__ and top is not None and getattr(top, "__file__", None):
        return Path(str(top.__file__)).parent
    return path.parent if path.name == "__init__.py" else path


VERSIONS = ("numpy", "scipy", "pyarrow", "numba", "opencv-contrib-python-headless", "small_gicp", "gtsam")
"""Packages whose version may change a result."""


def config_of(replay: Replay, inputs: Sequence[SourceFile]) -> dict[str, Any]:
    """Return everything that decided what a run computed, as plain values."""
    options = replay.options
    return {
        "compound": replay.playback.compound.name,
        "parameters": {name: dict(part.node.values) for name, part in replay.playback.graph.parts.items()},
        "wiring": replay.playback.wiring.to_dict(),
        "used_truth": replay.playback.wiring.used_truth,
        "time": {
            "played_by": replay.playback.played_by,
            "clock": replay.playback.clock,
            "reorder_s": options.reorder,
            "mappings": {name: mapping.to_dict() for name, mapping in replay.playback.mappings.items()},
            "span_ns": list(replay.playback.span) if replay.playback.span else None,
        },
        "inputs": {file.label: file.sha256 for file in summarise(inputs)},
        "streams": _hash_streams(replay),
        "calibration": hash_calibration(replay.recording),
        "versions": versions(),
        "code": code_of(replay),
        **({"verdicts": replay.verdicts.describe()} if replay.verdicts else {}),
        **({"map": replay.map.describe()} if replay.map else {}),
    }


def _hash_streams(replay: Replay) -> dict[str, str]:
    """Return the hash of each stream that is played, whole and before its clock is moved."""
    names = sorted({stream.name for _, stream in replay.playback.wiring.pairs})
    return {name: replay.recording[name].sha256 for name in names}


def code_of(replay: Replay) -> dict[str, str]:
    """Return the hashes of the sources that a run executes: transect's, and those of plug-ins."""
    return {"transect": hash_of_package(), **code_of_plugins(replay.playback.graph, replay.recording.format)}


def request_of(replay: Replay, inputs: Sequence[SourceFile]) -> dict[str, Any]:
    """Return what was asked for as plain values; `run` takes them again by these names."""
    options, recording = replay.options, replay.recording
    beside = list_beside(recording)
    return {
        "recording": {
            "name": recording.name,
            "robot": recording.robot.name if recording.robot else "",
            "paths": [str(source.path) for source in recording.sources],
            "format": recording.format,
            "options": dict(recording.options),
            "files": [file.to_dict() for file in summarise(inputs)],
            **({"beside": beside} if beside else {}),
        },
        "set": {f"{node}.{name}": value for node, one in options.set.items() for name, value in one.items()},
        "wire": dict(options.wire),
        "clock": options.clock,
        "reorder": options.reorder,
        "offset": {name: value if value == "auto" else value / NS for name, value in options.offset.items()},
        "start": options.start,
        "end": options.end,
        **({"map": replay.map.path, "extend": replay.map.extend} if replay.map else {}),
    }


def versions() -> dict[str, str]:
    """Return the versions of everything that may change a result."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"transect": __version__, "python": platform.python_version(), "machine": platform.machine()}
    for name in VERSIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
