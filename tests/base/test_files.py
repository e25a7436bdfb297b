import os
import stat
import threading
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transect.base import files
from transect.errors import UsageError


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "a.txt"

    def fail() -> None:
        with files.atomic_write(target) as stream:
            stream.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(target.parent.iterdir()) == []
    with files.atomic_write(target) as stream:
        stream.write(b"whole")
        assert not target.exists()
    assert target.read_bytes() == b"whole"
    assert list(target.parent.iterdir()) == [target]


def test_text_keeps_its_newlines(tmp_path: Path) -> None:
    with files.atomic_write(tmp_path / "a", "w") as stream:
        stream.write("a\r\nb\n")  # pyright: ignore[reportArgumentType]
    assert (tmp_path / "a").read_bytes() == b"a\r\nb\n"


def test_files_and_folders_have_the_permissions_of_the_users_own(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        files.write_text(tmp_path / "file", "text")
        with files.staged(tmp_path / "folder") as new:
            new.mkdir()
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o750


def test_writing_never_touches_the_umask_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread that makes a file meanwhile would get the wrong permissions."""
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("umask was set"))
    files.write_text(tmp_path / "file", "text")
    assert (tmp_path / "file").read_text() == "text"


def test_threads_that_write_the_same_file_leave_one_whole_file(tmp_path: Path) -> None:
    texts = [str(number) * 100_000 for number in range(4)]
    writers = [threading.Thread(target=files.write_text, args=(tmp_path / "file", text)) for text in texts]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert (tmp_path / "file").read_text() in texts
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_what_is_staged_appears_when_the_block_ends(tmp_path: Path) -> None:
    target = tmp_path / "run"
    with files.staged(target) as new:
        new.mkdir()
        (new / "a.txt").write_text("a")
        new.with_name("run.truth").write_text("beside")
        assert not target.exists()
    assert (target / "a.txt").read_text() == "a"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "run.truth"]


def test_what_is_staged_is_gone_after_an_error(tmp_path: Path) -> None:
    def fail() -> None:
        with files.staged(tmp_path / "run") as new:
            new.mkdir()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_staging_replaces_an_empty_folder_but_no_other(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with files.staged(tmp_path / "empty") as new:
        new.mkdir()
        (new / "a").touch()
    assert (tmp_path / "empty" / "a").exists()
    with pytest.raises(OSError, match="not empty"), files.staged(tmp_path / "empty") as new:
        new.mkdir()
    assert (tmp_path / "empty" / "a").exists()


def test_what_stands_in_the_way_is_refused_with_its_name(tmp_path: Path) -> None:
    files.refuse_existing(tmp_path / "new")
    (tmp_path / "empty").mkdir()
    files.refuse_existing(tmp_path / "empty")
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    for path in (tmp_path / "file", tmp_path / "link", tmp_path):
        with pytest.raises(UsageError, match=f"{path} exists already"):
            files.refuse_existing(path)


def test_an_observer_learns_of_every_file(tmp_path: Path) -> None:
    class Watcher:
        def __init__(self) -> None:
            self.seen: list[object] = []

        def wrote(self, path: Path) -> None:
            self.seen.append(path.name)

        def reached(self, t_ns: int, clock: str) -> None:
            self.seen.append((t_ns, clock))

    watcher = Watcher()
    with files.observed(watcher):
        files.write_text(tmp_path / "a", "")
        files.reached(5, "utc")
    files.write_text(tmp_path / "b", "")
    assert watcher.seen == ["a", (5, "utc")]


@given(st.text())
@example("/etc/passwd")
@example("../../x")
@example("a/../../b")
@example("..")
@example("C:\\x\0y")
@example("\ud800")
def test_a_name_out_of_a_log_never_leads_elsewhere(name: str) -> None:
    path = Path(files.file_path(name))
    assert not path.is_absolute()
    assert path.parts
    assert ".." not in path.parts
    assert "\0" not in str(path)
    assert Path(files.file_name(name)).parts == (files.file_name(name),)
    os.fsencode(str(path))


def test_a_plain_name_stays_as_it_is() -> None:
    assert files.file_path("Gnss/Body Velocity") == "Gnss/Body Velocity"
    assert files.file_name("Gnss/Pose") == "Gnss_Pose"
    assert files.file_path("///", otherwise="stream") == "stream"


def test_what_killed_writers_left_is_swept_after_a_day(tmp_path: Path) -> None:
    old = time.time() - 90_000
    names = [".x.0123456789ab.writing", ".y.tum.0123456789ab.tmp", ".keep.tmp", "x.0123456789ab.tmp"]
    for name in names:
        (tmp_path / name).mkdir() if name.endswith("writing") else (tmp_path / name).write_bytes(b"")
        os.utime(tmp_path / name, (old, old))
    (tmp_path / ".z.0123456789ab.tmp").write_bytes(b"somebody writes it now")
    with files.staged(tmp_path / "new") as new:
        new.write_bytes(b"1")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {".keep.tmp", "x.0123456789ab.tmp", ".z.0123456789ab.tmp", "new"}


def test_a_link_that_was_left_is_swept_and_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    left = tmp_path / ".latest.0123456789ab.tmp"
    left.symlink_to("run")
    os.utime(left, (0, 0), follow_symlinks=False)
    files.write_text(tmp_path / "x", "")  # the first file that is written to a folder
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "x"]
