"""Dust, smoke, fog and rain against what chapter 5 of document 004 says of them, statement by statement."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from tests.simulation.faults.scene import START_NS, WALL_DISTANCE_M, scene

from transect.recording import Recording, arrow
from transect.simulation.faults import inject
from transect.simulation.faults.air import Air, through

CLEAR = scene("LaserHorizontal", "RadarRangeBearing", "RadarSpectrum", "VideoVisual", "VideoIR", "Lidar")
LASER = "LaserHorizontal"


@pytest.fixture(scope="module")
def dust() -> Recording:
    return inject(CLEAR, "dust", 1.0, seed=2)[0]


@pytest.fixture(scope="module")
def smoke() -> Recording:
    return inject(CLEAR, "smoke", 1.0, seed=2)[0]


@pytest.fixture(scope="module")
def rain() -> Recording:
    return inject(CLEAR, "rain", 1.0, seed=2)[0]


def scans(recording: Recording) -> np.ndarray:
    """Return ranges, infinite where nothing came back."""
    return np.nan_to_num(np.array(recording[LASER].table.column("ranges").to_pylist()), nan=np.inf)


def early(recording: Recording) -> np.ndarray:
    """Return which beams have a return well before the surface; beams without a surface count, too."""
    return scans(recording) < scans(CLEAR) - 0.5


def isolated(short: np.ndarray) -> float:
    """Return the fraction of early beams without an early neighbour within two beams and one scan."""
    near = np.zeros(short.shape, dtype=int)
    for scan in (-1, 0, 1):
        for beam in (-2, -1, 0, 1, 2):
            near += np.roll(np.roll(short, scan, axis=0), beam, axis=1)
    return float((near[short] == 1).mean())


def in_the_event(recording: Recording) -> np.ndarray:
    """Return the scans in which something happens."""
    return early(recording).any(axis=1)


@given(
    st.floats(0.1, 3.0),
    st.floats(0.2, 3.0),
    st.tuples(*[st.floats(-8.0, 8.0)] * 3),
    st.floats(0.0, 2.0),
    st.floats(0.1, 20.0),
)
def test_the_optical_depth_of_a_beam_is_the_integral_of_the_extinction_along_it(
    strength: float, size: float, place: tuple[float, float, float], heading: float, reach: float
) -> None:
    one = np.ones(1)
    air = Air(np.array([place]), np.zeros(3), 0 * one, 4 * one, size * one, strength * one, background=0.01)
    way = np.array([np.cos(heading), np.sin(heading), 0.0])

    def extinction(s: float) -> float:
        away = np.linalg.norm(s * way - np.array(place))
        return strength * float(np.exp(-(away**2) / (2 * size**2))) + 0.01

    beams = through(air, np.zeros(1), np.zeros(3), way[None])
    nearest = float(np.clip(way @ np.array(place), 0.0, reach))
    expected = quad(extinction, 0, nearest)[0] + quad(extinction, nearest, reach)[0]
    assert beams.depth(np.array([reach]))[0] == pytest.approx(expected, abs=1e-6)
    half = np.array([expected / 2])
    found = beams.range_at(half, np.array([reach]))
    assert beams.depth(found)[0] == pytest.approx(half[0], abs=1e-3 * (strength + 1))


def test_lasers_are_extremely_affected_by_dust(dust: Recording) -> None:
    """5.1: heavy dust hides most of the scene while it passes (prototype: 0.66 of the beams)."""
    share = early(dust)[in_the_event(dust)].mean()
    assert 0.3 < share < 0.9


def test_a_cloud_of_smoke_is_almost_seen_as_an_actual_obstacle(smoke: Recording) -> None:
    """5.1: nearly all beams towards the test area have a return from the plume, which is connected."""
    area = slice(90 - 38, 90 + 38)  # degrees: between its front poles, as in the figures of chapter 5
    ahead = early(smoke)[in_the_event(smoke), area]
    assert np.median(ahead.mean(axis=1)) > 0.9
    assert isolated(early(smoke)) < 0.2


def test_smoke_stands_between_the_sensors_and_the_test_area(smoke: Recording) -> None:
    """4.2.1, dataset 07; the area begins 2.93 m ahead of the sensors (Table 1)."""
    nearest, middle = np.percentile(scans(smoke)[early(smoke)], [5, 50])
    assert nearest > 0.8
    assert 1.5 < middle < 4.0


@pytest.mark.parametrize("fault", ["dust", "smoke", "fog", "rain"])
def test_false_returns_lie_between_the_vehicle_and_the_obstacle(fault: str) -> None:
    """5.1: random points, located between the vehicle and the actual position of the obstacle."""
    changed, _ = inject(CLEAR, fault, 1.0, seed=4)
    old, new = scans(CLEAR), scans(changed)
    other = old != new
    returned = other & (new < 80.0)
    assert returned.any()
    assert (new[returned] > 0.0).all()
    assert (new[returned] < old[returned]).all()
    lost = other & ~returned
    np.testing.assert_array_equal(new[lost], np.full(lost.sum(), np.inf))
    codes = np.array(changed[LASER].table.column("range_error").to_pylist())
    np.testing.assert_array_equal(codes, np.where(np.isinf(new), 8191, 0))  # the laser's own code for nothing


def test_dust_makes_random_points(dust: Recording) -> None:
    """5.1, Fig. 28: a beam's range jumps from scan to scan (prototype: about 1 m)."""
    new, short = scans(dust), early(dust)
    both = short[1:] & short[:-1]
    assert 0.3 < np.median(np.abs(new[1:][both] - new[:-1][both])) < 3.0


@pytest.mark.parametrize("fault", ["dust", "smoke"])
def test_the_ranges_of_the_radar_are_not_visibly_affected(fault: str, request: pytest.FixtureRequest) -> None:
    """5.1: except for a slight increase of the noise, and lower reflectivities."""
    changed: Recording = request.getfixturevalue(fault)
    before, after = CLEAR["RadarRangeBearing"], changed["RadarRangeBearing"]
    wall = WALL_DISTANCE_M / np.cos(before["angle"])
    event = after["reflectivity"] != before["reflectivity"]
    assert event.any()
    ratio = (after["range"] - wall)[event].std() / (before["range"] - wall)[event].std()
    assert 1.0 < ratio < 1.5
    weaker = (before["reflectivity"] - after["reflectivity"])[event]
    assert (weaker > 0).all()
    assert weaker.mean() < 2.0  # dB
    spectrum = CLEAR["RadarSpectrum"].column("reflectivity") - changed["RadarSpectrum"].column("reflectivity")
    assert 0.0 < spectrum.mean() < 2.0
    assert (spectrum >= 0.0).all()


def test_where_the_laser_sees_dust_the_radar_sees_the_wall(dust: Recording) -> None:
    """Laser against radar: nine of ten early beams are shorter than the radar's range at that bearing."""
    angles = np.radians(np.arange(-90.0, 91.0))
    order = np.argsort(dust["RadarRangeBearing"]["angle"][:50])
    bearing, distance = (dust["RadarRangeBearing"][n][:50][order] for n in ("angle", "range"))
    seen = (np.abs(angles) < np.radians(38.0))[None] & early(dust)
    there = np.interp(angles, bearing, distance)
    shorter = scans(dust) < there - (0.5 + 3 * 0.13)
    assert shorter[seen].mean() > 0.9


def test_the_laser_is_not_significantly_affected_by_rain(rain: Recording, dust: Recording) -> None:
    """5.2: except for a small number of isolated returns; they are isolated, spatially and temporally."""
    share = early(rain).mean()
    assert 0.0 < share < 0.005
    assert early(dust).mean() > 10 * share
    assert isolated(early(rain)) > 0.85


@pytest.mark.parametrize("name", ["VideoVisual", "VideoIR"])
def test_rain_leaves_a_few_streaks_in_images_that_the_next_has_elsewhere(rain: Recording, name: str) -> None:
    """The report says nothing of rain on images; drops are isolated, spatially and temporally, as in 5.2."""
    pairs = [(a.value.data, b.value.data) for a, b in zip(CLEAR[name], rain[name], strict=True)]
    wet = [(a != b).reshape(48, 64, -1).any(axis=2) for a, b in pairs]
    touched = [one for one in wet if one.any()]
    assert 20 <= len(touched) <= 40  # half of 80: the rest of the recording is dry
    assert max(one.mean() for one in touched) < 0.15
    overlaps = [(a & b).sum() / a.sum() for a, b in pairwise(touched)]
    assert np.mean(overlaps) < 0.15


def test_rain_shows_less_in_the_infrared_than_in_the_visual_images(rain: Recording) -> None:
    """5.3: infra-red waves have a higher penetration power."""

    def changed(name: str) -> float:
        pairs = zip(CLEAR[name], rain[name], strict=True)
        return float(np.mean([(a.value.data != b.value.data).mean() for a, b in pairs]))

    assert 0 < changed("VideoIR") < 0.5 * changed("VideoVisual")


def contrast(recording: Recording, name: str) -> np.ndarray:
    """Return the standard deviation along one line of each image."""
    return np.array([np.asarray(s.value.data, float)[24].std(axis=0).mean() for s in recording[name]])


@pytest.mark.parametrize("fault", ["dust", "smoke"])
def test_the_effect_is_lower_on_the_infrared_data(fault: str, request: pytest.FixtureRequest) -> None:
    """5.3: both cameras are affected; infra-red waves have a higher penetration power."""
    changed: Recording = request.getfixturevalue(fault)
    lost = {n: 1 - contrast(changed, n) / contrast(CLEAR, n) for n in ("VideoVisual", "VideoIR")}
    event = lost["VideoVisual"] > 0.2
    assert event.any()
    assert (lost["VideoVisual"] >= lost["VideoIR"] - 0.02).all()
    assert lost["VideoIR"][event].mean() > 0.05
    assert (lost["VideoVisual"] - lost["VideoIR"])[event].mean() > 0.1


def test_behind_smoke_few_features_can_be_identified(smoke: Recording) -> None:
    """5.3, Fig. 38: the R, G, B signals of a line are flat, and orange."""
    lost = 1 - contrast(smoke, "VideoVisual") / contrast(CLEAR, "VideoVisual")
    worst = int(np.argmax(lost))
    assert lost[worst] > 0.6
    red, _, blue = smoke["VideoVisual"][worst].value.data.reshape(-1, 3).astype(float).mean(axis=0)
    assert red - blue > 50


def test_a_clear_day_begins_and_ends_clear(dust: Recording) -> None:
    """4.2: dust passes; the recording starts and ends in clear conditions."""
    seconds = (dust["truth/faults"].t_ns - START_NS) / 1e9
    assert seconds.min() >= 5.0
    assert seconds.max() <= 15.0


def test_the_wind_carries_the_dust_across_the_view() -> None:
    changed, _ = inject(CLEAR, "dust", 1.0, seed=2, parameters={"rate": 0.1, "size": 0.6})
    short, beams = early(changed), np.arange(181)
    event = np.flatnonzero(short.sum(axis=1) > 3)
    middle = np.array([beams[short[i]].mean() for i in event])
    first, last = middle[: len(middle) // 4].mean(), middle[-(len(middle) // 4) :].mean()
    assert abs(last - first) > 10  # degrees


def test_the_laser_the_lidar_and_the_cameras_see_the_same_puffs() -> None:
    changed, labels = inject(CLEAR, "dust", 1.0, seed=7, parameters={"rate": 0.1})
    names = np.array(arrow.texts(labels, "stream"))
    spans = {}
    for name in (LASER, "Lidar", "VideoVisual"):
        t = (arrow.numbers(labels, "t_ns")[names == name] - START_NS) / 1e9
        weight = arrow.numbers(labels, "fraction")[names == name]
        spans[name] = float(np.average(t, weights=weight))
    assert max(spans.values()) - min(spans.values()) < 1.5
    assert changed["Lidar"][20].value.fields["intensity"].min() <= 100.0


def test_the_points_of_a_lidar_that_dust_returned_stay_on_their_beams(dust: Recording) -> None:
    hit = 0
    for before, after in zip(CLEAR["Lidar"], dust["Lidar"], strict=True):
        old, new = before.value, after.value
        if len(old) != len(new):
            continue  # some points were swallowed
        turn = np.einsum("ni,ni->n", old.points, new.points)
        lengths = np.linalg.norm(old.points, axis=1) * np.linalg.norm(new.points, axis=1)
        np.testing.assert_allclose(turn, lengths, rtol=1e-5)
        nearer = np.linalg.norm(new.points, axis=1) < np.linalg.norm(old.points, axis=1) - 1e-3
        np.testing.assert_allclose(new.fields["intensity"][nearer], 20.0)
        hit += int(nearer.sum())
    assert hit > 10


def test_fog_shortens_the_sight_of_everything_evenly() -> None:
    changed, labels = inject(CLEAR, "fog", 1.0)
    names = np.array(arrow.texts(labels, "stream"))
    shares = arrow.numbers(labels, "fraction")[names == "VideoVisual"]
    # Koschmieder: in a visibility of 20 m, exp(-3.912 * 15 / 20) of the light comes 15 m far.
    np.testing.assert_allclose(shares, 1 - np.exp(-3.912 * 0.75), rtol=1e-6)
    assert early(changed)[80].mean() > 0.3


def test_the_fraction_of_a_scan_is_that_of_its_beams(dust: Recording) -> None:
    labels = dust["truth/faults"]
    own = np.array([n == LASER for n in labels["stream"]])
    other = (scans(CLEAR) != scans(dust)).mean(axis=1)
    np.testing.assert_allclose(labels["fraction"][own], other[labels["index"][own]])
