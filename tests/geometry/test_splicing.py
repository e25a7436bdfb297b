"""Tracks of one motion in frames of their own, laid end to end."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.geometry import se3
from transect.geometry.splicing import PoseTrack, TrackSwitch, splice

T_NS = np.arange(0, 10 * NS, NS // 10)
TRUE = se3.exp(np.column_stack([T_NS / NS, *np.zeros((2, 100)), *np.zeros((2, 100)), T_NS / NS / 10]))


def elsewhere(*twist: float) -> Floats:
    return se3.exp(np.array(twist))


@given(st.integers(1, 98), st.integers(0, 30), st.floats(-3, 3), st.floats(-50, 50))
def test_two_tracks_of_the_same_motion_make_that_motion_wherever_they_are_cut(
    cut: int, earlier: int, turn: float, away: float
) -> None:
    other = elsewhere(away, 2.0, -1.0, 0.3, 0.0, turn) @ TRUE
    change = TrackSwitch(int(T_NS[cut]), int(T_NS[max(cut - earlier, 0)]), 1)
    found = splice([PoseTrack(T_NS, TRUE), PoseTrack(T_NS, other)], 0, [change])
    np.testing.assert_allclose(found.poses, TRUE, atol=1e-9)
    assert np.array_equal(found.t_ns, T_NS)
    assert np.array_equal(found.source, np.arange(100) >= cut)


def test_errors_before_the_anchor_stay_behind_and_those_after_it_are_left_out() -> None:
    slipping = TRUE.copy()
    slipping[40:, 0, 3] += 3.0
    tracks = [PoseTrack(T_NS, slipping), PoseTrack(T_NS, elsewhere(5.0, 0, 0, 0, 0, 1.0) @ TRUE)]
    cut, decided = int(T_NS[39]), int(T_NS[60])
    revised = splice(tracks, 0, [TrackSwitch(cut, cut, 1)])
    np.testing.assert_allclose(revised.poses, TRUE, atol=1e-9)
    given_then = splice(tracks, 0, [TrackSwitch(decided, cut, 1)])
    np.testing.assert_allclose(given_then.poses[60:], TRUE[60:], atol=1e-9)
    np.testing.assert_allclose(given_then.poses[40:60, 0, 3] - TRUE[40:60, 0, 3], 3.0)


def test_a_track_without_poses_at_the_anchor_goes_on_from_where_both_were_known() -> None:
    blind = (T_NS < 3 * NS) | (T_NS > 6 * NS)
    tracks = [PoseTrack(T_NS[blind], TRUE[blind]), PoseTrack(T_NS, elsewhere(1.0, 0, 0, 0, 0, 0.5) @ TRUE)]
    found = splice(tracks, 0, [TrackSwitch(5 * NS, 5 * NS, 1)])
    np.testing.assert_allclose(found.poses[-1], TRUE[-1], atol=1e-9)


def test_a_track_that_begins_later_goes_on_from_the_last_pose() -> None:
    late = PoseTrack(T_NS[60:], elsewhere(1.0, 0, 0, 0, 0, 0.5) @ TRUE[60:])
    found = splice([PoseTrack(T_NS[:30], TRUE[:30]), late], 0, [TrackSwitch(3 * NS, 3 * NS, 1)])
    np.testing.assert_allclose(found.poses[30], TRUE[29], atol=1e-9)
    np.testing.assert_allclose(
        se3.invert(found.poses[30]) @ found.poses[-1], se3.invert(TRUE[60]) @ TRUE[-1], atol=1e-9
    )
