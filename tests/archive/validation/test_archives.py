"""Bundles and collections: members, references, versions, files that belong to none; and how they grow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.archive.validation.products import area, label, problems, types, write
from tests.commands import transect

from transect.archive.validation.options import ValidationOptions
from transect.archive.validation.validator import validate

LID = "urn:nasa:pds:arm"
INVENTORY = """<Inventory><offset>0</offset><records>{records}</records>
  <record_delimiter>Carriage-Return Line-Feed</record_delimiter><field_delimiter>Comma</field_delimiter>
  <Record_Delimited><fields>2</fields><groups>0</groups>
    <Field_Delimited><name>Member_Status</name><data_type>ASCII_String</data_type></Field_Delimited>
    <Field_Delimited><name>LIDVID_LID</name><data_type>ASCII_LIDVID_LID</data_type></Field_Delimited>
  </Record_Delimited></Inventory>"""
ENTRY = """<Bundle_Member_Entry><lidvid_reference>{}</lidvid_reference><member_status>Primary</member_status>
  </Bundle_Member_Entry>"""
REFERENCE = """<Reference_List><Internal_Reference><lid_reference>{}</lid_reference>
  <reference_type>data_to_document</reference_type></Internal_Reference></Reference_List>"""


def bundle(folder: Path, *members: str, vid: str = "1.0", name: str = "bundle_arm.xml") -> Path:
    entries = "".join(ENTRY.format(each) for each in members or (f"{LID}:data::1.0",))
    return write(folder, name, label(entries, kind="Product_Bundle", lid=LID, vid=vid))


def collection(folder: Path, *records: str, vid: str = "1.0", name: str = "collection_data.xml") -> Path:
    rows = "".join(f"{each}\r\n" for each in records or (f"P,{LID}:data:one::1.0",))
    body = area("inventory.csv", INVENTORY.format(records=rows.count("\r\n"))).replace(
        "_Observational", "_Inventory"
    )
    text = label(body, kind="Product_Collection", lid=f"{LID}:data", vid=vid)
    return write(folder, name, text, inventory_csv=rows.encode())


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    bundle(tmp_path)
    collection(tmp_path / "data")
    write(tmp_path / "data", "one.xml", label(area("one.dat")), one_dat=b"x")
    return tmp_path


def test_a_bundle_whose_members_are_all_there_is_valid(archive: Path) -> None:
    report = validate([archive], ValidationOptions(rule="bundle", context=False))
    assert (report.verdict, report.labels, report.skipped) == ("valid", 3, 0)
    assert types(archive / "bundle_arm.xml", rule="bundle") == []
    assert types(archive / "data", rule="collection") == []


def test_a_bundle_that_is_checked_as_a_folder_has_a_note_that_says_what_is_left_out(archive: Path) -> None:
    report = validate([archive], ValidationOptions(context=False))
    assert report.notes[-1] == "members, inventories and references were not checked: --rule bundle"
    assert (
        validate([archive / "data"], ValidationOptions(context=False)).notes[-1].endswith("--rule collection")
    )


def test_a_member_that_is_not_there_is_an_error_or_if_asked_a_warning(archive: Path) -> None:
    collection(archive / "data", f"P,{LID}:data:one::2.0")
    found = problems(archive, rule="bundle")
    assert [each.type for each in found] == [
        "error.integrity.member_not_found", "warning.integrity.unreferenced_member"
    ]  # fmt: skip
    assert "there is version 1.0" in found[0].text
    assert found[0].record == 1
    assert types(archive, rule="bundle", strict_members=False)[0] == "warning.integrity.member_not_found"


def test_a_secondary_member_may_be_elsewhere(archive: Path) -> None:
    collection(archive / "data", f"P,{LID}:data:one::1.0", "S,urn:nasa:pds:other:document:guide")
    assert types(archive, rule="bundle") == []


@pytest.mark.parametrize(
    ("records", "type_"),
    [
        ([f"P,{LID}:data:one"], "error.integrity.missing_version"),
        ([f"P,{LID}:data:one::1.0"] * 2, "error.inventory.duplicate_lidvid"),
        (
            [f"P,{LID}:data:one::1.0", "X,urn:nasa:pds:a:b:c::1.0"],
            "error.inventory_table.invalid_member_status",
        ),
        (
            [f"P,{LID}:data:one::1.0", "S,urn:nasa:pds:A:b:c::1.0"],
            "error.table.field_value_data_type_mismatch",
        ),
    ],
)
def test_each_mistake_of_an_inventory_has_its_name(archive: Path, records: list[str], type_: str) -> None:
    collection(archive / "data", *records)
    assert types(archive, rule="bundle") == [type_]


def test_an_inventory_must_be_described_to_its_end(archive: Path) -> None:
    (archive / "data" / "inventory.csv").write_text(f"P,{LID}:data:one::1.0\r\nS,urn:nasa:pds:a:b:c::1.0\r\n")
    (said,) = problems(archive, rule="bundle")
    assert (said.type, said.text) == ("error.table.records_mismatch", "records is 1, but the file has 2")


def test_a_member_of_another_family_is_told(archive: Path) -> None:
    write(archive / "data", "one.xml", label(lid="urn:nasa:pds:leg:data:one"), one_dat=b"x")
    collection(archive / "data", "P,urn:nasa:pds:leg:data:one::1.0")
    assert types(archive, rule="bundle")[0] == "error.integrity.missing_parent_prefix"


def test_a_file_of_no_label_and_a_label_of_no_collection_are_warnings(archive: Path) -> None:
    (archive / "data" / "stray.txt").write_text("x")
    write(archive / "data", "two.xml", label(lid=f"{LID}:data:two"))
    assert types(archive, rule="bundle") == [
        "warning.integrity.unreferenced_member", "warning.file.not_referenced_in_label"
    ]  # fmt: skip
    assert types(archive, rule="bundle", unlabelled=False) == ["warning.integrity.unreferenced_member"]


def test_a_reference_into_the_bundle_must_lead_somewhere(archive: Path) -> None:
    text = label(area("one.dat") + REFERENCE.format(f"{LID}:document:guide"))
    write(archive / "data", "one.xml", text)
    (said,) = problems(archive, rule="bundle")
    assert (said.type, said.file) == ("warning.integrity.reference_not_found", "data/one.xml")
    write(archive / "data", "one.xml", text.replace(f"{LID}:document", "urn:nasa:pds:other:document"))
    assert types(archive, rule="bundle") == []


def test_one_identifier_and_one_file_belong_to_one_label(archive: Path) -> None:
    write(archive / "data", "copy.xml", label(area("one.dat")))
    found = types(archive / "data")
    assert found == ["error.label.duplicate_identifier"]
    write(archive / "data", "copy.xml", label(area("one.dat"), lid=f"{LID}:data:copy"))
    assert types(archive / "data") == ["error.label.file_areas_duplicated_reference"]


def test_several_information_models_are_one_warning(archive: Path) -> None:
    write(archive / "data", "one.xml", label(area("one.dat"), model="1.12.0.0"))
    assert types(archive, rule="bundle") == ["warning.integrity.pds4_version_mismatch"]


def test_of_several_bundles_the_newest_counts_and_older_collections_are_left_out(archive: Path) -> None:
    bundle(archive, f"{LID}:data::2.0", vid="2.0", name="bundle_arm_2.xml")
    collection(archive / "data", vid="2.0", name="collection_data_2.xml")
    report = validate([archive], ValidationOptions(rule="bundle", context=False))
    assert (report.verdict, report.labels, report.skipped) == ("valid", 3, 2)


def test_names_in_the_tree_are_checked(archive: Path) -> None:
    (archive / "data" / "document").mkdir()
    (archive / "data.1").mkdir()
    found = {each.type: each.file for each in problems(archive, rule="bundle")}
    assert found == {
        "error.directory.name_has_invalid_characters": "data.1",
        "warning.sub_directory.unallowed_name": "data/document",
    }


def test_a_folder_without_the_label_of_its_bundle_is_told(archive: Path) -> None:
    (archive / "bundle_arm.xml").unlink()
    assert types(archive, rule="bundle") == [
        "warning.validation.missing_required_file", "warning.integrity.unreferenced_member"
    ]  # fmt: skip
    assert (
        validate([archive], ValidationOptions(rule="bundle", context=False)).verdict == "valid with warnings"
    )


@pytest.mark.parametrize("member", ["urn:jaxa:darts-ard:set:data:one", "urn:nasa:pds:a-b:c-d:e-f.g_h"])
@pytest.mark.parametrize("vid", ["", "::1.0"])
def test_identifiers_may_have_hyphens_in_every_part(archive: Path, member: str, vid: str) -> None:
    collection(archive / "data", f"P,{LID}:data:one::1.0", f"S,{member}{vid}")
    assert types(archive, rule="bundle") == []


@pytest.mark.parametrize("member", ["urn:nasa:pds", "urn:nasa:pds:a:b:c:d", "nasa:pds:a", "urn:nasa:pds:a+b"])
def test_what_is_no_identifier_is_told_by_the_inventory(archive: Path, member: str) -> None:
    collection(archive / "data", f"P,{LID}:data:one::1.0", f"S,{member}")
    assert types(archive, rule="bundle") == ["error.table.field_value_data_type_mismatch"]


def test_two_documents_may_share_a_figure_and_two_observations_no_data(archive: Path) -> None:
    for number, kind in enumerate(("Product_Document", "Product_Document", "Product_Observational")):
        text = label(area("figure.dat"), kind=kind, lid=f"{LID}:data:d{number}")
        write(archive / "data", f"d{number}.xml", text, figure_dat=b"x")
    assert types(archive / "data") == []
    write(archive / "data", "d3.xml", label(area("figure.dat"), lid=f"{LID}:data:d3"))
    assert types(archive / "data") == ["error.label.file_areas_duplicated_reference"]


@pytest.mark.parametrize("left_out", [{"content": False}, {"products": False}])
def test_an_inventory_is_counted_also_where_content_is_left_out(
    archive: Path, left_out: dict[str, bool]
) -> None:
    assert types(archive, rule="bundle", **left_out) == []
    (archive / "data" / "inventory.csv").write_text(f"P,{LID}:data:one::1.0\r\nS,urn:nasa:pds:a:b:c::1.0\r\n")
    (said,) = problems(archive, rule="bundle", **left_out)
    assert (said.type, said.text) == ("error.table.records_mismatch", "records is 1, but the inventory has 2")
    assert types(archive / "data", **left_out) == []  # a folder of labels is not asked how it fits together


def test_members_may_be_in_another_folder_which_is_not_judged(archive: Path, tmp_path: Path) -> None:
    collection(archive / "data", f"P,{LID}:data:one::1.0", f"P,{LID}:data:old::1.0")
    assert types(archive, rule="bundle") == ["error.integrity.member_not_found"]
    online = tmp_path.parent / f"{tmp_path.name}-online"
    write(online, "old.xml", label(area("gone.dat"), lid=f"{LID}:data:old"))
    assert types(archive, rule="bundle", alternates=(online,)) == []
    done = transect(
        "archive", "validate", archive, "--rule", "bundle", "--skip-context",
        "--alternate-file-paths", f"{online},{online}",
    )  # fmt: skip
    assert done.returncode == 0
    missing = transect("archive", "validate", archive, "--alternate-file-paths", tmp_path / "nowhere")
    assert (missing.returncode, "there is no folder" in missing.stderr) == (2, True)


def test_only_how_labels_fit_together_can_be_checked(archive: Path) -> None:
    (archive / "data" / "one.dat").unlink()
    assert types(archive, rule="bundle") == ["error.label.missing_file"]
    assert types(archive, rule="bundle", products=False) == []


# Context products


@pytest.fixture
def registered(tmp_path: Path) -> Path:
    path = tmp_path / "registered.json"
    entry = {
        "name": ["InSight"],
        "type": ["Mission"],
        "lidvid": "urn:nasa:pds:context:investigation:mission.insight::2.0",
    }
    path.write_text(json.dumps({"Product_Context": [entry]}))
    return path


def investigation(name: str = "InSight", type_: str = "Mission", version: str = "") -> str:
    return label(
        f"<Investigation_Area><name>{name}</name><type>{type_}</type><Internal_Reference>"
        f"<lidvid_reference>urn:nasa:pds:context:investigation:mission.insight{version}</lidvid_reference>"
        "<reference_type>data_to_investigation</reference_type></Internal_Reference></Investigation_Area>"
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (investigation(version="::1.0"), []),
        (investigation("insight"), []),
        (investigation("InSight 2", "Rover"), ["warning.label.context_ref_mismatch"] * 2),
        (investigation(version="::3.0"), ["error.label.context_ref_not_found"]),
        (
            investigation().replace("mission.insight", "mission.outsight"),
            ["error.label.context_ref_not_found"],
        ),
    ],
)
def test_context_products_must_be_registered_as_they_are_named(
    tmp_path: Path, registered: Path, text: str, found: list[str]
) -> None:
    path = write(tmp_path, "a.xml", text)
    assert types(path, context=True, context_file=registered) == found
    assert types(path, context=False, context_file=registered) == []


def test_a_collection_must_name_the_context_of_its_products_if_asked(archive: Path) -> None:
    text = investigation().replace("</Investigation_Area>", "</Investigation_Area>" + area("one.dat"))
    write(archive / "data", "one.xml", text)
    (said,) = problems(archive, rule="bundle", context_references=True)
    assert (said.type, said.file) == (
        "warning.integrity.missing_context_reference",
        "data/collection_data.xml",
    )
    assert types(archive, rule="bundle") == []


def test_context_products_added_by_hand_are_found_and_said_not_to_be_registered(
    tmp_path: Path, registered: Path
) -> None:
    path = write(tmp_path, "a.xml", investigation())
    assert types(path, context=True, added_context=(registered,)) == ["warning.product_not_registered"]


def test_a_reference_to_an_object_of_the_label_must_have_one(tmp_path: Path) -> None:
    text = "<local_identifier>image</local_identifier>"
    text += "<local_identifier_reference>{}</local_identifier_reference>"
    assert types(write(tmp_path, "a.xml", label(text.format("image")))) == []
    assert types(write(tmp_path, "a.xml", label(text.format("imago")))) == [
        "error.label.local_identifier_not_found"
    ]


# Growth


def test_what_keeps_its_version_must_keep_its_bytes(
    archive: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    import shutil

    old = tmp_path_factory.mktemp("old") / "archive"
    shutil.copytree(archive, old)
    assert types(archive, rule="bundle", against=old) == []
    (archive / "data" / "one.dat").write_bytes(b"y")
    (said,) = problems(archive, rule="bundle", against=old)
    assert (said.type, said.file, said.data) == (
        "error.integrity.version_reused",
        "data/one.xml",
        "data/one.dat",
    )
    assert "needs a version above 1.0" in said.cause


def test_a_version_may_not_fall_and_a_product_that_is_gone_is_said(
    archive: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    import shutil

    old = tmp_path_factory.mktemp("old") / "archive"
    shutil.copytree(archive, old)
    write(old / "data", "one.xml", label(area("one.dat"), vid="1.1"))
    assert types(archive, rule="bundle", against=old) == [
        "error.integrity.version_not_raised", "warning.integrity.member_not_found"
    ]  # fmt: skip


def test_a_member_that_is_several_products_is_told_with_their_names(archive: Path) -> None:
    write(archive / "data", "copy.xml", label(area("copy.dat")), copy_dat=b"x")
    found = {each.type: each.text for each in problems(archive, rule="bundle")}
    assert "one.xml" in found["error.integrity.duplicate_members"]
    assert "copy.xml" in found["error.integrity.duplicate_members"]
    assert "error.label.duplicate_identifier" in found
    collection(archive / "data", f"P,{LID}:data:one")
    found = {each.type: each.text for each in problems(archive, rule="bundle")}
    assert "has one version twice" in found["error.integrity.duplicate_versions"]


def test_a_collection_by_itself_need_not_be_in_a_bundle(archive: Path) -> None:
    collection(archive / "data", f"P,{LID}:data:one::1.0", "", "S,urn:nasa:pds:a:b:c::1.0")
    other = archive / "data" / "deep"
    write(other, "collection_other.xml", label(kind="Product_Collection", lid=f"{LID}:other"))
    said = [each for each in types(archive / "data", rule="collection") if "unreferenced" in each]
    assert said == []


def test_an_authority_that_nobody_registered_is_noted_when_a_bundle_is_built(tmp_path: Path) -> None:
    track = tmp_path / "walk.tum"
    track.write_text("".join(f"{1_650_000_000 + i} {i} 0 0 0 0 0 1\n" for i in range(4)))
    transect("archive", "init", track, "-o", tmp_path / "a.yaml")
    text = (tmp_path / "a.yaml").read_text().replace("authority: stand-in", "authority: urn:us:them")
    (tmp_path / "a.yaml").write_text(text)
    built = transect("archive", "build", tmp_path / "a.yaml", "-o", tmp_path / "b")
    assert "does not accept identifiers that begin with urn:us:them" in built.stdout + built.stderr
    track.unlink()
    gone = transect("archive", "build", tmp_path / "a.yaml", "-o", tmp_path / "c")
    assert (gone.returncode, "walk.tum is not there" in gone.stderr) == (1, True)


def test_a_label_in_another_encoding_is_held_against_the_same_rules(archive: Path) -> None:
    path = archive / "data" / "one.xml"
    text = path.read_text("utf-8").replace('encoding="UTF-8"', 'encoding="ISO-8859-1"')
    path.write_bytes(text.replace("A test", "Ein gr\xfcner Test").encode("latin-1"))
    assert types(archive, rule="bundle") == []


def test_a_header_that_goes_on_after_the_end_of_its_file_is_told(tmp_path: Path) -> None:
    header = "<Header><offset>0</offset><object_length>9</object_length></Header>"
    (said,) = problems(write(tmp_path, "a.xml", label(area("b.dat", header)), b_dat=b"12345678"))
    assert (said.type, said.text) == (
        "error.label.invalid_object_definition", "it ends at byte 9, but the file has 8"
    )  # fmt: skip
    text = label(area("b.dat", header.replace("<offset>0", "<offset>2").replace(">9<", ">4<")))
    (said, after) = problems(write(tmp_path, "a.xml", text), complete=True)
    assert {said.text, after.text} == {"bytes 0 to 2 are not described", "bytes 6 to 8 are not described"}


def test_a_bundle_that_cites_others_and_their_papers_says_so(archive: Path) -> None:
    path = archive / "bundle_arm.xml"
    entry = "<Bundle_Member_Entry><lid_reference>urn:nasa:pds:leg:data</lid_reference>"
    entry += "<member_status>Secondary</member_status></Bundle_Member_Entry>"
    area_text = (
        "<Citation_Information><publication_year>2024</publication_year><description>Arm</description>"
    )
    paper = "<External_Reference><doi>10.1/2</doi></External_Reference><External_Reference/>"
    text = path.read_text("utf-8").replace("</Product_Bundle>", f"{entry}{paper}</Product_Bundle>")
    text = text.replace("</Identification_Area>", f"{area_text}</Citation_Information></Identification_Area>")
    path.write_text(text, "utf-8")
    done = transect("archive", "cite", archive, "--author", "Doe, Jane", "--json")
    assert done.returncode == 0, done.stderr
    related = json.loads(done.stdout)["datacite"]["relatedIdentifiers"]
    assert {each["relatedIdentifier"] for each in related} == {"urn:nasa:pds:leg:data", "10.1/2"}
