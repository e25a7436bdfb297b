"""EuRoC / ASL folder: `mav0` with cam, imu and ground-truth folders, each with data.csv and sensor.yaml."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from transect.errors import ParseError, UsageError
from transect.recording import FrameTree, Loss, Parsed, Recording, Source, Stream, arrow, cache, files
from transect.recording.source import Buffer
from transect.types import CameraModel, Image, Imu, RigidBodyState

from ._base import Match, no
from ._csv import Layout, read_csv
from ._images import encode_image, file_table, image_loader
from ._rows import float_texts, text_rows

IMU = ("gyro_x", "gyro_y", "gyro_z", "acc_x", "acc_y", "acc_z")
TRUTH = ("x", "y", "z", "qw", "qx", "qy", "qz", "vx", "vy", "vz")
BIAS = ("gyro_bias_x", "gyro_bias_y", "gyro_bias_z", "acc_bias_x", "acc_bias_y", "acc_bias_z")
BIAS_UNITS = {name: "rad/s" if "gyro" in name else "m/s2" for name in BIAS}
IMU_HEADER = (
    "#timestamp [ns],w_RS_S_x [rad s^-1],w_RS_S_y [rad s^-1],w_RS_S_z [rad s^-1],"
    "a_RS_S_x [m s^-2],a_RS_S_y [m s^-2],a_RS_S_z [m s^-2]\n"
)
TRUTH_HEADER = (
    "#timestamp, p_RS_R_x [m], p_RS_R_y [m], p_RS_R_z [m], q_RS_w [], q_RS_x [], q_RS_y [], q_RS_z [], "
    "v_RS_R_x [m s^-1], v_RS_R_y [m s^-1], v_RS_R_z [m s^-1], b_w_RS_S_x [rad s^-1], b_w_RS_S_y [rad s^-1], "
    "b_w_RS_S_z [rad s^-1], b_a_RS_S_x [m s^-2], b_a_RS_S_y [m s^-2], b_a_RS_S_z [m s^-2]\n"
)
WORLD, BODY = "world", "body"


def recognises(source: Source) -> Match:
    """Recognise `mav0/imu0/data.csv` or its like, and a ground-truth CSV on its own."""
    if _root(source) is not None:
        return Match(0.95, "it has imu or cam folders with data.csv and sensor.yaml")
    if len(source.names) == 1 and _is_truth(source.head(source.names[0])):
        return Match(0.9, "a ground-truth CSV in ns with 17 columns")
    return no("no mav0 folder with data.csv and sensor.yaml")


def _is_truth(head: bytes) -> bool:
    first, _, rest = head.partition(b"\n")
    row = rest.partition(b"\n")[0].split(b",")
    return (
        first.startswith((b"#time", b"time"))
        and len(row) >= 8
        and len(row[0].strip()) == 19
        and row[0].isdigit()
    )


def _root(source: Source) -> str | None:
    for name in source.names:
        parts = name.split("/")
        if parts[-1] == "sensor.yaml" and len(parts) >= 2 and parts[-2].startswith(("imu", "cam")):
            return "/".join(parts[:-2])
    return None


def read(source: Source) -> Recording:
    """Read the folder, or a ground-truth file on its own."""
    root = _root(source)
    if root is None:
        (name,) = source.names
        return Recording(source.stem, (_truth(source, name, "GroundTruth"),), format="euroc", source=source)
    base = source.at(root)
    folders = sorted({n.partition("/")[0] for n in base.names if "/" in n})
    streams: list[Stream] = []
    cameras: dict[str, CameraModel] = {}
    frames = FrameTree()
    losses: list[Loss] = []
    for folder in folders:
        sensor = _sensor(base, folder, losses)
        if "T_BS" in sensor:
            frames.add_static(BODY, folder, _matrix(sensor["T_BS"]), source=f"{folder}/sensor.yaml")
        if "intrinsics" in sensor:
            cameras[folder] = _camera(folder, sensor)
        if f"{folder}/data.csv" in base:
            streams.append(_stream(base, folder, cameras))
    streams += [
        _truth(source, n, _truth_name(n)) for n in source.names if "/" not in n and _is_csv_truth(source, n)
    ]
    return Recording(
        source.stem,
        tuple(streams),
        frames=frames,
        cameras=cameras,
        format="euroc",
        source=source,
        reader_losses=tuple(losses),
    )


def _is_csv_truth(source: Source, name: str) -> bool:
    return name.endswith(".csv") and _is_truth(source.head(name, 4096))


def _truth_name(name: str) -> str:
    return "GroundTruth" if "gt" in name.lower() or "truth" in name.lower() else Path(name).stem


def _sensor(source: Source, folder: str, losses: list[Loss]) -> dict[str, Any]:
    """Return a sensor.yaml; `%YAML:1.0` is OpenCV's, not YAML's, first line."""
    import yaml

    name = f"{folder}/sensor.yaml"
    if name not in source:
        return {}
    text = "\n".join(line for line in source.text(name).splitlines() if not line.startswith("%YAML"))
    source.touch(name)
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        losses.append(Loss(name, f"it is not YAML: {str(error).splitlines()[0]}"))
        return {}
    return found if isinstance(found, dict) else {}


def _matrix(value: Any) -> Any:
    try:
        return np.asarray(value["data"], dtype=np.float64).reshape(4, 4)
    except (KeyError, TypeError, ValueError) as error:
        raise ParseError("T_BS is not a 4 x 4 matrix", where="sensor.yaml") from error


def _camera(name: str, sensor: dict[str, Any]) -> CameraModel:
    fx, fy, cx, cy = (float(v) for v in sensor["intrinsics"])
    width, height = sensor.get("resolution", (0, 0))
    model = {"radial-tangential": "radtan", "equidistant": "equidistant"}.get(
        str(sensor.get("distortion_model", "")), "none"
    )
    return CameraModel(
        name,
        int(width),
        int(height),
        np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1.0]]),
        model,
        np.asarray(sensor.get("distortion_coefficients", []), dtype=np.float64),
        frame=name,
    )


def _stream(source: Source, folder: str, cameras: dict[str, CameraModel]) -> Stream:
    name = f"{folder}/data.csv"
    if folder.startswith("cam"):
        tag = {"cam0": "left", "cam1": "right"}.get(folder, "")
        build = partial(_parse_images, source=source, folder=folder)
        return Stream(
            folder,
            Image,
            lambda: cache.parsed(source, name, _listing_key(source, folder), build),
            tag=tag,
            frame=folder,
            camera=folder,
            loader=image_loader(source, folder, cameras.get(folder)),
        )
    if folder.startswith("imu"):
        return Stream(
            folder,
            Imu,
            lambda: cache.parsed(source, name, "euroc.imu/1", partial(_parse_imu, file=name)),
            frame=folder,
        )
    return _truth(source, name, folder)


def _listing_key(source: Source, folder: str) -> str:
    """Return the parser's key with the number of files: the table depends on which images are there."""
    return f"euroc.cam/1/{len(source.under(f'{folder}/data'))}"


def _parse_images(buffer: Buffer, source: Source, folder: str) -> Parsed:
    file = f"{folder}/data.csv"
    csv = read_csv(buffer, Layout(("t_ns", "name"), {"t_ns": 1}, ("name",)), file)
    t_ns, names = arrow.numbers(csv.table, "t_ns"), [n.strip() for n in arrow.texts(csv.table, "name")]
    paths = [f"{folder}/data/{n}" for n in names]
    there = np.array([p in source for p in paths], dtype=bool)
    losses = list(csv.losses)
    if not there.all():
        first = int(np.argmin(there))
        losses.append(Loss(paths[first], "it is listed but not there", count=int((~there).sum())))
    kept = [p for p, here in zip(paths, there, strict=True) if here]
    return Parsed(file_table(t_ns[there], kept), tuple(losses))


def _parse_imu(buffer: Buffer, file: str) -> Parsed:
    csv = read_csv(buffer, Layout(("t_ns", *IMU), {"t_ns": 1}), file)
    columns = {name: csv.table.column(name) for name in IMU}
    return Parsed(arrow.table(arrow.numbers(csv.table, "t_ns"), columns, units=Imu.units()), csv.losses)


def _truth(source: Source, file: str, name: str) -> Stream:
    return Stream(
        name,
        RigidBodyState,
        lambda: cache.parsed(source, file, "euroc.truth/1", partial(_parse_truth, file=file)),
        role="truth",
        frame=WORLD,
        child=BODY,
    )


def _parse_truth(buffer: Buffer, file: str) -> Parsed:
    width = bytes(buffer[:4096]).partition(b"\n")[2].partition(b"\n")[0].count(b",") + 1
    names = (*TRUTH, *BIAS)[: width - 1]
    csv = read_csv(buffer, Layout(("t_ns", *names), {"t_ns": 1}), file)
    columns = {name: csv.table.column(name) for name in names}
    units = {**RigidBodyState.units(), **BIAS_UNITS}
    return Parsed(arrow.table(arrow.numbers(csv.table, "t_ns"), columns, units=units), csv.losses)


def write(recording: Recording, path: Path) -> tuple[str, ...]:
    """Write images, IMU and truth as an ASL folder."""
    if path.exists() and any(path.iterdir()):
        raise UsageError(f"{path} is not empty", hint="choose a new folder with -o")
    left_out: list[str] = []
    for stream in recording.streams:
        folder = path / "mav0" / stream.name.replace("/", "_")
        if stream.type is Image:
            _write_images(stream, folder, left_out)
        elif stream.type is Imu:
            _write_rows(stream, folder, IMU_HEADER, IMU)
        elif {"x", "y", "z", "qw"} <= set(stream.columns):
            _write_rows(stream, folder, TRUTH_HEADER, (*TRUTH, *BIAS))
        else:
            left_out.append(f"{stream.name}: EuRoC has no place for {stream.type.__name__}")
            continue
        _write_sensor(recording, stream, folder)
    return tuple(left_out)


def _write_rows(stream: Stream, folder: Path, header: str, names: tuple[str, ...]) -> None:
    missing = np.full(len(stream), np.nan)
    values = [np.asarray(stream[n] if n in stream.columns else missing, dtype=np.float64) for n in names]
    rows = text_rows([[str(t) for t in stream.t_ns.tolist()], *(float_texts(v) for v in values)], ",")
    files.write_bytes(folder / "data.csv", header.encode() + rows)


def _write_images(stream: Stream, folder: Path, left_out: list[str]) -> None:
    lines = ["#timestamp [ns],filename\n"]
    for sample in stream:
        name = f"{sample.t_ns}.png"
        try:
            data = encode_image(sample.value, ".png")
        except ParseError as error:
            left_out.append(f"{stream.name}: {error.what}")
            continue
        files.write_bytes(folder / "data" / name, data)
        lines.append(f"{sample.t_ns},{name}\n")
    files.write_text(folder / "data.csv", "".join(lines))


def _write_sensor(recording: Recording, stream: Stream, folder: Path) -> None:
    kind = {Image: "camera", Imu: "imu"}.get(stream.type, "visual-inertial")
    lines = ["%YAML:1.0", f"sensor_type: {kind}", f"comment: {stream.name}"]
    frames = recording.frames
    known = BODY in frames and stream.frame in frames and kind != "visual-inertial"
    T = frames.lookup(BODY, stream.frame) if known else np.eye(4)
    numbers = ", ".join(repr(v) for v in T.reshape(-1).tolist())
    lines += ["T_BS:", "  cols: 4", "  rows: 4", f"  data: [{numbers}]"]
    camera = recording.cameras.get(stream.camera)
    if camera is not None:
        K, model = camera.K, {"radtan": "radial-tangential"}.get(camera.distortion, camera.distortion)
        lines += [
            f"resolution: [{camera.width}, {camera.height}]",
            "camera_model: pinhole",
            f"intrinsics: [{', '.join(repr(float(v)) for v in (K[0, 0], K[1, 1], K[0, 2], K[1, 2]))}]",
            f"distortion_model: {model}",
            f"distortion_coefficients: {camera.coefficients.tolist()}",
        ]
    files.write_text(folder / "sensor.yaml", "\n".join(lines) + "\n")
