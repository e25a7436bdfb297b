"""What errors and help suggest can be typed: every `transect VERB --option` in the source exists."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

import transect
from transect.cli import command as whole

SOURCES = Path(transect.__file__).parent
STEPS = re.compile(r"transect ((?:[a-z]+\b[^;`)\n]*?)?)(?=  |[;`)\n]|, (?!X)|\. |$)")
VALUE = "X"
"""Stands for what is only known when the text is made."""
OF_OTHER_PROGRAMS = {"--to-new-format"}
"""Options in hints that another program has."""


def texts_of(tree: ast.AST) -> Iterator[tuple[int, bool, str]]:
    """Yield the strings of a module, joined as Python joins them: line, whether it is a hint, and text."""
    inner: set[ast.AST] = set()
    hints: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "hint":
            hints.update(ast.walk(node.value))
        if isinstance(node, ast.Expr):
            inner.add(node.value)  # a docstring
        if isinstance(node, ast.JoinedStr):
            inner.update(node.values)
            parts = [each.value if isinstance(each, ast.Constant) else VALUE for each in node.values]
            yield node.lineno, node in hints, "".join(str(part) for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inner:
            yield node.lineno, node in hints, node.value


@cache
def all_texts() -> list[tuple[str, bool, str]]:
    """Return the strings of the whole package: place, whether it is a hint, and text."""
    modules = ((path, path.read_text("utf-8")) for path in sorted(SOURCES.rglob("*.py")))
    return [
        (f"{path.relative_to(SOURCES)}:{line}", is_hint, text)
        for path, source in modules
        if "transect " in source or "--" in source
        for line, is_hint, text in texts_of(ast.parse(source))
    ]


def suggested_commands() -> list[tuple[str, str]]:
    """Return all that hints suggest to type, and other texts that begin with a verb, each with its place."""
    verbs = whole.list_commands(click.Context(whole))
    return [
        (place, said)
        for place, is_hint, text in all_texts()
        for match in STEPS.finditer(text)
        if (said := match[1].strip()) and (is_hint or said.split()[0] in verbs)
    ]


def options_of(command: click.Command) -> set[str]:
    return {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {"--help", "-h"}


def fault_of(words: list[str]) -> str:
    """Return why a command cannot be typed, "" if it can."""
    command: click.Command = whole
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        context = click.Context(command)
        below = command.get_command(context, words[0])
        if below is None:
            named = words[0] in ("NAME", "VERB", VALUE) or not re.fullmatch("[a-z]+", words[0])
            return "" if named else f"there is no verb {words[0]!r}"
        command, words = below, words[1:]
    known = options_of(command)
    given = [word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)]
    return "".join(f"no option {option}" for option in given if option not in known)


SUGGESTED = suggested_commands()


def test_the_source_suggests_commands():
    assert len({text for _, text in SUGGESTED}) > 60
    assert {"info", "new", "run", "check", "eval"} <= {text.split()[0] for _, text in SUGGESTED}


@pytest.mark.parametrize("text", ["infos PATH", "info PATH --no-such-option", "new recordings PATH"])
def test_what_cannot_be_typed_is_noticed(text: str):
    assert fault_of(text.split())


def test_every_command_that_is_suggested_can_be_typed():
    faults = [(place, text, fault) for place, text in SUGGESTED if (fault := fault_of(text.split()))]
    assert not faults, "\n".join(f"{place}: transect {text}: {fault}" for place, text, fault in faults)


def all_options(command: click.Command) -> set[str]:
    own = options_of(command)
    if isinstance(command, click.Group):
        context = click.Context(command)
        below = (command.get_command(context, name) for name in command.list_commands(context))
        return own.union(*(all_options(each) for each in below if each is not None))
    return own


def test_every_option_in_a_hint_is_one_of_a_command():
    known = all_options(whole)
    faults = [
        f"{place}: {text}"
        for place, is_hint, text in all_texts()
        if is_hint
        for option in re.findall(r"(?<![-\w])--[a-z][a-z-]+", text)
        if option not in known | OF_OTHER_PROGRAMS
    ]
    assert not faults, "\n".join(faults)


PLACEHOLDER = re.compile(r"\b(?:PATH|STREAM|COMPOUND|NODE|TIME)\b")
UNKNOWN = {
    "transect run LaserSlam PATH -o DIR makes one",  # there is no recording yet, only a wrong map
    "transect run NAME PATH -o DIR and transect eval REF EST -o DIR write results",
    "transect run NAME PATH -o DIR writes one",
}
"""Hints of verbs that take no recording."""


def test_hints_name_the_recording_and_the_stream_instead_of_placeholders():
    found = [f"{at}: {text}" for at, hint, text in all_texts() if hint and PLACEHOLDER.search(text)]
    assert not [each for each in found if each.partition(": ")[2] not in UNKNOWN]
