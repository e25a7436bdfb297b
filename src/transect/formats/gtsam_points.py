"""gtsam_points dumps: raw clouds, `graph.txt` with their poses, and text of IMU and trajectory beside them.

Three layouts, alone or together in one folder (koide3/gtsam_points, `data/`):

- a dump: `000000/points.bin`, ... (float32 x y z) and a line ``v<i> x y z qx qy qz qw`` each in `graph.txt`;
- Newer College features: `edges_000010.bin`, `planes_000010.bin`, ... and `graph.txt` in their order;
- continuous time: `imu.txt` (``time ax ay az wx wy wz``; s, m/s2, rad/s) and `traj.txt`
  (``time x y z qx qy qz qw``).

They are written as they are read: a stream's name is the folder and the kind of its files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from transect.base import files
from transect.base.clocks import NS, decimal_from_ns
from transect.base.files import refuse_existing
from transect.errors import UnsupportedError, UsageError
from transect.recording import Parsed, Recording, Sample, Source, Stream, cache
from transect.recording.source import Buffer
from transect.recording.text import scan, whole_lines
from transect.types import Imu, PointCloud, Pose

from .recognition import GTSAM_POINTS_CLOUD, GTSAM_POINTS_FEATURES
from .shared.clouds import cloud_loader, cloud_table, encode_cloud
from .shared.payloads import good_payloads
from .shared.rows import column_or_nan, float_texts, lines_lost, parse_timed_rows, text_rows
from .tum import COLUMNS as POSE
from .tum import pose_table

IMU = ("acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z")


def read(source: Source) -> Recording:
    """Read the clouds, their poses on the `index` clock, and the continuous-time texts on `utc`."""
    streams: list[Stream] = []
    for folder in sorted({n.rpartition("/")[0] for n in source.names if n.rpartition("/")[2] == "graph.txt"}):
        streams += _dump(source, folder)
    for name in source.names:
        if name.rpartition("/")[2] in ("imu.txt", "traj.txt"):
            streams.append(_text(source, name))
    return Recording(name=source.stem, streams=tuple(streams), format="gtsam_points", source=source)


def _dump(source: Source, folder: str) -> list[Stream]:
    """Return the clouds of one graph and the poses of its vertices, which come in the clouds' order."""
    prefix = f"{folder}/" if folder else ""
    sorts: dict[str, list[tuple[int, str]]] = {}
    for name in source.names:
        if not name.startswith(prefix):
            continue
        if match := GTSAM_POINTS_CLOUD.fullmatch(name):
            sorts.setdefault("points", []).append((int(match[1]), name))
        elif match := GTSAM_POINTS_FEATURES.fullmatch(name):
            sorts.setdefault(match[1], []).append((int(match[2]), name))
    numbers = sorted({number for files in sorts.values() for number, _ in files})
    streams = [_clouds(source, prefix + kind, sorted(files)) for kind, files in sorted(sorts.items())]
    build = partial(_graph, numbers=numbers, file=f"{prefix}graph.txt")
    pose = _stream(source, f"{prefix}graph.txt", f"gtsam_points.graph/1|{numbers}", build)
    return [
        *streams,
        Stream(
            f"{prefix}graph", Pose, pose, clock="index", role="truth", frame="map", child=f"{prefix}lidar"
        ),
    ]


def _stream(
    source: Source, name: str, parser: str, build: Callable[[Buffer], Parsed]
) -> Callable[[], Parsed]:
    return lambda: cache.parse(source, name, f"{parser}|{name}", build)


def _clouds(source: Source, name: str, files: list[tuple[int, str]]) -> Stream:
    frame = f"{name.rpartition('/')[0]}/lidar".lstrip("/")
    t_ns, names = [number * NS for number, _ in files], [file for _, file in files]
    return Stream(
        name,
        PointCloud,
        partial(cloud_table, source, t_ns, names, ("x", "y", "z")),
        clock="index",
        frame=frame,
        loader=cloud_loader(source, frame, partial=True, columns=("x", "y", "z")),
    )


def _graph(buffer: Buffer, numbers: list[int], file: str) -> Parsed:
    """Parse ``v<i> x y z qx qy qz qw``; vertex i belongs to the i-th cloud."""
    size, cut = whole_lines(buffer, file)
    tokens = scan(buffer, size)
    lines = np.flatnonzero(tokens.counts == 8)
    good = [i for i in lines if not tokens.is_word[tokens.first[i] + 1 : tokens.first[i + 1]].any()]
    labels = [tokens.text(int(tokens.first[i])) for i in good]
    kept = [(i, int(w[1:])) for i, w in zip(good, labels, strict=True) if re.fullmatch(r"v\d{1,9}", w)]
    rows = np.array([i for i, _ in kept], dtype=np.int64)
    t_ns = [(numbers[v] if v < len(numbers) else v) * NS for _, v in kept]
    values = tokens.block(1, 7, rows)
    bad = sorted(set(range(len(tokens.line))) - set(rows.tolist()))
    losses = lines_lost(tokens, np.array(bad, np.int64), "not a vertex with its pose", file)
    return Parsed(pose_table(np.array(t_ns, np.int64), values), (*losses, *([cut] if cut else [])))


def _text(source: Source, name: str) -> Stream:
    is_imu = name.endswith("imu.txt")
    columns, kind = (IMU, Imu) if is_imu else (POSE, Pose)
    build = partial(parse_timed_rows, file=name, columns=columns, units=kind.units())
    key = f"gtsam_points.{'imu' if is_imu else 'trajectory'}/2|{name}"
    parsed = partial(cache.parse_pieces, source, name, key, build)
    title = name.removesuffix(".txt")
    if is_imu:
        return Stream(title, Imu, parsed, frame="imu")
    return Stream(title, Pose, parsed, role="truth", frame="map", child="imu")


_KINDS = ("points", "edges", "planes")
_MAX_CLOUDS = 1_000_000
"""Limit of the six digits of file names."""


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write clouds with the poses that belong to them, IMU and trajectories to a new folder.

    Points are float32 x y z; poses, stamps and inertial values read back exactly. Clouds of another format
    need a stream of poses that has one at each of their times.
    """
    refuse_existing(path)
    notes: list[str] = []
    written: set[Path] = set()
    dumps = _dumps(recording)
    for folder, clouds in dumps.items():
        notes += _write_dump(recording, clouds, path / folder, written)
    placed = [stream for clouds in dumps.values() for stream in clouds.values()]
    for stream in recording:
        if stream.type is not PointCloud:
            notes += _write_text(stream, path, written)
        elif stream not in placed:
            notes.append(f"{stream.name}: not written, another stream has taken its place")
    if not written:
        raise UsageError(
            f"{recording.name} has nothing to write as gtsam_points",
            why="; ".join(notes) or "it has no streams",
        )
    return tuple(notes)


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
    notes: list[str] = []
    numbers = _numbers(graph, list(clouds.values()))
    if graph.clock != "index":
        notes.append(
            f"{graph.name}: clouds and their poses are numbered, their times have no place in a dump"
        )
    kept = {
        sample.t_ns
        for kind, stream in clouds.items()
        for sample in _write_clouds(stream, folder, kind, numbers, notes)
    }
    order = {t: i for i, t in enumerate(sorted(kept))}
    return notes + list(_write_graph(graph, order, folder / "graph.txt", written))


def _poses_of(recording: Recording, clouds: Sequence[Stream]) -> Stream | None:
    """Return the graph of the clouds; else poses, one per cloud, with ground truth first."""
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
    if numbers[sample.t_ns] >= _MAX_CLOUDS:
        raise UnsupportedError(f"a dump has no place for more than {_MAX_CLOUDS} clouds")
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
