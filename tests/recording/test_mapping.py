"""Mapped files of the cache: they are walked over in bounded memory, and their bytes stay where they are."""

import re
from pathlib import Path

import numpy as np
import pytest

from transect.recording import arrow

PIECE_BYTES = 1 << 20


def resident_bytes() -> int:
    found = re.search(r"RssFile:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) * 1024


def test_a_walk_over_a_mapped_file_holds_no_more_than_a_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow, "PAGE_RELEASE_BYTES", 16 * PIECE_BYTES)
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(128 * PIECE_BYTES)
    values = np.frombuffer(arrow.map_file(path), np.uint8)
    before, most = resident_bytes(), 0
    for at in range(0, len(values), PIECE_BYTES):
        arrow.bound_pages([PIECE_BYTES])
        assert not values[at : at + PIECE_BYTES].any()
        most = max(most, resident_bytes() - before)
    assert 0 < most < 32 * PIECE_BYTES


def test_what_was_given_back_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "PAGE_RELEASE_BYTES", 0)
    expected = np.random.default_rng(1).integers(0, 1 << 40, 100_000)
    (tmp_path / "numbers").write_bytes(expected.tobytes())
    held = np.frombuffer(arrow.map_file(tmp_path / "numbers"), np.int64)
    table = arrow.table(held, {"x": held})
    for _ in range(2):
        assert np.array_equal(arrow.numbers(table, "x"), expected)
    assert np.array_equal(held, expected)
