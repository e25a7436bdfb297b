"""Edits that know what stands in a file: numbers, dates, keys, tables, messages, members of archives.

What they make is whole in its packing, so that readers get past signatures and checksums to what is odd.
"""

from __future__ import annotations

import bz2
import gzip
import io
import random
import re
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Edit = Callable[[random.Random, bytes], bytes]

COUNTS = (b"0", b"-1", b"1", b"2", b"255", b"65536", b"2147483647", b"-2147483648", b"4294967296", b"9" * 18)
DATES = (
    b"2024-02-30", b"2023-02-29", b"0000-00-00", b"0001-01-01", b"1600-01-01", b"1970-01-01", b"2024-13-01",
    b"2262-04-12", b"9999-12-31", b"2024-06-15T24:61:61Z", b"2024-06-15T12:00:00+99:99",
)  # fmt: skip
YEAR_S = 31_557_600
FAR_TIMES_NS = (0, 2**62, -(2**62), 7 * YEAR_S * 10**9)
MERGE = b"x0: &x0 {k: 1}\n" + b"".join(
    b"x%d: &x%d {<<: [*x%d, *x%d]}\n" % (i, i, i - 1, i - 1) for i in range(1, 30)
)
KEYS = (
    b"<<: *x0",
    b"<<: [*x0, *x0]",
    b"<<: 1",
    b"? [a]\n: 1",
    b"1: 1",
    b"~: ~",
    b"yes: no",
    b"a: 2024-02-30",
)
NUMBER = re.compile(rb"(?<![\w.])-?\d+(?![\w])")
DATE = re.compile(rb"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?)?")
KEY = re.compile(rb"(?m)^([ \t-]*)([\w./\"-]+):.*$")
MEMBER = re.compile(rb'"[\w.]+"\s*:\s*(?:"[^"]*"|[-\w.+]+),')


def _substitute(rng: random.Random, data: bytes, found: list[re.Match[bytes]], new: bytes) -> bytes:
    if not found:
        return data
    chosen = rng.choice(found)
    return data[: chosen.start()] + new + data[chosen.end() :]


def _found(form: re.Pattern[bytes], data: bytes) -> list[re.Match[bytes]]:
    return list(form.finditer(data[:200_000]))


def recount(rng: random.Random, data: bytes) -> bytes:
    """Write another whole number in the place of one: counts, sizes, offsets in text."""
    return _substitute(rng, data, _found(NUMBER, data), rng.choice(COUNTS))


def stretch(rng: random.Random, data: bytes) -> bytes:
    """Move one number by years, in s, ms, us or ns: a time that is far from the others."""
    found = [match for match in _found(NUMBER, data) if len(match[0]) >= 5]
    if not found:
        return data
    chosen = rng.choice(found)
    moved = int(chosen[0]) + rng.choice((-7, 1, 7, 200)) * YEAR_S * rng.choice((1, 10**3, 10**6, 10**9))
    return data[: chosen.start()] + str(moved).encode() + data[chosen.end() :]


def redate(rng: random.Random, data: bytes) -> bytes:
    """Write a date that cannot be, or is far away."""
    found = _found(DATE, data) or _found(NUMBER, data)
    return _substitute(rng, data, found, rng.choice(DATES))


def repeat_key(rng: random.Random, data: bytes) -> bytes:
    """Give a key twice: a line of YAML, a member of a JSON object, a column of a table's head."""
    keys, members = _found(KEY, data), _found(MEMBER, data)
    if members and (not keys or rng.random() < 0.5):
        chosen = rng.choice(members)
        return data[: chosen.end()] + b" " + chosen[0] + data[chosen.end() :]
    if keys:
        chosen = rng.choice(keys)
        return data[: chosen.end()] + b"\n" + chosen[0] + data[chosen.end() :]
    head, line, rest = data.partition(b"\n")
    names = head.split(b",")
    names[rng.randrange(len(names))] = rng.choice(names)
    return b",".join(names) + line + rest


def merge_keys(rng: random.Random, data: bytes) -> bytes:
    """Add merge keys and keys of odd types to YAML, with anchors that stand for a billion parts or few."""
    keys = _found(KEY, data)
    start = MERGE if rng.random() < 0.5 else b"x0: &x0 {k: 1}\n"
    if not keys:
        return start + data
    chosen = rng.choice(keys)
    indent = chosen[1].replace(b"-", b" ")
    return start + data[: chosen.start()] + indent + rng.choice(KEYS) + b"\n" + data[chosen.start() :]


def swap_lines(rng: random.Random, data: bytes) -> bytes:
    """Exchange two lines: times go backwards, sections come early."""
    lines = data.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


def reset_integer(rng: random.Random, data: bytes) -> bytes:
    """Change a binary integer that could be a count or an offset in this file: by one, to its end, beyond."""
    for _ in range(50):
        size, order = rng.choice((2, 4, 8)), rng.choice(("little", "big"))
        at = rng.randrange(max(1, len(data) - size)) // 2 * 2
        value = int.from_bytes(data[at : at + size], order)
        if 0 < value <= 4 * len(data):
            new = rng.choice((value - 1, value + 1, 2 * value, 0, len(data), len(data) + 1, 256**size - 1))
            return data[:at] + (new % 256**size).to_bytes(size, order) + data[at + size :]
    return data


def repack(rng: random.Random, data: bytes, change: Edit) -> bytes:
    """Change what a packed file holds, and pack it again; anything else is changed as it is."""
    act = next((act for magic, act in PACKED if data.startswith(magic)), None)
    if act is None:
        return change(rng, data)
    try:
        return act(rng, data, change)
    except Exception:  # noqa: BLE001 - an edit before this one broke the packing
        return change(rng, data)


def _gzip(rng: random.Random, data: bytes, change: Edit) -> bytes:
    return gzip.compress(change(rng, gzip.decompress(data)), mtime=0)


def _bz2(rng: random.Random, data: bytes, change: Edit) -> bytes:
    return bz2.compress(change(rng, bz2.decompress(data)))


def _zip(rng: random.Random, data: bytes, change: Edit) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        chosen = rng.choice(old.namelist())
        for name in old.namelist():
            content = old.read(name)
            new.writestr(zipfile.ZipInfo(name), change(rng, content) if name == chosen else content)
            if name == chosen and rng.random() < 0.1:
                new.writestr(zipfile.ZipInfo(rng.choice(("../x", "/x", name.upper(), f"{name}/x"))), content)
    return out.getvalue()


def _mcap(rng: random.Random, data: bytes, change: Edit) -> bytes:
    """Write the messages again, one of them or its schema changed; or its times, or its encoding."""
    from mcap.reader import make_reader
    from mcap.writer import CompressionType, Writer

    found = list(make_reader(io.BytesIO(data)).iter_messages(log_time_order=False))
    chosen, what = rng.choice(found), rng.choice(("data", "data", "schema", "time", "encoding", "metadata"))
    out = io.BytesIO()
    writer = Writer(out, compression=CompressionType.NONE)
    writer.start()
    ids: dict[int, int] = {}
    for entry in found:
        schema, channel, message = entry
        mine = channel.id == chosen[1].id
        if channel.id not in ids:
            text = b"" if schema is None else schema.data
            text = change(rng, text) if mine and what == "schema" else text
            kinds = ("json", "protobuf", "cdr", "ros1", "")
            kind = rng.choice(kinds) if mine and what == "encoding" else channel.message_encoding
            said = dict(channel.metadata)
            if mine and what == "metadata":
                said = {
                    key: change(rng, value.encode()).decode("utf-8", "replace") for key, value in said.items()
                }
            number = 0 if schema is None else writer.register_schema(schema.name, schema.encoding, text)
            ids[channel.id] = writer.register_channel(channel.topic, kind, number, said)
        hit = entry is chosen
        body = change(rng, message.data) if hit and what == "data" else message.data
        moved = rng.choice((0, 1, 2**62, 7 * YEAR_S * 10**9)) if hit and what == "time" else 0
        writer.add_message(ids[channel.id], message.log_time + moved, body, message.publish_time + moved)
    writer.finish()
    return out.getvalue()


def _parquet(rng: random.Random, data: bytes, change: Edit) -> bytes:
    """Write a table again with a column of another type, without values, twice, or with times years away."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(data))
    at = rng.randrange(table.num_columns)
    name, count = table.column_names[at], table.num_rows
    odd: Any = rng.choice(
        ("text", "lists", "nothing", "objects", "binary", "bool", "huge", "twice", "gone", "nulls")
    )
    made: dict[str, Any] = {
        "text": lambda: pa.array([str(k) for k in range(count)]),
        "lists": lambda: pa.array([[float(k)] * (k % 3) for k in range(count)]),
        "nothing": lambda: pa.nulls(count),
        "objects": lambda: pa.array([{"a": k} for k in range(count)]),
        "binary": lambda: pa.array([b"\xff"] * count, pa.binary()),
        "bool": lambda: pa.array([bool(k % 2) for k in range(count)]),
        "huge": lambda: pa.array([rng.choice(FAR_TIMES_NS) for _ in range(count)]),
        "nulls": lambda: pa.array([None if k % 2 else v for k, v in enumerate(table.column(at).to_pylist())],
                                  table.column(at).type),
    }  # fmt: skip
    if odd == "twice":
        table = table.append_column(name, table.column(at))
    elif odd == "gone":
        table = table.remove_column(at)
    else:
        table = table.set_column(at, name, made[odd]())
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def _sqlite(rng: random.Random, data: bytes, change: Edit) -> bytes:
    """Change a value of a row: another type, other bytes, a time years away."""
    with tempfile.NamedTemporaryFile(suffix=".db3") as file:
        Path(file.name).write_bytes(data)
        db = sqlite3.connect(file.name)
        try:
            tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            table = rng.choice(tables)
            columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
            column = rng.choice(columns)
            rows = db.execute(f'SELECT rowid, "{column}" FROM "{table}"').fetchall()
            number, old = rng.choice(rows)
            as_bytes = old if isinstance(old, bytes) else str(old).encode()
            text = change(rng, as_bytes).decode("utf-8", "replace")
            new = rng.choice((change(rng, as_bytes), text, None, -1, 2**62, 0.5, 7 * YEAR_S * 10**9))
            db.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (new, number))
            db.commit()
        finally:
            db.close()
        return Path(file.name).read_bytes()


Pack = Callable[[random.Random, bytes, Edit], bytes]
PACKED: tuple[tuple[bytes, Pack], ...] = (
    (b"\x1f\x8b", _gzip),
    (b"BZh", _bz2),
    (b"PK\x03\x04", _zip),
    (b"\x89MCAP0\r\n", _mcap),
    (b"PAR1", _parquet),
    (b"SQLite format 3\0", _sqlite),
)
STRUCTURES: tuple[Edit, ...] = (
    recount, recount, stretch, stretch, redate, repeat_key, merge_keys, swap_lines, *(reset_integer,) * 2,
)  # fmt: skip
