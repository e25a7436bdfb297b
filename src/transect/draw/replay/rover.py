"""A rover that drives over its map: where it was, which way and how fast it went, how good sensors were."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.base.arrays import Floats

from ..figures import INK, QUIET
from ..ground import Ground, draw_ground
from ..timelines import STATE_COLOURS
from ..tracks import OVER, Style, Track, frame_map, window_around
from .stage import (
    BLUE,
    HEIGHT,
    WIDTH,
    Curve,
    Judged,
    Pixels,
    Progress,
    Stage,
    add_clock,
    add_strips,
    moving_text,
    new_stage_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

MAP = (0.055, 0.155, 0.615, 0.725)
"""Box of the map in the figure, in parts of it."""
BODY = ((-1.0, -0.62), (0.35, -0.62), (1.15, 0.0), (0.35, 0.62), (-1.0, 0.62))
"""The rover from above, nose to the right."""


@dataclass(frozen=True, eq=False)
class Drive:
    """A drive to be shown."""

    title: str
    subtitle: str
    track: Track  # metres right and up, with seconds from the start of the film's time; all known
    headings: Floats  # (n,) which way it points, rad from the right, counter-clockwise
    others: Sequence[Track]  # drawn thin, with their names: the truth, other estimates
    ground: Ground | None
    style: Style  # names of the axes, and whether up is north
    curves: Sequence[Curve]  # drawn beside the map
    states: Sequence[Judged]
    duration: float  # seconds
    clock: Callable[[float], str]  # returns date and time of a second, as text

    @property
    def seconds(self) -> Floats:
        """Times of the track."""
        assert self.track.seconds is not None
        return self.track.seconds


def drive_frames(drive: Drive, seconds: Iterable[float]) -> Iterator[Pixels]:
    """Yield a picture (720, 1280, 3) for each of some times, which go up."""
    figure = new_stage_figure(drive.title, drive.subtitle)
    axes = figure.add_axes(MAP)
    _draw_map(axes, drive)
    strips = add_strips(figure, drive.curves, drive.duration, 0.62)
    progress = Progress(figure, drive.duration, drive.states)
    time = add_clock(figure)
    state = moving_text(figure, 0.735, 0.865, 11, weight="bold")
    rover: Line2D = axes.plot([], [], ls="", animated=True, zorder=OVER + 8)[0]
    trail: Line2D = axes.plot([], [], color=BLUE, lw=3.2, animated=True, solid_capstyle="round", zorder=OVER)[
        0
    ]
    stage, done = Stage(figure), 0
    for second in seconds:
        until = int(np.searchsorted(drive.seconds, second, side="right"))
        judged = next((j for j in drive.states if j.start <= second < j.end), None)
        colour = STATE_COLOURS[judged.state] if judged and judged.state != "OK" else BLUE
        if until - done > 1 or (until > done and done):
            trail.set_data(*drive.track.points[max(done - 1, 0) : until].T)
            trail.set_color(colour)
            stage.keep([trail])
        done = max(done, until)
        _place(rover, drive, second, colour)
        time.set_text(drive.clock(second))  # pyright: ignore[reportAttributeAccessIssue]
        moved = [
            rover,
            time,
            *progress.at(second),
            *(artist for strip in strips for artist in strip.at(second)),
        ]
        if drive.states:
            word = judged.state if judged else "UNKNOWN"
            state.set(
                text=f"\N{BLACK SQUARE} {_WORDS[word]}",
                color=STATE_COLOURS[word] if word != "UNKNOWN" else QUIET,
            )
            moved.append(state)
        yield stage.show(moved)


_WORDS = {
    "OK": "all sensors trusted",
    "SUSPECT": "a sensor is suspect",
    "BAD": "a sensor is bad",
    "UNKNOWN": "not judged here",
}


def _draw_map(axes: Axes, drive: Drive) -> None:
    every = [drive.track.points, *(other.points for other in drive.others)]
    low, high = _fill(*window_around(every, {}, 0.2), MAP[2] * WIDTH / (MAP[3] * HEIGHT))
    draw_ground(axes, drive.ground, (low, high))
    frame_map(axes, (low, high), drive.style)
    axes.plot(
        *drive.track.points.T, color="white", lw=4.5, alpha=0.75, zorder=OVER - 3, solid_capstyle="round"
    )
    axes.plot(
        *drive.track.points.T, color="#8d99a6", lw=1.6, zorder=OVER - 2, solid_capstyle="round", label="ahead"
    )
    axes.plot([], [], color=BLUE, lw=3.2, label="driven")
    for other, dashes in zip(drive.others, ((0, (5, 2)), (0, (1, 1.5)), (0, (3, 1, 1, 1))), strict=False):
        axes.plot(*other.points.T, color=INK, lw=1.1, ls=dashes, zorder=OVER - 1, label=other.name)
    start: dict[str, Any] = {"mfc": "white", "mec": INK, "mew": 1.8, "ms": 7, "zorder": OVER + 2}
    axes.plot(*drive.track.points[0], "o", **start)
    axes.legend(loc="upper left", fontsize=8.5, labelcolor=INK, framealpha=0.85, edgecolor="#d7dde3")


def _fill(low: Floats, high: Floats, shape: float) -> tuple[Floats, Floats]:
    """Return a window around the same middle with the shape (width by height) of its box."""
    width, height = high - low
    size = np.array([max(width, height * shape), max(height, width / shape)])
    middle = (low + high) / 2
    return middle - size / 2, middle + size / 2


def _place(rover: Line2D, drive: Drive, second: float, colour: str) -> None:
    from matplotlib.markers import MarkerStyle
    from matplotlib.path import Path
    from matplotlib.transforms import Affine2D

    x, y = (np.interp(second, drive.seconds, column) for column in drive.track.points.T)
    heading = float(np.interp(second, drive.seconds, np.unwrap(drive.headings)))
    turned = Affine2D().rotate(heading).transform(np.array(BODY))
    rover.set_data([x], [y])
    rover.set_marker(MarkerStyle(Path(np.vstack([turned, turned[:1]]), closed=True)))
    rover.set(markersize=22, markerfacecolor=colour, markeredgecolor="white", markeredgewidth=1.6)
