"""Allan deviation: equal to allantools, and the noise that was put in comes out."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from transect.errors import GeometryError
from transect.evaluation import allan_deviation, noise, noise_model

RATE_HZ = 100.0


def test_it_is_equal_to_allantools_on_every_averaging_time():
    rng = np.random.default_rng(1)
    signal = rng.normal(size=20_000) + np.cumsum(rng.normal(scale=1e-3, size=20_000))
    ours = allan_deviation(signal, RATE_HZ)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import allantools  # a second, in every worker that collects this file

        taus, theirs, _, _ = allantools.oadev(
            signal - signal.mean(), RATE_HZ, data_type="freq", taus=ours.tau
        )
    np.testing.assert_allclose(ours.tau, taus, rtol=1e-12)
    np.testing.assert_allclose(ours.deviation, theirs, rtol=1e-12)


def test_several_axes_are_those_one_by_one():
    signal = np.random.default_rng(2).normal(size=(5000, 3))
    together = allan_deviation(signal, RATE_HZ)
    for axis in range(3):
        alone = allan_deviation(signal[:, axis], RATE_HZ)
        np.testing.assert_allclose(together.deviation[:, axis], alone.deviation, rtol=1e-12)


def test_white_noise_and_a_walk_that_were_put_in_come_out():
    rng = np.random.default_rng(3)
    white, walk, n = 0.02, 0.003, 400_000
    signal = white * np.sqrt(RATE_HZ) * rng.normal(size=n)
    signal += np.cumsum(walk / np.sqrt(RATE_HZ) * rng.normal(size=n))
    model = noise_model(allan_deviation(signal, RATE_HZ))
    assert model.white == pytest.approx(white, rel=0.05)
    assert model.walk == pytest.approx(walk, rel=0.35)  # long averaging times have few clusters
    assert model.tau == pytest.approx(np.sqrt(3) * white / walk, rel=1.0)


def test_a_signal_that_is_too_short_or_not_measured_is_refused():
    with pytest.raises(GeometryError, match="at least 3 samples"):
        allan_deviation([1.0, 2.0], RATE_HZ)
    with pytest.raises(GeometryError, match="at least 3 samples"):
        allan_deviation([1.0, np.nan, 2.0, 3.0], RATE_HZ)
    with pytest.raises(GeometryError, match="no averaging time fits"):
        allan_deviation(np.arange(10.0), RATE_HZ, tau=[100.0])


def test_the_compiled_allan_deviation_is_that_of_numpy(monkeypatch: pytest.MonkeyPatch):
    signal = np.cumsum(np.random.default_rng(0).normal(size=(30_000, 2)), axis=0) * 1e-3
    plain = allan_deviation(signal, 100.0)
    monkeypatch.setattr(noise, "MIN_COMPILED_DIFFERENCES", 0)
    np.testing.assert_allclose(allan_deviation(signal, 100.0).deviation, plain.deviation, rtol=1e-12)
