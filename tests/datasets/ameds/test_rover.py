"""The simulated Interact as a machine: what its steer motors count."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.datasets.ameds.world.rover import Rover

ROVER = Rover.load()


def test_straight_wheels_and_wheels_at_rest_give_no_steer_ticks() -> None:
    assert ROVER.steer_ticks(np.zeros((1, 4))).tolist() == [[0, 0, 0, 0]]


@given(st.floats(-0.8, 0.8))
def test_steer_ticks_are_those_of_equation_5(degrees: float) -> None:
    phi = np.full((1, 4), degrees)
    ticks = ROVER.steer_ticks(phi)[0]
    # AMEDS eq. 5 in degrees and mm, with the minus of the errata.
    p = np.array([-1, 1, 1, -1])
    back = 90 + (p * ticks / 806.3 - (40.58 + 60.67)) / 1.125
    assert back == pytest.approx(np.degrees(phi[0]), abs=0.5 / 806.3 / 1.125 + 1e-9)
