"""Tables that do not fit the terminal say how to see the rest, and only what the command can do."""

from __future__ import annotations

import io
import sys

import click
import pytest

from transect.cli.shared import output
from transect.cli.shared.output import all_option, show_table

WIDE_ROW = ("a" * 15, "b" * 15, "c" * 15)


@click.command()
def plain() -> None:
    show_table(("first", "second", "third"), [WIDE_ROW])


@click.command()
@all_option
def whole() -> None:
    show_table(("first", "second", "third"), [WIDE_ROW])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def show(command: click.Command, *words: str) -> str:
    """What a command prints to a terminal of 12 characters."""
    terminal = Terminal()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", terminal)
        patch.setattr(output, "_terminal_width", lambda: 12)
        command.main(list(words), standalone_mode=False)
    return terminal.getvalue()


@pytest.mark.parametrize(("command", "hint"), [(plain, "; use a wider terminal)"), (whole, "; use --all)")])
def test_what_has_no_room_is_named_with_a_way_to_see_it(command: click.Command, hint: str) -> None:
    said = show(command)
    assert "(not shown: " in said
    assert hint in said


def test_with_the_option_all_columns_are_shown() -> None:
    said = show(whole, "--all")
    assert all(cell in said for cell in WIDE_ROW)
    assert "no room" not in said
