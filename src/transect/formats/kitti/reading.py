"""Reading of KITTI's drives, odometry sequences and pose files."""

from __future__ import annotations

from functools import partial
from pathlib import PurePosixPath

from transect.errors import UsageError
from transect.recording import Parsed, Recording, Source, Stream
from transect.types import CameraModel, Image, PointCloud

from ..shared.clouds import cloud_loader, cloud_table
from ..shared.file_groups import file_table
from ..shared.file_heads import number_rows
from ..shared.images import image_loader
from ..truth import list_trajectories
from ..tum import role_of_name, tum_stream
from . import CAMERAS, CLOUDS, STAMPS, find_drives
from .calibration import FILES, SEQUENCE_FILE, VELO, KittiCalibration, read_calibration
from .oxts import oxts_streams
from .poses import WORLD, clock_of_times, open_beside, pair_times, pose_stream, read_poses, times_of_folder

CLOUD_COLUMNS = ("x", "y", "z", "intensity")
_NO_ZONE = "KITTI's stamps name no time zone: they are taken as UTC"


def read(source: Source, times: str | None = None) -> Recording:
    """Read a drive, a sequence, or a pose file.

    Parameters
    ----------
    times : str, optional
        For a pose file: the file of its times; default `<name>_times.txt` or `times.txt` beside it, if there.
    """
    drives = find_drives(source)
    if not drives:
        return read_poses(source, times)
    if times is not None:
        why = f"{source.stem} is a drive with times of its own"
        raise UsageError("the option times is for a file of poses", why=why)
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


def _calibration(source: Source, drive: Source, folders: list[str]) -> KittiCalibration:
    """Read the calibration of the drive, or that of its day in the parent folder."""
    texts: dict[str, str] = {}
    for name in FILES:
        above = open_beside(drive, drive.path.parent / name) if name != SEQUENCE_FILE else None
        places = (drive, source, above)
        place = next((p for p in places if p is not None and name in p), None)
        if place is not None:
            texts[name] = place.text(name)
            place.record_read(name)
    return read_calibration(texts, folders)


def _images(source: Source, folder: str, camera: CameraModel | None) -> Stream:
    def table() -> Parsed:
        timed = pair_times(source, folder, (".png", ".jpg"))
        return Parsed(file_table(list(timed.t_ns.values()), list(timed.t_ns)), timed.losses, timed.notes)

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
        timed = pair_times(source, folder, (".bin",))
        clouds = cloud_table(source, list(timed.t_ns.values()), list(timed.t_ns), CLOUD_COLUMNS)
        return Parsed(clouds.table, (*timed.losses, *clouds.losses), timed.notes)

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
    return oxts_streams(source, partial(pair_times, source, "oxts", (".txt",)), clock)


def _poses(drive: Source) -> list[Stream]:
    """Return the pose files of a drive, timed by `<name>_times.txt` or like its images, and TUM files.

    An odometry sequence has its poses elsewhere: `sequences/06` in `poses/06.txt`. All are poses of the left
    camera, unless the first lines of a TUM file name another frame.
    """
    folders = (f for f in (*sorted(CAMERAS), *CLOUDS) if f in drive.folders)
    like_images = next((t for f in folders if (t := times_of_folder(drive, f)) is not None), None)
    texts = [n for n in drive.names if "/" not in n and n.endswith(".txt") and n not in FILES]
    found = [(drive, name) for name in texts if number_rows(drive.head(name), 12)]
    official = open_beside(drive, drive.path.parent.parent / "poses" / f"{drive.stem}.txt")
    found += [(official, official.names[0])] if official is not None else []
    camera = "image_0" if "image_0" in drive.folders else "image_00"
    streams: dict[str, Stream] = {}
    for place, name in found:
        stem = PurePosixPath(name).stem
        times = f"{stem}_times.txt" if f"{stem}_times.txt" in drive else like_images
        role = "truth" if stem.isdigit() else role_of_name(name)
        timed = (drive, times) if times else None
        streams[stem] = pose_stream(f"poses/{stem}", place, name, timed, role, camera)
    for name in list_trajectories(drive):
        stem = PurePosixPath(name).stem
        streams.setdefault(stem, tum_stream(f"poses/{stem}", drive, name, WORLD, camera))
    return list(streams.values())
