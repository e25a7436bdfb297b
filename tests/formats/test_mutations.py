"""A damaged recording opens or is refused with an error of transect: a sample of `make fuzz`."""

import math
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.formats import corpus
from tools.fuzz import mutations, workers

from transect import formats

MUTATION_COUNT = 20
"""Mutations of a reader, over all its samples."""
VARIANTS = Counter(name.partition("-")[0] for name in corpus.WRITERS)
FOUND = sorted(mutations.FOUND.glob("*.zip"))


def test_every_reader_has_a_sample():
    writers_only = {"csv", "parquet"}  # described reads what they wrote
    assert set(VARIANTS) == set(formats.names()) - writers_only


@pytest.mark.parametrize("name", corpus.WRITERS)
def test_mutations_raise_nothing_but_our_own_errors(name: str, tmp_path: Path):
    sample = corpus.sample(name)
    assert mutations.judge(sample.write(tmp_path / "day"), sample.format, sample.options) == ("opened", "")
    wrong: dict[str, str] = {}
    for number in range(-(-MUTATION_COUNT // VARIANTS[sample.format])):
        mutations.empty(tmp_path / "day")
        seed = mutations.seed_of(name, 0, number)
        path = sample.write(tmp_path / "day", mutations.mutate(sample.files, seed))
        outcome, error = mutations.judge(path, sample.format, sample.options)
        if outcome == "untyped":
            wrong[seed] = error
    assert wrong == {}


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_what_a_campaign_found_raises_nothing_untyped_any_more(path: Path, tmp_path: Path):
    sample = corpus.sample(path.name.partition(".")[0])
    opened = sample.write(tmp_path, mutations.kept(path))
    for format in (sample.format, None):
        assert mutations.judge(opened, format, sample.options)[0] in ("opened", "refused")


def test_a_mutation_is_the_same_each_time_and_another_one_by_its_number():
    files = corpus.sample("tum").files
    made = [mutations.mutate(files, mutations.seed_of("tum", 7, number)) for number in (0, 0, 1)]
    assert made[0] == made[1] != made[2]
    assert made[0] != files


def misbehave(sample: str, seed: int, first: int, count: int, scratch: Path) -> Iterator[dict[str, Any]]:
    """Hang at one mutation, die at another, raise something at a third."""
    yield {}
    for number in range(first, first + count):
        if number == 1:
            time.sleep(60)
        if number == 3:
            os._exit(7)
        error = "ValueError at tum/reading.py:7: bad" if number == 4 else ""
        yield {"outcome": "untyped" if error else "opened", "error": error, "seconds": 0.1, "peak": 2**20}


def test_a_process_that_hangs_or_dies_is_a_find_and_the_next_mutation_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(workers, "HANG_SECONDS", 0.05)
    monkeypatch.setattr(workers, "IDLE_SECONDS", 0.5)
    tally = workers.open_slice("tum", 9, 0, 6, math.inf, tmp_path, misbehave)
    assert tally.counts == {"opened": 3, "hang": 1, "crash": 1, "untyped": 1}
    assert list(tally.finds) == ["hang hang", "crash exit 7", "untyped ValueError at tum/reading.py:7"]
    assert [first.split()[0] for first in tally.finds.values()] == ["tum/9/1", "tum/9/3", "tum/9/4"]
    assert tally.row("tum") == ("tum", "6", "0", "3", "0", "1", "1", "1", "0.1", "1", "13")


def test_a_campaign_treats_readers_alike_and_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    opened: list[tuple[str, int, int]] = []

    def open_slice(sample: str, seed: int, first: int, count: int, *rest: object) -> workers.Tally:
        opened.append((sample, first, count))
        if len(opened) == 4:
            raise KeyboardInterrupt
        return workers.Tally({"opened": count})

    monkeypatch.setattr(workers, "BATCH_SIZE", 2)
    monkeypatch.setattr(workers, "open_slice", open_slice)
    samples = ["tum", "pcd", "pcd-ply"]
    with pytest.raises(KeyboardInterrupt):
        workers.Campaign(samples, 9, 4, tmp_path / "log").run(1, math.inf, tmp_path)
    assert opened == [("tum", 0, 2), ("pcd", 0, 2), ("pcd-ply", 0, 2), ("tum", 2, 2)]
    again = workers.Campaign(samples, 1, 4, tmp_path / "log")
    again.run(1, math.inf, tmp_path)
    assert (again.seed, opened[4:]) == (9, [("tum", 2, 2)])
    assert [row[:2] for row in again.rows()] == [("tum", "4"), ("pcd", "4"), ("all", "8")]


def test_a_find_is_kept_as_an_archive_of_its_files(tmp_path: Path):
    path = mutations.keep("tum/9/4", tmp_path)
    assert mutations.kept(path) == mutations.mutate(corpus.sample("tum").files, "tum/9/4")
