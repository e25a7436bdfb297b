"""Files that labels describe: where they are, their size, checksum, name and type."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from transect.base.xml import local_name
from transect.formats.pds4.label import NAMESPACE

from .labels import FileEntry, Label, child_line, name_problems, text_of
from .problems import ValidationProblem, located, problem

HEADER_BYTES = 64
STANDARDS = ("document_standard_id", "encoding_standard_id", "external_standard_id")
_PDFA = re.compile(rb"""pdfaid:part\s*(?:>|=\s*["'])\s*[1-4]""").search
_ENCRYPTED = re.compile(rb"/Encrypt\s+\d+\s+\d+\s+R").search
CHUNK_BYTES = 1 << 20


class FileType(NamedTuple):
    """What a standard asks of a file: how it begins and what its name ends in; and what is said if not."""

    extensions: tuple[str, ...]
    begins: re.Pattern[bytes] | None
    wrong_bytes: str
    wrong_name: str


def _type(extensions: str, begins: bytes | None, problem_kind: str) -> FileType:
    """Return a type; of one whose problem is a `mimetype`, the name is looked at, too."""
    pattern = re.compile(begins, re.DOTALL | re.IGNORECASE) if begins else None
    return FileType(
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
    """Yield the standards that the objects of a file follow, with their lines."""
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


def extension_problems(name: str, area: Any) -> Iterator[ValidationProblem]:
    """Yield a warning if a file is not called as its encoding_standard_id lets expect."""
    if local_name(area) in ("Document_File", "File_Area_External") or "." not in name:
        return
    for element in area.iter(f"{NAMESPACE}encoding_standard_id"):
        encoding = (element.text or "").strip()
        known = EXTENSIONS.get(encoding.lower(), ())
        suffix = name.rpartition(".")[2]
        if known and suffix.lower() not in known:
            wanted = " or ".join(f".{each}" for each in known)
            text = f"the label says {encoding}, but the name ends in .{suffix}, not in {wanted}"
            line = element.sourceline or 0
            yield problem("validation.file_naming_problem", text, severity="warning", data=name, line=line)


def type_problems(path: Path, area: Any) -> Iterator[ValidationProblem]:
    """Yield what contradicts the standards of a file; `area` is its file area, or a `Document_File`."""
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


def _problems(
    path: Path, standard: str, line: int, kind: FileType, document: bool
) -> Iterator[ValidationProblem]:
    """Yield a problem if the name does not end, or the file not begin, as its type does.

    Of documents only the bytes of pictures are looked at: their formats are for reading, not for programs.
    """
    if kind.wrong_name and path.suffix.lstrip(".").lower() not in kind.extensions:
        known = " or ".join(f".{each}" for each in kind.extensions)
        text = f"the label says {standard}, but the name does not end in {known}"
        yield problem(kind.wrong_name, text, severity="warning", line=line)
    elif kind.begins is not None and not (document and kind.wrong_name):
        with path.open("rb") as file:
            head = file.read(HEADER_BYTES)
        if not kind.begins.match(head):
            severity = "warning" if kind.wrong_bytes.endswith("_mimetype") else "error"
            text = f"the label says {standard}, but the file does not begin as one"
            yield problem(kind.wrong_bytes, text, severity=severity, line=line)


def _pdf_problems(path: Path, line: int) -> Iterator[ValidationProblem]:
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


class PdfSummary(NamedTuple):
    """What can be seen of a PDF without interpreting it."""

    is_pdf: bool
    marked: bool
    encrypted: bool


def look_at_pdf(path: Path) -> PdfSummary:
    """Return whether a file is a PDF, whether it says that it is PDF/A, and whether it is encrypted."""
    before, is_pdf, marked, encrypted = b"", False, False, False
    with path.open("rb") as file:
        while piece := file.read(CHUNK_BYTES):
            is_pdf = is_pdf or (not before and b"%PDF-" in piece[:1024])
            marked = marked or _PDFA(before + piece) is not None
            encrypted = encrypted or _ENCRYPTED(before + piece) is not None
            before = piece[-64:]
    return PdfSummary(is_pdf, marked, encrypted)


def find_file(label: Label, entry: FileEntry) -> tuple[Path | None, list[ValidationProblem]]:
    """Return the file that a label names, or None, and what is wrong with how it is named."""
    if not entry.name:
        return None, [problem("validation.unknown_value", "the file has no name", line=entry.line)]
    if text_of(entry.element, "directory_path_name").startswith("/"):
        text = "directory_path_name is absolute; it counts from the folder of the label"
        line = child_line(entry.element, "directory_path_name")
        return None, [problem("directory.unallowed_name", text, line=line)]
    if not entry.safe:
        text = f"{entry.name!r} leads out of the folder of the label"
        return None, [problem("label.missing_file", text, line=entry.line)]
    path = label.path.parent / entry.name
    if not path.is_file() and "%" in entry.name:  # some write names as in addresses
        path = label.path.parent / unquote(entry.name)
    inside = path.resolve().is_relative_to(label.path.parent.resolve())
    if path.is_file() and inside:
        return path, []
    if path.is_file():
        text = f"{entry.name!r} is a link that leads out of the folder of the label"
        return None, [problem("label.missing_file", text, line=entry.line)]
    if (other := _other_case(path)) is not None:
        text = f"{entry.name} is {other.name} on the disk: upper and lower case differ"
        return other, [problem("label.file_ref_case_mismatch", text, line=entry.line)]
    return None, [
        problem(
            "label.missing_file", f"{entry.name} is not there", line=child_line(entry.element, "file_name")
        )
    ]


def file_name(label: Label, entry: FileEntry) -> str:
    """Return the name of a file from the folder of the label, as it is on the disk if it exists."""
    path = find_file(label, entry)[0] if entry.safe else None
    return entry.name if path is None else path.relative_to(label.path.parent).as_posix()


def _other_case(path: Path) -> Path | None:
    """Return the file whose name differs from this one in upper and lower case only."""
    folder = path.parent
    if not folder.is_dir():
        return None
    name = _names(folder, folder.stat().st_mtime_ns).get(path.name.lower())
    return None if name is None else folder / name


@lru_cache(16)
def _names(folder: Path, _: int) -> dict[str, str]:
    """Return the names in a folder by themselves in lower case; listed again only when it has changed."""
    return {path.name.lower(): path.name for path in folder.iterdir()}


def file_problems(entry: FileEntry, path: Path) -> Iterator[ValidationProblem]:
    """Yield problems of a file that is there: name, size, checksum, type."""
    found = [*name_problems(path.name), *_size(entry, path), *_checksum(entry, path)]
    found += type_problems(path, entry.area)
    yield from located(found, data=entry.name, line=entry.line)


def _size(entry: FileEntry, path: Path) -> Iterator[ValidationProblem]:
    text, size = text_of(entry.element, "file_size"), path.stat().st_size
    if not text:
        note = f"the label has no file_size: {entry.name} cannot be compared"
        yield problem("label.missing_filesize", note, severity="info")
    if text.isdecimal() and int(text) != size:
        yield problem(
            "label.filesize_mismatch", f"file_size is {text}, but the file has {size} bytes",
            line=child_line(entry.element, "file_size"),
        )  # fmt: skip


def _checksum(entry: FileEntry, path: Path) -> Iterator[ValidationProblem]:
    declared = text_of(entry.element, "md5_checksum")
    if not declared:
        text = f"the label has no md5_checksum: {entry.name} cannot be compared"
        yield problem("label.missing_checksum", text, severity="info")
    if declared and (actual := md5_of(path)) != declared.lower():
        yield problem(
            "label.checksum_mismatch", f"md5_checksum is {declared}, but the file has {actual}",
            line=child_line(entry.element, "md5_checksum"),
        )  # fmt: skip


def md5_of(path: Path) -> str:
    """Return the MD5 of a file, which PDS4 labels state; it guards against accidents only."""
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while piece := file.read(CHUNK_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def manifest_problems(manifest: Mapping[Path, str], path: Path, name: str) -> Iterator[ValidationProblem]:
    """Yield problems of a file according to a checksum manifest."""
    listed = manifest.get(path.resolve())
    if listed is None:
        yield problem("label.missing_checksum", f"{name} is not in the checksum manifest")
    elif (actual := md5_of(path)) != listed:
        yield problem(
            "label.checksum_mismatch", f"the checksum manifest says {listed}, but {name} has {actual}"
        )


def read_manifest(path: Path, base: Path) -> dict[Path, str]:
    """Read a checksum manifest: a line has an MD5 and a path, from `base`."""
    found: dict[Path, str] = {}
    for line in path.read_text(errors="replace").splitlines():
        digest, _, name = line.strip().partition(" ") if "\t" not in line else line.strip().partition("\t")
        if len(digest) == 32 and name:
            found[(base / name.strip().lstrip("*")).resolve()] = digest.lower()
    return found
