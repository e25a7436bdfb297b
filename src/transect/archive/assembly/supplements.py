"""Supplementary products of a recording: frames, cameras, source files, a description, browse images."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from transect.base.tables import table_lines
from transect.recording import Recording, Stream
from transect.recording.frames import FrameEdge
from transect.types.provenance import SourceFile

from ..bundle import BundleProduct, Content, ProductDocument, ProductFile
from ..contents.files import EncodedPicture, TextLines
from ..contents.tables import DelimitedTable, TableColumn
from ..identifiers import Lid
from ..labels.areas import LabelReference, ProductContext
from ..labels.disciplines import FrameDefinition
from .streams import Later, load

_POSE = ("x", "y", "z", "qx", "qy", "qz", "qw")


def static_frames(recording: Recording) -> list[FrameDefinition]:
    """Return the static frames with their poses in their parents."""
    return [
        FrameDefinition(edge.child, edge.parent, pose[:3], pose[3:])
        for edge in recording.frames.edges
        if edge.matrix is not None
        for pose in [_pose(edge)]
    ]


def _pose(edge: FrameEdge) -> list[float]:
    from transect.geometry.rotations import quaternion_from_matrix

    matrix = np.asarray(edge.matrix, np.float64)
    return [*matrix[:3, 3].tolist(), *quaternion_from_matrix(matrix[:3, :3]).tolist()]


def frames_product(recording: Recording, collection: Lid, context: ProductContext) -> BundleProduct | None:
    """Return a table of all static frames; None if there are none."""
    frames = static_frames(recording)
    if not frames:
        return None
    poses = np.array([[*each.position, *each.quaternion] for each in frames])
    numbers = [
        TableColumn(name, poses[:, at], "m" if at < 3 else "", f"T_parent_frame, {name}")
        for at, name in enumerate(_POSE)
    ]
    columns = [
        TableColumn("parent", [each.parent for each in frames], "", "Frame in which the frame is given"),
        TableColumn("frame", [each.name for each in frames], "", "The frame"),
        *numbers,
    ]
    said = "Where static frames are: T_parent_frame takes points of the frame to its parent"
    return _table("frames", "Static frames", collection, context, lambda: DelimitedTable(columns, said))


def cameras_product(recording: Recording, collection: Lid, context: ProductContext) -> BundleProduct | None:
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
        TableColumn("camera", [name for name, _ in cameras], "", "Name of the camera"),
        TableColumn("frame", [each.frame for _, each in cameras], "", "x right, y down, z forward"),
        TableColumn("width", np.array([each.width for _, each in cameras]), "pixel", "Width of its images"),
        TableColumn(
            "height", np.array([each.height for _, each in cameras]), "pixel", "Height of its images"
        ),
        *(
            TableColumn(k, matrices[:, i, j], "pixel", f"Intrinsic matrix, {k}")
            for k, (i, j) in intrinsic.items()
        ),
        TableColumn("distortion", [each.distortion for _, each in cameras], "", "Model of the distortion"),
    ]
    if most:
        said = "Coefficients of the distortion, in the order of its model"
        columns.append(TableColumn("coefficients", coefficients, "", said))
    said = "Calibrated cameras; the centre of the top-left pixel is (0, 0)"
    return _table("cameras", "Cameras", collection, context, lambda: DelimitedTable(columns, said))


def sources_product(
    sources: Callable[[], Sequence[SourceFile]], collection: Lid, context: ProductContext
) -> BundleProduct:
    """Return a table of the files that were read, with sizes and hashes; written last, when all are known."""

    def make() -> DelimitedTable:
        files = sources()
        columns = [
            TableColumn("path", [each.path for each in files], "", "Path of the file in what was read"),
            TableColumn(
                "size", np.array([each.size for each in files], np.int64), "byte", "Size of the file"
            ),
            TableColumn(
                "sha256",
                [each.sha256 for each in files],
                "",
                "sha256 of its bytes; of a series (*) that of its listing by sha256sum",
            ),
        ]
        return DelimitedTable(columns, "The files that this archive was made from")

    return _table("sources", "Files that were read", collection, context, make)


def _table(
    name: str, title: str, collection: Lid, context: ProductContext, make: Callable[[], Content]
) -> BundleProduct:
    file = ProductFile(f"{name}.csv", Later(make))
    return BundleProduct(collection.child(name), title, (file,), "Product_Ancillary", context)


def description_product(
    recording: Recording, collection: Lid, context: ProductContext, date: str
) -> BundleProduct:
    """Return a text description of a recording: streams, types, rates, frames, and notes of the reader."""
    text = "\n".join(_description(recording))
    name = "description"
    standard = "7-Bit ASCII Text" if text.isascii() else "UTF-8 Text"
    return BundleProduct(
        collection.child(name), f"{recording.name}: what was recorded",
        (ProductFile(f"{name}.txt", TextLines(text)),), "Product_Document", context,
        document=ProductDocument("Streams, frames and notes of the recording", (standard,), date),
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


def browse_products(
    stream: Stream, products: Sequence[BundleProduct], collection: Lid, count: int, every: int
) -> Iterator[BundleProduct]:
    """Yield browse images of some images of a stream, evenly spaced, with references to their products."""
    shown = [each for each in products if each.kind == "Product_Observational"]
    chosen = np.unique(np.linspace(0, len(shown) - 1, min(count, len(shown))).round().astype(int))
    for number in chosen.tolist():
        product = shown[number]
        name = product.lid.name
        content = Later(partial(_picture, stream, number * every))
        context = replace(product.context, levels=(), disciplines=())
        yield BundleProduct(
            collection.child(name), product.title, (ProductFile(f"{name}.png", content),), "Product_Browse",
            context, (LabelReference(product.lid, "browse_to_data"),),
        )  # fmt: skip


def _picture(stream: Stream, row: int) -> EncodedPicture:
    """Return one image as 8-bit PNG; other pixel types are scaled."""
    from transect.formats.shared.images import encode_image

    image = load(stream, row)
    data = image.data
    if data.ndim == 3 and data.shape[2] not in (1, 3, 4):
        data = data[..., 0]
    if data.dtype != np.uint8:
        finite = data[np.isfinite(data)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        scaled = (np.nan_to_num(data, nan=low) - low) / max(high - low, 1e-12) * 255.0
        data = scaled.clip(0, 255).astype(np.uint8)
    mode = image.mode if data.ndim == 3 else "gray"
    return EncodedPicture(
        encode_image(replace(image, data=data, mode=mode), ".png"), "PNG", f"{stream.name}, to look at"
    )
