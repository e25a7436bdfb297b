"""Whether the result of an earlier run can be used as it is: the run was good, and its inputs are unchanged.

Inputs are compared by their sha256. `recording.cache` remembers it by size, times and inode, so that a file
whose bytes did not change since it was hashed is not read again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transect.errors import ParseError, TransectError
from transect.recording.opening import source_of
from transect.recording.place_maps import MERGED
from transect.recording.source import FileSource, Source

from .context import Conclusion, KeptMap
from .folder import RUN
from .inputs import LISTING, read_listing

MAX_NAMED = 3
"""Changed files that a sentence names."""
Files = Mapping[tuple[int, str], str]
"""The sha256 of each file, by the part of a joined recording and by path."""


@dataclass(frozen=True)
class Validity:
    """What a user should know before using the result of a run."""

    name: str = ""  # of the folder
    failures: tuple[str, ...] = ()  # why the result must not be trusted
    changes: tuple[str, ...] = ()  # a sentence for each input that is not what it was

    @property
    def outdated(self) -> str:
        """One sentence that names the changed inputs; "" if there are none."""
        changed = f"the inputs of {self.name} changed since it ran: {list_briefly(self.changes)}"
        return changed if self.changes else ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """All of it, a sentence each: failures first."""
        failures = tuple(f"the result of {self.name} must not be trusted: {text}" for text in self.failures)
        return (*failures, self.outdated) if self.changes else failures


def check_run(path: Path | str) -> Validity:
    """Tell whether a run was good and whether its inputs are still those that it read.

    Parameters
    ----------
    path : path
        Folder of a run or a zip of it, or a file or map of places in it. Anything else has nothing to report.

    Raises
    ------
    ParseError
        If what describes the run is damaged.
    """
    found = _find_description(Path(path))
    if found is None:
        return Validity()
    source, name = found
    try:
        document: Any = json.loads(source.read(name))
        if name == MERGED:
            return Validity(source.path.name, tuple(map(str, document["failures"])))
        listing = source.read(LISTING).decode("utf-8", "surrogateescape") if LISTING in source else ""
        changes = _list_changes(document, listing, source.path)
        return Validity(source.path.resolve().name, tuple(_list_failures(document)), tuple(changes))
    except (ValueError, TypeError, KeyError, AttributeError, OSError) as error:
        where, why = str(source.path / name), f"{type(error).__name__}: {error}"
        raise ParseError(f"{source.path} is not a whole run", where=where, why=why) from error


def read_kept_map(path: Path | str, extend: bool = False) -> KeptMap:
    """Read the map of an earlier run, given its folder or that of the run, and check the run."""
    from transect.recording.place_maps import digest_of_map, read_map

    checked = check_run(path)
    return KeptMap(read_map(path), str(path), digest_of_map(path), extend, checked.failures, checked.outdated)


class _Folder:
    """The few files of a run's folder that are needed here: its outputs, maybe thousands, are not listed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __contains__(self, name: str) -> bool:
        return (self.path / name).is_file()

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()


def _find_description(path: Path) -> tuple[_Folder | Source, str] | None:
    """Return the folder, or the zip, of the run that a path belongs to, and the file that describes it."""
    places: list[_Folder | Source] = [_Folder(path), _Folder(path.parent)]
    if path.suffix == ".zip" and path.is_file():
        try:
            places = [source_of(path)]
        except TransectError:  # whoever opens it says what is wrong
            return None
    return next(((place, name) for place in places for name in (RUN, MERGED) if name in place), None)


def _list_failures(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield why the result of a run is not to be trusted."""
    status = document.get("status", "complete")
    if status != "complete":
        errors = [str(error).splitlines()[0] for error in document.get("errors", ())][:1]
        yield ": ".join([f"the run {'was ' if status == 'interrupted' else ''}{status}", *errors])
    for said in document.get("conclusions", ()):
        if (conclusion := Conclusion(**said)).bad:
            yield conclusion.text


def _list_changes(document: Mapping[str, Any], listing: str, folder: Path) -> Iterator[str]:
    """Yield a sentence for each input of a run that is there but not what it was.

    A recording or map that is not there at all is no change: results are copied without them.
    """
    request: Mapping[str, Any] = document.get("request", {})
    recorded: Mapping[str, Any] = request.get("recording", {})
    files = read_listing(listing)
    sources = [_open_source(find_recorded(path, folder)) for path in recorded.get("paths", ())]
    beside = {
        (int(part), str(name)): _open_source(find_recorded(path, folder))
        for part, name, path in recorded.get("beside", ())
    }
    known = [
        source if source is not None and _has_any(source, part, files) else None
        for part, source in enumerate(sources)
    ]
    yield from find_changed_files(files, known, beside)
    if "map" in request:
        digest = str(document["config"]["map"]["digest"])
        if _is_other_map(find_recorded(request["map"], folder), digest):
            yield f"the map {request['map']} was changed"


def find_recorded(path: str, folder: Path) -> str:
    """Return a path that a run recorded as it is now.

    One that is not there from here is looked for from the folders above the run: it was typed there.
    """
    above = [Path(), *folder.resolve().parents]
    return str(next((found for up in above if (found := up / path).exists()), path))


def _open_source(path: str) -> Source | None:
    try:
        return source_of(path).root
    except TransectError:
        return None


def _has_any(source: Source, part: int, files: Files) -> bool:
    """Tell whether a source has a file of that part; else it is another one that lies under the same path."""
    return isinstance(source, FileSource) or any(name in source for each, name in files if each == part)


def _is_other_map(path: str, digest: str) -> bool:
    """Tell whether there is a map, but one that has changed or is damaged."""
    from transect.recording.place_maps import MapError, digest_of_map

    try:
        return digest_of_map(path) != digest
    except MapError:
        return True
    except TransectError:  # there is no map
        return False


def find_changed_files(
    files: Files, sources: Sequence[Source | None], beside: Mapping[tuple[int, str], str | Source | None]
) -> Iterator[str]:
    """Yield a sentence for each file that was read and is gone or changed.

    Parameters
    ----------
    files : mapping
        What was read.
    sources : sequence of Source or None
        Of each part of the recording; the files of one that is None are not compared.
    beside : mapping
        Where files are that a reader took from outside of the sources, or their sha256; None if gone.
    """
    from transect.recording.hashes import hashes_kept_together

    with hashes_kept_together():
        for (part, name), sha256 in sorted(files.items()):
            if part >= len(sources):
                yield f"{name} belongs to no part of the recording"
                continue
            source = sources[part]
            if source is None:
                continue
            now = _hash_now(source, name, beside.get((part, name), source))
            if now is None:
                yield f"{name} is gone"
            elif now != sha256:
                yield f"{name} was changed ({sha256[:12]} then, {now[:12]} now)"


def _hash_now(source: Source, name: str, beside: str | Source | None) -> str | None:
    """Return the hash of a file of a recording, or of one beside it that its reader took; None if it is gone.

    Names may have been written by anybody: only files that a source lists are read.
    """
    place = source if name in source else beside
    if not isinstance(place, Source):
        return place
    try:
        if name in place:
            return place.sha256(name)
        return place.sha256(place.names[0]) if isinstance(place, FileSource) else None  # it has a new name
    except (OSError, TransectError):
        return None


def list_briefly(problems: Sequence[str]) -> str:
    """Return the first few of many sentences as one."""
    more = len(problems) - MAX_NAMED
    return "; ".join(problems[:MAX_NAMED]) + (f"; and {more} more" if more > 0 else "")
