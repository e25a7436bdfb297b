"""Which reading of the SIS fits, when most rows cannot tell."""

import numpy as np

from transect.datasets.insight.robot.consistency import ColumnCheck, Interpretations


def test_the_reading_is_chosen_by_the_rows_in_which_the_readings_differ():
    # A motor that is off in nine rows of ten: both readings give 0 there, only the last row can tell.
    current = np.zeros((10, 1))
    current[-1] = 1.0
    readings = Interpretations({"once": lambda i: i, "twice": lambda i: 2 * i})
    check = ColumnCheck(("tau",), "N m", "printed", 2 * current, ((current, 0.0),), lambda: readings)
    (residual,) = check.judge(half=0.0)
    assert residual.verdict == "consistent"
    assert residual.remark == "fits best as: twice"
