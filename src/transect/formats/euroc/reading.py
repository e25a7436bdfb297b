"""Reading ASL folders and ground-truth files."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import PurePosixPath

import numpy as np

from transect.base.file_bytes import Content
from transect.errors import TransectError
from transect.recording import FrameTree, Loss, Parsed, Recording, Source, Stream, arrow, cache
from transect.recording.arrow import PAYLOAD
from transect.recording.source import Buffer
from transect.recording.text import Layout, is_number, line_pieces, read_csv, scan, whole_lines
from transect.types import CameraModel, Image, Imu, Pose, RigidBodyState

from ..calibration.documents import documents, matrix
from ..calibration.model import Calibration
from ..calibration.reading import read_calibration
from ..shared.file_heads import first_rows
from ..shared.images import file_table, find_listed, image_loader
from ..shared.rows import clock_of_head, exact_stamps, lines_lost, only_file
from . import find_roots, is_truth

IMU = ("gyro_x", "gyro_y", "gyro_z", "acc_x", "acc_y", "acc_z")
TRUTH = ("x", "y", "z", "qw", "qx", "qy", "qz", "vx", "vy", "vz")
BIAS = ("gyro_bias_x", "gyro_bias_y", "gyro_bias_z", "acc_bias_x", "acc_bias_y", "acc_bias_z")
BIAS_UNITS = {name: "rad/s" if "gyro" in name else "m/s2" for name in BIAS}
WORLD, BODY = "world", "body"
ESTIMATES = "estimates"
"""Folder beside `mav0/` of poses that are no truth; EuRoC has none, our writer makes it."""


def read(source: Source) -> Recording:
    """Read the folder, or a ground-truth file on its own."""
    roots = find_roots(source)
    if not roots:
        name = only_file(source)
        return Recording(source.stem, (_truth(source, name, "GroundTruth"),), format="euroc", source=source)
    prefix = f"{roots[0]}/" if roots[0] else ""
    inside = (name.removeprefix(prefix) for name in source.names if name.startswith(prefix))
    folders = sorted({name.partition("/")[0] for name in inside if "/" in name})
    cameras, frames, losses = _calibrations(source, prefix, folders)
    timed = [f for f in folders if f"{prefix}{f}/data.csv" in source]
    streams = [_stream(source, prefix, folder, cameras.get(folder)) for folder in timed]
    empty = [f for f in folders if f not in timed and f"{prefix}{f}/sensor.yaml" in source]
    return Recording(
        source.stem,
        (*streams, *_truths_beside(source), *_estimates(source)),
        frames=frames,
        cameras=cameras,
        format="euroc",
        source=source,
        notes=tuple(f"{folder} has a sensor.yaml but no data.csv" for folder in empty),
        reader_losses=tuple(losses),
    )


def _calibrations(
    source: Source, prefix: str, folders: list[str]
) -> tuple[dict[str, CameraModel], FrameTree, list[Loss]]:
    """Return the cameras and frames that the sensor.yaml files describe; a bad one is a loss."""
    cameras: dict[str, CameraModel] = {}
    frames = FrameTree()
    losses: list[Loss] = []
    for folder in folders:
        name = f"{prefix}{folder}/sensor.yaml"
        if name not in source:
            continue
        source.touch(name)
        try:
            found = _calibration(source.document(name), name, folder)
            for parent, child, T in found.frames:
                frames.add_static(parent, child, T, source=name)
            cameras |= found.cameras
        except (TransectError, ValueError, TypeError, LookupError) as error:
            losses.append(Loss(name, getattr(error, "why", "") or getattr(error, "what", "") or str(error)))
    return cameras, frames, losses


def _calibration(data: bytes, name: str, folder: str) -> Calibration:
    """Read a sensor.yaml; T_BS takes points of the sensor to the body."""
    content = documents(data, name)[0]
    if folder.startswith("cam") and "intrinsics" in content:
        return read_calibration(data, name)
    if folder.startswith("state") or "T_BS" not in content:  # an estimate of the body's state is the body's
        return Calibration({})
    return Calibration({}, ((BODY, folder, matrix(content["T_BS"], "T_BS").reshape(4, 4)),))


def _stream(source: Source, prefix: str, folder: str, camera: CameraModel | None) -> Stream:
    name = f"{prefix}{folder}/data.csv"
    clock = clock_of_head(source.head(name), 1)
    if folder.startswith("cam"):
        return Stream(
            folder,
            Image,
            partial(_present_images, source, name),
            clock=clock,
            tag={"cam0": "left", "cam1": "right"}.get(folder, ""),
            frame=folder,
            camera=folder if camera else "",
            loader=image_loader(source, folder, camera),
        )
    if folder.startswith("imu"):
        parse = partial(_parse_imu, file=name)
        return Stream(
            folder,
            Imu,
            lambda: cache.parse_pieces(source, name, "euroc.imu/1", parse),
            clock=clock,
            frame=folder,
        )
    return _truth(source, name, folder, BODY if folder.startswith("state") else folder)


def _present_images(source: Source, file: str) -> Parsed:
    """Return the listed images that are there; the listing alone is cached, it does not know the files."""
    listed = cache.parse(source, file, "euroc.cam/1", partial(_parse_listing, file=file))
    folder = file.removesuffix("data.csv") + "data/"
    paths = [folder + name for name in arrow.texts(listed.table, PAYLOAD)]
    return find_listed(source, listed, paths, file)


def _parse_listing(buffer: Buffer, file: str) -> Parsed:
    """Parse lines of `time [ns],filename`."""
    size, cut = whole_lines(buffer, file)
    tokens = scan(buffer, size)
    header = np.zeros(len(tokens.line), dtype=bool)
    header[: header_lines(bytes(buffer[:4096]))] = True
    fits = tokens.counts == 2
    losses = lines_lost(tokens, np.flatnonzero(~header & ~fits), "not a time and a file name", file)
    t_ns, lines, bad = exact_stamps(tokens, 0, np.flatnonzero(~header & fits), file, 1)
    names = [tokens.text(int(tokens.first[line]) + 1) for line in lines]
    return Parsed(file_table(t_ns, names), (*losses, *bad, *([cut] if cut else [])))


def header_lines(head: bytes) -> int:
    """Return 1 if a text begins with a header, 0 if with a number: some tools write none."""
    first = head.partition(b"\n")[0].split(b",")[0].strip()
    return 0 if is_number(first) else 1


def _parse_imu(content: Content, file: str) -> Iterator[Parsed]:
    return _parse_csv(content, file, IMU, Imu.units())


def _parse_csv(
    content: Content, file: str, names: tuple[str, ...], units: dict[str, str]
) -> Iterator[Parsed]:
    """Parse lines of a time in ns and one number per name, piece by piece."""
    layout = Layout(("t_ns", *names), {"t_ns": 1}, skip=header_lines(bytes(content[:4096])))
    for piece in line_pieces(content, file):
        csv = read_csv(piece, layout, file)
        columns = {name: csv.table.column(name) for name in names}
        yield Parsed(arrow.table(arrow.numbers(csv.table, "t_ns"), columns, units=units), csv.losses)


def _truths_beside(source: Source) -> list[Stream]:
    """Return the ground truth in CSV files outside the sensors' folders, as others publish it."""
    found = [n for n in source.names if "/" not in n and n.endswith(".csv") and is_truth(source.head(n))]
    alone = len(found) == 1
    return [_truth(source, n, "GroundTruth" if alone else PurePosixPath(n).stem) for n in found]


def _estimates(source: Source) -> list[Stream]:
    """Return poses that are no truth: odometry, or what an algorithm made."""
    found = [name for name in source.names if PurePosixPath(name).parts[:-1] == (ESTIMATES,)]
    return [
        _truth(source, name, PurePosixPath(name).stem, "").replace(role="estimate", frame="")
        for name in found
        if name.endswith(".csv")
    ]


def _truth(source: Source, file: str, name: str, child: str = BODY) -> Stream:
    head = source.head(file)
    width = max((len(row) for row in first_rows(head)), default=0)
    return Stream(
        name,
        RigidBodyState if width > 8 else Pose,
        lambda: cache.parse_pieces(source, file, "euroc.truth/1", partial(_parse_truth, file=file)),
        clock=clock_of_head(head, 1),
        role="truth",
        frame=WORLD,
        child=child,
    )


def _parse_truth(content: Content, file: str) -> Iterator[Parsed]:
    """Parse as many of the 17 columns as there are: a Leica tracker has 4, Vicon has 8."""
    rows = [row for row in first_rows(bytes(content[:65_536])) if is_number(row[0])]
    names = (*TRUTH, *BIAS)[: max((len(row) for row in rows), default=17) - 1]
    return _parse_csv(content, file, names, {**RigidBodyState.units(), **BIAS_UNITS})
