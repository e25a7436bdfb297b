"""The fast ways give what the plain ones give: columns as `geometry`, the compiled loop as numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transect.evaluation import _columns as c
from transect.evaluation import allan_deviation, noise
from transect.geometry import rotations


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 20), st.sampled_from([1e-9, 1e-3, 1.0]))
def test_columns_are_turned_as_rows_are(seed: int, n: int, small: float):
    rng = np.random.default_rng(seed)
    p, v = rng.normal(size=(n, 4)), rng.normal(size=(n, 3))
    q = p + small * rng.normal(size=(n, 4))
    first, second = c.unit(p), c.unit(q)
    np.testing.assert_allclose(first.T, rotations.normalise(p), atol=1e-15)
    np.testing.assert_allclose(c.rotated(first, c.columns(v)).T, rotations.rotate(p, v), atol=1e-13)
    together = rotations.multiply(rotations.normalise(p), rotations.normalise(q))
    np.testing.assert_allclose(c.product(first, second).T, together, atol=1e-14)
    back = c.product(c.inverse(first), first)
    np.testing.assert_allclose(back, np.array([[0, 0, 0, 1.0]]).T + 0 * back, atol=1e-14)
    np.testing.assert_allclose(c.angles(first, second), rotations.angle_between(p, q), atol=1e-14)
    np.testing.assert_allclose(c.angles(first, -second), rotations.angle_between(p, q), atol=1e-14)


def test_blocks_cover_an_axis_once():
    covered = np.concatenate([np.arange(10_000)[block] for block in c.blocks(10_000)])
    np.testing.assert_array_equal(covered, np.arange(10_000))
    assert list(c.blocks(0)) == []


def test_the_compiled_allan_deviation_is_that_of_numpy(monkeypatch: pytest.MonkeyPatch):
    signal = np.cumsum(np.random.default_rng(0).normal(size=(30_000, 2)), axis=0) * 1e-3
    plain = allan_deviation(signal, 100.0)
    monkeypatch.setattr(noise, "COMPILED_FROM", 0)
    np.testing.assert_allclose(allan_deviation(signal, 100.0).deviation, plain.deviation, rtol=1e-12)
