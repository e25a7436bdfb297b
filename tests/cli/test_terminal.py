"""Names and notes out of a log never command the terminal."""

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from transect.base import files
from transect.cli import main
from transect.cli.run.prompt import bar
from transect.cli.shared.output import ProgressDisplay
from transect.cli.shared.terminal import PlainStream, escape, show_coloured

HOSTILE = "\x1b]0;owned\x07 \x1b[2J \r \x9b31m \u202egnp \x7f"


def commands(text: str) -> list[str]:
    return [c for c in text if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 or c == "\u202e"]


def test_what_would_command_a_terminal_is_spelled_out_and_our_own_styles_stay():
    assert commands(escape(HOSTILE)) == []
    assert escape("a\x1b[2Jb\tc\n") == "a\\x1b[2Jb\tc\n"
    assert escape("\x1b[1mhead \x1b[0m\nrow") == "\x1b[1mhead \x1b[0m\nrow"
    assert escape(f"\x1b[1m{HOSTILE}\x1b[0m") == f"\x1b[1m{escape(HOSTILE)}\x1b[0m"
    assert escape("é — 漢字") == "é — 漢字"


def test_a_recording_with_hostile_names_and_notes_is_shown_without_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    quoted = HOSTILE.encode("unicode_escape").decode().replace("\\x9b", "\\u009b")
    (tmp_path / "a\x1b[2J.csv").write_text("t,x\n1,2\nx,3\n")
    (tmp_path / "recording.yaml").write_text(
        f'name: "{quoted}"\nnotes: ["{quoted}"]\n'
        f'streams:\n- {{name: "{quoted}", file: "a*.csv", frame: "{quoted}", time: {{column: t, unit: s}}}}\n'
    )
    shown, told = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", shown)
    monkeypatch.setattr(sys, "stderr", told)
    monkeypatch.setattr(sys, "argv", ["transect", "info", str(tmp_path)])
    with pytest.raises(SystemExit):
        main()
    assert "gnp" in shown.getvalue()
    assert commands(shown.getvalue() + told.getvalue()) == []


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_bars_move_the_cursor_of_the_terminal_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", PlainStream(terminal))
    monkeypatch.setenv("TERM", "xterm")
    with ProgressDisplay().of_files(3, "writing"):
        files.write_text(tmp_path / "a", "")
    with bar(ProgressDisplay(), SimpleNamespace(playback=SimpleNamespace(span=(0, 10**9)))):  # pyright: ignore[reportArgumentType]
        files.reached(10**8, "utc")
    assert "writing" in terminal.getvalue()
    assert "playing" in terminal.getvalue()
    assert "\x1b[" in terminal.getvalue()
    assert "\\x1b" not in terminal.getvalue()
    assert escape("done\x1b[0m") == "done\x1b[0m"


def test_a_bar_names_what_is_in_work_unless_nobody_looks(monkeypatch: pytest.MonkeyPatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    assert list(ProgressDisplay(quiet=True).over(["left"], "reading")) == ["left"]
    assert list(ProgressDisplay().over([], "reading")) == []
    with (
        ProgressDisplay().of_files(0, "writing"),
        bar(ProgressDisplay(), SimpleNamespace(playback=SimpleNamespace(span=None))),
    ):  # pyright: ignore[reportArgumentType]
        files.reached(10**8, "utc")
    assert terminal.getvalue() == ""
    assert list(ProgressDisplay().over([3, 4], "reading", "camera {}".format)) == [3, 4]
    assert "reading" in terminal.getvalue()
    assert "camera 4" in terminal.getvalue()


@pytest.mark.parametrize(("no_color", "shown"), [("", "a\x1b[31m#\x1b[0m\n"), ("1", "a#\n")])
def test_parts_are_coloured_on_a_terminal_unless_a_person_wants_none(
    monkeypatch: pytest.MonkeyPatch, no_color: str, shown: str
):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", PlainStream(terminal))
    monkeypatch.setenv("NO_COLOR", no_color)
    show_coloured("a", [("#", "red")])
    assert terminal.getvalue() == shown
