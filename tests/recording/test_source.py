"""Folders, zips and files look alike; what is dangerous in a zip is refused."""

from __future__ import annotations

import hashlib
import io
import os
import random
import re
import struct
import subprocess
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import transect
from transect.base.file_bytes import FileBytes
from transect.errors import ParseError, TransectError
from transect.recording import source_of, zips

FILES = {"Gnss/pose.csv": b"t,x\n1,2\n" * 1000, "a.txt": b"hello", "deep/er/b.bin": bytes(range(256))}


def folder(path: Path) -> Path:
    for name, data in FILES.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def zipped(path: Path, compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in FILES.items():
            archive.writestr(name, data)
    return path


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_zip_reads_like_the_folder_it_was_made_from(tmp_path: Path, compression: int) -> None:
    plain = source_of(folder(tmp_path / "f"))
    packed = source_of(zipped(tmp_path / "z.zip", compression))
    assert plain.names == packed.names == tuple(sorted(FILES))
    for name, data in FILES.items():
        assert plain.read(name) == packed.read(name) == data
        assert plain.head(name, 3) == packed.head(name, 3) == data[:3]
        assert plain.size(name) == packed.size(name) == len(data)
        assert plain.sha256(name) == packed.sha256(name)
    assert plain.folders == packed.folders == {"Gnss", "deep", "deep/er"}
    assert packed.at("deep").names == ("er/b.bin",)


@pytest.mark.parametrize("name", ["../evil.txt", "/etc/passwd", "a/../../evil", "C:/evil", "\\evil"])
def test_a_member_that_points_outside_is_refused_and_the_rest_is_kept(tmp_path: Path, name: str) -> None:
    path = tmp_path / "z.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("good.txt", "1")
        archive.writestr(name, "2")
    source = source_of(path)
    assert source.names == ("good.txt",)
    assert [loss.reason for loss in source.refused] == ["the name points outside the archive"]


def test_a_bomb_is_refused_without_unpacking_it(tmp_path: Path) -> None:
    path = tmp_path / "z.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("good.txt", "1")
        archive.writestr("bomb.csv", b"0" * 50_000_000)
    source = source_of(path)
    assert source.names == ("good.txt",)
    assert "which no recording does" in source.refused[0].reason


def test_a_member_that_unpacks_to_more_than_it_says_is_an_error(tmp_path: Path) -> None:
    data = bytearray(zipped(tmp_path / "z.zip").read_bytes())
    at = data.find(b"PK\x01\x02")  # the first member is Gnss/pose.csv, 8000 bytes
    data[at + 24 : at + 28] = struct.pack("<L", 10)
    (tmp_path / "z.zip").write_bytes(data)
    with pytest.raises(ParseError, match="damaged"):
        source_of(tmp_path / "z.zip").read("Gnss/pose.csv")


class Streamed(io.RawIOBase):
    """A file that cannot go back: zipfile then writes sizes and CRCs behind the members."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("wb")

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self.file.write(data)

    def close(self) -> None:
        self.file.close()


@pytest.mark.parametrize("streamed", [False, True])
def test_a_zip_cut_off_keeps_the_members_that_are_whole(tmp_path: Path, streamed: bool) -> None:
    path = tmp_path / "z.zip"
    if streamed:
        with Streamed(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:  # pyright: ignore[reportArgumentType]
            for name, data in FILES.items():
                archive.writestr(name, data)
    else:
        zipped(path)
    content = path.read_bytes()
    starts = [found.start() for found in re.finditer(rb"PK\x03\x04", content)]
    ends = [*starts[1:], content.index(b"PK\x01\x02")]
    for cut in (len(content) - 40, ends[2], ends[2] - 1, ends[1], ends[0] + 20, ends[0]):
        path.write_bytes(content[:cut])
        source = source_of(path)
        whole = [name for name, end in zip(FILES, ends, strict=True) if end <= cut]
        assert source.names == tuple(sorted(whole))
        assert {name: source.read(name) for name in whole} == {name: FILES[name] for name in whole}
        assert source.refused[0].reason == "the zip is cut off: its directory is lost"
        assert len(source.refused) == (1 if cut in ends or cut > ends[2] else 2)
    path.write_bytes(content[: ends[0] - 1])
    with pytest.raises(ParseError, match="without its directory"):
        source_of(path)


def test_more_than_65535_members_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "z.zip"
    path.write_bytes(zip_of_empty_files([b"%06d.jpg" % i for i in range(66_000)]))
    assert len(source_of(path).names) == 66_000


def zip_of_empty_files(names: list[bytes]) -> bytes:
    """Write an archive with 64-bit counts by the book (APPNOTE 4.3); `zipfile` takes two seconds for it."""
    size = 30 + len(names[0])
    local = b"".join(
        struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, 0, 0, 0, 33, 0, 0, 0, len(name), 0) + name
        for name in names
    )
    central = b"".join(
        struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 20, 0, 0, 0, 33, 0, 0, 0, len(name),
                    0, 0, 0, 0, 0, size * i) + name
        for i, name in enumerate(names)
    )  # fmt: skip
    count, end = len(names), len(local) + len(central)
    return b"".join([
        local, central,
        struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count, len(central), len(local)),
        struct.pack("<IIQI", 0x07064B50, 0, end, 1),
        struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0),
    ])  # fmt: skip


@given(data=st.data())
def test_no_damage_to_a_zip_raises_anything_untyped(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = zipped(tmp_path_factory.mktemp("zip") / "z.zip")
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(4, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        source = source_of(path)
        read = {name: source.read(name) for name in source.names}
    except TransectError:
        return
    assert set(read.values()) <= set(FILES.values())


def test_a_path_that_does_not_exist_names_the_nearest(tmp_path: Path) -> None:
    folder(tmp_path / "traverse_3")
    with pytest.raises(TransectError, match="traverse_3") as caught:
        source_of(tmp_path / "travers_3" / "Gnss")
    assert "does not exist" in str(caught.value)


def test_a_glimpse_shows_the_first_files_of_a_series_and_all_others(tmp_path: Path) -> None:
    names = [f"images/frame_{i:06d}.jpg" for i in range(300)] + ["a.csv", "images/times.txt", "b/1.csv"]
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        for name in names:
            archive.writestr(name, name)
    source = source_of(tmp_path / "z.zip")
    glimpse = source.glimpse()
    assert glimpse.names == tuple(sorted([*names[:100], *names[300:]]))
    assert glimpse.stem == source.stem
    assert glimpse.read("a.csv") == b"a.csv"
    assert glimpse.at("images").head("times.txt") == b"images/times.txt"
    assert "images/frame_000001.jpg" in glimpse
    assert "images/frame_000200.jpg" not in glimpse
    assert "images/frame_000200.jpg" in source


def test_a_small_source_is_seen_whole(tmp_path: Path) -> None:
    source = source_of(folder(tmp_path / "f"))
    assert source.glimpse() is source


def test_hidden_files_folders_and_names_in_any_alphabet_are_distinguished(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        for name in (
            "t/",
            "t/a.csv",
            "t/.DS_Store",
            "__MACOSX/t/a.csv",
            ".hidden",
            "t/größe (1).csv",
            "t/a..b.csv",
        ):
            archive.writestr(name, "x")
    source = source_of(tmp_path / "z.zip")
    assert source.names == ("t/a..b.csv", "t/a.csv", "t/größe (1).csv")
    assert source.read("t/größe (1).csv") == b"x"
    assert source.refused == ()


def test_a_name_that_occurs_twice_is_kept_once(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("a.csv", "first")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a.csv", "second")
    source = source_of(tmp_path / "z.zip")
    assert source.read("a.csv") == b"first"
    assert [(loss.file, loss.reason) for loss in source.refused] == [("z.zip/a.csv", "the name occurs twice")]


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_large_members_are_read_whole_wherever_they_begin(tmp_path: Path, compression: int) -> None:
    large = {f"{i}.bin": random.Random(i).randbytes(1_500_000 + i) for i in range(3)}
    with zipfile.ZipFile(tmp_path / "z.zip", "w", compression) as archive:
        for name, data in large.items():
            archive.writestr(name, data)
    source = source_of(tmp_path / "z.zip")
    assert {name: source.read(name) for name in source.names} == large


def test_a_very_large_deflated_member_is_unpacked_where_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zips, "MIN_STREAMED_BYTES", 10_000)
    monkeypatch.setattr(
        zips, "DeflateReader", partial(zips.DeflateReader, step_bytes=64, checkpoint_bytes=900)
    )
    rng = random.Random(1)
    text = b"".join(b"%d,%d\n" % (i, rng.randrange(10**6)) for i in range(3000))
    path = tmp_path / "z.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", text)
    content = source_of(path).content("a.csv")
    assert isinstance(content, FileBytes)
    for _ in range(200):
        start = rng.randrange(len(text))
        end = start + rng.choice((1, 70, 20_000))
        assert content[start:end] == text[start:end]
    assert bytes(content) == text
    assert source_of(path).sha256("a.csv") == hashlib.sha256(text).hexdigest()
    data = path.read_bytes()
    for at in rng.sample(range(len(data) // 2, len(data) - 200), 20):  # in the member, after its start
        path.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        with pytest.raises(ParseError, match="damaged inside the zip"):
            source_of(path).content("a.csv")


def test_a_damaged_deflated_head_is_a_parse_error(tmp_path: Path) -> None:
    data = bytearray(zipped(tmp_path / "z.zip").read_bytes())
    at = data.index(b"Gnss/pose.csv") + len("Gnss/pose.csv")
    data[at : at + 20] = b"\xff" * 20
    (tmp_path / "z.zip").write_bytes(data)
    with pytest.raises(ParseError, match="damaged"):
        source_of(tmp_path / "z.zip").head("Gnss/pose.csv")


def test_a_file_whose_name_is_not_text_is_refused_and_the_rest_is_kept(tmp_path: Path) -> None:
    folder(tmp_path / "r")
    (tmp_path / "r" / os.fsdecode(b"caf\xe9.csv")).touch()
    source = source_of(tmp_path / "r")
    assert source.names == tuple(sorted(FILES))
    assert [loss.reason for loss in source.refused] == ["its name is not UTF-8"]


def test_folders_too_deep_to_be_listed_do_not_stop_the_rest(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_bytes(b"1")
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1100):  # deeper than Python calls itself, and than a path may be long
        os.mkdir("deeper", dir_fd=here)
        above, here = here, os.open("deeper", os.O_RDONLY, dir_fd=here)
        os.close(above)
    os.close(here)
    source = source_of(tmp_path)
    assert source.names == ("a.txt",)
    (loss,) = source.refused
    assert loss.reason == "the folder cannot be listed: File name too long"
    subprocess.run(["rm", "-rf", str(tmp_path / "deeper")], check=True)  # shutil would call itself too often


def test_a_document_as_large_as_a_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "recording.yaml").touch()
    os.truncate(tmp_path / "recording.yaml", 1 << 30)
    with pytest.raises(ParseError, match="too large"):
        transect.open(tmp_path)
