"""SLAM sessions: outputs, maps of another kind, anchors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.algorithms.slam.toy import PostRecogniser, Posts, circle, drifting

from transect.algorithms.slam.place_recognition import MappingSettings
from transect.engine.context import Context
from transect.engine.folder import read_kept_map
from transect.errors import UsageError
from transect.geometry import geodesy, se3
from transect.nodes.slam.session import SlamSession, check_map, utm_anchor
from transect.recording.place_maps import write_map
from transect.types import NavFix

pytest.importorskip("gtsam")
HOME = np.array([np.radians(48.2), np.radians(16.4), 200.0])


def drive(session: SlamSession, poses: list[np.ndarray], fixes: bool = False) -> list:
    world, outputs = Posts(), []
    for n, (pose, odometry) in enumerate(zip(poses, drifting(poses), strict=True)):
        if fixes:
            lat, lon, alt = geodesy.geodetic_from_local(pose[:3, 3], HOME)
            session.add_fix(NavFix(lat, lon, alt, std=np.full(3, 0.02)))
        outputs.append(session.step(n * 10**8, odometry, None, lambda pose=pose: world.observe(pose)))
    return outputs


def new_session(ctx: Context) -> SlamSession:
    return SlamSession(
        ctx, "Toy", PostRecogniser(), MappingSettings(min_loop_path_m=8.0), {"rays": 3}, "robot"
    )


def test_a_session_outputs_a_map_in_which_the_next_drive_is_localised(
    tmp_path: Path,
) -> None:
    conclusions: list[tuple[str, bool]] = []
    ctx = Context(concluded=lambda text, bad: conclusions.append((text, bad)))
    session = new_session(ctx)
    outputs = drive(session, circle())
    assert all(each.located and each.pose.child == "robot" for each in outputs)
    assert [each.loops for each in outputs if each.loops is not None] == sorted(
        each.loops for each in outputs if each.loops is not None
    )
    result = session.finish(ctx)
    assert result is not None
    assert result.map is not None
    assert result.map.calibration == {"rays": 3}
    assert "loop closures" in conclusions[0][0]
    write_map(result.map, tmp_path / "map")
    ctx = Context(map=read_kept_map(tmp_path), concluded=lambda text, bad: conclusions.append((text, bad)))
    second = new_session(ctx)
    drive(second, circle(0.5))
    result = second.finish(ctx)
    assert result is not None
    assert result.map is None
    assert conclusions[-1][0].startswith("FOUND")


def test_a_robot_that_is_never_located_reports_a_bad_result(tmp_path: Path) -> None:
    ctx = Context()
    session = new_session(ctx)
    drive(session, circle(0.5))
    result = session.finish(ctx)
    assert result is not None
    assert result.map is not None
    write_map(result.map, tmp_path / "map")
    conclusions: list[tuple[str, bool]] = []
    ctx = Context(map=read_kept_map(tmp_path), concluded=lambda text, bad: conclusions.append((text, bad)))
    outside = new_session(ctx)
    far_poses = [se3.exp([500.0 + x, 0, 0, 0, 0, 0]) for x in np.arange(0, 10, 0.25)]
    assert not any(each.located for each in drive(outside, far_poses))
    assert outside.finish(ctx) is None
    assert conclusions[0][1]
    assert conclusions[0][0].startswith("LOST")


def test_a_map_of_another_kind_is_refused(tmp_path: Path) -> None:
    ctx = Context()
    session = new_session(ctx)
    drive(session, circle(0.2))
    result = session.finish(ctx)
    assert result is not None
    assert result.map is not None
    write_map(result.map, tmp_path / "map")
    with pytest.raises(UsageError, match="of Toy, not of LaserSlam"):
        check_map(Context(map=read_kept_map(tmp_path)), "LaserSlam")


def test_fixes_anchor_a_map_in_its_coordinate_system() -> None:
    ctx = Context()
    session = new_session(ctx)
    poses = circle(0.7)
    drive(session, poses, fixes=True)
    result = session.finish(ctx)
    assert result is not None
    assert result.map is not None
    anchor = result.map.anchor
    assert anchor is not None
    assert anchor.crs == "EPSG:32633"
    # Positions of the drive in UTM by pyproj are compared with those of the anchored map.
    truth = geodesy.geodetic_from_local(np.array([pose[:3, 3] for pose in poses]), HOME)
    expected, _ = geodesy.utm_from_geodetic(truth)
    positions = se3.apply(anchor.T_crs_map, result.trajectory.positions)
    assert np.abs(positions - expected).max() < 0.15


def test_an_anchor_is_rotated_by_the_grid_convergence() -> None:
    anchor = utm_anchor(HOME)
    north = geodesy.geodetic_from_local(np.array([[0.0, 100.0, 0.0]]), HOME)
    expected, _ = geodesy.utm_from_geodetic(north)
    np.testing.assert_allclose(se3.apply(anchor.T_crs_map, [0.0, 100.0, 0.0]), expected[0], atol=0.05)


@pytest.mark.parametrize(
    ("shift", "success", "sessions"),
    [(0.0, [True], 1), (0.0, [False, True], 2), (0.0, [], 2), (3.0, [True], 2)],
)
def test_a_pause_without_motion_starts_no_session(shift: float, success: list[bool], sessions: int) -> None:
    """Odometry has to match the first sample after the pause, with a small motion."""
    session, world, pose = new_session(Context()), Posts(), np.eye(4)
    for n in range(4):
        pose = pose @ se3.exp([0.25, 0, 0, 0, 0, 0])
        session.step(n * 10**8, pose, None, lambda pose=pose: world.observe(pose), success=[True])
    resumed = pose @ se3.exp([shift, 0, 0, 0, 0, 0])
    for n in range(4):
        conclusions = success if n == 0 else [True]
        t_ns = 60 * 10**9 + n * 10**8
        session.step(t_ns, resumed, None, lambda pose=resumed: world.observe(pose), success=conclusions)
        resumed = resumed @ se3.exp([0.25, 0, 0, 0, 0, 0])
    result = session.finish(Context())
    assert result is not None
    assert result.map is not None
    assert len(set(result.map.session.tolist())) == sessions
