"""XSD and Schematron, by schemas written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.archive.validation.products import MODELS, SCH, XSD, label, problems, types, write
from tests.commands import transect

from transect.archive.validation import schematron
from transect.archive.validation.options import ValidationOptions
from transect.archive.validation.schematron import Schematron, context_names, stylesheet
from transect.archive.validation.validator import validate
from transect.errors import MissingExtraError, ParseError


@pytest.fixture
def schemas(tmp_path: Path) -> tuple[Path, ...]:
    folder = tmp_path / "schemas"
    folder.mkdir()
    (folder / "PDS4_PDS_TEST.xsd").write_text(XSD)
    (folder / "PDS4_PDS_TEST.sch").write_text(SCH)
    return (folder,)


def test_a_label_that_its_schemas_allow_is_valid(tmp_path: Path, schemas: tuple[Path, ...]) -> None:
    assert problems(write(tmp_path, "a.xml", label()), schemas=schemas) == []


def test_what_xsd_forbids_is_told_once_with_its_line(tmp_path: Path, schemas: tuple[Path, ...]) -> None:
    found = problems(write(tmp_path, "a.xml", label(vid="one")), schemas=schemas)
    (said,) = [each for each in found if each.type == "error.label.schema"]
    assert said.line == 7
    assert said.text.startswith("version_id: ")
    assert "{" not in said.text


def test_an_element_in_the_wrong_place_is_named(tmp_path: Path, schemas: tuple[Path, ...]) -> None:
    text = label().replace("<title>A test</title>", "<titel>A test</titel>")
    (said,) = problems(write(tmp_path, "a.xml", text), schemas=schemas)
    assert (said.type, said.line) == ("error.label.schema", 7)
    assert "titel" in said.text
    assert "title" in said.text


def test_an_assertion_that_fails_is_told_with_its_values_and_line(
    tmp_path: Path, schemas: tuple[Path, ...]
) -> None:
    text = label().replace("A test", "A very long title")
    (said,) = problems(write(tmp_path, "a.xml", text), schemas=schemas)
    assert (said.type, said.line) == ("error.label.schematron", 7)
    assert said.text == "The title A very long title is long."


def test_a_rule_may_be_a_warning(tmp_path: Path, schemas: tuple[Path, ...]) -> None:
    assert types(write(tmp_path, "a.xml", label(vid="0.1")), schemas=schemas) == ["warning.label.schematron"]


def test_of_a_pattern_with_several_rules_only_the_first_that_matches_counts(
    tmp_path: Path, schemas: tuple[Path, ...]
) -> None:
    found = problems(write(tmp_path, "a.xml", label(vid="9.9")), schemas=schemas)
    assert [each.text for each in found] == ["Nine."]


def test_rules_are_compiled_when_a_label_first_has_what_they_are_about(tmp_path: Path) -> None:
    path = tmp_path / "PDS4_PDS_TEST.sch"
    path.write_text(SCH)
    rules = Schematron([path])
    assert list(rules.failures(label(), frozenset({"Nothing"}))) == []
    text = label().replace("A test", "A very long title")
    names = frozenset({"Identification_Area", "title", "version_id"})
    assert [each.text for each in rules.failures(text, names)] == ["The title A very long title is long."]
    assert stylesheet(rules.rules).count("next-match") == 2


@pytest.mark.parametrize(
    "expression",
    [
        "unparsed-text('{secret}')", "string-join(unparsed-text-lines('{secret}'))",
        "name(doc('{secret}')/*)", "string-join(uri-collection('{folder}'))",
        "environment-variable('SECRET')", "json-doc('{secret}')",
    ],
)  # fmt: skip
def test_rules_beside_a_label_read_neither_files_nor_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expression: str
) -> None:
    monkeypatch.setenv("SECRET", "hidden")
    secret = tmp_path / "elsewhere" / "hidden.xml"
    secret.parent.mkdir()
    secret.write_text("<hidden/>" if "name(doc" in expression else '"hidden"')
    asked = expression.format(secret=secret.as_uri(), folder=secret.parent.as_uri())
    told = f'The title <sch:value-of select="{asked}"/> is'
    path = tmp_path / "PDS4_PDS_TEST.sch"
    path.write_text(SCH.replace("'0.1'", "'1.0'").replace("A draft.", told))
    try:
        found = [each.text for each in Schematron([path]).failures(label(), frozenset({"version_id"}))]
    except ParseError as error:
        found = [error.why.replace(secret.as_uri(), "")]
    assert found
    assert "hidden" not in found[0]


@pytest.mark.parametrize(
    ("context", "names"),
    [
        ("pds:a/pds:b", {"b"}),
        ("pds:a | pds:b[pds:c = 'x|y/z']", {"a", "b"}),
        ("/*", None),
        ("pds:a/@unit", None),
        ("pds:a/node()", None),
    ],
)
def test_the_names_that_a_context_is_about_are_read_off(context: str, names: set[str] | None) -> None:
    assert context_names(context) == (None if names is None else frozenset(names))


def test_without_schemas_everything_else_is_checked_and_the_first_note_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("TRANSECT_PDS4_SCHEMAS", raising=False)
    report = validate([write(tmp_path, "a.xml", label(lid="urn:nasa:pds:Arm:data:one"))], ValidationOptions())
    assert report.notes[0].startswith("XSD and Schematron were not checked")
    assert [each.type for each in report.problems] == ["error.validation.invalid_label"]


def test_a_schema_that_is_not_here_is_said_and_its_namespace_left_out(
    tmp_path: Path, schemas: tuple[Path, ...]
) -> None:
    text = label().replace("PDS4_PDS_TEST.sch", "PDS4_PDS_NONE.sch")
    report = validate([write(tmp_path, "a.xml", text)], ValidationOptions(schemas=schemas, context=False))
    assert report.notes == ("not checked, since they are not among the schemas: PDS4_PDS_NONE.sch",)


@pytest.mark.parametrize(
    ("models", "type_"),
    [
        ("", "warning.label.missing_schematron_spec"),
        (MODELS.replace("schematypens", "kind"), "warning.label.missing_schematypens"),
        (MODELS.replace("dsdl/schematron", "dsdl/other"), "warning.label.bad_schematypens"),
        (MODELS.replace("_TEST.sch", "_REST.sch"), "warning.label.schema"),
    ],
)
def test_a_label_must_name_its_schematron_rightly(tmp_path: Path, models: str, type_: str) -> None:
    assert types(write(tmp_path, "a.xml", label(models=models)), schemas=(tmp_path,)) == [type_]


def test_without_saxon_there_is_a_note_that_says_what_to_install(
    tmp_path: Path, schemas: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    report = validate(
        [write(tmp_path, "a.xml", label(vid="0.1"))], ValidationOptions(schemas=schemas, context=False)
    )
    assert report.notes == ("Schematron was not checked: pip install 'transect[archive]'",)
    assert report.verdict == "valid"
    monkeypatch.setitem(__import__("sys").modules, "saxonche", None)
    with pytest.raises(MissingExtraError, match="saxonche"):
        schematron.Saxon()


def test_a_schema_that_cannot_be_loaded_is_a_problem_of_the_labels(
    tmp_path: Path, schemas: tuple[Path, ...]
) -> None:
    (schemas[0] / "PDS4_PDS_TEST.xsd").write_text(
        "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'><a/>"
    )
    assert types(write(tmp_path, "a.xml", label()), schemas=schemas) == ["error.label.unresolvable_resource"]


def catalog_of(tmp_path: Path, *entries: str) -> Path:
    path = tmp_path / "catalog" / "catalog.xml"
    path.parent.mkdir(exist_ok=True)
    body = "".join(entries)
    path.write_text(f'<catalog xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog">{body}</catalog>')
    return path


SITE = "https://pds.nasa.gov/"
REWRITE = f'<rewriteURI uriStartString="{SITE}" rewritePrefix="{{}}/"/>'


@pytest.mark.parametrize(
    "entries",
    [
        [REWRITE.format("../schemas")],
        [f'<rewriteSystem systemIdStartString="{SITE}" rewritePrefix="../schemas/"/>'],
        [
            f'<uri name="{SITE}PDS4_PDS_TEST.xsd" uri="../schemas/PDS4_PDS_TEST.xsd"/>',
            f'<system systemId="{SITE}PDS4_PDS_TEST.sch" uri="../schemas/PDS4_PDS_TEST.sch"/>',
        ],
        [
            '<group xml:base="../schemas/">',
            '<uriSuffix uriSuffix="PDS4_PDS_TEST.xsd" uri="PDS4_PDS_TEST.xsd"/>',
            '<systemSuffix systemIdSuffix="PDS4_PDS_TEST.sch" uri="PDS4_PDS_TEST.sch"/></group>',
        ],
        ['<!-- the entries are elsewhere --><nextCatalog catalog="next.xml"/>'],
    ],
)
def test_a_catalog_says_where_schemas_are(
    tmp_path: Path, schemas: tuple[Path, ...], entries: list[str]
) -> None:
    catalog = catalog_of(tmp_path, *entries)
    (catalog.parent / "next.xml").write_text(f"<catalog>{REWRITE.format('../schemas')}</catalog>")
    given = {"schemas": (tmp_path / "catalog",), "catalogs": (catalog,)}
    assert types(write(tmp_path, "a.xml", label()), **given) == []
    assert types(write(tmp_path, "a.xml", label(vid="0.1")), **given) == ["warning.label.schematron"]
    assert "error.label.schema" in types(write(tmp_path, "a.xml", label(vid="one")), **given)


def test_a_schema_that_a_catalog_does_not_know_or_has_not_is_an_error(
    tmp_path: Path, schemas: tuple[Path, ...]
) -> None:
    path = write(tmp_path, "a.xml", label())
    expected = ["error.catalog.unresolvable_schema", "error.catalog.unresolvable_schematron"]
    unnamed = '<rewriteURI uritartString="https://pds.nasa.gov/" rewritePrefix="../schemas/"/>'
    for entry in ("", unnamed, '<nextCatalog catalog="nowhere.xml"/>'):
        assert types(path, schemas=schemas, catalogs=(catalog_of(tmp_path, entry),)) == expected
    elsewhere = (catalog_of(tmp_path, REWRITE.format("../nowhere")),)
    assert types(path, schemas=(tmp_path / "catalog",), catalogs=elsewhere) == expected
    assert types(path, schemas=schemas, catalogs=elsewhere) == []  # by its name, from the folder


def test_a_catalog_may_name_its_grammar_and_may_not_define_entities(
    tmp_path: Path, schemas: tuple[Path, ...]
) -> None:
    path, catalog = write(tmp_path, "a.xml", label()), catalog_of(tmp_path, REWRITE.format("../schemas"))
    text = catalog.read_text()
    named = (
        '<!DOCTYPE catalog PUBLIC "-//OASIS//DTD XML Catalogs V1.1//EN" "http://www.oasis-open.org/c.dtd">'
    )
    catalog.write_text(f"{named}\n{text}")
    assert types(path, schemas=schemas, catalogs=(catalog,)) == []
    catalog.write_text(f'<!DOCTYPE catalog [<!ENTITY a "b">]>\n{text}')
    done = transect("archive", "validate", path, "--catalog", catalog)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)


def test_a_file_that_is_no_catalog_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.xml"
    other.write_text("<something/>")
    path = write(tmp_path, "a.xml", label())
    done = transect("archive", "validate", path, "--catalog", other)
    assert (done.returncode, "no XML catalog" in done.stderr) == (1, True)


def test_the_verdict_is_as_far_as_checked_where_something_was_not(
    tmp_path: Path, schemas: tuple[Path, ...]
) -> None:
    path, empty = write(tmp_path, "a.xml", label()), tmp_path / "empty"
    empty.mkdir()
    asked = ("archive", "validate", path, "--skip-context", "--schemas")
    assert transect(*asked, schemas[0]).stdout.startswith("valid: ")
    assert "\nvalid as far as checked: " in transect(*asked, empty).stdout
    (tmp_path / "schemas" / "PDS4_PDS_TEST.sch").unlink()
    assert "\nvalid as far as checked: " in transect(*asked, schemas[0]).stdout
