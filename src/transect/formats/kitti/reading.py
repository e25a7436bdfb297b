"""Reading KITTI's drives, odometry sequences and pose files."""

from __future__ import annotations

from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from transect.base.clocks import NS
from transect.errors import UsageError
from transect.geometry import rotations
from transect.recording import Parsed, Recording, Role, Source, Stream, cache, source_of
from transect.recording.source import Buffer
from transect.recording.text.scanning import NO_STAMP
from transect.types import CameraModel, Image, PointCloud, Pose

from .._clouds import cloud_loader, cloud_table
from .._heads import number_rows
from .._images import file_table, image_loader
from .._rows import lines_lost, only_file, read_lines
from ..tum.reading import pose_table, role_of_name
from . import CAMERAS, CLOUDS, SECONDS, STAMPS, find_drives, find_pose_file
from .calibration import FILES, SEQUENCE_FILE, VELO, Calibration, read_calibration
from .oxts import oxts_streams
from .times import clock_of_times, read_times, timed_files, times_of_folder

CLOUD_COLUMNS = ("x", "y", "z", "intensity")
WORLD = "cam0_first"
"""Frame of a pose file: camera 0 at its first frame."""
ROUNDED = 0.01
"""How far ``R.T @ R`` of a printed pose may be from the identity."""
_NO_ZONE = "KITTI's stamps name no time zone: they are taken as UTC"
Times = tuple[Source, str]


def read(source: Source, times: str | None = None) -> Recording:
    """Read a drive, a sequence, or a pose file."""
    drives = find_drives(source)
    if not drives:
        return _read_poses_alone(source, times)
    drive = source.at(drives[0])
    folders = [f for f in sorted(CAMERAS) if f in drive.folders]
    calibration = _calibration(source, drive, folders)
    cameras = {f: calibration.cameras[int(f[6:])] for f in folders if int(f[6:]) in calibration.cameras}
    streams = [_images(drive, folder, cameras.get(folder)) for folder in folders]
    streams += [*_velodyne(drive), *_oxts(drive), *_poses(drive)]
    return Recording(
        drive.stem,
        tuple(streams),
        frames=calibration.frames,
        cameras=cameras,
        format="kitti",
        source=drive,
        notes=(_NO_ZONE,) if any(f"{f}/{STAMPS}" in drive for f in drive.folders) else (),
        reader_losses=tuple(calibration.losses),
    )


def _beside(source: Source, path: Path) -> Source | None:
    """Return a file outside the source, if it is there; what is read of it counts to the same provenance."""
    if not path.is_file():
        return None
    other = source_of(path)
    other.touched = source.touched
    return other


def _calibration(source: Source, drive: Source, folders: list[str]) -> Calibration:
    """Read the calibration inside the drive, or beside it: KITTI keeps one per day in the folder above."""
    texts: dict[str, str] = {}
    for name in FILES:
        above = _beside(drive, drive.path.parent / name) if name != SEQUENCE_FILE else None
        places = (drive, source, above)
        place = next((p for p in places if p is not None and name in p), None)
        if place is not None:
            texts[name] = place.text(name)
            place.touch(name)
    return read_calibration(texts, folders)


def _images(source: Source, folder: str, camera: CameraModel | None) -> Stream:
    def table() -> Parsed:
        timed = timed_files(source, folder, (".png", ".jpg"))
        return Parsed(file_table(list(timed.t_ns.values()), list(timed.t_ns)), timed.losses)

    return Stream(
        folder,
        Image,
        table,
        clock=clock_of_times(source, times_of_folder(source, folder)),
        tag=CAMERAS[folder],
        frame=folder,
        camera=folder if camera else "",
        loader=image_loader(source, folder, camera),
    )


def _velodyne(source: Source) -> list[Stream]:
    folder = next((f for f in CLOUDS if f in source.folders), None)
    if folder is None:
        return []

    def table() -> Parsed:
        timed = timed_files(source, folder, (".bin",))
        clouds = cloud_table(source, list(timed.t_ns.values()), list(timed.t_ns), CLOUD_COLUMNS)
        return Parsed(clouds.table, (*timed.losses, *clouds.losses))

    return [
        Stream(
            "velodyne",
            PointCloud,
            table,
            clock=clock_of_times(source, times_of_folder(source, folder)),
            frame=VELO,
            loader=cloud_loader(source, VELO, partial=True, columns=CLOUD_COLUMNS),
        )
    ]


def _oxts(source: Source) -> list[Stream]:
    if "oxts/data" not in source.folders:
        return []
    clock = clock_of_times(source, times_of_folder(source, "oxts"))
    return oxts_streams(source, partial(timed_files, source, "oxts", (".txt",)), clock)


def _poses(drive: Source) -> list[Stream]:
    """Return the pose files of a drive, timed by `<name>_times.txt` or like its images.

    An odometry sequence has its poses elsewhere: `sequences/06` in `poses/06.txt`.
    """
    folders = (f for f in (*sorted(CAMERAS), *CLOUDS) if f in drive.folders)
    like_images = next((t for f in folders if (t := times_of_folder(drive, f)) is not None), None)
    texts = [n for n in drive.names if "/" not in n and n.endswith(".txt") and n not in FILES]
    found = [(drive, name) for name in texts if number_rows(drive.head(name), 12)]
    official = _beside(drive, drive.path.parent.parent / "poses" / f"{drive.stem}.txt")
    found += [(official, official.names[0])] if official is not None else []
    camera = "image_0" if "image_0" in drive.folders else "image_00"
    streams: dict[str, Stream] = {}
    for place, name in found:
        stem = PurePosixPath(name).stem
        times = f"{stem}_times.txt" if f"{stem}_times.txt" in drive else like_images
        role = "truth" if stem.isdigit() else role_of_name(name)
        timed = (drive, times) if times else None
        streams[stem] = _pose_stream(f"poses/{stem}", place, name, timed, role, camera)
    return list(streams.values())


def _read_poses_alone(source: Source, times: str | None) -> Recording:
    name = find_pose_file(source) or only_file(source)
    folder = source.path if source.path.is_dir() else source.path.parent
    usual = (f"{PurePosixPath(name).stem}_times.txt", SECONDS)
    beside = [Path(times)] if times else [folder / n for n in usual]
    inside = [(source, n) for n in usual if n in source and not times]
    found = [(p, p.names[0]) for path in beside if (p := _beside(source, path)) is not None]
    if times and not found:
        raise UsageError(f"there is no file {times}", hint="times= names the file with one time a line")
    timed = next(iter(inside + found), None)
    stream = _pose_stream("Trajectory", source, name, timed, role_of_name(f"{folder.name}/{name}"))
    return Recording(source.stem, (stream,), format="kitti", source=source)


def _pose_stream(
    stream: str, source: Source, name: str, times: Times | None, role: Role, child: str = "image_00"
) -> Stream:
    return Stream(
        stream,
        Pose,
        partial(_pose_rows, source, name, times),
        clock=clock_of_times(*times) if times else "index",
        role=role,
        frame=WORLD,
        child=child,
    )


def _pose_rows(source: Source, name: str, times: Times | None) -> Parsed:
    """Return 3 x 4 matrices parsed; those with times of another file are not kept in the cache."""
    if times is None:
        return cache.parsed(source, name, "kitti.poses/1", partial(_parse_poses, name=name, times=None))
    source.touch(name)
    return _parse_poses(source.buffer(name), name, times)


def _parse_poses(buffer: Buffer, name: str, times: Times | None) -> Parsed:
    """Parse 3 x 4 matrices; line i is frame i."""
    tokens, lines, losses = read_lines(buffer, name, (12,))
    frames = tokens.line[lines] - 1
    t_ns, lost = read_times(*times) if times else (frames * NS, ())
    if times:
        timed = frames < len(t_ns)
        losses += lines_lost(tokens, lines[~timed], f"{times[1]} has only {len(t_ns)} times", name)
        lines, t_ns = lines[timed], t_ns[frames[timed]]
        lines, t_ns = lines[t_ns != NO_STAMP], t_ns[t_ns != NO_STAMP]
    poses = tokens.block(0, 12, lines).reshape(-1, 3, 4)
    usable = _is_rotation(poses[:, :, :3]) | np.isnan(poses).any(axis=(1, 2))
    losses += lines_lost(tokens, lines[~usable], "the matrix is no rotation", name)
    return Parsed(pose_table(t_ns[usable], _with_quaternions(poses[usable])), (*losses, *lost))


def _is_rotation(R: NDArray[np.float64]) -> NDArray[np.bool_]:
    with np.errstate(over="ignore", invalid="ignore"):
        straight = np.abs(np.swapaxes(R, 1, 2) @ R - np.eye(3)).max(axis=(1, 2), initial=0.0) < ROUNDED
        return straight & (np.linalg.det(R) > 0)


def _with_quaternions(poses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (n, 7) x y z qx qy qz qw of (n, 3, 4) matrices; the attitude of one with a NaN is NaN."""
    known = ~np.isnan(poses).any(axis=(1, 2))
    q = np.full((len(poses), 4), np.nan)
    q[known] = rotations.quaternion_from_matrix(poses[known][:, :, :3])
    return np.concatenate([poses[:, :, 3], q], axis=1)
