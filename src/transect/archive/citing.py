"""How a bundle is cited: what its label says, as the one record of citations (`recording.citation`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from transect.base.xml import load_xml
from transect.errors import ParseError, UsageError
from transect.formats.pds4.label import NAMESPACE as PDS
from transect.recording.citation import Author, Citation, Related

from .existing import child_text, open_bundle

PUBLISHERS = {
    "nasa": "NASA Planetary Data System", "esa": "ESA Planetary Science Archive",
    "jaxa": "JAXA Data Archives and Transmission System", "ros": "Roscosmos",
    "isro": "ISRO Science Data Archive", "kari": "KARI Planetary Data System",
}  # fmt: skip
"""Who publishes, by the agency in an identifier."""
_BETWEEN = re.compile(r"(?<=\.),\s+(?:and\s+)?|\s+and\s+|\s+&\s+")
"""Between authors who are not parted by semicolons: `Doe, J., Roe, R. and Poe, E.`"""
_INITIALS = re.compile(r"^([^,]+?)\s+((?:[A-Z]\.[\s-]*)+)$")
"""A person whose initials follow without a comma: `Semenov B. V.`"""


def bundle_citation(folder: Path, authors: Sequence[str] = (), publisher: str = "") -> Citation:
    """Return how a bundle is cited.

    Parameters
    ----------
    folder : Path
        The bundle, or its label.
    authors : sequence of str
        Instead of those in the label: `Family, Given`, or the name of an organisation.
    publisher : str
        Instead of the agency's archive.

    Raises
    ------
    ParseError
        If there is no bundle, or its label has no citation.
    UsageError
        If nobody is named as its author.
    """
    bundle, _ = open_bundle(folder)
    root = load_xml(bundle.label.read_bytes(), str(bundle.label))
    area = root.find(f"{PDS}Identification_Area/{PDS}Citation_Information")
    if area is None:
        raise ParseError(f"{bundle.lidvid} does not say how it is cited", where=str(bundle.label))
    said = [Author(name) for name in authors] or list(_authors(area))
    if not said:
        raise UsageError(
            "nobody is named as its author", where=str(bundle.label), hint='--author "Doe, Jane"'
        )
    lid = bundle.lidvid.lid
    found = Citation(
        " ".join(bundle.title.split()), said, int(child_text(area, "publication_year") or 0),
        publisher or PUBLISHERS.get(lid.parts[1], lid.parts[1].upper()), str(bundle.lidvid.vid),
        child_text(area, "doi"), str(bundle.lidvid), "PDS4 bundle",
        child_text(root.find(f"{PDS}Bundle"), "description") or child_text(area, "description"),
        keywords=[each.text.strip() for each in area.iterfind(f"{PDS}keyword") if each.text],
    )  # fmt: skip
    return replace(found, related=list(_list_related(root)))


def _authors(area: Any) -> Iterator[Author]:
    """Give the authors: from the list that new models have, else from the text that old ones have."""
    listed = area.find(f"{PDS}List_Author")
    for each in () if listed is None else listed:
        family, given = child_text(each, "family_name"), child_text(each, "given_name")
        name = f"{family}, {given}" if family and given else family or child_text(each, "display_full_name")
        name = name or child_text(each, "organization_name")
        orcid = child_text(each, "person_orcid")
        if name:
            yield Author(name, child_text(each.find(f"{PDS}Affiliation"), "organization_name"), orcid)
    text = child_text(area, "author_list")
    for name in text.split(";") if ";" in text else _BETWEEN.split(text):
        if name.strip() and listed is None:
            yield Author(_INITIALS.sub(r"\1, \2", name.strip()))


def _list_related(root: Any) -> Iterator[Related]:
    """Give collections of other bundles, and what the label refers to in the literature."""
    for entry in root.iterfind(f"{PDS}Bundle_Member_Entry"):
        if child_text(entry, "member_status") == "Secondary":
            to = child_text(entry, "lidvid_reference") or child_text(entry, "lid_reference")
            yield Related(to, "IsSupplementedBy")
    for reference in root.iter(f"{PDS}External_Reference"):
        if doi := child_text(reference, "doi"):
            yield Related(doi, "References")
