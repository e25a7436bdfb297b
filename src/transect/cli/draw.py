"""`transect draw frames|streams PATH`: pictures of what is known of a recording."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ._options import opening

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from transect.recording import FrameTree, Recording


def _picture_option(default: str) -> Callable[..., Any]:
    kind = click.Path(path_type=Path)
    return click.option(
        "-o", "--out", type=kind, default=Path(default), help=f"PNG, SVG or PDF; default {default}."
    )


@click.group()
def command() -> None:
    """Draw a picture of a recording."""


@command.command()
@opening
@_picture_option("frames.png")
@click.option("--at", "time", metavar="TIME", help="When, for frames that move; default: the start.")
def frames(
    paths: tuple[str, ...],
    strict: bool,
    read_as: str | None,
    options: tuple[str, ...],
    out: Path,
    time: str | None,
) -> int:
    """Draw the tree of frames and where their axes are."""
    return _draw(paths, strict, read_as, options, out, lambda recording: frame_figure(recording, time))


@command.command()
@opening
@_picture_option("streams.png")
def streams(
    paths: tuple[str, ...], strict: bool, read_as: str | None, options: tuple[str, ...], out: Path
) -> int:
    """Draw when each stream was there, and its gaps."""
    return _draw(paths, strict, read_as, options, out, stream_figure)


def _draw(
    paths: tuple[str, ...],
    strict: bool,
    read_as: str | None,
    options: tuple[str, ...],
    out: Path,
    figure_of: Callable[[Recording], Figure],
) -> int:
    from transect.draw.figures import save_figure

    from ._progress import Progress
    from ._recordings import exit_for, open_recording

    recording = open_recording(paths, read_as, options, strict, Progress())
    save_figure(figure_of(recording), out)
    click.echo(f"wrote {out}")
    return exit_for(recording)


def frame_figure(recording: Recording, time: str | None) -> Figure:
    """Return the figure of a recording's frames; in space those of the robot, seen from its own root."""
    from transect.draw.frames import frame_tree_figure
    from transect.errors import FrameError, UsageError
    from transect.recording import clocks

    tree = recording.frames
    if not len(tree):
        raise UsageError(f"{recording.name} has no frames to draw", hint="transect info PATH --frames")
    base = _largest_root(recording.robot.frames if recording.robot else tree)
    span = recording.span
    t_ns = clocks.resolve(time or "+0s", span[0], "utc") if span else None
    poses: dict[str, Any] = {}
    for frame in _below(tree, base):
        try:
            poses[frame] = tree.lookup(base, frame, t_ns, tolerance=float("inf"))
        except FrameError:
            continue  # its pose is not known at any time: it stands in the tree alone
    edges = [(edge.parent, edge.child, edge.moving) for edge in tree.edges]
    z_down = bool(recording.robot and recording.robot.z_down)
    return frame_tree_figure(edges, poses, title=recording.name, z_down=z_down)


def _below(tree: FrameTree, base: str) -> list[str]:
    """Return the frames that hang on `base`, itself among them."""

    def hangs(frame: str | None) -> bool:
        return frame == base or (frame is not None and hangs(tree.parent_of(frame)))

    return [frame for frame in tree.frames if hangs(frame)]


def _largest_root(tree: FrameTree) -> str:
    return max(tree.roots, key=lambda root: len(_below(tree, root)))


def stream_figure(recording: Recording) -> Figure:
    """Return the figure of a recording's streams over time, on its main clock."""
    from transect.draw.timeline import Strip, timeline_figure
    from transect.recording import clocks
    from transect.recording.summary import duration_text, rate_text

    clock = recording.clock
    first = recording.spans().get(clock, (0, 0))[0]
    if others := [s.name for s in recording.streams if s.clock != clock]:
        click.echo(f"not drawn, since they are not on the {clock} clock: {', '.join(others)}", err=True)
    strips = [
        Strip(
            s.name,
            (s.t_ns - first) / clocks.NS,
            s.role,
            f"{rate_text(s.timing.rate)}, gap {duration_text(s.timing.gap_s)}",
        )
        for s in recording.streams
        if s.clock == clock
    ]
    return timeline_figure(strips, recording.name, clocks.text_from_ns(first, clock))
