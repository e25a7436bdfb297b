"""What the filter learns of wheels by looking back: how far they lead astray, and if they see a reversal."""

from __future__ import annotations

import numpy as np
import pytest

from transect.algorithms.fusion.error_state import SIZE, ProcessNoise, State
from transect.algorithms.fusion.measurements import Step
from transect.algorithms.fusion.wheel_drift import Foresight
from transect.algorithms.fusion.wheel_updates import Pace, SetOffs, Shaking
from transect.algorithms.smoothing.odometry_paths import PlanarPath
from transect.algorithms.smoothing.wheel_factors import WheelNoise
from transect.nodes.state.error_state_filter import ErrorStateFilter

NS = 1_000_000_000
NOISE = ProcessNoise(**{name: ErrorStateFilter().values[name] for name in ProcessNoise.__dataclass_fields__})


@pytest.mark.parametrize("factor", [0.02, 0.3, 4.0])
def test_the_factor_on_the_noise_of_wheels_is_found(factor: float) -> None:
    """Shadows miss places by what a factor makes of their noise; beside it they were uncertain before."""
    rng, found = np.random.default_rng(1), []
    for _ in range(8):
        foresight = Foresight(NOISE, learns=True)
        for _ in range(40):
            A, B = np.diag(rng.uniform(0.001, 0.01, 2)), np.diag(rng.uniform(0.05, 0.5, 2))
            foresight.learn(rng.multivariate_normal([0, 0], A + factor * B), A, B)
        assert foresight.noise.skid == pytest.approx(NOISE.skid * np.sqrt(foresight.scale))
        found.append(foresight.scale)
    assert np.mean(found) == pytest.approx(factor, rel=0.35)
    assert foresight.noise.hill == NOISE.hill  # heights are the ground's


def test_nothing_is_learnt_where_other_errors_hide_those_of_wheels() -> None:
    foresight, rng = Foresight(NOISE, learns=True), np.random.default_rng(2)
    before = foresight.scale
    for _ in range(40):
        foresight.learn(2.0 * rng.normal(size=2), 4.0 * np.eye(2), 0.01 * np.eye(2))
    assert foresight.scale == pytest.approx(before, rel=0.2)
    assert Foresight(NOISE, learns=False).scale == 1.0


def pace_of(speeds: list[float]) -> list[tuple[bool, float]]:
    """Whether wheels set off, and by how much they leap, at every tenth of a second of these speeds."""
    pace, seen = Pace(), list[tuple[bool, float]]()
    for i, speed in enumerate(speeds):
        T = np.eye(4)
        T[0, 3] = speed / 10
        pace.take(Step("wheels", i * NS // 10, (i + 1) * NS // 10, T, planar=True))
        seen.append((pace.sets_off, round(pace.leap, 6)))
    return seen


def test_wheels_set_off_after_a_second_or_the_other_way_round_and_leap_in_between() -> None:
    seen = pace_of([1.0] * 5 + [0.0] * 12 + [0.4] * 5)
    assert [i for i, (off, _) in enumerate(seen) if off] == [17]
    assert not any(off for off, _ in pace_of([1.0] * 5 + [0.0] * 3 + [0.9] * 5))  # no time to turn round
    assert [i for i, (off, _) in enumerate(pace_of([0.8, 0.8, -0.6, -0.6])) if off] == [2]
    assert pace_of([0.4, 0.4, 1.2, 1.2])[2] == (False, 0.8)
    assert not any(off or leap for off, leap in pace_of([0.1 * i for i in range(12)])[1:])


def moved(x: float, t: float) -> State:
    return State(round(t * NS), np.array([x, 0.0, 0.0]), np.eye(3), np.zeros(3), 1e-4 * np.eye(SIZE))


@pytest.mark.parametrize(("said", "sigma"), [(-0.6, 0.45), (0.6, 1.84)])
def test_reversals_that_wheels_see_make_them_trusted_and_others_do_not(said: float, sigma: float) -> None:
    """The body goes back by 0.6 m."""
    set_offs = SetOffs(1.0)
    assert set_offs.unsteady(0) == pytest.approx(1.0)
    set_offs.begin(moved(0.0, 1.0))
    set_offs.move(said, rests=False)
    set_offs.compare(moved(-0.6, 3.0))
    assert set_offs.unsteady(3 * NS) == pytest.approx(sigma, abs=0.03)
    assert set_offs.unsteady(300 * NS) == pytest.approx(1.0, abs=0.01)  # another manoeuvre


def test_driving_forwards_tells_nothing_of_reversals() -> None:
    set_offs = SetOffs(1.0)
    set_offs.begin(moved(0.0, 1.0))
    set_offs.move(0.6, rests=False)
    set_offs.compare(moved(0.6, 3.0))
    assert set_offs.unsteady(3 * NS) == pytest.approx(1.0)


def steps_of(ways: np.ndarray) -> list[Step]:
    """Steps of a tenth of a second each, straight on by ways (n,) in m."""
    steps: list[Step] = []
    for i, way in enumerate(ways):
        T = np.eye(4)
        T[0, 3] = way
        steps.append(Step("wheels", i * NS // 10, (i + 1) * NS // 10, T, planar=True))
    return steps


@pytest.mark.parametrize("sigma", [0.001, 0.012])
def test_how_unevenly_wheels_say_their_way_is_seen_beside_a_changing_speed(sigma: float) -> None:
    t = np.arange(400) / 10
    ways = 0.1 * (1 + 0.5 * np.sin(t)) + sigma * np.random.default_rng(3).normal(size=400)
    shaking, found = Shaking(), []
    for step in steps_of(ways):
        shaking.take(step)
        found.append(shaking.density)
    assert np.sqrt(np.mean(found[50:]) / 10) == pytest.approx(sigma, rel=0.2)


def test_a_smoother_takes_even_wheels_for_better_than_uneven_ones_and_than_those_that_creep() -> None:
    """Whatever factor on their noise was learnt over many seconds: it is the same here, and nearly 0."""
    rng, noise = np.random.default_rng(4), WheelNoise().times(0.01)
    edges = np.array([10, 11]) * NS

    def along(speed: float, sigma: float) -> float:
        span = PlanarPath.of(steps_of(speed / 10 + sigma * rng.normal(size=200))).between(
            edges[:1], edges[1:]
        )
        return float(noise.sigmas(span)[0, 3])

    assert along(1.0, 0.0) < 1e-3
    assert along(1.0, 0.012) == pytest.approx(0.012 * np.sqrt(10), rel=0.3)
    assert along(0.0, 0.0) == pytest.approx(WheelNoise.creep)
