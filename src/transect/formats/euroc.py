"""EuRoC / ASL folder: `mav0` with cam, imu and ground-truth folders, each with data.csv and sensor.yaml."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from transect.base import files
from transect.base.file_bytes import Content
from transect.base.files import file_paths, refuse_existing
from transect.errors import FrameError, TransectError
from transect.recording import FrameTree, Loss, Parsed, Recording, Source, Stream, arrow, cache
from transect.recording.arrow import PAYLOAD
from transect.recording.source import Buffer
from transect.recording.text import CsvLayout, is_number, line_pieces, read_csv, scan, whole_lines
from transect.types import CameraModel, Image, Imu, Pose, RigidBodyState

from .calibration.files import read_calibration
from .calibration.model import CalibrationFile, documents, matrix
from .recognition import find_euroc_roots, is_euroc_truth
from .shared.file_groups import file_table
from .shared.file_heads import first_rows
from .shared.images import find_listed, image_loader
from .shared.interface import Note
from .shared.payloads import good_payloads, payload_bytes
from .shared.rows import (
    clock_of_head,
    column_or_nan,
    exact_stamps,
    float_texts,
    lines_lost,
    only_file,
    text_rows,
)

IMU = ("gyro_x", "gyro_y", "gyro_z", "acc_x", "acc_y", "acc_z")
TRUTH = ("x", "y", "z", "qw", "qx", "qy", "qz", "vx", "vy", "vz")
BIAS = ("gyro_bias_x", "gyro_bias_y", "gyro_bias_z", "acc_bias_x", "acc_bias_y", "acc_bias_z")
BIAS_UNITS = {name: "rad/s" if "gyro" in name else "m/s2" for name in BIAS}
WORLD, BODY = "world", "body"
ESTIMATES = "estimates"
"""Folder next to `mav0/` with poses that are not ground truth; an extension of transect."""


def read(source: Source) -> Recording:
    """Read the folder, or a ground-truth file on its own."""
    roots = find_euroc_roots(source)
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
        source.record_read(name)
        try:
            found = _calibration(source.document(name), name, folder)
            for parent, child, T in found.frames:
                frames.add_static(parent, child, T, source=name)
            cameras |= found.cameras
        except (TransectError, ValueError, TypeError, LookupError) as error:
            losses.append(Loss(name, getattr(error, "why", "") or getattr(error, "what", "") or str(error)))
    return cameras, frames, losses


def _calibration(data: bytes, name: str, folder: str) -> CalibrationFile:
    """Read a sensor.yaml; T_BS takes points of the sensor to the body."""
    content = documents(data, name)[0]
    if folder.startswith("cam") and "intrinsics" in content:
        return read_calibration(data, name)
    if folder.startswith("state") or "T_BS" not in content:  # an estimate of the body's state is the body's
        return CalibrationFile({})
    return CalibrationFile({}, ((BODY, folder, matrix(content["T_BS"], "T_BS").reshape(4, 4)),))


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
    layout = CsvLayout(("t_ns", *names), {"t_ns": 1}, skip=header_lines(bytes(content[:4096])))
    for piece in line_pieces(content, file):
        csv = read_csv(piece, layout, file)
        columns = {name: csv.table.column(name) for name in names}
        yield Parsed(arrow.table(arrow.numbers(csv.table, "t_ns"), columns, units=units), csv.losses)


def _truths_beside(source: Source) -> list[Stream]:
    """Return the ground truth in CSV files outside the sensors' folders, as others publish it."""
    found = [
        n for n in source.names if "/" not in n and n.endswith(".csv") and is_euroc_truth(source.head(n))
    ]
    alone = len(found) == 1
    return [_truth(source, n, "GroundTruth" if alone else PurePosixPath(n).stem) for n in found]


def _estimates(source: Source) -> list[Stream]:
    """Return poses that are not ground truth: odometry, or the result of an algorithm."""
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


IMU_HEADER = (
    "#timestamp [ns],w_RS_S_x [rad s^-1],w_RS_S_y [rad s^-1],w_RS_S_z [rad s^-1],"
    "a_RS_S_x [m s^-2],a_RS_S_y [m s^-2],a_RS_S_z [m s^-2]"
)
TRUTH_HEADER = (
    "#timestamp,p_RS_R_x [m],p_RS_R_y [m],p_RS_R_z [m],q_RS_w [],q_RS_x [],q_RS_y [],q_RS_z [],"
    "v_RS_R_x [m s^-1],v_RS_R_y [m s^-1],v_RS_R_z [m s^-1],b_w_RS_S_x [rad s^-1],b_w_RS_S_y [rad s^-1],"
    "b_w_RS_S_z [rad s^-1],b_a_RS_S_x [m s^-2],b_a_RS_S_y [m s^-2],b_a_RS_S_z [m s^-2]"
)
_TRUTH_FOLDER = re.compile(r"(state_groundtruth_estimate|vicon|leica)\d+")
STATE, TRACKER = "state_groundtruth_estimate0", "leica0"
"""Folders of true poses, and of true positions."""
_LENSES = {"radtan": "radial-tangential"}


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write images, IMU and poses; return what could not be written."""
    refuse_existing(path)
    notes: list[str] = []
    for stream, folder in _folders(recording).items():
        target = path / "mav0" / folder
        if stream.type is Image:
            notes += _write_images(recording, stream, target)
        elif stream.type is Imu:
            _write_rows(stream, target / "data.csv", IMU_HEADER, IMU)
        elif _TRUTH_FOLDER.fullmatch(folder):
            _write_poses(stream, target / "data.csv")
        else:
            _write_poses(stream, path / f"{folder}.csv")
            continue
        notes += _write_sensor(recording, stream, target)
    return (*notes, *_not_carried(recording))


def _folders(recording: Recording) -> dict[Stream, str]:
    """Name the folder of each stream: cam0, cam1, ..., imu0, state_groundtruth_estimate0.

    Poses without one are a CSV file: truth at the top, where readers look for it, all others in `estimates/`.
    """
    folders: dict[Stream, str] = {}
    for kind, prefix in ((Image, "cam"), (Imu, "imu")):
        streams = [s for s in recording.streams if s.type is kind]
        kept = all(re.fullmatch(prefix + r"\d+", s.name) for s in streams)
        folders |= {s: s.name if kept else f"{prefix}{i}" for i, s in enumerate(streams)}
    poses = [s for s in recording.streams if s not in folders and {"x", "y", "z"} <= set(s.columns)]
    pose_names = [_name_poses(recording, stream) for stream in poses]
    names = file_paths(pose_names, taken=folders.values())
    return folders | dict(zip(poses, names, strict=True))


def _name_poses(recording: Recording, stream: Stream) -> str:
    """Return the folder, or the file, of poses: those of the truth have one that every tool knows."""
    plain = stream.name.replace("/", "_")
    if stream.role != "truth":
        return f"{ESTIMATES}/{plain}"
    if recording.format == "euroc" or _TRUTH_FOLDER.fullmatch(plain) or stream is not recording.truth:
        return plain
    return STATE if "qw" in stream.columns else TRACKER


def _not_carried(recording: Recording) -> list[str]:
    known = _folders(recording)
    notes = [
        f"{s.name}: EuRoC has no place for {s.type.__name__}" for s in recording.streams if s not in known
    ]
    notes += [
        Note(f"{s.name}: the {s.clock} clock is written as nanoseconds") for s in known if s.clock != "utc"
    ]
    known_columns = {*IMU, *TRUTH, *BIAS}
    for stream in known:
        if stream.type is not Image and (extra := [c for c in stream.columns if c not in known_columns]):
            notes.append(f"{stream.name}: no columns for {', '.join(extra)}")
    return notes


def _write_rows(stream: Stream, file: Path, header: str, names: tuple[str, ...]) -> None:
    columns = [float_texts(column_or_nan(stream, name)) for name in names]
    rows = text_rows([[str(t) for t in stream.t_ns.tolist()], *columns], ",")
    files.write_bytes(file, header.encode() + b"\n" + rows)


def _write_poses(stream: Stream, file: Path) -> None:
    """Write the shortest set of columns with all known values: position, attitude, velocity, biases."""
    names = (*TRUTH, *BIAS)
    known = [i for i, name in enumerate(names) if name in stream.columns]
    width = next(w for w in (3, 7, 10, 16) if known[-1] < w)
    header = ",".join(TRUTH_HEADER.split(",")[: width + 1])
    _write_rows(stream, file, header, names[:width])


def _write_images(recording: Recording, stream: Stream, folder: Path) -> list[str]:
    lines, notes = ["#timestamp [ns],filename\n"], list[str]()
    known: set[str] = set()
    for sample, data in good_payloads(stream, partial(payload_bytes, recording, suffix=".png"), notes):
        name = f"{sample.t_ns}.png"
        name = name if name not in known else f"{sample.t_ns}_{sample.index}.png"  # two of the same time
        known.add(name)
        files.write_bytes(folder / "data" / name, data)
        lines.append(f"{sample.t_ns},{name}\n")
    files.write_text(folder / "data.csv", "".join(lines))
    return notes


def _write_sensor(recording: Recording, stream: Stream, folder: Path) -> list[str]:
    kind = {Image: "camera", Imu: "imu"}.get(stream.type, "visual-inertial")
    T, said = _place(recording, stream) if kind != "visual-inertial" else (np.eye(4), [])
    lines = ["%YAML:1.0", f"sensor_type: {kind}", f"comment: {json.dumps(stream.name)}"]
    lines += ["T_BS:", "  cols: 4", "  rows: 4", f"  data: {T.reshape(-1).tolist()}"]
    camera = recording.cameras.get(stream.camera)
    if camera is not None:
        intrinsics = [float(camera.K[i]) for i in ((0, 0), (1, 1), (0, 2), (1, 2))]
        lines += [
            f"resolution: [{camera.width}, {camera.height}]",
            "camera_model: pinhole",
            f"intrinsics: {intrinsics}",
            f"distortion_model: {_LENSES.get(camera.distortion, camera.distortion)}",
            f"distortion_coefficients: {camera.coefficients.tolist()}",
        ]
        rectified = camera.P is not None or not np.array_equal(camera.R, np.eye(3))
        said += [f"{stream.name}: a sensor.yaml cannot hold its rectification"] if rectified else []
    files.write_text(folder / "sensor.yaml", "\n".join(lines) + "\n")
    return said


def _place(recording: Recording, stream: Stream) -> tuple[NDArray[np.float64], list[str]]:
    """Return T_body_sensor; where it moves, that of the first sample; the identity where it is not known.

    What is not so by nature is said.
    """
    frames, body = recording.frames, _body(recording)
    try:
        return frames.lookup(body, stream.frame), []
    except (FrameError, LookupError):
        first = stream.timing.start_ns
    try:
        T = frames.lookup(body, stream.frame, first, tolerance=float("inf"))
        return T, [f"{stream.name}: it moves on the {body}; T_BS is where it was at its first sample"]
    except (FrameError, LookupError):
        return np.eye(4), [Note(f"{stream.name}: T_BS is not known, the identity was written")]


def _body(recording: Recording) -> str:
    """Return the frame of EuRoC's body: that of the ground truth, else the robot's own."""
    frames, truth = recording.frames, recording.truth
    imus = [stream.frame for stream in recording if stream.type is Imu]
    robot = [recording.robot.frames.largest_root] if recording.robot and len(recording.robot.frames) else []
    named = [BODY, truth.child if truth else "", *robot, *imus]
    return next((name for name in named if name and name in frames), next(iter(frames.roots), BODY))
