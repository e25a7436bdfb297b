"""Verdicts are found once, and again when anything that they depend on has changed."""

import os
from pathlib import Path

import pytest
from tests.datasets.rosario import sample as rosario_sample

import transect
from transect.integrity import verdict_cache
from transect.integrity.runner import check
from transect.recording import Recording


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """Count how often recordings are really checked, with a cache of the test's own."""
    calls: list[int] = []

    def counting(recording: Recording):
        calls.append(len(recording.streams))
        return check(recording, checks=["T02"])

    monkeypatch.setattr(verdict_cache, "check", counting)
    monkeypatch.setenv("TRANSECT_CACHE_DIR", str(tmp_path / "cache"))
    return calls


@pytest.fixture
def day(tmp_path: Path) -> Path:
    rosario_sample.write_scripts_layout(tmp_path / "day")
    return tmp_path / "day"


def test_what_did_not_change_is_checked_once_and_says_the_same(counted: list[int], day: Path) -> None:
    first = verdict_cache.check_once(transect.open(day))
    second = verdict_cache.check_once(transect.open(day))
    assert len(counted) == 1
    assert len(first) > 0
    assert second.table.equals(first.table)
    assert second.table.schema == check(transect.open(day), checks=["T02"]).table.schema


def test_a_file_that_changed_is_checked_again(counted: list[int], day: Path) -> None:
    verdict_cache.check_once(transect.open(day))
    file = next(path for path in day.rglob("*.log"))
    os.utime(file, ns=(1, 1))
    verdict_cache.check_once(transect.open(day))
    assert len(counted) == 2


def test_another_part_of_the_recording_is_checked_by_itself(counted: list[int], day: Path) -> None:
    whole = transect.open(day)
    verdict_cache.check_once(whole)
    verdict_cache.check_once(whole.slice("+0s", "+0.5s"))
    verdict_cache.check_once(whole.select("Imu"))
    assert len(counted) == 3


def test_a_recording_in_memory_is_always_checked(counted: list[int], day: Path) -> None:
    made = transect.open(day).replace(source=None)
    for _ in range(2):
        verdict_cache.check_once(made)
    assert len(counted) == 2
