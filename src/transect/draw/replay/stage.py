"""Animation frames: a static background, drawn once, and moving artists, drawn for every frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats

from ..figures import INK, QUIET, figure_class
from ..timelines import STATE_COLOURS

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


class FrameSize(NamedTuple):
    """Inches, and pixels per inch: a frame has 1280 x 720 pixels."""

    width: float = 12.8
    height: float = 7.2
    dpi: int = 100


FRAME = FrameSize()
BLUE, PALE = "#2f6fb3", "#e8ecf0"
Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class VerdictInterval:
    """The worst verdict of all sensors from one time to another, s."""

    start: float
    end: float
    state: str


@dataclass(frozen=True, eq=False)
class SignalCurve:
    """A signal over time: its name, unit, times (n,) in s and values (n,)."""

    name: str
    unit: str
    seconds: Floats
    values: Floats

    def at(self, second: float) -> float:
        """Return the value at a time."""
        return float(np.interp(second, self.seconds, self.values))


class Stage:
    """A figure whose static pixels are cached; its moving artists are `animated`."""

    def __init__(self, figure: Figure) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        figure.set_dpi(FRAME.dpi)
        self._figure = figure
        self._canvas = FigureCanvasAgg(figure)
        self._canvas.draw()
        self._background = self._canvas.copy_from_bbox(figure.bbox)

    def keep(self, artists: Iterable[Artist]) -> None:
        """Draw artists into the background of all later frames."""
        self._canvas.restore_region(self._background)
        for artist in artists:
            self._figure.draw_artist(artist)
        self._background = self._canvas.copy_from_bbox(self._figure.bbox)

    def show(self, artists: Iterable[Artist]) -> Pixels:
        """Return the pixels (h, w, 3) of the background with moving artists."""
        self._canvas.restore_region(self._background)
        for artist in artists:
            self._figure.draw_artist(artist)
        return np.asarray(self._canvas.buffer_rgba())[:, :, :3].copy()


def new_stage_figure(title: str, subtitle: str) -> Figure:
    """Return an empty figure with a title."""
    figure = figure_class()(figsize=(FRAME.width, FRAME.height), facecolor="white")
    figure.text(0.04, 0.957, title, fontsize=15, weight="bold", color=INK, va="center")
    figure.text(0.04, 0.921, subtitle, fontsize=9.5, color="#5a6570", va="center")
    return figure


def moving_text(figure: Figure, x: float, y: float, size: float, **look: Any) -> Artist:
    """Return a text that changes from frame to frame."""
    return figure.text(x, y, "", fontsize=size, color=INK, va="center", animated=True, **look)


class ProgressStrip:
    """The time bar below the scene, with a cursor and the verdicts."""

    def __init__(self, figure: Figure, duration: float, states: Sequence[VerdictInterval]) -> None:
        axes = figure.add_axes((0.055, 0.052, 0.915, 0.026))
        axes.set(xlim=(0, max(duration, 1e-9)), ylim=(0, 1), yticks=[])
        axes.spines[:].set_visible(False)
        axes.tick_params(labelsize=8, colors="#5a6570", length=2)
        axes.set_xticks(_ticks(duration), [_format_seconds(tick, duration) for tick in _ticks(duration)])
        axes.axvspan(0, duration, color=PALE, lw=0)
        for judged in states:
            axes.axvspan(judged.start, judged.end, color=STATE_COLOURS[judged.state], lw=0)
        if states:
            _name_states(figure)
        self._cursor: Line2D = axes.plot(
            [0, 0], [-0.3, 1.3], color=INK, lw=2.2, animated=True, clip_on=False
        )[0]
        self._passed: Line2D | None = None
        if not states:
            self._passed = axes.plot(
                [0, 0], [0.5, 0.5], color=BLUE, lw=6, animated=True, solid_capstyle="butt"
            )[0]

    def at(self, second: float) -> list[Artist]:
        """Return the updated artists for a time."""
        self._cursor.set_xdata([second, second])
        if self._passed is None:
            return [self._cursor]
        self._passed.set_xdata([0, second])
        return [self._passed, self._cursor]


def _ticks(duration: float) -> Floats:
    """Return round times, at most ten."""
    steps = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200)
    step = next((step for step in steps if duration / step <= 10), steps[-1])
    return np.arange(0, duration + step / 1e6, step)


def _format_seconds(second: float, duration: float) -> str:
    if duration < 60:
        return f"{second:g} s"
    minutes, rest = divmod(round(second), 60)
    return f"{minutes}:{rest:02d}"


def _name_states(figure: Figure) -> None:
    from matplotlib.patches import Patch

    names = {"OK": "trusted", "SUSPECT": "suspect", "BAD": "bad", "UNKNOWN": "not checked"}
    patches = [Patch(color=STATE_COLOURS[state], label=text) for state, text in names.items()]
    figure.legend(
        handles=patches, loc="lower right", bbox_to_anchor=(0.975, 0.078), ncols=4, frameon=False, fontsize=8,
        labelcolor=INK, handlelength=1.1, columnspacing=1.2,
    )  # fmt: skip


class CurveStrip:
    """A curve with a dot that moves along it, and its value."""

    def __init__(
        self, figure: Figure, box: tuple[float, float, float, float], curve: SignalCurve, span: float
    ) -> None:
        axes = figure.add_axes(box)
        self._curve = curve
        low, high = _room(curve.values)
        axes.set(xlim=(0, max(span, 1e-9)), ylim=(low, high), xticks=[])
        axes.spines[["top", "right", "bottom"]].set_visible(False)
        axes.spines["left"].set_color(QUIET)
        axes.tick_params(labelsize=7.5, colors="#5a6570", length=2)
        axes.locator_params(axis="y", nbins=3)
        axes.ticklabel_format(axis="y", useOffset=False)
        axes.plot(curve.seconds, curve.values, color="#b8c4d0", lw=1.3)
        left, bottom, width, height = box
        figure.text(left, bottom + height + 0.014, curve.name, fontsize=9, color="#5a6570", va="center")
        self._value = moving_text(
            figure, left + width, bottom + height + 0.014, 10.5, ha="right", weight="bold"
        )
        self._past: Line2D = axes.plot([], [], color=BLUE, lw=1.8, animated=True)[0]
        self._dot: Line2D = axes.plot([], [], "o", color=INK, ms=4.5, animated=True, clip_on=False)[0]

    def at(self, second: float) -> list[Artist]:
        """Return the updated artists for a time."""
        curve, value = self._curve, self._curve.at(second)
        until = int(np.searchsorted(curve.seconds, second, side="right"))
        self._past.set_data([*curve.seconds[:until], second], [*curve.values[:until], value])
        self._dot.set_data([second], [value])
        self._value.set_text(f"{value:.2f} {curve.unit}".replace("-", "\N{MINUS SIGN}"))  # pyright: ignore[reportAttributeAccessIssue]
        return [self._past, self._dot, self._value]


def add_strips(figure: Figure, curves: Sequence[SignalCurve], span: float, height: float) -> list[CurveStrip]:
    """Return a strip for each curve, stacked at the right in a fraction of the figure's height."""
    each = height / max(len(curves), 1)
    lowest = 0.155
    return [
        CurveStrip(figure, (0.735, lowest + (len(curves) - 1 - k) * each, 0.235, each - 0.075), curve, span)
        for k, curve in enumerate(curves)
    ]


def add_clock(figure: Figure) -> Artist:
    """Return the text at the upper right that shows the time."""
    return moving_text(figure, 0.97, 0.945, 17, ha="right", weight="bold", family="monospace")


def _room(values: Floats) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    around = max(0.08 * (high - low), 1e-3)
    return low - around, high + around


def clean_axes(axes: Axes) -> None:
    """Hide the frame and ticks of axes, and set an equal scale."""
    axes.set_axis_off()
    axes.set_aspect("equal")
