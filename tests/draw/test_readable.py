"""Figures of long names and of very small, large or narrow things: no text is cut off or overlaps."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from transect.draw.clouds import cloud_figure, map_figure
from transect.draw.evaluation import (
    DriftCurve,
    box_figure,
    drift_figure,
    error_figure,
    path_figure,
    trajectories_figure,
    trajectory_figure,
)

NAME = "VisualOdometry/KltKeyframes:trajectory on rosario_sequence_06_of_a_long_day"
REFERENCE = "Gnss/Pose/some_really_long_name_of_the_reference_of_a_receiver"
PLACES = {
    "flat": ((300.0, 3.0, 1.0), (0.0, 0.0, 0.0)),
    "line": ((600.0, 1.6, 0.5), (0.0, 0.0, 0.0)),
    "tall": ((1.5, 400.0, 2.0), (0.0, 0.0, 0.0)),
    "small": ((0.01, 0.004, 0.001), (0.0, 0.0, 0.0)),
    "UTM": ((80.0, 5.0, 3.0), (500123.4, 4178800.2, 1920.0)),
    "south": ((5.0, 80.0, 3.0), (-500123.4, -4178800.2, 20.0)),
}
"""Extents and middle of what is drawn, metres."""
MAX_OVERLAP_PX = 1.0
"""Boxes of texts may overlap by this."""


def texts_of(figure: Figure) -> list[tuple[str, Bbox]]:
    """Return the texts that are seen, and their boxes in pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    hidden = {
        id(label)
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in axis.get_major_ticks() + axis.get_minor_ticks()
        for label in (tick.label1, tick.label2)
        if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
    }
    return [
        (text.get_text(), text.get_window_extent(renderer))
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip() and id(text) not in hidden
    ]


def assert_readable(figure: Figure) -> None:
    texts = texts_of(figure)
    width, height = figure.bbox.width, figure.bbox.height
    for text, box in texts:
        over = max(-box.x0, -box.y0, box.x1 - width, box.y1 - height)
        assert over <= MAX_OVERLAP_PX, f"{text!r} is cut off: {box} in {width:.0f} x {height:.0f}"
    for (one, a), (other, b) in itertools.combinations(texts, 2):
        wide, high = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert min(wide, high) <= MAX_OVERLAP_PX, f"{one!r} lies on {other!r}: {a}, {b}"


def path_in(place: str) -> np.ndarray:
    extent, middle = PLACES[place]
    t = np.linspace(-0.5, 0.5, 300)
    return np.column_stack([t, np.sin(6 * t) / 2, t]) * extent + middle


@pytest.mark.parametrize("place", PLACES)
def test_a_cloud_of_any_shape_is_readable(place: str) -> None:
    extent, middle = PLACES[place]
    points = np.random.default_rng(0).uniform(-0.5, 0.5, (3000, 3)) * extent + middle
    assert_readable(cloud_figure(points, title=f"ground {NAME} {REFERENCE}"))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("title", [NAME, f"{NAME}\nATE 0.05 m against {REFERENCE}\naligned by rotation"])
def test_paths_are_readable_wherever_they_are(place: str, title: str) -> None:
    path = path_in(place)
    error = np.linspace(0, 0.02, len(path)) * min(PLACES[place][0])
    assert_readable(trajectory_figure(path, path, error, title=title))
    assert_readable(trajectories_figure(path, {NAME: path, "other": path}, title=title))
    assert_readable(path_figure(path, title=title))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("names", [(NAME,), (NAME, f"{NAME} again")])
def test_errors_are_readable_however_large_they_are(scale: float, names: tuple[str, ...]) -> None:
    t = np.linspace(0, 1, 300)
    errors = {name: scale * (1 + np.sin(40 * t)) for name in names}
    title = f"errors of {NAME} against {REFERENCE}"
    along = dict.fromkeys(names, 1e5 * t)
    assert_readable(error_figure(along, along, errors, title=title))
    assert_readable(box_figure(errors, title=title))
    drifts = {name: DriftCurve(1000 * t[1:], scale / t[1:], 2 * scale / t[1:]) for name in names}
    assert_readable(drift_figure(drifts, title=title))


@pytest.mark.parametrize("shape", [(40, 400), (400, 40), (60, 80)])
def test_a_map_is_readable_in_any_coordinates(shape: tuple[int, int]) -> None:
    heights = np.random.default_rng(0).normal(0, 1, shape)
    west, north = 500000.0, 4179200.0
    extent = (west, west + shape[1], north - shape[0], north)
    assert_readable(map_figure(1e-4 * heights, heights, extent, title=f"{NAME} against {REFERENCE}"))
