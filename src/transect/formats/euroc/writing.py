"""An ASL folder as EuRoC's is, written line by line."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transect.base import files
from transect.base.files import file_paths, refuse_existing
from transect.errors import FrameError
from transect.recording import Recording, Stream
from transect.types import Image, Imu

from ..shared.interface import Note
from ..shared.payloads import good_payloads, payload_bytes
from ..shared.rows import column_or_nan, float_texts, text_rows
from .reading import BIAS, BODY, ESTIMATES, IMU, TRUTH

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


def write_folder(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write images, IMU and poses; return what could not be carried."""
    refuse_existing(path)
    said: list[str] = []
    for stream, folder in _folders(recording).items():
        target = path / "mav0" / folder
        if stream.type is Image:
            said += _write_images(recording, stream, target)
        elif stream.type is Imu:
            _write_rows(stream, target / "data.csv", IMU_HEADER, IMU)
        elif _TRUTH_FOLDER.fullmatch(folder):
            _write_poses(stream, target / "data.csv")
        else:
            _write_poses(stream, path / f"{folder}.csv")
            continue
        said += _write_sensor(recording, stream, target)
    return (*said, *_not_carried(recording))


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
    said = [_name_poses(recording, stream) for stream in poses]
    names = file_paths(said, taken=folders.values())
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
    said = [
        f"{s.name}: EuRoC has no place for {s.type.__name__}" for s in recording.streams if s not in known
    ]
    said += [
        Note(f"{s.name}: the {s.clock} clock is written as nanoseconds") for s in known if s.clock != "utc"
    ]
    known_columns = {*IMU, *TRUTH, *BIAS}
    for stream in known:
        if stream.type is not Image and (extra := [c for c in stream.columns if c not in known_columns]):
            said.append(f"{stream.name}: no columns for {', '.join(extra)}")
    return said


def _write_rows(stream: Stream, file: Path, header: str, names: tuple[str, ...]) -> None:
    columns = [float_texts(column_or_nan(stream, name)) for name in names]
    rows = text_rows([[str(t) for t in stream.t_ns.tolist()], *columns], ",")
    files.write_bytes(file, header.encode() + b"\n" + rows)


def _write_poses(stream: Stream, file: Path) -> None:
    """Write as few of the columns as hold all that is known: position, attitude, velocity, biases."""
    names = (*TRUTH, *BIAS)
    known = [i for i, name in enumerate(names) if name in stream.columns]
    width = next(w for w in (3, 7, 10, 16) if known[-1] < w)
    header = ",".join(TRUTH_HEADER.split(",")[: width + 1])
    _write_rows(stream, file, header, names[:width])


def _write_images(recording: Recording, stream: Stream, folder: Path) -> list[str]:
    lines, said = ["#timestamp [ns],filename\n"], list[str]()
    known: set[str] = set()
    for sample, data in good_payloads(stream, partial(payload_bytes, recording, suffix=".png"), said):
        name = f"{sample.t_ns}.png"
        name = name if name not in known else f"{sample.t_ns}_{sample.index}.png"  # two of the same time
        known.add(name)
        files.write_bytes(folder / "data" / name, data)
        lines.append(f"{sample.t_ns},{name}\n")
    files.write_text(folder / "data.csv", "".join(lines))
    return said


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
    """Return the frame that EuRoC's body is: what the truth gives the pose of, else the robot's own, ..."""
    frames, truth = recording.frames, recording.truth
    imus = [stream.frame for stream in recording if stream.type is Imu]
    robot = [recording.robot.frames.largest_root] if recording.robot and len(recording.robot.frames) else []
    named = [BODY, truth.child if truth else "", *robot, *imus]
    return next((name for name in named if name and name in frames), next(iter(frames.roots), BODY))
