"""What holds from which time on, as a line of text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.base.timelines import NameTimeline
from transect.errors import UsageError

NAMES = ("laser", "radar")


@given(st.sampled_from(NAMES), st.lists(st.tuples(st.integers(-(2**60), 2**60), st.sampled_from(NAMES))))
def test_a_line_says_all_of_a_timeline(first: str, changes: list[tuple[int, str]]) -> None:
    timeline = NameTimeline(first, tuple(sorted(changes, key=lambda change: change[0])))
    assert NameTimeline.parse(str(timeline), NAMES) == timeline


def test_a_name_holds_from_its_time_on() -> None:
    timeline = NameTimeline.parse("laser; 10 radar; 20 laser", NAMES)
    assert [timeline.at(t_ns) for t_ns in (-5, 9, 10, 19, 20)] == [
        "laser",
        "laser",
        "radar",
        "radar",
        "laser",
    ]
    assert timeline.names == ["laser", "radar"]


@pytest.mark.parametrize("text", ["", "sonar", "laser; radar", "laser; x radar", "laser; 5 sonar", "laser;",
                                  "laser; 9 radar; 5 laser", "laser; 1 2 radar", "10 laser"])  # fmt: skip
def test_what_is_no_timeline_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        NameTimeline.parse(text, NAMES)
