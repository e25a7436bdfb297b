import numpy as np
import pytest

from transect import robots
from transect.datasets.marulan.world import lasers
from transect.recording import arrow
from transect.simulation.raycast import Scene
from transect.simulation.solids import Solids, SurfaceMaterial, walker, wall
from transect.simulation.terrain import flat

SICK = lasers.Sick.of(robots.load("argo"))
GREY = SurfaceMaterial(near_infrared=0.5)


def pose(x=0.0, y=0.0, z=1.0):
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


def still(t_ns):
    return np.tile(pose(), (len(t_ns), 1, 1))


def room(*solids):
    found = Solids.of(solids)
    return Scene(flat(200.0), found), found


def test_four_scans_a_quarter_of_a_degree_apart_make_a_sweep_of_180_degrees():
    """Document 004, 3.2.2: 1 degree, starts 0.25 degree apart, a full 180 degrees."""
    number = np.arange(4)
    angles = [
        SICK.start_angles(number)[k] + SICK.increment * np.arange(SICK.counts(number)[k]) for k in number
    ]
    degrees = np.degrees(np.sort(np.concatenate(angles)))
    np.testing.assert_allclose(degrees, np.arange(-90, 90.01, 0.25), atol=1e-9)


def test_scans_follow_each_other_75_times_a_second():
    times = SICK.times(np.arange(751), 0)
    assert times[-1] == 10 * 10**9
    assert np.abs(np.diff(times) - 1e9 / 75).max() < 1000


def test_ranges_to_a_wall_have_the_noise_of_the_sensor_and_whole_centimetres():
    scene, solids = room(wall("wall", [10.0, -80], [10.0, 80], 3.0, 0.2, GREY))
    number = np.arange(0, 800, 4)
    returns = lasers.cast_scans(SICK, scene, still, number, 0)
    good = lasers.find_detected(SICK, returns, solids, 0.3)
    cm = lasers.measure(SICK, returns, good, np.random.default_rng(0))
    ahead = slice(60, 121)
    angle = np.radians(np.arange(-30, 31))
    error = cm[:, ahead] / 100 - 9.9 / np.cos(angle)
    assert good[:, ahead].all()
    assert error.mean() == pytest.approx(0.0, abs=5e-4)
    assert error.std() == pytest.approx(np.hypot(0.010, 0.01 / np.sqrt(12)), rel=0.05)


def test_what_is_dark_far_or_oblique_gives_no_return():
    black, _ = room(wall("wall", [25.0, -80], [25.0, 80], 30.0, 0.2))
    number = np.arange(4)
    returns = lasers.cast_scans(SICK, black, still, number, 0)
    ahead = (slice(None), slice(85, 96))
    for albedo, visible in ((0.15, True), (0.05, False)):
        solids = Solids.of(
            [wall("wall", [25.0, -80], [25.0, 80], 30.0, 0.2, SurfaceMaterial(near_infrared=albedo))]
        )
        assert lasers.find_detected(SICK, returns, solids, 0.3)[ahead].all() == visible
    cm = lasers.measure(SICK, returns, np.zeros_like(returns.kind, bool), np.random.default_rng(0))
    assert (cm == lasers.NO_RETURN_CM).all()


def test_every_beam_is_cast_from_where_the_sensor_is_at_its_own_time():
    scene, _ = room(wall("wall", [30.0, -200], [30.0, 200], 3.0, 0.2, GREY))
    speed = 12.0

    def moving(t_ns):
        return np.stack([pose(x=speed * t * 1e-9) for t in t_ns])

    returns = lasers.cast_scans(SICK, scene, moving, np.array([0]), 0)
    angle = np.radians(np.arange(-60, 61))
    late = np.arange(30, 151) / 360 / 75
    np.testing.assert_allclose(returns.range[0, 30:151], (29.9 - speed * late) / np.cos(angle), atol=1e-6)


def test_a_turning_sensor_smears_its_angles():
    scene, _ = room(wall("wall", [30.0, -200], [30.0, 200], 3.0, 0.2, GREY))
    rate = 1.0

    def turning(t_ns):
        T = still(t_ns)
        c, s = np.cos(rate * t_ns * 1e-9), np.sin(rate * t_ns * 1e-9)
        T[:, 0, 0], T[:, 0, 1], T[:, 1, 0], T[:, 1, 1] = c, -s, s, c
        return T

    returns = lasers.cast_scans(SICK, scene, turning, np.array([0]), 0)
    angle = np.radians(np.arange(-60, 61)) + rate * np.arange(30, 151) / 360 / 75
    np.testing.assert_allclose(returns.range[0, 30:151], 29.9 / np.cos(angle), rtol=1e-5)


def test_a_walking_human_is_seen_where_it_is():
    human = walker([(8.0, -4.0, 0.0), (8.0, 4.0, 0.0)], speed=1.0)
    scene, _ = room(*human)
    number = np.array([0, 300])  # 4 s later
    returns = lasers.cast_scans(SICK, scene, still, number, 0)
    bearing = [
        np.degrees(SICK.start_angles(number)[i]) + np.flatnonzero(returns.kind[i] > 0).mean() for i in (0, 1)
    ]
    assert bearing[0] == pytest.approx(np.degrees(np.arctan2(-4, 8)), abs=1.0)
    assert bearing[1] == pytest.approx(0.0, abs=1.0)


def test_the_table_has_what_the_format_s_lines_have():
    number = np.arange(4, 12)
    cm = np.arange(8)[:, None] * 1000 + np.arange(SICK.beams)
    table = lasers.scan_table(SICK, number, SICK.times(number, 5), cm)
    ranges, offsets = arrow.lists_of(table, "ranges")
    assert np.diff(offsets).tolist() == [181, 180, 180, 180] * 2
    assert ranges[offsets[2]] == 20.0
    assert (arrow.numbers(table, "range_unit") == 2).all()
    np.testing.assert_allclose(
        np.degrees(arrow.numbers(table, "end_angle"))[:4], [90.0, 89.25, 89.5, 89.75], atol=1e-9
    )


def returns_of(ranges, kinds):
    shape = (1, 1)
    return lasers.Returns(np.full(shape, ranges), np.full(shape, kinds, np.int32), np.ones(shape))


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ((5.0, 5.0, 5.0), 5.0),  # one surface
        ((6.0, 5.0, 6.0), (0.75 / 6 + 0.25 / 5) / (0.75 / 36 + 0.25 / 25)),  # a step: between the two
        ((9.0, 5.0, 9.0), 5.0),  # two echoes: the first one
        ((np.inf, 5.0, np.inf), 5.0),  # an edge before the sky
        ((np.inf, np.inf, np.inf), np.inf),
    ],
)
def test_a_wide_beam_measures_between_two_surfaces_that_are_close_together(ranges, expected):
    solids = Solids.of([wall("wall", [10.0, -80], [10.0, 80], 3.0, 0.2, GREY)])
    met = lasers.merge_spot(SICK, [returns_of(r, 1 if np.isfinite(r) else -1) for r in ranges], solids, 0.3)
    assert met.range[0, 0] == pytest.approx(expected)
    assert met.kind[0, 0] == (1 if np.isfinite(expected) else -1)
    # The light that passes beside the first surface is not returned by it.
    if expected == 5.0:
        assert met.cosine[0, 0] == pytest.approx(1.0 if ranges[0] == 5.0 else 0.25)
