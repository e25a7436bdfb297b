"""A command that is killed leaves its whole output or none: a sample of `make fuzz ARGS=kills`."""

import os
from pathlib import Path
from unittest.mock import Mock

import pytest
from tools.fuzz import kills

from transect import formats
from transect.base import files
from transect.recording import Recording
from transect.simulation.day import Day, Truth, write_day
from transect.simulation.faults import written


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> kills.Bench:
    return kills.Bench(kills.COMMANDS["export"], tmp_path_factory.mktemp("kills") / "export")


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_an_export_that_is_killed_while_it_writes_leaves_all_or_nothing(export: kills.Bench, share: float):
    tally = kills.Tally("export")
    assert export.events > 10
    export.kill(tally, at=int(share * export.events))
    assert tally.finds == []
    assert sum(tally.counts.values()) == 1


def test_half_an_output_is_found_out(export: kills.Bench, monkeypatch: pytest.MonkeyPatch):
    half = dict(list(export.expected.items())[1:])
    monkeypatch.setattr(export, "start", lambda kill_at: Mock(pid=None, exitcode=-9))
    monkeypatch.setattr(export, "written", lambda: half)
    tally = kills.Tally("export")
    export.kill(tally, at=1)
    assert tally.counts == {"half": 1}
    assert "export at step 1" in tally.finds[0]


def test_the_folders_that_simulate_and_inject_leave_when_they_are_killed_are_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept: list[bool] = []

    def sweep(recording: object, path: Path, *rest: object) -> tuple[str, ...]:
        os.utime(path.parent, (0, 0))
        files.remove_stale_files(tmp_path)
        swept.append(not path.parent.exists())
        path.mkdir(parents=True)
        return ()

    recording = Recording("day", (), format="parquet")
    monkeypatch.setattr(formats, "write", sweep)
    write_day(Day(recording, Truth()), tmp_path / "simulated")
    with written._building(tmp_path / "injected") as building:
        sweep(recording, building)
    assert swept == [True, True]
