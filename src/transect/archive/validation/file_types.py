"""File types: what a file's first bytes and its extension say, against the standard that its label names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from transect.base.xml import local_name
from transect.formats.pds4.label import NAMESPACE

from .problems import Problem, problem

HEAD = 64
STANDARDS = ("document_standard_id", "encoding_standard_id", "external_standard_id")
_PDFA = re.compile(rb"""pdfaid:part\s*(?:>|=\s*["'])\s*[1-4]""").search
_ENCRYPTED = re.compile(rb"/Encrypt\s+\d+\s+\d+\s+R").search
PIECE = 1 << 20


class Type(NamedTuple):
    """What a standard asks of a file: how it begins and what its name ends in; and what is said if not."""

    extensions: tuple[str, ...]
    begins: re.Pattern[bytes] | None
    wrong_bytes: str
    wrong_name: str


def _type(extensions: str, begins: bytes | None, problem_kind: str) -> Type:
    """Return a type; of one whose problem is a `mimetype`, the name is looked at, too."""
    pattern = re.compile(begins, re.DOTALL | re.IGNORECASE) if begins else None
    return Type(
        tuple(extensions.split()), pattern, problem_kind, problem_kind if "mimetype" in problem_kind else ""
    )


_MP4 = _type("mp4 m4v m4a mov", rb"....(ftyp|moov|mdat|free|wide)", "file.not_mp4_m4a_compliant")
_M4A = _MP4._replace(extensions=("m4a",))
_J2K = _type("j2c j2k jp2", rb"(\xff\x4f\xff\x51|\x00\x00\x00\x0cjP)", "file.not_jpeg2000_compliant")
_OFFICE = rb"(\xd0\xcf\x11\xe0|PK\x03\x04)"
TYPES = {
    "jpeg": _type("jpg jpeg", rb"\xff\xd8\xff", "file.not_jpeg_compliant"),
    "png": _type("png", rb"\x89PNG\r\n\x1a\n", "file.not_png_compliant"),
    "gif": _type("gif", rb"GIF8[79]a", "file.not_gif_mimetype"),
    "tiff": _type("tif tiff", rb"(II\*\x00|MM\x00\*|II\+\x00|MM\x00\+)", "file.not_tiff_mimetype"),
    "wav": _type("wav", rb"RIFF....WAVE", "file.not_wav_compliant"),
    "mp4": _MP4,
    "m4a": _M4A,
    "mpeg-4": _type("mp4 m4v m4a mov", _MP4.begins and _MP4.begins.pattern, "file.not_mp4_mimetype"),
    "j2c": _J2K,
    "jpeg2000": _J2K,
    "html": _type("html htm", None, "file.not_html_mimetype"),
    "microsoft word": _type("doc docx", _OFFICE, "file.not_msword_mimetype"),
    "microsoft excel": _type("xls xlsx", _OFFICE, "file.not_msexcel_mimetype"),
    "latex": _type("tex latex", None, "file.not_latex_mimetype"),
    "rich text": _type("rtf", rb"\{\\rtf", "file.not_richtext_mimetype"),
    "encapsulated postscript": _type(
        "eps epsf epsi", rb"(%!PS|\xc5\xd0\xd3\xc6)", "file.not_encapsulated_postscript_mimetype"
    ),
    "postscript": _type("ps", rb"%!", "file.not_postscript_mimetype"),
}


def standards_of(area: Any) -> Iterator[tuple[str, int]]:
    """Give the standards that the objects of a file follow, with their lines."""
    for tag in STANDARDS:
        for element in area.iter(NAMESPACE + tag):
            yield (element.text or "").strip(), element.sourceline or 0


EXTENSIONS = {
    "gif": ("gif",),
    "j2c": ("j2c", "jp2", "mj2", "mjp2"),
    "jp2": ("j2c", "jp2", "mj2", "mjp2"),
    "jpeg": ("jpg", "jpeg"),
    "m4a/aac": ("m4a",),
    "mp4/h.264": ("mp4",),
    "mp4/h.264/aac": ("mp4",),
    "pdf": ("pdf",),
    "pdf/a": ("pdf", "pdfa"),
    "png": ("png",),
    "tiff": ("tif", "tiff"),
    "wav": ("wav",),
}
"""Which ends of names go with the values of encoding_standard_id."""


def extension_problems(name: str, area: Any) -> Iterator[Problem]:
    """Give a warning if a file is not called as its encoding_standard_id lets expect."""
    if local_name(area) in ("Document_File", "File_Area_External") or "." not in name:
        return
    for element in area.iter(f"{NAMESPACE}encoding_standard_id"):
        said = (element.text or "").strip()
        known = EXTENSIONS.get(said.lower(), ())
        suffix = name.rpartition(".")[2]
        if known and suffix.lower() not in known:
            wanted = " or ".join(f".{each}" for each in known)
            text = f"the label says {said}, but the name ends in .{suffix}, not in {wanted}"
            line = element.sourceline or 0
            yield problem("validation.file_naming_problem", text, severity="warning", data=name, line=line)


def type_problems(path: Path, area: Any) -> Iterator[Problem]:
    """Give what contradicts the standards of a file; `area` is its file area, or a `Document_File`."""
    for standard, line in dict(standards_of(area)).items():
        lowered = standard.lower()
        document = local_name(area) == "Document_File"
        if lowered == "pdf/a" or (
            document and lowered == "pdf"
        ):  # documents are to be read in a hundred years
            yield from _pdf_problems(path, line)
            continue
        kind = next(
            (kind for name, kind in sorted(TYPES.items(), reverse=True) if lowered.startswith(name)), None
        )
        if kind is not None:
            yield from _problems(path, standard, line, kind, document)
        if kind is _M4A:
            text = f"the audio of {standard} is not decoded: only the first bytes of the file were looked at"
            type_ = "validation.content_validation_not_yet_supported"
            yield problem(type_, text, severity="warning", line=line)


def _problems(path: Path, standard: str, line: int, kind: Type, document: bool) -> Iterator[Problem]:
    """Give a problem if the name does not end, or the file not begin, as its type does.

    Of documents only the bytes of pictures are looked at: their formats are for reading, not for programs.
    """
    if kind.wrong_name and path.suffix.lstrip(".").lower() not in kind.extensions:
        known = " or ".join(f".{each}" for each in kind.extensions)
        text = f"the label says {standard}, but the name does not end in {known}"
        yield problem(kind.wrong_name, text, severity="warning", line=line)
    elif kind.begins is not None and not (document and kind.wrong_name):
        with path.open("rb") as file:
            head = file.read(HEAD)
        if not kind.begins.match(head):
            severity = "warning" if kind.wrong_bytes.endswith("_mimetype") else "error"
            text = f"the label says {standard}, but the file does not begin as one"
            yield problem(kind.wrong_bytes, text, severity=severity, line=line)


def _pdf_problems(path: Path, line: int) -> Iterator[Problem]:
    found = look_at_pdf(path)
    if not found.is_pdf:
        text = "the file does not begin as a PDF"
    elif not found.marked:
        text = "the PDF does not say that it is PDF/A (no pdfaid:part in its metadata)"
    elif found.encrypted:
        text = "the PDF is encrypted, which PDF/A forbids"
    else:
        return
    yield problem("pdf.file.not_pdfa_compliant", text, line=line)


class Pdf(NamedTuple):
    """What can be seen of a PDF without interpreting it."""

    is_pdf: bool
    marked: bool
    encrypted: bool


def look_at_pdf(path: Path) -> Pdf:
    """Return whether a file is a PDF, whether it says that it is PDF/A, and whether it is encrypted."""
    before, is_pdf, marked, encrypted = b"", False, False, False
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            is_pdf = is_pdf or (not before and b"%PDF-" in piece[:1024])
            marked = marked or _PDFA(before + piece) is not None
            encrypted = encrypted or _ENCRYPTED(before + piece) is not None
            before = piece[-64:]
    return Pdf(is_pdf, marked, encrypted)
