"""Metrics as nodes: found by name, run inside a compound, equal to the library's numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.engine.flows import emitted, flow_of, play

import transect
from transect.engine.catalogue import catalogue_for
from transect.evaluation import absolute_error, associate
from transect.evaluation.nodes.trajectories import DriftPercent, MapError
from transect.geometry import rotations
from transect.recording import Recording
from transect.recording.stream import stream_of_values
from transect.types import GridMap, Pose, Trajectory

T0_NS = 1_600_000_000_000_000_000
STRAIGHT = np.array([0.0, 0.0, 0.0, 1.0])
COMPOUND = """
name: Judged
doc: An estimate against the truth
input_ports: [{name: estimate, type: Pose}, {name: truth, type: Pose}]
output_ports:
  - {name: error, type: float}
  - {name: drift, type: float}
  - {name: rmse, type: float}
implementations:
  - name: Judged
    nodes:
      position: {node: PositionError}
      drift: {node: DriftPercent}
      trajectory: {node: TrajectoryError, params: {align: se3}}
    wires:
      - estimate -> position.pose
      - truth -> position.truth
      - estimate -> drift.pose
      - truth -> drift.truth
      - estimate -> trajectory.pose
      - truth -> trajectory.truth
      - position.out -> error
      - drift.out -> drift
      - trajectory.rmse -> rmse
"""


def circle(t_ns: np.ndarray, radius: float = 5.0) -> Trajectory:
    angle = (t_ns - T0_NS) / 1e9 * 0.4
    places = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), 0 * angle])
    return Trajectory(t_ns, places, rotations.quaternion_from_euler("z", (angle + np.pi / 2)[:, None]))


def judged() -> tuple[Recording, Trajectory, Trajectory]:
    """A circle at 20 Hz, and a noisy wider one at 7 Hz, which starts later and ends earlier."""
    truth = circle(T0_NS + np.arange(400) * 50_000_000)
    estimate = circle(T0_NS + 10_000_003 + np.arange(130) * 142_857_143, radius=5.2)
    noise = np.random.default_rng(0).normal(scale=0.02, size=estimate.positions.shape)
    estimate = Trajectory(estimate.t_ns, estimate.positions + noise, estimate.orientations)
    streams = tuple(_stream(*each) for each in (("gt", truth), ("odometry", estimate)))
    return Recording("made", streams), truth, estimate


def _stream(name: str, path: Trajectory):
    assert path.orientations is not None
    values = np.column_stack([path.positions, path.orientations])
    columns = dict(zip(("x", "y", "z", "qx", "qy", "qz", "qw"), values.T, strict=True))
    return stream_of_values(name, path.t_ns, columns, type=Pose)


def test_the_metrics_are_found_by_the_names_of_their_files():
    catalogue = catalogue_for()
    for name in ("PositionError", "DriftPercent", "TrajectoryError", "MapError"):
        assert name in catalogue.names()
        found = catalogue.node(name)
        assert found is not None
        assert found.__name__ == name


def test_metrics_run_inside_a_compound_and_give_the_library_s_numbers(tmp_path: Path):
    (tmp_path / "judged.yaml").write_text(COMPOUND)
    recording, truth, estimate = judged()
    wires = {"estimate": "odometry", "truth": "gt"}
    result = transect.run(tmp_path / "judged.yaml", recording, wire=wires)
    pairs = associate(truth, estimate, by="interpolate", max_diff=0.1)
    errors = absolute_error(pairs, "none").translation
    np.testing.assert_allclose(result["error"].values, errors, atol=1e-9)
    (rmse,) = result["rmse"].values
    assert rmse == pytest.approx(absolute_error(pairs, "se3").statistics.rmse, rel=1e-9)
    assert result["rmse"].t_ns[-1] == estimate.t_ns[-1]
    assert len(result["drift"]) < len(result["error"])  # it waits until a metre is travelled


def test_drift_is_the_error_over_the_way_once_the_first_poses_agree():
    flow = flow_of({"drift": DriftPercent}, ["pose -> drift.pose", "truth -> drift.truth"])
    seen = emitted(flow, "drift.out")
    samples = [(float(k), "truth", Pose(np.array([2.0 * k, 0, 0]), STRAIGHT)) for k in range(6)]
    samples += [(float(k), "pose", Pose(np.array([7, 2.2 * k, 0]), turned())) for k in range(6)]
    play(flow, samples)
    assert [t for t, _ in seen] == [1, 2, 3, 4, 5]
    np.testing.assert_allclose([value for _, value in seen], 10.0)


def turned() -> np.ndarray:
    """Facing along y."""
    return rotations.quaternion_from_euler("z", [np.pi / 2])


def test_a_map_is_judged_by_the_newest_reference():
    row, col = np.mgrid[:40, :50]
    hills = np.sin(row / 4) * np.cos(col / 5)
    truth, higher = (GridMap({"elevation": hills + z}, (1.0, 0, 0, 0, -1.0, 0)) for z in (0.0, 0.5))
    flow = flow_of({"judge": MapError(register=False)}, ["map -> judge.map", "truth -> judge.truth"])
    bias, rmse = emitted(flow, "judge.bias"), emitted(flow, "judge.rmse")
    play(flow, [(0.0, "truth", truth), (1.0, "map", higher), (2.0, "truth", higher), (3.0, "map", higher)])
    assert bias == [(1.0, pytest.approx(0.5)), (3.0, pytest.approx(0.0, abs=1e-12))]
    assert rmse[0] == (1.0, pytest.approx(0.5))
