"""Parsed text, kept as Arrow IPC under the user's cache folder and mapped into memory on the next open.

An entry is a folder named after the content of its source and the parser that read it: `index.json` (what
was lost, noted, the sha256, and a checksum of itself) and one Arrow file per table, whose checksum is in the
index. It is built under a temporary name, synchronised with the disk and renamed into place, so that two
processes or a crash can never leave half of one. Small values that take long to compute are kept beside
them; the sha256 of files is kept by `hashes`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from transect.base.cache_folder import folder
from transect.base.file_bytes import Content, FileBytes
from transect.base.files import remove_tree, staged, sweep, synchronise
from transect.errors import UsageError

from .arrow import map_file
from .file_hashes import SMALL, seal, unseal, warn, warn_unwritable, write_sealed
from .losses import Loss, Parsed, join_losses, join_notes
from .source import Buffer, Source
from .text.lines import refuse_long_lines

VERSION = 2
DEFAULT_LIMIT = 20 * 2**30
_PIECE = 1 << 20
_READ_WHOLE = 1 << 24
"""Bytes of a table up to which it is read; larger ones are mapped."""
_IN_THIS_THREAD = pa.ipc.IpcReadOptions(use_threads=False)
"""No thread of Arrow's must be the last to hold memory of Python's, such as a mapping (`arrow.reader_of`)."""

Parts = Mapping[str, Parsed]
"""The tables of a file that holds several, by name; of one that holds one, under `_TABLE`."""
_TABLE = "table"


def limit() -> int:
    """Return the size the cache may grow to in bytes: `$TRANSECT_CACHE_LIMIT`, else 20 GiB."""
    given = os.environ.get("TRANSECT_CACHE_LIMIT", str(DEFAULT_LIMIT))
    if not given.isdigit():
        raise UsageError(
            f"TRANSECT_CACHE_LIMIT is {given!r}", hint="it is a number of bytes, such as 20000000000"
        )
    return int(given)


def parse(
    source: Source, name: str, parser: str, build: Callable[[Buffer], Parsed], *, text: bool = True
) -> Parsed:
    """Return one file parsed, from the cache if its content was parsed before.

    Parameters
    ----------
    source, name
        The file.
    parser : str
        Names the parser, its version and whatever option changes its result: `sdi.laser/1`.
    build : callable
        Takes the file's content and parses it.
    text : bool
        Whether the file is text, in which a line of many megabytes is refused.
    """
    return parse_many(source, name, parser, lambda buffer: {_TABLE: build(buffer)}, text=text)[_TABLE]


def parse_many(
    source: Source, name: str, parser: str, build: Callable[[Buffer], Parts], *, text: bool = True
) -> dict[str, Parsed]:
    """Return the tables of one file that holds several, from the cache if it can."""

    def build_whole(content: Content) -> Iterator[Parts]:
        if text:
            refuse_long_lines(content, name)
        yield build(bytes(content) if isinstance(content, FileBytes) else content)

    return parse_many_pieces(source, name, parser, build_whole)


def parse_pieces(
    source: Source, name: str, parser: str, build: Callable[[Content], Iterable[Parsed]]
) -> Parsed:
    """Return one file that is parsed piece by piece, so that neither it nor its table need fit in memory.

    `build` takes the file's content and yields tables, all of one schema, that are laid end to end.
    """

    def build_parts(content: Content) -> Iterator[Parts]:
        return ({_TABLE: piece} for piece in build(content))

    return parse_many_pieces(source, name, parser, build_parts)[_TABLE]


def parse_many_pieces(
    source: Source, name: str, parser: str, build: Callable[[Content], Iterable[Parts]]
) -> dict[str, Parsed]:
    """Return the tables of one file that holds several and is parsed piece by piece.

    `build` takes the file's content and yields pieces of some or all of the tables; those of one name have
    one schema.
    """
    if source.size(name) < SMALL:
        source.touch(name)
        return join_parts(build(source.content(name)))
    stamp = source.stamp(name)
    entry = _entry(f"{VERSION}|{parser}|{name}|{source.key(name)}")  # losses carry the name
    found = _load(entry)
    if found is None:
        sha256 = source.sha256(name)
        _store(entry, build(source.content(name)), sha256, lambda: source.stamp(name) == stamp)
        # Mapped from the disk, large tables need not stay in memory.
        found = _load(entry) or (join_parts(build(source.content(name))), sha256)
    tables, sha256 = found
    source.touch(name, sha256, stamp)
    return tables


def join_parts(pieces: Iterable[Parts]) -> dict[str, Parsed]:
    """Lay the tables of each name end to end."""
    parts: dict[str, list[Parsed]] = {}
    for piece in pieces:
        for part, parsed in piece.items():
            parts.setdefault(part, []).append(parsed)
    return {part: join_pieces(parsed) for part, parsed in parts.items()}


def join_pieces(pieces: Iterable[Parsed]) -> Parsed:
    """Lay tables end to end; losses of one reason become one, with the place of the first."""
    parts = list(pieces)
    if len(parts) == 1:
        return parts[0]
    return Parsed(pa.concat_tables([part.table for part in parts]), join_losses(parts), join_notes(parts))


def _entry(key: str) -> Path:
    digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
    return folder() / "tables" / digest[:2] / digest[2:]


def _load(entry: Path) -> tuple[dict[str, Parsed], str] | None:
    try:
        index: dict[str, Any] = unseal(json.loads((entry / "index.json").read_bytes()))
        tables = {
            part: _load_part(entry, number, kept)
            for number, (part, kept) in enumerate(index["parts"].items())
        }
        os.utime(entry / "index.json")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowInvalid) as error:
        warn(f"cache entry {entry} is unreadable ({error}) and will be made again")
        remove_tree(entry)
        return None
    return tables, index["sha256"]


def _load_part(entry: Path, number: int, kept: Mapping[str, Any]) -> Parsed:
    """Read a table; a large one is mapped.

    Elsewhere nothing is mapped, because a mapped file that is cut short kills the process. Files of the cache
    are not cut: they are read-only, appear under their name when they are whole, and are removed, which
    leaves those who have them mapped what they have, but never written again.
    """
    path = entry / f"{number}.arrow"
    if path.stat().st_size > _READ_WHOLE:
        crc32, content = _checksum(path), map_file(path)
    else:
        with pa.OSFile(str(path)) as opened:
            content = opened.read_buffer()
        crc32 = zlib.crc32(content)
    if crc32 != kept["crc32"]:
        raise ValueError(f"the checksum of {path.name} does not match")
    table = pa.ipc.open_file(content, options=_IN_THIS_THREAD).read_all()
    return Parsed(table, tuple(Loss(**loss) for loss in kept["losses"]), tuple(kept["notes"]))


class _ChangedMeanwhileError(Exception):
    """A file is no longer the one whose hash names the entry."""


def _store(entry: Path, pieces: Iterable[Parts], sha256: str, is_unchanged: Callable[[], bool]) -> None:
    """Build an entry; it is dropped if the file changed between hashing and parsing."""
    try:
        with staged(entry) as building:
            building.mkdir()
            _write_parts(building, pieces, sha256)
            if not is_unchanged():
                raise _ChangedMeanwhileError
    except _ChangedMeanwhileError:
        return
    except OSError as error:
        if not entry.exists():  # else another process was faster
            warn_unwritable(folder(), str(error))
        return
    shrink(limit())


def _write_parts(building: Path, pieces: Iterable[Parts], sha256: str) -> None:
    """Write each table into a file of its own, piece behind piece, and the index of them."""
    written: dict[str, _Writing] = {}
    with ExitStack() as stack:
        for piece in pieces:
            for part, parsed in piece.items():
                if part not in written:
                    path = building / f"{len(written)}.arrow"
                    written[part] = stack.enter_context(_Writing(path, parsed.table.schema))
                written[part].write(parsed)
    parts = {part: writing.facts() for part, writing in written.items()}
    (building / "index.json").write_text(json.dumps(seal({"parts": parts, "sha256": sha256})))
    for path in building.iterdir():
        synchronise(path)


class _Writing:
    """A table that is written piece by piece; of a piece that is written nothing is kept but what it told."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path, self._schema, self._told = path, schema, list[Parsed]()

    def __enter__(self) -> _Writing:
        self._sink = pa.OSFile(str(self._path), "wb")
        self._writer = pa.ipc.new_file(self._sink, self._schema)
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()
        self._sink.close()

    def write(self, piece: Parsed) -> None:
        """Write a piece; a slice of its table, even an empty one, would keep all of it in memory."""
        self._writer.write_table(piece.table.combine_chunks())
        if piece.losses or piece.notes:
            self._told.append(dataclasses.replace(piece, table=self._schema.empty_table()))

    def facts(self) -> dict[str, Any]:
        """Return what the index tells of the table; its file is not written any more."""
        self._path.chmod(0o444)
        return {
            "losses": [loss.to_dict() for loss in join_losses(self._told)],
            "notes": list(join_notes(self._told)),
            "crc32": _checksum(self._path),
        }


def _checksum(path: Path) -> int:
    """Return the CRC32 of a file. Reading brings it into the page cache, where the mapping finds it."""
    crc = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            crc = zlib.crc32(piece, crc)
    return crc


def remember(key: str, build: Callable[[], Any]) -> Any:
    """Return a plain value, such as JSON can hold, that was worked out before; else work it out and keep it.

    Parameters
    ----------
    key : str
        Names the value and everything that it depends on, versions too.
    build : callable
        Returns the value. What is read back has lists where it had tuples.
    """
    name = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
    kept = folder() / "values" / name[:2] / name[2:]
    try:
        return unseal(json.loads(kept.read_bytes()))["value"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        value = build()
    write_sealed(kept, {"value": value})
    return value


@dataclass(frozen=True)
class Entry:
    """One cached parse: its folder, size in bytes, and when it was last used."""

    path: Path
    size: int
    used_ns: int


def entries() -> Iterator[Entry]:
    """Iterate over what is cached."""
    for index in (folder() / "tables").glob("*/*/index.json"):
        try:
            files = list(index.parent.iterdir())
            yield Entry(index.parent, sum(f.stat().st_size for f in files), index.stat().st_mtime_ns)
        except FileNotFoundError:
            continue


def shrink(size: int) -> int:
    """Remove the least recently used entries until at most `size` bytes are left; return bytes removed.

    What killed processes left behind goes, too, after a day.
    """
    for place in folder().glob("*/*"):
        sweep(place)
    known = sorted(entries(), key=lambda entry: entry.used_ns)
    excess = sum(entry.size for entry in known) - size
    removed = 0
    for entry in known:
        if removed >= excess:
            break
        remove_tree(entry.path)
        removed += entry.size
    return removed


def clear() -> int:
    """Remove everything, temporary leftovers too; return the bytes of the entries removed."""
    size = sum(entry.size for entry in entries())
    for part in ("tables", "hashes", "values", "compiled"):
        remove_tree(folder() / part)
    return size
