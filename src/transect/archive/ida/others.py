"""Contents of other products: the table of coordinates (SIS 5.1.4), and pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from transect.errors import ParseError
from transect.recording import Source
from transect.recording.stream import Sample

from ..contents.arrays import ImageArray
from ..labels.objects import DataObject, Field, Header, Table

NAMES = ("x_coord", "y_coord", "z_coord")


@dataclass(frozen=True)
class Coordinates:
    """`ida_sc_coordinates.csv`: a heading, and a record of three numbers."""

    source: Source
    file: str

    def write(self, out: IO[bytes]) -> list[DataObject]:
        """Write the lines, ended by CRLF; return heading and table."""
        lines = [line for line in self.source.text(self.file).splitlines() if line.strip()]
        if len(lines) < 2:
            raise ParseError(f"{self.file} has no coordinates", where=self.file)
        data = [f"{line}\r\n".encode() for line in lines]
        out.write(b"".join(data))
        heading, records = len(data[0]), len(data) - 1
        about = "coordinate of the origin of the lander frame in the payload frame"
        fields = tuple(Field(name, "ASCII_Real", "mm", f"{name[0]} {about}") for name in NAMES)
        return [
            Header(heading, description="Column headings", ascii=data[0].isascii()),
            Table("Table_Delimited", heading, records, fields, 0, "TABLE"),
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
