"""The label of document 002, appendix E, with data: valid as it is, and each mistake in it named rightly."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from transect.archive.validation.options import ValidationOptions
from transect.archive.validation.problems import ValidationProblem
from transect.archive.validation.validator import validate

RECORD_COUNT, HEADER_BYTES = 5, 678
SCHEMA, RULE = "error.label.schema", "error.label.schematron"
ALONE = "warning.label.context_ref_mismatch"
"""The lander is registered by other names than the document's `InSight Lander`."""


@pytest.fixture(scope="module")
def text(real_data: Path) -> str:
    (path,) = (real_data / "pds4" / "ida_label").glob("*.xml")
    return path.read_text().replace("<records>927<", f"<records>{RECORD_COUNT}<")


def rows(text: str) -> bytes:
    values = {"ASCII_Real": "1.5", "ASCII_Integer": "7"}
    types = re.findall(r"<data_type>(.*?)<", text)
    record = ",".join(values.get(each, "NONE") for each in types) + "\r\n"
    return b"h" * (HEADER_BYTES - 2) + b"\r\n" + record.encode() * RECORD_COUNT


def check(folder: Path, text: str, data: bytes, real_data: Path) -> list[ValidationProblem]:
    path = folder / "label.xml"
    path.write_text(text)
    (folder / "A0087_0209_615088547_615088547_190629192905_eu.csv").write_bytes(data)
    report = validate([path], ValidationOptions(schemas=(real_data / "pds4" / "schemas",)))
    return [each for each in report.problems if each.severity != "info"]


def test_the_label_of_the_document_is_valid(tmp_path: Path, text: str, real_data: Path) -> None:
    found = check(tmp_path, text, rows(text), real_data)
    assert [(each.type, each.line) for each in found] == [(ALONE, line_of(text, "<name>InSight Lander"))]


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


MD5 = hashlib.md5(b"something else").hexdigest()
LID, TABLE = "error.validation.invalid_label", "error.label.table_definition_problem"
BROKEN = "error.label.not_understandable"
MISSING = "error.label.missing_file"
ALONE_MODEL = '<?xml-model href="http://pds.nasa.gov/pds4/msn/v1/PDS4_MSN_1B00_1100.sch"'
SIZE, SUM = "<file_size unit='byte'>1</file_size>", f"<md5_checksum>{MD5}</md5_checksum>"
MUTATIONS = {
    "upper case in the identifier": ("insight_ida:data_raw", "insight_IDA:data_raw", [LID, RULE]),
    "one part too many in the identifier": ("data_raw_calibrated:a", "data_raw:calibrated:a", [LID, RULE]),
    "a version of three numbers": ("<version_id>1.0<", "<version_id>1.0.1<", [LID, SCHEMA]),
    "no title": ("<title>IDA Science High Data Product</title>", "", [SCHEMA]),
    "another information model": ("1.11.1.0", "1.11.0.0", [RULE]),
    "a date of another form": ("2019-06-29T13:56:40.702Z</start", "29.06.2019</start", [SCHEMA]),
    "a tag that is closed by another": ("<msn:mission_phase_name>", "<msn:mission_fase_name>", [BROKEN]),
    "an element that the dictionary does not have": ("msn:product_type_name", "msn:product_kind", [SCHEMA]),
    "a sol that is no number": ("<msn:start_sol_number>209", "<msn:start_sol_number>CCIX", [SCHEMA]),
    "a target by another name": ("<name>Mars<", "<name>Marz<", [ALONE]),
    "a target that nobody registered": ("planet.mars", "planet.marz", ["error.label.context_ref_not_found"]),
    "a reference of no known kind": ("data_to_target<", "data_to_goal<", [RULE]),
    "an unknown parsing standard": ("<parsing_standard_id>PDS DSV 1<", "<parsing_standard_id>CSV<", [RULE]),
    "an unknown field delimiter": (">Comma<", ">Space<", [TABLE, RULE]),
    "more records than there are": ("<records>5<", "<records>6<", ["error.table.records_mismatch"]),
    "fewer fields than defined": ("<fields>58<", "<fields>57<", [TABLE, RULE]),
    "an unknown data type": ("<data_type>ASCII_Real<", "<data_type>ASCII_Float<", [RULE]),
    "a longer heading": (">678</object", ">680</object", ["error.label.invalid_object_definition"]),
    "a file that is not there": ("192905_eu.csv", "192906_eu.csv", [MISSING]),
    "a file elsewhere": ("<file_name>A", "<file_name>../A", [MISSING]),
    "another size": ("</file_name>", "</file_name>" + SIZE, ["error.label.filesize_mismatch", SCHEMA]),
    "another sum": ("<local_identifier>file</local_identifier>", SUM, ["error.label.checksum_mismatch"]),
    "no Schematron of the dictionary": (ALONE_MODEL, "<?other", ["warning.label.schema"]),
    "a document type": ("<Product_Obs", "<!DOCTYPE a SYSTEM 'x.dtd'><Product_Obs", [BROKEN]),
}


@pytest.mark.parametrize("mistake", MUTATIONS)
def test_a_mistake_in_the_label_is_named(tmp_path: Path, text: str, real_data: Path, mistake: str) -> None:
    old, new, expected = MUTATIONS[mistake]
    whole = old.endswith("_name") and not old.startswith("<")  # begin and end of an element
    changed = text.replace(old, new, 2 if whole else 1)
    assert changed != text
    found = check(tmp_path, changed, rows(text), real_data)
    types = {each.type for each in found} - ({ALONE} if ALONE not in expected else set())
    assert sorted(types) == sorted(expected)
    place = line_of(text, old)
    named = [each.line for each in found if each.type in expected]
    assert min(abs(line - place) for line in named) <= 12, (named, place)  # at the element, or at its parent


@pytest.mark.parametrize(
    ("old", "new", "type_", "field"),
    [
        (b"1.5,7", b"1.5,7a", "table.field_value_data_type_mismatch", True),
        (b"1.5,", b"1.5;", "table.fields_mismatch", False),
        (b"NONE", b'"NO"NE"', "validation.invalid_field_value", True),
    ],
)
def test_a_mistake_in_the_data_is_named_with_field_and_record(
    tmp_path: Path, text: str, real_data: Path, old: bytes, new: bytes, type_: str, field: bool
) -> None:
    data = rows(text)
    start = HEADER_BYTES + data[HEADER_BYTES:].index(old)
    changed = data[:start] + new + data[start + len(old) :]
    (said,) = [each for each in check(tmp_path, text, changed, real_data) if each.type != ALONE]
    assert (said.kind, bool(said.field), said.record) == (type_, field, 1)


def test_other_line_ends_are_one_problem_with_its_cause(tmp_path: Path, text: str, real_data: Path) -> None:
    data = rows(text)
    changed = data[:HEADER_BYTES] + data[HEADER_BYTES:].replace(b"\r\n", b"\n")
    (said,) = [each for each in check(tmp_path, text, changed, real_data) if each.type != ALONE]
    assert (said.type, said.count) == ("error.table.missing_CRLF", RECORD_COUNT)
    assert said.cause.endswith("record_delimiter should be Line-Feed")
