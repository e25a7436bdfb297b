"""Everything that checks call BAD or SUSPECT in sound and faulty recordings, explained one by one.

`verdicts.csv` has a row for each stream, check and reason: whether it is right, and why. Whoever changes a
check looks at what is new in the recording itself before a row is added.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.real.verdicts import RECORDINGS, hours_of, problems_of

TABLE = Path(__file__).with_name("verdicts.csv")
MAX_WRONG_BAD = 1
MAX_WRONG_SUSPECT_PER_HOUR = 1.0


def explained() -> Iterator[dict[str, str]]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


@pytest.mark.parametrize("name", RECORDINGS)
def test_what_is_said_of_a_recording_is_what_was_explained(
    real_data: Path, tmp_path: Path, name: str
) -> None:
    found = problems_of(RECORDINGS[name](real_data, tmp_path))
    assert found == {
        (row["stream"], row["check"], row["reason"]): row["state"]
        for row in explained()
        if row["recording"] == name
    }


def test_hardly_anything_that_is_said_is_wrong(real_data: Path, tmp_path: Path) -> None:
    rows = list(explained())
    assert {row["recording"] for row in rows} <= RECORDINGS.keys()
    assert all(len(row["why"]) > 10 for row in rows)
    assert sum(row["is_right"] != "yes" and row["state"] == "BAD" for row in rows) <= MAX_WRONG_BAD
    recorded = [name for name in RECORDINGS if not name.startswith("simulated")]
    wrong = {  # what two checks call alike is said once
        (row["recording"], row["stream"], row["reason"])
        for row in rows
        if row["is_right"] != "yes" and row["recording"] in recorded
    }
    hours = 0.0
    for number, name in enumerate(recorded):
        (tmp_path / str(number)).mkdir()
        hours += hours_of(RECORDINGS[name](real_data, tmp_path / str(number)))
    assert len(wrong) <= MAX_WRONG_SUSPECT_PER_HOUR * hours
