"""Files that labels name: whether they are there, are the ones described, and may be called so."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from tests.archive.validation.products import area, label, problems, types, write

from transect.archive.validation.labels import name_problems

DOCUMENT = """<Document_Edition><Document_File>{}<document_standard_id>{}</document_standard_id>
  </Document_File></Document_Edition>"""


def image(standard: str) -> str:
    said = f"<encoding_standard_id>{standard}</encoding_standard_id>"
    return f"<Encoded_Image><offset>0</offset>{said}</Encoded_Image>"


def document(file: str, standard: str) -> str:
    inside = DOCUMENT.format(f"<file_name>{file}</file_name>", standard)
    return label(f"<Document>{inside}</Document>", kind="Product_Document")


def test_a_file_that_is_not_there_is_an_error_unless_content_is_skipped(tmp_path: Path) -> None:
    path = write(tmp_path, "a.xml", label(area("b.dat")))
    assert types(path) == ["error.label.missing_file"]
    assert types(path, content=False) == []


@pytest.mark.parametrize("name", ["../b.dat", "/etc/passwd", "..\\b.dat"])
def test_a_file_outside_of_the_label_s_folder_is_not_opened(tmp_path: Path, name: str) -> None:
    (tmp_path / "b.dat").write_bytes(b"x")
    path = write(tmp_path / "in", "a.xml", label(area(name)))
    (said,) = problems(path)
    assert said.type == "error.label.missing_file"
    assert "leads out" in said.text


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "b.dat").write_bytes(b"x")
    path = write(tmp_path / "in", "a.xml", label(area("b.dat")))
    (tmp_path / "in" / "b.dat").symlink_to(tmp_path / "b.dat")
    (said,) = problems(path)
    assert "leads out" in said.text


def test_a_name_in_other_case_is_a_warning(tmp_path: Path) -> None:
    path = write(tmp_path, "a.xml", label(area("B.DAT")), b_dat=b"x")
    assert types(path) == ["warning.label.file_ref_case_mismatch"]


def test_size_and_checksum_must_be_those_of_the_file(tmp_path: Path) -> None:
    good = f"<file_size>1</file_size><md5_checksum>{hashlib.md5(b'x').hexdigest()}</md5_checksum>"
    path = write(tmp_path, "a.xml", label(area("b.dat", more=good)), b_dat=b"x")
    assert types(path) == []
    (tmp_path / "b.dat").write_bytes(b"xy")
    found = problems(path)
    assert [each.type for each in found] == ["error.label.filesize_mismatch", "error.label.checksum_mismatch"]
    assert hashlib.md5(b"xy").hexdigest() in found[1].text


def test_a_manifest_must_have_each_file_with_its_sum(tmp_path: Path) -> None:
    path = write(tmp_path, "a.xml", label(area("b.dat")), b_dat=b"x")
    sums = [
        f"{hashlib.md5(file.read_bytes()).hexdigest()}  {file.name}" for file in (path, tmp_path / "b.dat")
    ]
    manifest = tmp_path / "sums.md5"
    manifest.write_text("\n".join(sums))
    assert types(path, checksums=manifest) == []
    manifest.write_text(sums[0].replace("a.xml", "c.xml") + "\n" + "0" * 32 + "  b.dat")
    assert types(path, checksums=manifest) == [
        "error.label.missing_checksum",
        "error.label.checksum_mismatch",
    ]


@pytest.mark.parametrize(
    ("standard", "good", "type_"),
    [
        ("JPEG", b"\xff\xd8\xff\xe0", "error.file.not_jpeg_compliant"),
        ("PNG", b"\x89PNG\r\n\x1a\n", "error.file.not_png_compliant"),
        ("MP4/H.264", b"\x00\x00\x00\x18ftypmp42", "error.file.not_mp4_m4a_compliant"),
        ("WAV", b"RIFF\x00\x00\x00\x00WAVEfmt ", "error.file.not_wav_compliant"),
        ("PDF/A", b"%PDF-1.7\n<pdfaid:part>1<", "error.pdf.file.not_pdfa_compliant"),
    ],
)
def test_a_file_must_begin_as_its_standard_says(
    tmp_path: Path, standard: str, good: bytes, type_: str
) -> None:
    suffix = standard.lower().partition("/h")[0].replace("/", "").removesuffix("a")
    path = write(tmp_path, "a.xml", label(area(f"b.{suffix}", image(standard))))
    (tmp_path / f"b.{suffix}").write_bytes(good)
    assert types(path) == []
    (tmp_path / f"b.{suffix}").write_bytes(b"something else")
    assert types(path) == [type_]


def test_of_m4a_it_is_said_that_the_audio_is_not_validated(tmp_path: Path) -> None:
    """NASA's validate (4.2) gives one warning and no error for a valid file."""
    path = write(tmp_path, "a.xml", label(area("b.m4a", image("M4A/AAC"))))
    unsupported = "warning.validation.content_validation_not_yet_supported"
    (tmp_path / "b.m4a").write_bytes(b"\x00\x00\x00\x18ftypM4A ")
    assert types(path) == [unsupported]
    (tmp_path / "b.m4a").write_bytes(b"something else")
    assert types(path) == ["error.file.not_mp4_m4a_compliant", unsupported]
    assert types(path, content=False) == []


@pytest.mark.parametrize(
    ("standard", "name", "found"),
    [
        ("JPEG", "b.dat", ["warning.validation.file_naming_problem"]),
        ("JPEG", "b.JPG", []),
        ("TIFF", "b.tiff", []),
        ("MSSS Camera Mini Header", "b.dat", []),  # no extension is known
    ],
)
def test_a_file_is_called_as_its_encoding_standard_lets_expect(
    tmp_path: Path, standard: str, name: str, found: list[str]
) -> None:
    path = write(tmp_path, "a.xml", label(area(name, image(standard))))
    assert types(path, content=False) == found


def test_a_folder_in_a_label_counts_from_the_label_and_not_from_the_root(tmp_path: Path) -> None:
    text = label(area("b.dat")).replace(
        "<file_name>", "<directory_path_name>/data/</directory_path_name><file_name>"
    )
    (said,) = problems(write(tmp_path, "a.xml", text, b_dat=b"x"))
    assert (said.type, "absolute" in said.text) == ("error.directory.unallowed_name", True)


def test_a_document_must_be_called_as_its_standard_says_and_a_pdf_say_that_it_is_for_archives(
    tmp_path: Path,
) -> None:
    assert types(write(tmp_path, "a.xml", document("b.txt", "HTML"), b_txt=b"x")) == [
        "warning.file.not_html_mimetype"
    ]
    assert types(write(tmp_path, "a.xml", document("b.html", "HTML 4.01"), b_html=b"x")) == []
    path = write(tmp_path, "a.xml", document("b.pdf", "PDF"), b_pdf=b"%PDF-1.4 plain")
    (said,) = problems(path)
    assert (said.type, said.data) == ("error.pdf.file.not_pdfa_compliant", "b.pdf")
    assert "pdfaid:part" in said.text


def test_an_encrypted_pdf_is_not_for_archives(tmp_path: Path) -> None:
    good = b"%PDF-1.7\n<pdfaid:part>1</pdfaid:part>" + b" " * (1 << 20) + b"trailer <</Root 1 0 R>>"
    path = write(tmp_path, "a.xml", document("b.pdf", "PDF/A"), b_pdf=good)
    assert types(path) == []
    (tmp_path / "b.pdf").write_bytes(good.replace(b"/Root", b"/Encrypt 9 0 R /Root"))
    (said,) = problems(path)
    assert "encrypted" in said.text


@pytest.mark.parametrize(
    ("name", "folder", "kind"),
    [
        ("a" * 256, False, "file.name_too_long"),
        ("a b.tab", False, "file.name_has_invalid_characters"),
        ("_a.tab", False, "file.name_has_invalid_characters"),
        ("a.out", False, "file.unallowed_name"),
        ("core", False, "file.unallowed_base_name"),
        ("LPT1.tab", False, "file.unallowed_base_name"),
        ("data.1", True, "directory.name_has_invalid_characters"),
        ("con", True, "directory.unallowed_name"),
    ],
)
def test_names_that_no_archive_may_have(name: str, folder: bool, kind: str) -> None:
    assert [each.kind for each in name_problems(name, folder)] == [kind]


def test_names_that_an_archive_may_have() -> None:
    assert not [*name_problems("data_raw", True), *name_problems("a-b_1.TAB"), *name_problems("corex.dat")]


def test_a_label_called_bundle_of_another_product_is_a_warning(tmp_path: Path) -> None:
    assert types(write(tmp_path, "bundle_about.xml", label())) == ["warning.file.reserved_name_mismatch"]


@pytest.mark.parametrize(
    ("content", "type_"),
    [
        (b"", "warning.label.not_understandable"),
        (b"<a>", "warning.label.not_understandable"),
        (label().encode()[:-9], "error.label.not_understandable"),
        (b"<!DOCTYPE a [<!ENTITY b 'c'>]>" + label().encode()[38:], "error.label.not_understandable"),
        (("<!DOCTYPE a>" + label()[39:]).encode("utf-16"), "warning.label.not_understandable"),
        (b"<a/>", "error.execution.no_products_found"),
    ],
)
def test_what_is_no_label_is_said_to_be_none(tmp_path: Path, content: bytes, type_: str) -> None:
    path = tmp_path / "a.xml"
    path.write_bytes(content)
    assert types(path) == [type_]


def test_a_label_in_another_encoding_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_bytes(label().replace('"UTF-8"', '"UTF-16"').replace("A test", "Ä test").encode("utf-16"))
    assert types(path) == []


def test_paths_without_labels_are_errors(tmp_path: Path) -> None:
    assert types(tmp_path / "none.xml") == ["error.label.missing_file"]
    (tmp_path / "a.txt").write_text(label())
    assert types(tmp_path / "a.txt") == ["error.label.bad_extension"]
    assert types(tmp_path) == ["error.execution.no_products_found"]


def test_objects_that_overlap_or_leave_the_file_are_told(tmp_path: Path) -> None:
    def header(offset: int, length: int) -> str:
        return f"<Header><offset>{offset}</offset><object_length>{length}</object_length></Header>"

    path = write(tmp_path, "a.xml", label(area("b.dat", header(0, 4) + header(4, 4))), b_dat=b"x" * 8)
    assert types(path) == []
    assert types(path, complete=True) == []
    path = write(tmp_path, "a.xml", label(area("b.dat", header(0, 4) + header(3, 4))))
    (said,) = problems(path)
    assert (said.type, said.cause) == ("error.label.invalid_object_definition", "offset should be at least 4")
    assert types(path, complete=True)[1:] == ["warning.data.not_described"]
    path = write(tmp_path, "a.xml", label(area("b.dat", header(4, 4) + header(0, 4))))
    assert types(path) == ["warning.data_objects.out_of_order"]
    path = write(tmp_path, "a.xml", label(area("b.dat", header(0, 9))))
    assert types(path) == ["error.label.invalid_object_definition"]
