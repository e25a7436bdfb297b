"""Commands and scripts in this process: what a shell would start, without the second that each start takes.

`transect.cli.main` is called as the console script calls it. What only a process of its own can show (a
signal, a pipe, the peak of its memory, what it imports) is tested with a real one.
"""

from __future__ import annotations

import io
import os
import runpy
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from transect.cli import main

TERMINAL_COLUMNS = 1000
"""Columns, unless a test sets another `COLUMNS`: sentences are not folded."""
SHELL_SIGNS = {"|", ">", ">>", "<", "&", "&&", "||", ";"}


@dataclass(frozen=True)
class Done:
    """How a command ended and what it printed; the names are those of `subprocess.CompletedProcess`."""

    returncode: int
    stdout: str
    stderr: str


def transect(*arguments: object, cwd: Path | None = None, together: bool = False, **environment: str) -> Done:
    """Run `transect ARGUMENTS` as a person types it; together, errors are in `stdout`, where they come."""
    argv = ["transect", *map(str, arguments)]
    with chdir(cwd) if cwd is not None else nullcontext():
        return _captured(main, argv, environment, together)


def script(path: Path, *arguments: object, cwd: Path, names: Mapping[str, Any] | None = None) -> Done:
    """Run a Python file as `python FILE ARGUMENTS` does; `names` are defined in it beforehand."""
    argv = [str(path), *map(str, arguments)]
    with chdir(cwd), mock.patch.object(sys, "path", [str(path.parent), *sys.path]):
        return _captured(lambda: runpy.run_path(str(path), dict(names or {}), "__main__"), argv, {})


def typed(line: str) -> None:
    """Run a line `transect ...` of a page; what it prints is printed, and it has to end well.

    An export ends with 3 where the other format has no place for something, which it lists.
    """
    words = shlex.split(line, comments=True)
    assert words[0] == "transect", line
    assert not SHELL_SIGNS & set(words), f"{line!r} needs a shell"
    done = transect(*words[1:])
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    is_partial = words[1] == "export" and done.returncode == 3 and "not written: " in done.stderr
    assert done.returncode == 0 or is_partial, f"{line}\n{done.stderr}"


def _captured(
    call: Callable[[], object], argv: list[str], environment: Mapping[str, str], together: bool = False
) -> Done:
    code: object = 0
    with (
        _captured_streams(together) as (out, err),
        mock.patch.object(sys, "argv", argv),
        mock.patch.dict(os.environ, {"COLUMNS": str(TERMINAL_COLUMNS), **environment}),
    ):
        try:
            call()
        except SystemExit as exit_:
            code = exit_.code
    return Done(code if isinstance(code, int) else int(code is not None), _text(out), _text(err))


@contextmanager
def _captured_streams(together: bool) -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    """Standard output and error, as text over bytes: some commands write the one, some the other."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(out if together else err):
        yield out, err


def _text(stream: io.TextIOWrapper) -> str:
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode("utf-8")
