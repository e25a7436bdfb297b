import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.geometry.strategies import vectors

from transect.errors import GeometryError
from transect.geometry import camera

K = np.array([[458.654, 0, 367.215], [0, 457.296, 248.375], [0, 0, 1]])
# EuRoC V1_01 cam0 as published in its sensor.yaml (radial-tangential, 752 x 480).
EUROC_DISTORTION = (-0.28340811, 0.07395907, 0.00019359, 1.76187114e-05)
RADIAL_3 = (0.1, -0.2, 0.001, -0.002, 0.05)
RATIONAL_DISTORTION = (-0.5, 0.2, 1e-3, -5e-4, 0.05, -0.2, 0.1, 0.01)
PINHOLES = [(), EUROC_DISTORTION, RADIAL_3, RATIONAL_DISTORTION]
FISHEYES = [(), (-0.01, 0.02, -0.005, 0.001), (0.01, -0.02, 0.003, -0.001)]
ZERO = np.zeros(3)


def ahead(n=500, half_angle=0.6):
    """Points in front of the camera, up to `half_angle` off the axis each way."""
    rng = np.random.default_rng(3)
    tangents = np.tan(rng.uniform(-half_angle, half_angle, (n, 2)))
    return np.column_stack([tangents, np.ones(n)]) * rng.uniform(0.5, 50, (n, 1))


def unit(points):
    return points / np.linalg.norm(points, axis=-1, keepdims=True)


def test_a_point_at_45_degrees_is_one_focal_length_from_the_centre():
    pixel = camera.project([2.0, 0, 2.0], [[100, 0, 50], [0, 100, 40], [0, 0, 1]])
    np.testing.assert_array_equal(pixel, [150, 40])


def test_a_fisheye_is_linear_in_the_angle_and_sees_sideways_and_behind():
    k = [[100, 0, 50], [0, 100, 40], [0, 0, 1]]
    pixels = camera.project([[1.0, 0, 1], [3, 0, 0], [0, 2, -2]], k, model="fisheye")
    np.testing.assert_allclose(pixels, [[50 + 25 * np.pi, 40], [50 + 50 * np.pi, 40], [50, 40 + 75 * np.pi]])


@pytest.mark.parametrize("distortion", PINHOLES)
def test_pinhole_projection_agrees_with_opencv(distortion):
    points = ahead()
    expected, _ = cv2.projectPoints(points, ZERO, ZERO, K, np.array(distortion) if distortion else None)
    np.testing.assert_allclose(camera.project(points, K, distortion), expected[:, 0], atol=1e-9)


@pytest.mark.parametrize("distortion", FISHEYES)
def test_fisheye_projection_agrees_with_opencv(distortion):
    points = ahead(half_angle=1.2)
    coefficients = np.array(distortion or (0, 0, 0, 0), float)
    expected, _ = cv2.fisheye.projectPoints(points[:, None], ZERO, ZERO, K, coefficients)
    np.testing.assert_allclose(camera.project(points, K, distortion, "fisheye"), expected[:, 0], atol=1e-9)


@pytest.mark.parametrize("distortion", PINHOLES[1:])
def test_undistorting_agrees_with_opencv_run_to_convergence(distortion):
    pixels = camera.project(ahead(), K, distortion)
    precise = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 200, 1e-12)
    expected = cv2.undistortPoints(pixels[:, None], K, np.array(distortion), criteria=precise)[:, 0]
    np.testing.assert_allclose(camera.unproject(pixels, K, distortion), unit(_on_plane(expected)), atol=1e-7)


@pytest.mark.parametrize("distortion", FISHEYES[1:])
def test_undistorting_a_fisheye_agrees_with_opencv(distortion):
    bent = camera.distort(ahead(half_angle=1.0)[:, :2] / 50, distortion, "fisheye")
    precise = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 200, 1e-12)
    expected = cv2.fisheye.undistortPoints(bent[:, None], np.eye(3), np.array(distortion), criteria=precise)[
        :, 0
    ]
    np.testing.assert_allclose(camera.undistort(bent, distortion, "fisheye"), expected, atol=1e-7)


def _on_plane(points):
    return np.column_stack([points, np.ones(len(points))])


@pytest.mark.parametrize("distortion", PINHOLES)
def test_rays_through_projected_points_lead_back_to_them(distortion):
    points = ahead()
    np.testing.assert_allclose(
        camera.unproject(camera.project(points, K, distortion), K, distortion), unit(points), atol=1e-12
    )


@pytest.mark.parametrize("distortion", FISHEYES)
def test_fisheye_rays_lead_back_wherever_the_lens_sees(distortion):
    points = np.random.default_rng(4).normal(size=(2000, 3))
    pixels = camera.project(points, K, distortion, "fisheye")
    rays = camera.unproject(pixels, K, distortion, "fisheye")
    seen = np.isfinite(pixels).all(axis=1)
    assert seen.sum() > 200
    np.testing.assert_allclose(rays[seen], unit(points)[seen], atol=1e-9)


@given(
    points=vectors(0.6, columns=2),
    radial=st.tuples(*[st.floats(-0.2, 0.2)] * 3),
    tangential=st.tuples(*[st.floats(-0.01, 0.01)] * 2),
)
def test_undistorting_undoes_distorting_for_any_mild_lens(points, radial, tangential):
    coefficients = (*radial[:2], *tangential, radial[2])
    np.testing.assert_allclose(
        camera.undistort(camera.distort(points, coefficients), coefficients), points, atol=1e-9
    )


def test_a_strong_barrel_is_undone_where_plain_fixed_point_iteration_fails():
    strong = (-0.3, 0.0, 0.0, 0.0)
    points = np.array([[1.0, 0.0]])  # the fold is at 1 / sqrt(0.9) = 1.054
    np.testing.assert_allclose(camera.undistort(camera.distort(points, strong), strong), points, atol=1e-6)


def test_a_point_behind_or_at_the_camera_has_no_pixel():
    points = [[0.1, 0.1, -1], [1, 1, 0], [0, 0, 0], [np.nan, 0, 1]]
    assert np.isnan(camera.project(points, K, EUROC_DISTORTION)).all()
    assert np.isnan(camera.project([[0, 0, 0], [0, 0, -1]], K, model="fisheye")).all()


def test_a_point_where_the_polynomial_folds_back_has_no_pixel():
    """r (1 - 0.3 r^2) grows up to r = 1.054; OpenCV would put r = 1.7 back into the image."""
    pixels = camera.project([[1.0, 0, 1], [1.7, 0, 1]], K, (-0.3, 0, 0, 0))
    assert np.isfinite(pixels[0]).all()
    assert np.isnan(pixels[1]).all()


def test_a_pixel_that_no_ray_reaches_is_nan_and_leaves_the_others_alone():
    """r (1 - 0.3 r^2) is never more than 0.703."""
    straight = camera.undistort([[0.71, 0], [0.6, 0], [np.nan, 0], [0, 0]], (-0.3, 0, 1e-4, 0))
    assert np.isnan(straight[[0, 2]]).all()
    np.testing.assert_allclose(camera.distort(straight[1], (-0.3, 0, 1e-4, 0)), [0.6, 0], atol=1e-10)
    np.testing.assert_allclose(straight[3], [0, 0], atol=1e-15)


@pytest.mark.parametrize("tiny", [5e-324, 1e-200, 1e-18])
def test_a_coefficient_that_is_almost_zero_changes_nothing(tiny):
    points = np.array([[0.5, 0.2], [-0.1, 0.9]])
    for lens in ((tiny, 0, 0, 0, tiny), (0, -tiny, 0, 0, 0, tiny, 0, tiny)):
        np.testing.assert_allclose(camera.undistort(camera.distort(points, lens), lens), points)


def test_a_pole_of_the_rational_model_is_a_limit_too():
    """r / (1 - r^2) has its pole at r = 1."""
    pole = (0, 0, 0, 0, 0, -1.0, 0, 0)
    bent = camera.distort([[0.9, 0], [1.1, 0]], pole)
    assert bent[0, 0] == pytest.approx(0.9 / 0.19)
    assert np.isnan(bent[1]).all()


def test_a_fisheye_point_beyond_90_degrees_has_no_place_on_the_plane():
    straight = camera.undistort([[1.5, 0], [1.6, 0]], (), "fisheye")
    np.testing.assert_allclose(straight[0], [np.tan(1.5), 0])
    assert np.isnan(straight[1]).all()


def test_projection_inverts_unprojection_with_skew():
    skewed = [[400, 3.0, 300], [0, 410, 200], [0, 0, 1]]
    points = ahead(50)
    np.testing.assert_allclose(
        camera.unproject(camera.project(points, skewed), skewed), unit(points), atol=1e-14
    )


def test_empty_arrays_give_empty_arrays():
    for model in ("pinhole", "fisheye"):
        assert camera.project(np.zeros((0, 3)), K, EUROC_DISTORTION, model).shape == (0, 2)
        assert camera.unproject(np.zeros((0, 2)), K, EUROC_DISTORTION, model).shape == (0, 3)
        assert camera.undistort(np.zeros((0, 2)), EUROC_DISTORTION, model).shape == (0, 2)


def test_the_field_of_view_is_between_the_outer_edges():
    width, focal = 640, 320
    k = [[focal, 0, (width - 1) / 2], [0, focal, 239.5], [0, 0, 1]]
    horizontal, vertical = camera.field_of_view(k, (width, 480))
    assert horizontal == pytest.approx(np.pi / 2)
    assert vertical == pytest.approx(2 * np.arctan(0.75))


def test_the_field_of_view_of_a_fisheye_may_be_more_than_half_a_turn():
    k = [[100, 0, 199.5], [0, 100, 199.5], [0, 0, 1]]
    assert camera.field_of_view(k, (400, 200), model="fisheye")[0] == pytest.approx(4.0)


def test_the_field_of_view_of_a_crop_is_what_is_left_of_the_whole():
    left, right = camera.crop_intrinsics(K, 0, 0), camera.crop_intrinsics(K, 500, 0)
    whole = camera.field_of_view(K, (752, 480))[0]
    assert camera.field_of_view(left, (500, 480))[0] + camera.field_of_view(right, (252, 480))[0] == (
        pytest.approx(whole)
    )


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_scaled_intrinsics_put_a_point_where_the_resized_image_shows_it(factor):
    points = ahead(20)
    pixels, resized = camera.project(points, K), camera.project(points, camera.scale_intrinsics(K, factor))
    np.testing.assert_allclose(resized, (pixels + 0.5) * factor - 0.5)


def test_both_scales_may_differ_and_the_field_of_view_stays():
    scaled = camera.scale_intrinsics(K, 0.25, 0.5)
    np.testing.assert_allclose(
        camera.field_of_view(scaled, (188, 240)), camera.field_of_view(K, (752, 480)), atol=1e-12
    )


def test_cropped_intrinsics_shift_the_pixels_and_leave_the_original_alone():
    before = K.copy()
    points = ahead(20)
    cropped = camera.project(points, camera.crop_intrinsics(K, 64, 41))
    np.testing.assert_allclose(cropped, camera.project(points, K) - [64, 41])
    np.testing.assert_array_equal(K, before)


def test_opencv_zeros_after_the_eighth_coefficient_are_accepted_and_others_refused():
    padded = (*RATIONAL_DISTORTION, 0, 0, 0, 0, 0, 0)
    np.testing.assert_array_equal(
        camera.distort([0.3, 0.2], padded), camera.distort([0.3, 0.2], RATIONAL_DISTORTION)
    )
    with pytest.raises(GeometryError, match="thin prism"):
        camera.distort([0.3, 0.2], (*RATIONAL_DISTORTION, 0.1, 0, 0, 0))


def test_wrong_numbers_of_coefficients_models_and_matrices_are_refused():
    with pytest.raises(GeometryError, match="expected 0, 4, 5, 8, 12, 14 coefficients, got 3"):
        camera.distort([0, 0], (1, 2, 3))
    with pytest.raises(GeometryError, match="fisheye distortion: expected 0, 4 coefficients, got 5"):
        camera.distort([0, 0], (1, 2, 3, 4, 5), "fisheye")
    with pytest.raises(GeometryError, match="unknown camera model 'omni'"):
        camera.project([0, 0, 1], K, model="omni")
    with pytest.raises(GeometryError, match="fx, fy > 0"):
        camera.project([0, 0, 1], np.zeros((3, 3)))
    with pytest.raises(GeometryError, match=r"expected shape \(3, 3\), got \(3, 4\)"):
        camera.project([0, 0, 1], np.zeros((3, 4)))
    with pytest.raises(GeometryError, match="scale greater than 0"):
        camera.scale_intrinsics(K, 0)
