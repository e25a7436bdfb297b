"""Contents of data files other than tables: images as raw numbers, texts, copied files and pictures."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from transect.errors import UsageError

from ..labels.objects import ArrayObject, DataObject, EncodedImage, TextObject
from .tables import TableColumn, number_type, store

AXES = {2: ("Line", "Sample"), 3: ("Band", "Line", "Sample")}
KINDS = {2: "Array_2D_Image", 3: "Array_3D_Image"}


@dataclass(frozen=True)
class ImageArray:
    """An image: (h, w), or (h, w, bands), which is stored band after band."""

    data: NDArray[Any]
    unit: str = ""
    description: str = ""
    identifier: str = "image"
    # (h, w) pixels that were measured; others of floats are stored as a special constant
    valid: NDArray[np.bool_] | None = None

    def write(self, out: IO[bytes]) -> list[DataObject]:
        """Write the pixels; return the array."""
        pixels = np.asarray(self.data)
        if pixels.ndim not in AXES:
            raise UsageError(f"an image of {pixels.ndim} axes cannot be archived", hint="two or three axes")
        if pixels.ndim == 3:
            pixels = np.moveaxis(pixels, -1, 0)
        if self.valid is not None and pixels.dtype.kind == "f":
            pixels = np.where(self.valid, pixels, np.nan).astype(pixels.dtype)
        offset = out.tell()
        pixels, constants = store(TableColumn(self.identifier, pixels))
        out.write(np.ascontiguousarray(pixels).view(np.uint8).data)
        axes = tuple(zip(AXES[pixels.ndim], pixels.shape, strict=True))
        kind, about = KINDS[pixels.ndim], (self.unit, self.identifier, self.description, constants)
        return [ArrayObject(kind, offset, number_type(pixels.dtype) or "", axes, *about)]


DOCUMENTS = {
    ".pdf": "PDF/A", ".mp4": "MPEG-4", ".txt": "7-Bit ASCII Text", ".html": "HTML", ".htm": "HTML",
    ".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".gif": "GIF", ".tif": "TIFF", ".tiff": "TIFF",
}  # fmt: skip
"""Standards of documents by the suffixes of their files."""
PICTURES = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".gif": "GIF", ".tif": "TIFF", ".tiff": "TIFF"}
"""Encodings of pictures by the suffixes of their files."""


@dataclass(frozen=True)
class TextLines:
    """Lines of text, each ended by CRLF."""

    text: str
    description: str = ""

    def write(self, out: IO[bytes]) -> list[DataObject]:
        """Write the text; return what it is."""
        data = "".join(f"{line}\r\n" for line in self.text.splitlines()).encode("utf-8", "replace")
        out.write(data)
        return [TextObject(len(data), ascii=data.isascii(), description=self.description)]


@dataclass(frozen=True)
class CopiedFile:
    """The bytes of another file; of a document no label says more."""

    path: Path

    def write(self, out: IO[bytes]) -> list[DataObject]:
        """Copy the file."""
        with self.path.open("rb") as source:
            shutil.copyfileobj(source, out, 1 << 20)
        return []


@dataclass(frozen=True)
class EncodedPicture:
    """An encoded picture: bytes, or the file that has them."""

    data: bytes | Path
    encoding: str
    description: str = ""

    def write(self, out: IO[bytes]) -> list[DataObject]:
        """Write the picture; return what it is."""
        data = self.data.read_bytes() if isinstance(self.data, Path) else self.data
        out.write(data)
        return [EncodedImage(self.encoding, len(data), description=self.description)]
