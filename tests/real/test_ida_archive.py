"""Labels of the arm's tables beside that of SIS appendix E, and all labels against NASA's schemas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]
from tests.datasets.insight import sample

import transect
from transect.archive.builder import build_bundle
from transect.archive.deep_archive import write_packages
from transect.archive.validation.options import ValidationOptions
from transect.archive.validation.validator import validate
from transect.datasets.insight.archive.bundle import arm_bundle

CREATED = "2020-12-21T00:00:00Z"
RECORD_COUNT = 927
ADDED = {
    "processing_level", "purpose", "Primary_Result_Summary", "stop_sol_number", "field_number",
    "creation_date_time", "file_size", "md5_checksum", "File/records",
}  # fmt: skip
"""Elements of our labels that appendix E lacks."""
DROPPED = {"Internal_Reference/comment"}
CORRECTED = {
    "publication_year", "start_date_time", "stop_date_time", "spacecraft_clock_start",
    "spacecraft_clock_stop", "Observing_System_Component/name", "description",
    "Reference_List/Internal_Reference/lid_reference", "object_length", "offset", "Field_Delimited/unit",
}  # fmt: skip
"""Elements whose text differs: corrected (`printed.py` says why), and the length of the heading."""


@pytest.fixture(scope="module")
def appendix(real_data: Path) -> Any:
    return etree.parse(real_data / "pds4/ida_label" / sample.LABEL_NAME).getroot()


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table as appendix E describes it: 58 fields, 927 records, times of Table 12."""
    folder = tmp_path_factory.mktemp("appendix") / "arm"
    sample.write_sample(folder)
    numbers = sample.SNAPSHOT.partition(",")[2]
    rows = tuple(f"{42209.8 + k / 10:.1f},{k / 36000:.4f},{numbers}" for k in range(RECORD_COUNT))
    header = sample.with_elapsed_time(sample.HEADER, "elapsed_time(hr)")
    (folder / "sol0209" / sample.SCIHI_NAME).write_bytes(sample.science(header, rows).encode())
    return folder


def _build(arm: Path, out: Path, *, printed: bool) -> Path:
    return build_bundle(arm_bundle(transect.open(arm), CREATED, as_printed=printed), out).folder


@pytest.fixture(scope="module")
def valid(arm: Path) -> Path:
    return _build(arm, arm.parent / "valid", printed=False)


@pytest.fixture(scope="module")
def printed(arm: Path) -> Path:
    return _build(arm, arm.parent / "printed", printed=True)


def _elements(root: Any) -> list[tuple[str, str]]:
    """Return path and text of all elements, in order; `[RA_DOF]` whole again where a page lost some of it."""
    found: list[tuple[str, str]] = []
    for each in root.iter(etree.Element):
        path = [etree.QName(above).localname for above in each.iterancestors()][::-1]
        text = " ".join((each.text or "").split()).replace("[RA DOF]", "[RA_DOF]")
        found.append(("/".join([*path, etree.QName(each).localname]), text))
    return found


def _is(path: str, names: set[str]) -> bool:
    return any(f"/{path}".endswith(f"/{name}") for name in names)


def test_a_printed_label_is_that_of_appendix_e(printed: Path, appendix: Any):
    label = etree.parse(printed / "data_raw_calibrated" / sample.LABEL_NAME).getroot()
    heading = {"object_length", "offset"}  # 678 bytes in appendix E; its heading itself is not printed
    ours, theirs = _elements(label), _elements(appendix)
    assert [path for path, _ in ours] == [path for path, _ in theirs]
    different = {path for (path, mine), (_, text) in zip(ours, theirs, strict=True) if mine != text}
    assert {path.rpartition("/")[2] for path in different} == heading


def test_a_valid_label_differs_from_it_only_where_it_is_corrected(valid: Path, appendix: Any):
    label = etree.parse(valid / "data_raw_calibrated" / sample.LABEL_NAME).getroot()
    ours = [each for each in _elements(label) if not _is(each[0], ADDED)]
    theirs = [each for each in _elements(appendix) if not _is(each[0], DROPPED)]
    assert [path for path, _ in ours] == [path for path, _ in theirs]
    different = {path for (path, mine), (_, text) in zip(ours, theirs, strict=True) if mine != text}
    assert {path for path in different if not _is(path, CORRECTED)} == set()
    assert {name for name in CORRECTED if not any(_is(path, {name}) for path in different)} == set()


def test_the_58_fields_have_names_types_and_units_of_appendix_e(valid: Path, appendix: Any):
    label = etree.parse(valid / "data_raw_calibrated" / sample.LABEL_NAME).getroot()
    ours, theirs = (
        [tuple(field.findtext(f"{{*}}{name}") for name in ("name", "data_type", "unit")) for field in fields]
        for fields in (label.iter("{*}Field_Delimited"), appendix.iter("{*}Field_Delimited"))
    )
    assert len(ours) == 58
    different = {mine for mine, text in zip(ours, theirs, strict=True) if mine != text}
    angles = {(f"th_{how}", "ASCII_Real", "rad") for how in ("enc", "pot", "enc_defl", "pot_defl")}
    assert different == {*angles, ("htr_cur", "ASCII_Real", "A")}


def _options(real_data: Path) -> ValidationOptions:
    return ValidationOptions("bundle", (real_data / "pds4/schemas",))


def test_the_archive_is_valid(valid: Path, real_data: Path):
    report = validate([valid], _options(real_data))
    assert (report.verdict, report.labels, report.notes) == ("valid", 10, ())
    assert [each for each in report.problems if each.severity != "info"] == []


def test_validation_names_the_mistakes_of_the_printed_label(printed: Path, real_data: Path):
    report = validate([printed], _options(real_data))
    label = f"data_raw_calibrated/{sample.LABEL_NAME}"
    found = {
        (each.type, each.line)
        for each in report.problems
        if each.file == label and "special_constant" not in each.kind
    }
    lines = (printed / label).read_text().splitlines()

    def line(text: str) -> int:
        return next(number for number, each in enumerate(lines, 1) if text in each)

    assert found == {
        ("warning.label.context_ref_mismatch", line("<name>InSight Lander</name>")),
        ("warning.integrity.reference_not_found", line("insight_ida:document:insight_ida_bundle_sis")),
        ("info.label.missing_filesize", line("<File>")),
        ("info.label.missing_checksum", line("<File>")),
    }


def test_packages_for_the_deep_archive_are_valid(valid: Path, real_data: Path, tmp_path: Path):
    made = write_packages(valid, tmp_path / "deep", "https://node.example/insight_ida", "PDS_GEO")
    report = validate([made.folder], ValidationOptions(None, (real_data / "pds4/schemas",)))
    assert (report.verdict, report.labels, report.problems) == ("valid", 2, ())
