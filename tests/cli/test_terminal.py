"""Names and notes out of a log never command the terminal."""

import io
import sys
from pathlib import Path

import pytest

from transect.cli import main
from transect.cli._terminal import escape

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
