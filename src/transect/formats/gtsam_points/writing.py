"""Writing gtsam_points dumps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from transect.base import files
from transect.base.clocks import NS, decimal_from_ns
from transect.base.files import refuse_existing
from transect.errors import UnsupportedError, UsageError
from transect.recording import Recording, Sample, Stream
from transect.types import Imu, PointCloud, Pose

from ..shared.clouds import encode_cloud
from ..shared.payloads import good_payloads
from ..shared.rows import column_or_nan, float_texts, text_rows
from .reading import IMU, POSE

_KINDS = ("points", "edges", "planes")
_MOST = 1_000_000
"""Clouds that the six digits of a file name can number."""


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write clouds with the poses that belong to them, IMU and trajectories to a new folder.

    Points are float32 x y z; poses, stamps and inertial values read back exactly. Clouds of another format
    need a stream of poses that has one at each of their times.
    """
    refuse_existing(path)
    said: list[str] = []
    written: set[Path] = set()
    dumps = _dumps(recording)
    for folder, clouds in dumps.items():
        said += _write_dump(recording, clouds, path / folder, written)
    placed = [stream for clouds in dumps.values() for stream in clouds.values()]
    for stream in recording:
        if stream.type is not PointCloud:
            said += _write_text(stream, path, written)
        elif stream not in placed:
            said.append(f"{stream.name}: not written, another stream has taken its place")
    if not written:
        raise UsageError(
            f"{recording.name} has nothing to write as gtsam_points",
            why="; ".join(said) or "it has no streams",
        )
    return tuple(said)


def _place(stream: Stream, kinds: Sequence[str]) -> tuple[str, str]:
    """Return the folder and the kind of a stream's files: by its name if that ends in a kind, else by all."""
    parts = files.file_path(stream.name, otherwise="").split("/")
    kind = parts.pop().lower() if parts and parts[-1].lower() in kinds else kinds[0]
    return "/".join(parts), kind


def _dumps(recording: Recording) -> dict[str, dict[str, Stream]]:
    """Return the streams of clouds by folder and kind."""
    dumps: dict[str, dict[str, Stream]] = {}
    for stream in recording:
        if stream.type is PointCloud:
            folder, kind = _place(stream, _KINDS)
            dumps.setdefault(folder, {}).setdefault(kind, stream)
    return dumps


def _write_dump(
    recording: Recording, clouds: dict[str, Stream], folder: Path, written: set[Path]
) -> list[str]:
    """Write the clouds of one folder and the graph of their poses."""
    graph = _poses_of(recording, list(clouds.values()))
    if graph is None:
        names = ", ".join(stream.name for stream in clouds.values())
        return [f"{names}: not written, no stream has a pose at each of their times"]
    said: list[str] = []
    numbers = _numbers(graph, list(clouds.values()))
    if graph.clock != "index":
        said.append(f"{graph.name}: clouds and their poses are numbered, their times have no place in a dump")
    kept = {
        sample.t_ns
        for kind, stream in clouds.items()
        for sample in _write_clouds(stream, folder, kind, numbers, said)
    }
    order = {t: i for i, t in enumerate(sorted(kept))}
    return said + list(_write_graph(graph, order, folder / "graph.txt", written))


def _poses_of(recording: Recording, clouds: Sequence[Stream]) -> Stream | None:
    """Return the graph beside the clouds; else, truth first, poses of which there is one for each cloud."""
    own = f"{clouds[0].name.rpartition('/')[0]}/graph".lstrip("/")
    if own in recording and recording[own].clock == clouds[0].clock == "index":
        return recording[own]
    times = np.unique(np.concatenate([stream.t_ns for stream in clouds]))
    known = [
        stream
        for stream in recording
        if _has_attitude(stream) and stream.clock == clouds[0].clock and np.isin(times, stream.t_ns).all()
    ]
    return min(known, key=lambda stream: (stream.role != "truth", stream.name), default=None)


def _has_attitude(stream: Stream) -> bool:
    return stream.type is Pose and set(POSE) <= set(stream.columns)


def _numbers(graph: Stream, clouds: Sequence[Stream]) -> dict[int, int]:
    """Return a number for each time of a cloud: the time itself on the index clock, else counted."""
    times = np.unique(np.concatenate([stream.t_ns for stream in clouds]))
    whole = graph.clock == "index" and not (times % NS).any() and bool((times >= 0).all())
    return dict(zip(times.tolist(), (times // NS).tolist() if whole else range(len(times)), strict=True))


def _write_clouds(
    stream: Stream, folder: Path, kind: str, numbers: dict[int, int], said: list[str]
) -> Iterator[Sample]:
    """Write the clouds of a stream; yield those that were."""
    for sample, data in good_payloads(stream, partial(_points, numbers=numbers, said=said), said):
        number = numbers[sample.t_ns]
        name = f"{number:06d}/points.bin" if kind == "points" else f"{kind}_{number:06d}.bin"
        files.write_bytes(folder / name, data)
        yield sample
    if same := len(stream) - len(np.unique(stream.t_ns)):
        said.append(f"{stream.name}: {same} clouds have the time of another; of such, one is kept")


def _points(sample: Sample, numbers: dict[int, int], said: list[str]) -> bytes:
    """Return a cloud as float32 x y z."""
    files.reached(sample.t_ns, sample.stream.clock)
    cloud: PointCloud = sample.value
    if not len(cloud):
        raise UnsupportedError("a dump has no place for a cloud without points")
    if numbers[sample.t_ns] >= _MOST:
        raise UnsupportedError(f"a dump has no place for more than {_MOST} clouds")
    sentence = f"{sample.stream.name}: points are written without {', '.join(cloud.fields)}"
    if cloud.fields and sentence not in said:
        said.append(sentence)
    return encode_cloud(PointCloud(cloud.points), ".bin")


def _write_graph(stream: Stream, order: dict[int, int], file: Path, written: set[Path]) -> Iterator[str]:
    """Write poses as vertices: the i-th of the clouds is vertex i, and later numbers stand for themselves.

    Parameters
    ----------
    order : dict of int to int
        Which cloud stands at a time, in their order.
    """
    own = stream.clock == "index"
    beyond = {t: t // NS for t in stream.t_ns.tolist() if own and t % NS == 0 and t // NS >= len(order)}
    vertices = [order.get(t, beyond.get(t)) for t in stream.t_ns.tolist()]
    kept = stream.take(np.array([vertex is not None for vertex in vertices], dtype=bool))
    labels = [f"v{vertex}" for vertex in vertices if vertex is not None]
    yield from _write_rows(kept, labels, POSE, file, written)
    if own and (lost := len(stream) - len(kept)):
        yield f"{stream.name}: {lost} poses are of no cloud, and their numbers are those of others"


def _write_text(stream: Stream, path: Path, written: set[Path]) -> Iterator[str]:
    """Write inertial values or poses that have a time of day, or poses that are numbered."""
    kind = "imu" if stream.type is Imu else "traj" if stream.clock == "utc" else "graph"
    folder, _ = _place(stream, (kind,))
    file = path / folder / f"{kind}.txt"
    if not (stream.type is Imu or _has_attitude(stream)):
        yield f"{stream.name} ({stream.type.__name__}) has no place in a gtsam_points folder"
    elif stream.clock != ("index" if kind == "graph" else "utc"):
        yield f"{stream.name}: not written, times here are UTC and not of the {stream.clock} clock"
    elif kind == "graph" and file not in written:
        yield from _write_graph(stream, {}, file, written)
    elif kind != "graph":
        stamps = [decimal_from_ns(t) for t in stream.t_ns.tolist()]
        yield from _write_rows(stream, stamps, IMU if kind == "imu" else POSE, file, written)


def _write_rows(
    stream: Stream, labels: list[str], columns: Sequence[str], file: Path, written: set[Path]
) -> Iterator[str]:
    if file in written:
        yield f"{stream.name}: not written, another stream has taken {file.name}"
        return
    written.add(file)
    files.write_bytes(file, text_rows([labels, *(float_texts(column_or_nan(stream, c)) for c in columns)]))
    if others := [name for name in stream.columns if name not in columns]:
        yield f"{stream.name}: {', '.join(others)} have no place in a gtsam_points folder"
