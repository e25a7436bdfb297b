"""What nodes share: ports of a SLAM, maps of another kind, anchors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.algorithms.slam.toy import PostRecogniser, Posts, circle, drifting

from transect.algorithms.slam.mapper import MappingSettings
from transect.engine.context import Context
from transect.engine.folder import read_kept_map
from transect.errors import UsageError
from transect.geometry import geodesy, se3
from transect.nodes.slam._session import Session, anchor_at, check_map
from transect.recording.place_maps import write_map
from transect.types import NavFix

pytest.importorskip("gtsam")
HOME = np.array([np.radians(48.2), np.radians(16.4), 200.0])


def drive(session: Session, poses: list[np.ndarray], fixes: bool = False) -> list:
    world, found = Posts(), []
    for n, (pose, odometry) in enumerate(zip(poses, drifting(poses), strict=True)):
        if fixes:
            lat, lon, alt = geodesy.geodetic_from_local(pose[:3, 3], HOME)
            session.add_fix(NavFix(lat, lon, alt, std=np.full(3, 0.02)))
        found.append(session.step(n * 10**8, odometry, None, lambda pose=pose: world.see(pose)))
    return found


def session_of(ctx: Context) -> Session:
    return Session(ctx, "Toy", PostRecogniser(), MappingSettings(recent=8.0), {"rays": 3}, "robot")


def test_a_session_gives_poses_loops_trajectory_and_map_and_the_map_finds_the_next_drive(
    tmp_path: Path,
) -> None:
    said: list[tuple[str, bool]] = []
    ctx = Context(concluded=lambda text, bad: said.append((text, bad)))
    session = session_of(ctx)
    found = drive(session, circle())
    assert all(each.located and each.pose.child == "robot" for each in found)
    assert [each.loops for each in found if each.loops is not None] == sorted(
        each.loops for each in found if each.loops is not None
    )
    ended = session.finish(ctx)
    assert ended is not None
    assert ended.map is not None
    assert ended.map.calibration == {"rays": 3}
    assert "loops" in said[0][0]
    write_map(ended.map, tmp_path / "map")
    ctx = Context(map=read_kept_map(tmp_path), concluded=lambda text, bad: said.append((text, bad)))
    again = session_of(ctx)
    drive(again, circle(0.5))
    ended = again.finish(ctx)
    assert ended is not None
    assert ended.map is None
    assert said[-1][0].startswith("FOUND")


def test_a_robot_that_never_finds_itself_says_so_and_is_not_to_be_trusted(tmp_path: Path) -> None:
    ctx = Context()
    session = session_of(ctx)
    drive(session, circle(0.5))
    ended = session.finish(ctx)
    assert ended is not None
    assert ended.map is not None
    write_map(ended.map, tmp_path / "map")
    said: list[tuple[str, bool]] = []
    ctx = Context(map=read_kept_map(tmp_path), concluded=lambda text, bad: said.append((text, bad)))
    elsewhere = session_of(ctx)
    away = [se3.exp([500.0 + x, 0, 0, 0, 0, 0]) for x in np.arange(0, 10, 0.25)]
    assert not any(each.located for each in drive(elsewhere, away))
    assert elsewhere.finish(ctx) is None
    assert said[0][1]
    assert said[0][0].startswith("LOST")


def test_a_map_of_another_kind_is_refused(tmp_path: Path) -> None:
    ctx = Context()
    session = session_of(ctx)
    drive(session, circle(0.2))
    ended = session.finish(ctx)
    assert ended is not None
    assert ended.map is not None
    write_map(ended.map, tmp_path / "map")
    with pytest.raises(UsageError, match="of Toy, not of LaserSlam"):
        check_map(Context(map=read_kept_map(tmp_path)), "LaserSlam")


def test_fixes_anchor_a_map_in_its_coordinate_system() -> None:
    ctx = Context()
    session = session_of(ctx)
    poses = circle(0.7)
    drive(session, poses, fixes=True)
    ended = session.finish(ctx)
    assert ended is not None
    assert ended.map is not None
    anchor = ended.map.anchor
    assert anchor is not None
    assert anchor.crs == "EPSG:32633"
    # Positions of the drive in UTM by pyproj, against those of the map through its anchor.
    truth = geodesy.geodetic_from_local(np.array([pose[:3, 3] for pose in poses]), HOME)
    wanted, _ = geodesy.utm_from_geodetic(truth)
    given = se3.apply(anchor.T_crs_map, ended.trajectory.positions)
    assert np.abs(given - wanted).max() < 0.15


def test_an_anchor_turns_by_the_convergence_of_the_grid() -> None:
    anchor = anchor_at(HOME)
    ahead = geodesy.geodetic_from_local(np.array([[0.0, 100.0, 0.0]]), HOME)
    wanted, _ = geodesy.utm_from_geodetic(ahead)
    np.testing.assert_allclose(se3.apply(anchor.T_crs_map, [0.0, 100.0, 0.0]), wanted[0], atol=0.05)


@pytest.mark.parametrize(
    ("shift", "success", "sessions"),
    [(0.0, [True], 1), (0.0, [False, True], 2), (0.0, [], 2), (3.0, [True], 2)],
)
def test_a_pause_in_which_the_robot_stood_begins_no_session(
    shift: float, success: list[bool], sessions: int
) -> None:
    """If odometry says so: it matched the first sample after the pause, and found hardly any motion."""
    session, world, here = session_of(Context()), Posts(), np.eye(4)
    for n in range(4):
        here = here @ se3.exp([0.25, 0, 0, 0, 0, 0])
        session.step(n * 10**8, here, None, lambda pose=here: world.see(pose), success=[True])
    there = here @ se3.exp([shift, 0, 0, 0, 0, 0])
    for n in range(4):
        said = success if n == 0 else [True]
        t_ns = 60 * 10**9 + n * 10**8
        session.step(t_ns, there, None, lambda pose=there: world.see(pose), success=said)
        there = there @ se3.exp([0.25, 0, 0, 0, 0, 0])
    ended = session.finish(Context())
    assert ended is not None
    assert ended.map is not None
    assert len(set(ended.map.session.tolist())) == sessions
