"""The cache is trusted only where nobody else can have written: what numba keeps there is executed."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.commands import transect

from transect.base import cache_folder
from transect.base.cache_folder import COMPILED_FOLDER
from transect.errors import UsageError

TINY = """
from numba import njit

@njit(cache=True)
def double(x):
    return 2 * x
"""
CHILD = """
from transect.base.cache_folder import load_compiled
print(load_compiled("tiny.caller", "tiny").double(21))
"""


class Payload:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "executed"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package with a loop for numba to compile; the folder that holds it."""
    folder = tmp_path_factory.mktemp("packages") / "tiny"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "_tiny_compiled.py").write_text(TINY)
    return folder.parent


@pytest.fixture(scope="module")
def compiled(package: Path) -> Path:
    """A cache with the compiled loop."""
    cache = package / "cache"
    assert compile_in(package, package, TRANSECT_CACHE_DIR=cache).stdout == "42\n"
    assert cache.stat().st_mode & 0o777 == 0o700
    return cache / COMPILED_FOLDER


@pytest.fixture
def poisoned(compiled: Path, tmp_path: Path, mark: Path) -> Path:
    """A cache folder in which every index of numba's is a pickle that leaves a mark."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    shutil.copytree(compiled, folder / COMPILED_FOLDER)
    indices = list(folder.rglob("*.nbi"))
    assert indices
    for index in indices:
        index.write_bytes(pickle.dumps(Payload(mark)))
    return folder


def compile_in(package: Path, cwd: Path, **variables: Path) -> subprocess.CompletedProcess[str]:
    taken = {"NUMBA_CACHE_DIR", "TRANSECT_CACHE_DIR"}
    environment = {name: value for name, value in os.environ.items() if name not in taken}
    environment |= {"PYTHONPATH": str(package)} | {name: str(value) for name, value in variables.items()}
    command = [sys.executable, "-P", "-c", CHILD]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("variable", ["TRANSECT_CACHE_DIR", "NUMBA_CACHE_DIR"])
def test_compiled_loops_are_not_loaded_from_a_folder_that_others_can_write_to(
    package: Path, poisoned: Path, mark: Path, tmp_path: Path, variable: str
) -> None:
    folder = poisoned / COMPILED_FOLDER if variable == "NUMBA_CACHE_DIR" else poisoned
    folder.chmod(0o777)
    where = {"TRANSECT_CACHE_DIR": tmp_path / "other", variable: folder}
    done = compile_in(package, tmp_path, **where)
    assert done.stdout == "42\n", done.stderr
    assert f"rm -r {folder}" in done.stderr
    assert not mark.exists()


def test_what_the_users_own_cache_holds_is_executed(
    package: Path, poisoned: Path, mark: Path, tmp_path: Path
) -> None:
    # Shows that the tests beside this one would notice.
    compile_in(package, tmp_path, TRANSECT_CACHE_DIR=poisoned)
    assert mark.exists()


def test_settings_of_numba_in_the_working_directory_are_refused(
    package: Path, poisoned: Path, mark: Path, tmp_path: Path
) -> None:
    (tmp_path / ".numba_config.yaml").write_text(f"cache_dir: {poisoned / COMPILED_FOLDER}\n")
    done = compile_in(package, tmp_path, TRANSECT_CACHE_DIR=tmp_path / "other")
    assert "UsageError: numba would read settings from .numba_config.yaml" in done.stderr
    assert not mark.exists()


def give_away(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a folder somebody else's: really, if that is allowed."""
    if os.geteuid() == 0:
        os.chown(folder, 4242, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)


@pytest.mark.parametrize("how", ["group", "everybody", "owner", "above", "link"])
def test_a_cache_that_others_can_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    folder = tmp_path / "above" / "cache"
    folder.mkdir(parents=True, mode=0o700)
    named = folder
    if how in ("group", "everybody"):
        folder.chmod(0o770 if how == "group" else 0o707)
    elif how == "above":
        folder.parent.chmod(0o777)
    else:
        give_away(folder, monkeypatch)
        named = tmp_path / "link" if how == "link" else folder
        if how == "link":
            named.symlink_to(folder)
    monkeypatch.setenv("TRANSECT_CACHE_DIR", str(named))
    used = cache_folder.folder()
    assert used != named
    assert used.stat().st_mode & 0o777 == 0o700
    assert f"{named} is not used as a cache" in caplog.text
    done = transect("cache", "info")
    assert (done.returncode, str(named) in done.stdout) == (0, False)


def test_a_new_cache_is_private_for_any_umask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSECT_CACHE_DIR", str(tmp_path / "a" / "cache"))
    before = os.umask(0o002)
    try:
        assert cache_folder.folder() == tmp_path / "a" / "cache"
    finally:
        os.umask(before)
    assert (tmp_path / "a" / "cache").stat().st_mode & 0o777 == 0o700


def test_relative_caches_are_refused_or_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRANSECT_CACHE_DIR", "cache")
    with pytest.raises(UsageError, match=f"export TRANSECT_CACHE_DIR={tmp_path / 'cache'}"):
        cache_folder.folder()
    monkeypatch.delenv("TRANSECT_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder.folder() == tmp_path / "home" / ".cache" / "transect"
    assert not (tmp_path / "relative").exists()
