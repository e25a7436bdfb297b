"""Lengths of known drives, measured with noise: at rest, slowly, in turns, with gaps, at any rate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from transect.evaluation.track import find_spikes, white_noise
from transect.evaluation.traverse import measure, traverse_of
from transect.simulation.day import WorldOptions, simulate

NS = 10**9
T0_NS = 1_657_013_071 * NS
RTK_SIGMAS_M = (0.008, 0.008, 0.015)
"""m: the Spatial Dual's (document 000, Table 1)."""

Speed = Callable[[np.ndarray], np.ndarray]


def drive(speed: Speed, turn: Speed, rate: float, seconds: float = 60.0) -> tuple[np.ndarray, np.ndarray]:
    """Times and positions of a drive with speeds in m/s and turn rates in rad/s, that changes in 0.6 s."""
    fine = np.arange(round(seconds * 200)) / 200
    smooth = np.convolve(np.pad(speed(fine), 60, mode="edge"), np.ones(120) / 120, "same")[60:-60]
    heading = np.cumsum(turn(fine)) / 200
    places = np.cumsum(
        smooth[:, None] * np.column_stack([np.cos(heading), np.sin(heading), 0 * fine]), axis=0
    )
    every = np.arange(0, len(fine), round(200 / rate))
    return T0_NS + (fine[every] * NS).astype(np.int64), places[every] / 200


def constant(value: float) -> Speed:
    return lambda t: np.full(len(t), value)


def stop_and_go(t: np.ndarray) -> np.ndarray:
    return np.where(t % 6 < 3, 0.3, 0.0)


def back_and_forth(t: np.ndarray) -> np.ndarray:
    return np.where(t % 12 < 6, 0.3, -0.3)


def weave(t: np.ndarray) -> np.ndarray:
    return 0.5 * np.sin(t)


DRIVES: dict[str, tuple[Speed, Speed, float]] = {
    "straight": (constant(0.3), constant(0.0), 18.0),
    "stop and go": (stop_and_go, constant(0.0), 9.0),
    "back and forth": (back_and_forth, constant(0.0), 17.2),
    "slow": (constant(0.02), constant(0.0), 1.2),
    "circle": (constant(0.4), constant(0.3), 24.0),
    "weave": (constant(0.4), weave, 24.0),
    "car": (constant(12.0), constant(0.5), 720.0),
}
"""Speed, turn rate, and the length in m."""


@pytest.mark.parametrize("rate", [100, 5])
@pytest.mark.parametrize("name", DRIVES)
def test_the_length_is_right_to_two_percent_with_the_noise_of_rtk(name: str, rate: float):
    speed, turn, metres = DRIVES[name]
    t_ns, places = drive(speed, turn, rate)
    noise = np.random.default_rng(7).normal(0, RTK_SIGMAS_M, places.shape)
    found = measure(t_ns, places + noise)
    assert found.length_m == pytest.approx(metres, rel=0.02)
    if name != "slow":  # always slower than the 0.05 m/s of a stop
        assert found.moving_m == pytest.approx(metres, rel=0.02)


@pytest.mark.parametrize("sigma", [0.001, 0.02, 0.05])
def test_another_noise_is_measured_and_not_assumed(sigma: float):
    t_ns, places = drive(constant(0.5), constant(0.1), 20)
    noisy = places + np.random.default_rng(8).normal(0, sigma, places.shape)
    assert white_noise(noisy) == pytest.approx(np.full(3, sigma), rel=0.15)
    assert measure(t_ns, noisy).length_m == pytest.approx(30.0, rel=0.02)
    rest = np.random.default_rng(9).normal(0, sigma, places.shape)
    assert measure(t_ns, rest).length_m == 0.0


def test_a_gap_is_bridged_and_a_coarse_number_makes_no_stairs():
    t_ns, places = drive(constant(0.3), constant(0.0), 10)
    places = places @ [[0.8, 0.6, 0], [-0.6, 0.8, 0], [0, 0, 1]]  # so that no axis is along the way
    coarse = np.round(places / 0.05) * 0.05
    assert np.linalg.norm(np.diff(coarse, axis=0), axis=1).sum() > 21  # 18 m and the stairs
    assert measure(t_ns, coarse).length_m == pytest.approx(18.0, rel=0.02)
    kept = np.r_[0:200, 320:600]
    noisy = places + np.random.default_rng(3).normal(0, RTK_SIGMAS_M, places.shape)
    assert measure(t_ns[kept], noisy[kept]).length_m == pytest.approx(18.0, rel=0.02)


def test_a_wild_fix_is_left_out_and_a_jump_that_stays_is_not():
    t_ns, places = drive(constant(0.3), constant(0.1), 20)
    noisy = places + np.random.default_rng(2).normal(0, RTK_SIGMAS_M, places.shape)
    noisy[[0, 400]] += (30.0, -10.0, 5.0)
    noisy[800] += (-0.5, 0.0, 0.0)
    assert np.flatnonzero(find_spikes(noisy)).tolist() == [0, 400, 800]
    assert measure(t_ns, noisy).length_m == pytest.approx(18.0, rel=0.02)
    assert not find_spikes(noisy + np.where(np.arange(1200) < 600, 0.0, 2.0)[:, None])[590:610].any()


def test_fixes_that_wander_are_averaged_over_longer():
    # 1.2 m that are others after a minute (Gauss-Markov): a random walk of 5 cm from sample to sample.
    rng, kept = np.random.default_rng(4), np.exp(-1 / 20 / 60)
    t_ns, places = drive(constant(0.5), constant(0.0), 20, 120.0)
    wrong = 1.2 * rng.standard_normal(places.shape)
    for k in range(1, len(wrong)):
        wrong[k] = kept * wrong[k - 1] + np.sqrt(1 - kept**2) * wrong[k]
    found = measure(t_ns, places + wrong, drift=(1.2, 1.2, 1.2, 60.0))
    assert found.steps_m > 150
    assert found.length_m == pytest.approx(60.0, rel=0.2)
    std = np.full(places.shape, 0.007)
    velocity = np.gradient(places, 0.05, axis=0) + rng.normal(0, std)
    found = measure(t_ns, places + wrong, drift=(1.2, 1.2, 1.2, 60.0), velocities=(t_ns, velocity, std))
    assert found.length_m == pytest.approx(60.0, rel=0.01)


# Days on Etna


@pytest.mark.parametrize("rtk", ["yes", "no", "gaps"])
def test_a_day_on_etna_is_as_long_as_it_was(rtk: str):
    """A day has the manoeuvres of Figure 7, a stop and a turn on the spot."""
    names = ("Gnss/Pose", "Gnss/NedVelocity")
    day = simulate("etna", WorldOptions(36.0, 11, 0.05, names, {"rtk": rtk}))
    assert day.truth.motion is not None
    true = day.truth.motion.position
    metres = float(np.linalg.norm(np.diff(true, axis=0), axis=1).sum())
    found = traverse_of(day.recording)
    assert found.length_m == pytest.approx(metres, rel=0.02)
    assert found.moving_m == pytest.approx(metres, rel=0.02)
    assert found.steps_m > 5 * metres  # what a plain sum makes of 100 Hz
    assert found.height_m == pytest.approx(np.ptp(true[:, 2]), abs=0.1)
    if rtk != "no":
        alone = traverse_of(day.recording.select("Gnss/Pose"))
        assert alone.length_m == pytest.approx(metres, rel=0.02)
