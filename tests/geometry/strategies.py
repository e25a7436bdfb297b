"""Arrays for the property tests."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from transect.geometry import rotations


def vectors(size: float, columns: int = 3) -> st.SearchStrategy[np.ndarray]:
    """(0 to 6, columns) with every number within `size`."""
    return hnp.arrays(
        np.float64, st.tuples(st.integers(0, 6), st.just(columns)), elements=st.floats(-size, size)
    )


def quaternions() -> st.SearchStrategy[np.ndarray]:
    """(0 to 6, 4) unit quaternions, also tiny, half-turn and no rotations."""
    special = st.sampled_from([[0, 0, 0, 1], [1, 0, 0, 0], [0, 0, -1, 0], [0, 0.6, 0.8, 0], [1e-9, 0, 0, -1]])
    rows = special | st.lists(st.floats(-1, 1), min_size=4, max_size=4).filter(
        lambda q: np.linalg.norm(q) > 0.1
    )
    return st.lists(rows, max_size=6).map(lambda q: rotations.normalise(np.array(q, float).reshape(-1, 4)))
