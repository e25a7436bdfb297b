"""The user's cache folder, also for functions compiled by numba.

Numba's cache files are pickles, which can execute arbitrary code. A folder that others can write to is
therefore replaced by a private one, which is removed at exit.
"""

from __future__ import annotations

import os
import stat
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from transect._version import __version__
from transect.errors import UsageError

CACHE_DIR, NUMBA_CACHE_DIR = "TRANSECT_CACHE_DIR", "NUMBA_CACHE_DIR"
COMPILED_FOLDER = f"compiled-{__version__}"
NUMBA_LOCATORS = "NUMBA_CACHE_LOCATOR_CLASSES"
NUMBA_FILE = ".numba_config.yaml"
"""Numba reads settings from this file in the working directory, such as the folder of its pickles."""


def folder() -> Path:
    """Return the cache folder: `$TRANSECT_CACHE_DIR`, else `transect` in `$XDG_CACHE_HOME` or `~/.cache`.

    Raises
    ------
    UsageError
        If TRANSECT_CACHE_DIR is a relative path, which would depend on the working directory.
    """
    if given := os.environ.get(CACHE_DIR):
        return _own_folder(_absolute(given, CACHE_DIR))
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))  # the standard ignores a relative one
    return _own_folder((base if base.is_absolute() else Path.home() / ".cache") / "transect")


def load_compiled(caller: str, name: str) -> ModuleType:
    """Import the module ``_<name>_compiled`` beside the module `caller` (its ``__name__``).

    Numba caches compiled functions in the cache folder, separately for each version of transect: the cached
    files name classes of other modules.
    """
    module = f"{caller.rpartition('.')[0]}._{name}_compiled"
    if module not in sys.modules:
        _prepare_numba()
    return import_module(module)


def _prepare_numba() -> None:
    """Set numba's cache to the user's folder; raise if there are numba settings in the working directory."""
    if Path(NUMBA_FILE).is_file():
        raise UsageError(
            f"numba would read settings from {NUMBA_FILE} in the working directory",
            where=str(Path(NUMBA_FILE).absolute()),
            why="they can name a folder of programs that it loads and executes",
            hint="work in another folder, 'cd', and name the recording by its path; or remove the file",
        )
    given = os.environ.get(NUMBA_CACHE_DIR)
    chosen = _own_folder(_absolute(given, NUMBA_CACHE_DIR) if given else folder() / COMPILED_FOLDER)
    writable = os.access(chosen, os.W_OK | os.X_OK)
    os.environ[NUMBA_CACHE_DIR] = str(chosen if writable else _private_folder())
    os.environ.setdefault(NUMBA_LOCATORS, "")
    from numba.core import config

    config.reload_config()  # in case numba was imported before


def _absolute(given: str, variable: str) -> Path:
    if not Path(given).is_absolute():
        raise UsageError(
            f"{variable} is the relative path {given!r}",
            why="the cache would depend on the working directory, which others may have written",
            hint=f"export {variable}={Path(given).absolute()}",
        )
    return Path(given)


@cache
def _own_folder(path: Path) -> Path:
    """Return a folder, created if necessary, or a private temporary one if others may write there."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        why = foreign_writer(path)
    except OSError:  # writing to it will report the error
        return path
    if not why:
        return path
    import logging  # seldom needed, and slow to import

    what = f"{path} is not used as a cache: {why}; 'rm -r {path}' resets it"
    logging.getLogger("transect").warning("%s", what)
    return _private_folder()


def foreign_writer(path: Path) -> str:
    """Return who else may write to a folder; "" if only the user and root."""
    for found in (path.lstat(), path.stat()):
        if found.st_uid not in (os.geteuid(), 0):
            return f"its owner is the user with id {found.st_uid}"
    mode = path.stat().st_mode
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{'everybody' if mode & stat.S_IWOTH else 'its group'} may write to it"
    for above in path.resolve().parents:
        mode = above.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return f"everybody may replace it, by writing to {above}"
    return ""


@cache
def _private_folder() -> Path:
    import atexit
    import shutil
    import tempfile

    made = Path(tempfile.mkdtemp(prefix="transect-cache-"))
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # not in a process that was forked
            shutil.rmtree(made, ignore_errors=True)

    atexit.register(remove)
    return made
