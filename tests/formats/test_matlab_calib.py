"""Calib_Results.m: read as text, never run."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.datasets.marulan.sample import CALIB_RESULTS

from transect.errors import ParseError, UnsupportedError
from transect.formats.calibration.text_dialects import (
    camera_from_matlab,
    matlab_from_camera,
    variables_from_matlab,
)
from transect.types import CameraModel

finite = st.floats(-1e6, 1e6)


def test_the_reports_visual_camera_is_read():
    camera = camera_from_matlab(CALIB_RESULTS, "VideoVisual")
    assert camera.K.tolist() == [
        [1023.094873083798120, 0.0, 643.139025535655492],
        [0.0, 1020.891695892045050, 482.455417980580421],
        [0.0, 0.0, 1.0],
    ]
    expected = [-0.218504818968279, 0.138951469767851, -0.000755791245166, 0.000175881419552, 0.0]
    assert (camera.distortion, camera.coefficients.tolist()) == ("radtan", expected)
    assert (camera.name, camera.width, camera.height) == ("VideoVisual", 1360, 1024)


def test_only_numbers_that_are_assigned_are_taken():
    text = (
        "a = 1; b = [1 2; 3 4]; % c = 5\nd = [1, 2, 3]\ne = system('rm -rf /'); f = [x ; 2]; g = NaN; a = 2;"
    )
    found = variables_from_matlab(text)
    assert {name: value.tolist() for name, value in found.items() if name != "g"} == {
        "a": 2.0,
        "b": [[1, 2], [3, 4]],
        "d": [1, 2, 3],
    }
    assert np.isnan(found["g"])


@given(st.tuples(*[st.floats(1, 1e5)] * 2), st.tuples(finite, finite), st.lists(finite, max_size=5))
def test_a_camera_survives_the_file(focal: tuple[float, float], centre: tuple[float, float], kc: list[float]):
    K = np.array([[focal[0], 0, centre[0]], [0, focal[1], centre[1]], [0, 0, 1]])
    camera = CameraModel("c", 640, 480, K, "radtan", np.array(kc))
    again = camera_from_matlab(matlab_from_camera(camera), "c")
    assert again.K.tolist() == K.tolist()
    assert again.coefficients.tolist() == kc + [0.0] * (5 - len(kc))


def test_the_skew_is_relative_to_the_focal_length():
    camera = camera_from_matlab("fc = [100; 90]; cc = [5; 6]; alpha_c = 0.5;", "c")
    assert camera.K[0].tolist() == [100, 50, 5]
    assert camera_from_matlab(matlab_from_camera(camera), "c").K[0].tolist() == [100, 50, 5]


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("", "fc"),
        ("fc = [1; 2];", "cc"),
        ("fc = [1; 2; 3]; cc = [1; 2];", "fc"),
        ("fc = [1; NaN]; cc = [1; 2];", "fc"),
        ("fc = [1; 2]; cc = [1; 2]; kc = [1; 2];", "kc"),
    ],
)
def test_what_is_missing_is_named(text: str, missing: str):
    with pytest.raises(ParseError, match=f"^{missing} of a camera"):
        camera_from_matlab(text, "c")


@given(st.text(max_size=200))
def test_any_other_content_is_read_or_refused(text: str):
    with contextlib.suppress(ParseError):
        camera = camera_from_matlab(f"{text}\nfc = [1;2]; cc = [3;4];", "c")
        assert camera.K[0, 0] == 1


def test_distortions_that_the_toolbox_does_not_know_are_refused():
    with pytest.raises(UnsupportedError, match="cannot be written"):
        matlab_from_camera(CameraModel("c", 4, 3, np.eye(3), "equidistant", np.zeros(4)))
