"""Figures of the streams of a recording over time, of frames, and of a robot in three views."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..shared.recordings import Opening, dpi_option, draw_recording, opening, picture_option

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from transect.recording import FrameTree, Recording


@click.command("streams")
@opening()
@picture_option("streams.png")
@dpi_option
def draw_streams(opening: Opening, out: Path, dpi: int) -> int:
    """Draw the availability of each stream over time."""
    return draw_recording(opening, out, dpi, stream_figure)


def stream_figure(recording: Recording) -> Figure:
    """Return the figure of a recording's streams over time, on its main clock."""
    from transect.base import clocks
    from transect.draw.timelines import StreamStrip, timeline_figure
    from transect.recording.summary import duration_text, rate_text

    clock = recording.clock
    first = recording.spans().get(clock, (0, 0))[0]
    if others := [s.name for s in recording.streams if s.clock != clock]:
        click.echo(f"not drawn, as they use another clock than {clock}: {', '.join(others)}", err=True)
    strips = [
        StreamStrip(
            s.name,
            (s.t_ns - first) / clocks.NS,
            s.role,
            f"{rate_text(s.timing.rate)}, gap {duration_text(s.timing.gap_s)}",
        )
        for s in recording.streams
        if s.clock == clock
    ]
    return timeline_figure(strips, recording.name, clocks.text_from_ns(first, clock))


@click.command("frames")
@opening()
@picture_option("frames.png")
@dpi_option
@click.option("--at", "time", metavar="TIME", help="Time of moving frames; default: the start.")
def draw_frames(
    opening: Opening,
    out: Path,
    dpi: int,
    time: str | None,
) -> int:
    """Draw frames as a tree, and in space with their axes.

    PATH is a recording, the name of a robot (interact, ...), or the .yaml or .urdf file of a robot; joints of
    the latter are drawn at zero.
    """
    if len(opening.paths) == 1 and _is_robot(opening.paths[0]):
        return _draw_robot_frames(opening.paths[0], out, dpi)
    return draw_recording(opening, out, dpi, lambda recording: frame_figure(recording, time))


def _is_robot(path: str) -> bool:
    """Return whether a path is the file or the name of a robot."""
    from transect import robots
    from transect.formats import described

    if Path(path).suffix in (".yaml", ".yml", ".urdf", ".xacro"):
        return Path(path).name != described.FILE
    return path in robots.names() and not Path(path).exists()


def _draw_robot_frames(path: str, out: Path, dpi: int) -> int:
    from transect import robots
    from transect.draw.figures import save_figure
    from transect.draw.frames import frame_tree_figure
    from transect.robots import urdf

    moving: set[str] = set()
    if Path(path).suffix in (".urdf", ".xacro"):
        robot = urdf.read(path)
        tree, title, z_down = robot.frames(dict.fromkeys(robot.driven, 0.0)), robot.name, False
        moving = {joint.child for joint in robot.joints if joint.type != "fixed"}
        for loss in robot.losses:
            click.echo(f"note: {loss.where}: {loss.reason}", err=True)
    else:
        described = robots.load(path)
        tree, title, z_down = described.frames, described.title or described.name, described.z_down
    _refuse_no_frames(tree, title, path)
    edges = [(edge.parent, edge.child, edge.child in moving) for edge in tree.edges]
    figure = frame_tree_figure(edges, tree.poses_below(tree.largest_root), title=title, z_down=z_down)
    save_figure(figure, out, dpi)
    click.echo(f"wrote {out}")
    return 0


def frame_figure(recording: Recording, time: str | None) -> Figure:
    """Return the figure of a recording's frames, in space those of the robot."""
    from transect.base import clocks
    from transect.draw.frames import frame_tree_figure

    tree = recording.frames
    _refuse_no_frames(tree, recording.name, recording.typed)
    edges = [(edge.parent, edge.child, edge.moving) for edge in tree.edges]
    base = _fixed_root(edges, (recording.robot.frames if recording.robot else tree).largest_root)
    span = recording.span
    t_ns = clocks.resolve(time or "+0s", span[0], "utc") if span else None
    z_down = bool(recording.robot and recording.robot.z_down)
    return frame_tree_figure(edges, tree.poses_below(base, t_ns), title=recording.name, z_down=z_down)


def _fixed_root(edges: Sequence[tuple[str, str, bool]], frame: str) -> str:
    """Return the topmost frame that static edges (parent, child, moving) connect to `frame`."""
    parents = {child: parent for parent, child, moving in edges if not moving}
    while frame in parents:
        frame = parents[frame]
    return frame


def _refuse_no_frames(tree: FrameTree, name: str, typed: str) -> None:
    from transect.errors import UsageError

    if not len(tree):
        raise UsageError(f"{name} has no frames to draw", hint=f"transect info {typed} --frames")


@click.command("robot")
@click.argument("name")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="PNG, SVG or PDF, or a folder for NAME-views.png; default NAME.png.",
)
@dpi_option
@click.option("--picture", metavar="VIEW", help="Draw a single view: top, side or front.")
def draw_robot(name: str, out: Path | None, dpi: int, picture: str | None) -> int:
    """Draw a robot in three views, with its frames and dimensions.

    NAME is a robot (argo, ida, interact, weeder), or the path of a .yaml or .urdf file.
    """
    from transect.draw.figures import save_figure
    from transect.draw.robots import robot_figure
    from transect.robots.pictures import load_scene

    called, scene = load_scene(name)
    out = out or Path(f"{called}.png")
    path = out if out.suffix else out / f"{called}-{picture or 'views'}.png"
    save_figure(robot_figure(scene, picture), path, dpi)
    click.echo(f"wrote {path}")
    return 0
