"""`transect draw track|frames|streams|overlay|moment|slip|sdi PATH`, `draw robot NAME`: pictures."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._opening import Opening, opening
from .._options import add_options, from_option, streams_option, to_option
from .sdi import sdi
from .track import track

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from transect.recording import FrameTree, Recording
    from transect.robots.overlay import View


def _picture_option(default: str) -> Callable[..., Any]:
    kind = click.Path(path_type=Path)
    return click.option(
        "-o", "--out", type=kind, default=Path(default), help=f"PNG, SVG or PDF; default {default}."
    )


dpi_option = click.option(
    "--dpi", type=click.IntRange(50, 600), default=150, show_default=True, help="Pixels to an inch."
)


@click.group()
def command() -> None:
    """Draw a picture of a recording, or of a robot."""


command.add_command(track)
command.add_command(sdi)


@command.command()
@opening()
@_picture_option("frames.png")
@dpi_option
@click.option("--at", "time", metavar="TIME", help="When, for frames that move; default: the start.")
def frames(
    opening: Opening,
    out: Path,
    dpi: int,
    time: str | None,
) -> int:
    """Draw the tree of frames and where their axes are.

    PATH is a recording, the name of a robot (interact, ...), or a robot's own .yaml or .urdf file; the joints
    of the latter are drawn at zero.
    """
    if len(opening.paths) == 1 and _is_robot(opening.paths[0]):
        return _draw_robot_frames(opening.paths[0], out, dpi)
    return _draw(opening, out, dpi, lambda recording: frame_figure(recording, time))


@command.command()
@opening()
@_picture_option("streams.png")
@dpi_option
def streams(opening: Opening, out: Path, dpi: int) -> int:
    """Draw when each stream was there, and its gaps."""
    return _draw(opening, out, dpi, stream_figure)


@command.command()
@click.argument("name")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="PNG, SVG or PDF, or a folder for NAME-views.png; default NAME.png.",
)
@dpi_option
@click.option("--picture", metavar="VIEW", help="Draw one view only: top, side or front.")
def robot(name: str, out: Path | None, dpi: int, picture: str | None) -> int:
    """Draw a robot from three sides, with its frames and lengths.

    NAME is a robot (argo, ida, interact, weeder), or the path of your own .yaml or .urdf file.
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


@command.command()
@opening()
@_picture_option("overlay.png")
@dpi_option
@streams_option
@click.option("--at", "time", metavar="TIME", default="+0s", help="Of the image; default: the start.")
@click.option("--camera", metavar="NAME", help="Whose image, if there are several cameras.")
@click.option(
    "--tolerance", metavar="S", default=0.1, help="Seconds that a sample may be away from the image: 0.1."
)
@click.option(
    "--coloured",
    type=click.Path(path_type=Path),
    help="Write the cloud with the image's colours: .ply, .pcd.",
)
def overlay(
    opening: Opening,
    out: Path,
    dpi: int,
    streams: tuple[str, ...],
    time: str,
    camera: str | None,
    tolerance: float,
    coloured: Path | None,
) -> int:
    """Draw what lasers and radars saw into a camera's image.

    Points are coloured by depth; frames are drawn too.
    """
    from transect.robots.overlay import view

    def figure_of(recording: Recording) -> Figure:
        seen = view(recording, camera, time, streams=streams, tolerance=tolerance)
        for note in seen.notes:
            click.echo(f"note: {note}", err=True)
        if coloured is not None:
            _write_coloured(seen, coloured)
        return seen.figure(f"{recording.name}: ")

    return _draw(opening, out, dpi, figure_of)


@command.command()
@opening("times")
@_picture_option("slip.png")
@dpi_option
@click.option(
    "--twist", metavar="NAME", help="Stream of the platform's motion over the ground; default: the INS."
)
def slip(opening: Opening, out: Path, dpi: int, twist: str | None) -> int:
    """Draw how much the wheels of Interact slipped.

    Their tracks are drawn by odometry and over the ground.
    """
    from transect.base.clocks import NS
    from transect.draw.slip import slip_figure
    from transect.robots.interact import driven

    def figure_of(whole: Recording) -> Figure:
        recording = opening.cut(whole)
        report = driven.slip_report(recording, twist)
        _, tracks = driven.wheel_tracks(recording, twist)
        start = whole.span[0] if whole.span else 0
        return slip_figure(
            (report.stream.t_ns - start) / NS,
            report.stream.array("slip_ratio"),
            report.stream.array("slip_angle"),
            tracks.odometry,
            tracks.inverse,
            ("1 front left", "2 rear left", "3 rear right", "4 front right"),
            title=f"{recording.name}: slip of the wheels",
            source="INS" if report.source == " and ".join(driven.INS) else report.source,
        )

    return _draw(opening, out, dpi, figure_of)


moment_options = add_options(
    streams_option,
    click.option(
        "--panel", "panels", multiple=True, metavar="STREAM[:VIEW]",
        help="Draw this stream, in this order; STREAM+STREAM draws both into one. A wrong VIEW lists what "
        "there is; the name of a column draws its numbers over time, Y~X one column over another.",
    ),
    click.option(
        "--beside", multiple=True, metavar="PATH",
        help="Another recording, drawn after the first at the same time; may be repeated.",
    ),
    click.option("--at", "times", multiple=True, metavar="TIME", help="When; may be repeated. Default: +0s."),
    from_option,
    to_option,
    click.option(
        "--tolerance", type=float, metavar="S", default=0.5,
        help="Seconds that a sample may be away from the time: 0.5.",
    ),
    click.option(
        "--row", type=click.FloatRange(0, 1), default=0.5,
        help="Which line of images, as a share of their height: 0.5.",
    ),
    click.option("--sector", type=click.FloatRange(1, 180), metavar="DEG", help="Bearings up to this."),
    click.option("--reach", type=click.FloatRange(min=0.1), metavar="M", help="Ranges up to this."),
    click.option("--title", help="Above the picture; default: the recording and the time."),
    click.option("--columns", type=click.IntRange(1, 12), help="So many pictures side by side."),
    click.option(
        "--colours", type=click.IntRange(2, 256), help="A PNG of so many colours only: a smaller file."
    ),
)  # fmt: skip


@command.command()
@opening()
@_picture_option("moment.png")
@dpi_option
@moment_options
def moment(
    opening: Opening, out: Path, dpi: int, beside: tuple[str, ...], colours: int | None, **choice: Any
) -> int:
    """Draw what all sensors saw at one time, side by side.

    With --from and --to some views show all that was seen in between.
    """
    from transect.draw.figures import save_figure
    from transect.robots.moment import Choice, draw_recordings

    from .._opening import cut_times, report_losses

    others = [dataclasses.replace(opening, paths=(path,)) for path in beside]
    recordings = [each.open() for each in (opening, *others)]
    cut_times(recordings[0], choice["start"], choice["end"])
    figure, notes = draw_recordings(recordings, Choice(**choice))
    for note in notes:
        click.echo(note, err=True)
    save_figure(figure, out, dpi, colours)
    click.echo(f"wrote {out}")
    return max(report_losses(recording) for recording in recordings)


def _draw(
    opening: Opening,
    out: Path,
    dpi: int,
    figure_of: Callable[[Recording], Figure],
) -> int:
    from transect.draw.figures import save_figure

    from .._opening import report_losses

    recording = opening.open()
    save_figure(figure_of(recording), out, dpi)
    click.echo(f"wrote {out}")
    return report_losses(recording)


def _write_coloured(seen: View, path: Path) -> None:
    from transect.base.files import write_bytes
    from transect.errors import UsageError
    from transect.formats._clouds import encode_cloud
    from transect.geometry.colours import colours
    from transect.types import PointCloud

    clouds = [s for s in seen.sightings if isinstance(s.value, PointCloud) and s.T_camera_sensor is not None]
    if len(clouds) != 1:
        names = ", ".join(s.stream.name for s in clouds) or "none"
        raise UsageError(
            f"--coloured takes one point cloud, and there are {len(clouds)} at this time",
            why=f"they are {names}",
            hint="choose one with --streams, or a longer --tolerance",
        )
    cloud, T = clouds[0].value, clouds[0].T_camera_sensor
    assert T is not None
    result = colours(cloud, seen.image, seen.camera, T)
    write_bytes(path, encode_cloud(result, path.suffix.lower()))
    click.echo(f"wrote {path}: {len(result)} of {len(cloud)} points are in the image and not hidden")


# Frames


def _is_robot(path: str) -> bool:
    """Whether a path is a robot's file, or no path but a robot's name."""
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
    _refuse_no_frames(tree, title)
    edges = [(edge.parent, edge.child, edge.child in moving) for edge in tree.edges]
    figure = frame_tree_figure(edges, tree.poses_below(tree.largest_root), title=title, z_down=z_down)
    save_figure(figure, out, dpi)
    click.echo(f"wrote {out}")
    return 0


def frame_figure(recording: Recording, time: str | None) -> Figure:
    """Return the figure of a recording's frames; in space those that are fixed to the robot, or below it."""
    from transect.base import clocks
    from transect.draw.frames import frame_tree_figure

    tree = recording.frames
    _refuse_no_frames(tree, recording.name)
    edges = [(edge.parent, edge.child, edge.moving) for edge in tree.edges]
    base = _fixed_root(edges, (recording.robot.frames if recording.robot else tree).largest_root)
    span = recording.span
    t_ns = clocks.resolve(time or "+0s", span[0], "utc") if span else None
    z_down = bool(recording.robot and recording.robot.z_down)
    return frame_tree_figure(edges, tree.poses_below(base, t_ns), title=recording.name, z_down=z_down)


def _fixed_root(edges: Sequence[tuple[str, str, bool]], frame: str) -> str:
    """Return the uppermost frame that static edges (parent, child, moving) join to `frame`."""
    parents = {child: parent for parent, child, moving in edges if not moving}
    while frame in parents:
        frame = parents[frame]
    return frame


def _refuse_no_frames(tree: FrameTree, name: str) -> None:
    from transect.errors import UsageError

    if not len(tree):
        raise UsageError(f"{name} has no frames to draw", hint="transect info PATH --frames")


# Streams


def stream_figure(recording: Recording) -> Figure:
    """Return the figure of a recording's streams over time, on its main clock."""
    from transect.base import clocks
    from transect.draw.timeline import Strip, timeline_figure
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
