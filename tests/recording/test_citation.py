"""Citations: the text, and DataCite's metadata against the rules of its schema 4."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from transect.base.yaml_fields import read
from transect.base.yaml_parts import YamlPart, parse
from transect.errors import UsageError
from transect.recording.citation import Author, Citation, Related, citation_text, datacite, find_problems

IDA = Citation(
    title="InSight IDA Bundle",
    authors=[Author("Abarca, Hallie", "JPL", "0000-0002-1825-0097"), Author("PDS Geosciences Node")],
    year=2019,
    publisher="NASA Planetary Data System",
    version="1.0",
    doi="https://doi.org/10.17189/1517568",
    identifier="urn:nasa:pds:insight_ida::1.0",
    description="Arm telemetry,\n  raw and calibrated.",
    keywords=["Mars", "robotic arm", "Mars"],
    related=[
        Related("10.1007/s11214-018-0520-7", "IsDescribedBy"),
        Related("urn:nasa:pds:insight_documents:document_ida"),
        Related("https://pds-geosciences.wustl.edu"),
        Related("arXiv:1905.00001"),
    ],
)

# DataCite Metadata Schema 4: mandatory properties, and lists whose entries have mandatory parts.
MANDATORY = ("identifiers", "creators", "titles", "publisher", "publicationYear", "types", "schemaVersion")
PARTS = {
    "identifiers": {"identifier", "identifierType"},
    "creators": {"name"},
    "titles": {"title"},
    "subjects": {"subject"},
    "descriptions": {"description", "descriptionType"},
    "alternateIdentifiers": {"alternateIdentifier", "alternateIdentifierType"},
    "relatedIdentifiers": {"relatedIdentifier", "relatedIdentifierType", "relationType"},
}
ALLOWED = {
    "nameType": {"Personal", "Organizational"},
    "descriptionType": {"Abstract", "Methods", "SeriesInformation", "TechnicalInfo", "Other"},
    "relatedIdentifierType": {"DOI", "URN", "URL", "arXiv"},
    "resourceTypeGeneral": {"Dataset"},
    "schemaVersion": {"http://datacite.org/schema/kernel-4"},
}  # fmt: skip


def violations(record: dict[str, Any], mandatory: tuple[str, ...] = MANDATORY) -> list[str]:
    """Return what of a record DataCite would refuse, by the rules above."""
    found = [f"no {key}" for key in mandatory if not record.get(key)]
    for key, needed in PARTS.items():
        entries = record.get(key, [])
        found += [f"{key} without {name}" for entry in entries for name in needed if not entry.get(name)]
        if len({str(entry) for entry in entries}) != len(entries):
            found.append(f"{key} twice")
    for entry in (record, record["types"], *(each for key in PARTS for each in record.get(key, []))):
        found += [
            f"{key}: {entry[key]}" for key, words in ALLOWED.items() if entry.get(key, "") not in {*words, ""}
        ]
    return found  # fmt: skip


def test_the_metadata_keeps_the_rules_of_datacite():
    record = datacite(IDA)
    assert violations(record) == []
    assert record["doi"] == "10.17189/1517568"
    assert record["publicationYear"] == "2019"
    assert [each["relatedIdentifierType"] for each in record["relatedIdentifiers"]] == [
        "DOI", "URN", "URL", "arXiv",
    ]  # fmt: skip
    person, node = record["creators"]
    assert (person["familyName"], person["givenName"], person["nameType"]) == ("Abarca", "Hallie", "Personal")
    assert person["nameIdentifiers"][0]["nameIdentifier"] == "https://orcid.org/0000-0002-1825-0097"
    assert (node["nameType"], "familyName" in node) == ("Organizational", False)
    assert record["descriptions"][0]["description"] == "Arm telemetry, raw and calibrated."


def test_without_a_doi_only_the_doi_is_missing():
    record = datacite(dataclasses.replace(IDA, doi=""))
    assert violations(record) == ["no identifiers"]
    assert record["alternateIdentifiers"] == [
        {"alternateIdentifier": "urn:nasa:pds:insight_ida::1.0", "alternateIdentifierType": "URN"}
    ]


def test_the_text_names_all_and_ends_with_what_finds_it():
    assert citation_text(IDA) == (
        "Abarca, Hallie; PDS Geosciences Node (2019): InSight IDA Bundle. Version 1.0. "
        "NASA Planetary Data System. Data set. https://doi.org/10.17189/1517568"
    )
    plain = Citation("What is dust?", [Author("A lab")], 2024, "Us", identifier="urn:x:y")
    assert citation_text(plain) == "A lab (2024): What is dust? Us. Data set. urn:x:y"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"title": " "}, "title"),
        ({"authors": []}, "authors"),
        ({"year": 19}, "year"),
        ({"publisher": ""}, "publisher"),
        ({"doi": "17189/1517568"}, "doi"),
        ({"authors": [Author("Abarca, Hallie", orcid="0000-0002-1825-0098")]}, "authors"),
        ({"related": [Related("10.1007/x", "IsDescribed")]}, "related"),
    ],
)
def test_what_datacite_would_refuse_is_named(change: dict[str, Any], named: str):
    wrong = dataclasses.replace(IDA, **change)
    assert [key for key, _ in find_problems(wrong)] == [named]
    with pytest.raises(UsageError):
        datacite(wrong)


def test_a_citation_is_read_from_yaml_and_its_mistakes_have_lines():
    data, lines = parse(
        "title: Etna\nauthors:\n  - Doe, Jane\n  - {name: Roe, orcid: 0000-0002-1825-0097}\n"
        "year: 2024\npublisher: Us\ndoi: 11.5/x\nrelated: [10.1000/182]\n",
        "cite.yaml",
    )
    part = YamlPart(data, (), lines)
    assert read(part, Citation, "the citation") is None
    assert [(problem.line, "DOI" in problem.what) for problem in part.problems] == [(7, True)]
