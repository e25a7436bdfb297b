"""Reading gtsam_points dumps."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import numpy as np

from transect.base.clocks import NS
from transect.recording import Parsed, Recording, Source, Stream, cache
from transect.recording.source import Buffer
from transect.recording.text import scan, whole_lines
from transect.types import Imu, PointCloud, Pose

from ..shared.clouds import cloud_loader, cloud_table
from ..shared.rows import lines_lost, parse_timed_rows
from ..tum.reading import COLUMNS as POSE
from ..tum.reading import pose_table
from . import DUMP, FEATURES

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
        if match := DUMP.fullmatch(name):
            sorts.setdefault("points", []).append((int(match[1]), name))
        elif match := FEATURES.fullmatch(name):
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
