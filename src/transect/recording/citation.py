"""Citation of data, as text and as DataCite metadata (schema 4).

A `Citation` is written by a person, mostly as YAML (read by `base.yaml_fields`); recordings, reports and
archives use the same record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from transect.base import yaml_fields, yaml_parts
from transect.base.yaml_parts import YamlPart
from transect.errors import ParseError, UsageError, did_you_mean

SCHEMA = "http://datacite.org/schema/kernel-4"
RELATIONS = (
    "IsCitedBy", "Cites", "IsSupplementTo", "IsSupplementedBy", "IsContinuedBy", "Continues", "IsDescribedBy",
    "Describes", "HasMetadata", "IsMetadataFor", "HasVersion", "IsVersionOf", "IsNewVersionOf",
    "IsPreviousVersionOf", "IsPartOf", "HasPart", "IsReferencedBy", "References", "IsDocumentedBy",
    "Documents", "IsCompiledBy", "Compiles", "IsVariantFormOf", "IsOriginalFormOf", "IsIdenticalTo",
    "IsReviewedBy", "Reviews", "IsDerivedFrom", "IsSourceOf", "IsRequiredBy", "Requires",
    "IsObsoletedBy", "Obsoletes",
)  # fmt: skip
"""Relation types of DataCite 4.3, which all later versions of 4 include."""
_DOI = re.compile(r"(?:(?:https?://(?:dx\.)?doi\.org/|doi:)\s*)?(10\.\d{4,9}/\S+)", re.IGNORECASE)
_ORCID = re.compile(r"(?:https?://orcid\.org/)?(\d{4})-?(\d{4})-?(\d{4})-?(\d{3}[\dXx])")


@dataclass(frozen=True)
class Author:
    """Author of a data set: a person or an organisation."""

    name: str  # `Family, Given` of a person, or the name of an organisation without a comma
    affiliation: str = ""
    orcid: str = ""  # ORCID of a person: 0000-0002-1825-0097
    short: ClassVar[str] = "name"


@dataclass(frozen=True)
class Related:
    """Related resource: a DOI, a URN such as a PDS4 identifier, an arXiv number or a URL."""

    identifier: str
    relation: str = "References"
    short: ClassVar[str] = "identifier"


@dataclass(frozen=True)
class Citation:
    """Citation of a data set."""

    title: str
    authors: list[Author]
    year: int  # Year of publication
    publisher: str
    version: str = ""
    doi: str = ""  # Empty until there is one
    identifier: str = ""  # Other identifier, such as the LIDVID of a bundle
    kind: str = "data set"  # Kind of resource, in a few words
    description: str = ""
    licence: str = ""
    keywords: list[str] = field(default_factory=list[str])
    related: list[Related] = field(default_factory=list[Related])

    def check(self, part: YamlPart) -> None:
        """Report what DataCite would refuse."""
        for key, problem in find_problems(self):
            part.child(key).wrong(problem)


def load_citation(path: Path | str) -> Citation:
    """Read a citation from a YAML file; all problems are in one error."""
    path = Path(path)
    try:
        data, lines = yaml_parts.parse(path.read_text(encoding="utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise ParseError(f"{path} is not text", where=str(path), why=str(error)) from error
    part = YamlPart(data if data is not None else {}, (), lines)
    citation = yaml_fields.read(part, Citation, "the citation")
    yaml_parts.refuse(part.problems, str(path))
    assert citation is not None  # or there was a problem
    return citation


def find_problems(citation: Citation) -> Iterator[tuple[str, str]]:
    """Yield the field and a description of each problem for which DataCite would refuse a citation."""
    for key in ("title", "publisher"):
        if not getattr(citation, key).strip():
            yield key, f"a citation needs a {key}"
    if not any(author.name.strip() for author in citation.authors):
        yield "authors", "a citation needs an author"
    if not 1000 <= citation.year <= 9999:
        yield "year", f"the year has four digits, not {citation.year}"
    if citation.doi and not _DOI.fullmatch(citation.doi):
        yield "doi", f"{citation.doi!r} is no DOI, which begins with 10. and has a slash"
    for author in citation.authors:
        if author.orcid and not _is_orcid(author.orcid):
            yield "authors", f"{author.orcid!r} is no ORCID: its last digit does not fit the others"
    for other in citation.related:
        if other.relation not in RELATIONS:
            hint = did_you_mean(other.relation, RELATIONS)
            yield "related", f"DataCite knows no relation {other.relation!r} ({hint})"


def _is_orcid(text: str) -> bool:
    """Return whether the check digit is correct (ISO 7064, 11-2)."""
    match = _ORCID.fullmatch(text.strip())
    if match is None:
        return False
    digits, total = "".join(match.groups()).upper(), 0
    for digit in digits[:-1]:
        total = (total + int(digit)) * 2
    return "0123456789X"[(12 - total % 11) % 11] == digits[-1]


def bare_doi(text: str) -> str:
    """Return a DOI without its URL prefix; "" if the text is not a DOI."""
    match = _DOI.fullmatch(text.strip())
    return match[1].lower() if match else ""


def citation_text(citation: Citation) -> str:
    """Return `Creators (year): Title. Version 1.0. Publisher. Data set. https://doi.org/...`.

    Without a DOI the line ends with the other identifier.
    """
    authors = "; ".join(author.name.strip() for author in citation.authors)
    doi = bare_doi(citation.doi)
    parts = [
        f"{authors} ({citation.year}): {citation.title.strip()}",
        f"Version {citation.version}" if citation.version else "",
        citation.publisher.strip(),
        citation.kind[:1].upper() + citation.kind[1:],
        f"https://doi.org/{doi}" if doi else citation.identifier,
    ]
    return f"{_sentences(parts[:-1])} {parts[-1]}".strip()


def datacite(citation: Citation) -> dict[str, Any]:
    """Return DataCite metadata (schema 4) as JSON values; without a DOI it is a draft.

    Raises
    ------
    UsageError
        If a field that DataCite requires is missing or invalid.
    """
    if problems := list(find_problems(citation)):
        key, what = problems[0]
        raise UsageError(what, where=f"citation: {key}", hint="complete the citation")
    doi = bare_doi(citation.doi)
    return _without_empty(
        {
            "schemaVersion": SCHEMA,
            "doi": doi,
            "identifiers": [{"identifier": f"https://doi.org/{doi}", "identifierType": "DOI"}] if doi else [],
            "creators": [_creator(author) for author in citation.authors],
            "titles": [{"title": citation.title.strip()}],
            "publisher": {"name": citation.publisher.strip()},
            "publicationYear": str(citation.year),
            "types": {"resourceTypeGeneral": "Dataset", "resourceType": citation.kind},
            "subjects": [{"subject": word} for word in dict.fromkeys(citation.keywords)],
            "version": citation.version,
            "rightsList": [{"rights": citation.licence}] if citation.licence else [],
            "descriptions": _descriptions(citation),
            "alternateIdentifiers": _alternates(citation),
            "relatedIdentifiers": [_describe_related(other) for other in citation.related],
        }
    )


def _creator(author: Author) -> dict[str, Any]:
    family, comma, given = (part.strip() for part in author.name.partition(","))
    found: dict[str, Any] = {"name": author.name.strip(), "nameType": "Organizational"}
    if comma:
        found |= {"nameType": "Personal", "familyName": family, "givenName": given}
    if match := _ORCID.fullmatch(author.orcid.strip()):
        number = "-".join(match.groups()).upper()
        scheme = {"nameIdentifierScheme": "ORCID", "schemeUri": "https://orcid.org"}
        found["nameIdentifiers"] = [{"nameIdentifier": f"https://orcid.org/{number}", **scheme}]
    return found | ({"affiliation": [{"name": author.affiliation}]} if author.affiliation else {})


def _descriptions(citation: Citation) -> list[dict[str, str]]:
    text = " ".join(citation.description.split())
    return [{"description": text, "descriptionType": "Abstract"}] if text else []


def _alternates(citation: Citation) -> list[dict[str, str]]:
    name = citation.identifier
    kind = "URN" if name.startswith("urn:") else "local"
    return [{"alternateIdentifier": name, "alternateIdentifierType": kind}] if name else []


def _describe_related(other: Related) -> dict[str, str]:
    text = other.identifier.strip()
    kind = "URL"
    if doi := bare_doi(text):
        kind, text = "DOI", doi
    elif text.lower().startswith("urn:"):
        kind = "URN"
    elif text.lower().startswith("arxiv:"):
        kind = "arXiv"
    return {"relatedIdentifier": text, "relatedIdentifierType": kind, "relationType": other.relation}


def _sentences(parts: list[str]) -> str:
    return " ".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in parts if part)


def _without_empty(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if value}
