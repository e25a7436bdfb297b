"""`transect draw track PATH...`: trajectories of recordings and runs on a map."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..shared.options import add_options
from ..shared.recordings import Opening, opening

if TYPE_CHECKING:
    from transect.base.arrays import Floats
    from transect.evaluation.positions.common_frame import MapLayout
    from transect.evaluation.positions.paths import RecordedPath
    from transect.recording import Recording

track_options = add_options(
    click.option(
        "--over", metavar="MAP|MAP:STREAM|RUN:PORT",
        help="Background: a GeoTIFF (heights or an orthophoto), the map of a run, an occupancy grid of a "
        "bag, or a point cloud.",
    ),
    click.option("--label", "labels", multiple=True, help="Name of a track, in the order of PATH."),
    click.option(
        "--colour", type=click.Choice(["sequence", "time"]), default="sequence", show_default=True,
        help="Colour by track, or by time since the start.",
    ),
    click.option(
        "--place", "places", multiple=True, metavar="NAME=LAT,LON",
        help="Mark a position: degrees, or metres in a figure without latitudes; may be repeated.",
    ),
    click.option(
        "--gap", type=click.FloatRange(min=0, min_open=True), metavar="S",
        help="Longer intervals without a position are gaps; default: five median steps.",
    ),
    click.option("--panels", is_flag=True, help="Draw each track in its own panel."),
    click.option(
        "--cycle", type=click.FloatRange(min=0, min_open=True), metavar="M",
        help="Repeat the colours of heights after M metres.",
    ),
    click.option("--title", default="", help="Title of the figure."),
)  # fmt: skip


@click.command()
@opening("streams", "times")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), default=Path("track.png"),
    help="PNG, SVG or PDF; default track.png.",
)  # fmt: skip
@click.option("--dpi", type=click.IntRange(50, 600), default=150, show_default=True, help="Pixels per inch.")
@track_options
def command(opening: Opening, out: Path, dpi: int, **choice: Any) -> int:
    """Draw trajectories of recordings and runs, seen from above.

    PATH is a recording, PATH:STREAM, the folder of a run, or RUN:PORT. The most accurate position of a
    recording is drawn: GNSS fixes, else poses, odometry, or ground truth; --streams selects others.

    Latitudes and longitudes become metres east and north. Tracks in different frames are aligned if they
    overlap in time; others start at the origin. Notes list the alignments.
    """
    from transect.draw.figures import save_figure
    from transect.evaluation.inputs import open_ground
    from transect.evaluation.positions.common_frame import lay_out
    from transect.evaluation.positions.paths import guides_of

    from ..shared.recordings import report_losses, warn_of_run

    warn_of_run(*opening.paths, *([choice["over"]] if choice["over"] else ()))
    recordings: list[Recording] = []
    paths: list[RecordedPath] = []
    for each in opening.each():
        recording, found = _open_paths(each)
        recordings += [recording] if recording else []
        paths += found
    paths = _label(paths, choice["labels"])
    below, guides, notes = open_ground(choice["over"]) if choice["over"] else (None, [], [])
    frame = "" if below is None or getattr(below, "crs", "") else below.frame
    if frame:
        guides += [guide for recording in recordings for guide in guides_of(recording, frame)]
    layout = lay_out(paths, below, guides)
    for note in (*notes, *layout.notes):
        click.echo(f"note: {note}", err=True)
    save_figure(_figure(layout, choice), out, dpi)
    click.echo(f"wrote {out}")
    return max((report_losses(recording) for recording in recordings), default=0)


def _open_paths(opening: Opening) -> tuple[Recording | None, list[RecordedPath]]:
    """Return a recording and its tracks; for a run only the tracks of its outputs."""
    from transect.evaluation.inputs import open_input, split_name, split_run
    from transect.evaluation.positions.paths import path_of_trajectory, paths_of

    path, name = split_name(opening.paths[0])
    if split_run(opening.paths[0]) is not None:
        made = open_input(opening.paths[0])
        return None, [path_of_trajectory(made.trajectory, made.name).between(opening.start, opening.end)]
    recording = dataclasses.replace(opening, paths=(path,)).open_unread()
    chosen = dataclasses.replace(opening, streams=()).cut(recording)
    return opening.check(recording) if opening.strict else recording, paths_of(chosen, name, opening.streams)


def _label(paths: list[RecordedPath], labels: tuple[str, ...]) -> list[RecordedPath]:
    """Return the tracks with the given names; equal names are numbered."""
    from transect.errors import UsageError

    if len(labels) > len(paths):
        raise UsageError(f"there are {len(labels)} labels and {len(paths)} tracks", why=", ".join(labels))
    names = [*labels, *(path.name for path in paths[len(labels) :])]
    twice = [
        f"{name} ({names[:k].count(name) + 1})" if names.count(name) > 1 else name
        for k, name in enumerate(names)
    ]
    return [dataclasses.replace(path, name=name) for path, name in zip(paths, twice, strict=True)]


def _figure(layout: MapLayout, choice: dict[str, Any]) -> Any:
    from transect.draw.tracks import TrackStyle, tracks_figure

    ground = layout.ground
    if ground is not None and choice["cycle"]:
        ground = dataclasses.replace(ground, cycle=choice["cycle"])
    style = TrackStyle(
        choice["title"], layout.caption, layout.view.names, layout.is_north_up, choice["colour"],
        choice["gap"], choice["panels"],
    )  # fmt: skip
    return tracks_figure(layout.tracks, ground, _places(choice["places"], layout.datum), style)


def _places(given: tuple[str, ...], datum: Floats | None) -> dict[str, Floats]:
    """Return positions in metres right and up: converted from degrees if there is a datum."""
    import numpy as np

    from transect.errors import UsageError
    from transect.geometry import geodesy

    from ..shared.options import parse_pairs

    found: dict[str, Floats] = {}
    for name, text in parse_pairs(given, "--place", "lander=37.72351,15.00668").items():
        try:
            first, second = (float(part) for part in text.split(","))
        except ValueError:
            raise UsageError(
                f"--place {name}={text} is not two numbers", hint="--place lander=37.72351,15.00668"
            ) from None
        if datum is None:
            found[name] = np.array([first, second])
            continue
        if abs(first) > 90 or abs(second) > 180:
            raise UsageError(f"--place {name}={text} is no latitude and longitude in degrees")
        place = np.array([np.radians(first), np.radians(second), datum[2]])
        found[name] = geodesy.local_from_geodetic(place, datum)[:2]
    return found
