"""Numbers as a file had them: what a reader's conversion rounded is found again, to the last bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.base.units import unit_of
from transect.formats.shared.rows import from_si_exactly, invert


@given(
    st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=50),
    st.sampled_from(["deg", "deg/s", "G", "mm", "cm", "rpm", "mg", "kn"]),
)
def test_the_number_that_was_read_is_found_to_the_bit(numbers: list[float], name: str):
    unit = unit_of(name)
    values = unit.to_si(np.array(numbers))
    np.testing.assert_array_equal(unit.to_si(from_si_exactly(values, unit)), values)


@pytest.mark.parametrize("name", ["deg", "cm", "rpm", "mm", "mg"])
@given(written=st.lists(st.floats(0, 1e5).map(lambda v: round(v, 3)), min_size=1, max_size=20))
def test_few_decimals_are_written_as_few(name: str, written: list[float]):
    unit, numbers = unit_of(name), np.array(written)
    found = from_si_exactly(unit.to_si(numbers), unit)
    np.testing.assert_array_equal(unit.to_si(found), unit.to_si(numbers))
    assert all(len(repr(v)) <= len(repr(w)) for v, w in zip(found.tolist(), written, strict=True))


def test_an_offset_and_further_arguments_are_taken_along():
    raw, factor = np.array([1.1, 2.2, np.nan]), np.array([0.1, 1000.0, 1.0])

    def forward(numbers: np.ndarray, factors: np.ndarray) -> np.ndarray:
        return factors * (numbers - 0.3)

    values = forward(raw, factor)
    found = invert(forward, values, values / factor + 0.3, factor)
    np.testing.assert_array_equal(forward(found, factor), values)
