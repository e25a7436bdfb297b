"""What a recording says besides its streams: frames, cameras, the files that were read, a description."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from transect.base.tables import table_lines
from transect.recording import Recording, Stream
from transect.recording.frames import Edge
from transect.types.provenance import SourceFile

from ..bundle import Content, DataFile, Document, Product
from ..contents.columns import Column
from ..contents.files import TextLines
from ..contents.tables import DelimitedTable
from ..identifiers import Lid
from ..labels.areas import Context
from ..labels.disciplines import Frame
from .streams import Later

_POSE = ("x", "y", "z", "qx", "qy", "qz", "qw")


def static_frames(recording: Recording) -> list[Frame]:
    """Return where static frames are in their parents."""
    return [
        Frame(edge.child, edge.parent, pose[:3], pose[3:])
        for edge in recording.frames.edges
        if edge.matrix is not None
        for pose in [_pose(edge)]
    ]


def _pose(edge: Edge) -> list[float]:
    from transect.geometry.rotations import quaternion_from_matrix

    matrix = np.asarray(edge.matrix, np.float64)
    return [*matrix[:3, 3].tolist(), *quaternion_from_matrix(matrix[:3, :3]).tolist()]


def frames_product(recording: Recording, collection: Lid, context: Context) -> Product | None:
    """Return a table of all static frames; None if there are none."""
    frames = static_frames(recording)
    if not frames:
        return None
    poses = np.array([[*each.position, *each.quaternion] for each in frames])
    numbers = [
        Column(name, poses[:, at], "m" if at < 3 else "", f"T_parent_frame, {name}")
        for at, name in enumerate(_POSE)
    ]
    columns = [
        Column("parent", [each.parent for each in frames], "", "Frame in which the frame is given"),
        Column("frame", [each.name for each in frames], "", "The frame"),
        *numbers,
    ]
    said = "Where static frames are: T_parent_frame takes points of the frame to its parent"
    return _table("frames", "Static frames", collection, context, lambda: DelimitedTable(columns, said))


def cameras_product(recording: Recording, collection: Lid, context: Context) -> Product | None:
    """Return a table of all calibrated cameras; None if there are none."""
    cameras = list(recording.cameras.items())
    if not cameras:
        return None
    most = max(len(np.ravel(each.coefficients)) for _, each in cameras)
    coefficients = np.full((len(cameras), most), np.nan)
    for row, (_, each) in enumerate(cameras):
        coefficients[row, : len(np.ravel(each.coefficients))] = np.ravel(each.coefficients)
    matrices = np.array([np.asarray(each.K, np.float64) for _, each in cameras])
    intrinsic = {"fx": (0, 0), "fy": (1, 1), "cx": (0, 2), "cy": (1, 2), "skew": (0, 1)}
    columns = [
        Column("camera", [name for name, _ in cameras], "", "Name of the camera"),
        Column("frame", [each.frame for _, each in cameras], "", "x right, y down, z forward"),
        Column("width", np.array([each.width for _, each in cameras]), "pixel", "Width of its images"),
        Column("height", np.array([each.height for _, each in cameras]), "pixel", "Height of its images"),
        *(Column(k, matrices[:, i, j], "pixel", f"Intrinsic matrix, {k}") for k, (i, j) in intrinsic.items()),
        Column("distortion", [each.distortion for _, each in cameras], "", "Model of the distortion"),
    ]
    if most:
        said = "Coefficients of the distortion, in the order of its model"
        columns.append(Column("coefficients", coefficients, "", said))
    said = "Calibrated cameras; the centre of the top-left pixel is (0, 0)"
    return _table("cameras", "Cameras", collection, context, lambda: DelimitedTable(columns, said))


def sources_product(
    sources: Callable[[], Sequence[SourceFile]], collection: Lid, context: Context
) -> Product:
    """Return a table of the files that were read, with sizes and hashes; made last, when all are known."""

    def make() -> DelimitedTable:
        files = sources()
        columns = [
            Column("path", [each.path for each in files], "", "Path of the file in what was read"),
            Column("size", np.array([each.size for each in files], np.int64), "byte", "Size of the file"),
            Column(
                "sha256",
                [each.sha256 for each in files],
                "",
                "sha256 of its bytes; of a series (*) that of its listing by sha256sum",
            ),
        ]
        return DelimitedTable(columns, "The files that this archive was made from")

    return _table("sources", "Files that were read", collection, context, make)


def _table(name: str, title: str, collection: Lid, context: Context, make: Callable[[], Content]) -> Product:
    file = DataFile(f"{name}.csv", Later(make))
    return Product(collection.child(name), title, (file,), "Product_Ancillary", context)


def description_product(recording: Recording, collection: Lid, context: Context, date: str) -> Product:
    """Return a text that says what was recorded: streams, types, rates, frames, and what readers noticed."""
    text = "\n".join(_description(recording))
    name = "description"
    standard = "7-Bit ASCII Text" if text.isascii() else "UTF-8 Text"
    return Product(
        collection.child(name), f"{recording.name}: what was recorded",
        (DataFile(f"{name}.txt", TextLines(text)),), "Product_Document", context,
        document=Document("Streams, frames and notes of the recording", (standard,), date),
    )  # fmt: skip


def _description(recording: Recording) -> Iterator[str]:
    robot = recording.robot
    yield f"{recording.name}, read as {recording.format or 'a recording'}"
    yield f"Robot: {robot.title or robot.name}" if robot else "Robot: not known"
    for key, value in recording.conditions.items():
        yield f"{key}: {value}"
    yield ""
    heading = ["stream", "type", "samples", "clock", "role", "frame"]
    yield from table_lines([heading, *(_row(each) for each in recording.streams)], right=(2,))
    if notes := recording.all_notes:
        yield from ["", "Notes", *(f"- {note}" for note in notes)]
    if losses := recording.losses:
        yield from ["", "Not kept when the recording was read"]
        yield from (f"- {loss.where}: {loss.reason} ({loss.count})" for loss in losses)


def _row(stream: Stream) -> list[str]:
    return [
        stream.name, stream.type.__name__, str(len(stream)), stream.clock,
        f"{stream.role} ({stream.tag})" if stream.tag else stream.role, stream.frame,
    ]  # fmt: skip
