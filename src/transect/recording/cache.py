"""Cache of parsed text: Arrow IPC files in the user's cache folder, mapped into memory on the next open.

An entry is a folder named by a hash of its source's content and its parser: `index.json` (losses, notes,
sha256 and a checksum of itself) and one Arrow file per table, with its checksum in the index. An entry is
built under a temporary name, synchronised to disk and renamed, so that neither a second process nor a crash
can leave an incomplete one. Small values that are slow to compute are cached, too; `file_hashes` has the
sha256 of files.
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
from transect.base.files import remove_stale_files, remove_tree, staged, synchronise
from transect.errors import UsageError

from .arrow import map_file
from .file_hashes import SMALL_FILE_BYTES, seal, unseal, warn, warn_unwritable, write_sealed
from .losses import Loss, Parsed, join_losses, join_notes
from .source import Buffer, Source
from .text.lines import refuse_long_lines

VERSION = 2
"""Layout version of a cache entry; increase to invalidate all entries."""
DEFAULT_LIMIT_BYTES = 20 * 2**30
_CHUNK_BYTES = 1 << 20
_MAX_UNMAPPED_BYTES = 1 << 24
"""Size of a table up to which it is read; larger ones are mapped."""
_SINGLE_THREAD = pa.ipc.IpcReadOptions(use_threads=False)
"""An Arrow thread must never release the last reference to memory owned by Python (see `arrow.reader_of`)."""

Parts = Mapping[str, Parsed]
"""Tables of a file by name; the only table of a file is called `_TABLE`."""
_TABLE = "table"


def limit() -> int:
    """Return the maximum size of the cache in bytes: `$TRANSECT_CACHE_LIMIT`, else 20 GiB."""
    given = os.environ.get("TRANSECT_CACHE_LIMIT", str(DEFAULT_LIMIT_BYTES))
    if not given.isdigit():
        raise UsageError(
            f"TRANSECT_CACHE_LIMIT is {given!r}", hint="it is a number of bytes, such as 20000000000"
        )
    return int(given)


def parse(
    source: Source, name: str, parser: str, build: Callable[[Buffer], Parsed], *, text: bool = True
) -> Parsed:
    """Return the parsed table of a file, from the cache if the same content was parsed before.

    Parameters
    ----------
    source, name
        The file.
    parser : str
        Name of the parser with its version and all options that change the result: `sdi.laser/1`.
    build : callable
        Parses the file's content.
    text : bool
        Whether the file is text; very long lines of text are refused.
    """
    return parse_many(source, name, parser, lambda buffer: {_TABLE: build(buffer)}, text=text)[_TABLE]


def parse_many(
    source: Source, name: str, parser: str, build: Callable[[Buffer], Parts], *, text: bool = True
) -> dict[str, Parsed]:
    """Return the tables of one file, from the cache if possible."""

    def build_whole(content: Content) -> Iterator[Parts]:
        if text:
            refuse_long_lines(content, name)
        yield build(bytes(content) if isinstance(content, FileBytes) else content)

    return parse_many_pieces(source, name, parser, build_whole)


def parse_pieces(
    source: Source, name: str, parser: str, build: Callable[[Content], Iterable[Parsed]]
) -> Parsed:
    """Return the table of a file that is parsed in pieces, so that neither file nor table need fit in memory.

    `build` takes the file's content and yields tables of one schema, which are concatenated.
    """

    def build_parts(content: Content) -> Iterator[Parts]:
        return ({_TABLE: piece} for piece in build(content))

    return parse_many_pieces(source, name, parser, build_parts)[_TABLE]


def parse_many_pieces(
    source: Source, name: str, parser: str, build: Callable[[Content], Iterable[Parts]]
) -> dict[str, Parsed]:
    """Return the tables of a file that is parsed in pieces.

    `build` takes the file's content and yields pieces of some or all tables; pieces of the same name have
    the same schema.
    """
    if source.size(name) < SMALL_FILE_BYTES:
        source.record_read(name)
        return join_parts(build(source.content(name)))
    file_state = source.file_state(name)
    entry = _entry(f"{VERSION}|{parser}|{name}|{source.key(name)}")  # losses carry the name
    found = _load(entry)
    if found is None:
        sha256 = source.sha256(name)
        _store(entry, build(source.content(name)), sha256, lambda: source.file_state(name) == file_state)
        # Load the stored tables: large ones are mapped and need not stay in memory.
        found = _load(entry) or (join_parts(build(source.content(name))), sha256)
    tables, sha256 = found
    source.record_read(name, sha256, file_state)
    return tables


def join_parts(pieces: Iterable[Parts]) -> dict[str, Parsed]:
    """Concatenate the tables of each name."""
    parts: dict[str, list[Parsed]] = {}
    for piece in pieces:
        for part, parsed in piece.items():
            parts.setdefault(part, []).append(parsed)
    return {part: join_pieces(parsed) for part, parsed in parts.items()}


def join_pieces(pieces: Iterable[Parsed]) -> Parsed:
    """Concatenate tables; losses with the same reason become one, located at the first."""
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
            part: _load_part(entry, number, record)
            for number, (part, record) in enumerate(index["parts"].items())
        }
        os.utime(entry / "index.json")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowInvalid) as error:
        warn(f"cache entry {entry} is unreadable ({error}) and will be rebuilt")
        remove_tree(entry)
        return None
    return tables, index["sha256"]


def _load_part(entry: Path, number: int, record: Mapping[str, Any]) -> Parsed:
    """Read a table; a large one is mapped.

    Mapping is safe for cache files only: truncating a mapped file kills the process, but files of the cache
    are read-only, complete when they get their name, and later removed but never rewritten.
    """
    path = entry / f"{number}.arrow"
    if path.stat().st_size > _MAX_UNMAPPED_BYTES:
        crc32, content = _checksum(path), map_file(path)
    else:
        with pa.OSFile(str(path)) as opened:
            content = opened.read_buffer()
        crc32 = zlib.crc32(content)
    if crc32 != record["crc32"]:
        raise ValueError(f"the checksum of {path.name} does not match")
    table = pa.ipc.open_file(content, options=_SINGLE_THREAD).read_all()
    return Parsed(table, tuple(Loss(**loss) for loss in record["losses"]), tuple(record["notes"]))


class _ChangedFileError(Exception):
    """The file changed after its hash was computed."""


def _store(entry: Path, pieces: Iterable[Parts], sha256: str, is_unchanged: Callable[[], bool]) -> None:
    """Store an entry unless the file changed between hashing and parsing."""
    try:
        with staged(entry) as temporary:
            temporary.mkdir()
            _write_parts(temporary, pieces, sha256)
            if not is_unchanged():
                raise _ChangedFileError
    except _ChangedFileError:
        return
    except OSError as error:
        if not entry.exists():  # else another process was faster
            warn_unwritable(folder(), str(error))
        return
    shrink(limit())


def _write_parts(temporary: Path, pieces: Iterable[Parts], sha256: str) -> None:
    """Write each table to its own file, piece by piece, and the index."""
    writers: dict[str, _TableWriter] = {}
    with ExitStack() as stack:
        for piece in pieces:
            for part, parsed in piece.items():
                if part not in writers:
                    path = temporary / f"{len(writers)}.arrow"
                    writers[part] = stack.enter_context(_TableWriter(path, parsed.table.schema))
                writers[part].write(parsed)
    parts = {part: writer.index_record() for part, writer in writers.items()}
    (temporary / "index.json").write_text(json.dumps(seal({"parts": parts, "sha256": sha256})))
    for path in temporary.iterdir():
        synchronise(path)


class _TableWriter:
    """Writes a table piece by piece, and collects only the losses and notes of the pieces."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path, self._schema, self._reports = path, schema, list[Parsed]()

    def __enter__(self) -> _TableWriter:
        self._sink = pa.OSFile(str(self._path), "wb")
        self._writer = pa.ipc.new_file(self._sink, self._schema)
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()
        self._sink.close()

    def write(self, piece: Parsed) -> None:
        """Write a piece and release its table (an empty slice would keep the table in memory)."""
        self._writer.write_table(piece.table.combine_chunks())
        if piece.losses or piece.notes:
            self._reports.append(dataclasses.replace(piece, table=self._schema.empty_table()))

    def index_record(self) -> dict[str, Any]:
        """Return the table's record for the index, and make its file read-only."""
        self._path.chmod(0o444)
        return {
            "losses": [loss.to_dict() for loss in join_losses(self._reports)],
            "notes": list(join_notes(self._reports)),
            "crc32": _checksum(self._path),
        }


def _checksum(path: Path) -> int:
    """Return the CRC32 of a file; reading it also loads it into the page cache for the mapping."""
    crc = 0
    with path.open("rb") as file:
        while piece := file.read(_CHUNK_BYTES):
            crc = zlib.crc32(piece, crc)
    return crc


def cached_value(key: str, build: Callable[[], Any]) -> Any:
    """Return a cached JSON value, or compute and cache it.

    Parameters
    ----------
    key : str
        Identifies the value and everything on which it depends, including versions.
    build : callable
        Computes the value. A cached value has lists instead of tuples.
    """
    name = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
    path = folder() / "values" / name[:2] / name[2:]
    try:
        return unseal(json.loads(path.read_bytes()))["value"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        value = build()
    write_sealed(path, {"value": value})
    return value


@dataclass(frozen=True)
class CacheEntry:
    """One cached parse: its folder, size in bytes, and time of last use."""

    path: Path
    size: int
    used_ns: int


def entries() -> Iterator[CacheEntry]:
    """Iterate over the cached parses."""
    for index in (folder() / "tables").glob("*/*/index.json"):
        try:
            files = list(index.parent.iterdir())
            yield CacheEntry(index.parent, sum(f.stat().st_size for f in files), index.stat().st_mtime_ns)
        except FileNotFoundError:
            continue


def shrink(size: int) -> int:
    """Remove the least recently used entries until at most `size` bytes are left; return bytes removed.

    Temporary files of killed processes are removed after a day.
    """
    for path in folder().glob("*/*"):
        remove_stale_files(path)
    by_age = sorted(entries(), key=lambda entry: entry.used_ns)
    excess = sum(entry.size for entry in by_age) - size
    removed = 0
    for entry in by_age:
        if removed >= excess:
            break
        remove_tree(entry.path)
        removed += entry.size
    return removed


def clear() -> int:
    """Remove everything, including temporary files; return the bytes of the entries removed."""
    size = sum(entry.size for entry in entries())
    for part in ("tables", "hashes", "values"):
        remove_tree(folder() / part)
    for compiled in folder().glob("compiled*"):  # one for each version
        remove_tree(compiled)
    return size
