"""What `transect eval` computes of trajectories whose answer is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.evaluation.test_body_frames import at_antenna, tree, tumbling
from tests.evaluation.test_trajectories import circle, line, moved

from transect.errors import UsageError
from transect.evaluation.report import ALL, EvaluationSettings, evaluate
from transect.evaluation.result import Input
from transect.geometry import rotations
from transect.recording import FrameTree
from transect.types import Trajectory


def given(trajectory: Trajectory, name: str = "x", frames: FrameTree | None = None) -> Input:
    return Input(name, name, name, trajectory, frames or FrameTree())


def test_the_frames_of_the_recording_move_the_estimate_to_the_antenna() -> None:
    fixes = replace(at_antenna(tumbling(), tree()), orientations=None)
    known = evaluate(given(fixes, frames=tree()), given(tumbling()), EvaluationSettings("none"))
    assert known.metrics["ate"]["translation"]["max"] < 1e-9
    assert any("lever arm" in note for note in known.notes)
    unknown = evaluate(given(fixes), given(tumbling()), EvaluationSettings("none"))
    assert unknown.metrics["ate"]["translation"]["rmse"] > 1
    assert any(note.startswith("frames assumed equal") for note in unknown.notes)


def test_positions_alone_have_relative_errors_too_and_no_rotations() -> None:
    reference = replace(circle(), orientations=None)
    found = evaluate(given(reference), given(moved(circle())), EvaluationSettings(relations=ALL)).metrics
    assert found["rpe"]["translation"]["max"] < 1e-9
    assert found["segments"]["percent"] < 1e-7
    assert found["drift"]["settled_percent"] < 1e-7
    for relation in ("ate", "rpe", "relations"):
        assert found[relation]["rotation"] is None


def test_a_scale_that_was_aligned_is_in_the_relative_errors_too() -> None:
    for mode, high in (("sim3", 1e-9), ("se3", 1.0)):
        result = evaluate(given(circle()), given(moved(circle(), 2.0)), EvaluationSettings(mode))  # type: ignore[arg-type]
        assert (result.metrics["rpe"]["translation"]["max"] < 1e-9) == (high < 1)


def test_a_consistent_estimate_is_inside_its_bounds_and_a_vain_one_is_not() -> None:
    rng = np.random.default_rng(8)
    path = tumbling()
    spread = np.diag([0.04, 0.04, 0.09, 1e-4, 1e-4, 4e-4])
    noise = rng.multivariate_normal(np.zeros(6), spread, size=len(path))
    turned = rotations.multiply(rotations.quaternion_from_rotation_vector(noise[:, 3:]), path.orientations)
    said = Trajectory(path.t_ns, path.positions + noise[:, :3], turned, np.tile(spread, (len(path), 1, 1)))
    fair = evaluate(given(path), given(said), EvaluationSettings("none", ("nees",), named=True)).metrics[
        "nees"
    ]
    assert fair["dimension"] == 6
    assert fair["normalised_mean"] == pytest.approx(1, abs=0.1)
    assert 0.92 < fair["inside"] < 0.98
    assert said.covariances is not None
    vain = replace(said, covariances=said.covariances / 9)
    assert (
        evaluate(given(path), given(vain), EvaluationSettings("none", ("nees",))).metrics["nees"]["inside"]
        < 0.2
    )


def test_satellite_sigmas_judge_three_dimensions() -> None:
    rng = np.random.default_rng(9)
    path = replace(circle(), orientations=None)
    spread = np.full((len(path), 6, 6), np.nan)
    spread[:, :3, :3] = 0.25 * np.eye(3)
    noise = rng.normal(scale=0.5, size=(len(path), 3))
    fixes = replace(path, positions=path.positions + noise, covariances=spread)
    found = evaluate(given(circle()), given(fixes), EvaluationSettings("none", ("nees",))).metrics["nees"]
    assert found["dimension"] == 3
    assert found["normalised_mean"] == pytest.approx(1, abs=0.15)


def test_what_was_named_must_be_computed_and_what_was_not_is_left_out() -> None:
    with pytest.raises(UsageError, match="NEES needs covariances"):
        evaluate(given(circle()), given(circle()), EvaluationSettings(relations=("nees",), named=True))
    result = evaluate(given(line(4)), given(line(4)), EvaluationSettings("origin", relations=ALL))
    assert "segments" not in result.metrics
    assert any(note.startswith("segments left out: no segment of 5 m fits") for note in result.notes)


def test_facts_of_the_reference_are_those_of_table_6() -> None:
    result = evaluate(given(line(101)), given(line(101, scale=1.01)), EvaluationSettings("origin"))
    assert result.truth["length_m"] == pytest.approx(100)
    assert result.truth["duration_s"] == pytest.approx(10)
    assert result.truth["height_m"] == 0


def test_what_has_no_heights_is_compared_in_the_plane() -> None:
    path = tumbling()
    flat = replace(path, positions=path.positions * (1, 1, 0))
    known = evaluate(given(path), replace(given(flat, "wheels"), flat=True), EvaluationSettings("none"))
    assert known.metrics["ate"]["translation"]["max"] == 0
    assert "wheels has no heights: compared in the plane" in known.notes
    assert (
        evaluate(given(path), given(flat), EvaluationSettings("none")).metrics["ate"]["translation"]["max"]
        > 1
    )
