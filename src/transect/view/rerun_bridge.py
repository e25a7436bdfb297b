"""Export of a recording to the Rerun viewer: images, points, paths and signals (the extra `view`)."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.base.files import refuse_existing, staged
from transect.base.processes import python_command
from transect.errors import MissingExtraError, ParseError, UnsupportedError
from transect.geometry import rotations
from transect.recording import Stream
from transect.recording.arrow import LazyColumns, block_ranges
from transect.types import LaserScan

from .viewer.encoding import as_float32, cloud_points, encode_picture, scan_points
from .viewer.scene import PICTURES, POINTS, ViewerScene

BATCH = 64
"""Number of images or clouds that are sent together."""
TIMELINE = "time"
MAX_OFFSET_NS = 4e18
"""Largest time from the start of a scene, 127 years; larger ones are clipped."""


def save_scene(scene: ViewerScene, path: Path) -> list[str]:
    """Write a scene as an .rrd file; return warnings about samples that could not be written."""
    refuse_existing(path)
    with staged(path) as new:
        recording = _start(scene)
        recording.save(str(new))
        warnings = _send(scene, recording)
        recording.disconnect()
    return warnings


def show_scene(scene: ViewerScene) -> list[str]:
    """Show a scene in Rerun until its window is closed; its server is bound to the loopback interface."""
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "scene.rrd")
        warnings = save_scene(scene, file)
        subprocess.run(python_command("-m", "rerun", "--bind", "127.0.0.1", str(file)), check=True)
    return warnings


def _start(scene: ViewerScene) -> Any:
    if find_spec("rerun") is None:
        raise MissingExtraError("rerun-sdk", "view")
    import rerun

    return rerun.RecordingStream(f"transect {scene.recording.name}")


def _send(scene: ViewerScene, recording: Any) -> list[str]:
    """Send a scene; images and clouds that cannot be read are omitted, and counted."""
    recording.send_blueprint(_blueprint(scene))
    _send_paths(scene, recording)
    warnings: list[str] = []
    for number, stream in enumerate(scene.streams):
        if stream.type in PICTURES:
            warnings += _send_pictures(scene, stream, recording)
        elif stream.type in POINTS:
            warnings += _send_points(scene, stream, recording)
        else:
            _send_curves(scene, number, recording)
    return warnings


def _name(*parts: str) -> str:
    """Return an entity's path, with the characters of each part escaped."""
    import rerun

    return "/".join(rerun.escape_entity_path_part(part) for part in parts)


def _times(scene: ViewerScene, seconds: Floats) -> list[Any]:
    import rerun

    if scene.axis.clock == "index":
        return [rerun.TimeColumn(TIMELINE, sequence=seconds.astype(np.int64))]
    since = np.round(np.clip(seconds * NS, -MAX_OFFSET_NS, MAX_OFFSET_NS)).astype(np.int64)
    t_ns = max(scene.axis.start_ns, -int(MAX_OFFSET_NS)) + since
    if scene.axis.clock == "utc":
        return [rerun.TimeColumn(TIMELINE, timestamp=t_ns.astype("datetime64[ns]"))]
    return [rerun.TimeColumn(TIMELINE, duration=t_ns.astype("timedelta64[ns]"))]


def _send_paths(scene: ViewerScene, recording: Any) -> None:
    import rerun

    for path in scene.paths:
        recording.log(
            _name("world", path.name), rerun.LineStrips3D([as_float32(path.positions)]), static=True
        )
    for path in scene.paths[scene.carrier : scene.carrier + 1] if scene.paths else ():
        moved = rerun.Transform3D.columns(
            translation=as_float32(path.positions), quaternion=path.orientations
        )
        recording.send_columns(_name("world", "robot"), _times(scene, path.seconds), moved)


def _send_pictures(scene: ViewerScene, stream: Stream, recording: Any) -> list[str]:
    import rerun

    def columns(files: list[bytes]) -> Any:
        blobs = [np.frombuffer(file, np.uint8) for file in files]
        return rerun.EncodedImage.columns(blob=blobs, media_type=["image/jpeg"] * len(blobs))

    return _send_samples(scene, stream, recording, _name("pictures", stream.name), encode_picture, columns)


def _send_points(scene: ViewerScene, stream: Stream, recording: Any) -> list[str]:
    import rerun

    fixed, mount = scene.locate(stream.frame, int(stream.t_ns[0]))
    entity = _name("world", *(() if fixed else ("robot",)), stream.name)
    rotation = rerun.Quaternion(xyzw=rotations.quaternion_from_matrix(mount[:3, :3]))
    recording.log(entity, rerun.Transform3D(translation=mount[:3, 3], quaternion=rotation), static=True)

    def columns(clouds: list[Floats]) -> Any:
        positions = as_float32(np.concatenate([cloud[:, :3] for cloud in clouds]))
        return rerun.Points3D.columns(positions=positions).partition([len(cloud) for cloud in clouds])

    points = scan_points if stream.type is LaserScan else cloud_points
    return _send_samples(scene, stream, recording, entity, points, columns)


def _send_samples(
    scene: ViewerScene, stream: Stream, recording: Any, entity: str, convert: Callable[[Any], Any],
    columns: Callable[[list[Any]], Any],
) -> list[str]:  # fmt: skip
    """Send the converted samples in batches; return a warning with the number that cannot be read."""
    bad = 0
    for begin in range(0, len(stream), BATCH):
        taken: dict[int, Any] = {}
        for row in range(begin, min(begin + BATCH, len(stream))):
            try:
                taken[row] = convert(stream[row].value)
            except (ParseError, UnsupportedError):
                bad += 1
        if taken:
            times = _times(scene, scene.seconds(stream)[list(taken)])
            recording.send_columns(entity, times, columns(list(taken.values())))
    return [f"{stream.name}: {bad} of {len(stream)} samples cannot be read"] if bad else []


def _send_curves(scene: ViewerScene, number: int, recording: Any) -> None:
    import rerun

    stream, seconds = scene.streams[number], scene.seconds(scene.streams[number])
    for curve in scene.curves[number]:
        rows = LazyColumns(stream.table, curve.column)
        for a, b in block_ranges(0, len(stream), overlap=0):
            values = np.asarray(rows[a:b], np.float64)
            values = values if curve.part is None else values[:, curve.part]
            columns = rerun.Scalars.columns(scalars=values)
            recording.send_columns(
                _name("plots", stream.name, curve.label), _times(scene, seconds[a:b]), columns
            )


def _blueprint(scene: ViewerScene) -> Any:
    """Return the layout: 3-D beside the images, the plots of each stream below."""
    import rerun.blueprint as layout

    pictures = [s.name for s in scene.streams if s.type in PICTURES]
    plotted = [
        s.name
        for s, curves in zip(scene.streams, scene.curves, strict=True)
        if curves and s.type not in POINTS
    ]
    views: list[Any] = [layout.Spatial3DView(origin="world", name=scene.recording.name)]
    if pictures:
        views.append(
            layout.Grid(*(layout.Spatial2DView(origin=_name("pictures", n), name=n) for n in pictures))
        )
    rows: list[Any] = [layout.Horizontal(*views)]
    if plotted:
        rows.append(layout.Grid(*(layout.TimeSeriesView(origin=_name("plots", n), name=n) for n in plotted)))
    return layout.Blueprint(layout.Vertical(*rows))
