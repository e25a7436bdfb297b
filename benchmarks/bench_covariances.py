"""Consistency of the covariances of pose fusion for several wheels and receivers, and a low-cost IMU.

A robot drives rows and turns at their ends, simulated here independently of the fusion's models. Positions
are withheld for 30 s in every 60, or always available: then each second after the first 30 s is evaluated.
For each kind of drive: the fraction of true positions in the 95 % ellipses, and the ratio of their major
semi-axis to the error, both RMS. A ratio of 1.7 to 2.4 is consistent.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import _gaps
from benchmarks._harness import quality
from transect.algorithms.fusion.events import Event, ImuSample, MeasuredPosition, OdometryStep
from transect.algorithms.fusion.measurements import FusionInputs
from transect.algorithms.smoothing.batch import smooth
from transect.algorithms.smoothing.factor_graph import make_noise
from transect.algorithms.smoothing.observations import Observations
from transect.nodes.state.error_state_filter import ErrorStateFilter, new_filter

NS = 1_000_000_000
TICK_S, FIX_PERIOD_S, DURATION_S, GAP_PERIOD_S = 0.1, 0.2, 240.0, 60.0
LEVER_ARM_M = np.array([1.0, 0.0, 0.0])
SEEDS = range(8)
MIN_COVERAGE_PERCENT, MAX_SEMI_AXIS_RATIO = 90.0, 3.0
"""Limits of the fraction in the ellipses, and of the semi-axes in errors while positions are available."""


@dataclass(frozen=True)
class Scenario:
    """Noise of the sensors of a drive."""

    name: str
    wheels: float  # factor on the errors of good wheels
    fix: float  # sigma of positions, m
    correlated: bool = False  # whether half of the variance of positions is correlated over 60 s
    # White noise and bias of rates (rad/s), and of forces (m/s2); None without an IMU.
    imu: tuple[float, float, float, float] | None = None


SCENARIOS = (
    Scenario("good wheels, RTK", 1.0, 0.015),
    Scenario("bad wheels, RTK", 5.0, 0.015),
    Scenario("good wheels, receiver of 2 m", 1.0, 2.0, correlated=True),
    Scenario("bad wheels, receiver of 2 m", 5.0, 2.0, correlated=True),
    Scenario("good wheels, RTK, cheap IMU", 1.0, 0.015, imu=(0.02, 0.01, 0.2, 0.1)),
)


@dataclass(frozen=True)
class Drive:
    """Measurements, and true positions (n, 2) of the antenna at the evaluated times (n,)."""

    events: list[Event]
    t_ns: np.ndarray
    antenna: np.ndarray


class Quiet:
    """Context without output."""

    def skip(self, reason: str) -> None: ...
    def log(self, message: str) -> None: ...


def main() -> None:
    for scenario, (title, gap) in itertools.product(SCENARIOS, {"gaps": 30.0, "steady": 0.0}.items()):
        drives = [drive(scenario, seed, gap) for seed in SEEDS]
        for name, fuse in {"filter": filtered, "batch smoother": smoothed}.items():
            off, spread = (np.concatenate(each) for each in zip(*map(fuse, drives), strict=True))
            squared = np.einsum("ni,ni->n", off, np.linalg.solve(spread, off[..., None])[..., 0])
            axes = np.sqrt(_gaps.CHI2_95_2D * np.linalg.eigvalsh(spread)[:, -1])
            error, axis = (float(np.sqrt(np.mean(each))) for each in (np.sum(off**2, axis=1), axes**2))
            inside = 100 * float(np.mean(squared < _gaps.CHI2_95_2D))
            quality(
                f"{scenario.name}, {title}: in the 95 % ellipse, {name}",
                inside,
                "%",
                at_least=MIN_COVERAGE_PERCENT,
            )
            most = None if gap else MAX_SEMI_AXIS_RATIO
            quality(f"{scenario.name}, {title}: its semi-axis / error", axis, "m", at_most=most, peer=error)


def drive(scenario: Scenario, seed: int, gap: float) -> Drive:
    """Simulate a drive: rows of 40 m and turns of 6 m, slowly changing speed, correlated errors of wheels.

    The last `gap` s of each period have no positions, and are evaluated; without a gap each second is.
    """
    rng = np.random.default_rng([seed, 4711])
    n = round(DURATION_S / TICK_S)
    speed = 1.0 + 0.2 * np.sin(np.arange(n) * TICK_S / 17 + seed)
    distance = np.concatenate([[0.0], np.cumsum(speed * TICK_S)])
    side = np.sign(np.sin(distance[:-1] / 52 * np.pi + 0.1))
    turning = np.mod(distance[:-1], 52.0) > 40.0
    curvatures = np.where(turning, side * np.pi / 12, 0.0) + 0.01 * np.sin(distance[:-1] / 7)
    heading = np.concatenate([[0.0], np.cumsum(curvatures * np.diff(distance))])
    middle = (heading[1:] + heading[:-1]) / 2
    steps = np.column_stack([np.cos(middle), np.sin(middle)]) * np.diff(distance)[:, None]
    path = np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)])
    t_ns = (np.arange(n + 1) * TICK_S * NS).astype(np.int64)
    events: list[Event] = [*_wheels(scenario, rng, t_ns, np.diff(distance), np.diff(heading))]
    events += _imu(scenario, rng, t_ns, distance, heading) if scenario.imu else []
    ahead = np.column_stack([np.cos(heading), np.sin(heading)])
    antenna = path + LEVER_ARM_M[0] * ahead
    shown = np.mod(t_ns / NS, GAP_PERIOD_S) < GAP_PERIOD_S - gap
    each = np.arange(0, n + 1, round(FIX_PERIOD_S / TICK_S))
    events += [*_fixes(scenario, rng, t_ns, antenna, each[shown[each]])]
    events.sort(
        key=lambda event: (
            event.t_ns,
            isinstance(event, MeasuredPosition),
            isinstance(event, OdometryStep),
        )
    )
    evaluated = each[~shown[each]] if gap else np.arange(round(30 / TICK_S) + 1, n, round(1 / TICK_S))
    return Drive(events, t_ns[evaluated], antenna[evaluated])


def _wheels(
    scenario: Scenario, rng: np.random.Generator, t_ns: np.ndarray, distances: np.ndarray, turns: np.ndarray
) -> Iterator[OdometryStep]:
    """Yield steps of wheels: random walks of scale, turn scale and curvature, slip over 5 m, white noise."""
    slip, curvature = 0.0, 0.003 * rng.normal()
    scale, turn_scale = 0.02 * rng.normal(), 0.05 * rng.normal()
    for i, (distance, turn) in enumerate(zip(distances, turns, strict=True)):
        decay = np.exp(-distance / 5)
        slip = decay * slip + 0.006 * scenario.wheels * np.sqrt(1 - decay**2) * rng.normal()
        curvature += 3e-5 * scenario.wheels * np.sqrt(distance) * rng.normal()
        measured = distance * (1 + scale + slip) + 2e-3 * scenario.wheels * np.sqrt(distance) * rng.normal()
        turned = (
            turn * (1 + turn_scale)
            + curvature * distance
            + 1e-3 * scenario.wheels * np.sqrt(distance) * rng.normal()
        )
        T = np.eye(4)
        T[:2, :2] = [[np.cos(turned), -np.sin(turned)], [np.sin(turned), np.cos(turned)]]
        T[:2, 3] = measured * np.cos(turned / 2), measured * np.sin(turned / 2)
        yield OdometryStep("wheels", int(t_ns[i]), int(t_ns[i + 1]), T, planar=True)


def _fixes(
    scenario: Scenario, rng: np.random.Generator, t_ns: np.ndarray, antenna: np.ndarray, which: np.ndarray
) -> Iterator[MeasuredPosition]:
    """Yield positions; if errors are correlated, half of the variance is a Gauss-Markov process."""
    white = scenario.fix * (np.sqrt(0.5) if scenario.correlated else 1.0)
    common, before = scenario.fix * np.sqrt(0.5) * rng.normal(size=2) * scenario.correlated, t_ns[0]
    std = scenario.fix * np.array([1.0, 1.0, 2.0])
    for i in which:
        decay = np.exp(-(t_ns[i] - before) / NS / 60.0)
        common = (
            decay * common
            + scenario.fix * np.sqrt(0.5 * (1 - decay**2)) * rng.normal(size=2) * scenario.correlated
        )
        before = t_ns[i]
        measured = antenna[i] + common + white * rng.normal(size=2)
        yield MeasuredPosition(
            "position",
            int(t_ns[i]),
            np.array([*measured, 0.0]),
            std,
            LEVER_ARM_M,
            white=not scenario.correlated,
        )


def _imu(
    scenario: Scenario, rng: np.random.Generator, t_ns: np.ndarray, distance: np.ndarray, heading: np.ndarray
) -> Iterator[ImuSample]:
    """Yield samples at 100 Hz of a level body."""
    assert scenario.imu is not None
    gyro, gyro_bias, force, force_bias = scenario.imu
    t = np.arange(t_ns[0], t_ns[-1], NS // 100)
    seconds, known = t / NS, t_ns / NS
    middles = (known[1:] + known[:-1]) / 2
    speed, rate = (np.interp(seconds, middles, np.diff(each) / TICK_S) for each in (distance, heading))
    forces = np.column_stack([np.gradient(speed, seconds), speed * rate, np.full(len(t), 9.80665)])
    rates = np.column_stack([np.zeros(len(t)), np.zeros(len(t)), rate])
    forces = forces + force_bias * rng.normal(size=3) * 0.3 + force * rng.normal(size=forces.shape)
    rates = rates + gyro_bias * rng.normal(size=3) * 0.3 + gyro * rng.normal(size=rates.shape)
    for each in zip(t.tolist(), forces, rates, strict=True):
        yield ImuSample(*each)


def filtered(simulated: Drive) -> tuple[np.ndarray, np.ndarray]:
    """Return errors (k, 2) of the antenna by the filter, and their covariances (k, 2, 2)."""
    inputs = FusionInputs()
    inputs.positions.frame, inputs.odometry.has_planar = "map", True
    found = new_filter(inputs, ErrorStateFilter().values, wait=3.0)
    context: Any = Quiet()
    wanted, result, i = simulated.t_ns.tolist(), list[tuple[np.ndarray, np.ndarray]](), 0
    for k, t_ns in enumerate(wanted):
        batch: list[Event] = []
        while i < len(simulated.events) and simulated.events[i].t_ns <= t_ns:
            batch.append(simulated.events[i])
            i += 1
        assert found.process_events(context, batch)
        state = found.at(t_ns)
        result.append(_antenna(state.p, state.rotation, state.pose_covariance, simulated.antenna[k]))
    off, spread = zip(*result, strict=True)
    return np.array(off), np.array(spread)


def smoothed(simulated: Drive) -> tuple[np.ndarray, np.ndarray]:
    """Return the same by the batch smoother."""
    observations = Observations()
    observations.add(simulated.events)
    found = smooth(observations, make_noise(1.0, 1.0, 0.05, 9.80665), learn=True)
    poses, covariances = found.at(simulated.t_ns)
    each = zip(poses, covariances, simulated.antenna, strict=True)
    off, spread = zip(*(_antenna(T[:3, 3], T[:3, :3], C, true) for T, C, true in each), strict=True)
    return np.array(off), np.array(spread)


def _antenna(
    path: np.ndarray, rotation: np.ndarray, covariance: np.ndarray, true: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    x, y, z = rotation @ LEVER_ARM_M
    by = np.array([[1.0, 0, 0, 0, z, -y], [0, 1.0, 0, -z, 0, x]])
    return (path + rotation @ LEVER_ARM_M)[:2] - true, by @ covariance @ by.T


if __name__ == "__main__":
    main()
