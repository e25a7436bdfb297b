"""Texts, and files that are kept as they are: documents, videos, pictures."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ..labels.objects import DataObject, EncodedImage, Text

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
        return [Text(len(data), ascii=data.isascii(), description=self.description)]


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
class Picture:
    """An encoded picture: bytes, or the file that has them."""

    data: bytes | Path
    encoding: str
    description: str = ""

    def write(self, out: IO[bytes]) -> list[DataObject]:
        """Write the picture; return what it is."""
        data = self.data.read_bytes() if isinstance(self.data, Path) else self.data
        out.write(data)
        return [EncodedImage(self.encoding, len(data), description=self.description)]
