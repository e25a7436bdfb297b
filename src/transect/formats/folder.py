"""Any folder of images or point clouds, with a calibration file beside them.

The files of one sensor are a stream: those in one folder that are called alike but for a number, which is a
time where it plainly is unix time, and else a place on the `index` clock. `left` and `right` in the names (or
L and R, cam0 and cam1, Middlebury's im2 and im6) make a pair. A calibration applies to the images beside and
below it whose size it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from transect.base.files import file_paths, refuse_existing, write_bytes
from transect.errors import FrameError, ParseError, UnsupportedError
from transect.recording import FrameTree, Loss, Parsed, Recording, Source, Stream
from transect.types import CameraModel, Image, PointCloud

from .calibration import kind_of
from .calibration.files import read_calibration, write_calibration
from .calibration.model import CalibrationFile, static_edges
from .pcd import cloud_stream, frames_beside
from .recognition import list_cloud_files
from .shared.file_groups import FileGroup, file_table, group_files
from .shared.file_heads import IMAGE_SUFFIXES, is_paper, suffix_of
from .shared.images import image_loader, image_size
from .shared.payloads import good_payloads, not_written, payload_file, time_names

_CALIBRATIONS = (".yaml", ".yml", ".xml", ".txt", ".m", ".meta", "")
_DATA = (".csv", ".txt", ".log", ".dat", ".json")
_TRUTHS = ("disp", "gt", "groundtruth", "ground_truth", "depth")
MAX_INSPECTED_TEXTS = 200
"""Number of small text files that are inspected for a calibration."""


@dataclass(frozen=True)
class _Beside:
    """A calibration file, its folder, whether it is the only one there, and the prefix of its names."""

    file: str
    folder: str
    alone: bool
    calibration: CalibrationFile
    prefix: str

    def applies_to(self, group: FileGroup) -> bool:
        """Return whether the images are in its folder or below."""
        return not self.folder or group.files[0].startswith(f"{self.folder}/")

    def is_named_like(self, group: FileGroup) -> bool:
        """Return whether the file has the name of the first image, except for the suffix."""
        return _without_suffix(self.file) == _without_suffix(group.files[0])

    def camera_of(self, group: FileGroup) -> CameraModel | None:
        """Return the camera of the images according to names."""
        cameras = list(self.calibration.cameras.values())
        if len(cameras) == 1:
            return cameras[0] if self.is_named_like(group) or (self.alone and not group.tag) else None
        tagged = [
            c for c in cameras if c.name.lower() == group.tag or c.name == PurePosixPath(group.name).name
        ]
        in_order = {"left": 0, "right": 1}.get(group.tag)
        if not tagged and in_order is not None and len(cameras) == 2:
            return cameras[in_order]
        return tagged[0] if tagged else None


def read(source: Source) -> Recording:
    """Read all images and clouds, and the calibration in the same folders."""
    beside, losses = _calibrations(source)
    frames, more = frames_beside(source)
    notes: list[str] = []
    cameras: dict[str, CameraModel] = {}
    for one in beside:
        cameras |= {one.prefix + name: model for name, model in one.calibration.cameras.items()}
        frames = _with_frames(frames, one, losses)
        notes += one.calibration.notes
    images = [name for name in source.names if suffix_of(name) in IMAGE_SUFFIXES]
    streams = [_image_stream(source, group, beside, notes) for group in group_files(images, "Camera")]
    clouds = list_cloud_files(source)
    streams += [cloud_stream(source, group) for group in group_files(clouds, "Lidar")]
    notes += _left_out(source, {*images, *clouds, *(one.file for one in beside)})
    return Recording(
        name=source.stem,
        streams=tuple(_uniquely_named(streams)),
        frames=frames,
        cameras=cameras,
        format="folder",
        source=source,
        notes=tuple(dict.fromkeys(notes)),
        reader_losses=(*losses, *more),
    )


def _without_suffix(name: str) -> str:
    folder, _, base = name.rpartition("/")
    return f"{folder}/{base.rpartition('.')[0] or base}"


def _calibrations(source: Source) -> tuple[list[_Beside], list[Loss]]:
    """Return the calibration files; if there are several, names are prefixed by that of the file."""
    small = [n for n in source.names if suffix_of(n) in _CALIBRATIONS and source.size(n) < 1_000_000][
        :MAX_INSPECTED_TEXTS
    ]
    files = [name for name in small if kind_of(source.head(name), name)]
    found: list[_Beside] = []
    losses: list[Loss] = []
    for file in files:
        prefix = f"{_without_suffix(file).lstrip('/')}/" if len(files) > 1 else ""
        folder = file.rpartition("/")[0]
        alone = sum(other.rpartition("/")[0] == folder for other in files) == 1
        try:
            calibration = read_calibration(source.document(file), file)
            calibration.tree()
            found.append(_Beside(file, folder, alone, calibration, prefix))
            source.record_read(file)
        except (ParseError, FrameError) as error:
            losses.append(Loss(file, error.why or error.what))
    return found, losses


def _with_frames(frames: FrameTree, one: _Beside, losses: list[Loss]) -> FrameTree:
    try:
        return frames.merge(one.calibration.tree(one.file), prefix=one.prefix)
    except FrameError as error:
        losses.append(Loss(one.file, error.what))
        return frames


def _image_stream(source: Source, group: FileGroup, beside: Sequence[_Beside], notes: list[str]) -> Stream:
    camera = _camera(source, group, beside, notes)
    frame = camera or group.name
    model = next(
        (b.calibration.cameras[camera.removeprefix(b.prefix)] for b in beside if _has(b, camera)), None
    )
    base = PurePosixPath(group.name).name.lower()
    return Stream(
        group.name,
        Image,
        lambda: Parsed(file_table(list(group.t_ns), group.files)),
        clock=group.clock,
        role="derived" if any(base.startswith(t) or base.endswith(t) for t in _TRUTHS) else "measurement",
        tag=group.tag,
        frame=frame,
        camera=camera,
        loader=image_loader(source, frame, model),
    )


def _has(one: _Beside, camera: str) -> bool:
    return bool(camera) and camera.removeprefix(one.prefix) in one.calibration.cameras


def _camera(source: Source, group: FileGroup, beside: Sequence[_Beside], notes: list[str]) -> str:
    """Return the name of the camera that took the images: of the nearest calibration that fits their size."""
    nearest = sorted(
        (one for one in beside if one.applies_to(group)),
        key=lambda one: (not one.is_named_like(group), -len(one.folder)),
    )
    size = image_size(source.head(group.files[0])) if nearest else None
    for one in nearest:
        model = one.camera_of(group)
        if model is None:
            continue
        if size is None or not model.width or (model.width, model.height) == size:
            return one.prefix + model.name
        found = f"{group.name} has {size[0]} x {size[1]}"
        notes.append(f"{one.file} is for images of {model.width} x {model.height}, {found}")
    return ""


def _left_out(source: Source, used: set[str]) -> list[str]:
    others = [
        n
        for n in source.names
        if n not in used
        and suffix_of(n) in _DATA
        and not is_paper(n)
        and not n.rpartition("/")[2].lower().startswith("t_")
    ]
    if not others:
        return []
    return [f"{len(others)} more files are not read ({others[0]}, ...): a recording.yaml can describe them"]


def _uniquely_named(streams: list[Stream]) -> list[Stream]:
    names = [stream.name for stream in streams]
    return [
        s.replace(name=f"{s.name}/{s.type.__name__.lower()}") if names.count(s.name) > 1 else s
        for s in streams
    ]


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write images and clouds, a folder per stream, named by their times, and a calibration.yml."""
    chosen = [s for s in recording.streams if s.type in (Image, PointCloud) and s.loader is not None]
    if not chosen:
        raise UnsupportedError(f"{recording.name} has neither images nor point clouds to write")
    refuse_existing(path)
    notes = not_written(recording, chosen)
    folders = file_paths(stream.name for stream in chosen)
    for stream, folder in zip(chosen, folders, strict=True):
        names, sentences = time_names(stream)
        notes += sentences
        for sample, (suffix, data) in good_payloads(stream, partial(payload_file, recording), notes):
            write_bytes(path / folder / f"{names[sample.index]}{suffix}", data)
    if recording.cameras:
        calibration = CalibrationFile(recording.cameras, static_edges(recording.frames))
        data = write_calibration(calibration, "opencv")
        write_bytes(path / "calibration.yml", data)
    return tuple(notes)
