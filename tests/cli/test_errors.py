"""How commands end when something goes wrong: what is said, and the exit code."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from unittest import mock

import click
import pytest
from tests.commands import transect

from transect.errors import TransectError


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "free some space, or write elsewhere with -o"),
        (errno.EACCES, "check the permissions, or write elsewhere with -o"),
        (errno.EROFS, "write elsewhere with -o"),
        (errno.EIO, ""),
    ],
)
def test_what_the_system_refuses_is_said_in_one_line_with_what_to_do(
    tmp_path: Path, number: int, advice: str
) -> None:
    refused = OSError(number, os.strerror(number), str(tmp_path / "cloud.ply"))
    with mock.patch("transect.formats.open", side_effect=refused):
        done = transect("info", tmp_path)
        with pytest.raises(OSError, match=os.strerror(number)):
            transect("info", tmp_path, "--debug")
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {os.strerror(number)}")
    assert str(tmp_path / "cloud.ply") in done.stderr
    assert (" -o" in done.stderr, advice in done.stderr) == (bool(advice), True)
    assert "Traceback" not in done.stderr


def test_an_error_is_raised_with_its_traceback_if_that_is_asked_for(tmp_path: Path) -> None:
    assert transect("info", tmp_path / "none").returncode in (1, 2)
    with pytest.raises(TransectError):
        transect("--debug", "info", tmp_path / "none")


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (click.Abort(), 130, "interrupted\n"),
        (click.ClickException("the file is gone"), 1, "Error: the file is gone\n"),
        (click.UsageError("one PATH is enough"), 2, "Error: one PATH is enough\n"),
        (SystemExit(143), 143, ""),  # as a signal ends it
    ],
)
def test_a_command_ends_with_the_code_of_its_reason(
    tmp_path: Path, raised: BaseException, code: int, said: str
) -> None:
    with mock.patch("transect.formats.open", side_effect=raised):
        done = transect("info", tmp_path)
    assert (done.returncode, done.stderr.endswith(said)) == (code, True)


def test_a_word_that_is_no_command_is_answered_by_the_one_that_was_meant() -> None:
    verb, part = transect("inof"), transect("graph", "shwo")
    assert (verb.returncode, part.returncode) == (2, 2)
    assert "there is no command 'inof'; did you mean 'info'?" in verb.stderr
    assert "there is no command 'shwo'; did you mean 'show'?" in part.stderr
    assert transect("--help").returncode == transect("graph", "-h").returncode == 0
    assert "no such option" in transect("--hepl").stderr.lower()


@pytest.mark.parametrize(
    ("words", "what", "advice"),
    [
        (("--option", "sequence"), "--option 'sequence' is not KEY=VALUE", "--option sequence=01"),
        (("--option", "format=csv"), "--option format is not for the format", "--read-as"),
        (("--option", "strict=true"), "--option strict is not for the format", "--strict"),
    ],
)
def test_options_for_the_format_are_pairs_that_the_command_does_not_have(
    tmp_path: Path, words: tuple[str, ...], what: str, advice: str
) -> None:
    done = transect("info", tmp_path, *words)
    assert (done.returncode, what in done.stderr, advice in done.stderr) == (2, True, True)
