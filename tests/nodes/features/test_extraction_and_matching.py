"""Detectors, descriptors, matchers and the tracker on pictures whose motion is known."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transect.algorithms.vision.features import grid_coverage, order_by_cell
from transect.engine import Node
from transect.errors import UsageError
from transect.nodes.features.features_2d import (
    AkazeDetectorDescriptor,
    FeaturesExtraction2D,
    HarrisDetector2D,
    OrbDescriptor,
    OrbDetectorDescriptor,
    SiftDescriptor,
    SiftDetectorDescriptor,
)
from transect.nodes.features.matching_2d import BruteForceMatcher, FlannMatcher, KltTracker
from transect.types import Features2D, Image

from .scenes import textured

SHIFT_PX = (7.0, -4.0)
DETECTORS = [
    HarrisDetector2D(count=200),
    OrbDetectorDescriptor(count=200),
    SiftDetectorDescriptor(count=200),
    AkazeDetectorDescriptor(count=200),
]


@pytest.fixture(scope="module")
def pictures() -> tuple[Image, Image]:
    return textured(noise=1.0), textured(moved=SHIFT_PX, noise=1.0)


def bytes_of(features: Features2D) -> list[bytes]:
    parts = (features.points, features.response, features.size, features.angle, features.descriptors)
    return [part.tobytes() for part in parts if part is not None]


def named(node: Node) -> str:
    return type(node).__name__


@pytest.mark.parametrize("detector", DETECTORS, ids=named)
def test_a_detector_finds_points_all_over_and_the_same_bytes_again(
    detector: FeaturesExtraction2D, pictures: tuple[Image, Image]
):
    first = detector(pictures[0])
    again = detector(pictures[0])
    detector.reset()
    assert bytes_of(first.features) == bytes_of(again.features) == bytes_of(detector(pictures[0]).features)
    assert 100 <= len(first.features) <= 200
    assert first.coverage > 0.5  # ORB leaves out a border of 31 px, half of the cells of so small a picture
    assert (first.features.t_ns, first.features.frame, first.features.camera) == (
        3,
        "left",
        pictures[0].camera,
    )


@pytest.mark.parametrize("detector", DETECTORS, ids=named)
def test_points_move_as_the_picture_does(detector: FeaturesExtraction2D, pictures: tuple[Image, Image]):
    """To half a pixel for most: the detectors are not all made for fractions of one."""
    before, after = (detector(each).features.points for each in pictures)
    apart = np.linalg.norm(before[:, None] + SHIFT_PX - after[None], axis=2).min(axis=1)
    assert np.mean(apart < 0.5) > 0.5


@pytest.mark.parametrize("detector", DETECTORS, ids=named)
def test_nothing_is_found_where_there_is_nothing(detector: FeaturesExtraction2D):
    assert detector(Image(np.full((100, 120), 90, np.uint8))) is None


def test_pixels_that_were_not_measured_have_no_points(pictures: tuple[Image, Image]):
    half = np.zeros(pictures[0].data.shape, np.bool_)
    half[:, 140:] = True
    found = OrbDetectorDescriptor(cell=0)(dataclasses.replace(pictures[0], valid=half)).features
    assert found.points[:, 0].min() >= 139


def test_colour_and_more_bits_give_points_too(pictures: tuple[Image, Image]):
    gray = pictures[0].data
    deep = Image(gray.astype(np.uint16) * 16, "gray")
    colour = Image(np.repeat(gray[..., None], 3, axis=2), "rgb")
    reference = HarrisDetector2D()(pictures[0]).features.points
    np.testing.assert_array_equal(HarrisDetector2D()(colour).features.points, reference)
    assert len(HarrisDetector2D()(deep).features) > 100


@given(st.integers(1, 60), st.integers(0, 50), st.integers(0, 1000))
def test_every_point_is_taken_once_and_the_best_of_each_cell_first(n: int, cell: int, seed: int):
    rng = np.random.default_rng(seed)
    points = rng.uniform(0, 100, (n, 2)).astype(np.float32)
    response = rng.integers(0, 5, n).astype(np.float32)
    order = order_by_cell(points, response, cell)
    assert sorted(order) == list(range(n))
    cells = np.zeros(n) if not cell else points[:, 1] // cell * 1000 + points[:, 0] // cell
    leaders = order[: len(np.unique(cells))]
    if cell:
        assert len(np.unique(cells[leaders])) == len(leaders)
    assert all(response[k] == response[cells == cells[k]].max() for k in leaders)


def test_coverage_counts_the_cells_of_6_by_8():
    image = Image(np.zeros((60, 80), np.uint8))
    assert grid_coverage(np.array([[5.0, 5.0], [6.0, 6.0], [79.4, 59.4]], np.float32), image) == 2 / 48


@pytest.mark.parametrize("matcher", [BruteForceMatcher(), FlannMatcher()], ids=named)
@pytest.mark.parametrize("detector", DETECTORS[1:], ids=named)
def test_matches_move_as_the_picture_does(detector, matcher, pictures: tuple[Image, Image]):
    source, sink = (detector(each).features for each in pictures)
    found = matcher(source, sink)
    again = matcher(source, sink)
    matcher.reset()
    third = matcher(source, sink)
    for part in ("source", "sink", "probability", "source_index", "sink_index"):
        first = getattr(found.matches, part).tobytes()
        assert first == getattr(again.matches, part).tobytes() == getattr(third.matches, part).tobytes()
    off = np.linalg.norm(found.matches.sink - found.matches.source - SHIFT_PX, axis=1)
    assert np.mean(off < 2) > 0.95
    assert found.matched == len(found.matches) / min(len(source), len(sink)) > 0.2
    np.testing.assert_array_equal(source.points[found.matches.source_index], found.matches.source)
    np.testing.assert_array_equal(sink.points[found.matches.sink_index], found.matches.sink)


def test_the_cross_check_leaves_at_most_one_match_per_feature(pictures: tuple[Image, Image]):
    source, sink = (DETECTORS[1](each).features for each in pictures)
    loose = BruteForceMatcher(ratio=1.0, cross_check=False)(source, sink).matches
    strict = BruteForceMatcher(ratio=1.0)(source, sink).matches
    assert len(np.unique(loose.sink_index)) < len(loose)
    assert len(np.unique(strict.sink_index)) == len(strict)


def test_strangers_are_not_matched(pictures: tuple[Image, Image]):
    source, sink = DETECTORS[2](pictures[0]).features, DETECTORS[2](textured(seed=9)).features
    assert BruteForceMatcher()(source, sink) is None


def test_features_without_descriptors_cannot_be_matched(pictures: tuple[Image, Image]):
    plain = [DETECTORS[0](each).features for each in pictures]
    with pytest.raises(UsageError, match="no descriptors"):
        BruteForceMatcher()(*plain)


@pytest.mark.parametrize("descriptor", [OrbDescriptor(), SiftDescriptor()], ids=named)
def test_corners_are_described_and_then_match(descriptor, pictures: tuple[Image, Image]):
    corners = [DETECTORS[0](each).features for each in pictures]
    one, other = (descriptor(*each) for each in zip(pictures, corners, strict=True))
    assert len(one.features) == len(one.features.descriptors) == round(one.described * len(corners[0]))
    kept = {tuple(point) for point in corners[0].points.tolist()}
    assert {tuple(point) for point in one.features.points.tolist()} <= kept
    matches = BruteForceMatcher()(one.features, other.features).matches
    assert np.mean(np.linalg.norm(matches.sink - matches.source - SHIFT_PX, axis=1) < 2) > 0.9


def test_orb_cannot_describe_what_is_at_the_edge(pictures: tuple[Image, Image]):
    at_edge = Features2D(np.array([[2.0, 2.0]], np.float32))
    assert OrbDescriptor()(pictures[0], at_edge) is None
    both = Features2D(np.array([[2.0, 2.0], [100, 100]], np.float32))
    described = OrbDescriptor()(pictures[0], both)
    np.testing.assert_array_equal(described.features.points, [[100, 100]])
    assert described.described == 0.5


def test_the_tracker_follows_to_a_tenth_of_a_pixel_and_gives_the_same_bytes(pictures: tuple[Image, Image]):
    moved = (3.4, -2.3)
    after = textured(moved=moved, noise=1.0)
    corners = DETECTORS[0](pictures[0]).features
    tracker = KltTracker()
    found = tracker(pictures[0], after, corners)
    tracker.reset()
    assert tracker(pictures[0], after, corners).matches.sink.tobytes() == found.matches.sink.tobytes()
    off = np.linalg.norm(found.matches.sink - found.matches.source - moved, axis=1)
    assert np.median(off) < 0.1
    assert found.tracked == len(found.matches) / len(corners) > 0.8
    assert ((found.matches.probability >= 0) & (found.matches.probability <= 1)).all()
    np.testing.assert_array_equal(corners.points[found.matches.source_index], found.matches.source)


def test_nothing_is_followed_onto_pixels_that_were_not_measured(pictures: tuple[Image, Image]):
    corners = DETECTORS[0](pictures[0]).features
    half = np.zeros(pictures[1].data.shape, np.bool_)
    half[:, 140:] = True
    found = KltTracker()(pictures[0], dataclasses.replace(pictures[1], valid=half), corners)
    assert found.matches.sink[:, 0].min() > 139


def test_an_image_is_not_held_against_itself(pictures: tuple[Image, Image]):
    features = DETECTORS[1](pictures[0]).features
    assert KltTracker()(pictures[0], pictures[0], features) is None
    assert BruteForceMatcher()(features, features) is None


def test_the_tracker_loses_what_is_not_there(pictures: tuple[Image, Image]):
    corners = DETECTORS[0](pictures[0]).features
    assert KltTracker()(pictures[0], textured(seed=9), corners) is None
