import numpy as np
import pymap3d
import pyproj
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.geometry.strategies import vectors

from transect.errors import GeometryError
from transect.geometry import geodesy
from transect.geometry.geodesy import Zone

# AMEDS section 5: the ARCHES lander, origin of the NED world.
LANDER = np.array([np.radians(37.72351), np.radians(15.00668), 2639.838])
PYMAP3D = {
    "ENU": (pymap3d.geodetic2enu, [0, 1, 2], [1, 1, 1]),
    "NED": (pymap3d.geodetic2ned, [0, 1, 2], [1, 1, 1]),
    "NWU": (pymap3d.geodetic2enu, [1, 0, 2], [1, -1, 1]),
}


def everywhere(lowest=-500.0, highest=10_000.0):
    latitude, longitude = st.floats(-np.pi / 2, np.pi / 2), st.floats(-np.pi, np.pi)
    row = st.tuples(latitude, longitude, st.floats(lowest, highest))
    return st.lists(row, min_size=1, max_size=6).map(np.array)


def around_the_globe(n=2000):
    rng = np.random.default_rng(11)
    low, high = [-np.pi / 2, -np.pi, -500], [np.pi / 2, np.pi, 10_000]
    corners = np.radians([[90, 0, 0], [-90, 0, 0], [0, 180, 0], [0, -180, 0], [37.7, 180, 0]])
    return np.vstack([rng.uniform(low, high, (n, 3)), corners])


def around_the_lander(n=500, metres=3000.0):
    span = metres / 6.4e6
    return LANDER + np.random.default_rng(12).uniform(-1, 1, (n, 3)) * [span, span, 500]


# ECEF


def test_the_axes_of_the_ellipsoid():
    """WGS84: a = 6378137 m and b = 6356752.314245 m (NIMA TR8350.2, table 3.3)."""
    points = geodesy.ecef_from_geodetic(
        [[0, 0, 0], [0, np.pi / 2, 0], [np.pi / 2, 0, 0], [-np.pi / 2, 1, 10]]
    )
    expected = [[6378137, 0, 0], [0, 6378137, 0], [0, 0, 6356752.314245], [0, 0, -6356762.314245]]
    np.testing.assert_allclose(points, expected, atol=1e-6)


def test_ecef_agrees_with_pymap3d_both_ways():
    points = around_the_globe()
    ecef = geodesy.ecef_from_geodetic(points)
    np.testing.assert_allclose(ecef, np.column_stack(pymap3d.geodetic2ecef(*points.T, deg=False)), atol=1e-6)
    back, expected = (
        geodesy.geodetic_from_ecef(ecef),
        np.column_stack(pymap3d.ecef2geodetic(*ecef.T, deg=False)),
    )
    np.testing.assert_allclose(back[:, 0], expected[:, 0], atol=1e-9)
    np.testing.assert_allclose(back[:, 2], expected[:, 2], atol=1e-6)


@given(everywhere(lowest=-1e6, highest=1e8))
def test_geodetic_points_survive_a_round_trip_through_ecef_at_all_heights(points):
    back = geodesy.geodetic_from_ecef(geodesy.ecef_from_geodetic(points))
    np.testing.assert_allclose(back[:, 0], points[:, 0], atol=1e-12)
    np.testing.assert_allclose(back[:, 2], points[:, 2], atol=1e-6)
    # Longitudes turn round at the antimeridian and mean nothing at the poles.
    apart = np.cos(points[:, 0]) * np.sin((back[:, 1] - points[:, 1]) / 2)
    np.testing.assert_allclose(apart, 0, atol=1e-12)


def test_the_poles_have_a_height():
    back = geodesy.geodetic_from_ecef([[0, 0, 6356752.314245179 + 100], [0, 0, -6356752.314245179]])
    np.testing.assert_allclose(back, [[np.pi / 2, 0, 100], [-np.pi / 2, 0, 0]], atol=1e-8)


def test_the_centre_of_the_earth_means_no_fix():
    points = geodesy.geodetic_from_ecef([[0, 0, 0], [6378137, 0, 0]])
    assert np.isnan(points[0]).all()
    np.testing.assert_allclose(points[1], [0, 0, 0], atol=1e-9)


def test_degrees_in_place_of_radians_are_noticed():
    with pytest.raises(GeometryError, match="degrees"):
        geodesy.ecef_from_geodetic([[37.72351, 15.00668, 2639.838]])


# Local frames


@pytest.mark.parametrize("axes", ["ENU", "NED", "NWU"])
def test_local_points_around_the_lander_agree_with_pymap3d(axes):
    function, order, signs = PYMAP3D[axes]
    points = around_the_lander()
    expected = np.column_stack(function(*points.T, *LANDER, deg=False))[:, order] * signs
    np.testing.assert_allclose(geodesy.local_from_geodetic(points, LANDER, axes), expected, atol=1e-6)


@pytest.mark.parametrize("axes", ["ENU", "NED", "NWU"])
@given(points=vectors(20_000))
def test_local_points_survive_a_round_trip_through_geodetic(axes, points):
    geodetic = geodesy.geodetic_from_local(points, LANDER, axes)
    np.testing.assert_allclose(geodesy.local_from_geodetic(geodetic, LANDER, axes), points, atol=1e-6)


@pytest.mark.parametrize(
    ("axes", "north", "east", "up"),
    [("ENU", 1, 0, 2), ("NED", 0, 1, 2), ("NWU", 0, 1, 2)],
)
def test_north_east_and_up_of_the_lander_are_where_the_name_says(axes, north, east, up):
    further = LANDER + np.diag([1e-6, 1e-6, 1])
    local = geodesy.local_from_geodetic(further, LANDER, axes)
    assert local[0, north] > 6.3
    assert local[1, east] * (-1 if axes == "NWU" else 1) > 5.0
    assert local[2, up] * (-1 if axes == "NED" else 1) == pytest.approx(1)


@given(everywhere(), st.sampled_from(["ENU", "NED", "NWU"]))
def test_every_origin_is_at_zero_and_its_axes_are_a_rotation(origins, axes):
    for origin in origins:
        np.testing.assert_allclose(geodesy.local_from_geodetic(origin, origin, axes), 0, atol=1e-8)
        r = geodesy.ecef_from_axes(origin, axes)
        np.testing.assert_allclose(r @ r.T, np.eye(3), atol=1e-14)
        assert np.linalg.det(r) == pytest.approx(1)


def test_a_step_across_the_antimeridian_is_short():
    origin, beyond = np.array([0.1, np.pi - 1e-6, 0.0]), np.array([0.1, -np.pi + 1e-6, 0.0])
    east, north, _ = geodesy.local_from_geodetic(beyond, origin)
    assert east == pytest.approx(2e-6 * 6378137 * np.cos(0.1), rel=1e-4)
    assert abs(north) < 1e-3


def test_a_local_frame_at_the_pole_works():
    points = np.array([[100.0, 200, 3], [0, 0, 0]])
    pole = np.array([np.pi / 2, 0.3, 10.0])
    back = geodesy.local_from_geodetic(geodesy.geodetic_from_local(points, pole, "NED"), pole, "NED")
    np.testing.assert_allclose(back, points, atol=1e-6)


def test_axes_are_changed_by_hand_worked_signs():
    ned = [1.0, 2.0, 3.0]
    np.testing.assert_array_equal(geodesy.change_axes(ned, "NED", "NWU"), [1, -2, -3])
    np.testing.assert_array_equal(geodesy.change_axes(ned, "NED", "ENU"), [2, 1, -3])
    np.testing.assert_array_equal(geodesy.change_axes([1.0, 2, 3], "NWU", "ENU"), [-2, 1, 3])
    with pytest.raises(GeometryError, match="unknown local axes 'SEU'"):
        geodesy.change_axes(ned, "SEU", "ENU")


def test_nan_rows_and_empty_arrays_pass_through():
    points = np.array([[np.nan, np.nan, np.nan], LANDER])
    local = geodesy.local_from_geodetic(points, LANDER, "NED")
    assert np.isnan(local[0]).all()
    np.testing.assert_allclose(local[1], 0, atol=1e-8)
    assert np.isnan(geodesy.geodetic_from_ecef([[np.nan, 0, 6.4e6]])).all()
    assert geodesy.geodetic_from_local(np.zeros((0, 3)), LANDER).shape == (0, 3)
    assert geodesy.geodetic_from_utm(np.zeros((0, 3)), Zone(33, True)).shape == (0, 3)


# UTM


def test_the_lander_in_utm_agrees_with_the_epsg_registry():
    points = around_the_lander()
    utm, zone = geodesy.utm_from_geodetic(points)
    assert zone == Zone(33, True)
    assert str(zone) == "33N"
    registry = pyproj.Transformer.from_crs(4326, 32633, always_xy=True)
    expected = registry.transform(np.degrees(points[:, 1]), np.degrees(points[:, 0]))
    np.testing.assert_allclose(utm[:, :2], np.column_stack(expected), atol=1e-6)
    np.testing.assert_array_equal(utm[:, 2], points[:, 2])


@pytest.mark.parametrize(
    ("latitude", "longitude", "name"),
    [
        (0.0, -180.0, "1N"),
        (0.0, 180.0, "1N"),
        (-33.8688, 151.2093, "56S"),  # Sydney
        (-33.1, -60.4, "20S"),  # Rosario, where the weeding robot drove
        (60.39, 5.32, "32N"),  # Bergen: western Norway belongs to 32
        (78.22, 15.65, "33N"),  # Longyearbyen: Svalbard has four wide zones
        (78.0, 8.99, "31N"),
        (78.0, 9.0, "33N"),
        (78.0, 21.0, "35N"),
        (83.9, 33.0, "37N"),
        (51.0, 185.0, "1N"),
    ],
)
def test_zones_and_their_exceptions(latitude, longitude, name):
    assert str(geodesy.utm_zone(np.radians([latitude, longitude, 0]))) == name


def test_zones_agree_with_those_that_pyproj_finds():
    rng = np.random.default_rng(13)
    for latitude, longitude in rng.uniform([-79, -180], [83, 180], (8, 2)):
        area = pyproj.aoi.AreaOfInterest(longitude, latitude, longitude, latitude)
        codes = {info.code for info in pyproj.database.query_utm_crs_info("WGS 84", area)}
        number, north = geodesy.utm_zone(np.radians([latitude, longitude, 0]))
        irregular = (56 <= latitude < 64 and 3 <= longitude < 12) or (latitude >= 72 and 0 <= longitude < 42)
        assert irregular or f"{326 if north else 327}{number:02d}" in codes


@given(
    points=hnp.arrays(
        np.float64, st.tuples(st.integers(1, 5), st.just(3)), elements=st.floats(-1, 1, allow_subnormal=False)
    )
)
def test_geodetic_points_survive_a_round_trip_through_utm(points):
    points = points * [np.radians(80), np.radians(3), 5000] + [0, np.radians(15), 0]
    for zone in (Zone(33, True), Zone(33, False)):
        utm, _ = geodesy.utm_from_geodetic(points, zone)
        np.testing.assert_allclose(geodesy.geodetic_from_utm(utm, zone), points, atol=1e-9)


def test_a_track_across_a_border_stays_in_one_piece():
    """12 degrees east is the border of 32 and 33."""
    points = np.radians([[45, 11.999, 0], [45, 12.001, 0]])
    utm, zone = geodesy.utm_from_geodetic(points)
    assert zone.number == 32
    assert np.linalg.norm(utm[1] - utm[0]) == pytest.approx(157.7, abs=1.0)


def test_a_row_that_was_not_measured_is_nan_in_utm_and_does_not_choose_the_zone():
    utm, zone = geodesy.utm_from_geodetic([[np.nan, np.nan, 0], LANDER])
    assert zone == Zone(33, True)
    assert np.isnan(utm[0]).all()
    assert np.isfinite(utm[1]).all()
    with pytest.raises(GeometryError, match="no UTM zone can be chosen"):
        geodesy.utm_from_geodetic(np.full((2, 3), np.nan))


@pytest.mark.parametrize("latitude", [-80.1, 84.1, 90])
def test_there_is_no_zone_at_the_poles(latitude):
    with pytest.raises(GeometryError, match="no UTM zone at latitude"):
        geodesy.utm_zone(np.radians([latitude, 0, 0]))


@pytest.mark.parametrize(("latitude", "longitude"), [(60, 17.5), (60, 12.5), (-40, 17.5), (-40, 12.5)])
def test_grid_convergence_is_the_angle_of_true_north_on_the_grid(latitude, longitude):
    point, zone = np.radians([latitude, longitude, 0]), Zone(33, latitude >= 0)
    (here, there), _ = geodesy.utm_from_geodetic([point, point + np.array([1e-6, 0, 0])], zone)
    east, north, _ = there - here
    grid_bearing_of_true_north = np.arctan2(east, north)
    convergence = geodesy.grid_convergence([point], zone)[0]
    assert grid_bearing_of_true_north == pytest.approx(0 - convergence, abs=1e-6)
    assert convergence == pytest.approx(np.radians(longitude - 15) * np.sin(np.radians(latitude)), rel=1e-2)


def test_grid_convergence_of_nan_is_nan():
    result = geodesy.grid_convergence([[np.nan, 0.2, 0], LANDER], Zone(33, True))
    assert np.isnan(result[0])
    assert np.isfinite(result[1])
