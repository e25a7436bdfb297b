"""`python -m tools.digests`: results are the same twice, and one changed byte is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tools import digests

DAY = digests.Day("rosario", 1, 0.05, ("Gps*", "Odometry"))
SWITCHED = digests.Runs(
    "PoseSwitching",
    "small",
    ("EndToEnd",),
    {"first": "truth/trajectory", "second": "truth/trajectory", "third": "truth/trajectory"},
)
ONLY = ["--only", "world/small", "--only", "compound/PoseSwitching/*"]


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Digests of one small day and of one compound on it, made in this process."""
    monkeypatch.setattr(digests, "DAYS", {"small": DAY})
    monkeypatch.setattr(digests, "COMPOUNDS", [SWITCHED])
    monkeypatch.setattr(digests, "list_runs", lambda: {"PoseSwitching/EndToEnd/small": SWITCHED})
    assert digests.main(["record", str(tmp_path / "digests.json"), *ONLY]) == 0
    return tmp_path / "digests.json"


def test_what_was_recorded_is_found_again(recorded: Path, capsys: pytest.CaptureFixture[str]):
    assert digests.main(["compare", str(recorded), *ONLY]) == 0
    assert "no difference" in capsys.readouterr().out
    names = json.loads(recorded.read_text())
    assert "world/small/truth/trajectory.tum" in names
    assert "compound/PoseSwitching/EndToEnd/small/switch.pose" in names


def test_a_changed_byte_of_a_world_is_named(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    make_day = digests.make_day

    def damage(name: str, folder: Path) -> digests.Digests:
        made = make_day(name, folder)
        path = folder / name / "sequence00" / "gps.log"
        content = bytearray(path.read_bytes())
        content[-3] ^= 1
        path.write_bytes(content)
        return made

    monkeypatch.setattr(digests, "make_day", damage)
    assert digests.main(["compare", str(recorded), *ONLY]) == 1
    assert capsys.readouterr().out.splitlines()[1:] == ["differs: world/small/sequence00/gps.log"]


def test_names_that_only_one_side_has_are_named():
    known, found = {"a/x": "1", "b/y": "2", "c/z": "3"}, {"a/x": "1", "b/y": "0", "d/w": "4"}
    assert digests.list_differences(known, found) == ["differs: b/y", "gone: c/z", "new: d/w"]


def test_every_implementation_of_every_compound_has_a_case():
    unknown = [name for name, runs in digests.list_runs().items() if runs.day == "-"]
    assert not unknown
