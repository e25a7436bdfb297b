"""Everything that checks call BAD or SUSPECT in sound and faulty recordings, explained one by one.

`verdicts.csv` has a row for each stream, check and reason: whether it is right, and why. Whoever changes a
check looks at what is new in the recording itself before a row is added. The long recordings of the table are
checked by `make bench ARGS=verdicts`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.real.verdicts import LONG, RECORDINGS, SHORT, expected_problems, explained, problems_of

MAX_WRONG_BAD = 1


@pytest.mark.parametrize("name", SHORT)
def test_what_is_said_of_a_recording_is_what_was_explained(
    real_data: Path, tmp_path: Path, name: str
) -> None:
    assert problems_of(RECORDINGS[name](real_data, tmp_path)) == expected_problems(name)


def test_the_short_recordings_have_every_check_and_reason_of_the_table() -> None:
    rows = list(explained())
    assert {row["recording"] for row in rows} <= RECORDINGS.keys()
    assert set(LONG) <= RECORDINGS.keys()
    short = {(row["check"], row["reason"]) for row in rows if row["recording"] in SHORT}
    assert short == {(row["check"], row["reason"]) for row in rows}


def test_every_row_is_explained_and_almost_no_bad_is_wrong() -> None:
    rows = list(explained())
    assert all(len(row["why"]) > 10 and row["is_right"] in ("yes", "no") for row in rows)
    assert sum(row["is_right"] == "no" and row["state"] == "BAD" for row in rows) <= MAX_WRONG_BAD
