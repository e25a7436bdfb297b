"""Times are integers from text to stream."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.base import clocks
from transect.errors import TimeError


@given(st.integers(-(2**62), 2**62))
def test_decimal_seconds_round_trip_to_the_nanosecond(t_ns: int) -> None:
    assert clocks.ns_from_decimal(clocks.decimal_from_ns(t_ns)) == t_ns


@given(st.integers(0, 4_000_000_000_000_000_000))
def test_iso_times_round_trip_to_the_nanosecond(t_ns: int) -> None:
    assert clocks.ns_from_iso(clocks.iso_from_ns(t_ns, digits=9)) == t_ns


def test_a_stamp_that_a_float_cannot_hold_is_exact() -> None:
    assert clocks.ns_from_decimal("1657000000.123456789") == 1657000000123456789


def test_an_iso_time_with_a_zone_is_converted() -> None:
    assert clocks.ns_from_iso("2008-10-15T17:09:05.437+11:00") == 1224050945437 * 10**6


def test_what_cannot_be_read_says_what_can() -> None:
    with pytest.raises(TimeError) as caught:
        clocks.resolve("tomorrow", 0)
    assert "+60s" in str(caught.value)


def test_a_float_is_not_a_time() -> None:
    with pytest.raises(TimeError, match="float"):
        clocks.resolve(2.0, 0)  # type: ignore[arg-type]


def test_a_time_beyond_64_bits_is_refused() -> None:
    with pytest.raises(TimeError, match="292 years"):
        clocks.resolve("+99999999999h", 0)


def test_a_decimal_comma_is_a_decimal_point() -> None:
    assert clocks.ns_from_iso("2022-07-01T12:04:31,5") == clocks.ns_from_iso("2022-07-01T12:04:31.5")


@pytest.mark.parametrize("text", ["99:99", "24:00", "12:60", "12:00:61"])
def test_an_invalid_time_of_day_is_rejected(text: str):
    with pytest.raises(TimeError, match="not a time of day"):
        clocks.resolve(text, 1_600_000_000_000_000_000)
