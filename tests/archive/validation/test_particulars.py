"""Particulars of labels that are rare, and right or wrong all the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.archive.validation.products import MODELS, NS, SCH, XSD, area, label, problems, types, write
from tests.archive.validation.test_archives import INVENTORY, LID, bundle, collection
from tests.archive.validation.test_arrays import ARRAY, STATISTICS
from tests.archive.validation.test_tables import ROWS, TWO, check, constants, delimited, field, fixed

from transect.archive.validation.options import ValidationOptions
from transect.archive.validation.schematron import MAX_PARTIAL_COMPILATIONS, Schematron
from transect.archive.validation.validator import validate

CONTEXT = "urn:nasa:pds:context:instrument:arm.camera"


# Schematron and XSD


def rules(*patterns: str) -> str:
    return (
        '<sch:schema xmlns:sch="http://purl.oclc.org/dsdl/schematron" queryBinding="xslt2">'
        f'<sch:ns uri="{NS}" prefix="pds"/><sch:let name="nine" value="\'9.9\'"/>'
        f"{''.join(patterns)}</sch:schema>"
    )


def test_a_rule_uses_what_its_schema_and_pattern_define_and_names_elements(tmp_path: Path) -> None:
    path = tmp_path / "a.sch"
    path.write_text(
        rules(
            '<sch:pattern><sch:let name="sign" value="\'.\'"/><sch:rule context="pds:version_id">'
            "<sch:p>Why there is such a rule.</sch:p>"
            '<sch:report test="contains(., $sign) and . = $nine"><sch:name/> is <sch:value-of select="."/>, '
            '<sch:emph>which</sch:emph> <sch:name path=".."/> must not have.</sch:report>'
            "</sch:rule></sch:pattern>"
        )
    )
    compiled = Schematron([path])
    names = frozenset({"version_id"})
    assert list(compiled.failures(label(vid="1.0"), names)) == []
    (failed,) = compiled.failures(label(vid="9.9"), names)
    assert failed.text == "version_id is 9.9, Identification_Area must not have."


def test_rules_that_no_element_concerns_are_not_compiled(tmp_path: Path) -> None:
    path = tmp_path / "a.sch"
    path.write_text(SCH.replace("pds:Identification_Area/*", "pds:Identification_Area/pds:title"))
    compiled = Schematron([path])
    assert list(compiled.failures(label(vid="0.1"), frozenset({"Nothing"}))) == []
    names = frozenset({"version_id", "Nothing"})
    for other in range(MAX_PARTIAL_COMPILATIONS + 2):  # however often labels bring new elements
        (failed,) = compiled.failures(label(vid="0.1"), names | {f"Element_{other}"})
        assert (failed.role, failed.text) == ("warning", "A draft.")


def test_a_label_of_another_encoding_is_held_against_schematron(tmp_path: Path) -> None:
    (tmp_path / "PDS4_PDS_TEST.xsd").write_text(XSD)
    (tmp_path / "PDS4_PDS_TEST.sch").write_text(SCH)
    text = label().replace("A test", "Ein größerer Titel").replace("UTF-8", "ISO-8859-1")
    (tmp_path / "a.xml").write_bytes(text.encode("latin-1"))
    (said,) = problems(tmp_path / "a.xml", schemas=(tmp_path,))
    assert said.text == "The title Ein größerer Titel is long."


def test_instructions_that_name_no_rules_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "PDS4_PDS_TEST.xsd").write_text(XSD)
    (tmp_path / "PDS4_PDS_TEST.sch").write_text(SCH)
    others = (
        '<?xml-stylesheet href="a.xsl" type="text/xsl"?><!-- A comment. -->'
        '<?xml-model href="other.rnc" schematypens="http://relaxng.org/ns/structure/1.0"?>'
    )
    path = write(tmp_path, "a.xml", label(vid="0.1", models=MODELS + others))
    found = types(path, schemas=(tmp_path,))
    assert "warning.label.schematron" in found
    assert not [each for each in problems(path, schemas=(tmp_path,)) if "other.rnc is not" in each.text]


# Identifiers and context


def host(name: str, type_: str, holder: str = "Observing_System_Component") -> str:
    return label(
        f"<{holder}>{name}{type_}<Internal_Reference><lid_reference>{CONTEXT}</lid_reference>"
        f"<reference_type>is_instrument</reference_type></Internal_Reference></{holder}>"
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (host("<name>Camera</name>", "<type>Imager</type>"), 0),
        (host("<name>Camera</name>", "<type>Spectrometer</type>"), 0),  # types changed from model to model
        (host("<name>Spectrometer</name>", "<type>Imager</type>"), 1),
        (host("<name>Spectrometer</name>", ""), 0),  # which has no type to compare
        (host("", "<type>Imager</type>", "Instrument"), 0),
    ],
)
def test_a_component_is_called_as_it_is_registered(tmp_path: Path, text: str, found: int) -> None:
    entry = {"name": ["Camera"], "type": ["Imager"], "lidvid": f"{CONTEXT}::1.0"}
    listed = tmp_path / "registered.json"
    listed.write_text(json.dumps({"Product_Context": [entry]}))
    path = write(tmp_path, "a.xml", text)
    assert types(path, context=True, context_file=listed) == ["warning.label.context_ref_mismatch"] * found
    assert types(path, context=True, context_file=listed, mismatches=False) == []


def test_references_to_what_is_no_context_product_are_not_looked_up(tmp_path: Path) -> None:
    listed = tmp_path / "registered.json"
    listed.write_text(json.dumps({"Product_Context": []}))
    reference = (
        "<Reference_List><Internal_Reference><lid_reference>urn:nasa:pds:arm:document:guide</lid_reference>"
        "<reference_type>{}</reference_type></Internal_Reference></Reference_List>"
    )
    for kind in ("data_to_document", "data_to_other"):
        path = write(tmp_path, "a.xml", label(reference.format(kind)))
        assert types(path, context=True, context_file=listed) == []


# Files


def test_a_file_without_a_name_is_told(tmp_path: Path) -> None:
    assert types(write(tmp_path, "a.xml", label(area("")))) == ["error.validation.unknown_value"]


def test_a_name_may_be_written_as_in_an_address(tmp_path: Path) -> None:
    path = write(tmp_path, "a.xml", label(area("b%2Bc.dat")))
    assert types(path) == ["error.label.missing_file"]
    (tmp_path / "b+c.dat").write_bytes(b"x")
    assert "error.label.missing_file" not in types(path)


def test_a_file_in_a_folder_that_is_not_there_is_missing(tmp_path: Path) -> None:
    assert types(write(tmp_path, "a.xml", label(area("none/b.dat")))) == ["error.label.missing_file"]


def test_what_is_called_file_outside_of_file_areas_names_none(tmp_path: Path) -> None:
    other = "<Software><File><file_name>none.dat</file_name></File></Software>"
    assert types(write(tmp_path, "a.xml", label(other))) == []


def test_names_that_differ_in_case_only_are_told(tmp_path: Path) -> None:
    for name in ("notes.txt", "Notes.txt"):
        (tmp_path / name).write_bytes(b"x")
    bundle(tmp_path)
    found = [each for each in problems(tmp_path, rule="bundle") if "upper and lower case only" in each.text]
    assert len(found) == 1


def test_a_folder_without_labels_and_a_label_that_is_too_large_are_errors(tmp_path: Path) -> None:
    (tmp_path / "b.dat").write_bytes(b"x")
    assert types(tmp_path, rule="bundle")[0] == "error.execution.no_products_found"
    (tmp_path / "a.xml").write_bytes(label().encode() + b" " * (16 << 20))
    (said,) = problems(tmp_path / "a.xml")
    assert (said.type, "too many for a label" in said.text) == ("error.label.not_understandable", True)


def test_xml_that_a_label_describes_as_data_is_no_label(tmp_path: Path) -> None:
    write(tmp_path, "a.xml", label(area("b.xml")))
    (tmp_path / "b.xml").write_text("<things/>")
    (tmp_path / "c.xml").write_text("<things/>")
    found = validate([tmp_path], ValidationOptions(context=False)).problems
    assert [each.file for each in found if each.type.endswith("not_understandable")] == ["c.xml"]


# Members


def test_an_entry_without_an_identifier_is_no_member(tmp_path: Path) -> None:
    path = bundle(tmp_path)
    empty = "<Bundle_Member_Entry><member_status>Primary</member_status></Bundle_Member_Entry>"
    path.write_text(path.read_text().replace("<Bundle_Member_Entry>", f"{empty}<Bundle_Member_Entry>", 1))
    collection(tmp_path / "data")
    write(tmp_path / "data", "one.xml", label(area("one.dat")), one_dat=b"x")
    assert types(tmp_path, rule="bundle") == []


def test_a_collection_may_have_other_files_beside_its_inventory(tmp_path: Path) -> None:
    path = collection(tmp_path / "data")
    more = area("notes.txt").replace("_Observational", "_Text")
    path.write_text(path.read_text().replace("</Product_Collection>", f"{more}</Product_Collection>"))
    (tmp_path / "data" / "notes.txt").write_text("x")
    write(tmp_path / "data", "one.xml", label(area("one.dat")), one_dat=b"x")
    assert types(tmp_path / "data", rule="collection") == []


def test_an_inventory_whose_last_line_does_not_end_is_told_once(tmp_path: Path) -> None:
    rows = f"P,{LID}:data:one::1.0\r\nS,urn:nasa:pds:a:b:c::1.0".encode()
    body = area("inventory.csv", INVENTORY.format(records=2)).replace("_Observational", "_Inventory")
    text = label(body, kind="Product_Collection", lid=f"{LID}:data")
    write(tmp_path, "collection_data.xml", text, inventory_csv=rows)
    write(tmp_path, "one.xml", label(area("one.dat")), one_dat=b"x")
    assert types(tmp_path, rule="collection") == ["error.table.missing_CRLF"]


# Tables


def test_comments_in_a_definition_change_nothing(tmp_path: Path) -> None:
    parts = fixed(*TWO).replace("<Field_Character>", "<!-- A comment. --><Field_Character>")
    assert check(tmp_path, parts, ROWS) == []


def group(times: int, length: int, inside: str, start: int = 1) -> str:
    return (
        f"<Group_Field_Character><repetitions>{times}</repetitions><fields>1</fields><groups>0</groups>"
        f"<group_location>{start}</group_location><group_length>{length}</group_length>{inside}"
        "</Group_Field_Character>"
    )


def of_groups(inside: str) -> str:
    return fixed(inside).replace("<fields>1</fields><groups>0", "<fields>0</fields><groups>1", 1)


def test_a_group_is_as_long_as_its_repetitions(tmp_path: Path) -> None:
    number = field("Character", 1, "ASCII_Real", (1, 5))
    assert check(tmp_path, of_groups(group(2, 10, number)), b" 1.50 2.50\r\n" * 3) == []
    found = check(tmp_path, of_groups(group(3, 10, number)), b" 1.50 2.50\r\n" * 3)
    assert any("group_length 10 is no multiple of its 3 repetitions" in each.text for each in found)
    nested = group(1, 10, group(2, 12, number)).replace(
        "<fields>1</fields><groups>0", "<fields>0</fields><groups>1", 1
    )
    found = check(tmp_path, of_groups(nested), b" 1.50 2.50\r\n" * 3)
    assert any("its fields take 12: it should be at least 12" in each.text for each in found)


def test_a_group_of_a_billion_repetitions_takes_no_memory(tmp_path: Path) -> None:
    number = field("Character", 1, "ASCII_Real", (1, 5))
    (said, *_) = check(tmp_path, of_groups(group(10**9, 10, number)), b" 1.50 2.50\r\n" * 3)
    assert "a group of 1000000000 repetitions" in said.text


@pytest.mark.parametrize(
    ("data", "kinds"), [(b"1,2\n3,4\n", []), (b"1,2\r\n3,4\r\n", ["error.table.missing_LF"])]
)
def test_lines_may_end_in_a_line_feed_alone_if_the_label_says_so(
    tmp_path: Path, data: bytes, kinds: list[str]
) -> None:
    parts = delimited("ASCII_Integer", "ASCII_Integer", ends="Line-Feed")
    assert [each.type for each in check(tmp_path, parts, data)] == kinds


def test_fixed_records_may_end_in_a_line_feed_alone_if_the_label_says_so(tmp_path: Path) -> None:
    parts = fixed(*TWO, length=11).replace("Carriage-Return Line-Feed", "Line-Feed")
    assert check(tmp_path, parts, ROWS.replace(b"\r", b"")) == []
    parts = fixed(*TWO).replace("Carriage-Return Line-Feed", "Line-Feed")
    assert [each.type for each in check(tmp_path, parts, ROWS)] == ["error.table.missing_LF"]


def test_blanks_between_fields_are_no_signs(tmp_path: Path) -> None:
    blank = ROWS.replace(b",", b" ")
    assert check(tmp_path, fixed(*TWO), blank, strict_fields=True) == []


def test_a_table_of_an_empty_file_lacks_its_records(tmp_path: Path) -> None:
    (said,) = check(tmp_path, delimited("ASCII_Integer"), b"")
    assert (said.type, "the file has 0" in said.text) == ("error.table.records_mismatch", True)
    assert check(tmp_path, fixed(*TWO), b"")[0].type == "error.label.table_definition_problem"


def test_a_table_that_does_not_say_what_a_record_is_is_told(tmp_path: Path) -> None:
    parts = "<Table_Character><name>t</name><offset>0</offset><records>3</records></Table_Character>"
    (said, *_) = check(tmp_path, parts, ROWS)
    assert "has no Record_* element" in said.text


def test_fixed_records_without_a_line_feed_have_no_cause(tmp_path: Path) -> None:
    found = check(tmp_path, fixed(*TWO), ROWS.replace(b"\r\n", b"  "))
    assert [each.type for each in found][:1] == ["error.table.missing_CRLF"]
    assert not any("should be" in (each.cause or "") for each in found)


def test_a_text_has_no_range(tmp_path: Path) -> None:
    more = "<Field_Statistics><minimum>0</minimum><maximum>1</maximum></Field_Statistics>"
    assert check(tmp_path, delimited("ASCII_String", more=more), b"a\r\nb\r\n") == []


def test_a_constant_may_be_spelt_by_its_bits(tmp_path: Path) -> None:
    more = "<Field_Statistics><minimum>0</minimum><maximum>5</maximum></Field_Statistics>"
    number = field("Binary", 1, "UnsignedMSB2", (1, 2), constants(missing_constant="16#FFFF#") + more)
    data = np.array([1, 0xFFFF, 2], ">u2").tobytes()
    parts = fixed(number, kind="Binary", length=2)
    assert check(tmp_path, parts, data) == []
    assert len(check(tmp_path, parts.replace("16#FFFF#", "16#FFFE#"), data)) == 1


# Arrays and the rest of a file


def test_complex_elements_have_no_range_and_unknown_ones_are_for_the_schema(tmp_path: Path) -> None:
    values = np.arange(6, dtype=">c8").tobytes()
    more = STATISTICS.format("")
    for type_ in ("ComplexMSB8", "Imaginary"):
        text = label(area("b.img", ARRAY.format(type=type_, more=more, scale="")))
        assert types(write(tmp_path, "a.xml", text, b_img=values)) == []


def test_undescribed_bytes_are_reported_if_all_objects_have_a_length(tmp_path: Path) -> None:
    header = "<Header><offset>2</offset><object_length>4</object_length></Header>"
    text = label(area("b.dat", header))
    path = write(tmp_path, "a.xml", text, b_dat=b"12345678")
    assert types(path, complete=True) == ["warning.data.not_described"] * 2
    path = write(tmp_path, "a.xml", text.replace("<object_length>4</object_length>", ""), b_dat=b"12345678")
    assert types(path, complete=True) == []
