"""Smoothing real Rosario across 30 s without RTK."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gtsam")

import transect
from transect.engine import Run, compound
from transect.geometry import interpolation, rotations
from transect.nodes.state.batch_smoother import BatchSmoother
from transect.nodes.state.error_state_filter import ErrorStateFilter
from transect.nodes.state.pose_fusion import PoseFusion
from transect.recording import Recording, Stream, arrow
from transect.types import Odometry, Pose

NS = 1_000_000_000
GAP_SPAN_S = (90.0, 120.0)
"""Seconds after the first fix."""
OFFSET_NS = -200_000_000
"""The odometry of 04 begins that long before its first fix (`techniques.md` J, from all fixes)."""
PORTS = (
    "odometry -> fusion.odometry",
    "position -> fusion.position",
    "fusion.pose -> pose",
    "fusion.trajectory -> trajectory",
)


@cache
def fused(folder: Path, node: type[PoseFusion]) -> tuple[Recording, np.ndarray, Run]:
    """Sequence 04, which of its fixes are hidden, and what a node makes of the others."""
    recording = transect.open(folder, sequence="04")
    seconds = (recording["GroundTruth"].t_ns - recording["GroundTruth"].t_ns[0]) / NS
    hidden = (seconds >= GAP_SPAN_S[0]) & (seconds < GAP_SPAN_S[1])
    run = transect.run(compound("Fused", {"fusion": node}, PORTS), measured(recording, ~hidden))
    return recording, hidden, run


def test_sequence_04_is_smoothed_across_a_gap_at_least_twice_as_well_as_a_straight_line(real_data: Path):
    recording, hidden, found = fused(real_data / "rosario_gt_odom", BatchSmoother)
    truth = recording["GroundTruth"]
    fixes = truth.array("x", "y", "z")
    path = found["trajectory"].values[0]
    antenna = path.positions + rotations.rotate(
        path.orientations, recording.frames.lookup("base_link", "gps")[:3, 3]
    )
    at = interpolation.interpolate_columns(path.t_ns, antenna, truth.t_ns[hidden])
    line = interpolation.interpolate_columns(truth.t_ns[~hidden], fixes[~hidden], truth.t_ns[hidden])
    ours, plain = (
        np.sqrt(np.mean(np.sum((each - fixes[hidden])[:, :2] ** 2, axis=1))) for each in (at, line)
    )
    assert ours <= 0.5 * plain
    assert (path.frame, path.child) == ("world", "base_link")


@pytest.mark.parametrize("node", [ErrorStateFilter, BatchSmoother])
def test_the_ellipses_in_a_gap_of_steady_driving_are_as_large_as_the_errors(
    real_data: Path, node: type[PoseFusion]
):
    """Their major semi-axis should be about twice the error; it was 14 and 12 times."""
    recording, hidden, run = fused(real_data / "rosario_gt_odom", node)
    truth, lever = recording["GroundTruth"], recording.frames.lookup("base_link", "gps")[:3, 3]
    path = run["trajectory"].values[0]
    reach = rotations.rotate(path.orientations, np.tile(lever, (len(path), 1)))
    by = np.concatenate([np.tile(np.eye(3), (len(path), 1, 1)), -rotations.skew(reach)], axis=2)
    spread = (by @ path.covariances @ np.swapaxes(by, 1, 2)).reshape(-1, 9)
    rows = np.column_stack([path.positions + reach, spread])
    at = interpolation.interpolate_columns(path.t_ns, rows, truth.t_ns[hidden])
    off = at[:, :2] - truth.array("x", "y")[hidden]
    C = at[:, 3:].reshape(-1, 3, 3)[:, :2, :2] + 0.02**2 * np.eye(2)
    squared = np.einsum("ni,ni->n", off, np.linalg.solve(C, off[..., None])[..., 0])
    axis = np.sqrt(5.991 * np.mean(np.linalg.eigvalsh(C)[:, -1]))
    assert np.mean(squared < 5.991) >= 0.9
    assert axis <= 5 * np.sqrt(np.mean(np.sum(off**2, axis=1)))


def measured(recording: Recording, known: np.ndarray) -> Recording:
    """What a robot without RTK in the gap would have: stamped odometry, and the known positions."""
    truth, odometry = recording["GroundTruth"], recording["Odometry"]
    stamps = truth.t_ns[0] + OFFSET_NS + NS // 10 * np.arange(len(odometry))
    tracks = {
        "Odometry": (Odometry, stamps, odometry.array("x", "y", "z"), "odom", "base_link"),
        "Rtk": (Pose, truth.t_ns[known], truth.array("x", "y", "z")[known], "world", "gps"),
    }
    streams = [
        Stream(
            name, kind, arrow.table(t_ns, dict(zip("xyz", places.T, strict=True))), frame=frame, child=child
        )
        for name, (kind, t_ns, places, frame, child) in tracks.items()
    ]
    return recording.replace(streams=tuple(streams))
