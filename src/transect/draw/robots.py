"""Pictures of a robot's conventions: one by one, or all of them on a sheet.

What each of them shows is drawn in `_robots_interact` and its neighbours from plain arrays, which
`transect.robots.pictures` collects from the models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .figures import new_figure
from .frames import INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure, FigureBase

WIDTH = 8.6
"""Inches; all pictures are as wide, so that their words are of one size."""
HEADING = 0.35
"""Inches for the name above a sheet."""


@dataclass(frozen=True, eq=False)
class Picture:
    """One picture.

    Attributes
    ----------
    name : str
        A word, for a file's name.
    height : float
        Inches.
    draw : callable
        Draws it on a figure, or on a part of one.
    """

    name: str
    height: float
    draw: Callable[[FigureBase], None]

    def figure(self) -> Figure:
        """Return the picture by itself."""
        figure = new_figure(WIDTH, self.height)
        self.draw(figure)
        return figure


def sheet_figure(pictures: Sequence[Picture], heading: str) -> Figure:
    """Return pictures below each other, under a heading."""
    heights = np.array([HEADING, *(picture.height for picture in pictures)])
    figure = new_figure(WIDTH, float(heights.sum()))
    below: Any = figure.subfigures(len(heights), 1, height_ratios=heights.tolist())
    top, *parts = below
    top.text(0.012, 0.4, heading, ha="left", va="center", fontsize=14, weight="bold", color=INK)
    for picture, part in zip(pictures, parts, strict=True):
        picture.draw(part)
    return figure
