"""KITTI: raw drives (images, oxts, velodyne), odometry sequences, and pose files of twelve numbers a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.errors import ParseError, TimeError, UsageError
from transect.geometry import rotations
from transect.recording import FrameTree, Loss, Parsed, Recording, Source, Stream, arrow, files, source_of
from transect.recording.clocks import Clock, iso_from_ns, ns_from_decimal, ns_from_iso
from transect.types import CameraModel, Image, Imu, NavFix, PointCloud, Pose, Twist

from ._base import Match, no
from ._images import encode_image, file_table, image_loader
from ._rows import float_texts, number_lines, read_lines, text_rows
from .tum import role_of_name

OXTS = tuple(
    "lat lon alt roll pitch yaw vn ve vf vl vu ax ay az af al au wx wy wz wf wl wu "
    "pos_accuracy vel_accuracy navstat numsats posmode velmode orimode".split()
)
"""Columns of an oxts packet, as KITTI's dataformat.txt lists them."""
CAMERAS = {
    **{"image_00": "left", "image_01": "right", "image_02": "left", "image_03": "right"},
    **{"image_0": "left", "image_1": "right", "image_2": "left", "image_3": "right"},
}
WORLD = "cam0_first"
_NO_ZONE = "KITTI's stamps name no time zone: they are taken as UTC"


def recognises(source: Source) -> Match:
    """Recognise image_00, oxts or velodyne folders with timestamps, or lines of twelve numbers."""
    timed = [n for n in source.names if n.endswith("timestamps.txt") and n.count("/") <= 1]
    if any(n.split("/")[0] in (*CAMERAS, "oxts", "velodyne_points") for n in timed):
        return Match(0.95, "image, oxts or velodyne folders with timestamps.txt")
    if "times.txt" in source and source.folders & set(CAMERAS):
        return Match(0.95, "times.txt beside image folders: an odometry sequence")
    if len(source.names) == 1 and number_lines(source.head(source.names[0]), 12):
        return Match(0.8, "lines of twelve numbers, a 3 x 4 pose each")
    return no("no image_0x or oxts folder with timestamps.txt, nor lines of twelve numbers")


def read(source: Source, times: str | None = None) -> Recording:
    """Read a drive, a sequence, or a pose file.

    Parameters
    ----------
    source : Source
    times : str, optional
        For a pose file: the file of its times; default `<name>_times.txt` or `times.txt` beside it, if there.
    """
    if len(source.names) == 1:
        return _read_poses_alone(source, times)
    losses: list[Loss] = []
    cameras = _cameras(source)
    streams = [_images(source, folder, cameras, losses) for folder in _image_folders(source)]
    streams += _oxts(source) if "oxts/timestamps.txt" in source else []
    streams += _velodyne(source, losses)
    streams += _poses_in_folder(source)
    return Recording(
        source.stem,
        tuple(streams),
        frames=_frames(cameras),
        cameras=cameras,
        format="kitti",
        source=source,
        notes=(_NO_ZONE,) if any(s.clock == "utc" for s in streams) else (),
        reader_losses=tuple(losses),
    )


def _image_folders(source: Source) -> list[str]:
    return [f for f in sorted(CAMERAS) if f in source.folders]


def _stamps(source: Source, folder: str) -> tuple[NDArray[np.int64], Clock]:
    """Return the times of a folder: `2011-09-30 12:08:26.403042304` a line, or seconds for a sequence."""
    name = f"{folder}/timestamps.txt"
    if name not in source:
        name = "times.txt"
    source.touch(name)
    lines = [line.strip() for line in source.text(name).splitlines() if line.strip()]
    try:
        if name == "times.txt":
            return np.array([ns_from_decimal(line) for line in lines], dtype=np.int64), "device"
        return np.array([ns_from_iso(line) for line in lines], dtype=np.int64), "utc"
    except TimeError as error:
        raise ParseError(f"{name} holds a line that is no time", where=name, why=error.what) from error


def _timed_files(
    source: Source, folder: str, suffixes: tuple[str, ...], losses: list[Loss]
) -> tuple[NDArray[np.int64], list[str], Clock]:
    """Pair frame numbers in file names with lines of timestamps; a file beyond the stamps is a loss."""
    t_ns, clock = _stamps(source, folder)
    inside = f"{folder}/data" if f"{folder}/data" in source.folders else folder
    names = [n for n in source.under(inside) if n.endswith(suffixes) and Path(n).stem.isdigit()]
    numbers = np.array([int(Path(n).stem) for n in names], dtype=np.int64)
    good = numbers < len(t_ns)
    if not good.all():
        first = names[int(np.argmin(good))]
        losses.append(Loss(first, f"there are only {len(t_ns)} time stamps", count=int((~good).sum())))
    kept = [n for n, here in zip(names, good, strict=True) if here]
    return t_ns[numbers[good]], kept, clock


def _images(source: Source, folder: str, cameras: Mapping[str, CameraModel], losses: list[Loss]) -> Stream:
    t_ns, names, clock = _timed_files(source, folder, (".png", ".jpg"), losses)
    camera = cameras.get(folder)
    return Stream(
        folder,
        Image,
        file_table(t_ns, names),
        clock=clock,
        tag=CAMERAS[folder],
        frame=folder,
        camera=folder if camera else "",
        loader=image_loader(source, folder, camera),
    )


def _velodyne(source: Source, losses: list[Loss]) -> list[Stream]:
    folder = next((f for f in ("velodyne_points", "velodyne") if f in source.folders), None)
    if folder is None:
        return []
    t_ns, names, clock = _timed_files(source, folder, (".bin",), losses)
    return [
        Stream(
            "velodyne", PointCloud, file_table(t_ns, names), clock=clock, frame="velo", loader=_cloud(source)
        )
    ]


def _cloud(source: Source) -> Callable[[Mapping[str, Any]], PointCloud]:
    def load(row: Mapping[str, Any]) -> PointCloud:
        name = row["payload"]
        data = source.read(name)
        if len(data) % 16:
            raise ParseError(
                f"{name} is cut off", where=f"{name}@{len(data)}", why="its size is no multiple of 16"
            )
        values = np.frombuffer(data, dtype="<f4").reshape(-1, 4)
        return PointCloud(values[:, :3], {"intensity": values[:, 3]}, t_ns=row["t_ns"], frame="velo")

    return load


def _oxts(source: Source) -> list[Stream]:
    t_ns, _ = _stamps(source, "oxts")
    names = [n for n in source.under("oxts/data") if Path(n).stem.isdigit()]
    memo: list[tuple[NDArray[np.int64], NDArray[np.float64], tuple[Loss, ...]]] = []

    def packets() -> tuple[NDArray[np.int64], NDArray[np.float64], tuple[Loss, ...]]:
        if not memo:
            memo.append(_read_packets(source, names, t_ns))
        return memo[0]

    kinds = (("oxts/fix", NavFix, _fix), ("oxts/imu", Imu, _imu), ("oxts/velocity", Twist, _velocity))
    return [Stream(name, kind, partial(_oxts_part, packets, part), frame="imu") for name, kind, part in kinds]


def _read_packets(
    source: Source, names: list[str], t_ns: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], tuple[Loss, ...]]:
    rows: list[list[float]] = []
    times: list[int] = []
    losses: list[Loss] = []
    for name in names:
        number, fields = int(Path(name).stem), source.read(name).split()
        source.touch(name)
        try:
            values = [float(f) for f in fields]
        except ValueError:
            values = []
        if len(values) != len(OXTS) or number >= len(t_ns):
            losses.append(Loss(name, f"not {len(OXTS)} numbers, or beyond the time stamps"))
            continue
        rows.append(values)
        times.append(int(t_ns[number]))
    return np.array(times, np.int64), np.array(rows, float).reshape(-1, len(OXTS)), tuple(losses)


def _oxts_part(packets: Callable[[], Any], part: Callable[[Mapping[str, Any]], Any]) -> Parsed:
    t_ns, rows, losses = packets()
    columns, units = part({name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(OXTS)})
    return Parsed(arrow.table(t_ns, columns, units=units), losses)


def _fix(p: Mapping[str, NDArray[np.float64]]) -> tuple[dict[str, Any], dict[str, str]]:
    """KITTI's body is x forward, y left, z up with yaw from east; ours is NED: pitch turns, yaw from north."""
    columns = {
        "lat": np.radians(p["lat"]),
        "lon": np.radians(p["lon"]),
        "alt": p["alt"],
        "std_north": p["pos_accuracy"],
        "std_east": p["pos_accuracy"],
        "std_down": p["pos_accuracy"],
        "roll": p["roll"],
        "pitch": -p["pitch"],
        "yaw": np.pi / 2 - p["yaw"],
        "satellites": p["numsats"],
        "navstat": p["navstat"],
        "posmode": p["posmode"],
        "velmode": p["velmode"],
        "orimode": p["orimode"],
    }
    return columns, NavFix.units()


def _imu(p: Mapping[str, NDArray[np.float64]]) -> tuple[dict[str, Any], dict[str, str]]:
    acc = {f"acc_{a}": p[f"a{a}"] for a in "xyz"}
    gyro = {f"gyro_{a}": p[f"w{a}"] for a in "xyz"}
    levelled = {f"levelled_{n}": p[n] for n in ("af", "al", "au", "wf", "wl", "wu")}
    return {**acc, **gyro, **levelled}, Imu.units()


def _velocity(p: Mapping[str, NDArray[np.float64]]) -> tuple[dict[str, Any], dict[str, str]]:
    columns = {
        "vx": p["vf"],
        "vy": p["vl"],
        "vz": p["vu"],
        "vn": p["vn"],
        "ve": p["ve"],
        "std": p["vel_accuracy"],
    }
    return columns, {**Twist.units(), "vn": "m/s", "ve": "m/s", "std": "m/s"}


def _cameras(source: Source) -> dict[str, CameraModel]:
    """Return the rectified cameras of calib_cam_to_cam.txt, or of an odometry sequence's calib.txt."""
    known: dict[str, CameraModel] = {}
    for name in ("calib_cam_to_cam.txt", "calib.txt"):
        if name not in source:
            continue
        source.touch(name)
        lines = [line for line in source.text(name).splitlines() if line.strip()]
        for number, line in enumerate(lines):
            key, _, rest = line.rpartition(":")
            label = key or f"P{number}"
            values = np.array([float(v) for v in rest.split()]) if _projection(label) else np.zeros(0)
            if len(values) == 12:
                folder = f"image_{int(label[-1]):02d}"
                known.setdefault(folder, _rectified(folder, values.reshape(3, 4), lines))
    present = _image_folders(source)
    return {f: known[f"image_{int(f[6:]):02d}"] for f in present if f"image_{int(f[6:]):02d}" in known}


def _projection(label: str) -> bool:
    return label.startswith("P_rect_") or (len(label) == 2 and label[0] == "P" and label[1].isdigit())


def _rectified(name: str, P: NDArray[np.float64], lines: list[str]) -> CameraModel:
    prefix = f"S_rect_{name[-2:]}:"
    size = next((line[len(prefix) :].split() for line in lines if line.startswith(prefix)), ("0", "0"))
    return CameraModel(name, int(float(size[0])), int(float(size[1])), P[:, :3].copy(), P=P, frame=name)


def _frames(cameras: Mapping[str, CameraModel]) -> FrameTree:
    """Place the rectified cameras beside camera 0: P's last column is -f times the offset."""
    frames = FrameTree()
    first = next(iter(cameras), None)
    for name, camera in cameras.items():
        if name != first and first is not None and camera.P is not None:
            T = np.eye(4)
            T[:3, 3] = -np.linalg.solve(camera.P[:, :3], camera.P[:, 3])
            frames.add_static(first, name, T, source="calibration")
    return frames


def _poses_in_folder(source: Source) -> list[Stream]:
    found = [
        n
        for n in source.names
        if "/" not in n and n.endswith(".txt") and "calib" not in n and "times" not in n
    ]
    return [
        _pose_stream(source, n, partial(_stamps, source, "image_00"))
        for n in found
        if number_lines(source.head(n), 12)
    ]


def _read_poses_alone(source: Source, times: str | None) -> Recording:
    (name,) = source.names
    beside = (
        [Path(times)]
        if times
        else [source.path.with_name(f"{source.stem}_times.txt"), source.path.with_name("times.txt")]
    )
    found = next((p for p in beside if p.is_file()), None)
    if times and found is None:
        raise UsageError(f"there is no file {times}", hint="times= names the file with one time a line")
    stamps = partial(_seconds, found) if found else None
    return Recording(source.stem, (_pose_stream(source, name, stamps),), format="kitti", source=source)


def _seconds(path: Path) -> tuple[NDArray[np.int64], Clock]:
    source = source_of(path)
    lines = [line for line in source.text(path.name).split() if line]
    return np.array([ns_from_decimal(line) for line in lines], dtype=np.int64), "device"


def _pose_stream(source: Source, name: str, stamps: Callable[[], tuple[Any, Clock]] | None) -> Stream:
    t_ns, clock = stamps() if stamps else (None, "index")
    return Stream(
        Path(name).stem,
        Pose,
        partial(_parse_poses, source, name, t_ns),
        clock=clock,
        role=role_of_name(name) if "poses" not in name else "truth",
        frame=WORLD,
        child="image_00",
    )


def _parse_poses(source: Source, name: str, t_ns: NDArray[np.int64] | None) -> Parsed:
    tokens, lines, losses = read_lines(source.buffer(name), name, (12,))
    source.touch(name)
    poses = tokens.block(0, 12, lines).reshape(-1, 3, 4)
    rows = tokens.line[lines] - 1
    if t_ns is not None:
        good = rows < len(t_ns)
        if not good.all():
            losses.append(Loss(name, f"there are only {len(t_ns)} time stamps", count=int((~good).sum())))
        poses, rows = poses[good], t_ns[rows[good]]
    q = rotations.quaternion_from_matrix(poses[:, :, :3])
    columns = {n: np.ascontiguousarray(poses[:, i, 3]) for i, n in enumerate("xyz")}
    columns |= {n: np.ascontiguousarray(q[:, i]) for i, n in enumerate(("qx", "qy", "qz", "qw"))}
    return Parsed(arrow.table(rows, columns, units=Pose.units()), tuple(losses))


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write images, clouds and poses in KITTI's raw layout."""
    if path.exists() and any(path.iterdir()):
        raise UsageError(f"{path} is not empty", hint="choose a new folder with -o")
    left_out: list[str] = []
    images = [s for s in recording.streams if s.type is Image]
    for number, stream in enumerate(images):
        _write_images(stream, path / f"image_{number:02d}")
    for stream in recording.streams:
        if stream.type is Pose and {"x", "qw"} <= set(stream.columns):
            _write_poses(stream, path / f"{stream.name.replace('/', '_')}.txt")
            left_out += [f"{stream.name}: times are lost, KITTI numbers poses by image"] if not images else []
        elif stream.type is not Image:
            left_out.append(f"{stream.name}: {stream.type.__name__} is not written to KITTI's layout")
    projections = [recording.cameras[s.camera].P if s.camera in recording.cameras else None for s in images]
    lines = [
        f"P_rect_{i:02d}: " + " ".join(float_texts(P.reshape(-1)))
        for i, P in enumerate(projections)
        if P is not None
    ]
    if lines:
        files.write_text(path / "calib_cam_to_cam.txt", "\n".join(lines) + "\n")
    return tuple(left_out)


def _write_images(stream: Stream, folder: Path) -> None:
    stamps: list[str] = []
    for sample in stream:
        files.write_bytes(folder / "data" / f"{sample.index:010d}.png", encode_image(sample.value, ".png"))
        stamps.append(iso_from_ns(sample.t_ns, 9).replace("T", " "))
    files.write_text(folder / "timestamps.txt", "\n".join(stamps) + "\n")


def _write_poses(stream: Stream, path: Path) -> None:
    R = rotations.matrix_from_quaternion(stream.array("qx", "qy", "qz", "qw"))
    rows = np.concatenate([R, stream.array("x", "y", "z")[:, :, None]], axis=2).reshape(len(stream), 12)
    files.write_bytes(path, text_rows([float_texts(rows[:, i]) for i in range(12)]))
