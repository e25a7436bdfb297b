"""The tutorial, word for word: its files are saved, its commands run, and what it shows is what comes.

The page has fences of tildes, which the test of all pages leaves alone: it is run here, in an empty folder.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests import commands
from tests.test_project import BIN, ROOT

PAGE_PATH = ROOT / "docs" / "tutorial-node.md"
BLOCK = re.compile(r"^~~~(\w+)\n(.*?)^~~~$", re.DOTALL | re.MULTILINE)
SAVED = re.compile(r"Save this as `([^`]+)`")


@dataclass(frozen=True)
class File:
    """A file that the reader is told to save."""

    name: str
    text: str


@dataclass(frozen=True)
class Command:
    """A line that the reader types, and what the page shows under it."""

    line: str
    shown: str


def steps_of(page: str) -> list[File | Command]:
    """What a reader does, in the order of the page."""
    steps: list[File | Command] = []
    end = 0
    for block in BLOCK.finditer(page):
        before, (language, text) = page[end : block.start()], block.groups()
        end = block.end()
        if language == "console":
            steps += commands_of(text)
        else:
            named = SAVED.findall(before)
            assert len(named) == 1, f"one name is expected before {text[:40]!r}, found {named}"
            steps.append(File(named[0], text))
    return steps


def commands_of(text: str) -> list[Command]:
    """The commands of a console block: lines after `$`, each with what follows it."""
    nothing, *parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
    assert not nothing, f"a console block begins with a command, not with {nothing!r}"
    return [Command(line, shown) for line, _, shown in (part.partition("\n") for part in parts)]


def is_shown(shown: str, came: str) -> bool:
    """Whether a text is as a page shows it: `...` is anything, and blanks are as good as others."""
    words = [re.escape(" ".join(part.split())) for part in shown.split("...")]
    return re.fullmatch(r"\s*.*?\s*".join(words), " ".join(came.split()), re.DOTALL) is not None


def typed(line: str, folder: Path) -> tuple[int, str]:
    """Run a line as a person would; its exit code, and what it shows, errors where they come."""
    words = shlex.split(line)
    if words[0] == "transect" and not commands.SHELL_SIGNS & set(words):
        done = commands.transect(*words[1:], cwd=folder, together=True, NO_COLOR="1")
        return done.returncode, done.stdout
    environment = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}
    process = subprocess.run(
        line, shell=True, cwd=folder, env=environment, text=True, timeout=300, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return process.returncode, process.stdout


def test_following_the_tutorial_word_for_word_shows_what_it_says(tmp_path: Path):
    codes: list[int] = []
    for step in steps_of(PAGE_PATH.read_text("utf-8")):
        if isinstance(step, File):
            (tmp_path / step.name).write_text(step.text, "utf-8")
            continue
        code, came = typed(step.line, tmp_path)
        assert is_shown(step.shown, came), f"$ {step.line}\n{came}\n-- but it shows\n{step.shown}"
        codes.append(code)
    assert codes.count(4) == 2, "the misspelt port, and the run that is not the golden one"
    assert set(codes) == {0, 4}
    assert (tmp_path / "slip.svg").read_text("utf-8") == (PAGE_PATH.parent / "engine" / "slip.svg").read_text(
        "utf-8"
    )


@pytest.mark.parametrize(
    ("shown", "came", "expected"),
    [
        ("wrote etna\n", "wrote etna\n", True),
        ("wrote etna\n", "wrote etna\nand more\n", False),
        ("a  ...\nend", "a 1.2 us 3%\nend\n", True),
        ("...\nend", "end", True),
        ("a ... b", "a 1 c", False),
        ("why: (x.y)", "why: (xzy)", False),
    ],
)
def test_dots_stand_for_anything_and_everything_else_for_itself(shown: str, came: str, expected: bool):
    assert is_shown(shown, came) is expected


def test_files_are_named_by_the_sentence_before_them():
    page = "Save this as `a.py`:\n\n~~~python\nx = 1\n~~~\n\n~~~console\n$ python a.py\n$ ls\na.py\n~~~\n"
    assert steps_of(page) == [File("a.py", "x = 1\n"), Command("python a.py", ""), Command("ls", "a.py\n")]
