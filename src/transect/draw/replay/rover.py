"""An animation of a rover on its map, with signals over time and the states of its sensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from transect.base.arrays import Floats

from ..figures import INK, QUIET
from ..ground import GroundLayer, draw_ground
from ..timelines import STATE_COLOURS
from ..tracks import TRACK_ZORDER, PlottedTrack, TrackStyle, frame_map, window_around
from .stage import (
    BLUE,
    FRAME,
    Pixels,
    ProgressStrip,
    SignalCurve,
    Stage,
    VerdictInterval,
    add_clock,
    add_strips,
    moving_text,
    new_stage_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

MAP_BOX = (0.055, 0.155, 0.615, 0.725)
"""Left, bottom, width and height of the map in figure coordinates."""
BODY = ((-1.0, -0.62), (0.35, -0.62), (1.15, 0.0), (0.35, 0.62), (-1.0, 0.62))
"""The outline of the rover from above, its front to the right."""


@dataclass(frozen=True, eq=False)
class DriveFilm:
    """The content of an animation of a rover."""

    title: str
    subtitle: str
    track: PlottedTrack  # metres right and up, with seconds from the start of the film; no NaN
    headings: Floats  # (n,) rad from the right, counter-clockwise
    others: Sequence[PlottedTrack]  # drawn as thin lines with names: ground truth, other estimates
    ground: GroundLayer | None
    style: TrackStyle  # names of the axes, and whether north is up
    curves: Sequence[SignalCurve]  # drawn beside the map
    states: Sequence[VerdictInterval]
    duration: float  # seconds
    clock: Callable[[float], str]  # formats the date and time at a second

    @property
    def seconds(self) -> Floats:
        """Times of the track, s."""
        assert self.track.seconds is not None
        return self.track.seconds


def drive_frames(drive: DriveFilm, seconds: Iterable[float]) -> Iterator[Pixels]:
    """Yield a picture (720, 1280, 3) for each of some ascending times."""
    figure = new_stage_figure(drive.title, drive.subtitle)
    axes = figure.add_axes(MAP_BOX)
    _draw_map(axes, drive)
    strips = add_strips(figure, drive.curves, drive.duration, 0.62)
    progress = ProgressStrip(figure, drive.duration, drive.states)
    time = add_clock(figure)
    state = moving_text(figure, 0.735, 0.865, 11, weight="bold")
    rover: Line2D = axes.plot([], [], ls="", animated=True, zorder=TRACK_ZORDER + 8)[0]
    trail: Line2D = axes.plot(
        [], [], color=BLUE, lw=3.2, animated=True, solid_capstyle="round", zorder=TRACK_ZORDER
    )[0]
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
        _move_rover(rover, drive, second, colour)
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
    "UNKNOWN": "not checked here",
}


def _draw_map(axes: Axes, drive: DriveFilm) -> None:
    every = [drive.track.points, *(other.points for other in drive.others)]
    low, high = _fill(*window_around(every, {}, 0.2), MAP_BOX[2] * FRAME.width / (MAP_BOX[3] * FRAME.height))
    draw_ground(axes, drive.ground, (low, high))
    frame_map(axes, (low, high), drive.style)
    axes.plot(
        *drive.track.points.T,
        color="white",
        lw=4.5,
        alpha=0.75,
        zorder=TRACK_ZORDER - 3,
        solid_capstyle="round",
    )
    axes.plot(
        *drive.track.points.T,
        color="#8d99a6",
        lw=1.6,
        zorder=TRACK_ZORDER - 2,
        solid_capstyle="round",
        label="not yet driven",
    )
    axes.plot([], [], color=BLUE, lw=3.2, label="driven")
    for other, dashes in zip(drive.others, ((0, (5, 2)), (0, (1, 1.5)), (0, (3, 1, 1, 1))), strict=False):
        axes.plot(*other.points.T, color=INK, lw=1.1, ls=dashes, zorder=TRACK_ZORDER - 1, label=other.name)
    start: dict[str, Any] = {"mfc": "white", "mec": INK, "mew": 1.8, "ms": 7, "zorder": TRACK_ZORDER + 2}
    axes.plot(*drive.track.points[0], "o", **start)
    axes.legend(loc="upper left", fontsize=8.5, labelcolor=INK, framealpha=0.85, edgecolor="#d7dde3")


def _fill(low: Floats, high: Floats, shape: float) -> tuple[Floats, Floats]:
    """Return a window with the same centre and the aspect ratio (width over height) of its box."""
    width, height = high - low
    size = np.array([max(width, height * shape), max(height, width / shape)])
    middle = (low + high) / 2
    return middle - size / 2, middle + size / 2


def _move_rover(rover: Line2D, drive: DriveFilm, second: float, colour: str) -> None:
    from matplotlib.markers import MarkerStyle
    from matplotlib.path import Path
    from matplotlib.transforms import Affine2D

    x, y = (np.interp(second, drive.seconds, column) for column in drive.track.points.T)
    heading = float(np.interp(second, drive.seconds, np.unwrap(drive.headings)))
    outline = Affine2D().rotate(heading).transform(np.array(BODY))
    rover.set_data([x], [y])
    rover.set_marker(MarkerStyle(Path(np.vstack([outline, outline[:1]]), closed=True)))
    rover.set(markersize=22, markerfacecolor=colour, markeredgecolor="white", markeredgewidth=1.6)
