"""Reading IDA products: science, status, history and parameters."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from transect import robots
from transect.base.clocks import NS, decimal_from_ns, iso_from_ns
from transect.base.file_bytes import Content
from transect.base.units import to_si
from transect.datasets.insight.robot.arm import DeploymentArm, joint_edges, static_frames
from transect.datasets.insight.robot.parameters import Parameters
from transect.errors import ParseError, TransectError
from transect.formats.shared.file_groups import file_table
from transect.formats.shared.images import image_loader, image_size
from transect.recording import FrameTree, Loss, Parsed, Recording, Role, Source, Stream, Timing, arrow, cache
from transect.recording.arrow import PAYLOAD
from transect.recording.source import Buffer
from transect.types import CameraModel, Image, JointState, Record

from .names import Products, mentions, parse_name, parse_picture, picture_stem, sort_products, utc_from_sclk
from .parameters import ParameterFile, is_number, parse_parameters, tokens
from .status import parse_status
from .tables import TableLabel, parse_label, parse_science

Tables = Callable[[str], Mapping[str, Parsed]]
DAY_S = 86_400
_STATUS_STREAMS = {
    "arm": ("Arm/Status", Record, ""),
    "encoders": ("Arm/Status/Encoders", JointState, "encoder"),
    "potentiometers": ("Arm/Status/Potentiometers", JointState, "potentiometer"),
    "system": ("System/Status", Record, ""),
}
_SCIENCE_STREAMS: dict[str, tuple[str, type, str, Role]] = {
    "main": ("", Record, "", "measurement"),
    "encoders": ("/Encoders", JointState, "encoder", "measurement"),
    "potentiometers": ("/Potentiometers", JointState, "potentiometer", "measurement"),
    "tool": ("/Tool", Record, "", "derived"),
    "forces": ("/Forces", Record, "", "derived"),
}
_JOINT_ANGLE_STREAMS = (
    "Arm/SciHi/Encoders",
    "Arm/SciLo/Encoders",
    "Arm/Status/Encoders",
    "History/Arm/Status/Encoders",
)
"""Candidate streams of joint angles for the moving frames, the densest first. Only one is used: the times of
SciHi may have another origin (see `_time_notes`)."""


def read(source: Source) -> Recording:
    """Read IDA products."""
    products = sort_products(source)
    robot = robots.load("ida")
    frames = robot.frames.copy()
    conditions: dict[str, Any] = {"sols": _sols(source)}
    notes = _notes(products)
    alone = [
        Loss(label, "the file that this label describes is not here") for label in products.lone_labels()
    ]
    losses = [*products.losses, *alone]
    for extra in (_parameters(source, products), _coordinates(source, products, frames)):
        conditions.update(extra[0])
        losses += extra[1]
        notes += extra[2]
    pictures = list(read_pictures(source, products.picture, robot.cameras))
    notes += [note for _, note in pictures if note]
    streams = (*_science(source, products), *_status(source, products), *(stream for stream, _ in pictures))
    frames, frame_notes = _arm_frames(frames, conditions.get("parameters", {}), streams)
    return Recording(
        name=source.stem,
        streams=streams,
        frames=frames,
        cameras=robot.cameras,
        robot=robot,
        conditions=conditions,
        format="ida",
        source=source,
        notes=(*notes, *frame_notes),
        reader_losses=tuple(losses),
    )


def _arm_frames(
    frames: FrameTree, sets: Mapping[str, Any], streams: Sequence[Stream]
) -> tuple[FrameTree, list[str]]:
    """Return the static frames of the parameters and the moving frames of the best encoder stream."""
    by_name = {stream.name: stream for stream in streams}
    best = next((by_name[name] for name in _JOINT_ANGLE_STREAMS if name in by_name), None)
    try:
        arm = DeploymentArm.of(Parameters.over_printed(sets))
        static = static_frames(arm, frames)
    except TransectError as error:
        return frames, [f"the frames of the arm stand as the SIS prints them: {error.what}"]
    return (static.merge(joint_edges(arm, best)) if best else static), []


def _sols(source: Source) -> tuple[int, ...]:
    parsed = (parse_name(name) for name in source.names)
    return tuple(sorted({name.start_sol for name in parsed if name}))


def _notes(products: Products) -> list[str]:
    notes: list[str] = []
    if products.others:
        notes.append(f"{len(products.others)} files are not IDA products, e.g. {products.others[0]}")
    data = [*products.science, *products.status, *products.history, *products.parameters]
    starts = [name.start_sclk for file in data if (name := parse_name(file))]
    if starts:
        about = iso_from_ns(utc_from_sclk(min(starts) * NS), 0)[:16]
        notes.append(f"SCLK {min(starts)} is about {about} UTC, to 3 minutes; times stay on the SCLK")
    return notes


def _parameters(source: Source, products: Products) -> tuple[dict[str, Any], list[Loss], list[str]]:
    """Return the latest parameters, and those of each file."""
    files: dict[str, ParameterFile] = {}
    for name in products.parameters:
        source.record_read(name)
        files[name] = parse_parameters(source.buffer(name), name)
    if not files:
        return {}, [], []
    latest: dict[str, dict[str, Any]] = {}
    for file in sorted(files.values(), key=lambda file: file.time_ns or 0):
        for set_name, values in file.sets.items():
            latest.setdefault(set_name, {}).update(values)
    each = {name: {"time_ns": file.time_ns, "parameters": file.sets} for name, file in files.items()}
    losses = [loss for file in files.values() for loss in file.losses]
    notes = [note for file in files.values() for note in file.notes]
    return {"parameters": latest, "parameter_files": each}, losses, notes


def _coordinates(
    source: Source, products: Products, frames: FrameTree
) -> tuple[dict[str, Any], list[Loss], list[str]]:
    """Set the origin of the lander frame in the payload frame from ida_sc_coordinates.csv (SIS 5.1.4)."""
    losses: list[Loss] = []
    place: tuple[float, ...] | None = None
    for name in products.coordinates:
        source.record_read(name)
        found = _three_numbers(source.text(name))
        place = found or place
        losses += [] if found else [Loss(name, "no line of three coordinates", line=2)]
    if place is None:
        return {}, losses, []
    moved = np.array(frames.lookup("Payload", "Lander"))
    notes = [f"{products.coordinates[-1]}: the lander frame is not where SIS Table 7 has it"]
    if np.allclose(moved[:3, 3], place, rtol=0.0, atol=1e-6):
        notes = []
    moved[:3, 3] = place
    frames.add_static("Payload", "Lander", moved, source=products.coordinates[-1], replace=True)
    return {"sc_coordinates": place}, losses, notes


def _three_numbers(text: str) -> tuple[float, ...] | None:
    """Return the first complete line of three numbers, converted from millimetres to metres."""
    for line in text.splitlines(keepends=True):
        words = tokens(line)
        decimals = {len(word.partition(".")[2]) for word in words}
        if len(words) == 3 and all(map(is_number, words)) and (line[-1] in "\r\n" or len(decimals) == 1):
            return tuple(to_si(float(word), "mm") for word in words)
    return None


def _status(source: Source, products: Products) -> list[Stream]:
    streams: list[Stream] = []
    for prefix, files, history in (("", products.status, False), ("History/", products.history, True)):
        tables = _status_tables(source, history)
        present = {
            "arm": mentions(source, files, "ra_status"),
            "system": mentions(source, files, "sys_status"),
        }
        for part, (name, kind, tag) in _STATUS_STREAMS.items():
            if present["system" if part == "system" else "arm"]:
                build = functools.partial(_join, tuple(files), part, tables)
                streams.append(Stream(prefix + name, kind, build, clock="sclk", tag=tag))
    return streams


def _status_tables(source: Source, history: bool) -> Tables:
    @functools.cache
    def tables(file: str) -> Mapping[str, Parsed]:
        def parse(buffer: Buffer) -> dict[str, Parsed]:
            return _with_name(parse_status(buffer, file, history=history), file)

        return cache.parse_many(source, file, f"ida.status/2/{history}/{file}", parse)

    return tables


def _science(source: Source, products: Products) -> list[Stream]:
    tables = _science_tables(source, products)
    streams: list[Stream] = []
    for device in ("SciHi", "SciLo"):
        files = tuple(name for name in products.science if _device(name) == device)
        for part, (name, kind, tag, role) in _SCIENCE_STREAMS.items() if files else ():
            build = functools.partial(_join, files, part, tables)
            frame = "Payload" if part == "tool" else ""
            stream = Stream(f"Arm/{device}{name}", kind, build, clock="sclk", role=role, tag=tag, frame=frame)
            streams.append(stream)
    return streams


def _device(name: str) -> str:
    parsed = parse_name(name)
    return "SciLo" if parsed and parsed.apid == 88 else "SciHi"


def _science_tables(source: Source, products: Products) -> Tables:
    @functools.cache
    def tables(file: str) -> Mapping[str, Parsed]:
        beside = products.label_of(file)
        label, losses = _label(source, beside)
        key = f"ida.science/2/{file}/{source.sha256(beside) if beside and label else ''}"

        def parse(content: Content) -> Iterator[dict[str, Parsed]]:
            return (_with_name(piece, file) for piece in parse_science(content, file, label))

        parsed = cache.parse_many_pieces(source, file, key, parse)
        return {part: dataclasses.replace(p, losses=(*p.losses, *losses)) for part, p in parsed.items()}

    return tables


def _with_name(parts: Mapping[str, Parsed], file: str) -> dict[str, Parsed]:
    """Return tables, each row with the name of its file."""
    return {
        part: dataclasses.replace(
            parsed, table=parsed.table.append_column("file", arrow.strings([file] * parsed.table.num_rows))
        )
        for part, parsed in parts.items()
    }


def _label(source: Source, name: str | None) -> tuple[TableLabel | None, list[Loss]]:
    if name is None:
        return None, []
    source.record_read(name)
    try:
        return parse_label(source.buffer(name), name), []
    except ParseError as error:
        return None, [Loss(name, f"{error.what}: {error.why}")]


def _join(files: Sequence[str], part: str, tables: Tables) -> Parsed:
    """Return one table of all files."""
    parts = [(file, tables(file)[part]) for file in files]
    table = pa.concat_tables([p.table for _, p in parts], promote_options="permissive")
    losses = [loss for _, p in parts for loss in p.losses]
    notes = [note for file, p in parts for note in (*p.notes, *_time_notes(file, p.table))]
    return Parsed(table, tuple(losses), tuple(notes))


def _time_notes(file: str, table: pa.Table) -> list[str]:
    """Note times that differ by more than a day from the SCLK in the file name: their origin is unknown."""
    name = parse_name(file)
    if name is None or not table.num_rows:
        return []
    timing = Timing.of(arrow.LazyColumns(table, "t_ns"))
    first, last = timing.start_ns or 0, timing.end_ns or 0
    if (name.start_sclk - DAY_S) * NS <= first and last <= (name.end_sclk + DAY_S) * NS:
        return []
    begins = decimal_from_ns(first, 1)
    return [f"{file}: its times begin at {begins}, far from the SCLK in its name; kept as written"]


ARRAY_SUFFIX = ".img"


def read_pictures(
    source: Source, files: Sequence[str], cameras: Mapping[str, CameraModel]
) -> Iterator[tuple[Stream, str]]:
    """Yield the stream of each camera with a note ("" for none)."""
    taken = [(name, file) for file in files if (name := parse_picture(file))]
    for camera in sorted({name.camera for name, _ in taken}):
        pictures = sorted((name.sclk * NS, file) for name, file in taken if name.camera == camera)
        yield _stream(source, camera, pictures, cameras.get(camera))


def _stream(
    source: Source, camera: str, pictures: Sequence[tuple[int, str]], model: CameraModel | None
) -> tuple[Stream, str]:
    """Return the stream of a camera; its model is used if the image size matches."""
    files = [file for _, file in pictures]
    size = image_size(source.head(files[0]))
    frame = model.frame if model else ""
    fits = model is not None and size == (model.width, model.height)
    stream = Stream(
        camera, Image, file_table(np.array([t_ns for t_ns, _ in pictures], np.int64), files), clock="sclk",
        frame=frame, loader=_loader(source, frame, model if fits else None), camera=camera if fits else "",
    )  # fmt: skip
    if fits or model is None or size is None:
        return stream, ""
    return stream, f"{camera}: pictures of {size[0]} x {size[1]} pixels, which its model does not fit"


def _loader(source: Source, frame: str, camera: CameraModel | None) -> Callable[[Mapping[str, Any]], Image]:
    """Return the loader of a picture: an image file, or an array with the label beside it."""
    load_file = image_loader(source, frame, camera)

    @functools.cache
    def labelled(folder: str) -> Recording:
        from transect.formats.pds4.reading import read

        return read(source.at(folder) if folder else source)

    def load(row: Mapping[str, Any]) -> Image:
        folder, _, name = row[PAYLOAD].rpartition("/")
        if not name.lower().endswith(ARRAY_SUFFIX):
            return load_file(row)
        image = labelled(folder)[picture_stem(name).lower()][0].payload
        return dataclasses.replace(image, t_ns=row["t_ns"], frame=frame, camera=camera)

    return load
