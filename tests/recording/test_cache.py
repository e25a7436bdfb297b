"""The cache: parsed once, keyed by content, safe against crashes and other processes."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from transect.errors import ParseError
from transect.recording import Loss, Parsed, arrow, cache, source_of
from transect.recording.source import Buffer

ROW_COUNT = 5000


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSECT_CACHE_DIR", str(tmp_path / "cache"))


class Counting:
    """A parser that counts how often it ran."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, buffer: Buffer) -> Parsed:
        self.calls += 1
        values = np.array([int(v) for v in bytes(buffer).split()], np.int64)
        return Parsed(arrow.table(values, {}), (Loss("a.txt", "why", line=3, count=2),), ("noted",))


def numbers(path: Path, start: int = 10_000_000) -> Path:
    path.mkdir(exist_ok=True)
    (path / "a.txt").write_text("\n".join(str(start + i) for i in range(ROW_COUNT)) + "\n")
    return path


def aged(path: Path, seconds: float = 10.0) -> Path:
    stat = (path / "a.txt").stat()
    os.utime(path / "a.txt", (stat.st_atime - seconds, stat.st_mtime - seconds))
    return path


def test_a_file_is_parsed_once_and_cached_with_its_losses_and_notes(tmp_path: Path) -> None:
    folder, parse = aged(numbers(tmp_path / "r")), Counting()
    cold = cache.parse(source_of(folder), "a.txt", "p/1", parse)
    source = source_of(folder)
    warm = cache.parse(source, "a.txt", "p/1", parse)
    assert parse.calls == 1
    assert warm.table.equals(cold.table)
    assert warm.losses == cold.losses
    assert warm.notes == cold.notes
    assert source.files_read[0].sha256 == source.sha256("a.txt")


def test_another_content_or_another_parser_is_another_entry(tmp_path: Path) -> None:
    folder, parse = aged(numbers(tmp_path / "r")), Counting()
    cache.parse(source_of(folder), "a.txt", "p/1", parse)
    cache.parse(source_of(folder), "a.txt", "p/2", parse)
    numbers(tmp_path / "r", start=20_000_000)
    changed = cache.parse(source_of(folder), "a.txt", "p/1", parse)
    assert parse.calls == 3
    assert arrow.numbers(changed.table, "t_ns")[0] == 20_000_000


def test_a_change_within_one_clock_tick_is_seen(tmp_path: Path) -> None:
    folder, parse = numbers(tmp_path / "r"), Counting()
    stat = (folder / "a.txt").stat()
    cache.parse(source_of(folder), "a.txt", "p/1", parse)
    with (folder / "a.txt").open("r+b") as file:
        file.write(b"20")
    os.utime(folder / "a.txt", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    changed = cache.parse(source_of(folder), "a.txt", "p/1", parse)
    assert arrow.numbers(changed.table, "t_ns")[0] == 20_000_000


def test_a_damaged_entry_is_rebuilt(tmp_path: Path) -> None:
    folder, parse = aged(numbers(tmp_path / "r")), Counting()
    cache.parse(source_of(folder), "a.txt", "p/1", parse)
    (entry,) = cache.entries()
    (entry.path / "0.arrow").write_bytes(b"ARROW1\0\0 nonsense")
    again = cache.parse(source_of(folder), "a.txt", "p/1", parse)
    assert parse.calls == 2
    assert again.table.num_rows == ROW_COUNT


@pytest.mark.parametrize("file", ["0.arrow", "index.json"])
def test_no_flipped_bit_of_an_entry_is_served(file: str, tmp_path: Path) -> None:
    folder, parse = aged(numbers(tmp_path / "r")), Counting()
    sound = cache.parse(source_of(folder), "a.txt", "p/1", parse)
    (entry,) = cache.entries()
    content = (entry.path / file).read_bytes()
    for at in range(0, len(content), len(content) // 17):
        changed = bytearray(content)
        changed[at] ^= 16
        (entry.path / file).write_bytes(changed)
        served = cache.parse(source_of(folder), "a.txt", "p/1", parse)
        assert served.table.equals(sound.table)
        assert (served.losses, served.notes) == (sound.losses, sound.notes)
    assert parse.calls > 17


def test_an_archive_with_a_forged_checksum_does_not_stand_for_another(tmp_path: Path) -> None:
    texts = ["\n".join(str(start + i) for i in range(ROW_COUNT)) for start in (10_000_000, 20_000_000)]
    for number, text in enumerate(texts):
        with zipfile.ZipFile(tmp_path / f"{number}.zip", "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(zipfile.ZipInfo("a.txt"), text)
    genuine = bytearray((tmp_path / "0.zip").read_bytes())
    forged = (tmp_path / "1.zip").read_bytes()
    directory = genuine.index(b"PK\1\2")
    (tmp_path / "1.zip").write_bytes(forged[:directory] + genuine[directory:])
    zips = [source_of(tmp_path / f"{number}.zip") for number in range(2)]
    with pytest.raises(ParseError, match="damaged inside the zip"):
        cache.parse(zips[1], "a.txt", "p/1", Counting())
    assert arrow.numbers(cache.parse(zips[0], "a.txt", "p/1", Counting()).table, "t_ns")[0] == 10_000_000
    assert zips[0].key("a.txt") != zips[1].key("a.txt")


def test_a_crash_while_building_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = aged(numbers(tmp_path / "r"))

    def crash(_: Buffer) -> Parsed:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.parse(source_of(folder), "a.txt", "p/1", crash)
    assert list(cache.entries()) == []
    assert cache.parse(source_of(folder), "a.txt", "p/1", Counting()).table.num_rows == ROW_COUNT


def test_a_cache_that_cannot_be_written_does_not_stop_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("TRANSECT_CACHE_DIR", str(tmp_path / "file"))
    folder = aged(numbers(tmp_path / "r"))
    assert cache.parse(source_of(folder), "a.txt", "p/1", Counting()).table.num_rows == ROW_COUNT
    assert "cannot be written" in caplog.text


def test_the_least_recently_used_entry_goes_first(tmp_path: Path) -> None:
    folder, parse = aged(numbers(tmp_path / "r")), Counting()
    for version in range(3):
        cache.parse(source_of(folder), "a.txt", f"p/{version}", parse)
    known = sorted(cache.entries(), key=lambda e: e.used_ns)
    os.utime(known[0].path / "index.json")  # the oldest is used again
    cache.shrink(sum(e.size for e in known) - 1)
    left = {e.path for e in cache.entries()}
    assert left == {known[0].path, known[2].path}


def test_clear_removes_everything(tmp_path: Path) -> None:
    cache.parse(source_of(aged(numbers(tmp_path / "r"))), "a.txt", "p/1", Counting())
    assert cache.clear() > 0
    assert list(cache.entries()) == []
    assert cache.clear() == 0


CHILD = """
import sys
from tests.recording.test_cache import Counting
from transect.recording import cache, source_of
print(cache.parse(source_of(sys.argv[1]), "a.txt", "p/1", Counting()).table.num_rows)
"""


def test_two_processes_may_build_the_same_entry(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CHILD, str(aged(numbers(tmp_path / "r")))]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [child.communicate(timeout=60)[0] for child in children] == [f"{ROW_COUNT}\n"] * 2
    assert len(list(cache.entries())) == 1
    assert not list((cache.folder() / "tables").glob("*/.*"))
