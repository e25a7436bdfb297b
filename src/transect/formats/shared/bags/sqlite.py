"""ROS 2 bags in SQLite (`.db3`), whole or damaged: rows after damaged pages are read."""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from transect.base.file_bytes import Content
from transect.errors import ParseError
from transect.recording import Loss

from . import SQLITE_MAGIC
from .bag_file import MESSAGE_HEAD_BYTES, BagFile, Channel, MessageIndex, MessagePosition, Messages

MAX_REPAIRED_BYTES = 1 << 30
"""A truncated file up to this size is read in memory, without its incomplete last page."""
_LAST_ROW = 2**62
_JOURNAL_MODE, _ROLLBACK = slice(18, 20), b"\1\1"
Unpack = Callable[[bytes], bytes]


class SqliteFile(BagFile):
    """A `.db3` file of a ROS 2 bag, read from its path or, inside an archive, from its content.

    `unpack` decompresses a message, for bags with compressed messages.
    """

    def __init__(self, name: str, path: Path | None, content: Content, unpack: Unpack | None = None) -> None:
        super().__init__(name)
        self._unpack = unpack
        if bytes(content[: len(SQLITE_MAGIC)]) != SQLITE_MAGIC:
            start = bytes(content[: len(SQLITE_MAGIC)])
            raise ParseError(
                f"{name} is not an SQLite file", where=f"{name}@0", why=f"it starts with {start!r}"
            )
        self._report_cut(content)
        try:
            self._db = _connect(path, content)
            self._read_topics()
        except (sqlite3.Error, OverflowError, MemoryError) as error:
            raise ParseError(
                f"{name} cannot be opened",
                where=name,
                why=str(error) or type(error).__name__,
                hint=f"sqlite3 {shlex.quote(name)} .recover  prints what is left of it",
            ) from error
        self.index = self._read_index()

    def _report_cut(self, content: Content) -> None:
        """Compare the size with the page count of the header (https://sqlite.org/fileformat.html, 1.3)."""
        whole = _page_size(content) * int.from_bytes(content[28:32], "big")
        if len(content) < whole:
            reason = f"the file is cut off: it had {whole} bytes"
            self.losses.append(Loss(self.name, reason, byte=len(content), count=0))

    def _read_topics(self) -> None:
        tables = {name for (name,) in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if missing := {"topics", "messages"} - tables:
            raise sqlite3.DatabaseError(f"it has no table {' and no table '.join(sorted(missing))}")
        self._refuse_computed()
        definitions = self._definitions() if "message_definitions" in tables else {}
        for number, *words in self._db.execute("SELECT id, name, type, serialization_format FROM topics"):
            if not isinstance(number, int) or not all(isinstance(word, str) for word in words):
                self.losses.append(Loss(self.name, "a topic without a number, name, type or encoding"))
                continue
            topic, kind, encoding = words
            self.channels[number] = Channel(topic, kind, encoding, *definitions.get(kind, ("", "")))

    def _refuse_computed(self) -> None:
        """Refuse computed columns: no recorder has them, and their size is unlimited."""
        for table in ("topics", "messages"):
            columns = self._db.execute("SELECT name, hidden FROM pragma_table_xinfo(?)", (table,))
            if computed := [name for name, hidden in columns if hidden]:
                raise sqlite3.DatabaseError(f"the column {computed[0]} of {table} is computed, not recorded")

    def _definitions(self) -> dict[str, tuple[str, str]]:
        """Read the readable definitions of types."""
        query = "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions"
        found: dict[str, tuple[str, str]] = {}
        try:
            for kind, language, text in self._db.execute(query):
                found[str(kind)] = (str(text), str(language))
        except sqlite3.Error as error:
            self.notes.append(f"{self.name}: the definitions of its types cannot all be read ({error})")
        return found

    def _read_index(self) -> MessageIndex:
        rows: list[tuple[Any, ...]] = list(self._rows())
        good = [row for row in rows if row[1] in self.channels and isinstance(row[2], int)]
        if len(good) < len(rows):
            reason = "messages of a topic that is not listed, or without a time"
            self.losses.append(Loss(self.name, reason, count=len(rows) - len(good)))
        table = np.array(good, dtype=np.int64).reshape(-1, 3)
        return MessageIndex(table[:, 1], table[:, 2], np.zeros(len(table), dtype=np.int64), table[:, 0])

    def _rows(self) -> Iterator[tuple[int, int, int]]:
        """Iterate over (row, topic, time) of all readable messages."""
        after = -_LAST_ROW
        while True:
            try:
                query = "SELECT id, topic_id, timestamp FROM messages WHERE id > ? ORDER BY id"
                for row in self._db.execute(query, (after,)):
                    if row[0] <= after:
                        raise sqlite3.DatabaseError("its rows are out of order")
                    yield row
                    after = row[0]
                return
            except (sqlite3.Error, OverflowError) as error:
                # The row before the damage is missing, too, because the cursor reads ahead.
                if isinstance(last := self._row_from(after + 1), tuple) and last[0] == after + 1:
                    yield last
                    after = last[0]
                good = self._next_good(after)
                count = good[0] - after - 1 if good is not None and after > 0 else 0
                where = f"after message {after}" if after > 0 else "at the first message"
                self.losses.append(Loss(self.name, f"the database is damaged {where} ({error})", count=count))
                if good is None:
                    return
                yield good
                after = good[0]

    def _next_good(self, after: int) -> tuple[int, int, int] | None:
        """Find the first row after a damaged part by doubling, then halving steps; None without one."""
        bad, step = max(after, 0), 1
        while (found := self._row_from(bad + step)) == "damaged":
            step *= 2
            if bad + step > _LAST_ROW:
                return None
        good = bad + step
        while good - bad > 1:
            middle = (good + bad) // 2
            if (probed := self._row_from(middle)) == "damaged":
                bad = middle
            else:
                good, found = middle, probed
        return found if isinstance(found, tuple) else None

    def _row_from(self, row: int) -> tuple[int, int, int] | str | None:
        """Return the first row from a number on, None after the last, or "damaged"."""
        try:
            query = "SELECT id, topic_id, timestamp FROM messages WHERE id >= ? ORDER BY id LIMIT 1"
            found = self._db.execute(query, (row,)).fetchone()
        except (sqlite3.Error, OverflowError):
            return "damaged"
        if found is None:
            return None
        return found if found[0] >= row else "damaged"

    def first(self, channel: int) -> bytes | None:
        for row in self.index.offset[self.index.channel == channel][:3].tolist():
            try:
                return self._read(row, MESSAGE_HEAD_BYTES)[0]
            except ParseError:
                continue
        return None

    def messages(self, channel: int) -> Messages:
        mine = np.flatnonzero(self.index.channel == channel)
        numbers = self.index.offset[mine].tolist()
        whole = None if channel in self.heads else self._read_all(channel, numbers)
        losses: list[Loss] = []
        if whole is None:
            found = [self._read_or_lose(row, channel, losses) for row in numbers]
            mine = mine[[item is not None for item in found]]
            read = [item for item in found if item is not None]
        else:
            read = [(data, len(data)) for data in whole]
        log_ns, rows = self.index.log_ns[mine], self.index.offset[mine]
        places = np.column_stack([np.zeros_like(rows), rows])
        sizes = np.array([size for _, size in read], dtype=np.int64)
        return Messages(log_ns, np.zeros_like(log_ns), places, [raw for raw, _ in read], sizes, tuple(losses))

    def _read_all(self, channel: int, rows: list[int]) -> list[bytes] | None:
        """Read all messages of a channel at once; None if they differ from the indexed rows."""
        if self._unpack is not None:
            return None
        query = "SELECT id, data FROM messages WHERE topic_id = ? ORDER BY id"
        try:
            found = self._db.execute(query, (channel,)).fetchall()
        except (sqlite3.Error, OverflowError, MemoryError):
            return None
        data = [data for _, data in found if isinstance(data, bytes)]
        return data if len(data) == len(found) and [row for row, _ in found] == rows else None

    def _read_or_lose(self, row: int, channel: int, losses: list[Loss]) -> tuple[bytes, int] | None:
        try:
            return self._read(row, MESSAGE_HEAD_BYTES if channel in self.heads else None)
        except ParseError as error:
            reason = f"message {row} of {self.channels[channel].topic} cannot be read ({error.why})"
            losses.append(Loss(self.name, reason))
            return None

    def payload(self, place: MessagePosition) -> bytes:
        return self._read(place[1])[0]

    def byte(self, place: MessagePosition) -> int | None:
        return None

    def _read(self, row: int, limit: int | None = None) -> tuple[bytes, int]:
        """Return data (or only the first bytes, without reading the rest) and size of a message."""
        try:
            if limit is not None and self._unpack is None:
                with self._db.blobopen("messages", "data", row, readonly=True) as blob:
                    return blob.read(limit), len(blob)
            found = self._db.execute("SELECT data FROM messages WHERE id = ?", (row,)).fetchone()
        except (sqlite3.Error, OverflowError, MemoryError) as error:
            raise ParseError(
                "a message cannot be read", where=f"{self.name}, row {row}", why=str(error)
            ) from error
        if found is None or not isinstance(found[0], bytes):
            raise ParseError(
                "a message cannot be read", where=f"{self.name}, row {row}", why="it holds no bytes"
            )
        data = found[0] if self._unpack is None else self._unpack(found[0])
        return data, len(data)


def _page_size(content: Content) -> int:
    size = int.from_bytes(content[16:18], "big")
    return 65_536 if size == 1 else size


def _connect(path: Path | None, content: Content) -> sqlite3.Connection:
    torn = len(content) % max(_page_size(content), 1)
    if torn and len(content) <= MAX_REPAIRED_BYTES:
        # SQLite reads the end of an incomplete page as zeros, which would be taken for data.
        path, content = None, content[: len(content) - torn]
    if path is not None:
        uri = f"{path.resolve().as_uri()}?immutable=1"
        db = sqlite3.connect(uri, uri=True, check_same_thread=False)
    else:
        db = sqlite3.connect(":memory:", check_same_thread=False)
        database = bytearray(bytes(content))
        database[_JOURNAL_MODE] = _ROLLBACK  # in memory, SQLite refuses files in WAL mode
        db.deserialize(database)
    db.text_factory = lambda raw: raw.decode("utf-8", "replace")
    db.execute("PRAGMA trusted_schema = OFF")
    # Without this SQLite refuses a file that is shorter than its header indicates.
    db.execute("PRAGMA writable_schema = ON")
    return db
