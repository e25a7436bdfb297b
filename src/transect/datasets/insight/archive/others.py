"""Contents of other products: the table of coordinates (SIS 5.1.4), and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from transect.archive.contents.arrays import ImageArray
from transect.archive.labels.objects import DataObject, Field, Header, Table
from transect.datasets.insight.products.writing import coordinates_csv
from transect.recording import Source
from transect.recording.stream import Sample

NAMES = ("x_coord", "y_coord", "z_coord")


@dataclass(frozen=True)
class Coordinates:
    """`ida_sc_coordinates.csv`: a heading, and a record of three numbers."""

    place: Sequence[float]  # the origin of the lander frame in the payload frame, m

    def write(self, out: IO[bytes]) -> list[DataObject]:
        """Write both lines; return heading and table."""
        heading, record = coordinates_csv(self.place).encode().splitlines(keepends=True)
        out.write(heading + record)
        about = "coordinate of the origin of the lander frame in the payload frame"
        fields = tuple(Field(name, "ASCII_Real", "mm", f"{name[0]} {about}") for name in NAMES)
        return [
            Header(len(heading), description="Column headings"),
            Table("Table_Delimited", len(heading), 1, fields, 0, "TABLE"),
        ]


@dataclass(frozen=True)
class Copy:
    """A file of the recording as it is; of a document no label says more."""

    source: Source
    file: str

    def write(self, out: IO[bytes]) -> list[DataObject]:
        """Copy the bytes."""
        out.write(self.source.buffer(self.file))
        return []


@dataclass(frozen=True)
class Photograph:
    """A picture of a camera, loaded when it is written; bands one after another."""

    sample: Sample

    def write(self, out: IO[bytes]) -> list[DataObject]:
        """Write the pixels; return the array."""
        image = self.sample.payload
        return ImageArray(image.data, description=f"Image of the camera, {image.mode}").write(out)
