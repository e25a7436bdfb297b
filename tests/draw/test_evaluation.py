"""Figures of an evaluation: drawn from plain arrays, with units, and the same bytes each time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from transect.draw.evaluation import (
    AllanCurve,
    Background,
    DriftCurve,
    allan_figure,
    box_figure,
    drift_figure,
    error_figure,
    trajectories_figure,
    trajectory_figure,
)
from transect.draw.figures import Drawing, save_figure, save_figures

ANGLE = np.linspace(0, 6, 300)
PATH = np.column_stack([30 * np.cos(ANGLE), 20 * np.sin(ANGLE), 0.1 * ANGLE])
ERRORS = np.abs(np.sin(ANGLE))
TAU = np.logspace(-2, 3, 60)


def curve() -> AllanCurve:
    deviation = 1e-3 / np.sqrt(TAU) + 1e-4
    return AllanCurve(TAU, deviation, 0.9 * deviation, 1.1 * deviation, 1e-3, 1.5e-4, np.nan)


SEVERAL = {"a": ERRORS, "b": 2 * ERRORS}
AXIS = {"a": ANGLE, "b": ANGLE}
GROUND = Background(np.arange(12.0).reshape(3, 4), (-40, 40, -30, 30))
FIGURES: dict[str, Callable[[], Figure]] = {
    "trajectory": lambda: trajectory_figure(PATH, PATH + 0.5, ERRORS, title="a", background=GROUND),
    "trajectories": lambda: trajectories_figure(PATH, {"a": PATH + 0.5, "b": PATH - 1}, background=GROUND),
    "error": lambda: error_figure(AXIS, AXIS, SEVERAL),
    "drift": lambda: drift_figure({"a": DriftCurve(ANGLE + 1, ERRORS + 1, ERRORS + 2)}),
    "boxes": lambda: box_figure(SEVERAL),
    "allan": lambda: allan_figure(
        {"gyroscope [rad/s]": {"x": curve()}, "accelerometer [m/s2]": {"x": curve()}}
    ),
}


@pytest.mark.parametrize("name", list(FIGURES))
def test_every_axis_has_a_label_with_its_unit(name: str) -> None:
    for axes in FIGURES[name]().axes:
        if axes.get_label() == "<colorbar>":
            assert axes.get_ylabel() == "error [m]"
            continue
        assert "[" in axes.get_xlabel()
        assert axes.get_ylabel() or name == "boxes"


@pytest.mark.parametrize("name", list(FIGURES))
def test_the_same_figure_is_the_same_file(name: str, tmp_path: Path) -> None:
    save_figure(FIGURES[name](), tmp_path / "a.png", dpi=60)
    drawings = [Drawing(tmp_path / "b.png", FIGURES[name], 60), Drawing(tmp_path / "none.png", lambda: None)]
    assert save_figures(drawings) == [tmp_path / "b.png"]
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


@pytest.mark.parametrize("name", ["trajectory", "trajectories", "drift", "error"])
def test_the_legend_does_not_cover_the_data(name: str, tmp_path: Path) -> None:
    figure = FIGURES[name]()
    save_figure(figure, tmp_path / "x.png", dpi=60)
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert not any(box.overlaps(axes.get_window_extent()) for axes in figure.axes)


def test_lines_are_drawn_only_near_the_curve_they_were_fitted_to() -> None:
    panel = allan_figure({"gyroscope [rad/s]": {"x": curve()}}).axes[0]
    measured, white, flat, walk = panel.lines
    assert len(np.asarray(measured.get_xdata())) == len(TAU)
    assert np.max(np.asarray(white.get_xdata())) < 110
    assert np.min(np.asarray(flat.get_xdata())) > 50
    assert not len(np.asarray(walk.get_xdata()))


def test_no_line_is_drawn_over_what_was_not_compared():
    seconds = np.concatenate([np.arange(10.0), np.arange(60.0, 70.0)])
    figure = error_figure({"a": seconds}, {"a": 2 * seconds}, {"a": np.ones(20)})
    for axis in figure.axes:
        (line,) = axis.lines
        assert np.flatnonzero(np.isnan(line.get_xdata())).tolist() == [10]


def test_a_tall_path_has_a_narrow_figure_and_one_large_error_does_not_take_all_colours():
    y = np.linspace(0, 300, 200)
    path = np.column_stack([np.sin(y / 100), y, 0 * y])
    errors = np.where(y > 0, 1.0 + y / 300, 9.0)
    figure = trajectory_figure(path, path, errors, title="a\nb")
    assert figure.get_figwidth() < 5
    assert figure.axes[0].collections[0].get_clim()[1] < 2.1
